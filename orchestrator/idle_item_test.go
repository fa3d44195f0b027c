package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/provider/scripted"
)

// A reviewer is told which of its items were ticked although nothing was changed for them, and is not shown other work as theirs.
func TestReviewerHearsOfIdleItem(t *testing.T) {
	for name, item := range map[string]string{"of the item": "T2", "of a review item": "T3", "of the whole": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := inRepo(t, map[string]string{"base.txt": "base\n"}, map[string]script{
				"commander": steps(do(barePlan("- [ ] T1 One", "- [ ] T2 Two", "- [ ] T3 Look @reviewer", "  - after: T1, T2")), do(work("T1", "write first.txt"), work("T2", "look at it")), say("I wait"),
					do(handTo("reviewer", item, "look")), say("I wait")),
				"worker": func(q scripted.Request) scripted.Answer {
					if strings.Contains(q.First(), "write first.txt") {
						return steps(do(call("write", args{"filePath": "first.txt", "content": "the text of it\n"})), say("made"))(q)
					}
					return say("nothing to do")
				},
				"reviewer": steps(say("PASS")),
			})
			m := r.mission(centurion.MissionOptions{})
			first := r.requests("reviewer")[0].First()
			has(t, first, "Nothing was changed for T2: its task changed no file.")
			equal(t, "shows the work of T1", strings.Contains(first, "+the text of it"), item != "T2")
			equal(t, "told the Commander", r.told(m.Session, "It changed no file."), 1)
		})
	}
}
