package frozen

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// handedOut is the desk of a mission whose item T1 was handed out with the check `old`, where the file says `new` now.
func handedOut(t *testing.T, ask string) (*Desk, *store.Store, *workspace.Workspace) {
	t.Helper()
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	if err := ws.WriteFile(ws.Todo().Path(), []byte("# Plan\n- [~] T1 One\n  - verify: `new`\n")); err != nil {
		t.Fatal(err)
	}
	st := storetest.Open(t)
	rec := centurion.Mission{ID: "msn_1", Session: "ses_0", Status: centurion.MissionRunning, OwnsTodo: true, Options: centurion.MissionOptions{Ask: ask}}
	err = st.Update(t.Context(), func(tx *store.Tx) error {
		for _, id := range []string{"tsk_1", "tsk_2"} {
			if err := tx.PutTask(&centurion.Task{ID: id, Mission: "msn_1", Item: "T1", Status: centurion.TaskRunning, Frozen: &centurion.Frozen{Verify: []string{"old"}}}); err != nil {
				return err
			}
		}
		return tx.PutMission(&rec)
	})
	if err != nil {
		t.Fatal(err)
	}
	m := state.New(t.Context(), nil, st, rec, nil)
	d := New(m, plan.New(m, nil, func(context.Context, *workspace.TodoFile, func()) error { return nil }, ws.Todo(), func([]byte) bool { return false }))
	if err := d.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d, st, ws
}

// counts is the check that counts for T1, and the one that the newest task of it keeps for the next host.
func counts(t *testing.T, d *Desk, st *store.Store) (now, kept string) {
	t.Helper()
	p, err := d.plan.Read()
	task, terr := st.Task(t.Context(), "tsk_2")
	older, oerr := st.Task(t.Context(), "tsk_1")
	if err != nil || terr != nil || oerr != nil || !slices.Equal(older.Frozen.Verify, []string{"old"}) {
		t.Fatal(err, terr, oerr, older.Frozen)
	}
	it, _ := p.Doc.Item("T1")
	return strings.Join(it.Verify, " "), strings.Join(task.Frozen.Verify, " ")
}

// A change in the file counts when a person has agreed to it, as it was shown to them: not if it has changed again meanwhile.
func TestTake(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{"new": "new", "another": "old"} {
		d, st, _ := handedOut(t, "ask")
		foreign := d.Foreign()
		if len(foreign) != 1 || foreign[0].Item != "T1" || !slices.Equal(foreign[0].From, []string{"old"}) || !slices.Equal(foreign[0].To, []string{"new"}) {
			t.Fatalf("%+v", foreign)
		}
		foreign[0].To = []string{to}
		if err := d.Take(t.Context(), foreign[0]); err != nil {
			t.Fatal(err)
		}
		if now, kept := counts(t, d, st); now != want || kept != want {
			t.Errorf("agreed to %s: %s counts, %s is kept; want %s", to, now, kept, want)
		}
	}
	d, st, _ := handedOut(t, "ask")
	if err := d.Take(t.Context(), centurion.Exchange{Item: "T9", To: nil}); err != nil {
		t.Error(err)
	}
	if now, kept := counts(t, d, st); now != "old" || kept != "old" {
		t.Errorf("an item that is gone: %s, %s", now, kept)
	}
	if _, known := d.frozen().All()["T9"]; known {
		t.Error("checks of an item that is gone count")
	}
}

// The mission's own check is kept with the newest task that has frozen checks, whatever its item is, and beside that item's.
func TestTakeOwn(t *testing.T) {
	t.Parallel()
	d, st, ws := handedOut(t, "ask")
	if err := ws.WriteFile(ws.Todo().Path(), []byte("# Plan\n- verify: `whole`\n- [~] T1 One\n  - verify: `new`\n")); err != nil {
		t.Fatal(err)
	}
	err := st.Update(t.Context(), func(tx *store.Tx) error {
		task, err := tx.Task("tsk_2")
		if err != nil {
			return err
		}
		task.Frozen = &centurion.Frozen{Verify: []string{"old"}, Own: []string{"part"}}
		return errors.Join(tx.PutTask(&task), tx.PutTask(&centurion.Task{ID: "tsk_3", Mission: "msn_1", Status: centurion.TaskRunning}))
	})
	if err := errors.Join(err, d.Load(t.Context())); err != nil {
		t.Fatal(err)
	}
	var own centurion.Exchange
	for _, x := range d.Foreign() {
		if x.Item == "" {
			own = x
		}
	}
	if !slices.Equal(own.From, []string{"part"}) || !slices.Equal(own.To, []string{"whole"}) {
		t.Fatalf("%+v", d.Foreign())
	}
	if err := d.Take(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	task, err := st.Task(t.Context(), "tsk_2")
	if err != nil || !slices.Equal(task.Frozen.Own, []string{"whole"}) || !slices.Equal(task.Frozen.Verify, []string{"old"}) {
		t.Errorf("%+v, %v", task.Frozen, err)
	}
	if err := d.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := d.Foreign(); len(left) != 1 || left[0].Item != "T1" {
		t.Errorf("after a restart: %+v", left)
	}
}

// A change that is not an agent's tool's or the host's is told at once and once, in the journal and to the Commander. It is put back where no
// person can be asked; if it is made again, it is told again.
func TestTell(t *testing.T) {
	t.Parallel()
	const word = "todo.md was changed by neither an agent's tool nor the host: the check of T1, `old`, became `new`. It was handed out, so the old one still counts."
	for ask, back := range map[string]bool{"ask": false, "deny": true, "allow": true} {
		d, st, ws := handedOut(t, ask)
		tell := func(want int) {
			t.Helper()
			if err := d.Tell(t.Context()); err != nil {
				t.Fatal(err)
			}
			told, err := st.PendingDeliveries(t.Context(), "ses_0")
			if err != nil || len(told) != want {
				t.Fatalf("%s: told %+v, %v", ask, told, err)
			}
			for _, x := range told {
				if x.Text != word+" If the old check is wrong, delegate to the reviewer, which may change it with update_todo." {
					t.Errorf("%s: told %q", ask, x.Text)
				}
			}
			events, err := st.Events(t.Context(), store.EventQuery{Mission: "msn_1", Types: []centurion.EventType{centurion.EventMissionUpdated}})
			if err != nil || len(events) != want {
				t.Fatalf("%s: %d in the journal, %v", ask, len(events), err)
			}
			for _, e := range events {
				if x, err := event.Decode[event.MissionData](e); err != nil || x.Note != word {
					t.Errorf("%s: in the journal: %q, %v", ask, x.Note, err)
				}
			}
		}
		tell(1)
		b, _, err := ws.ReadFile(ws.Todo().Path(), 0)
		if err != nil || strings.Contains(string(b), "`old`") != back {
			t.Errorf("%s: the file has\n%s\n%v", ask, b, err)
		}
		times := 1
		if back {
			times = 2
			if err := ws.WriteFile(ws.Todo().Path(), []byte("# Plan\n- [~] T1 One\n  - verify: `new`\n")); err != nil {
				t.Fatal(err)
			}
		}
		tell(times)
		tell(times)
		if now, kept := counts(t, d, st); now != "old" || kept != "old" {
			t.Errorf("%s: %s counts, %s is kept", ask, now, kept)
		}
	}
}

// Changes are described with whose each is and what it became.
func TestWord(t *testing.T) {
	t.Parallel()
	for want, x := range map[string][]centurion.Exchange{
		"the mission's own check, `a`, became `b`, `c`": {{From: []string{"a"}, To: []string{"b", "c"}}},
		"the check of T1, `a`, `b`, was removed; the check of T2, `a`, got another proof line": {
			{Item: "T1", From: []string{"a", "b"}}, {Item: "T2", From: []string{"a"}, To: []string{"a"}}},
	} {
		want = "todo.md was changed by neither an agent's tool nor the host: " + want + ". It was handed out, so the old one still counts."
		if got := Word(x); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Word(nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

// A task is handed out with the checks of its item, and always with those of the mission.
func TestFreeze(t *testing.T) {
	t.Parallel()
	d, _, ws := handedOut(t, "ask")
	if f := d.Freeze(plan.View{}, "T1"); f != nil {
		t.Errorf("without a plan: %+v", f)
	}
	if err := ws.WriteFile(ws.Todo().Path(), []byte("# Plan\n- verify: `whole`\n- [ ] T2 Two\n  - proof: regression\n  - verify: `part`\n")); err != nil {
		t.Fatal(err)
	}
	p, err := d.plan.Read()
	if err != nil {
		t.Fatal(err)
	}
	for item, want := range map[string]centurion.Frozen{"": {Own: []string{"whole"}}, "T2": {Own: []string{"whole"}, Verify: []string{"part"}, Proof: "regression"}} {
		if f := d.Freeze(p, item); f == nil || !reflect.DeepEqual(*f, want) {
			t.Errorf("%q: %+v, want %+v", item, f, want)
		}
	}
	d.Know(centurion.Task{ID: "tsk_3", Item: "T2", Frozen: &centurion.Frozen{Verify: []string{"part"}, Proof: "regression"}})
	if c := d.frozen().All()["T2"]; c.Proof != "regression" || !slices.Equal(c.Verify, []string{"part"}) {
		t.Errorf("known of T2: %+v", c)
	}
}

// What changes is kept with the newest task of its item that was handed out with checks, and with no other; also when the call is cancelled.
func TestKeep(t *testing.T) {
	t.Parallel()
	d, st, _ := handedOut(t, "ask")
	err := st.Update(t.Context(), func(tx *store.Tx) error {
		return errors.Join(tx.PutTask(&centurion.Task{ID: "tsk_3", Mission: "msn_1", Item: "T1"}), // of an older program
			tx.PutTask(&centurion.Task{ID: "tsk_4", Mission: "msn_1", Item: "T2", Frozen: &centurion.Frozen{Verify: []string{"two"}}}),
			tx.PutTask(&centurion.Task{ID: "tsk_0", Mission: "msn_2", Item: "T9", Frozen: &centurion.Frozen{Verify: []string{"other"}}}))
	})
	if err != nil {
		t.Fatal(err)
	}
	d.frozen().Set(map[string]todo.Checks{"T9": {Verify: []string{"x"}}, "T1": {Verify: []string{"y"}, Proof: "regression"}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.keep(ctx, []string{"T9", "T1"}); err != nil {
		t.Fatal(err)
	}
	kept := func() string {
		var out []string
		for _, id := range []string{"tsk_1", "tsk_2", "tsk_3", "tsk_4", "tsk_0"} {
			task, err := st.Task(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if task.Frozen != nil {
				out = append(out, task.Frozen.Verify...)
			}
			if f := task.Frozen; f != nil && (f.Proof == "regression") != (id == "tsk_2") {
				t.Errorf("%s has the proof %q", id, f.Proof)
			}
		}
		return strings.Join(out, " ")
	}
	if got := kept(); got != "old y two other" {
		t.Errorf("kept: %s", got)
	}
	err = st.Update(t.Context(), func(tx *store.Tx) error { // the oldest task is the only one of its item
		task, err := tx.Task("tsk_2")
		task.Item = "T5"
		return errors.Join(err, tx.PutTask(&task))
	})
	d.frozen().Set(map[string]todo.Checks{"T1": {Verify: []string{"z"}}})
	if err := errors.Join(err, d.keep(t.Context(), []string{"T1"})); err != nil {
		t.Fatal(err)
	}
	if got := kept(); got != "z y two other" {
		t.Errorf("kept of the oldest: %s", got)
	}
}
