package revert

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/notes"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/store/storetest"
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
	st = storetest.Open(t)
	if err := ws.WriteFile(ws.Todo().Path(), []byte(reviewedPlan)); err != nil {
		t.Fatal(err)
	}
	m.ID, m.Session, m.Todo, m.HadItems = "msn_1", "ses_0", ws.Todo().Path(), true
	err = st.Update(t.Context(), func(tx *store.Tx) error {
		for _, task := range []centurion.Task{{ID: "tsk_1", Item: "T1", Agent: "worker"}, {ID: "tsk_2", Item: "T2", Agent: "worker"}, {ID: "tsk_3", Item: "T3", Agent: agents.Reviewer, Result: "PASS"}} {
			task.Mission, task.Status, task.Started, task.Ended = m.ID, centurion.TaskCompleted, centurion.Now(), centurion.Now()
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
	seq := st.LastSeq()
	if opened, closed, err := d.Settle(t.Context(), "msn_1"); err != nil || len(opened)+len(closed) > 0 || st.LastSeq() != seq {
		t.Errorf("again: opened %q, closed %q, %v, told %d", opened, closed, err, st.LastSeq()-seq)
	}
	doc, _, err := d.ws.Todo().Load()
	if err == nil {
		err = d.ws.WriteFile(d.ws.Todo().Path(), []byte(strings.Replace(string(doc.Bytes()), "[ ] T1", "[x] T1", 1)))
	}
	if err != nil {
		t.Fatal(err)
	}
	if undo(t, d, st, "T2"); marks() != "T1 done, T2 open, T3 open" {
		t.Errorf("what a person has done again is opened by the next undo: %s", marks())
	}
}

// An undo that another process records while one is applied is not taken for applied with it: the next one who settles opens its items.
func TestSettleMeetsAnotherUndo(t *testing.T) {
	t.Parallel()
	d, st, marks := done(t, centurion.Mission{Status: centurion.MissionPaused, Reason: "by a person"})
	was, err := st.Mission(t.Context(), "msn_1")
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Reversal(t.Context(), was, centurion.Reverted{What: "T2", Task: "tsk_2"}, []string{"T2"})
	if err != nil {
		t.Fatal(err)
	}
	err = st.Update(t.Context(), func(tx *store.Tx) error { return errors.Join(r.Record(tx), settled(tx, was, plan.View{}, nil)) })
	if m, merr := st.Mission(t.Context(), "msn_1"); err != nil || merr != nil || len(m.Reverted) != 1 || m.Reverted[0].Marked {
		t.Errorf("%+v, %v, %v", m.Reverted, err, merr)
	}
	if opened, _, err := d.Settle(t.Context(), "msn_1"); err != nil || !slices.Equal(opened, []string{"T2", "T3"}) || marks() != "T1 done, T2 open, T3 open" {
		t.Errorf("opened %q, %v: %s", opened, err, marks())
	}
}

// Work that is brought back after its mission was resumed is told with its items; the undo itself is no longer known then.
func TestRestoreAfterAResume(t *testing.T) {
	t.Parallel()
	d, st, marks := done(t, centurion.Mission{Status: centurion.MissionPaused})
	undo(t, d, st, "T1")
	err := st.Update(t.Context(), func(tx *store.Tx) error {
		m, err := tx.Mission("msn_1")
		w, werr := tx.Delivery(m.Reverted[0].Word)
		m.Reverted, w.Taken = nil, centurion.Now()
		return errors.Join(err, werr, tx.PutMission(&m), tx.PutDelivery(&w))
	})
	if err != nil {
		t.Fatal(err)
	}
	if redo(t, d, st, "T1"); marks() != "T1 done, T2 done, T3 open" {
		t.Errorf("the plan has %s", marks())
	}
	told, err := st.PendingDeliveries(t.Context(), "ses_0")
	if err != nil || len(told) != 1 || told[0].Text != "The user has brought back T1, which was reverted before. Done again in the plan: T1." || told[0].Origin != centurion.OriginHost || told[0].Mission != "msn_1" || told[0].Created.IsZero() {
		t.Errorf("%+v, %v", told, err)
	}
	if m, err := st.Mission(t.Context(), "msn_1"); err != nil || len(m.Reverted) > 0 {
		t.Errorf("%+v, %v", m.Reverted, err)
	}
	err = st.Update(t.Context(), func(tx *store.Tx) error { // work without an item is told nobody
		return Restore(tx, "msn_1", "the rest", nil, func(centurion.Reverted) bool { return true })
	})
	if told, terr := st.PendingDeliveries(t.Context(), "ses_0"); err != nil || terr != nil || len(told) != 1 {
		t.Errorf("told %+v, %v, %v", told, err, terr)
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

// How many items are done and shown to be follows each undo and redo; a review whose work was undone shows nothing until that is back. A mission that
// has not ended, or that has no one but its agent, stays as it is otherwise.
func TestTallyOfUndos(t *testing.T) {
	t.Parallel()
	by := centurion.PassedBy{Task: "tsk_3", Item: "T3"}
	for _, rec := range []centurion.Mission{{Status: centurion.MissionPaused, Reason: "by a person"},
		{Status: centurion.MissionCompleted, Reason: "it is done", Options: centurion.MissionOptions{Profile: agents.ProfileAssistant}}} {
		d, st, _ := done(t, rec)
		for i, step := range []struct {
			do   func(*testing.T, *Desk, *store.Store, string)
			item string
			want centurion.Tally
		}{
			{undo, "T1", centurion.Tally{Unverified: 1}},
			{redo, "T1", centurion.Tally{Verified: 3, Reviewed: map[string]centurion.PassedBy{"T1": by, "T2": by, "T3": by}}},
			{undo, "T3", centurion.Tally{Unverified: 2}},
		} {
			step.do(t, d, st, step.item)
			m, err := st.Mission(t.Context(), "msn_1")
			if err != nil || !reflect.DeepEqual(m.Tally, step.want) || m.Status != rec.Status || m.Reason != rec.Reason || m.Todo != workspace.TodoPath || m.Was != nil {
				t.Errorf("%s, step %d: %+v, want %+v; %s, %q, %q, %v", rec.Status, i, m.Tally, step.want, m.Status, m.Reason, m.Todo, err)
			}
		}
	}
}

// journalOf is what the journal tells of the mission after a place in it: its reasons, and its plan.
func journalOf(t *testing.T, st *store.Store, after int64) string {
	t.Helper()
	events, err := st.Events(t.Context(), store.EventQuery{Mission: "msn_1", After: after})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range events {
		if e.Type == centurion.EventTodoUpdated {
			out = append(out, string(e.Type)+" "+string(e.Data))
			continue
		}
		d, err := event.Decode[event.MissionData](e)
		if err != nil || e.Session != "ses_0" {
			t.Errorf("%+v, %v", e, err)
		}
		out = append(out, string(e.Type)+" "+d.Reason)
	}
	return strings.Join(out, "\n")
}

// toldOfPlan is the event that tells a plan of three items as it is now: with these marks, and so many of them done.
func toldOfPlan(t *testing.T, file *workspace.TodoFile, done int, marks []string) string {
	t.Helper()
	doc, _, err := file.Load()
	if err != nil {
		t.Fatal(err)
	}
	var now []string
	for _, it := range doc.Items() {
		now = append(now, doc.Status(it.ID).String())
	}
	if strings.Join(now, " ") != strings.Join(marks, " ") {
		t.Errorf("the plan has %q, want %q", now, marks)
	}
	data := event.TodoData{TodoCounts: event.TodoCounts(doc.Counts()), Title: "Plan", Items: plan.View{Doc: doc}.Told()}
	if data.Done != done || len(data.Items) != 3 {
		t.Errorf("told of the plan: %+v", data)
	}
	return "todo.updated " + string(event.Data(data))
}

// An undo of a complete mission's work is recorded with the mission as it stood, is told to its agent and in the journal, and leaves its plan at a
// place of its own; how many items are done is counted anew, and again when the work is back.
func TestRecorded(t *testing.T) {
	t.Parallel()
	d, st, _ := done(t, centurion.Mission{Status: centurion.MissionCompleted, Reason: "it is done", Summary: "All is well.", Reopened: 2, Check: "make", Evidence: centurion.EvidenceReviewed})
	archived := workspace.ArchivePath + "/todo.md"
	if err := d.ws.WriteFile(archived, []byte(reviewedPlan)); err != nil {
		t.Fatal(err)
	}
	err := st.Update(t.Context(), func(tx *store.Tx) error {
		m, err := tx.Mission("msn_1")
		m.Todo, m.Tally = archived, centurion.Tally{Verified: 3}
		return errors.Join(err, tx.PutMission(&m))
	})
	if err != nil {
		t.Fatal(err)
	}
	journal := func(after int64) string { return journalOf(t, st, after) }
	seq := st.LastSeq()
	undo(t, d, st, "T1")
	m, err := st.Mission(t.Context(), "msn_1")
	if err != nil {
		t.Fatal(err)
	}
	was := centurion.Mission{}
	was.Stands(centurion.Mission{Status: centurion.MissionCompleted, Reason: "it is done", Summary: "All is well.", Reopened: 2, Check: "make", Evidence: centurion.EvidenceReviewed, Tally: centurion.Tally{Verified: 3}})
	if m.Was == nil || !reflect.DeepEqual(*m.Was, was) || m.Todo != ".opencode/todo-msn_1.md" || m.Summary+m.Check != "" || m.Reopened != 0 || m.Verified != 0 || m.Unverified != 1 {
		t.Errorf("it was %+v, and is %+v", m.Was, m)
	}
	told, err := st.PendingDeliveries(t.Context(), "ses_0")
	if err != nil || len(told) != 1 || told[0].Text != toldReverted(m.Reverted[0]) || told[0].Origin != centurion.OriginHost || told[0].Mission != "msn_1" || told[0].ID != m.Reverted[0].Word || told[0].Created.IsZero() {
		t.Errorf("told %+v, %v", told, err)
	}
	if r := m.Reverted[0]; r.What != "T1" || r.Task != "tsk_1" || strings.Join(r.Items, " ") != "T1 T3" || strings.Join(r.Reviews, " ") != "tsk_3" {
		t.Errorf("recorded: %+v", r)
	}
	plan := func(done int, marks ...string) string { return toldOfPlan(t, d.ws.TodoAt(m.Todo), done, marks) }
	if got, want := journal(seq), "mission.paused T1 was reverted\n"+plan(1, "open", "done", "open"); got != want {
		t.Errorf("told\n%s, want\n%s", got, want)
	}
	seq = st.LastSeq()
	undo(t, d, st, "T2")
	if got, want := journal(seq), "mission.paused T1, T2 were reverted\n"+plan(0, "open", "open", "open"); got != want {
		t.Errorf("told\n%s, want\n%s", got, want)
	}
	seq = st.LastSeq()
	redo(t, d, st, "T1")
	if got, want := journal(seq), "mission.paused T2 was reverted\n"+plan(1, "done", "open", "open"); got != want {
		t.Errorf("told\n%s, want\n%s", got, want)
	}
	if m, err = st.Mission(t.Context(), "msn_1"); err != nil || m.Verified != 0 || m.Unverified != 1 {
		t.Errorf("one of two is back: %+v, %v", m.Tally, err)
	}
	seq = st.LastSeq()
	redo(t, d, st, "T2")
	if got, want := journal(seq), plan(3, "done", "done", "done")+"\nmission.completed it is done"; got != want {
		t.Errorf("told\n%s, want\n%s", got, want)
	}
	if m, err = st.Mission(t.Context(), "msn_1"); err != nil || m.Was != nil || m.Verified != 3 {
		t.Errorf("all is back: %+v, %v", m, err)
	}
}
