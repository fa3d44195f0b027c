package revert

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/notes"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/workspace"
)

const reviewedPlan = "# Plan\n- [x] T1 One @worker\n- [x] T2 Two @worker\n- [x] T3 Look at both @reviewer\n  - after: T1, T2\n"

// done is a desk, its store and the plan's text in a mission whose plan was carried out and reviewed.
func done(t *testing.T, m centurion.Mission) (d *Desk, st *store.Store, marks func() string) {
	t.Helper()
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	if st, err = store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if err := ws.WriteFile(ws.Todo().Path(), []byte(reviewedPlan)); err != nil {
		t.Fatal(err)
	}
	m.ID, m.Session, m.Todo, m.HadItems = "msn_1", "ses_0", ws.Todo().Path(), true
	err = st.Update(t.Context(), func(tx *store.Tx) error {
		for _, task := range []centurion.Task{{ID: "tsk_1", Item: "T1", Agent: "worker"}, {ID: "tsk_2", Item: "T2", Agent: "worker"}, {ID: "tsk_3", Item: "T3", Agent: agents.Reviewer, Result: "PASS"}} {
			task.Mission, task.Status, task.Ended = m.ID, centurion.TaskCompleted, centurion.Now()
			if err := tx.PutTask(&task); err != nil {
				return err
			}
		}
		return tx.PutMission(&m)
	})
	if err != nil {
		t.Fatal(err)
	}
	return New(st, ws), st, func() string {
		doc, _, err := ws.Todo().Load()
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, it := range doc.Items() {
			out = append(out, it.ID+" "+doc.Status(it.ID).String())
		}
		return strings.Join(out, ", ")
	}
}

// undo records that the work of an item was undone, and settles it.
func undo(t *testing.T, d *Desk, st *store.Store, item string) {
	t.Helper()
	m, err := st.Mission(t.Context(), "msn_1")
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Reversal(t.Context(), m, centurion.Reverted{What: item, Task: "tsk_" + item[1:]}, []string{item})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Update(t.Context(), r.Record); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Settle(t.Context(), "msn_1"); err != nil {
		t.Fatal(err)
	}
}

// redo records that it is back, and settles that.
func redo(t *testing.T, d *Desk, st *store.Store, item string) {
	t.Helper()
	err := st.Update(t.Context(), func(tx *store.Tx) error {
		return Restore(tx, "msn_1", item, []string{item}, func(r centurion.Reverted) bool { return r.What == item })
	})
	if err == nil {
		_, _, err = d.Settle(t.Context(), "msn_1")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An undo opens its item and the reviews that rest on it, voids their verdicts, tells the mission's agent and pauses a complete mission. When the
// last undo is redone, everything stands as before, and of the undo nothing is told any more; before that, what another undo keeps open stays so.
func TestUndoAndRedo(t *testing.T) {
	t.Parallel()
	d, st, marks := done(t, centurion.Mission{Status: centurion.MissionCompleted, Reason: "it is done", Summary: "All is well.", Evidence: centurion.EvidenceReviewed})
	for _, step := range []struct {
		do      func(*testing.T, *Desk, *store.Store, string)
		item    string
		marks   string
		status  centurion.MissionStatus
		reason  string
		summary string
		void    bool // the review
		told    int  // pending notices
	}{
		{undo, "T1", "T1 open, T2 done, T3 open", centurion.MissionPaused, "T1 was reverted", "", true, 1},
		{undo, "T2", "T1 open, T2 open, T3 open", centurion.MissionPaused, "T1, T2 were reverted", "", true, 2},
		{redo, "T2", "T1 open, T2 done, T3 open", centurion.MissionPaused, "T1 was reverted", "", true, 1},
		{redo, "T1", "T1 done, T2 done, T3 done", centurion.MissionCompleted, "it is done", "All is well.", false, 0},
	} {
		step.do(t, d, st, step.item)
		m, err := st.Mission(t.Context(), "msn_1")
		review, rerr := st.Task(t.Context(), "tsk_3")
		told, derr := st.PendingDeliveries(t.Context(), "ses_0")
		if err != nil || rerr != nil || derr != nil {
			t.Fatal(err, rerr, derr)
		}
		if got := marks(); got != step.marks {
			t.Errorf("%s: the plan has %s, want %s", step.reason, got, step.marks)
		}
		if m.Status != step.status || m.Reason != step.reason || m.Summary != step.summary || (m.Was != nil) != (step.status == centurion.MissionPaused) {
			t.Errorf("the mission is %s, %q, %q; was %v; want %s, %q", m.Status, m.Reason, m.Summary, m.Was, step.status, step.reason)
		}
		if review.Undone.IsZero() == step.void || review.Status != centurion.TaskCompleted || len(told) != step.told {
			t.Errorf("%s: the review is undone at %v, %d notices wait", step.reason, review.Undone, len(told))
		}
		for _, r := range m.Reverted {
			if !r.Marked || r.Back {
				t.Errorf("%s: not settled: %+v", step.reason, r)
			}
		}
	}
}

// What a person has marked otherwise meanwhile, or has taken out of the plan, stays so; who settles twice changes nothing.
func TestSettleLeavesThePersonsMarks(t *testing.T) {
	t.Parallel()
	d, st, marks := done(t, centurion.Mission{Status: centurion.MissionPaused, Reason: "by a person"})
	err := st.Update(t.Context(), func(tx *store.Tx) error {
		m, err := tx.Mission("msn_1")
		if err != nil {
			return err
		}
		m.Reverted = []centurion.Reverted{{What: "T1", Items: []string{"T1", "T1", "T9"}}, {What: "T2", Items: []string{"T2"}, Back: true, Marked: true}}
		return tx.PutMission(&m)
	})
	if err != nil {
		t.Fatal(err)
	}
	opened, closed, err := d.Settle(t.Context(), "msn_1")
	if err != nil || !slices.Equal(opened, []string{"T1"}) || len(closed) > 0 || marks() != "T1 open, T2 done, T3 done" {
		t.Errorf("opened %q, closed %q, %v: %s", opened, closed, err, marks())
	}
	m, err := st.Mission(t.Context(), "msn_1")
	if err != nil || m.Status != centurion.MissionPaused || m.Reason != "by a person" || len(m.Reverted) != 1 || m.Reverted[0].What != "T1" {
		t.Errorf("%+v, %v", m, err)
	}
	if opened, closed, err := d.Settle(t.Context(), "msn_1"); err != nil || len(opened)+len(closed) > 0 {
		t.Errorf("again: opened %q, closed %q, %v", opened, closed, err)
	}
}

// Work that is brought back after its mission was resumed is told with its items; the undo itself is no longer known then.
func TestRestoreAfterAResume(t *testing.T) {
	t.Parallel()
	d, st, _ := done(t, centurion.Mission{Status: centurion.MissionPaused})
	redo(t, d, st, "T1")
	told, err := st.PendingDeliveries(t.Context(), "ses_0")
	if err != nil || len(told) != 1 || !strings.Contains(told[0].Text, "The user has brought back T1") || !strings.Contains(told[0].Text, "Done again in the plan: T1.") {
		t.Errorf("%+v, %v", told, err)
	}
}

// The host's summary of an end that a rewind has undone is marked; any other pause leaves it as it is, and so does a rewind elsewhere.
func TestMarkRewoundSummary(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  centurion.MissionStatus
		reason  string
		session string
		summary string
		marked  bool
	}{
		"rewound":            {centurion.MissionPaused, state.Rewound, "ses_0", "msn_1", true},
		"paused":             {centurion.MissionPaused, "a person", "ses_0", "msn_1", false},
		"at work":            {centurion.MissionRunning, state.Rewound, "ses_0", "msn_1", false},
		"a worker's":         {centurion.MissionPaused, state.Rewound, "ses_1", "msn_1", false},
		"of another mission": {centurion.MissionPaused, state.Rewound, "ses_0", "msn_2", false},
	} {
		d, st, _ := done(t, centurion.Mission{Status: c.status, Reason: c.reason})
		err := st.Update(t.Context(), func(tx *store.Tx) error {
			return tx.PutSession(&centurion.Session{ID: c.session, Agent: "commander", Metadata: centurion.SessionMeta{Mission: "msn_1", Address: "0/"}})
		})
		text := notes.HostSummary + c.summary + ", 2026-01-02 -->\n# x\n\nx\n"
		if err := errors.Join(err, d.ws.WriteFile(workspace.SummaryPath, []byte(text)), d.MarkRewound(t.Context(), c.session)); err != nil {
			t.Fatal(err)
		}
		got, _, err := d.ws.ReadFile(workspace.SummaryPath, 0)
		if heads, rest := workspace.CutReverted(string(got)); err != nil || rest != text || (heads != "") != c.marked {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
