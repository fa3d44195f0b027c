package loop

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"centurion"
)

// ORCH-26, ORCH-88, ORCH-91, ORCH-93, ORCH-111, ORCH-113, ORCH-124, ORCH-125: the rows of the package comment.
func TestDecide(t *testing.T) {
	open := Facts{Status: centurion.MissionRunning, HasTodo: true, EverHadItems: true, Counts: Counts{Open: 2, Done: 1},
		Runnable: []string{"T2"}, Next: []string{"T2 Enforce", "T3 Check"}}
	done := Facts{Status: centurion.MissionRunning, HasTodo: true, EverHadItems: true, Counts: Counts{Done: 2, Cancelled: 1}}
	stuck := Facts{Status: centurion.MissionRunning, HasTodo: true, EverHadItems: true, Counts: Counts{Done: 1, Blocked: 1, Open: 1},
		Next: []string{"T3 Check"}, Stuck: []string{"T2 Enforce", "T3 Check"}}
	bare := Facts{Status: centurion.MissionRunning}
	with := func(f Facts, change func(*Facts)) Facts { change(&f); return f }

	tests := []struct {
		name   string
		f      Facts
		action Action
		reason string
	}{
		{"completed mission", with(open, func(f *Facts) { f.Status = centurion.MissionCompleted }), Wait, "the mission is completed"},
		{"paused mission", with(open, func(f *Facts) { f.Status = centurion.MissionPaused }), Wait, "the mission is paused"},
		{"blocked mission", with(open, func(f *Facts) { f.Status = centurion.MissionBlocked }), Wait, "the mission is blocked"},
		{"planning mission", with(open, func(f *Facts) { f.Status = centurion.MissionPlanning }), Continue, "2 items open"},
		{"budget", with(open, func(f *Facts) { f.Budget = true; f.RunningTasks = 3 }), Pause, "budget"},
		{"recovering", with(open, func(f *Facts) { f.Recovering = true; f.PendingDeliveries = 1; f.WakingDeliveries = 1 }), Wait, "a failure is being recovered"},

		{"a failure while others run", with(open, func(f *Facts) { f.RunningTasks = 2; f.PendingDeliveries = 2; f.WakingDeliveries = 1 }), Deliver, "1 result that cannot wait"},
		{"a success while others run", with(open, func(f *Facts) { f.RunningTasks = 2; f.PendingDeliveries = 2 }), Wait, "2 tasks running, 0 waiting"},
		{"the batch has ended", with(open, func(f *Facts) { f.PendingDeliveries = 2 }), Deliver, "2 results, and nothing runs"},
		{"results come before completion", with(done, func(f *Facts) { f.PendingDeliveries = 1; f.Claimed = true }), Deliver, "1 result, and nothing runs"},
		{"a task waits", with(open, func(f *Facts) { f.WaitingTasks = 1 }), Wait, "0 tasks running, 1 waiting"},
		{"running and done", with(done, func(f *Facts) { f.RunningTasks = 1; f.Claimed = true }), Wait, "1 task running, 0 waiting"},
		{"a person is asked", with(open, func(f *Facts) { f.OpenAsks = 1 }), Wait, "1 question for a person"},
		{"asked, results wait", with(open, func(f *Facts) { f.OpenAsks = 1; f.PendingDeliveries = 1 }), Wait, "1 question for a person"},
		{"asked, a failure waits", with(open, func(f *Facts) { f.OpenAsks = 1; f.PendingDeliveries = 1; f.WakingDeliveries = 1 }), Deliver, "1 result that cannot wait"},
		{"all waiting tasks are held", with(open, func(f *Facts) { f.WaitingTasks = 2; f.HeldTasks = 2 }), Continue, "2 items open"},
		{"one waiting task is held", with(open, func(f *Facts) { f.WaitingTasks = 2; f.HeldTasks = 1 }), Wait, "0 tasks running, 2 waiting"},
		{"held by a blocked item", with(stuck, func(f *Facts) { f.WaitingTasks = 1; f.HeldTasks = 1 }), Block, "2 items left, none can be worked on"},

		{"stopped by a person", with(open, func(f *Facts) { f.Aborted = true }), Pause, "stopped by a person"},
		{"stopped by a person who is there", with(open, func(f *Facts) { f.Aborted, f.Attended = true, true }), Wait, "stopped by a person, whose word it waits for"},
		{"stopped, tasks run", with(open, func(f *Facts) { f.Aborted = true; f.RunningTasks = 1 }), Wait, "1 task running, 0 waiting"},
		{"stopped, results wait", with(open, func(f *Facts) { f.Aborted = true; f.PendingDeliveries = 1; f.WakingDeliveries = 1 }), Pause, "stopped by a person"},

		{"a person has written", with(open, func(f *Facts) { f.Messages = 1 }), Deliver, "1 message of a person"},
		{"edited, tasks run", with(open, func(f *Facts) { f.Edited = true; f.RunningTasks = 1 }), Deliver, "a person has changed the plan, and an item can be started"},
		{"edited, nothing to start", with(open, func(f *Facts) { f.Edited = true; f.RunningTasks = 1; f.Runnable = nil }), Wait, "1 task running, 0 waiting"},
		{"edited after a stop", with(open, func(f *Facts) { f.Edited, f.Aborted = true, true; f.RunningTasks = 1 }), Wait, "1 task running, 0 waiting"},
		{"written, tasks run", with(open, func(f *Facts) { f.Messages = 2; f.RunningTasks = 1; f.OpenAsks = 1 }), Deliver, "2 messages of a person"},
		{"written after a stop", with(open, func(f *Facts) { f.Messages = 1; f.Aborted = true }), Deliver, "1 message of a person"},
		{"written, recovering", with(open, func(f *Facts) { f.Messages = 1; f.Recovering = true }), Wait, "a failure is being recovered"},
		{"written, paused", with(open, func(f *Facts) { f.Messages = 1; f.Status = centurion.MissionPaused }), Wait, "the mission is paused"},
		{"written, all done", with(done, func(f *Facts) { f.Messages = 1; f.Claimed = true }), Deliver, "1 message of a person"},

		{"unreadable todo", with(open, func(f *Facts) { f.TodoError = "line 3: unclosed fence" }), Block, "todo.md cannot be read: line 3: unclosed fence"},
		{"unreadable todo, claimed", with(bare, func(f *Facts) { f.TodoError = "not UTF-8"; f.Claimed = true; f.FinishedText = true }), Block, "todo.md cannot be read: not UTF-8"},
		{"vanished file", with(done, func(f *Facts) { f.HasTodo = false; f.Counts = Counts{}; f.Claimed = true }), Block, "todo.md has vanished"},
		{"vanished items", with(done, func(f *Facts) { f.Counts = Counts{}; f.FinishedText = true }), Block, "todo.md has no items any more"},

		{"planned", with(open, func(f *Facts) { f.PlanOnly = true }), Pause, "planned"},
		{"plan missing", with(bare, func(f *Facts) { f.PlanOnly = true; f.FinishedText = true }), Continue, "the plan is missing"},
		{"plan missing again", with(bare, func(f *Facts) { f.PlanOnly = true; f.RoundsWithoutProgress = 1 }), Block, "no plan was written"},

		{"answer without items", with(bare, func(f *Facts) { f.FinishedText = true }), Complete, "nothing to verify"},
		{"claim without items", with(bare, func(f *Facts) { f.Claimed = true }), Complete, "nothing to verify"},
		{"empty todo, answer", with(bare, func(f *Facts) { f.HasTodo = true; f.FinishedText = true }), Complete, "nothing to verify"},
		{"answer, the project has checks", with(bare, func(f *Facts) { f.FinishedText = true; f.ChecksPending = true }), Verify, "the final checks come next"},
		{"answer, the project's checks passed", with(bare, func(f *Facts) { f.FinishedText = true; f.Verified = 2 }), Complete, "2 final checks passed"},
		{"answer, nothing to show for it", with(bare, func(f *Facts) { f.FinishedText, f.Bare = true, true }), Continue, "nothing shows what was done"},
		{"claim, nothing to show for it", with(bare, func(f *Facts) { f.Claimed, f.Bare = true, true }), Continue, "nothing shows what was done"},
		{"nothing to show, the checks come first", with(bare, func(f *Facts) { f.FinishedText, f.Bare, f.ChecksPending = true, true, true }), Verify, "the final checks come next"},
		{"all done, nothing to show for it", with(done, func(f *Facts) { f.FinishedText, f.Bare = true, true }), Continue, "every item is done or cancelled; nothing shows what was done"},
		{"open items, nothing to show for it", with(open, func(f *Facts) { f.FinishedText, f.Bare = true, true }), Continue, "2 items open"},
		{"one agent, proof is required", Facts{Alone: true, Proof: true, Status: centurion.MissionRunning, FinishedText: true, ChecksPending: true}, Verify, "the final checks come next"},
		{"one agent, proof is required, checked", Facts{Alone: true, Proof: true, Status: centurion.MissionRunning, FinishedText: true, Verified: 1}, Complete, "1 final check passed"},
		{"all done, asked for what shows it often enough", with(done, func(f *Facts) { f.FinishedText, f.Bare, f.RoundsWithoutProgress = true, true, 5 }), Complete, "every item is done or cancelled; nothing to verify"},
		{"open items, proof is required", with(open, func(f *Facts) { f.Proof = true }), Continue, "2 items open"},
		{"open items, a person is there", with(open, func(f *Facts) { f.Attended = true }), Continue, "2 items open"},
		{"done, a question in a turn that broke off", with(done, func(f *Facts) { f.Said = "Which licence?" }), Complete, "every item is done or cancelled; nothing to verify"},
		{"no answer", bare, Continue, "the turn ended without an answer"},
		{"no answer 5 times", with(bare, func(f *Facts) { f.RoundsWithoutProgress = 5 }), Block, "no answer"},

		{"open items", open, Continue, "2 items open"},
		{"open items, final text", with(open, func(f *Facts) { f.FinishedText = true }), Continue, "2 items open"},
		{"open items, false claim", with(open, func(f *Facts) { f.Claimed = true; f.FinishedText = true }), Continue, "2 items open"},
		{"only cancelled items", with(open, func(f *Facts) { f.Counts = Counts{Cancelled: 1}; f.Runnable = nil }), Complete, "every item is done or cancelled; nothing to verify"},
		{"one item is planned", with(open, func(f *Facts) { f.PlanOnly, f.Counts = true, Counts{Open: 1} }), Pause, "planned"},
		{"no progress 4 rounds", with(open, func(f *Facts) { f.RoundsWithoutProgress = 4 }), Continue, "2 items open"},
		{"no progress 5 rounds", with(open, func(f *Facts) { f.RoundsWithoutProgress = 5 }), Block, "no progress in 5 rounds"},
		{"marked running, nobody works", with(open, func(f *Facts) { f.Counts = Counts{Running: 1}; f.Runnable = nil }), Continue, "1 item open"},
		{"blocked and runnable", with(open, func(f *Facts) { f.Counts.Blocked = 1 }), Continue, "2 items open"},
		{"only blocked ones left", stuck, Block, "2 items left, none can be worked on"},
		{"done, unchecked", with(done, func(f *Facts) { f.ChecksPending = true }), Verify, "every item is done or cancelled; the final checks come next"},
		{"done, unchecked, claimed", with(done, func(f *Facts) { f.ChecksPending = true; f.Claimed = true }), Verify, "every item is done or cancelled; the final checks come next"},
		{"done, checked", with(done, func(f *Facts) { f.Verified = 1 }), Complete, "every item is done or cancelled; 1 final check passed"},
		{"done, and a question", with(done, func(f *Facts) {
			f.FinishedText, f.Said, f.ChecksPending = true, "Which licence, MIT or Apache-2.0?", true
		}), Continue, "the turn ended with a question"},
		{"done, the question again", with(done, func(f *Facts) { f.FinishedText, f.Said, f.RoundsWithoutProgress = true, "Which licence?", 1 }), Block, "the agent asks a question"},
		{"done and claimed, a question", with(done, func(f *Facts) { f.FinishedText, f.Claimed, f.Said = true, true, "Anything else?" }), Complete, "every item is done or cancelled; nothing to verify"},
		{"no items, a question", with(bare, func(f *Facts) { f.FinishedText, f.Said, f.ChecksPending = true, "Which licence?", true }), Continue, "the turn ended with a question"},
		{"no items, the question again", with(bare, func(f *Facts) { f.FinishedText, f.Said, f.RoundsWithoutProgress = true, "Which licence?", 1 }), Block, "the agent asks a question"},
		{"done, no checks", done, Complete, "every item is done or cancelled; nothing to verify"},
		{"one agent has answered", Facts{Alone: true, Status: centurion.MissionRunning, FinishedText: true, ChecksPending: true}, Complete, "nothing to verify"},
		{"one agent, without an answer", Facts{Alone: true, Status: centurion.MissionRunning}, Complete, "nothing to verify"},
		{"one agent, a sub-agent runs", Facts{Alone: true, RunningTasks: 1, FinishedText: true}, Wait, "1 task running, 0 waiting"},
		{"one agent, a result waits", Facts{Alone: true, PendingDeliveries: 1, FinishedText: true}, Deliver, "1 result, and nothing runs"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := decide(tt.f)
			if d.Action != tt.action || d.Reason != tt.reason {
				t.Errorf("got %s (%s), want %s (%s)", d.Action, d.Reason, tt.action, tt.reason)
			}
			if d.Bare != (d.Prompt == BareWord) || d.Asks != (d.Reason == "the agent asks a question") {
				t.Errorf("%+v", d)
			}
			if d.Action == Continue && d.After != 2*time.Second {
				t.Errorf("counts down %v", d.After)
			}
		})
	}
}

// ORCH-90: the exact words of the continuation prompt.
func TestPrompt(t *testing.T) {
	f := Facts{HasTodo: true, EverHadItems: true, Counts: Counts{Open: 7, Done: 1}, Runnable: []string{"T2", "T5"},
		Next: []string{"T2 Two", "T3 Three", "T4 Four", "T5 Five", "T6 Six", "T7 Seven", "T8 Eight"}}
	check := func(name, want string) {
		t.Helper()
		if got := decide(f).Prompt; got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
		}
	}
	head := "The mission is not finished: 7 items open.\n- T2 Two\n- T3 Three\n- T4 Four\n- T5 Five\n- T6 Six\n… and 2 more\nNext: T2."
	check("seven items", head+"\nContinue with it now, without asking.")

	f.RoundsWithoutProgress = 2
	check("two rounds", head+"\nContinue with it now, without asking.")

	f.RoundsWithoutProgress = 3
	check("three rounds", head+"\nNothing has changed in 3 rounds. Do not repeat what you did: "+
		"find out what is in the way, then try a different approach, split the item, or mark it as blocked with the reason.")

	f = Facts{HasTodo: true, EverHadItems: true, Counts: Counts{Open: 1}, Runnable: []string{"T2"}, Next: []string{"T2 Two"},
		WaitingTasks: 1, HeldTasks: 1}
	check("held", "The mission is not finished: 1 item open.\n- T2 Two\nNext: T2. 1 task waits for items that no task works on."+
		"\nContinue with it now, without asking.")

	f.Counts, f.Runnable, f.WaitingTasks, f.HeldTasks = Counts{Running: 1}, nil, 2, 2
	check("running, and nobody works on it", "The mission is not finished: 1 item open.\n- T2 Two\nItems are marked as running, but no task works on them: "+
		"finish them, delegate them, or set them back to open. 2 tasks wait for items that no task works on.\nContinue with it now, without asking.")
}

func TestQuestionNamesWhatIsStuck(t *testing.T) {
	f := Facts{HasTodo: true, EverHadItems: true, Stuck: []string{"T1 a", "T2 b", "T3 c", "T4 d", "T5 e", "T6 f", "T7 g"}}
	for n, left := range map[int]string{2: "T1 a, T2 b", 6: "T1 a, T2 b, T3 c, T4 d, T5 e, and 1 more", 7: "T1 a, T2 b, T3 c, T4 d, T5 e, and 2 more"} {
		f := f
		f.Counts, f.Stuck = Counts{Blocked: n}, f.Stuck[:n]
		if q := decide(f).Question; q != "None of the items that are left can be worked on: "+left+". What should happen with them?" {
			t.Errorf("%d items: %s", n, q)
		}
	}
}

// Whatever the facts, there is one decision; nothing completes that is not done; nothing is prompted that waits.
func TestDecideIsTotal(t *testing.T) {
	actions := []Action{Wait, Deliver, Continue, Verify, Complete, Block, Pause}
	statuses := []centurion.MissionStatus{"", centurion.MissionPlanning, centurion.MissionRunning, centurion.MissionPaused,
		centurion.MissionBlocked, centurion.MissionCompleted, centurion.MissionFailed, centurion.MissionCancelled}
	rapid.Check(t, func(t *rapid.T) {
		some := func(name string) int { return max(rapid.IntRange(-3, 3).Draw(t, name), 0) }
		names := rapid.SliceOfN(rapid.StringN(0, 8, 20), 0, 7)
		f := Facts{
			Status: rapid.SampledFrom(statuses).Draw(t, "status"), HasTodo: rapid.Bool().Draw(t, "todo"),
			EverHadItems: rapid.Bool().Draw(t, "ever"), TodoError: rapid.SampledFrom([]string{"", "", "bad"}).Draw(t, "error"),
			Counts:   Counts{some("open"), some("running"), some("done"), some("cancelled"), some("blocked")},
			Runnable: names.Draw(t, "runnable"), Next: names.Draw(t, "next"), Stuck: names.Draw(t, "stuck"),
			RunningTasks: some("tasks"), WaitingTasks: some("waiting"), HeldTasks: some("held"),
			PendingDeliveries: some("pending"), WakingDeliveries: some("waking"), OpenAsks: some("asks"), Messages: some("messages"),
			Recovering: rapid.Bool().Draw(t, "recovering"), Aborted: rapid.Bool().Draw(t, "aborted"),
			FinishedText: rapid.Bool().Draw(t, "text"), Claimed: rapid.Bool().Draw(t, "claimed"),
			ChecksPending: rapid.Bool().Draw(t, "checks"), Verified: some("verified"),
			RoundsWithoutProgress: rapid.IntRange(0, 8).Draw(t, "rounds"),
			PlanOnly:              rapid.Bool().Draw(t, "plan"), Budget: rapid.Bool().Draw(t, "budget"), Bare: rapid.Bool().Draw(t, "bare"), Proof: rapid.Bool().Draw(t, "proof"),
		}
		if rapid.Bool().Draw(t, "alone") { // where nobody plans
			f = Facts{Alone: true, Status: f.Status, RunningTasks: f.RunningTasks, WaitingTasks: f.WaitingTasks, PendingDeliveries: f.PendingDeliveries,
				WakingDeliveries: f.WakingDeliveries, OpenAsks: f.OpenAsks, Messages: f.Messages, Recovering: f.Recovering, Aborted: f.Aborted,
				FinishedText: f.FinishedText, RoundsWithoutProgress: f.RoundsWithoutProgress, Budget: f.Budget}
		}
		d := decide(f)
		left := f.Counts.Left() > 0 || f.EverHadItems && f.Counts.Total() == 0 || f.TodoError != ""
		busy := f.RunningTasks > 0 || f.WaitingTasks > f.HeldTasks || f.OpenAsks > 0 || f.Messages > 0 || f.Recovering
		switch {
		case !slices.Contains(actions, d.Action):
			t.Fatalf("unknown action %q", d.Action)
		case d.Reason == "":
			t.Fatal("no reason")
		case (d.Action == Continue) != (d.Prompt != "" && d.After > 0):
			t.Fatalf("%s with prompt %q after %v", d.Action, d.Prompt, d.After)
		case (d.Action == Block) != (d.Question != ""):
			t.Fatalf("%s with question %q", d.Action, d.Question)
		case d.Action == Complete && (f.ChecksPending || f.PlanOnly):
			t.Fatal("complete without the checks, or with nothing but a plan")
		case (d.Action == Complete || d.Action == Verify) && left:
			t.Fatal("complete with items left")
		case busy && (d.Action == Continue || d.Action == Verify || d.Action == Complete || d.Action == Block):
			t.Fatalf("%s while something is under way", d.Action)
		case d.Action == Continue && (f.Aborted || f.Budget || f.RoundsWithoutProgress >= DefaultGiveUp):
			t.Fatal("goes on against a person, a budget or its own failure")
		}
	})
}

// ORCH-26: where nothing is left to work on, what the agent has asked is what the person is asked.
func TestOwnQuestion(t *testing.T) {
	f := Facts{Status: centurion.MissionRunning, HasTodo: true, EverHadItems: true, Counts: Counts{Blocked: 1}, Stuck: []string{"T1 Licence"}, FinishedText: true}
	const host = "None of the items that are left can be worked on: T1 Licence. What should happen with them?"
	for said, want := range map[string]string{
		"":                        host,
		" \n":                     host,
		" I\n wait. ":             host + " Its agent said last: I wait.",
		strings.Repeat("b", 501):  host + " Its agent said last: " + strings.Repeat("b", 500) + "…",
		"MIT or Apache?\n":        "MIT or Apache? (Left: T1 Licence)",
		"I wait.":                 host + " Its agent said last: I wait.",
		"All set. MIT or Apache?": "All set. MIT or Apache? (Left: T1 Licence)",
	} {
		f.Said = said
		if d := decide(f); d.Action != Block || d.Question != want || d.Asks != !strings.HasPrefix(want, host) {
			t.Errorf("%q: %+v, want %q", said, d, want)
		}
	}
	for text, want := range map[string]bool{
		"": false, "Done.": false, "Is it? Yes.": false, "Which one?": true, "**Which one?**": true, "Which one?\n\n- MIT\n- Apache": true,
		" Which one?  \n  - MIT \n ": true, "どれですか？はい": false, "Which?\n• MIT\n(a) BSD\nb: GPL": true, "Which?\nMIT - or not": false, "Which?\n-MIT": false,
		"\"Which one?\"": true, "Which?\n123. MIT": false,
		"Which one?\n1. MIT\n2) Apache": true, "Was it so? I looked.\n- a\n- b": false, "Which?\nI take MIT.": false, "どれですか？": true, "- one\n- two": false,
	} {
		if Asks(text) != want {
			t.Errorf("%q asks: %v", text, !want)
		}
	}
}

// Where nothing is known to be stuck, the items that are left are named.
func TestQuestionNamesWhatIsLeft(t *testing.T) {
	t.Parallel()
	d := decide(Facts{HasTodo: true, EverHadItems: true, Counts: Counts{Blocked: 1}, Next: []string{"T7 Tell of it"}})
	if d.Action != Block || !strings.Contains(d.Question, "T7 Tell of it") {
		t.Errorf("%+v", d)
	}
	if d = decide(Facts{HasTodo: true, EverHadItems: true, Counts: Counts{Blocked: 2}}); !strings.Contains(d.Question, "worked on: 2 items.") {
		t.Errorf("%+v", d)
	}
}

// A policy of one's own replaces the defaults.
func TestPolicyOverrides(t *testing.T) {
	t.Parallel()
	p := Policy{Countdown: time.Minute, NewApproach: 1, GiveUp: 2}
	f := Facts{HasTodo: true, EverHadItems: true, Counts: Counts{Open: 1}, Runnable: []string{"T1"}, Next: []string{"T1 One"}, RoundsWithoutProgress: 1}
	if d := p.Decide(f); d.After != time.Minute || !strings.Contains(d.Prompt, "Nothing has changed in 1 rounds") {
		t.Errorf("%+v", d)
	}
	for want, rounds := range map[Action]int{Continue: 1, Block: 2} {
		if d := p.Decide(Facts{RoundsWithoutProgress: rounds}); d.Action != want {
			t.Errorf("%d rounds without an answer: %+v, want %s", rounds, d, want)
		}
	}
	for want, rounds := range map[Action]int{Continue: 1, Complete: 2} {
		if d := p.Decide(Facts{Claimed: true, Bare: true, RoundsWithoutProgress: rounds}); d.Action != want {
			t.Errorf("%d rounds with nothing to show: %+v, want %s", rounds, d, want)
		}
	}
	f.RoundsWithoutProgress, f.Counts, f.Next = 2, Counts{Open: 2}, []string{"T1 One", "T2 Two"}
	if d := p.Decide(f); d.Action != Block || d.Question != "There was no progress in 2 rounds. Open: T1 One, T2 Two. What should be done differently?" {
		t.Errorf("%+v", d)
	}
}

// Each prompt says what the agent is to do, each question what the person is asked.
func TestWords(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]Facts{
		"write it with update_todo":                    {PlanOnly: true},
		"The plan was asked for twice":                 {PlanOnly: true, RoundsWithoutProgress: 1},
		"call mission_complete. If only the person":    {FinishedText: true, Said: "Which?"},
		"if it is reached, say what was done":          {},
		"ended its turn without an answer 5 times":     {RoundsWithoutProgress: 5},
		"vanished. Should the mission":                 {EverHadItems: true},
		"no items any more. Should the mission":        {EverHadItems: true, HasTodo: true},
		"cannot be read: line 3. Please fix it":        {TodoError: "line 3"},
		"the host runs it. If something is left to do": {Claimed: true, Bare: true},
		"Which licence?":                               {FinishedText: true, Said: " Which licence?\n", RoundsWithoutProgress: 1},
	} {
		d := decide(f)
		if got := d.Prompt + d.Question; !strings.Contains(got, want) || strings.TrimSpace(got) != got {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
	if c := (Counts{Open: 1, Running: 2, Done: 4, Cancelled: 8, Blocked: 16}); c.Total() != 31 || c.Left() != 19 {
		t.Errorf("%d items, %d left", c.Total(), c.Left())
	}
}

// decide decides by the default policy.
func decide(f Facts) Decision { return Policy{}.Decide(f) }
