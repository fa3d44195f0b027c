package tui

import (
	"bytes"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/event/view"
)

// What proves too little is told with the review that has passed it, at the end of a run and in show; what none has passed
// stands there alone.
func TestReviewedIsTold(t *testing.T) {
	s := newStage().wait(0).at(centurion.EventMissionCompleted, "ses_0", "", event.MissionEnd{Tally: centurion.Tally{Verified: 2, Unverified: 1,
		Unproven: []string{"T1", "T2"}, Flaky: []string{"T3"}, Reviewed: map[string]centurion.PassedBy{"T1": {Task: "tsk_7", Address: "0/7"}, "T3": {Address: "0/8\x1b[1m"}, "T4": {Task: "tsk_7", Address: "0/7"}},
		CancelledItems: []string{"T5", "T6\x1b[1m"}}})
	const told = "2 verified, 1 not, unproven: T1 (reviewed by agent 0/7) T2, flaky: T3 (reviewed by agent 0/8), cancelled: T5 T6"
	if got := proofText(s.board(), s.board().End); got != strings.Replace(told, "2 verified", "2 verified (1 by a review alone)", 1) {
		t.Errorf("at the end: %s", got)
	}
	var b bytes.Buffer
	m := &centurion.Mission{ID: "msn_1", Goal: "x", Tally: centurion.Tally{Verified: 2, Unverified: 1, Unproven: []string{"T1", "T2"}, Flaky: []string{"T3"},
		Reviewed: map[string]centurion.PassedBy{"T1": {Address: "0/7"}, "T3": {Address: "0/8"}}, CancelledItems: []string{"T5", "T6"}}}
	if err := Show(&b, Shown{Mission: m}, ShowOptions{Width: 200, Now: curtain}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), told) {
		t.Errorf("show:\n%s", b.String())
	}
}

// What the reason says already is not said again.
func TestWeakenedChecksAreToldOnce(t *testing.T) {
	var f fact
	(&story{}).worth(&f, view.Fact{Proof: centurion.ProofUnproven, Why: "checks were weakened: a.sh was changed", Weakened: []string{"a.sh was changed", "b_test.go was removed"}})
	if got, want := strings.Join(f.body, "|"), "a check is weaker now: b_test.go was removed"; f.mark != "!" || got != want {
		t.Errorf("%s %q, want %q", f.mark, got, want)
	}
}
