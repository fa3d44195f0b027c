package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator/review"
	"centurion/provider/scripted"
)

// Work whose check ran no test goes back with that sentence as long as it changes and no person would be called; then a review decides.
func TestCheckWithoutTestGoesBack(t *testing.T) {
	const check = "sh t.sh"
	for name, test := range map[string]struct {
		then    []string // what the worker does each time that its work comes back
		returns int
		proof   centurion.Proof
	}{
		"the test is written":   {[]string{"echo 'grep -q hello hello.txt' > hello_test.sh"}, 1, centurion.ProofProven},
		"at the second return":  {[]string{"echo more >> hello.txt", "echo 'grep -q hello hello.txt' > hello_test.sh"}, 2, centurion.ProofProven},
		"nothing is changed":    {nil, 1, centurion.ProofUnproven},
		"never, and it changes": {[]string{"echo b >> hello.txt", "echo c >> hello.txt", "echo d >> hello.txt"}, 3, centurion.ProofUnproven},
	} {
		t.Run(name, func(t *testing.T) {
			back := 0
			r := gitRig(t, map[string]string{"t.sh": "test -f hello_test.sh || echo 'testing: warning: no tests to run'\ntest ! -f hello_test.sh || sh hello_test.sh\n"}, map[string]script{
				"commander": func(q scripted.Request) scripted.Answer {
					switch {
					case q.Step() == 1:
						return do(plans("- [ ] T1 Say hello", "  - verify: `"+check+"`"))
					case q.Step() == 2:
						return do(work("T1", "write it"))
					case strings.Contains(q.Last(), "proves too little"):
						return do(handTo("reviewer", "T1", "look at it"))
					}
					return say("I wait")
				},
				"worker": func(q scripted.Request) scripted.Answer {
					if q.Step() == 1 {
						return do(sh("echo hello > hello.txt"))
					}
					if strings.Contains(q.Last(), "it ran no test: testing: warning: no tests to run") && back < len(test.then) {
						back++
						return do(sh(test.then[back-1]))
					}
					return say("it is done")
				},
				"reviewer": steps(say("PASS")),
			})
			m := r.mission(centurion.MissionOptions{})
			r.is(m, centurion.MissionCompleted, "")
			equal(t, "returns", r.tasks(m.ID)[0].CameBack, test.returns)
			receipts, err := r.store.Receipts(r.ctx, m.ID)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "proof", review.Newest(receipts, "T1", check).Proof, test.proof)
		})
	}
}
