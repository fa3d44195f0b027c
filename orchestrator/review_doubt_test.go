package orchestrator

import (
	"strings"
	"testing"

	"centurion"
)

// ORCH-5: a review has no verify command by its nature. What keeps it from counting is said of it instead, also where its item names no agent.
func TestReviewWithoutVerify(t *testing.T) {
	for name, plan := range map[string]string{"of the reviewer": "- [-] T1 One\n- [ ] T2 Look @reviewer\n  - after: T1", "of no agent": "- [-] T1 One\n- [ ] T2 Look\n  - after: T1"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(barePlan(plan)), do(handTo("reviewer", "T2", "look")), say("I wait"),
					do(call("update_todo", args{"items": []args{{"id": "T2", "status": "done"}}})), complete(), say("Well.")),
				"reviewer": steps(say("FAIL: a.go:1 is wrong")),
			}, func(r *rig) {
				m := r.mission(centurion.MissionOptions{})
				said := r.results(m.ID, "mission_complete")[0]
				has(t, said, "item T2 (Look): it is a review that has not passed since the files that it judges were changed; ")
				if all := said + r.userText(m.Session); strings.Contains(all, "it has no verify command") {
					t.Errorf("a review is told to lack a check:\n%s", all)
				}
				if list := r.results(m.ID, "update_todo")[0]; name == "of no agent" {
					has(t, list, "(no verify command: a review has to pass; if it is itself one, name @reviewer)")
				}
			})
		})
	}
}
