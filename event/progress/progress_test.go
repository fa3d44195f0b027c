package progress

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"centurion"
	"centurion/event"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// script feeds a tracker.
type script struct {
	Tracker
	now time.Duration
}

func (s *script) fact(typ centurion.EventType, session, task, data string) {
	s.Apply(centurion.Event{Time: centurion.Time{Time: noon.Add(s.now)}, Type: typ, Mission: "msn_1", Session: session, Task: task, Data: json.RawMessage(data)})
}

// answer is an answer of so many tokens, at a cent each, that asks for calls.
func (s *script) answer(session, task string, tokens, calls int) {
	s.fact(centurion.EventMessageUpdated, session, task, fmt.Sprintf(`{"message":"m","finish":"stop","tokens":{"output":%d},"cost":%g,"calls":%d}`, tokens, float64(tokens)/100, calls))
}

func (s *script) task(status centurion.TaskStatus) {
	s.fact("task.updated", "ses_w", "tsk_1", fmt.Sprintf(`{"status":%q,"parent":"ses_root","session":"ses_w"}`, status))
}

// ORCH-19, ORCH-20, ORCH-106, ORCH-114: from a session's start each of its steps gives a snapshot, which holds what is true after the
// step's last tool call, and sums up what the sessions below it have cost.
func TestSteps(t *testing.T) {
	var s script
	s.fact(centurion.EventMissionStarted, "ses_root", "", `{}`)
	if got := s.Snapshots("ses_root"); got != nil {
		t.Errorf("before its start: %v", got)
	}
	s.fact(centurion.EventSessionCreated, "ses_root", "", `{}`)
	if got := s.Snapshots("ses_root"); got == nil || len(got) != 0 {
		t.Fatalf("before the first step: %v", got)
	}
	s.now = 2 * time.Second
	s.answer("ses_root", "", 10, 2)
	s.fact(centurion.EventTodoUpdated, "ses_root", "", `{"open":2,"done":1,"cancelled":1}`)
	s.fact(centurion.EventToolCompleted, "ses_root", "", `{"call":"1"}`)
	if got := s.Snapshots("ses_root"); len(got) != 1 || got[0].Todo.Open != 0 || got[0].ElapsedMS != 2000 {
		t.Errorf("with a call still running: %+v", got)
	}
	s.task(centurion.TaskRunning)
	s.now = 3 * time.Second
	s.fact(centurion.EventToolCompleted, "ses_root", "", `{"call":"2"}`)
	s.answer("ses_w", "tsk_1", 5, 0)
	s.now = 5 * time.Second
	s.answer("ses_root", "", 1, 0)
	s.fact(centurion.EventToolCompleted, "ses_root", "", `{"call":"3"}`) // of no batch: a late one changes nothing
	all := s.Snapshots("ses_root")
	if len(all) != 2 {
		t.Fatalf("%d snapshots, want 2: %+v", len(all), all)
	}
	todo := event.TodoCounts{Open: 2, Done: 1, Cancelled: 1}
	for i, want := range []Snapshot{
		{Step: 1, Time: centurion.Time{Time: noon.Add(3 * time.Second)}, Todo: todo, Running: 1, Tokens: centurion.Tokens{Output: 10}, Cost: 0.1, ElapsedMS: 3000},
		{Step: 2, Time: centurion.Time{Time: noon.Add(5 * time.Second)}, Todo: todo, Running: 1, Tokens: centurion.Tokens{Output: 16}, Cost: 0.16, ElapsedMS: 5000},
	} {
		if all[i] != want {
			t.Errorf("step %d: %+v\nwant %+v", i+1, all[i], want)
		}
	}
	if w := s.Snapshots("ses_w"); len(w) != 1 || w[0].Tokens.Output != 5 {
		t.Errorf("the worker's: %+v", w)
	}
}

// ORCH-21: what is kept of a session goes when it ends, and with the mission all of it. One that can be resumed keeps it.
func TestCleared(t *testing.T) {
	for end, kept := range map[centurion.EventType]bool{
		centurion.EventMissionCompleted: false, centurion.EventMissionCancelled: false,
		centurion.EventMissionPaused: true, centurion.EventMissionBlocked: true, centurion.EventMissionFailed: true,
	} {
		var s script
		s.fact(centurion.EventMissionStarted, "ses_root", "", `{}`)
		s.answer("ses_root", "", 1, 0)
		s.fact(end, "ses_root", "", `{}`)
		if got := len(s.Snapshots("ses_root")) > 0; got != kept {
			t.Errorf("after %s it is kept: %v", end, got)
		}
	}
	for status, kept := range map[centurion.TaskStatus]bool{
		centurion.TaskCompleted: false, centurion.TaskFailed: false, centurion.TaskCancelled: false, centurion.TaskBlocked: true, centurion.TaskWaiting: true,
	} {
		var s script
		s.task(centurion.TaskRunning)
		s.answer("ses_w", "tsk_1", 1, 0)
		s.task(status)
		if got := len(s.Snapshots("ses_w")) > 0; got != kept {
			t.Errorf("of a task that is %s it is kept: %v", status, got)
		}
	}
}

// ORCH-135: a hundred snapshots are kept of a session, the newest ones, and their steps go on counting.
func TestHundred(t *testing.T) {
	var s script
	for range 130 {
		s.answer("ses_root", "", 1, 0)
	}
	all := s.Snapshots("ses_root")
	if len(all) != 100 || all[0].Step != 31 || all[99].Step != 130 || all[99].Tokens.Output != 130 {
		t.Errorf("%d kept, from %+v to %+v", len(all), all[0], all[len(all)-1])
	}
}

// The time paused does not count, nor the time after a host has died.
func TestElapsed(t *testing.T) {
	var s script
	step := func(at time.Duration, typ centurion.EventType) {
		s.now = at
		s.fact(typ, "ses_root", "", `{}`)
	}
	step(0, centurion.EventMissionStarted)
	step(10*time.Second, centurion.EventMissionPaused)
	step(time.Hour, centurion.EventMissionResumed)
	step(time.Hour+5*time.Second, centurion.EventTodoUpdated) // then the host dies
	step(2*time.Hour, centurion.EventMissionResumed)
	s.now += time.Second
	s.answer("ses_root", "", 1, 0)
	if got := s.Snapshots("ses_root")[0].ElapsedMS; got != 16_000 {
		t.Errorf("%d ms, want 16000", got)
	}
}

// An answer that was broken by a crash and repaired is no step.
func TestRepairedIsNoStep(t *testing.T) {
	var s script
	s.fact(centurion.EventMessageUpdated, "ses_root", "", `{"message":"m","finish":"interrupted","repaired":true}`)
	s.fact(centurion.EventMessageUpdated, "ses_root", "", `[]`)
	if got := s.Snapshots("ses_root"); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// Only a whole answer of a session is a step, and a result of a session that is not known is of none. Time does not run after the end.
func TestWhatIsNoStep(t *testing.T) {
	var s script
	s.fact(centurion.EventMissionStarted, "ses_root", "", `{}`)
	s.fact(centurion.EventToolCompleted, "ses_9", "", `{"call":"1"}`)
	s.fact(centurion.EventMessageUpdated, "ses_root", "", `{"message":"m","tokens":{"output":1}}`)
	s.fact(centurion.EventMessageUpdated, "", "", `{"message":"m","finish":"stop"}`)
	if len(s.sessions) != 0 {
		t.Errorf("sessions: %v", s.sessions)
	}
	s.now = 2 * time.Second
	s.fact(centurion.EventMissionPaused, "ses_root", "", `{}`)
	s.now = time.Hour
	s.fact(centurion.EventMessageUpdated, "ses_root", "", `{"message":"m","finish":"stop","tokens":{"output":1},"cost":1,"unpriced":true}`)
	want := Snapshot{Step: 1, Time: centurion.Time{Time: noon.Add(time.Hour)}, Tokens: centurion.Tokens{Output: 1}, Cost: 1, Unpriced: true, ElapsedMS: 2000}
	if got := s.Snapshots("ses_root"); len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	s.fact(centurion.EventTodoUpdated, "ses_root", "", `{"open":3}`)
	s.fact(centurion.EventMissionCompleted, "ses_root", "", `{}`)
	s.answer("ses_root", "", 1, 0)
	if got := s.Snapshots("ses_root"); len(got) != 1 || got[0].Todo.Open != 3 || got[0].Step != 1 {
		t.Errorf("after the end: %+v", got)
	}
	s.fact("other.fact", "ses_w", "tsk_1", `{"status":"running","parent":"ses_root","session":"ses_w"}`)
	s.answer("ses_w", "tsk_1", 7, 0)
	s.answer("ses_root", "", 1, 0)
	if got := s.Snapshots("ses_root"); got[1].Running != 0 || got[1].Tokens.Output != 2 {
		t.Errorf("a fact that is no task's: %+v", got[1])
	}
}
