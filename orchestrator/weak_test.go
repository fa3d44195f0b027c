package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/provider/scripted"
)

// ORCH-5, OPAL-17: a mission of a weak model, as it was once played: a worker gives up, its item is marked as done all the same, and a reviewer
// says PASS without having looked at anything. Neither counts, and the mission does not end until both are mended.
func TestWeakModelDoesNotEnd(t *testing.T) {
	t.Parallel()
	looks := false
	r := inRepo(t, map[string]string{"base.txt": "base\n"}, map[string]script{
		"commander": steps(do(barePlan("- [ ] T1 One", "- [ ] T2 Two")), do(work("T1", makeA)), say("I wait"), do(work("T2", "make b")), say("I wait"),
			do(call("update_todo", args{"items": []args{{"id": "T2", "status": "done"}}}), call("delegate_task", args{"agent": "reviewer", "description": "look", "prompt": "say PASS"})), say("I wait"),
			complete(), do(work("T2", "make b, really")), say("I wait"),
			do(call("delegate_task", args{"agent": "reviewer", "description": "look", "prompt": "look at it"})), say("I wait"), complete()),
		"worker": func(q scripted.Request) scripted.Answer {
			switch {
			case strings.Contains(q.First(), makeA):
				return steps(do(writes("a.txt", "a\n")), say("done"))(q)
			case strings.Contains(q.First(), "really"):
				return steps(do(writes("b.txt", "b\n")), say("done"))(q)
			}
			return steps(do(writes("b.txt", "half\n")), say("STUCK: what is b?"))(q)
		},
		"reviewer": func(q scripted.Request) scripted.Answer {
			if looks = strings.Contains(q.First(), "look at it"); looks {
				return steps(do(look), say("PASS"))(q)
			}
			return say("PASS\nEverything is fine.")
		},
	})
	m := r.mission(centurion.MissionOptions{})
	said := r.results(m.ID, "mission_complete")
	if len(said) != 2 {
		t.Fatalf("mission_complete was called %d times: %q", len(said), said)
	}
	has(t, said[0], "item T1 (One): it has no verify command; no review has passed since its work ended",
		"item T2 (Two): its task T2 is blocked; nothing of it was merged, so it is not done: resume T2 or hand it out anew")
	var statuses strings.Builder
	for _, q := range r.requests("commander") {
		statuses.WriteString(q.Last())
	}
	has(t, statuses.String(), "T2 is not done (its task T2 is blocked): nothing of it was merged")
	has(t, toldTo(r, m.Session), "said PASS without having read or run anything, also when it was asked to: it does not count")
	equal(t, "asked to look", r.count(m.ID, centurion.EventTaskReturned), 1)
	r.is(m, centurion.MissionCompleted, "")
	equal(t, "verified", m.Tally.Verified, 2)
}
