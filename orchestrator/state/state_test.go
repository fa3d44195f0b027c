package state

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/store"
)

// What is left of a task's own budget is told for tool calls and time only when less than a fifth is left, and time runs on between the
// answers.
func TestLeftOfATasksBudget(t *testing.T) {
	for name, test := range map[string]struct {
		budget centurion.TaskBudget
		calls  int
		works  time.Duration
		want   string
	}{
		"no budget":        {centurion.TaskBudget{}, 7, time.Hour, ""},
		"calls enough":     {centurion.TaskBudget{ToolCalls: 10}, 8, 0, ""},
		"few calls":        {centurion.TaskBudget{ToolCalls: 10}, 9, 0, "1 tool call"},
		"too many calls":   {centurion.TaskBudget{ToolCalls: 10}, 11, 0, "0 tool calls"},
		"time enough":      {centurion.TaskBudget{Minutes: 10}, 0, 7 * time.Minute, ""},
		"little time":      {centurion.TaskBudget{Minutes: 10}, 0, 8 * time.Minute, "1m"},
		"both":             {centurion.TaskBudget{Minutes: 10, ToolCalls: 10}, 9, 8 * time.Minute, "1 tool call, 1m"},
		"requests, always": {centurion.TaskBudget{Rounds: 5}, 0, 0, "3 requests"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				r := &Run{Ctx: ctx, Cancel: cancel, Before: 60_000} // of an earlier attempt
				task := centurion.Task{Budget: test.budget, ToolCalls: test.calls, Rounds: 1, ElapsedMS: 60_000}
				if got := r.Worked(task); got != 60_000 {
					t.Errorf("worked %d ms before it begins", got)
				}
				r.Now.Store(&task)
				defer r.Timed()()
				time.Sleep(test.works / 2)
				task = r.Spend(task, centurion.Usage{})
				time.Sleep(test.works - test.works/2)
				if task.Rounds != 2 || task.ElapsedMS != 60_000+(test.works/2).Milliseconds() || r.Worked(task) != 60_000+test.works.Milliseconds() {
					t.Errorf("%d answers; worked %d ms at the last, %d ms now", task.Rounds, task.ElapsedMS, r.Worked(task))
				}
				want := ""
				if test.want != "" {
					want = "Left of this task's budget: " + test.want + ". When it is used up the task fails: end with your result before.\n"
				}
				if got := r.Left(); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
				if ctx.Err() != nil {
					t.Error("it ended early")
				}
				if test.budget.Minutes > 0 {
					time.Sleep(9*time.Minute - test.works)
					synctest.Wait()
					if centurion.KindOf(context.Cause(ctx)) != centurion.KindBudget {
						t.Errorf("when its time is over: %v", context.Cause(ctx))
					}
				}
			})
		})
	}
}

// Attempts below the newest are refused until the task is forgotten; an old attempt does not lower the fence.
func TestFences(t *testing.T) {
	var f Fences
	f.Raise("tsk_1", 2)
	f.Raise("tsk_1", 1)
	for attempt, stale := range map[int]bool{1: true, 2: false, 3: false} {
		if err := f.Check("tsk_1", attempt); errors.Is(err, ErrSuperseded) != stale {
			t.Errorf("attempt %d: %v", attempt, err)
		}
	}
	if err := f.Check("tsk_2", 0); err != nil {
		t.Error(err)
	}
	f.Forget("tsk_1")
	if err := f.Check("tsk_1", 1); err != nil {
		t.Error(err)
	}
}

// A run that another has replaced does not take that one's place away.
func TestRunsOfAMission(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	m := New(ctx, end, nil, centurion.Mission{ID: "msn_1"}, agents.Default())
	old, now := &Run{ID: "tsk_1"}, &Run{ID: "tsk_1"}
	m.Add(old)
	m.Add(now)
	m.Drop(old)
	if m.Run("tsk_1") != now || len(m.Runs()) != 1 {
		t.Error("the newer run is gone")
	}
	m.Drop(now)
	if m.Run("tsk_1") != nil {
		t.Error("an ended run is kept")
	}
}

// A sub-agent runs in its parent's form, with the tools, the model and the prompt that it was started with.
func TestCarriesOut(t *testing.T) {
	m := &Mission{Cast: agents.Default()}
	a, err := m.CarriesOut(centurion.Task{Agent: "worker", Sub: &centurion.SubAgent{Model: "p/m", Tools: []string{"read"}}})
	if err != nil || a.Model != "p/m" {
		t.Errorf("%+v: %v", a, err)
	}
	if _, err := m.CarriesOut(centurion.Task{Agent: "nobody"}); err == nil {
		t.Error("an unknown agent carries a task out")
	}
}

// What an agent says to agents is one line for a person, without tool calls.
func TestInWords(t *testing.T) {
	for said, want := range map[string]string{
		"Fix:\n- one\n- two.":                            "Fix: one; two",
		`Try again: delegate_task {"item":"T1","x":"}"}`: "Try again",
		"  plain \n text. ":                              "plain text",
	} {
		if got := InWords(said); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}

// A row's first event, and the events that only say that it was changed.
func TestEventsOfTransitions(t *testing.T) {
	for _, test := range []struct {
		from    centurion.TaskStatus
		to      centurion.TaskStatus
		attempt int
		want    centurion.EventType
	}{
		{"", centurion.TaskQueued, 0, centurion.EventTaskQueued},
		{centurion.TaskRunning, centurion.TaskQueued, 1, centurion.EventTaskUpdated},
		{centurion.TaskQueued, centurion.TaskRunning, 1, centurion.EventTaskStarted},
		{centurion.TaskQueued, centurion.TaskRunning, 2, centurion.EventTaskRetrying},
		{centurion.TaskVerifying, centurion.TaskRunning, 1, centurion.EventTaskUpdated},
		{centurion.TaskRunning, centurion.TaskBlocked, 1, centurion.EventTaskBlocked},
	} {
		if got := taskEvent(test.from, centurion.Task{Status: test.to, Attempt: test.attempt}); got != test.want {
			t.Errorf("%s to %s: %s, want %s", test.from, test.to, got, test.want)
		}
	}
	for from, want := range map[centurion.MissionStatus]centurion.EventType{
		centurion.MissionPlanning: centurion.EventMissionUpdated, centurion.MissionPaused: centurion.EventMissionResumed} {
		if got := MissionEvent(from, centurion.MissionRunning); got != want {
			t.Errorf("from %s: %s, want %s", from, got, want)
		}
	}
}

// A mission that waits for a person says what is asked, or by how many and what; a permission is no question.
func TestOpenQuestions(t *testing.T) {
	ask := func(agent, text string) store.Ask {
		return store.Ask{ID: "que_1", Type: store.AskQuestion, Agent: agent, Text: text}
	}
	permission := store.Ask{Type: store.AskPermission, Agent: "reviewer", Text: "rm"}
	one, two := ask("worker", "which\nway?"), ask("planner", "why?")
	for want, open := range map[string][]store.Ask{
		"worker asks: which\nway? (centurion answer que_1 TEXT)":                {one, permission},
		"worker asks 2 questions: which way? · which way? (" + AsksHint + ")":   {one, permission, one},
		"worker, planner ask 2 questions: which way? · why? (" + AsksHint + ")": {one, two},
	} {
		if got := OpenQuestions(one, open); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
