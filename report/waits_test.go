package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/event"
)

// troublesOf tells the troubles of a mission with these events as lines, and how many marks of each kind its lanes have.
func troublesOf(d Data) (lines []string, marks map[MarkKind]int) {
	r := New(d)
	for _, x := range r.Troubles {
		lines = append(lines, x.Where+" | "+x.What+" | "+x.Then)
	}
	return lines, r.Timeline.marked()
}

// However many sessions wait because a provider asked for it, it is one trouble, and the provider's; only who was refused has tried again.
func TestProviderAsksToWait(t *testing.T) {
	t.Parallel()
	asks := func(sec int, task string, waits int64, reason, failure string) centurion.Event {
		return fact(sec, centurion.EventProviderRetry, task, "ses_"+task, event.RetryData{WaitMS: waits, Reason: reason, Error: failure})
	}
	d := Data{Mission: centurion.Mission{ID: "m", Session: "ses_root", Status: centurion.MissionCompleted}, Now: at(999),
		Sessions: []centurion.Session{{ID: "ses_e", Model: &centurion.SessionModel{Provider: "other", ID: "big"}}}}
	d.Mission.Options.Model = "custom/mind"
	d.Events = []centurion.Event{fact(0, centurion.EventMissionStarted, "", "ses_root", event.MissionData{})}
	for _, task := range []string{"a", "b", "c", "d", "e"} {
		d.Events = append(d.Events, moved(1, centurion.EventTaskStarted, task, centurion.TaskRunning, 1, ""))
	}
	d.Events = append(d.Events,
		asks(10, "b", 2200, "gate", ""), // told before the one who was refused
		asks(10, "a", 2200, "rate limit", "call custom/mind: slow down (status 429)"),
		asks(10, "c", 2600, "gate", ""),
		asks(12, "a", 900, "gate", ""), // its turn was not yet
		asks(12, "e", 700, "gate", ""), // at another model
		asks(11, "d", 400, "retry", "call custom/mind: overloaded (status 529)"),
		asks(60, "a", 3000, "rate limit", "call custom/mind: again"), asks(61, "a", 4000, "rate limit", "call custom/mind: and again"),
		fact(90, centurion.EventMissionCompleted, "", "ses_root", event.MissionEnd{}))
	got, marks := troublesOf(d)
	if d := cmp.Diff([]string{"the provider of custom/mind | asked to wait 2.2s: slow down (status 429) | 3 sessions waited",
		"the provider of other/big | asked to wait 700ms | 1 session waited",
		"d | call custom/mind: overloaded (status 529) | tried again after 400ms",
		"the provider of custom/mind | asked 2 times to wait, at most 4s: again | 1 session waited"}, got); d != "" {
		t.Error(d)
	}
	if marks[MarkRetry] != 4 {
		t.Errorf("it was tried again %d times", marks[MarkRetry])
	}
}

// Attempts that begin because the mission goes on are told with it; one that begins later is a failure of its own.
func TestAttemptsAfterARestart(t *testing.T) {
	t.Parallel()
	d := Data{Mission: centurion.Mission{ID: "m", Session: "ses_root", Status: centurion.MissionCompleted}, Now: at(999), Events: []centurion.Event{
		fact(0, centurion.EventMissionStarted, "", "ses_root", event.MissionData{}),
		moved(1, centurion.EventTaskStarted, "a", centurion.TaskRunning, 1, ""),
		moved(1, centurion.EventTaskStarted, "b", centurion.TaskRunning, 1, ""),
		moved(2, centurion.EventTaskWaiting, "b", centurion.TaskWaiting, 1, "files of T1"),
		fact(50, centurion.EventMissionResumed, "", "ses_root", event.MissionData{}),
		moved(51, centurion.EventTaskRetrying, "a", centurion.TaskRunning, 2, ""),
		moved(52, centurion.EventTaskRetrying, "b", centurion.TaskRunning, 2, ""),
		moved(53, centurion.EventTaskStarted, "c", centurion.TaskRunning, 1, ""),
		moved(60, centurion.EventTaskRetrying, "a", centurion.TaskRunning, 3, ""),
		moved(61, centurion.EventTaskRetrying, "c", centurion.TaskRunning, 2, "it crashed"),
		fact(70, centurion.EventMissionPaused, "", "ses_root", event.MissionEnd{}),
		fact(80, centurion.EventMissionResumed, "", "ses_root", event.MissionData{}),
		moved(81, centurion.EventTaskRetrying, "c", centurion.TaskRunning, 3, ""),
		fact(90, centurion.EventMissionCompleted, "", "ses_root", event.MissionEnd{})}}
	got, marks := troublesOf(d)
	if d := cmp.Diff([]string{"the mission | its host went away | a new host continued from the stored state; 2 tasks began another attempt",
		"a | the attempt before ended early | tried again, attempt 3", "c | it crashed | tried again, attempt 2"}, got); d != "" {
		t.Error(d)
	}
	if marks[MarkRetry] != 2 || marks[MarkKill] != 1 {
		t.Errorf("the marks are %v", marks)
	}
}

// A red run of a check of the mission that its branch had not passed yet is told, and told apart from a red check.
func TestEarlyReds(t *testing.T) {
	t.Parallel()
	for words, passed := range map[string]bool{"Before it first passed it failed 2 times": true, "It failed 2 times": false} {
		d := sample()
		d.Receipts = append(d.Receipts, centurion.Receipt{Command: "make check", Passed: passed, Time: at(600)})
		red := fact(450, centurion.EventVerifyFailed, "", "", event.VerifyData{Command: "make check", Early: true})
		before := len(troubles(d))
		d.Events = append(d.Events, red, red)
		if got := troubles(d); len(got) != before {
			t.Errorf("it is a trouble: %+v", got[len(got)-1])
		}
		r := New(d)
		if got, want := r.way(), "On the way: 1 red check, 2 red runs of the mission's own checks that could not be green yet, 1 conflict"; !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		var b bytes.Buffer
		if err := r.Markdown(&b); err != nil {
			t.Fatal(err)
		}
		if words := words + " during merges"; !strings.Contains(b.String(), "\n"+words) || !strings.Contains(pageOf(t, d), ">"+words) {
			t.Errorf("%q is not told", words)
		}
	}
}

// An answer that failed and was asked for again is one trouble: the error and the attempt tell of the same thing. An error that nothing
// was done about stays its own, and so does one of another session.
func TestErrorAndAttemptAreOneTrouble(t *testing.T) {
	t.Parallel()
	silent := "call custom/mind: nothing came for 5m0s"
	failure := func(sec int, task, text string) centurion.Event {
		return fact(sec, centurion.EventSessionError, task, "ses_"+task, map[string]any{"kind": "stream-cut", "error": text})
	}
	retry := func(sec int, task, text string) centurion.Event {
		return fact(sec, centurion.EventTaskRetrying, task, "ses_"+task, event.RetryData{Attempt: 1, WaitMS: 5000, Reason: "silent", Error: text})
	}
	d := Data{Mission: centurion.Mission{ID: "m", Session: "ses_root", Status: centurion.MissionCompleted}, Now: at(999), Events: []centurion.Event{
		fact(0, centurion.EventMissionStarted, "", "ses_root", event.MissionData{}),
		moved(1, centurion.EventTaskStarted, "a", centurion.TaskRunning, 1, ""), moved(1, centurion.EventTaskStarted, "b", centurion.TaskRunning, 1, ""),
		failure(10, "a", silent), failure(11, "b", silent), retry(12, "a", silent),
		failure(20, "a", silent), retry(21, "a", silent), // the same once more
		failure(30, "a", "it broke off"), retry(31, "a", "something else"),
		moved(40, centurion.EventTaskCompleted, "a", centurion.TaskCompleted, 1, ""), moved(41, centurion.EventTaskFailed, "b", centurion.TaskFailed, 1, "given up"),
		fact(90, centurion.EventMissionCompleted, "", "ses_root", event.MissionEnd{})}}
	got, _ := troublesOf(d)
	if d := cmp.Diff([]string{
		"b | " + silent + " | the task ended: failed",
		"a | " + silent + " | tried again after 5s; recovered: the task was completed",
		"a | it broke off | recovered: the task was completed",
		"a | something else | tried again after 5s",
		"b | given up | failed"}, got); d != "" {
		t.Error(d)
	}
}

// A task that was completed without having changed a file, on a check that ran no test, is told, and who did its item after it.
func TestTaskThatDidNothing(t *testing.T) {
	t.Parallel()
	task := func(id, item, file string) centurion.Task {
		t := centurion.Task{ID: id, Item: item, Title: "Title of " + id, Agent: "worker", Status: centurion.TaskCompleted}
		if file != "" {
			t.Landed = []centurion.Landed{{Commit: "c" + id}}
		}
		return t
	}
	receipt := func(sec int, id, item string, p centurion.Proof, why string) centurion.Receipt {
		return centurion.Receipt{ID: "rcp_" + id, Task: id, Item: item, Command: "go test -run X", Passed: true, Proof: p, Why: why, Time: at(sec)}
	}
	d := Data{Mission: centurion.Mission{ID: "m", Session: "ses_root", Status: centurion.MissionCompleted}, Now: at(999),
		Tasks: []centurion.Task{task("a", "T1", ""), task("b", "T1", "x"), task("c", "T2", ""), task("d", "T3", ""), task("e", "T4", "y"), task("f", "T5", ""), task("g", "", "")},
		Receipts: []centurion.Receipt{receipt(2, "a", "T1", centurion.ProofUnproven, "it ran no test: no tests to run"), receipt(4, "b", "T1", centurion.ProofProven, ""),
			receipt(5, "c", "T2", centurion.ProofUnproven, "it ran no test: no test files"), receipt(6, "d", "T3", centurion.ProofRegression, ""),
			receipt(7, "e", "T4", centurion.ProofUnproven, "it is green without the work, too"), receipt(8, "f", "T5", centurion.ProofUnproven, "it ran no test: none")},
		Reviews: map[string]Review{"T5": {Name: "T9"}}}
	for i, id := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		d.Events = append(d.Events, moved(10+i, centurion.EventTaskCompleted, id, centurion.TaskCompleted, 1, ""))
	}
	got, _ := troublesOf(d)
	if d := cmp.Diff([]string{
		"T1 Title of a | it changed no file, and its check proves nothing: go test -run X: it ran no test: no tests to run | its item was done by another task: Title of b",
		"T2 Title of c | it changed no file, and its check proves nothing: go test -run X: it ran no test: no test files | it counts as completed; nothing shows that its item is done",
		"T5 Title of f | it changed no file, and its check proves nothing: go test -run X: it ran no test: none | a review of its item has passed"}, got); d != "" {
		t.Error(d)
	}
}
