package orchestrator

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"centurion"
	"centurion/agents"
	"centurion/guard"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/state"
	"centurion/permission"
	"centurion/provider"
	"centurion/provider/scripted"
	"centurion/store"
	"centurion/workspace"
	"centurion/worktree"
)

func TestMain(m *testing.M) {
	remove := inMemory()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		remove()
		os.Exit(code)
	}))
}

// script answers the requests of one role.
type script func(scripted.Request) scripted.Answer

// rig is a project with everything real but the model, the shell and the system's file watch: a bubble's clock does not
// move while a goroutine waits for the system.
type rig struct {
	t     testing.TB
	ctx   context.Context
	cfg   Config
	dir   string
	ws    *workspace.Workspace
	store *store.Store
	model *scripted.Model
	http  *http.Client
	shell *shell
	host  *Host
	poke  chan struct{} // a person has touched the plan
	runs  int           // of missions, each of which has one last event
}

// bubble runs a test with a rig in which time is faked.
func bubble(t *testing.T, cast map[string]script, f func(r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(newRig(t, cast)) })
}

// faked makes a parallel test of f in which time is faked. What f waits for in git is real: the clock stands meanwhile.
func faked(f func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	}
}

// newRig makes a project whose agents answer as cast says; who is missing there says «done».
func newRig(t testing.TB, cast map[string]script) *rig {
	t.Helper()
	return newRigWith(t, scripted.Config{Chunk: -1, Func: func(req scripted.Request) scripted.Answer {
		a := say("done")
		if s := cast[req.Agent()]; s != nil {
			a = s(req)
		}
		// The faked clock moves when everybody waits: so the commander's own steps come before anything that a task does, and
		// a planner's before its workers'.
		switch req.Agent() {
		case "commander":
		case "planner":
			a.Delay += time.Millisecond
		default:
			a.Delay += 10 * time.Millisecond
		}
		return a
	}})
}

// emptyState is the files of a state in which nothing happened, made once: its migrations take longer than many a test.
var emptyState = sync.OnceValue(func() map[string][]byte {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path, files := filepath.Join(dir, "centurion.db"), map[string][]byte{}
	s, err := store.Open(context.Background(), path)
	if err == nil {
		err = s.Close()
	}
	found, _ := filepath.Glob(path + "*")
	for _, f := range found {
		b, rerr := os.ReadFile(f)
		files[strings.TrimPrefix(f, path)], err = b, errors.Join(err, rerr)
	}
	if err != nil {
		panic(err)
	}
	return files
})

// unbegun is a mission without a project, for a test of what one of its parts knows.
func unbegun(t testing.TB) *mission {
	t.Helper()
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	return newMission(t.Context(), New(Config{Workspace: ws}), centurion.Mission{ID: "msn_1"})
}

type conversation = agent.Conversation

// conversation is one of a session that is not in the store.
func (r *rig) conversation(m *mission, task *state.Run, attempt int) *conversation {
	r.t.Helper()
	c, err := m.sessions.New(r.ctx, centurion.Session{ID: "ses_x", Model: &centurion.SessionModel{ID: "scripted", Provider: "scripted"}}, agents.Agent{}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	c.Task, c.Attempt = task, attempt
	return c
}

// unbegun is a mission of the rig's project that nobody works on.
func (r *rig) unbegun(id string) *mission {
	return newMission(r.ctx, r.host, centurion.Mission{ID: id})
}

func newRigWith(t testing.TB, sc scripted.Config) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour) // what waits for ever ends on the faked clock, and the test fails
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx, dir: t.TempDir(), shell: &shell{}, model: scripted.New(sc), poke: make(chan struct{}, 1)}
	var err error
	if r.ws, err = workspace.Open(r.dir); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(t.TempDir(), "centurion.db")
	for ext, b := range emptyState() {
		if err := os.WriteFile(state+ext, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r.store, err = store.Open(r.ctx, state); err != nil {
		t.Fatal(err)
	}
	r.http = r.model.Client()
	r.cfg = Config{Store: r.store, Workspace: r.ws, Runner: r.shell, Version: "test", Scratch: t.TempDir(),
		Rules: func(string) []permission.Level { return rules(permission.Allow) }}
	r.cfg.Watch = r.watch
	r.restart()
	t.Cleanup(func() {
		r.http.CloseIdleConnections()
		if err := r.model.Close(); err != nil {
			t.Error(err)
		}
		r.shortNames()
		for _, v := range r.model.Violations() {
			t.Errorf("request %d (turn %d of %s): %s", v.Number, v.Turn, v.Session, v.Message)
		}
		if err := r.store.Close(); err != nil {
			t.Error(err)
		}
		if err := r.ws.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// restart makes a new host on the same state, as a new process would.
func (r *rig) restart() {
	cfg := r.cfg
	client := provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: r.http})
	if cfg.Model == nil {
		cfg.Model = func(string) (Model, error) {
			return Model{Client: client, Ref: ref, Price: &centurion.Price{Input: 1, Output: 10}}, nil
		}
	}
	r.host = New(cfg)
}

var ref = centurion.ModelRef{Provider: "scripted", ID: "scripted"}

func rules(a permission.Action) []permission.Level {
	return []permission.Level{{Name: "test", Rules: []permission.Rule{{Permission: "*", Pattern: "*", Action: a}}}}
}

// watch tells what a watch of the file would tell, without the system: it is poked by what the test does to the plan, and
// looks every minute at what the host did to it.
func (r *rig) watch(ctx context.Context, plan *workspace.TodoFile, changed func()) error {
	_, seen, _ := plan.Load()
	for tick := time.Tick(time.Minute); ; {
		poked := false
		select {
		case <-ctx.Done():
			return nil
		case <-r.poke:
			poked = true
			time.Sleep(50 * time.Millisecond)
		case <-tick:
		}
		if _, now, _ := plan.Load(); now != seen || poked {
			seen = now
			changed()
		}
	}
}

// start records a mission that has changed a file already: so it is not asked at its end what it has done at all.
func (r *rig) start(opts centurion.MissionOptions) centurion.Mission {
	r.t.Helper()
	m, err := r.host.Start(r.ctx, "build it", opts)
	if err != nil {
		r.t.Fatal(err)
	}
	r.hasWritten(m.ID)
	return m
}

// hasWritten records that a mission's own agent has changed a file.
func (r *rig) hasWritten(mission string) {
	r.t.Helper()
	err := r.store.Update(r.ctx, func(tx *store.Tx) error {
		m, err := tx.Mission(mission)
		if err != nil {
			return err
		}
		m.Wrote = []centurion.Landed{{Time: m.Started}}
		return tx.PutMission(&m)
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// run works on a mission until it stops and checks what must hold for every mission that has stopped.
func (r *rig) run(id string) centurion.Mission {
	r.t.Helper()
	return r.runIn(r.ctx, id)
}

func (r *rig) runIn(ctx context.Context, id string) centurion.Mission {
	r.t.Helper()
	m, err := r.host.Run(ctx, id)
	if err != nil {
		r.t.Errorf("run: %v", err)
	}
	r.runs++
	r.check(m)
	return m
}

// mission starts a mission and runs it to its end.
func (r *rig) mission(opts centurion.MissionOptions) centurion.Mission {
	r.t.Helper()
	return r.run(r.start(opts).ID)
}

// inBackground runs a mission while the test does something to it; the result comes through the channel.
func (r *rig) inBackground(g *guard.Group, id string) <-chan centurion.Mission {
	done := make(chan centurion.Mission, 1)
	g.Go("mission", func() error {
		m, err := r.host.Run(r.ctx, id)
		done <- m
		return err
	})
	return done
}

func (r *rig) events(mission string, types ...centurion.EventType) []centurion.Event {
	r.t.Helper()
	all, err := r.store.Events(r.ctx, store.EventQuery{Mission: mission, Types: types, Limit: 1 << 20})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// count returns how many events of a type there are.
func (r *rig) count(mission string, t centurion.EventType) int { return len(r.events(mission, t)) }

func (r *rig) tasks(mission string) []centurion.Task {
	r.t.Helper()
	tasks, err := r.store.Tasks(r.ctx, mission)
	if err != nil {
		r.t.Fatal(err)
	}
	return tasks
}

// task returns the only task of an item.
func (r *rig) task(mission, item string) centurion.Task {
	r.t.Helper()
	var found []centurion.Task
	for _, t := range r.tasks(mission) {
		if t.Item == item {
			found = append(found, t)
		}
	}
	if len(found) != 1 {
		r.t.Fatalf("item %s has %d tasks", item, len(found))
	}
	return found[0]
}

// results returns what the calls of a tool were answered, in order, by all sessions.
func (r *rig) results(mission, tool string) []string {
	r.t.Helper()
	sessions, err := r.store.Sessions(r.ctx, mission)
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, s := range sessions {
		messages, err := r.store.Messages(r.ctx, s.ID)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, m := range messages {
			for _, p := range m.Parts {
				if p.Type == centurion.PartTool && p.Tool == tool {
					text, _ := p.State.Result()
					out = append(out, text)
				}
			}
		}
	}
	return out
}

// requests returns what an agent's sessions have asked the model.
func (r *rig) requests(agent string) []scripted.Request {
	return slices.DeleteFunc(r.model.Requests(), func(q scripted.Request) bool { return q.Agent() != agent })
}

func (r *rig) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path+"~", []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil { // as an editor does: nobody sees half of it
		r.t.Fatal(err)
	}
	r.touched()
}

func (r *rig) touched() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

const todoMD = ".opencode/todo.md"

func (r *rig) read(name string) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(name)))
	if err != nil {
		r.t.Error(err)
	}
	return string(b)
}

// is asserts how a mission stands.
func (r *rig) is(m centurion.Mission, status centurion.MissionStatus, reason string) {
	r.t.Helper()
	if m.Status != status || !strings.Contains(m.Reason, reason) {
		r.t.Fatalf("the mission is %s (%s); want %s (%s)", m.Status, m.Reason, status, reason)
	}
}

// has asserts that a text holds parts, in this order.
func has(t testing.TB, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, p := range parts {
		i := strings.Index(rest, p)
		if i < 0 {
			t.Errorf("%q is not where it should be in:\n%s", p, text)
			return
		}
		rest = rest[i+len(p):]
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// Answers.

func removeFile(t testing.TB, r *rig, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(r.dir, filepath.FromSlash(name))); err != nil {
		t.Error(err)
	}
	r.touched()
}

// repository is the one that the rig's host has opened.
func (r *rig) repository() *worktree.Repo {
	r.t.Helper()
	repo, err := r.host.Project.Repository(r.ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	return repo
}
