package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"centurion"
	"centurion/guard"
	"centurion/host"
	"centurion/server"
	"centurion/store"
)

// A host that ends between its answer to the knock and the question is no failure for whoever only looks: the store is read.
func TestHostEndsWhileItIsAsked(t *testing.T) {
	home, err := os.MkdirTemp("", "s") // short: a socket's path has a limit that t.TempDir can pass
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	dir := filepath.Join(home, "p")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var o, e strings.Builder
	c := &cli{in: strings.NewReader(""), out: &o, err: &e, env: []string{"HOME=" + home, "CENTURION_HOME=" + filepath.Join(home, "c")}}
	p, ws, err := c.locate(dir)
	if err != nil {
		t.Fatal(err)
	}
	ws.Close()
	m := centurion.Mission{ID: centurion.NewID(centurion.PrefixMission), Goal: "a goal", Status: centurion.MissionPaused, Started: centurion.Now()}
	s, err := store.Open(t.Context(), p.Database())
	if err == nil {
		err = errors.Join(s.Update(t.Context(), func(tx *store.Tx) error { return tx.PutMission(&m) }), s.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	requests := dyingHost(t, p, filepath.Join(home, "h.sock"))
	if code := c.run(t.Context(), []string{"ps", "--dir", dir, "--format", "json"}); code != exitComplete || !strings.Contains(o.String(), m.ID) {
		t.Errorf("exit %d, %s%s", code, &o, &e)
	}
	if requests.Load() < 2 {
		t.Error("the host was not asked")
	}
}

// dyingHost makes a project look as if another process hosted it, which ends after its first answer. It returns how often it
// was asked.
func dyingHost(t *testing.T, p host.Place, socket string) *atomic.Int32 {
	t.Helper()
	b, err := json.Marshal(host.Owner{PID: 4711, Socket: socket, Since: centurion.Now()})
	if err == nil {
		err = os.WriteFile(p.OwnerFile(), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	requests := new(atomic.Int32)
	alive := server.Handler(&server.Local{}, p.Token, server.Info{PID: 4711, Version: Version}, nil)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		alive.ServeHTTP(w, r)
	})}
	var g guard.Group
	g.Go("host", func() error { _ = srv.Serve(l); return nil })
	t.Cleanup(func() {
		if err := errors.Join(srv.Close(), g.Wait()); err != nil {
			t.Error(err)
		}
	})
	return requests
}

// listed is an API with these missions, newest first.
type listed struct {
	server.API
	missions []server.Mission
}

func (l listed) Missions(context.Context) ([]server.Mission, error) { return l.missions, nil }

// Who follows an ended mission hears of the newest one that can be resumed, whether it is paused or blocked.
func TestEarlierMissionIsNamed(t *testing.T) {
	for want, all := range map[string][]centurion.MissionStatus{
		"paused: centurion resume msn_1":  {centurion.MissionCompleted, centurion.MissionPaused, centurion.MissionBlocked},
		"blocked: centurion resume msn_1": {centurion.MissionRunning, centurion.MissionBlocked, centurion.MissionPaused},
		"":                                {centurion.MissionFailed, centurion.MissionCancelled},
	} {
		var e strings.Builder
		api := listed{}
		for i, s := range all {
			api.missions = append(api.missions, server.Mission{ID: fmt.Sprint("msn_", i), Status: s})
		}
		(&cli{err: &e}).noteOthers(t.Context(), api)
		if got := strings.TrimSpace(e.String()); strings.TrimPrefix(got, "next: an earlier mission is ") != want {
			t.Errorf("%v: %q, want %q", all, got, want)
		}
	}
}
