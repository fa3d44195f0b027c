package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/provider/scripted"
)

// A review with an item of its own counts until a merge after it began changes a file that it judged: then it is asked for anew.
func TestReviewGoesStale(t *testing.T) {
	for name, test := range map[string]struct {
		file         string
		own, refused bool // own: the Commander changes it itself
	}{
		"a judged file":                {"first.txt", false, true},
		"another":                      {"other.txt", false, false},
		"a judged file, the Commander": {"first.txt", true, true},
		"another, the Commander":       {"other.txt", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, refused := test.file, test.refused
			change := []scripted.Answer{do(work("", "write "+file+" anew")), say("I wait")}
			if test.own {
				change = []scripted.Answer{do(call("read", args{"filePath": file})), do(call("write", args{"filePath": file, "content": "made anew\n"}))}
			}
			played := append([]scripted.Answer{do(plans("- [ ] T1 One", "- [ ] T2 Review @reviewer", "  - after: T1")), do(work("T1", "write first.txt")), say("I wait"),
				do(handTo("reviewer", "T2", "look")), say("I wait")}, change...)
			again := say("nothing more")
			if refused {
				again = do(handTo("reviewer", "T2", "look again"))
			}
			r := inRepo(t, map[string]string{"base.txt": "base\n"}, map[string]script{
				"commander": steps(append(played, complete(), again, say("I wait"), complete())...),
				"worker": func(q scripted.Request) scripted.Answer {
					name, text := "first.txt", "made"
					if strings.Contains(q.First(), "anew") {
						name, text = file, "made anew"
					}
					return steps(do(call("read", args{"filePath": name})), do(call("write", args{"filePath": name, "content": text + "\n"})), say("made"))(q)
				},
				"reviewer": steps(say("PASS")),
			})
			m := r.mission(centurion.MissionOptions{})
			r.is(m, centurion.MissionCompleted, "")
			said := r.results(m.ID, "mission_complete")[0]
			equal(t, "refused: "+said, strings.Contains(said, "item T2 (Review): it is a review that has not passed since the files that it judges were changed; "), refused)
			asked := r.requests("reviewer")
			if equal(t, "reviews", len(asked) > 1, refused); refused {
				has(t, asked[1].First(), "# What the review before yours found", "+made anew")
			}
		})
	}
}
