package orchestrator

import (
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/provider/scripted"
)

// What the Commander has handed out is its own, and no conflict: its status names the task, and what it waits for.
func TestWhoElseIsOwn(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - files: a/**", "- [ ] T2 Two", "  - files: b/**")), do(work("T1", "x"), work("T2", "y"), onward),
			do(call("bash", args{"command": "build 10s"})), say("I wait"), complete()),
		"worker": func(scripted.Request) scripted.Answer { return after(time.Minute, say("made")) },
	}, func(r *rig) {
		r.mission(centurion.MissionOptions{MaxWorkers: 1})
		asked := r.requests("commander")
		has(t, asked[3].Last(), "T1 (do T1) is being worked on by your own task: a/**\n",
			"T2 (do T2) is your own task, which has not begun and waits for a free slot; its files: b/**")
		for _, q := range asked {
			if strings.Contains(texts(q), "somebody else") {
				t.Errorf("its own task is said to be somebody else's:\n%s", texts(q))
			}
		}
	})
}

// Who works on an item without files is seen by the others, before it has written anything.
func TestWhoElseWithoutFiles(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two", "  - files: b/**", "- [ ] T3 Review @reviewer", "  - after: T2")), do(work("T1", "x"), work("T2", "y")), say("I wait"), complete()),
		"worker": func(q scripted.Request) scripted.Answer {
			if q.Step() == 1 {
				return do(call("bash", args{"command": "build 10s"}))
			}
			return after(time.Minute, say("made"))
		},
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		told := ""
		for _, q := range r.requests("worker") {
			if strings.Contains(q.First(), "# Item T2") && q.Step() == 2 {
				told = q.Last()
			}
			if strings.Contains(q.Last(), "T1 (do T1)") && strings.Contains(q.First(), "# Item T1") {
				t.Errorf("it is told of itself:\n%s", q.Last())
			}
		}
		has(t, told, "because the plan names none: T1 (do T1)\n")
		has(t, r.results(m.ID, "update_todo")[0], "No files are named for T1: ")
	})
}
