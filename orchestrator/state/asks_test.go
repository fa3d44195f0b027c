package state

import (
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/store"
	"centurion/store/storetest"
)

// stored is a state with one running mission, changed by f.
func stored(t *testing.T, f func(tx *store.Tx) error) *store.Store {
	t.Helper()
	st := storetest.Open(t)
	if err := st.Update(t.Context(), func(tx *store.Tx) error {
		if err := tx.PutMission(&centurion.Mission{ID: "msn_1", Session: "ses_0", Status: centurion.MissionRunning}); err != nil {
			return err
		}
		return f(tx)
	}); err != nil {
		t.Fatal(err)
	}
	return st
}

// The end of a task closes its own questions only, and the end of a mission all asks, but for questions that are kept.
func TestClosedAsks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(tx *store.Tx) error
		want map[string]string // the closed ones: the answer and who closed it
	}{
		"a task": {func(tx *store.Tx) error { _, err := MoveTask(tx, "tsk_1", centurion.TaskFailed, nil); return err },
			map[string]string{"que_1": event.NoAnswer + ByAbort}},
		"a mission": {func(tx *store.Tx) error { return CloseAsks(tx, "msn_1", false) },
			map[string]string{"que_1": "reject" + ByEnd, "que_2": "reject" + ByEnd, "per_1": "reject" + ByEnd}},
		"a mission that waits": {func(tx *store.Tx) error { return CloseAsks(tx, "msn_1", true) }, map[string]string{"per_1": "reject" + ByEnd}},
	} {
		st := stored(t, func(tx *store.Tx) error {
			for _, a := range []store.Ask{{ID: "que_1", Type: store.AskQuestion, Task: "tsk_1"}, {ID: "que_2", Type: store.AskQuestion, Task: "tsk_2"},
				{ID: "per_1", Type: store.AskPermission, Task: "tsk_1"}, {ID: "per_9", Type: store.AskPermission, Mission: "msn_9"}} {
				if a.Mission == "" {
					a.Mission = "msn_1"
				}
				if err := tx.PutAsk(&a); err != nil {
					return err
				}
			}
			return tx.PutTask(&centurion.Task{ID: "tsk_1", Mission: "msn_1", Status: centurion.TaskRunning})
		})
		if err := st.Update(t.Context(), c.end); err != nil {
			t.Fatal(err)
		}
		for _, mission := range []string{"msn_1", "msn_9"} {
			asks, err := st.Asks(t.Context(), mission, false)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range asks {
				if got := a.Answer + a.By; got != c.want[a.ID] || a.Answered.IsZero() != (got == "") {
					t.Errorf("the end of %s: %s is %q, want %q", name, a.ID, got, c.want[a.ID])
				}
			}
		}
	}
}

// An answer that no call waits for comes to the mission's own agent as a message; any other is for its call alone.
func TestReplyToAClosingQuestion(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]string{EndOfTurn: "You asked: which?\nThe person answers: this", "c1": ""} {
		ask := store.Ask{ID: "que_1", Type: store.AskQuestion, Mission: "msn_1", Session: "ses_0", Call: call, Text: "which?", By: ByPerson}
		st := stored(t, func(tx *store.Tx) error { return PutReply(tx, ask, "this") })
		got, err := st.PendingDeliveries(t.Context(), "ses_0")
		if err != nil || (len(got) == 1) != (want != "") || len(got) == 1 && (got[0].Text != want || !got[0].Wake || got[0].Mission != "msn_1") {
			t.Errorf("%s: %+v, %v", call, got, err)
		}
		asks, err := st.Asks(t.Context(), "msn_1", false)
		if err != nil || len(asks) != 1 || asks[0].Answer != "this" || asks[0].By != ByPerson {
			t.Errorf("%s: %+v, %v", call, asks, err)
		}
	}
	for by, want := range map[string]bool{ByPerson: true, ByProgram: true, ByTimeout: false, ByAbort: false, ByPolicy: false, ByAlways: false, ByEnd: false} {
		if FromPerson(by) != want {
			t.Errorf("%s is from a person: %v", by, !want)
		}
	}
}

// A result goes to who delegated the task, or to the mission's own agent when that one has ended; what nobody can read any more goes
// there, too, with whom it was for.
func TestDeliver(t *testing.T) {
	t.Parallel()
	for _, ended := range []bool{false, true} {
		status, receiver := centurion.TaskRunning, "ses_1"
		if ended {
			status, receiver = centurion.TaskCompleted, "ses_0"
		}
		one := centurion.Task{ID: "tsk_2", Mission: "msn_1", Parent: "ses_1", Session: "ses_2", Agent: "worker", Title: "title", Item: "T2"}
		st := stored(t, func(tx *store.Tx) error {
			if err := tx.PutTask(&centurion.Task{ID: "tsk_1", Mission: "msn_1", Session: "ses_1", Status: status}); err != nil {
				return err
			}
			if err := tx.PutSession(&centurion.Session{ID: "ses_1", Metadata: centurion.SessionMeta{Mission: "msn_1", Task: "tsk_1"}}); err != nil {
				return err
			}
			for _, d := range []store.Delivery{{ID: "dlv_1", Text: "to it"}, {ID: "dlv_2", Task: "tsk_3"}, {ID: "dlv_3", Taken: centurion.Now()}} {
				d.Mission, d.Session = "msn_1", "ses_2"
				if err := tx.PutDelivery(&d); err != nil {
					return err
				}
			}
			return Deliver(tx, one, true)
		})
		got := map[string]store.Delivery{}
		for _, session := range []string{"ses_0", "ses_1", "ses_2"} {
			all, err := st.PendingDeliveries(t.Context(), session)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range all {
				if d.Task != "tsk_2" {
					got[d.ID] = d
				} else if d.Session != receiver || !d.Wake || d.Mission != "msn_1" {
					t.Errorf("its parent has ended: %v; the result: %+v", ended, d)
				} else {
					got["result"] = d
				}
			}
		}
		if d := got["dlv_1"]; len(got) != 3 || d.Session != "ses_0" || d.Missed != `T2 (worker, "title")` || d.Text != "to it" {
			t.Errorf("what was written to it: %+v", got)
		}
		if d := got["dlv_2"]; d.Session != "ses_0" || d.Missed != "" {
			t.Errorf("a result that it has not read: %+v", d)
		}
	}
}

// What a stop does to tasks: those that have ended stay, and a new model is for sessions that have the old one.
func TestTasksOfAStoppedMission(t *testing.T) {
	t.Parallel()
	tasks := func(tx *store.Tx) error {
		for i, s := range []centurion.TaskStatus{centurion.TaskQueued, centurion.TaskRunning, centurion.TaskVerifying, centurion.TaskCompleted, centurion.TaskFailed} {
			if err := tx.PutTask(&centurion.Task{ID: "tsk_" + string(rune('1'+i)), Mission: "msn_1", Status: s}); err != nil {
				return err
			}
		}
		return nil
	}
	for name, c := range map[string]struct {
		stop func(tx *store.Tx) error
		want string
	}{
		"requeued":  {func(tx *store.Tx) error { return RequeueTasks(tx, "msn_1", "") }, "queued,queued " + UntilResumed + ",queued " + UntilResumed + ",completed,failed"},
		"cancelled": {func(tx *store.Tx) error { return CancelTasks(tx, "msn_1", "why") }, "cancelled why,cancelled why,cancelled why,completed,failed"},
	} {
		st := stored(t, tasks)
		if err := st.Update(t.Context(), c.stop); err != nil {
			t.Fatal(err)
		}
		all, err := st.Tasks(t.Context(), "msn_1")
		var got []string
		for _, x := range all {
			s := string(x.Status) + " " + x.Reason
			if x.Error != nil {
				s += x.Error.Message
			}
			got = append(got, strings.TrimSpace(s))
		}
		if strings.Join(got, ",") != c.want || err != nil {
			t.Errorf("%s: %q, want %s, %v", name, got, c.want, err)
		}
	}
	model := func(id string) *centurion.SessionModel { return &centurion.SessionModel{Provider: "p", ID: id} }
	sessions := []centurion.Session{{ID: "ses_1", Model: model("old")}, {ID: "ses_2", Model: model("other")}, {ID: "ses_3"},
		{ID: "ses_4", Model: model("other"), Metadata: centurion.SessionMeta{OwnModel: model("old")}}}
	st := stored(t, func(tx *store.Tx) error {
		for _, s := range sessions {
			if err := tx.PutSession(&s); err != nil {
				return err
			}
		}
		return Remodel(tx, sessions, "p/old", "p/new")
	})
	for id, want := range map[string]string{"ses_1": "new", "ses_2": "other", "ses_3": "", "ses_4": "new"} {
		got, err := st.Session(t.Context(), id)
		if err != nil || (got.Model == nil) != (want == "") || got.Model != nil && (got.Model.ID != want || got.Metadata.OwnModel != nil) {
			t.Errorf("%s: %+v, %v", id, got.Model, err)
		}
	}
}
