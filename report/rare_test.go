package report

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
)

// Each grade says what it is worth, and what a check did without the work is told as its last such run showed.
func TestWorthOfGrades(t *testing.T) {
	t.Parallel()
	r := &Report{Mission: centurion.Mission{Base: &centurion.Base{}}}
	for standing, want := range map[Standing]string{Proven: "Fails without the change", Regression: "Passes before and after the change: no more was required.", Passed: "Passes, but was not run without",
		Unproven: "may be unable to fail", Flaky: "had another result", NotRun: "Not run yet", Failed: "The last run failed"} {
		if got := r.worth(Check{Standing: standing}); !strings.Contains(got, want) {
			t.Errorf("%s: %q", standing, got)
		}
	}
	run := func(k centurion.RunKind, err, out string) centurion.CheckRun {
		return centurion.CheckRun{Kind: k, Error: err, Output: out}
	}
	green := centurion.CheckRun{Kind: centurion.RunGreen, Passed: true}
	for want, c := range map[string]*centurion.Receipt{
		"|":                                      nil,
		"the check was not run without it|":      {Runs: []centurion.CheckRun{green}},
		"the check did not run to its end|":      {Runs: []centurion.CheckRun{run(centurion.RunRed, "timeout", ""), green}},
		"the check was red|":                     {Runs: []centurion.CheckRun{run(centurion.RunRed, "", "bad"), green}},
		checkDied + "|want 1":                    {Runs: []centurion.CheckRun{green}, FailureLine: "want 1"},
		checkDied + "|exit status 1\nwant 2":     {Runs: []centurion.CheckRun{green, run(centurion.RunRedAgain, "", "exit status 1\nwant 2\n")}},
		"the check did not run to its end|| red": {Runs: []centurion.CheckRun{run(centurion.RunRed, "", ""), run(centurion.RunRedAgain, "timeout", "want 3"), green}},
	} {
		if got := without(c) + "|" + died(c); got != strings.TrimSuffix(want, "| red") {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := plainPatch("diff --git a/x b/x\nindex 1..2 100644\n@@ -1 +1 @@\nindex of it\n"); got != "diff --git a/x b/x\n@@ -1 +1 @@\nindex of it\n" {
		t.Errorf("a patch without its objects: %q", got)
	}
}

// What the host did to an attempt or a mission is told as a trouble, with what came of it; a mission that a person had stopped is no
// trouble when it is resumed.
func TestTroublesOfTheHost(t *testing.T) {
	t.Parallel()
	d := Data{Tasks: []centurion.Task{{ID: "a", Item: "T1", Title: "one"}}, Events: []centurion.Event{
		fact(0, centurion.EventMissionStarted, "", "", event.MissionData{}),
		fact(1, centurion.EventTaskStalled, "a", "", map[string]any{"silent_ms": 120_000, "last": "npm test"}),
		fact(2, centurion.EventTaskFenced, "a", "", map[string]any{"attempt": 2, "refused": "edit a.go"}),
		fact(3, centurion.EventBudgetExceeded, "", "", map[string]any{"limit": "max_cost"}),
		fact(4, centurion.EventMissionPaused, "", "", event.MissionEnd{}),
		fact(5, centurion.EventMissionResumed, "", "", event.MissionData{}),
		fact(6, centurion.EventMissionResumed, "", "", event.MissionData{})}}
	var got []string
	for _, x := range troubles(d) {
		got = append(got, x.Where+" | "+x.What+" | "+x.Then)
	}
	want := []string{"T1 one | nothing came from it for 2m: npm test | its turn was cut off and tried again",
		"T1 one | attempt 2 was superseded and still wanted to write: edit a.go | it was refused",
		"the mission | the limit max_cost was reached | the mission: paused",
		"the mission | its host went away | a new host continued from the stored state"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	got = nil
	for _, l := range Lanes(d).Lanes {
		for _, x := range l.Marks {
			got = append(got, string(x.Kind)+" "+x.Text)
		}
	}
	want = []string{string(MarkKill) + " nothing came from it: npm test", string(MarkKill) + " a superseded attempt was kept from writing: edit a.go"}
	if !slices.Equal(got, want) {
		t.Errorf("drawn: %q", got)
	}
}

// The text has the beginning of what is long, and how much more there is.
func TestMarkdownIsBounded(t *testing.T) {
	t.Parallel()
	d := sample()
	d.Receipts = d.Receipts[:1]
	d.Receipts[0].Removed = "--- a/x\n+++ b/x\n@@ -0,0 +1,100 @@ f\n" + strings.Repeat("+"+strings.Repeat("x", 99)+"\n", 100)
	for i := range maxRows + 3 {
		d.Events = append(d.Events, moved(5400, centurion.EventTaskQueued, fmt.Sprint("tsk_", i+10), centurion.TaskQueued, 0, ""),
			fact(5400, centurion.EventQuestionAsked, "", "", event.AskData{ID: fmt.Sprint("que_", i), Text: "q"}))
	}
	r := New(d)
	r.Models = r.Models[:1]
	var b bytes.Buffer
	if err := r.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| … | and 6 more |", "- … and 4 more\n", "lines more; the page has them", "All of it by `anthropic/opus`."} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it does not say %q in %s", want, regexp.MustCompile(".*more.*").FindAllString(b.String(), -1))
		}
	}
}

// Costs say what has no price, and a moment in a gap or before the start has a place on the axis.
func TestAmountsOfReports(t *testing.T) {
	t.Parallel()
	for want, u := range map[string]centurion.Usage{"$2.00": {USD: 2}, "no known price": {Unpriced: true}, "$2.00 and what has no known price": {USD: 2, Unpriced: true}} {
		if got := money(u); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for want, f := range map[string]centurion.FileChange{"binary": {Binary: true}, "": {}, "+1 −0": {Added: 1}, "+0 −2": {Deleted: 2}} {
		if got := (File{FileChange: f}).Lines(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	tl := Timeline{From: at(10), To: at(100), Gaps: []Gap{{From: at(20), To: at(60)}}}
	for sec, want := range map[int]time.Duration{5: 0, 15: 5, 20: 10, 40: 10, 60: 10, 70: 20, 900: 50} {
		if got := tl.at(at(sec)); got != want*time.Second {
			t.Errorf("second %d stands at %s", sec, got)
		}
	}
}
