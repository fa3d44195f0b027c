package tui

import (
	"bytes"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
)

// landings is work on its way onto the mission's branch: proven, unproven, flaky, weakened, in conflict, returned, merged.
func landings() *stage {
	check := func(item, command string, proof centurion.Proof) event.VerifyData {
		return event.VerifyData{Command: command, Item: item, DurationMS: 1200, Proof: proof}
	}
	proven := check("T1", "go test ./config/...", centurion.ProofProven)
	proven.FailureLine = "--- FAIL: TestLimits (0.00s)\x1b[2J"
	unproven := check("T2", "true", centurion.ProofUnproven)
	unproven.Why = "the check is green without the work too"
	flaky := check("T2", "go test ./limit/...", centurion.ProofFlaky)
	flaky.Why = "run again on the same files, it ended otherwise"
	weaker := check("T3", "make docs", centurion.ProofUnproven)
	weaker.Why, weaker.Weakened = "checks were weakened", []string{"docs_test.go was deleted"}
	early := event.VerifyData{Command: "go vet ./...", ExitCode: 1, Early: true, Output: "vet: undefined: x"}
	return newStage().workers().
		at(centurion.EventMissionUpdated, "ses_0", "", data{"base": centurion.Base{Commit: "0a1b2c3d4e5f", Head: "99887766554433", Branch: "main", Dirty: 3}}).
		at(centurion.EventMissionUpdated, "ses_0", "", data{"base": centurion.Base{Commit: "0a1b2c3d4e5f", Head: "99887766554433", Branch: "main", Dirty: 3}}). // said once
		at(centurion.EventTaskVerifying, "ses_T1", "tsk_T1", data{"status": "verifying"}).
		at(centurion.EventVerifyPassed, "", "tsk_T1", proven).
		at(centurion.EventVerifyFailed, "", "", early).
		at(centurion.EventVerifyFailed, "", "", early). // said once
		at(centurion.EventMergeDone, "", "tsk_T1", event.MergeData{Branch: "centurion/msn_1/mission", Commit: "0123456789abcdef", Files: []string{"config/limits.go"}}).
		at(centurion.EventMergeConflict, "", "tsk_T2", event.MergeData{Branch: "centurion/msn_1/mission", Files: []string{"config/limits.go", "go.mod"}}).
		at(centurion.EventVerifyPassed, "", "tsk_T2", unproven).
		at(centurion.EventVerifyPassed, "", "tsk_T2", flaky).
		at(centurion.EventVerifyPassed, "", "tsk_T3", weaker).
		at(centurion.EventVerifyPassed, "", "tsk_T3", check("T3", "make docs", centurion.ProofRegression)).
		at(centurion.EventMergeDone, "", "", event.MergeData{Branch: "main", Commit: "fedcba9876543210", Files: []string{"a"}, Person: true})
}

// What is proven is said, and so is what is not.
func TestLandings(t *testing.T) {
	var out bytes.Buffer
	if err := RunPlain(t.Context(), &out, landings().seqOf()); err != nil {
		t.Fatal(err)
	}
	golden(t, "landing-plain", out.String())
	golden(t, "landing", landings().view(t, 100, 30, Options{}).screen())
}

// A renamed file stands in an event under both its names, and is one file all the same.
func TestMergedFilesAreCountedOnce(t *testing.T) {
	d := event.MergeData{Branch: "main", Commit: "fedcba9876543210", Person: true}.WithFiles([]centurion.FileChange{{Path: "b", Old: "a"}, {Path: "c"}})
	if len(d.Files) != 3 {
		t.Errorf("the event has %q", d.Files)
	}
	var out bytes.Buffer
	if err := RunPlain(t.Context(), &out, newStage().at(centurion.EventMergeDone, "", "", d).seqOf()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "2 files") {
		t.Errorf("it says %q", out.String())
	}
}
