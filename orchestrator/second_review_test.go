package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/provider/scripted"
)

// A second review in a session of its own is told what the first one found and shown what was merged since, with the files of all changes: not
// the diff that was judged before.
func TestSecondReviewSeesWhatIsNew(t *testing.T) {
	for name, item := range map[string]string{"of an item": "T2", "of the whole": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := inRepo(t, map[string]string{"base.txt": "base\n"}, map[string]script{
				"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Review @reviewer", "  - after: T1")), do(work("T1", "write first.txt")), say("I wait"),
					do(handTo("reviewer", item, "look")), say("I wait"), do(work("", "write second.txt")), say("I wait"), do(handTo("reviewer", item, "look again")), say("I wait")),
				"worker": func(q scripted.Request) scripted.Answer {
					file := "first.txt"
					if strings.Contains(q.First(), "second.txt") {
						file = "second.txt"
					}
					return steps(do(call("write", args{"filePath": file, "content": "the text of " + file + "\n"})), say("made"))(q)
				},
				"reviewer": func(q scripted.Request) scripted.Answer {
					if strings.Contains(q.First(), "look again") {
						return say("PASS: seen")
					}
					return say("FAIL\nfirst.txt:1 says too little")
				},
			})
			r.mission(centurion.MissionOptions{})
			asked := r.requests("reviewer")
			first, second := asked[0].First(), asked[len(asked)-1].First()
			has(t, first, "+the text of first.txt")
			has(t, second, "look again", "first.txt:1 says too little", "- added first.txt", "+the text of second.txt")
			for _, text := range []string{"+the text of first.txt", "everything that the mission has changed"} {
				if strings.Contains(second, text) {
					t.Errorf("the second review is told %q again:\n%s", text, second)
				}
			}
		})
	}
}
