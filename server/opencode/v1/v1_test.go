package v1

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/orchestrator"
	"centurion/orchestrator/agent"
	"centurion/server"
	"centurion/server/opencode"
	"centurion/server/opencode/v1/contract"
	"centurion/store"
	"centurion/workspace"
)

// TestMain lets the server wait: it does so for half a second after it has refused a request without reading all of it.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// rig is a project that is served, with a mission whose state the test writes.
type rig struct {
	testing.TB
	store   *store.Store
	hub     *event.Hub
	project *Project
	url     string
	mission centurion.Mission
	root    centurion.Session
	begun   []Begin
	api     atomic.Pointer[server.API]
}

// answers lets requests from now on be answered by another host.
func (x *rig) answers(api server.API) { x.api.Store(&api) }

func newRig(t testing.TB) *rig {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(t.Context(), filepath.Join(dir, "p.db"))
	if err != nil {
		t.Fatal(err)
	}
	project := filepath.Join(dir, "project")
	if err := os.MkdirAll(filepath.Join(project, "src"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"README.md": "# A\n\nA needle.\n", "src/hello.go": "package hello\n"} {
		if err := os.WriteFile(filepath.Join(project, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := workspace.Open(project)
	if err != nil {
		t.Fatal(err)
	}
	x := &rig{TB: t, store: s, hub: &event.Hub{}}
	host := orchestrator.New(orchestrator.Config{Store: s, Workspace: ws, Model: func(ref string) (orchestrator.Model, error) {
		return agent.Model{Ref: centurion.ModelRef{Provider: "custom", ID: "m"}}, nil
	}})
	local := &server.Local{Store: s, Hub: x.hub, Host: host}
	x.answers(local)
	p := &Project{Directory: ws.Dir(), Version: "9", All: &opencode.Hub{}, API: func() server.API { return *x.api.Load() }, Files: ws, Note: func(text string) { t.Error(text) },
		Follow: func(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
			return local.Events(ctx, q)
		},
		Begin: func(ctx context.Context, b Begin) (server.Mission, error) {
			x.begun = append(x.begun, b)
			return server.Mission{}, errors.New("no model here")
		},
		Expand: func(ctx context.Context, command, arguments string) (Begin, error) {
			return Begin{Goal: command + ": " + arguments, Profile: "mission"}, nil
		},
		Catalog: func(context.Context) (Catalog, error) {
			return Catalog{Models: []Model{{Ref: centurion.ModelRef{Provider: "custom", ID: "m"}, Context: 9}, {Ref: centurion.ModelRef{Provider: "custom", ID: "n"}}},
				Agents:   []Agent{{Name: "assistant", Profile: "assistant"}, {Name: "commander", Profile: "mission"}, {Name: "worker"}},
				Commands: []Command{{Name: "fix", Template: "Fix $2 like $1: $ARGUMENTS $1"}}, Tools: []string{"bash"}}, nil
		}}
	x.project = p
	x.seed(project)
	ctx, cancel := context.WithCancel(t.Context())
	var g guard.Group
	following := make(chan struct{})
	p.Follow = func(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
		close(following)
		return local.Events(ctx, q)
	}
	g.Go("follow", func() error { _ = p.Run(ctx); return nil })
	<-following
	handler := p.Handler()
	if _, ok := t.(*testing.T); ok { // a benchmark measures the server alone
		handler = contract.Handler(handler, func(err error) { t.Error(err) })
	}
	srv := httptest.NewServer(handler)
	x.url = srv.URL
	t.Cleanup(func() {
		cancel()
		srv.CloseClientConnections()
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
		if err := errors.Join(g.Wait(), ws.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return x
}

// seed writes a mission that runs, with its root session.
func (x *rig) seed(dir string) {
	now := centurion.Now()
	x.root = centurion.Session{ID: centurion.NewID(centurion.PrefixSession), Title: "a goal", Agent: "commander", Slug: "0", ProjectID: "global", Directory: dir, Version: "9",
		Metadata: centurion.SessionMeta{Address: "0/", System: "secret"}}
	x.mission = centurion.Mission{ID: centurion.NewID(centurion.PrefixMission), Goal: "a goal", Status: centurion.MissionRunning, Directory: dir, Session: x.root.ID, Started: now, Updated: now}
	x.root.Metadata.Mission = x.mission.ID
	plan := event.Data(event.TodoData{Items: []event.PlanItem{{ID: "T0", Title: "Earlier", Status: "done"}}})
	x.update(func(tx *store.Tx) error {
		_, err := tx.Append(centurion.Event{Type: centurion.EventTodoUpdated, Mission: x.mission.ID, Data: plan})
		return errors.Join(err, tx.PutMission(&x.mission), tx.PutSession(&x.root))
	})
}

func (x *rig) update(f func(tx *store.Tx) error) {
	x.Helper()
	if err := x.store.Update(x.Context(), f); err != nil {
		x.Fatal(err)
	}
}

// fact appends a fact with what change writes.
func (x *rig) fact(kind centurion.EventType, session, task string, data any, change func(tx *store.Tx) error) {
	x.Helper()
	x.update(func(tx *store.Tx) error {
		if change != nil {
			if err := change(tx); err != nil {
				return err
			}
		}
		_, err := tx.Append(centurion.Event{Type: kind, Mission: x.mission.ID, Session: session, Task: task, Data: event.Data(data)})
		return err
	})
}

// told is an event as a client reads it.
type told struct {
	ID         string
	Type       string
	Properties map[string]any
}

// listen reads the events of a stream.
func (x *rig) listen(path string) (next func() told) {
	x.Helper()
	resp, err := http.Get(x.url + path)
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { resp.Body.Close() })
	lines := bufio.NewReader(resp.Body)
	next = func() told {
		x.Helper()
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				x.Fatal(err)
			}
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok {
				continue
			}
			var global struct {
				Directory string
				Payload   *told
			}
			var e told
			if json.Unmarshal([]byte(data), &global) == nil && global.Payload != nil {
				e = *global.Payload
				if want := !strings.HasPrefix(e.Type, "server."); want != (global.Directory == x.mission.Directory) {
					x.Errorf("%s has the directory %q", e.Type, global.Directory)
				}
			} else if err := json.Unmarshal([]byte(data), &e); err != nil {
				x.Fatalf("%s: %v", data, err)
			}
			if strings.Contains(data, "secret") {
				x.Errorf("a session tells its system prompt: %s", data)
			}
			if e.Type != "tui.toast.show" { // toasts come when they are due
				return e
			}
		}
	}
	if e := next(); e.Type != "server.connected" {
		x.Errorf("a stream begins with %s", e.Type)
	}
	return next
}

// ask makes a request and returns the status and the answer.
func (x *rig) ask(method, path, body string) (int, string) {
	x.Helper()
	req, err := http.NewRequestWithContext(x.Context(), method, x.url+path, strings.NewReader(body))
	if err != nil {
		x.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		x.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		x.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(b))
}
