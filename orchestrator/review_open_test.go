package orchestrator

import (
	"testing"

	"centurion"
	"centurion/provider/scripted"
)

// A review that finds faults opens the item that it looked at, in its first attempt, too: before its end is told.
func TestFailedReviewOpensItsItem(t *testing.T) {
	var at *rig
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			switch q.Step() {
			case 3:
				has(t, at.read(todoMD), "- [x] T1")
			case 4:
				has(t, at.read(todoMD), "- [ ] T1")
			}
			return steps(do(plans("- [ ] T1 One")), do(work("T1", "write it")), do(handTo("reviewer", "T1", "look")), say("I wait"))(q)
		},
		"worker":   steps(say("made")),
		"reviewer": steps(say("FAIL\na.txt:1 wrong")),
	}, func(r *rig) {
		at = r
		m := r.mission(centurion.MissionOptions{MaxRounds: 7})
		tasks := r.tasks(m.ID)
		if len(tasks) < 2 || !tasks[1].Reviews {
			t.Fatalf("tasks: %+v", tasks)
		}
	})
}
