package host

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/server"
)

// keeping is a host of missions whose events one follows for as long as one likes.
type keeping struct {
	server.API
	status   map[string]centurion.MissionStatus
	followed chan server.EventQuery
	paused   []string
}

func (k *keeping) Mission(_ context.Context, id string) (server.Mission, error) {
	if k.status[id] == "" {
		return server.Mission{}, &centurion.Error{Kind: centurion.KindNotFound, Msg: "gone"}
	}
	return server.Mission{ID: id, Status: k.status[id]}, nil
}

func (k *keeping) Pause(_ context.Context, id, reason string) error {
	k.paused = append(k.paused, id+": "+reason)
	if k.status[id] == centurion.MissionPlanning { // it has stopped by itself meanwhile
		return &centurion.Error{Kind: centurion.KindConflict, Msg: "late"}
	}
	return nil
}

func (k *keeping) Events(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
	k.followed <- q
	return func(func(centurion.Event, error) bool) { <-ctx.Done() }
}

// Who leaves pauses the missions that it has begun, but for those that go on elsewhere or have stopped; each is followed once until then.
func TestKeeper(t *testing.T) {
	f, api := &faulty{}, &keeping{followed: make(chan server.EventQuery, 10), status: map[string]centurion.MissionStatus{"msn_a": centurion.MissionRunning,
		"msn_b": centurion.MissionRunning, "msn_c": centurion.MissionCompleted, "msn_d": centurion.MissionPlanning}}
	conn := connectTo(t, f)
	f.API = api
	var notes []string
	conn.Note = func(text string) { notes = append(notes, text) }
	k := conn.Keeper(t.Context())
	for _, id := range []string{"msn_a", "msn_b", "msn_c", "msn_d", "msn_gone"} {
		k.Take(id)
		if q := <-api.followed; q.Mission != id || !q.Follow || !q.Keep {
			t.Errorf("%s is followed as %+v", id, q)
		}
	}
	k.Take("msn_a")
	if !k.Owns("msn_b") || k.Owns("msn_e") {
		t.Error("it does not know its missions")
	}
	k.Leave(func(id string) bool { return id == "msn_b" })
	k.Take("msn_e")
	if k.Leave(func(string) bool { return true }); len(api.followed) != 0 || !k.Owns("msn_e") {
		t.Errorf("%d more are followed", len(api.followed))
	}
	if want := []string{"msn_a: " + centurion.ErrShutdown.Msg, "msn_d: " + centurion.ErrShutdown.Msg}; !slices.Equal(api.paused, want) {
		t.Errorf("paused: %q", api.paused)
	}
	if said := strings.Join(notes, "\n"); len(notes) != 2 || !strings.Contains(said, "mission msn_a is paused; continue with: centurion resume msn_a") {
		t.Errorf("noted: %s", said)
	}
}

// The tools of servers and plugins are one list without doubles, and a call reaches whoever has the tool.
func TestToolsFromOutside(t *testing.T) {
	p := pluginsOf(t, t.TempDir(), 0)
	defer p.Close()
	if err := p.host.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	x := external{newServers(nil, Place{State: t.TempDir()}, "", nil, "1"), p}
	all := x.Tools()
	if len(all) != 1 {
		t.Fatalf("%+v", all)
	}
	if _, err := x.Run(t.Context(), nil, "nobodys", nil); centurion.KindOf(err) != centurion.KindNotFound || centurion.HintOf(err) == "" {
		t.Errorf("nobody's tool: %v", err)
	}
}
