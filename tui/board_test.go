package tui

import (
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/event/toast"
	"centurion/text"
)

func TestBoardFollowsTasks(t *testing.T) {
	b := newStage().workers().board()
	if len(b.Tasks) != 7 || len(b.Active()) != 5 {
		t.Fatalf("%d tasks, %d of them active; want 7 and 5", len(b.Tasks), len(b.Active()))
	}
	for i, want := range []string{"bash go test ./config/...", "edit limit/middleware.go", `grep /ReadConfig\(/`, "The README comes first, then the", "", "", ""} {
		if got := b.Tasks[i].Doing; got != want {
			t.Errorf("task %d does %q, want %q", i+1, got, want)
		}
	}
	if r := b.Tasks[4].Retry; r == nil || r.Attempt != 2 || r.Reason != "rate limit" {
		t.Errorf("retry of T5 is %+v", r)
	}
	if b.Level != 2 || b.Status != centurion.MissionRunning || b.MaxCost != 10 || b.Goal != "Rate limits for the API" {
		t.Errorf("mission is L%d %s cap %v %q", b.Level, b.Status, b.MaxCost, b.Goal)
	}
}

func TestBoardTaskStates(t *testing.T) {
	s := newStage().start().task("T1", "worker", "Do it", true)
	step := func(typ centurion.EventType, d data, want centurion.TaskStatus) {
		t.Helper()
		if got := s.wait(time.Second).at(typ, "ses_T1", "tsk_T1", d).board().Tasks[0].Status; got != want {
			t.Errorf("after %s it is %s, want %s", typ, got, want)
		}
	}
	step(centurion.EventTaskWaiting, data{"reason": "a person"}, centurion.TaskWaiting)
	step("task.updated", data{"status": "running"}, centurion.TaskRunning)
	step(centurion.EventTaskVerifying, data{}, centurion.TaskVerifying)
	step(centurion.EventTaskRetrying, data{"wait_ms": 5000, "reason": "overloaded"}, centurion.TaskVerifying)
	step(centurion.EventTaskRetrying, data{"status": "running", "attempt": 2}, centurion.TaskRunning)
	step(centurion.EventTaskFailed, data{"error": data{"kind": "verify", "message": "red"}}, centurion.TaskFailed)
	step(centurion.EventTaskCompleted, data{}, centurion.TaskFailed) // an ended task stays as it ended
	step(centurion.EventTaskDelivered, data{"status": "failed"}, centurion.TaskFailed)
	if task := s.board().Tasks[0]; why(task) != "red" || task.Attempt != 2 || toast.Age(task.Task, s.now.Add(time.Hour)) != 6*time.Second {
		t.Errorf("it ended with %q, attempt %d, after %v", why(task), task.Attempt, toast.Age(task.Task, s.now.Add(time.Hour)))
	}
}

func TestBoardUsage(t *testing.T) {
	s := newStage().start().
		at(centurion.EventMessageUpdated, "ses_0", "", data{"usage": usage(100, 10, 0.5)}).
		task("T1", "worker", "Do it", true).
		at(centurion.EventMessageUpdated, "ses_T1", "tsk_T1", data{"tokens": data{"input": 50, "output": 5}, "cost": 0.25})
	if u := s.board().Usage(); u.Tokens.Total() != 165 || u.USD != 0.75 {
		t.Errorf("adds up to %d tokens, $%v", u.Tokens.Total(), u.USD)
	}
	if u := s.board().Tasks[0].Usage; u.Tokens.Total() != 55 || u.USD != 0.25 {
		t.Errorf("the task took %d tokens, $%v", u.Tokens.Total(), u.USD)
	}
	s.at(centurion.EventMissionUpdated, "ses_0", "", data{"usage": usage(1000, 0, 2)})
	if u := s.board().Usage(); u.Tokens.Total() != 1000 || u.USD != 2 {
		t.Errorf("the mission's own figure is %d tokens, $%v", u.Tokens.Total(), u.USD)
	}
	s.at(centurion.EventMessageUpdated, "ses_0", "", data{"usage": data{"tokens": data{"input": 1}, "unpriced": true}})
	if got := text.Cost(s.board().Usage()); got != "$?" {
		t.Errorf("an answer without a price shows %s", got)
	}
}

func TestBoardAsks(t *testing.T) {
	s := newStage().start().
		at(centurion.EventPermissionAsked, "ses_1", "", event.AskData{ID: "per_1", Permission: "bash", Patterns: []string{"ls"}}).
		at(centurion.EventQuestionAsked, "ses_2", "", event.AskData{ID: "que_1", Text: "Which?", Options: []string{"a", "b"}}).
		at(centurion.EventPermissionAsked, "ses_1", "", event.AskData{ID: "per_1", Permission: "bash", Patterns: []string{"ls -l"}})
	b := s.board()
	if len(b.Asks) != 2 || b.Asks[0].Patterns[0] != "ls -l" || len(b.Asks[1].Choices()) != 2 {
		t.Fatalf("open asks: %+v", b.Asks)
	}
	b = s.at(centurion.EventPermissionReplied, "ses_1", "", event.AskData{ID: "per_1", Answer: "once"}).board()
	if len(b.Asks) != 1 || b.Asks[0].ID != "que_1" {
		t.Errorf("open asks after the answer: %+v", b.Asks)
	}
}

func TestBoardKeepsToItsMission(t *testing.T) {
	b := newStage().workers().board()
	b.Apply(centurion.Event{Type: centurion.EventMissionFailed, Mission: "msn_2", Data: event.Data(data{"reason": "no"})})
	if b.Status != centurion.MissionRunning || b.End != nil {
		t.Errorf("another mission's end made it %s", b.Status)
	}
}

// Whatever a journal holds, the view stands.
func FuzzBoard(f *testing.F) {
	for i, e := range newStage().checked().end().events {
		f.Add(string(e.Type), "ses_"+string(rune('0'+i%3)), "tsk_1", string(e.Data))
	}
	f.Add("task.started", "", "t", `{"status":7,"error":[],"usage":"x"}`)
	f.Add("permission.asked", "", "", `null`)
	for _, typ := range []string{"mission.started", "mission.updated", "mission.failed", "task.started", "task.failed", "tool.completed", "session.error",
		"verify.failed", "permission.asked", "permission.replied", "question.asked", "plan.asked", "budget.exceeded", "message.updated", "merge.conflict"} {
		f.Add(typ, "ses_0", "tsk_1", strings.ReplaceAll(`{"id":"X","goal":"X","directory":"X","reason":"X","note":"X","agent":"X","title":"X","item":"X","address":"X",
			"text":"X","error":"X","tool":"bash","input":{"command":"X"},"command":"X","output":"X","permission":"X","patterns":["X"],"always":["X"],"options":["X"],
			"answer":"X","by":"X","kind":"X","limit":"X","files":["X"],"summary":"X","tasks":{"X":1},"items":[{"id":"X","title":"X","agent":"X","after":["X"],"verify":["X"]}]}`,
			"X", `\u001b[2Ja\u009b31m\u202eb\nc\u200bd`))
	}
	f.Fuzz(func(t *testing.T, typ, session, task, raw string) {
		s := newStage().workers()
		st := story{board: &Board{}}
		for _, e := range append(s.events, centurion.Event{Time: centurion.Time{Time: s.now}, Type: centurion.EventType(typ),
			Mission: "msn_1", Session: session, Task: task, Data: []byte(raw)}) {
			for _, f := range st.apply(e) {
				checkSafe(t, append(f.lines(theme{}, 60), f.plainLine()))
			}
		}
		fr := frame{board: st.board, now: s.now, width: 80, height: 20}
		if len(st.board.Asks) > 0 {
			fr.dialog = (&dialog{ask: st.board.Asks[0]}).lines(theme{}, 80, 19)
		}
		checkFrame(t, strings.Join(fr.lines(), "\n"), 80, 20)
		checkSafe(t, append(fr.lines(), summary(st.board, theme{})...))
	})
}

// checkSafe fails if a line holds what a terminal would obey.
func checkSafe(t *testing.T, lines []string) {
	t.Helper()
	for _, l := range lines {
		if strings.ContainsFunc(l, func(r rune) bool { return text.Unsafe(r) }) {
			t.Errorf("not safe to print: %q", l)
		}
	}
}

func BenchmarkApplyDelta(b *testing.B) {
	s := newStage().workers()
	board := s.board()
	e := s.at(centurion.EventDelta, "ses_T1", "tsk_T1", event.DeltaData{Field: "text", Delta: "some words "}).events[len(s.events)-1]
	for b.Loop() {
		board.Apply(e)
	}
}
