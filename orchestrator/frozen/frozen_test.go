package frozen

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/workspace"
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
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
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

// A change that is not an agent's tool's or the host's is told once. It is put back where no person can be asked.
func TestTell(t *testing.T) {
	t.Parallel()
	for ask, back := range map[string]bool{"ask": false, "deny": true, "allow": true} {
		d, st, ws := handedOut(t, ask)
		for range 2 {
			if err := d.Tell(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		told, err := st.PendingDeliveries(t.Context(), "ses_0")
		b, _, rerr := ws.ReadFile(ws.Todo().Path(), 0)
		if err != nil || rerr != nil || len(told) != 1 || !strings.Contains(told[0].Text, "the check of T1, `old`, became `new`") {
			t.Errorf("%s: told %+v, %v, %v", ask, told, err, rerr)
		}
		if strings.Contains(string(b), "`old`") != back {
			t.Errorf("%s: the file has\n%s", ask, b)
		}
		if now, kept := counts(t, d, st); now != "old" || kept != "old" {
			t.Errorf("%s: %s counts, %s is kept", ask, now, kept)
		}
	}
}

// A change is described with whose it is and what it became.
func TestWord(t *testing.T) {
	t.Parallel()
	for want, x := range map[string]centurion.Exchange{
		"the mission's own check, `a`, became `b`, `c`.": {From: []string{"a"}, To: []string{"b", "c"}},
		"the check of T1, `a`, `b`, was removed.":        {Item: "T1", From: []string{"a", "b"}},
		"the check of T1, `a`, got another proof line.":  {Item: "T1", From: []string{"a"}, To: []string{"a"}},
	} {
		if got := Word([]centurion.Exchange{x}); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Word(nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}
