package orchestrator

import (
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/provider/scripted"
)

// What a worker changes outside of its item's files is named to the Commander and to the reviewer, apart from what the plan gives it.
func TestFilesOutsideOfAnItemAreNamed(t *testing.T) {
	for name, isolation := range map[string]string{"in a checkout": "", "in one directory": centurion.IsolationShared} {
		t.Run(name, func(t *testing.T) {
			var brief string
			r := gitRig(t, map[string]string{"a.txt": "a\n"}, map[string]script{
				"commander": steps(do(barePlan("- [ ] T1 One\n  - files: config/**\n- [ ] T2 Two\n  - files: two.txt\n- [ ] T3 Review @reviewer\n  - after: T1, T2")),
					do(work("T1", "x"), work("T2", "y"), call("delegate_task", args{"agent": "reviewer", "item": "T3", "description": "review", "prompt": "look"})), say("I wait"), say("well")),
				"worker": func(req scripted.Request) scripted.Answer {
					if strings.Contains(fmt.Sprint(req.Messages()), "Item T2") {
						return steps(do(writes("two.txt", "2\n")), say("two"))(req)
					}
					return steps(do(writes("config/a.txt", "c\n"), writes("README.md", "r\n")), say("one"))(req)
				},
				"reviewer": func(req scripted.Request) scripted.Answer {
					brief = fmt.Sprint(req.Messages())
					return steps(do(look), say("PASS"))(req)
				},
			})
			m := r.mission(centurion.MissionOptions{Isolation: isolation})
			r.is(m, centurion.MissionCompleted, "")
			for _, task := range r.tasks(m.ID) {
				want := map[string]string{"T1": "README.md"}[task.Item]
				equal(t, "outside of "+task.Item, strings.Join(task.Outside, " "), want)
			}
			told := fmt.Sprint(r.requests("commander")[len(r.requests("commander"))-1].Messages())
			has(t, told, "Outside its files: README.md (the plan gives it config/**)")
			equal(t, "tasks of which it is said", strings.Count(told, "Outside its files"), 1)
			has(t, brief, "files were changed that the plan does not give to the item:", "T1, outside its files: README.md (the plan gives it config/**)")
		})
	}
}
