package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"centurion"
	"centurion/event"
	"centurion/orchestrator"
	"centurion/orchestrator/roots"
	"centurion/server"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/takeover"
	"centurion/workspace"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait")) // for half a second, after a request was refused unread
}

const token = "let-me-in"

// project is a store with one mission, one task, their sessions, a message, a receipt and an ask in it.
type project struct {
	store   *store.Store
	hub     *event.Hub
	local   *server.Local
	mission centurion.Mission
	task    centurion.Task
	session centurion.Session
	ask     store.Ask
	message string
}

func newProject(t *testing.T) *project {
	t.Helper()
	s := storetest.Open(t)
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	now := centurion.Now()
	p := &project{store: s, hub: &event.Hub{}}
	p.mission = centurion.Mission{ID: centurion.NewID(centurion.PrefixMission), Goal: "a goal", Status: centurion.MissionPaused,
		Directory: ws.Dir(), Reason: "budget reached", Started: now, Updated: now, Todo: ".opencode/todo.md",
		Options: centurion.MissionOptions{Model: "custom/m", MaxCost: 2}, Usage: centurion.Usage{USD: 0.5, Tokens: centurion.Tokens{Input: 7}}}
	p.session = centurion.Session{ID: centurion.NewID(centurion.PrefixSession), Title: "t", Agent: "commander", ProjectID: "global",
		Directory: ws.Dir(), Metadata: centurion.SessionMeta{Mission: p.mission.ID, Address: "0/"}}
	p.mission.Session = p.session.ID
	p.task = centurion.Task{Outside: []string{"README.md"}, ID: centurion.NewID(centurion.PrefixTask), Mission: p.mission.ID, Parent: p.session.ID, Call: "c", Agent: "worker",
		Title: "work", Prompt: "do it", Status: centurion.TaskQueued, Attempt: 1, Session: p.session.ID, Created: now}
	p.ask = store.Ask{ID: centurion.NewID(centurion.PrefixQuestion), Type: store.AskQuestion, Mission: p.mission.ID, Text: "which?", Created: now}
	msg := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: p.session.ID, Role: centurion.RoleUser, Origin: centurion.OriginPerson}
	part := centurion.Part{ID: centurion.NewID(centurion.PrefixPart), MessageID: msg.ID, SessionID: p.session.ID, Type: centurion.PartText, Text: "hello"}
	p.message = msg.ID
	receipt := centurion.Receipt{ID: centurion.NewID(centurion.PrefixReceipt), Mission: p.mission.ID, Command: "true", Passed: true, Time: now}
	err = s.Update(t.Context(), func(tx *store.Tx) error {
		_, aerr := tx.Append(centurion.Event{Type: centurion.EventMissionStarted, Mission: p.mission.ID, Session: p.session.ID})
		_, berr := tx.Append(centurion.Event{Type: centurion.EventTaskQueued, Mission: p.mission.ID, Task: p.task.ID, Session: p.session.ID})
		return errors.Join(tx.PutMission(&p.mission), tx.PutSession(&p.session), tx.PutTask(&p.task), tx.PutAsk(&p.ask), tx.PutMessage(&msg),
			tx.PutPart(&part), tx.PutReceipt(&receipt), aerr, berr)
	})
	if err != nil {
		t.Fatal(err)
	}
	host := orchestrator.New(orchestrator.Config{Store: s, Workspace: ws})
	p.local = &server.Local{Store: s, Hub: p.hub, Host: host, Person: takeover.New(host, s, ws)}
	return p
}

// listen serves an API on a real unix socket and returns its path and what ends it.
func listen(t testing.TB, api server.API) (path string, end func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") // short: a socket's path has a limit that t.TempDir can pass
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path = filepath.Join(dir, "sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: server.Handler(api, token, server.Info{PID: 42, Version: "v", Directory: "/d"}, nil)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	end = func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		<-done
	}
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return path, end
}

func connect(t *testing.T, api server.API) *server.Client {
	t.Helper()
	path, _ := listen(t, api)
	c := server.NewClient(path, token)
	t.Cleanup(c.Close)
	return c
}

// What comes through the socket is what the hosting process sees itself, for every route.
func TestRoutes(t *testing.T) {
	p := newProject(t)
	c := connect(t, p.local)
	ctx := t.Context()
	id, short := p.mission.ID, p.mission.ID[:len(p.mission.ID)-4]
	taskID, taskShort := p.task.ID, p.task.ID[:len(p.task.ID)-4]
	child := p.session
	child.ID, child.ParentID = centurion.NewID(centurion.PrefixSession), p.session.ID
	if err := p.store.Update(ctx, func(tx *store.Tx) error { return tx.PutSession(&child) }); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(api server.API) (any, error){
		"missions":        func(a server.API) (any, error) { return a.Missions(ctx) },
		"mission":         func(a server.API) (any, error) { return a.Mission(ctx, id) },
		"mission, prefix": func(a server.API) (any, error) { return a.Mission(ctx, short) },
		"mission, latest": func(a server.API) (any, error) { return a.Mission(ctx, "") },
		"tasks":           func(a server.API) (any, error) { return a.Tasks(ctx, id) },
		"tasks, latest":   func(a server.API) (any, error) { return a.Tasks(ctx, "") },
		"task":            func(a server.API) (any, error) { return a.Task(ctx, taskID) },
		"task, prefix":    func(a server.API) (any, error) { return a.Task(ctx, taskShort) },
		"sessions":        func(a server.API) (any, error) { return a.Sessions(ctx, id) },
		"session":         func(a server.API) (any, error) { return a.Session(ctx, p.session.ID) },
		"roots": func(a server.API) (any, error) {
			return a.Roots(ctx, roots.Query{Search: "T", Limit: 3, Before: 1 << 60})
		},
		"roots and tasks": func(a server.API) (any, error) { return a.Roots(ctx, roots.Query{Tasks: true}) },
		"no roots":        func(a server.API) (any, error) { return a.Roots(ctx, roots.Query{Since: 1 << 60}) },
		"messages":        func(a server.API) (any, error) { return a.Messages(ctx, p.session.ID) },
		"message":         func(a server.API) (any, error) { return a.Message(ctx, p.session.ID, p.message) },
		"message, part":   func(a server.API) (any, error) { return a.Message(ctx, p.session.ID, p.message, "prt_none") },
		"receipts":        func(a server.API) (any, error) { return a.Receipts(ctx, id) },
		"seq":             func(a server.API) (any, error) { return a.LastSeq(ctx) },
		"asks":            func(a server.API) (any, error) { return a.Asks(ctx) },
		"events":          func(a server.API) (any, error) { return collect(a.Events(ctx, server.EventQuery{})) },
		"events, task":    func(a server.API) (any, error) { return collect(a.Events(ctx, server.EventQuery{Task: taskID})) },
		"events, after":   func(a server.API) (any, error) { return collect(a.Events(ctx, server.EventQuery{After: 1})) },
		"events, mission": func(a server.API) (any, error) { return collect(a.Events(ctx, server.EventQuery{Mission: id})) },
		"events, session": func(a server.API) (any, error) {
			return collect(a.Events(ctx, server.EventQuery{Session: p.session.ID}))
		},
		"events, of other": func(a server.API) (any, error) {
			return collect(a.Events(ctx, server.EventQuery{Mission: "msn_other"}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := call(p.local)
			if err != nil {
				t.Fatal(err)
			}
			got, err := call(c)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := asJSON(t, want), asJSON(t, got); a != b {
				t.Errorf("through the socket it is another one:\n%s", cmp.Diff(a, b))
			}
		})
	}
	info, err := c.Info(ctx)
	if want := (server.Info{PID: 42, Version: "v", Directory: "/d"}); err != nil || info != want {
		t.Errorf("info is %+v, %v", info, err)
	}
}

// What the routes are compared by says what it should: the figures of the one mission, its task, its message.
func TestShapes(t *testing.T) {
	p := newProject(t)
	m, err := p.local.Mission(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if m.ID != p.mission.ID || m.Tasks["queued"] != 1 || m.Tasks["running"] != 0 || m.USD != 0.5 || m.MaxCost != 2 || m.Reason != "budget reached" {
		t.Errorf("the mission is told as %+v", m)
	}
	if len(m.Tasks) != len(centurion.TaskStatuses) {
		t.Errorf("not every state of tasks is counted: %v", m.Tasks)
	}
	msgs, err := p.local.Messages(t.Context(), p.session.ID)
	if err != nil || len(msgs) != 1 || len(msgs[0].Parts) != 1 || msgs[0].Parts[0].Text != "hello" || msgs[0].Origin != centurion.OriginPerson {
		t.Errorf("the messages are told as %+v, %v", msgs, err)
	}
	if err := p.store.Update(t.Context(), func(tx *store.Tx) error {
		m := msgs[0].Info
		m.Wrote, m.Heard = []centurion.Landed{{Commit: "c"}}, true
		return tx.PutMessage(&m)
	}); err != nil {
		t.Fatal(err)
	}
	if msgs, err := p.local.Messages(t.Context(), p.session.ID); err != nil || msgs[0].Info.Wrote != nil || msgs[0].Info.Heard {
		t.Errorf("what the host keeps of a message is told: %+v, %v", msgs[0].Info, err)
	}
	if n := m.Noun(); n.ID != m.ID || n.Usage.USD != 0.5 || n.Options.MaxCost != 2 || n.Todo != ".opencode/todo.md" {
		t.Errorf("the noun is %+v", n)
	}
	task, err := p.local.Task(t.Context(), p.task.ID)
	if n := task.Noun(); err != nil || n.ID != p.task.ID || n.Prompt != "do it" || n.Session != p.session.ID || !slices.Equal(n.Outside, p.task.Outside) {
		t.Errorf("the task's noun is %+v, %v", n, err)
	}
}

// Contract «JSON lines»: an array is an array, also where nothing is in it.
func TestEmptyLists(t *testing.T) {
	p := newProject(t)
	other := centurion.Mission{ID: centurion.NewID(centurion.PrefixMission), Status: centurion.MissionPlanning, Started: centurion.Now()}
	if err := p.store.Update(t.Context(), func(tx *store.Tx) error {
		p.ask.Answered = centurion.Now()
		return errors.Join(tx.PutMission(&other), tx.PutAsk(&p.ask))
	}); err != nil {
		t.Fatal(err)
	}
	c := connect(t, p.local)
	ctx := t.Context()
	for _, a := range []server.API{p.local, c} {
		tasks, err1 := a.Tasks(ctx, other.ID)
		sessions, err2 := a.Sessions(ctx, other.ID)
		receipts, err3 := a.Receipts(ctx, other.ID)
		asks, err4 := a.Asks(ctx)
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			t.Fatal(err)
		}
		for _, v := range []any{tasks, sessions, receipts, asks} {
			if s := asJSON(t, v); s != "[]" {
				t.Errorf("%T: an empty %T is %s", a, v, s)
			}
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func collect(events iter.Seq2[centurion.Event, error]) ([]centurion.Event, error) {
	all := []centurion.Event{}
	for e, err := range events {
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
	return all, nil
}

// All facts are told once and in their order, however many pages they take.
func TestEventsOfManyPages(t *testing.T) {
	p := newProject(t)
	const more = 1200
	if err := p.store.Update(t.Context(), func(tx *store.Tx) error {
		for range more {
			if _, err := tx.Append(centurion.Event{Type: centurion.EventMissionUpdated, Mission: p.mission.ID}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	last, n := int64(0), 0
	for e, err := range p.local.Events(t.Context(), server.EventQuery{Mission: p.mission.ID}) {
		if n++; err != nil || e.Seq <= last || n > more+2 {
			t.Fatalf("fact %d has number %d after %d, %v", n, e.Seq, last, err)
		}
		last = e.Seq
	}
	if n != more+2 {
		t.Errorf("%d facts are told of %d", n, more+2)
	}
}

// recording is an API that keeps what it is asked to do.
type recording struct {
	server.API
	calls []string
}

func (r *recording) Answer(_ context.Context, ask, answer string) error {
	r.calls = append(r.calls, "answer "+ask+" "+answer)
	return nil
}

func (r *recording) Cancel(_ context.Context, id, reason string) error {
	r.calls = append(r.calls, "cancel "+id+" "+reason)
	return nil
}

func TestActions(t *testing.T) {
	r := &recording{}
	c := connect(t, r)
	odd := "an answer with / ? & \n «ü» \x00"
	if err := errors.Join(c.Answer(t.Context(), "que_a/b c", odd), c.Cancel(t.Context(), "msn_x", odd)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"answer que_a/b c " + odd, "cancel msn_x " + odd}, r.calls); d != "" {
		t.Error(d)
	}
}

// Cancel takes a unique prefix, and what is recorded can be cancelled while nothing runs.
func TestCancelRecorded(t *testing.T) {
	p := newProject(t)
	c := connect(t, p.local)
	if err := c.Cancel(t.Context(), p.task.ID[:len(p.task.ID)-3], "why not"); err != nil {
		t.Fatal(err)
	}
	task, err := c.Task(t.Context(), p.task.ID)
	if err != nil || task.Status != centurion.TaskCancelled || task.Error == nil || task.Error.Message != "why not" {
		t.Errorf("the task is %+v, %v", task, err)
	}
	if err := c.Cancel(t.Context(), p.mission.ID, ""); err != nil {
		t.Fatal(err)
	}
	if m, err := c.Mission(t.Context(), ""); err != nil || m.Status != centurion.MissionCancelled {
		t.Errorf("the mission is %+v, %v", m, err)
	}
	nobody := &server.Local{Store: p.store}
	if err := nobody.Cancel(t.Context(), p.mission.ID, ""); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("without a host: %v", err)
	}
	if err := nobody.Answer(t.Context(), p.ask.ID, "x"); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("without a host: %v", err)
	}
}

// An ask is found by a prefix as well; its mission does not run here, which is told.
func TestAnswerPrefix(t *testing.T) {
	p := newProject(t)
	if err := p.local.Answer(t.Context(), p.ask.ID[:len(p.ask.ID)-3], "x"); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("an ask's prefix: %v (%s)", err, centurion.KindOf(err))
	}
	other := p.ask
	other.ID = p.ask.ID[:len(p.ask.ID)-1] + "_"
	if err := p.store.Update(t.Context(), func(tx *store.Tx) error { return tx.PutAsk(&other) }); err != nil {
		t.Fatal(err)
	}
	if err := p.local.Answer(t.Context(), p.ask.ID[:len(p.ask.ID)-1], "x"); centurion.KindOf(err) != centurion.KindUsage {
		t.Errorf("a prefix of two asks: %v", err)
	}
	if err := p.local.Answer(t.Context(), "", "x"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("no id: %v", err)
	}
}

// Facts come as they are recorded, in order and once, and deltas in between.
func TestFollow(t *testing.T) {
	p := newProject(t)
	c := connect(t, p.local)
	ctx, stop := context.WithTimeout(t.Context(), 60*time.Second) // what does not come fails the test and does not hang it
	defer stop()
	next, end := iter.Pull2(c.Events(ctx, server.EventQuery{Mission: p.mission.ID, Follow: true, Deltas: true}))
	defer end()
	expect := func(typ centurion.EventType, seq int64) centurion.Event {
		t.Helper()
		e, err, ok := next()
		if !ok || err != nil || e.Type != typ || e.Seq != seq {
			t.Fatalf("got %+v, %v, %t; wanted %s with seq %d", e, err, ok, typ, seq)
		}
		return e
	}
	expect(centurion.EventMissionStarted, 1)
	expect(centurion.EventTaskQueued, 2)
	delta := centurion.Event{Type: centurion.EventDelta, After: 2, Time: centurion.Now(), Mission: p.mission.ID, Session: p.session.ID,
		Data: event.Data(event.DeltaData{Part: "prt_1", Field: "text", Delta: "half a w"})}
	p.hub.Publish(delta)
	if e := expect(centurion.EventDelta, 0); e.After != 2 || !bytes.Contains(e.Data, []byte("half a w")) {
		t.Errorf("the delta is %+v", e)
	}
	if err := p.store.Update(t.Context(), func(tx *store.Tx) error {
		_, err1 := tx.Append(centurion.Event{Type: centurion.EventTaskStarted, Mission: "msn_other"})
		_, err2 := tx.Append(centurion.Event{Type: centurion.EventTaskStarted, Mission: p.mission.ID})
		return errors.Join(err1, err2)
	}); err != nil {
		t.Fatal(err)
	}
	expect(centurion.EventTaskStarted, 4)
	stop()
	if e, err, ok := next(); ok {
		t.Errorf("after the end of the context came %+v, %v", e, err)
	}
}

// A host that goes away is told as such, whatever is being asked of it, and soon.
func TestHostGone(t *testing.T) {
	p := newProject(t)
	path, end := listen(t, p.local)
	c := server.NewClient(path, token)
	defer c.Close()
	next, stop := iter.Pull2(c.Events(t.Context(), server.EventQuery{Follow: true}))
	defer stop()
	for range 2 {
		if _, err, ok := next(); !ok || err != nil {
			t.Fatal(err)
		}
	}
	end()
	got := make(chan error, 1)
	go func() { _, err, _ := next(); got <- err }()
	select {
	case err := <-got:
		if centurion.KindOf(err) != centurion.KindNetwork {
			t.Errorf("what is followed ends with %v (%s)", err, centurion.KindOf(err))
		}
	case <-time.After(60 * time.Second):
		t.Fatal("nobody told that the host has gone")
	}
	for name, err := range map[string]error{
		"read": second(c.Missions(t.Context())), "info": second(c.Info(t.Context())), "act": c.Cancel(t.Context(), "msn_x", ""),
		"follow": second(collect(c.Events(t.Context(), server.EventQuery{Follow: true}))),
	} {
		if centurion.KindOf(err) != centurion.KindNetwork || centurion.HintOf(err) == "" {
			t.Errorf("%s: %v (%s)", name, err, centurion.KindOf(err))
		}
	}
	none := server.NewClient(filepath.Join(t.TempDir(), "none"), token)
	defer none.Close()
	if _, err := none.Info(t.Context()); centurion.KindOf(err) != centurion.KindNetwork {
		t.Errorf("no socket at all: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// broken is an API whose journal fails after the first event.
type broken struct{ server.API }

func (broken) Events(context.Context, server.EventQuery) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		if yield(centurion.Event{Seq: 1, Type: centurion.EventTaskQueued}, nil) {
			yield(centurion.Event{}, &centurion.Error{Kind: centurion.KindState, Msg: "the disk is gone", Hint: "look at it"})
		}
	}
}

// A failure in the middle of a stream is told in the stream.
func TestStreamError(t *testing.T) {
	c := connect(t, broken{})
	all, err := collect(c.Events(t.Context(), server.EventQuery{}))
	if len(all) != 1 || centurion.KindOf(err) != centurion.KindState || centurion.HintOf(err) != "look at it" || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("got %d events and %v", len(all), err)
	}
}
