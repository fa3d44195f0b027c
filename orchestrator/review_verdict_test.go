package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/provider/scripted"
)

// ORCH-5: a verdict is read with a label and behind a first line, too. An answer without one goes back to its session once; a second one
// is told to the Commander as no verdict, and the item still needs a review.
func TestReviewWithoutVerdict(t *testing.T) {
	const sentBack = "Begin your answer with one word, PASS or FAIL"
	for name, test := range map[string]struct {
		answers []string // of the reviews, over all their sessions
		plan    []string
		item    string
		reviews int // tasks of reviewers
		back    int // answers that were sent back
	}{
		"a label":                {[]string{"I read a.txt.\n\n**Verdict:** PASS"}, []string{"- [ ] T1 One"}, "T1", 1, 0},
		"none at first":          {[]string{"Looks good to me.", "PASS"}, []string{"- [ ] T1 One"}, "T1", 1, 1},
		"none at first, faults":  {[]string{"Hm.", "FAIL: a.txt is empty", "PASS"}, []string{"- [ ] T1 One"}, "T1", 2, 1},
		"none at all":            {[]string{"Looks good.", "As I said: it looks good.", "PASS"}, []string{"- [ ] T1 One"}, "T1", 2, 1},
		"none, by a review item": {[]string{"Looks good.", "It does.", "PASS"}, []string{"- [ ] T1 One", "- [ ] T2 Look @reviewer", "  - after: T1"}, "T2", 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			answered := 0
			bubble(t, map[string]script{
				"commander": func(q scripted.Request) scripted.Answer {
					switch last := q.Last(); {
					case q.Step() > 30:
						return say("I give up.")
					case q.Step() == 1:
						return do(barePlan(test.plan...))
					case q.Step() == 2, strings.Contains(last, "has found faults"):
						return do(work("T1", "make it"))
					case strings.Contains(last, "T1 needs a review"), strings.Contains(last, "Can be started: T2"):
						return do(handTo("reviewer", test.item, "look at it"))
					case strings.Contains(last, "call mission_complete"):
						return complete()
					}
					return say("I wait")
				},
				"reviewer": func(q scripted.Request) scripted.Answer {
					if q.Step() == 1 {
						return do(look)
					}
					answered++
					if strings.Contains(q.Last(), sentBack) != (answered == 2 && test.back > 0) {
						t.Errorf("answer %d follows:\n%s", answered, q.Last())
					}
					return say(test.answers[answered-1])
				},
			}, func(r *rig) {
				m := r.mission(centurion.MissionOptions{})
				r.is(m, centurion.MissionCompleted, "")
				equal(t, "answers", answered, len(test.answers))
				reviews := 0
				for _, x := range r.tasks(m.ID) {
					if x.Agent != "reviewer" {
						continue
					}
					reviews++
					if void := strings.HasPrefix(name, "none at all") || strings.HasPrefix(name, "none, by"); void && reviews == 1 {
						equal(t, "reason", x.Reason, "no verdict")
					}
				}
				equal(t, "reviews", reviews, test.reviews)
				back := r.events(m.ID, centurion.EventTaskReturned)
				equal(t, "returned", len(back), test.back)
				for _, e := range back {
					d, err := event.Decode[event.ReturnData](e)
					if err != nil || d.Cause != event.ReturnedVerdict {
						t.Errorf("%+v, %v", d, err)
					}
				}
				void := test.reviews == 2 && !strings.Contains(name, "faults")
				equal(t, "notices of no verdict", r.told(m.Session, "gave no verdict"), map[bool]int{true: 1}[void])
				if void {
					equal(t, "what to do", r.told(m.Session, test.item+" still needs a review"), 1)
				}
				has(t, r.read(todoMD), "[x] "+test.item)
			})
		})
	}
}
