package report

import (
	"strings"
	"testing"
	"time"

	"centurion"
)

// The headline says how a mission ended or how it is, how much is done, how long it worked, waited and took, and what that cost.
func TestHeadline(t *testing.T) {
	written := centurion.Time{Time: time.Date(2026, 3, 1, 12, 34, 56, 0, time.UTC)}
	for status, word := range map[centurion.MissionStatus]string{centurion.MissionCompleted: "Complete", centurion.MissionFailed: "Failed", centurion.MissionPaused: "Paused", centurion.MissionBlocked: "Blocked",
		centurion.MissionCancelled: "Cancelled", centurion.MissionPlanning: "Planning: as of " + clock(written), centurion.MissionRunning: "Running: as of " + clock(written), "": "Unknown", "new": "new"} {
		m := centurion.Mission{Status: status, ElapsedMS: 62_000, Evidence: centurion.EvidenceProven, Usage: centurion.Usage{USD: 1.5, Tokens: centurion.Tokens{Input: 1200, Output: 300}}}
		r := &Report{Mission: m, Written: written, WallMS: 3_700_000, HeldMS: 2000, Running: status.Alive(), Counts: Counts{Items: 2, Done: 1}}
		want := word + " · 1 of 2 items done · 1m at work · 2s waiting for a person · 1h01m by the clock · $1.50 · 1.5k tokens"
		if got := r.headline(); got != want {
			t.Errorf("%s: %s\nwant %s", status, got, want)
		}
	}
	bare := &Report{Mission: centurion.Mission{Status: centurion.MissionCompleted, Evidence: centurion.EvidenceNone}, HeldMS: 999, WallMS: 60_000}
	if got, want := bare.headline(), "Complete, not verified · $0.00 · 0 tokens"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What a check said without the work is its most telling line, else the end of the run that failed as it should.
func TestWhatACheckSaid(t *testing.T) {
	run := func(kind centurion.RunKind, passed bool, output string) centurion.CheckRun {
		return centurion.CheckRun{Kind: kind, Passed: passed, Output: output}
	}
	red := centurion.Receipt{Proof: centurion.ProofProven, FailureLine: "FAIL: x", Runs: []centurion.CheckRun{run(centurion.RunRedAgain, false, "all of it")}}
	if got := died(&red); got != "FAIL: x" {
		t.Errorf("its line: %q", got)
	}
	red.FailureLine = ""
	red.Runs = []centurion.CheckRun{run(centurion.RunRed, false, "before"), run(centurion.RunRedAgain, false, "first\nlast\n")}
	if got := died(&red); got != "first\nlast" {
		t.Errorf("its end: %q", got)
	}
	if got := tail(strings.Repeat("a", 10)+"\n"+strings.Repeat("b", 10)+"\n\n", 15); got != "…\n"+strings.Repeat("b", 10) {
		t.Errorf("the end of a text: %q", got)
	}
}
