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

// An item that its task has done, and that an agent opens and marks as done again, is proven by its own work alone: a test of other
// items' work fails without all of the mission's, too, and shows nothing of this one.
func TestMarkedAgainIsProvenByItsOwnWork(t *testing.T) {
	r := gitRig(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": steps(
			do(plans("- [ ] T1 Say hello", "  - verify: `sh hello_test.sh`", "- [ ] T2 Say more", "  - after: T1", "  - verify: `sh hello_test.sh`",
				"- [ ] T3 Say it all", "  - after: T2", "  - verify: `test -f all.txt`")),
			do(work("T1", "write hello")), say("I wait"), do(work("T2", "write more")), say("I wait"), do(work("T3", "write all")), say("I wait"),
			do(call("update_todo", args{"items": []args{{"id": "T2", "status": "open"}}})),
			do(call("update_todo", args{"items": []args{{"id": "T2", "status": "done"}}})), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			switch {
			case q.Step() > 1:
				return say("it is done")
			case strings.Contains(q.First(), "write more"):
				return do(sh("echo more > more.txt"))
			case strings.Contains(q.First(), "write all"):
				return do(sh("echo all > all.txt"))
			}
			return do(sh("echo hello > hello.txt; echo 'grep -q hello hello.txt' > hello_test.sh"))
		},
	})
	m := r.mission(centurion.MissionOptions{MaxRounds: 16})
	receipts, err := r.store.Receipts(r.ctx, m.ID)
	if err != nil {
		t.Fatal(err)
	}
	var proofs []string
	for _, x := range receipts {
		if x.Item == "T2" && !x.Final {
			proofs = append(proofs, string(x.Proof))
		}
	}
	equal(t, "T2, by its task and when it is marked again", strings.Join(proofs, " "), "unproven unproven")
}
