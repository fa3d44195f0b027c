package orchestrator

import (
	"fmt"
	"testing"

	"centurion"
	"centurion/provider/scripted"
)

// ORCH-75: what is delegated while tasks are being written is written together, a few at a time, in the order in which it
// was delegated; nothing is written twice and nothing left behind.
func TestDelegationsAreWrittenInBatches(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(many(30), say("I wait")), "worker": func(scripted.Request) scripted.Answer { return say("made") }}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		tasks := r.tasks(m.ID)
		equal(t, "tasks", len(tasks), 30)
		for i, task := range tasks {
			equal(t, "prompt", task.Prompt, fmt.Sprintf("piece %d", i))
		}
	})
}
