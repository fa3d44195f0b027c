package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/provider/scripted"
)

// A test that asserts nothing is found out, and when it is mended later its item counts as proven: what the earlier task merged is
// taken out with it.
func TestMendedTestProvesItsItem(t *testing.T) {
	r := gitRig(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			switch {
			case q.Step() == 1:
				return do(plans("- [ ] T1 Say hello", "  - verify: `! test -f hello_test.sh || sh hello_test.sh`"))
			case q.Step() == 2:
				return do(work("T1", "write it"))
			case strings.Contains(q.Last(), "proves too little"):
				return do(work("T1", "mend the test"))
			case strings.Contains(q.Last(), "call mission_complete"):
				return complete()
			}
			return say("I wait")
		},
		"worker": func(q scripted.Request) scripted.Answer {
			switch {
			case q.Step() > 1:
				return say("it is done")
			case strings.Contains(q.First(), "mend the test"):
				return do(sh("echo 'grep -q hello hello.txt' > hello_test.sh"))
			}
			return do(sh("echo hello > hello.txt; echo true > hello_test.sh"))
		},
	})
	m := r.mission(centurion.MissionOptions{})
	if m.Status != centurion.MissionCompleted {
		r.dump(m.ID)
	}
	r.is(m, centurion.MissionCompleted, "")
	receipts, err := r.store.Receipts(r.ctx, m.ID)
	if err != nil || len(receipts) < 2 {
		t.Fatalf("receipts: %+v, %v", receipts, err)
	}
	equal(t, "at first", receipts[0].Proof, centurion.ProofUnproven)
	equal(t, "mended", receipts[1].Proof, centurion.ProofProven)
	has(t, receipts[1].Removed, "+hello")
	equal(t, "verified", m.Verified, 1)
}
