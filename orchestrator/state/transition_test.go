package state

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/store"
)

// zeros lists the fields of an event's data that say nothing.
func zeros(data any) (names []string) {
	for field, value := range reflect.ValueOf(data).Fields() {
		if value.IsZero() {
			names = append(names, field.Name)
		}
	}
	return names
}

// A move of a mission writes when it was, and the reader's change last; what cannot follow changes nothing.
func TestMoveMission(t *testing.T) {
	st := stored(t, func(*store.Tx) error { return nil })
	move := func(to centurion.MissionStatus) (m centurion.Mission, err error) {
		err = st.Update(t.Context(), func(tx *store.Tx) (err error) {
			m, err = MoveMission(tx, "msn_1", to, "why", func(m *centurion.Mission) { m.Summary = "done: " + m.Reason })
			return err
		})
		return m, err
	}
	m, err := move(centurion.MissionCompleted)
	if err != nil || m.Status != centurion.MissionCompleted || m.Summary != "done: why" || centurion.Now().Sub(m.Updated.Time).Abs().Hours() > 1 {
		t.Errorf("%+v, %v", m, err)
	}
	if now, err := st.Mission(t.Context(), "msn_1"); err != nil || now.Updated.Millis() != m.Updated.Millis() || now.Reason != "why" {
		t.Errorf("stored %+v, %v", now, err)
	}
	if _, err := move(centurion.MissionPlanning); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("from completed to planning: %v", err)
	}
	if all := eventsOf(t, st); len(all) != 1 || all[0].Type != centurion.EventMissionCompleted || all[0].Session != "ses_0" {
		t.Errorf("%+v", all)
	}
}

func eventsOf(t *testing.T, st *store.Store) []centurion.Event {
	t.Helper()
	all, err := st.Events(t.Context(), store.EventQuery{})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A move of a task is told once: of a task that stays as it is only with another reason. An end stays what it was.
func TestMoveTask(t *testing.T) {
	st := stored(t, func(tx *store.Tx) error {
		return tx.PutTask(&centurion.Task{ID: "tsk_1", Mission: "msn_1", Status: centurion.TaskQueued})
	})
	told := 0
	for _, c := range []struct {
		to     centurion.TaskStatus
		reason string
		want   centurion.EventType // "" if nothing is told
		kept   string
		fails  bool
	}{
		{centurion.TaskWaiting, "T1", centurion.EventTaskWaiting, "T1", false},
		{centurion.TaskWaiting, "T1", "", "T1", false},
		{centurion.TaskWaiting, "T2", centurion.EventTaskWaiting, "T2", false},
		{centurion.TaskRunning, "", centurion.EventTaskUpdated, "", false},
		{centurion.TaskCompleted, "well", centurion.EventTaskCompleted, "well", false},
		{centurion.TaskCompleted, "", "", "well", false},
		{centurion.TaskRunning, "", "", "well", true},
	} {
		was, err := st.Task(t.Context(), "tsk_1")
		if err != nil {
			t.Fatal(err)
		}
		err = st.Update(t.Context(), func(tx *store.Tx) error {
			_, err := MoveTask(tx, "tsk_1", c.to, func(t *centurion.Task) {
				if c.reason != "" {
					t.Reason = c.reason
				}
				if c.reason == "well" {
					t.Ended = centurion.MillisTime(5)
				}
			})
			return err
		})
		if (err != nil) != c.fails || err != nil && centurion.KindOf(err) != centurion.KindConflict {
			t.Errorf("%s: %v", c.to, err)
		}
		now, err := st.Task(t.Context(), "tsk_1")
		if err != nil || now.Reason != c.kept || now.Ended.IsZero() == now.Status.Ended() || was.Status.Ended() && !now.Ended.Equal(was.Ended.Time) {
			t.Errorf("%s: %+v, %v", c.to, now, err)
		}
		all := eventsOf(t, st)
		if c.want != "" {
			told++
		}
		if len(all) != told || c.want != "" && all[told-1].Type != c.want {
			t.Errorf("%s %q: told %d times, want %d", c.to, c.reason, len(all), told)
		}
	}
}

// The events of missions and tasks tell all that they can: each field comes from the record.
func TestDataIsWhole(t *testing.T) {
	u := centurion.Usage{Tokens: centurion.Tokens{Input: 1}, USD: 2, Unpriced: true}
	m := centurion.Mission{ID: "msn_1", Session: "ses_0", Status: centurion.MissionRunning, Goal: "g", Directory: "d", Level: 1, LevelFrom: "l", Usage: u, Isolation: "i", Branch: "b",
		Base: &centurion.Base{}, Confinement: &centurion.Confinement{}, ElapsedMS: 3, Reason: "r", Summary: "s", Evidence: centurion.EvidenceProven, Merged: &centurion.Merged{},
		Tally:   centurion.Tally{Verified: 1},
		Options: centurion.MissionOptions{Agent: "a", Model: "m", MaxCost: 1, MaxTokens: 2, Profile: "p"}}
	if left := strings.Join(zeros(Living(m)), " "); left != "Note Countdown Reason" {
		t.Errorf("of a living mission, these say nothing: %s", left)
	}
	st := stored(t, func(tx *store.Tx) error {
		return tx.PutTask(&centurion.Task{ID: "tsk_1", Mission: "msn_1", Status: centurion.TaskRunning})
	})
	m.Status = centurion.MissionPaused
	err := st.Update(context.WithoutCancel(t.Context()), func(tx *store.Tx) error {
		end, err := MissionData(tx, m)
		if left := zeros(end); len(left) > 0 {
			t.Errorf("of a mission's end, these say nothing: %s", left)
		}
		m.Evidence = ""
		none, nerr := MissionData(tx, m)
		if none.(event.MissionEnd).Evidence != centurion.EvidenceNone {
			t.Errorf("without evidence: %+v", none)
		}
		return errors.Join(err, nerr)
	})
	if err != nil {
		t.Fatal(err)
	}
	task := centurion.Task{ID: "tsk_1", Mission: "msn_1", Number: 7, Agent: "a", Title: "t", Item: "T1", Attempt: 1, Parent: "p", Call: "c", Session: "s", Reason: "r", Files: []string{"f"},
		Claims: []string{"c"}, Usage: u, Result: strings.Repeat("x", 5000), Error: &centurion.TaskError{Message: "no"}}
	for status, want := range map[centurion.TaskStatus]string{centurion.TaskFailed: "WaitMS", centurion.TaskRunning: "Result Error WaitMS"} {
		task.Status = status
		e := TaskFact(task, centurion.EventTaskUpdated)
		var d event.TaskData
		if err := json.Unmarshal(e.Data, &d); err != nil || strings.Join(zeros(d), " ") != want || len(d.Result) > 4100 {
			t.Errorf("%s: these say nothing: %s; %v", status, zeros(d), err)
		}
		if e.Mission != "msn_1" || e.Session != "s" || e.Task != "tsk_1" || e.Type != centurion.EventTaskUpdated {
			t.Errorf("%+v", e)
		}
	}
}

// A task ends when it is moved to its end; a try that goes on is held no more. What cannot follow is refused with both states.
func TestMoveTaskEnds(t *testing.T) {
	t.Parallel()
	st := stored(t, func(tx *store.Tx) error {
		return tx.PutTask(&centurion.Task{ID: "tsk_1", Mission: "msn_1", Status: centurion.TaskWaiting, Reason: "T1", Race: &centurion.Race{ID: "tsk_1", Held: true}})
	})
	before := centurion.Now().Millis()
	for _, c := range []struct {
		to     centurion.TaskStatus
		held   bool
		reason string
		says   string
	}{
		{centurion.TaskWaiting, true, "", ""},
		{centurion.TaskRunning, false, "", ""},
		{centurion.TaskFailed, false, "", ""},
		{centurion.TaskFailed, false, "", ""},
		{centurion.TaskRunning, false, "", "change task tsk_1: it is failed and cannot become running"},
	} {
		err := st.Update(t.Context(), func(tx *store.Tx) error {
			_, err := MoveTask(tx, "tsk_1", c.to, nil)
			return err
		})
		if err == nil && c.says != "" || err != nil && err.Error() != c.says {
			t.Errorf("%s: %v", c.to, err)
		}
		now, err := st.Task(t.Context(), "tsk_1")
		if err != nil || now.Race.Held != c.held || now.Reason != c.reason || now.Ended.IsZero() == now.Status.Ended() || now.Status.Ended() && now.Ended.Millis() < before {
			t.Errorf("%s: %+v, %v", c.to, now, err)
		}
	}
}
