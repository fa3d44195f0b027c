package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/review"
	"centurion/provider/scripted"
)

// Work whose own test tells nothing of it goes back to its session once, with what was taken out and what would be right.
// Mended it is proven; else it is merged as what it is, and a review decides.
func TestHollowTestGoesBackOnce(t *testing.T) {
	const (
		check = "! test -f hello_test.sh || sh hello_test.sh"
		done  = "echo hello > hello.txt; echo true > hello_test.sh"
	)
	for name, test := range map[string]struct {
		verify, first, then string
		returns             int
		proof               centurion.Proof
	}{
		"what it printed is shown":   {check, strings.Replace(done, "echo true", "echo 'echo ok 1 - hello is looked at'", 1), "echo 'grep -q hello hello.txt' > hello_test.sh", 1, centurion.ProofProven},
		"it is mended":               {check, done, "echo 'grep -q hello hello.txt' > hello_test.sh", 1, centurion.ProofProven},
		"nothing is changed":         {check, done, "", 1, centurion.ProofUnproven},
		"changed, and hollow yet":    {check, done, "echo 'echo ok' > hello_test.sh", 1, centurion.ProofUnproven},
		"no test of its own":         {"! test -f other_test.sh || sh other_test.sh", "echo hello > hello.txt", "", 0, centurion.ProofUnproven},
		"a check that can only pass": {"true", done, "", 0, centurion.ProofUnproven},
	} {
		t.Run(name, func(t *testing.T) {
			r := gitRig(t, map[string]string{"go.txt": "go\n"}, map[string]script{
				"commander": func(q scripted.Request) scripted.Answer {
					switch {
					case q.Step() == 1:
						return do(plans("- [ ] T1 Say hello", "  - verify: `"+test.verify+"`"))
					case q.Step() == 2:
						return do(work("T1", "write it"))
					case strings.Contains(q.Last(), "proves too little"):
						return do(handTo("reviewer", "T1", "look at it"))
					case strings.Contains(q.Last(), "call mission_complete"):
						return complete()
					}
					return say("I wait")
				},
				"worker": func(q scripted.Request) scripted.Answer {
					switch {
					case q.Step() == 1:
						return do(sh(test.first))
					case strings.Contains(q.Last(), "proves nothing") && test.then != "":
						return do(sh(test.then))
					}
					return say("it is done")
				},
				"reviewer": steps(say("PASS")),
			})
			m := r.mission(centurion.MissionOptions{})
			if m.Status != centurion.MissionCompleted {
				r.dump(m.ID)
			}
			r.is(m, centurion.MissionCompleted, "")
			one := r.tasks(m.ID)[0]
			equal(t, "returns", one.Returns, test.returns)
			back := r.events(m.ID, centurion.EventTaskReturned)
			equal(t, "returned", len(back), test.returns)
			receipts, err := r.store.Receipts(r.ctx, m.ID)
			if err != nil {
				t.Fatal(err)
			}
			newest := review.Newest(receipts, "T1", test.verify)
			equal(t, "proof", newest.Proof, test.proof)
			if test.returns == 0 {
				return
			}
			d, err := event.Decode[event.ReturnData](back[0])
			if err != nil || d.Cause != event.ReturnedHollow || d.Command != check {
				t.Errorf("%+v, %v", d, err)
			}
			told := ""
			for _, q := range r.requests("worker") {
				if q.Session == one.Session && strings.Contains(q.Last(), "proves nothing") {
					told = q.Last()
				}
			}
			has(t, told, "the check is green without the work too", check, "+hello", "What would be right: a test that this command runs, that fails without your work")
			if strings.HasPrefix(name, "what it printed") {
				has(t, told, "The command printed this without your work", "<output>\nok 1 - hello is looked at\n</output>", "Try it yourself before you end: take out what the work does")
			}
			if strings.Contains(told, "a person is asked") {
				t.Error("the worker is told of a person who will not be asked")
			}
		})
	}
}
