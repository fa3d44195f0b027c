package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/provider/scripted"
)

// ORCH-45: asked for, a result is told in the words of the notice of its end, with what there is to do.
func TestResultIsTheNotice(t *testing.T) {
	asked := false
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			switch {
			case q.Step() == 1:
				return do(barePlan("- [x] T1 One"))
			case q.Step() == 2:
				return do(handTo("reviewer", "T1", "look"))
			case !asked && strings.Contains(q.Last(), "has found faults"):
				asked = true
				return do(call("get_task_result", args{"task_id": "T1"}))
			}
			return say("I wait")
		},
		"reviewer": steps(say("FAIL\na.go:1 is wrong")),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		said := r.results(m.ID, "get_task_result")
		equal(t, "results", len(said), 1)
		has(t, said[0], "has found faults: T1 is open again after 0s", "a.go:1 is wrong")
		equal(t, "notices that say the same", r.told(m.Session, said[0]), 1)
	})
}
