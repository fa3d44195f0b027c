package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/provider/scripted"
)

// The checks of an item hold for a session that is resumed to go on with it as for one that begins: they are no changed ones.
func TestResumedWorkIsProven(t *testing.T) {
	t.Parallel()
	id := ""
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			switch {
			case q.Step() == 1:
				return do(plans("- [ ] T1 One", "  - verify: `exists a.txt`"))
			case q.Step() == 2:
				return do(work("T1", makeA))
			case q.Step() == 3:
				id = nameIn(q.Last())
				return do(mark("T1", "open"))
			case q.Step() == 4:
				return do(call("delegate_task", args{"agent": "worker", "description": "d", "prompt": "and b.txt", "item": "T1", "resume": id}))
			case strings.Contains(q.Last(), "call mission_complete"):
				return complete()
			}
			return say("I wait")
		},
		"worker": func(q scripted.Request) scripted.Answer {
			switch q.Step() {
			case 1:
				return do(writes("a.txt", "a\n"))
			case 3:
				return do(writes("b.txt", "b\n"))
			}
			return say("made it")
		},
	})
	m := r.mission(centurion.MissionOptions{})
	if m.Status != centurion.MissionCompleted || len(m.Unproven) > 0 {
		r.dump(m.ID)
	}
	r.is(m, centurion.MissionCompleted, "")
	equal(t, "unproven", strings.Join(m.Unproven, " "), "")
	tasks := r.tasks(m.ID)
	equal(t, "tasks", len(tasks), 2)
	equal(t, "checks of the resumed task", strings.Join(tasks[1].Verify, "; "), "exists a.txt")
	equal(t, "b.txt", r.branchHas(m.ID, "b.txt"), "b")
}

// That a worker has changed nothing is told beside what it says.
func TestNothingDoneIsTold(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - verify: `exists go.txt`", "- [ ] T2 Two", "  - verify: `exists a.txt`")), do(work("T1", "write it"), work("T2", makeA)), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), makeA) && q.Step() == 1 {
				return do(writes("a.txt", "a\n"))
			}
			return say("all of it is written and tested")
		},
	})
	m := r.mission(centurion.MissionOptions{})
	equal(t, "times that it is told", r.told(m.Session, "It changed no file."), 1)
}
