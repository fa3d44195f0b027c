package orchestrator

import (
	"strings"
	"testing"

	"centurion"
)

// ORCH-5: a reviewer works on no item. Handed one that is not done it would close it, or open a blocked one: the call is refused, and
// says what to do. An item that is a review itself is the reviewer's, also one that names nobody and has nothing but what it comes after.
func TestReviewerWorksOnNoItem(t *testing.T) {
	const one = "- [ ] T1 One @worker\n  - verify: `passes`\n"
	for name, test := range map[string]struct {
		plan, item string
		blocks     bool   // the Commander blocks the item first
		answer     string // of the reviewer
		refused    string // what the call is answered; "" if the review is held
		mark       string // of the item in the end
	}{
		"open":                       {one, "T1", false, "PASS", "item T1 is open: there is nothing to review yet", "[ ] T1"},
		"blocked":                    {one, "T1", true, "PASS", "item T1 is blocked: there is nothing to review yet", "[!] T1"},
		"blocked, with faults":       {one, "T1", true, "FAIL: a.go:1 is wrong", "item T1 is blocked: there is nothing to review yet", "[!] T1"},
		"without a check":            {"- [ ] T1 One\n", "T1", false, "PASS", "item T1 is open: there is nothing to review yet", "[ ] T1"},
		"with files, behind another": {"- [x] T1 One\n- [ ] T2 Two\n  - after: T1\n  - files: b.txt\n", "T2", false, "PASS", "item T2 is open: there is nothing to review yet", "[ ] T2"},
		"a review":                   {"- [x] T1 One\n- [ ] T2 Look @reviewer\n  - after: T1\n", "T2", false, "PASS", "", "[x] T2"},
		"a review that names nobody": {"- [x] T1 One\n- [ ] T2 Look\n  - after: T1\n", "T2", false, "PASS", "", "[x] T2"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := do(barePlan(strings.TrimSuffix(test.plan, "\n")))
			if test.blocks {
				plan.Calls = append(plan.Calls, call("update_todo", args{"items": []args{{"id": test.item, "status": "blocked"}}}))
			}
			bubble(t, map[string]script{
				"commander": steps(plan, do(handTo("reviewer", test.item, "look at it")), say("I wait"), say("Well.")),
				"reviewer":  steps(do(look), say(test.answer)),
			}, func(r *rig) {
				m := r.mission(centurion.MissionOptions{})
				answer := strings.Join(r.results(m.ID, "delegate_task"), "\n")
				if test.refused == "" {
					equal(t, "reviews", len(r.tasks(m.ID)), 1)
					has(t, r.requests("reviewer")[0].First(), "look at it")
				} else {
					equal(t, "reviews", len(r.tasks(m.ID)), 0)
					has(t, answer, test.refused, `delegate_task {"agent":"worker","item":"`+test.item+`",`, "without an item", "@reviewer")
				}
				has(t, r.read(todoMD), test.mark)
			})
		})
	}
}
