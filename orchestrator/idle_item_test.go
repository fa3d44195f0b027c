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

// Checks that can only pass and a PASS do not show that an item is done for which no file was changed: it needs work, or another check.
func TestIdleItemNeedsMoreThanPass(t *testing.T) {
	for name, c := range map[string]struct {
		check, review string
		done          bool
	}{
		"can only pass":       {"true", "PASS", false},
		"could fail":          {"test -f base.txt", "PASS", true},
		"without a check":     {"", "PASS\n\nIt looks good to me.", false},
		"with a reason":       {"", "PASS\nNothing had to be changed: base.txt has the text since the first commit.", true},
		"a reason proves not": {"true", "PASS\nNothing had to be changed: base.txt has the text since the first commit.", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := []string{"- [ ] T1 One"}
			if c.check != "" {
				plan = append(plan, "  - verify: `"+c.check+"`")
			}
			r := inRepo(t, map[string]string{"base.txt": "base\n"}, map[string]script{
				"commander": steps(do(call("write", args{"filePath": "own.txt", "content": "x\n"})), do(barePlan(plan...)), do(work("T1", "do it")), say("I wait"), do(handTo("reviewer", "T1", "look")), say("I wait"),
					do(call("mission_complete", args{"summary": "done"})), do(call("update_todo", args{"items": []args{{"id": "T1", "status": "cancelled", "note": "not needed"}}})),
					do(call("mission_complete", args{"summary": "done"})), say("bye")),
				"worker":   steps(say("all done, the tests pass")),
				"reviewer": steps(do(look), say(c.review)),
			})
			m := r.mission(centurion.MissionOptions{})
			refused := strings.Contains(strings.Join(r.results(m.ID, "mission_complete"), "\n"), "a review had nothing to look at")
			if equal(t, "refused", refused, !c.done); c.done {
				equal(t, "evidence", m.Evidence, map[bool]centurion.Evidence{true: centurion.EvidenceChecked, false: centurion.EvidenceReviewed}[c.check != ""])
			}
		})
	}
}

// Who mends an item after a review is given what the review found, also if the Commander does not say it.
func TestMendIsGivenFindings(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"base.txt": "base\n"}, map[string]script{
		"commander": steps(do(barePlan("- [ ] T1 One")), do(work("T1", "do it")), say("I wait"), do(handTo("reviewer", "T1", "look")), say("I wait"),
			do(work("T1", "mend it")), say("I wait"), do(handTo("reviewer", "T1", "look again")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "mend it") {
				return steps(do(call("write", args{"filePath": "a.txt", "content": "right\n"})), say("mended"))(q)
			}
			return steps(do(call("write", args{"filePath": "first.txt", "content": "wrong\n"})), say("made"))(q)
		},
		"reviewer": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "look again") {
				return say("PASS")
			}
			return say("FAIL\nfirst.txt is wrong: the file is called a.txt")
		},
	})
	r.mission(centurion.MissionOptions{})
	for _, q := range r.requests("worker") {
		equal(t, "told what was found", strings.Contains(q.First(), "What the review of T1 found:\nFAIL\nfirst.txt is wrong"), strings.Contains(q.First(), "mend it"))
	}
}
