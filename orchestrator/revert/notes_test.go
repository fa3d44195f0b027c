package revert

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/notes"
	"centurion/store"
	"centurion/workspace"
)

// noted is the project of [done] in which each session has left a note, and the mission's own agent a summary of all.
func noted(t *testing.T) (d *Desk, st *store.Store, texts func() (context, summary string)) {
	t.Helper()
	d, st, _ = done(t, centurion.Mission{Status: centurion.MissionCompleted, Reason: "it is done"})
	for i, s := range []struct{ task, agent, item, note, summary string }{
		{"", "commander", "", "of all", "All is built."}, {"tsk_1", "worker", "T1", "of one", ""}, {"tsk_2", "worker", "T2", "of two", ""},
		{"tsk_3", agents.Reviewer, "T3", "of the review", ""}, {"tsk_gone", "worker", "", "of a task that is gone", ""}} {
		id := fmt.Sprintf("ses_%d", i)
		input, err := json.Marshal(map[string]string{"note": s.note, "summary": s.summary})
		if err != nil {
			t.Fatal(err)
		}
		err = st.Update(t.Context(), func(tx *store.Tx) error {
			return errors.Join(tx.PutSession(&centurion.Session{ID: id, Agent: s.agent, Metadata: centurion.SessionMeta{Mission: "msn_1", Task: s.task, Address: "0/" + id[4:]}}),
				tx.PutMessage(&centurion.Message{ID: "msg_" + id, SessionID: id, Role: centurion.RoleAssistant}),
				tx.PutPart(&centurion.Part{ID: "prt_" + id, SessionID: id, MessageID: "msg_" + id, Type: centurion.PartTool, Tool: "update_context",
					State: &centurion.ToolState{Status: centurion.ToolCompleted, Input: input}}))
		})
		if _, _, nerr := d.ws.Context().Note(t.Context(), notes.Signed(s.note, s.agent, s.item), nil); err != nil || nerr != nil {
			t.Fatal(err, nerr)
		}
	}
	if err := d.ws.WriteFile(workspace.SummaryPath, []byte("All is built.\n")); err != nil {
		t.Fatal(err)
	}
	return d, st, func() (string, string) {
		context, _, err := d.ws.Context().Load()
		summary, _, serr := d.ws.Summary().Load()
		if err != nil || serr != nil {
			t.Fatal(err, serr)
		}
		return context, summary
	}
}

// An undo marks what the work of its task and the reviews of it have noted, and what anybody has said of all; that of a merge marks everything.
// The redo takes each mark away again.
func TestMarkNotes(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		undo   func(*testing.T, *Desk, *store.Store)
		marked []string
	}{
		"T1": {func(t *testing.T, d *Desk, st *store.Store) { undo(t, d, st, "T1") }, []string{"of one (worker, T1)", "of the review (reviewer, T3)"}},
		"the merge": {func(t *testing.T, d *Desk, st *store.Store) {
			m, err := st.Mission(t.Context(), "msn_1")
			r, rerr := d.Reversal(t.Context(), m, centurion.Reverted{What: "the merge", Merge: centurion.Now()}, nil)
			if err != nil || rerr != nil {
				t.Fatal(err, rerr)
			}
			err = st.Update(t.Context(), r.Record)
			if _, _, serr := d.Settle(t.Context(), "msn_1"); err != nil || serr != nil {
				t.Fatal(err, serr)
			}
		}, []string{"of all (commander)", "of one (worker, T1)", "of two (worker, T2)", "of the review (reviewer, T3)", "of a task that is gone (worker)"}},
	} {
		d, st, texts := noted(t)
		context, summary := texts()
		test.undo(t, d, st)
		want := context
		for _, note := range test.marked {
			if !strings.Contains(want, note+"\n") {
				t.Fatalf("%q is not in %s", note, want)
			}
			want = strings.Replace(want, note+"\n", note+" (reverted)\n", 1)
		}
		now, head := texts()
		if now != want {
			t.Errorf("%s: the notes are\n%s, want\n%s", what, now, want)
		}
		if want := "> Reverted: the user reverted " + what + ", so what is said of it below no longer holds.\n\n" + summary; head != want {
			t.Errorf("%s: the summary is %q, want %q", what, head, want)
		}
		if what == "T1" { // what is settled is not marked again: a person may have removed the mark
			if err := d.ws.WriteFile(workspace.SummaryPath, []byte(summary)); err != nil {
				t.Fatal(err)
			}
			undo(t, d, st, "T2")
			if _, head := texts(); strings.Contains(head, "reverted T1") || !strings.Contains(head, "reverted T2") {
				t.Errorf("after another undo the summary is %q", head)
			}
			redo(t, d, st, "T2")
		}
		redo(t, d, st, what)
		if now, head := texts(); now != context || head != summary {
			t.Errorf("%s is back: the notes are\n%s, the summary is\n%s", what, now, head)
		}
	}
}

// A rewind marks what its conversation has written in the messages that it left, by its address; going there again takes the marks away.
func TestMarkRewound(t *testing.T) {
	t.Parallel()
	d, st, texts := noted(t)
	err := st.Update(t.Context(), func(tx *store.Tx) error { // the second message of a conversation
		return errors.Join(tx.PutMessage(&centurion.Message{ID: "msg_later", SessionID: "ses_2", Role: centurion.RoleAssistant, Prev: "msg_ses_2"}),
			tx.PutPart(&centurion.Part{ID: "prt_later", SessionID: "ses_2", MessageID: "msg_later", Type: centurion.PartTool, Tool: "update_context",
				State: &centurion.ToolState{Status: centurion.ToolCompleted, Input: json.RawMessage(`{"note": "of later"}`)}}))
	})
	if _, _, nerr := d.ws.Context().Note(t.Context(), notes.Signed("of later", "worker", "T2"), nil); err != nil || nerr != nil {
		t.Fatal(err, nerr)
	}
	context, summary := texts()
	leaf := func(session, leaf, last string) {
		t.Helper()
		err := st.Update(t.Context(), func(tx *store.Tx) error {
			rec, err := tx.Session(session)
			if rec.Metadata.Rewound = nil; leaf != "" {
				rec.Metadata.Rewound = &centurion.Rewound{Leaf: leaf, Last: last}
			}
			return errors.Join(err, tx.PutSession(&rec))
		})
		if err := errors.Join(err, d.MarkRewound(t.Context(), session)); err != nil {
			t.Fatal(err)
		}
	}
	leaf("ses_1", "msg_none", "msg_ses_1")
	now, head := texts()
	if want := strings.Replace(context, "of one (worker, T1)", "of one (worker, T1) (reverted)", 1); now != want || head != summary {
		t.Errorf("the notes are\n%s, the summary is %q", now, head)
	}
	leaf("ses_0", "msg_none", "msg_ses_0")
	if _, head := texts(); head != "> Reverted: the conversation of 0/0 was rewound to before this was written.\n\n"+summary {
		t.Errorf("the summary is %q", head)
	}
	now, _ = texts()
	leaf("ses_2", "msg_ses_2", "msg_later")
	if got, _ := texts(); got != strings.Replace(now, "of later (worker, T2)", "of later (worker, T2) (reverted)", 1) {
		t.Errorf("rewound to its first message: the notes are\n%s", got)
	}
	leaf("ses_2", "", "")
	leaf("ses_1", "", "")
	leaf("ses_0", "", "")
	if now, head := texts(); now != context || head != summary {
		t.Errorf("back again: the notes are\n%s, the summary is %q", now, head)
	}
}
