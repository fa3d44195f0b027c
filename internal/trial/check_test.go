package trial

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/store"
)

// scene is a state file with a mission that is complete: one task of one call, everything told.
type scene struct {
	t *T
	p *project
	s *store.Store
}

func newScene(t *testing.T) *scene {
	t.Helper()
	dir := t.TempDir()
	tt := &T{ID: "X", Dir: dir, bench: &bench{bins: map[string]string{"": "unused"}}, ctx: t.Context()}
	p := tt.Project(map[string]string{".opencode/todo.md": "# Plan\n- [x] T1 Do it\n"})
	state := filepath.Join(p.State, "projects", "p")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), filepath.Join(state, "centurion.db"))
	if err != nil {
		t.Fatal(err)
	}
	sc := &scene{t: tt, p: p, s: s}
	sc.update(t, func(tx *store.Tx) error {
		now := centurion.Now()
		m := centurion.Mission{ID: "msn_1", Goal: "g", Status: centurion.MissionCompleted, Todo: ".opencode/todo.md", HadItems: true, Started: now, Updated: now}
		if err := tx.PutMission(&m); err != nil {
			return err
		}
		if err := tx.PutSession(&centurion.Session{ID: "ses_1", Metadata: centurion.SessionMeta{Mission: m.ID, Address: "0/"}}); err != nil {
			return err
		}
		if err := tx.PutMessage(&centurion.Message{ID: "msg_1", SessionID: "ses_1", Role: centurion.RoleAssistant, Time: centurion.MessageTime{Created: 1}}); err != nil {
			return err
		}
		if err := tx.PutPart(call("prt_1", "call_1", centurion.ToolCompleted)); err != nil {
			return err
		}
		if err := tx.PutTask(&centurion.Task{ID: "tsk_1", Mission: m.ID, Parent: "ses_1", Call: "call_1", Item: "T1", Status: centurion.TaskCompleted}); err != nil {
			return err
		}
		if err := tx.PutDelivery(&store.Delivery{ID: "dlv_1", Mission: m.ID, Session: "ses_1", Task: "tsk_1", Taken: now}); err != nil {
			return err
		}
		for _, e := range []centurion.Event{
			{Type: centurion.EventMissionStarted}, {Type: centurion.EventToolStarted, Session: "ses_1", Data: json.RawMessage(`{"call":"call_1"}`)},
			{Type: centurion.EventToolCompleted, Session: "ses_1", Data: json.RawMessage(`{"call":"call_1"}`)},
			{Type: centurion.EventTaskCompleted, Task: "tsk_1"}, {Type: centurion.EventMissionCompleted},
		} {
			e.Mission = m.ID
			if _, err := tx.Append(e); err != nil {
				return err
			}
		}
		return nil
	})
	return sc
}

func call(id, call string, status centurion.ToolStatus) *centurion.Part {
	return &centurion.Part{ID: id, SessionID: "ses_1", MessageID: "msg_1", Type: centurion.PartTool, CallID: call, Tool: "bash",
		State: &centurion.ToolState{Status: status, Input: json.RawMessage("{}")}}
}

func (sc *scene) update(t *testing.T, f func(tx *store.Tx) error) {
	t.Helper()
	if err := sc.s.Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

func (sc *scene) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(sc.p.Dir, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TRIAL invariants I1 to I4: what is well passes the check, and each kind of damage is found and named.
func TestCheck(t *testing.T) {
	add := func(e centurion.Event) func(*testing.T, *scene) {
		return func(t *testing.T, sc *scene) {
			sc.update(t, func(tx *store.Tx) error { _, err := tx.Append(e); return err })
		}
	}
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, sc *scene) // before the check
		told   func([]centurion.Event) []centurion.Event
		want   string // what the failure begins with; empty: none
		counts damage
	}{
		{name: "nothing is wrong"},
		{name: "a delta was told", told: func(e []centurion.Event) []centurion.Event {
			return append(e, centurion.Event{Type: centurion.EventDelta, After: 3})
		}},
		{name: "told and not there", want: "I1 told as 6", counts: damage{lost: 1}, told: func(e []centurion.Event) []centurion.Event {
			return append(e, centurion.Event{Seq: 6, Type: centurion.EventTodoUpdated, Data: json.RawMessage("{}")})
		}},
		{name: "told otherwise", want: "I1 told as 2", counts: damage{lost: 1}, told: func(e []centurion.Event) []centurion.Event {
			e[1].Data = json.RawMessage(`{"call":"call_2"}`)
			return e
		}},
		{name: "a task ends twice", want: "I2 task.completed", counts: damage{twice: 1}, damage: add(centurion.Event{Type: centurion.EventTaskCompleted, Task: "tsk_1"})},
		{name: "a call starts twice", want: "I2 tool.started", counts: damage{twice: 1},
			damage: add(centurion.Event{Type: centurion.EventToolStarted, Session: "ses_1", Data: json.RawMessage(`{"call":"call_1"}`)})},
		{name: "a call makes two tasks", want: "I2 the call", counts: damage{twice: 1}, damage: func(t *testing.T, sc *scene) {
			sc.update(t, func(tx *store.Tx) error {
				return tx.PutTask(&centurion.Task{ID: "tsk_2", Mission: "msn_1", Parent: "ses_1", Call: "call_1", Status: centurion.TaskFailed})
			})
		}},
		{name: "an item is done twice", want: "I2 the item T1", counts: damage{twice: 1}, damage: func(t *testing.T, sc *scene) {
			sc.update(t, func(tx *store.Tx) error {
				return tx.PutTask(&centurion.Task{ID: "tsk_2", Mission: "msn_1", Parent: "ses_1", Call: "call_2", Item: "T1", Status: centurion.TaskCompleted})
			})
		}},
		{name: "a result is left behind", want: "I1 the mission is complete", damage: func(t *testing.T, sc *scene) {
			sc.update(t, func(tx *store.Tx) error {
				return tx.PutDelivery(&store.Delivery{ID: "dlv_2", Mission: "msn_1", Session: "ses_1", Task: "tsk_1"})
			})
		}},
		{name: "a call has no answer", want: "I3 the mission is complete", damage: func(t *testing.T, sc *scene) {
			sc.update(t, func(tx *store.Tx) error { return tx.PutPart(call("prt_2", "call_2", centurion.ToolRunning)) })
		}},
		{name: "a call stands twice", want: "I3 the call", damage: func(t *testing.T, sc *scene) {
			sc.update(t, func(tx *store.Tx) error { return tx.PutPart(call("prt_2", "call_1", centurion.ToolCompleted)) })
		}},
		{name: "a message from the past", want: "I3 the messages", damage: func(t *testing.T, sc *scene) {
			sc.update(t, func(tx *store.Tx) error {
				return tx.PutMessage(&centurion.Message{ID: "msg_2", SessionID: "ses_1", Role: centurion.RoleUser})
			})
		}},
		{name: "the plan is open", want: "I4 the mission is complete", damage: func(t *testing.T, sc *scene) {
			sc.write(t, ".opencode/todo.md", "# Plan\n- [ ] T1 Do it\n")
		}},
		{name: "the plan is torn", want: "I4 .opencode/todo.md", damage: func(t *testing.T, sc *scene) {
			sc.write(t, ".opencode/todo.md", "# Plan\n- [x] T1 Do it\n- [x] T1 Do it\n")
		}},
		{name: "the plan is gone", want: "I4 .opencode/todo.md", damage: func(t *testing.T, sc *scene) {
			if err := os.Remove(filepath.Join(sc.p.Dir, ".opencode", "todo.md")); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sc := newScene(t)
			told, err := allEvents(t.Context(), sc.s)
			if err != nil {
				t.Fatal(err)
			}
			if c.damage != nil {
				c.damage(t, sc)
			}
			if c.told != nil {
				told = c.told(slices.Clone(told))
			}
			if err := sc.s.Close(); err != nil {
				t.Fatal(err)
			}
			got := check(sc.t, sc.p, told)
			if got != c.counts {
				t.Errorf("it counts %+v, want %+v", got, c.counts)
			}
			switch {
			case c.want == "" && sc.t.Failed():
				t.Errorf("it finds %q", sc.t.failures)
			case c.want != "" && (len(sc.t.failures) != 1 || !strings.HasPrefix(sc.t.failures[0], c.want)):
				t.Errorf("it finds %q, want one that begins with %q", sc.t.failures, c.want)
			}
		})
	}
}

// A trial that cannot be tried has failed, and one that gives up does not take the others with it.
func TestTrialEnds(t *testing.T) {
	b := &bench{dir: t.TempDir(), bins: map[string]string{}}
	for name, c := range map[string]struct {
		run  func(context.Context, *T)
		want string
	}{
		"well":         {func(_ context.Context, t *T) { t.Figure("n", 1) }, "ok"},
		"failed":       {func(_ context.Context, t *T) { t.Failf("wrong") }, "FAILED"},
		"gave up":      {func(_ context.Context, t *T) { t.Fatalf("wrong") }, "FAILED"},
		"crashed":      {func(context.Context, *T) { panic("wrong") }, "FAILED"},
		"not possible": {func(_ context.Context, t *T) { t.NotPossible("no mount") }, notPossible},
	} {
		cleaned := false
		got := b.one(t.Context(), trial{id: "X1", run: func(ctx context.Context, t *T) {
			t.Cleanup(func() { cleaned = true })
			c.run(ctx, t)
		}}, func() {})
		if got.word() != c.want || got.OK != (c.want == "ok") || !cleaned {
			t.Errorf("%s: %s (%q), cleaned up %t", name, got.word(), got.Failures, cleaned)
		}
	}
}

// I6: a last line is told only with its end, and the exit code has to agree with it.
func TestParseEvents(t *testing.T) {
	all, err := parseEvents("{\"seq\":1,\"type\":\"a\"}\n{\"seq\":2,\"ty")
	if err != nil || len(all) != 1 || all[0].Seq != 1 {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := parseEvents("oops\n"); err == nil {
		t.Error("what is no JSON was taken")
	}
}
