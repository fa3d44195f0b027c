package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/provider/scripted"
)

// ORCH-10: a worker whose session goes on is told what has happened to its item since: another check, and what a review has found.
func TestResumedWorkerIsToldOfItsItem(t *testing.T) {
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			return steps(do(barePlan("- [ ] T1 One\n  - verify: `old`")), do(work("T1", "make it")), say("I wait"), do(handTo("reviewer", "T1", "look")), say("I wait"),
				do(goesOn("worker", "once more", "w1", args{"item": "T1"})), say("I wait"), do(goesOn("worker", "and again", "w3", args{"item": "T1"})), say("I wait"), say("Well."))(q)
		},
		"worker":   steps(say("made"), say("made again"), say("made once more")),
		"reviewer": steps(do(barePlan("- [x] T1 One\n  - verify: `new`")), say("FAIL\na.go:1 is wrong")),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		told := r.userText(r.tasks(m.ID)[0].Session)
		has(t, told, "# Your task continues\n\nonce more", "The check of T1 is now `new`; it was `old`.", "What the review of T1 found:\nFAIL\na.go:1 is wrong")
		equal(t, "times the check is told", strings.Count(told, "The check of T1"), 1)
		equal(t, "times the review is told", strings.Count(told, "a.go:1 is wrong"), 1)
	})
}
