package report

import (
	"strings"
	"testing"

	"centurion"
	"centurion/event"
)

// Issue "What real use showed", C.18: what was taken out is shown as removed.
func TestReversed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ patch, want string }{
		"a new file": {"diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+one\n",
			"diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"},
		"a change": {"--- a/x\n+++ b/x\n@@ -1,3 +1,4 @@ func F\n same\n-old\n+new\n+more\n end\n",
			"--- a/x\n+++ b/x\n@@ -1,4 +1,3 @@ func F\n same\n-new\n-more\n+old\n end\n"},
		"lines that look like headers": {"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- was\n+++ is\n same\n", "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-++ is\n+-- was\n same\n"},
		"no line feed at the end":      {"@@ -1 +1 @@\n-old\n\\ No newline\n+new\n\\ No newline\n", "@@ -1 +1 @@\n-new\n\\ No newline\n+old\n\\ No newline\n"},
		"a heading":                    {"Taken out so that this function does nothing: F.\n@@ -1 +1,2 @@\n a\n+b\n", "Taken out so that this function does nothing: F.\n@@ -1,2 +1 @@\n a\n-b\n"},
		"nothing":                      {"", ""},
	} {
		if got := reversed(tt.patch); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

// Issue "What real use showed", C.18: two runs before the work are told apart, and a red that is wanted is no red box.
func TestRunsAreToldApart(t *testing.T) {
	t.Parallel()
	runs := []centurion.CheckRun{{Kind: centurion.RunRed}, {Kind: centurion.RunRed, Out: "functions that do nothing"}, {Kind: centurion.RunGreen, Passed: true},
		{Kind: centurion.RunRedAgain}}
	var got []string
	for i, r := range runs {
		got = append(got, runWord(runs, i)+": "+runBadge(r))
	}
	want := "before the work (1 of 2): none|with functions that do nothing (2 of 2): none|with the work: good|work taken out: none"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("%s\nwant %s", s, want)
	}
	if s := runWord(runs[1:2], 0) + "|" + runWord(runs[:1], 0) + "|" + runBadge(centurion.CheckRun{Kind: centurion.RunGreen}); s != "with functions that do nothing|before the work|bad" {
		t.Errorf("alone: %s", s)
	}
	// A check that passes without the work has shown nothing good.
	for _, k := range []centurion.CheckRun{{Kind: centurion.RunRed, Passed: true}, {Kind: centurion.RunRedAgain, Passed: true}} {
		if s := runBadge(k); s != "none" {
			t.Errorf("passed without the work (%s): %s", k.Kind, s)
		}
	}
}

// Issue "What real use showed", C.18: the commander's work begins at its request, not at the mission's start.
func TestCommanderBeginsAtItsRequest(t *testing.T) {
	t.Parallel()
	d := Data{Mission: centurion.Mission{ID: "m", Session: "ses_root", Status: centurion.MissionCompleted}, Now: at(99), Events: []centurion.Event{
		fact(0, centurion.EventMissionStarted, "", "ses_root", event.MissionData{Agent: "commander"}),
		fact(1, centurion.EventMessageCreated, "", "ses_root", map[string]any{"role": "user", "origin": "person"}),
		fact(20, centurion.EventMessageCreated, "", "ses_root", map[string]any{"role": "assistant"}),
		fact(30, centurion.EventMissionCompleted, "", "ses_root", event.MissionEnd{})}}
	spans := Lanes(d).Lanes[0].Spans
	if len(spans) != 2 || spans[0].Kind != SpanWait || spans[1].Kind != SpanWork || !spans[1].From.Equal(at(20).Time) {
		t.Errorf("it worked %+v", spans)
	}
}

// Issue "What real use showed", C.18: that a file was not touched is said only where its agent has not changed it.
func TestRefusedFile(t *testing.T) {
	t.Parallel()
	d := Data{Tasks: []centurion.Task{{ID: "a", Files: []string{"lib/x.go"}}, {ID: "b", Landed: []centurion.Landed{{Files: []centurion.FileChange{{Path: "lib/x.go"}}}}}, {ID: "c", Files: []string{"y.go"}}}}
	for task, want := range map[string]string{"a": "it changed the file at another time", "b": "it changed the file at another time", "c": "the file was not touched", "": "the file was not touched"} {
		if got := refusedFile(d, task, "lib/x.go belongs to item T2"); got != want {
			t.Errorf("task %q: %s", task, got)
		}
	}
}
