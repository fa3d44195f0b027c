package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/event"
	"centurion/text"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// at is so many seconds after the beginning of the sample.
func at(sec int) centurion.Time {
	return centurion.Time{Time: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC).Add(time.Duration(sec) * time.Second)}
}

func fact(sec int, typ centurion.EventType, task, session string, data any) centurion.Event {
	return centurion.Event{Time: at(sec), Type: typ, Mission: "msn_1", Task: task, Session: session, Data: event.Data(data)}
}

func moved(sec int, typ centurion.EventType, task string, status centurion.TaskStatus, attempt int, reason string) centurion.Event {
	return fact(sec, typ, task, "ses_"+task, event.TaskData{Agent: "worker", Title: "Title of " + task, Status: status, Attempt: attempt, Reason: reason})
}

func answered(sec int, session, id, agent string, in, out int64, usd float64) centurion.Event {
	return fact(sec, centurion.EventMessageUpdated, "", session, map[string]any{"message": id, "agent": agent, "cost": usd,
		"tokens": centurion.Tokens{Input: in, Output: out, Cache: centurion.CacheUsage{Read: in / 2}}})
}

// sample is a mission in which everything happens that a report speaks of.
func sample() Data {
	m := centurion.Mission{ID: "msn_1", Goal: "Limit requests\nwith a <b>budget</b> per [user](http://evil.example) & `key`", Status: centurion.MissionCompleted,
		Directory: "/home/me/shop", Branch: "centurion/msn_1", Session: "ses_root", Summary: "All done.", Started: at(0), Updated: at(5400), ElapsedMS: 1_500_000,
		Usage: centurion.Usage{Tokens: centurion.Tokens{Input: 21000, Output: 3000, Cache: centurion.CacheUsage{Read: 10000}}, USD: 0.62},
		Base:  &centurion.Base{Commit: "0123456789abcdef", Head: "fedcba9876543210", Branch: "main", Dirty: 2}}
	m.Options.Model = "anthropic/opus"
	green := func(item, command string, proof centurion.Proof) centurion.Receipt {
		return centurion.Receipt{ID: "rcp_" + item, Item: item, Command: command, Passed: true, Proof: proof, Tree: "aaaaaaaaaaaaaaaa", Millis: 1234, Time: at(500), Output: "ok\n"}
	}
	proven := green("T1", "go test ./limit", centurion.ProofProven)
	proven.Runs = []centurion.CheckRun{
		{Kind: centurion.RunRed, Tree: "bbbbbbbbbbbbbbbb", ExitCode: 1, Output: "undefined: Limit\n", Millis: 800, Time: at(480)},
		{Kind: centurion.RunGreen, Tree: "aaaaaaaaaaaaaaaa", Passed: true, Output: "ok\n", Millis: 1234, Time: at(490)},
		{Kind: centurion.RunRedAgain, Tree: "cccccccccccccccc", ExitCode: 1, Output: "--- FAIL: TestLimit\n", Millis: 900, Time: at(500)}}
	proven.Removed = "--- a/limit/limit.go\n+++ b/limit/limit.go\n@@ -1,2 +1,4 @@ func Limit\n-\tif n > max {\n-\t\treturn ErrFull\n-\t}\n"
	proven.FailureLine = "--- FAIL: TestLimit (0.00s): want ErrFull, got <nil>"
	unproven := green("T2", "true", centurion.ProofUnproven)
	unproven.Why, unproven.Weakened = "it is green without the work, too", []string{"limit_test.go: TestOld was deleted"}
	flaky := green("T3", "npm test", centurion.ProofFlaky)
	flaky.Why = "green, then red on the same tree"
	final := green("", "go test ./limit", "")
	final.Final, final.Time, final.ID = true, at(5300), "rcp_final"
	root := fact(0, centurion.EventMissionStarted, "", "ses_root", event.MissionData{Agent: "commander", Goal: m.Goal})
	small := centurion.Session{ID: "ses_tsk_2", Model: &centurion.SessionModel{Provider: "local", ID: "small"}}
	return Data{Mission: m, Sessions: []centurion.Session{small}, Now: at(6000), Checks: []string{"make check"}, Receipts: []centurion.Receipt{proven, unproven, flaky, final},
		Items: []PlanItem{
			{ID: "T1", Title: "Write the limiter | with a pipe", Agent: "worker", Verify: []string{"go test ./limit"}, Status: "done", Files: []string{"limit/**"}},
			{ID: "T2", Title: "Wire it up", Agent: "worker", After: []string{"T1"}, Verify: []string{"true"}, Status: "done"},
			{ID: "T3", Title: "Front end", Verify: []string{"npm test"}, Status: "done"},
			{ID: "T4", Title: "Tell of it", Agent: "reviewer", Status: "done"}},
		Tasks: []centurion.Task{{ID: "tsk_1", Item: "T1", Agent: "worker", Title: "Write the limiter", Status: centurion.TaskCompleted},
			{ID: "tsk_2", Item: "T2", Agent: "worker", Title: "Wire it up", Status: centurion.TaskCompleted, Undone: at(5900)}},
		Files: []centurion.FileDiff{{FileChange: centurion.FileChange{Path: "limit/limit.go", Status: "added", Added: 3, Deleted: 0},
			Hunks: []centurion.Hunk{{Header: "@@ -0,0 +1,3 @@", Text: "+package limit\n+\n+const Max = 5 // <script>\n"}}},
			{FileChange: centurion.FileChange{Path: "logo.png", Old: "old.png", Status: "renamed", Binary: true}}},
		Events: []centurion.Event{root,
			fact(1, centurion.EventSessionCreated, "", "ses_root", event.SessionData{Agent: "commander", Model: "anthropic/opus"}),
			fact(65, centurion.EventSessionCreated, "tsk_1", "ses_tsk_1", event.SessionData{Agent: "worker", Model: "anthropic/opus"}),
			fact(300, centurion.EventSessionModel, "tsk_1", "ses_tsk_1", event.ModelData{From: "anthropic/opus", To: "local/small", Kind: centurion.KindOverloaded, Reason: "overloaded"}),
			answered(20, "ses_root", "msg_1", "commander", 10000, 1000, 0.4),
			fact(30, centurion.EventPlanAsked, "", "ses_root", event.AskData{ID: "ask_1", Type: "plan", Text: "4 items"}),
			fact(60, centurion.EventPlanAnswered, "", "ses_root", event.AskData{ID: "ask_1", Type: "plan", Answer: "once", By: "person"}),
			moved(61, centurion.EventTaskQueued, "tsk_1", centurion.TaskQueued, 0, ""),
			moved(62, centurion.EventTaskQueued, "tsk_2", centurion.TaskQueued, 0, ""),
			moved(63, centurion.EventTaskWaiting, "tsk_2", centurion.TaskWaiting, 0, "T1"),
			moved(65, centurion.EventTaskStarted, "tsk_1", centurion.TaskRunning, 1, ""),
			fact(66, centurion.EventSessionIdle, "", "ses_root", event.SessionData{}),
			moved(200, centurion.EventTaskVerifying, "tsk_1", centurion.TaskVerifying, 1, ""),
			fact(200, centurion.EventVerifyStarted, "tsk_1", "", event.VerifyData{Command: "go test ./limit", Item: "T1"}),
			fact(240, centurion.EventVerifyFailed, "tsk_1", "", event.VerifyData{Command: "go test ./limit", Item: "T1", ExitCode: 1}),
			moved(241, centurion.EventTaskUpdated, "tsk_1", centurion.TaskRunning, 1, "its check failed"),
			answered(400, "ses_tsk_1", "msg_2", "worker", 10000, 1500, 0.2),
			moved(450, centurion.EventTaskVerifying, "tsk_1", centurion.TaskVerifying, 1, ""),
			moved(510, centurion.EventTaskUpdated, "tsk_1", centurion.TaskMerging, 1, ""),
			fact(515, centurion.EventMergeDone, "tsk_1", "", event.MergeData{Branch: "centurion/msn_1", Commit: "dddd"}),
			moved(516, centurion.EventTaskCompleted, "tsk_1", centurion.TaskCompleted, 1, ""),
			moved(520, centurion.EventTaskStarted, "tsk_2", centurion.TaskRunning, 1, ""),
			answered(700, "ses_tsk_2", "msg_3", "worker", 1000, 100, 0.01),
			// The host dies here, and another one begins an hour later.
			fact(4200, centurion.EventMissionResumed, "", "ses_root", event.MissionData{Reason: "its host went away"}),
			moved(4205, centurion.EventTaskRetrying, "tsk_2", centurion.TaskRunning, 2, ""),
			fact(4400, centurion.EventMergeConflict, "tsk_2", "", event.MergeData{Files: []string{"limit/limit.go"}}),
			moved(4900, centurion.EventTaskCompleted, "tsk_2", centurion.TaskCompleted, 2, ""),
			fact(5000, centurion.EventVerifyStarted, "", "ses_root", event.VerifyData{Command: "go test ./limit", Final: true}),
			fact(5300, centurion.EventVerifyPassed, "", "ses_root", event.VerifyData{Command: "go test ./limit", Final: true}),
			fact(5400, centurion.EventMissionCompleted, "", "ses_root", event.MissionEnd{})}}
}

// The sample as Markdown and as a page, as somebody has looked at it.
func TestGolden(t *testing.T) {
	r := New(sample())
	for name, write := range map[string]func(*Report, *bytes.Buffer) error{
		"sample.md":   func(r *Report, b *bytes.Buffer) error { return r.Markdown(b) },
		"sample.html": func(r *Report, b *bytes.Buffer) error { return r.HTML(b) },
	} {
		var got bytes.Buffer
		if err := write(r, &got); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got.String()); d != "" {
			t.Errorf("%s (-want +got; -update rewrites it):\n%s", name, d)
		}
	}
}

func TestStandings(t *testing.T) {
	t.Parallel()
	r := New(sample())
	var got []Standing
	for _, it := range r.Items {
		got = append(got, it.Standing)
	}
	if d := cmp.Diff([]Standing{Proven, Unproven, Flaky, Unchecked}, got); d != "" {
		t.Error(d)
	}
	counted := *r
	counted.Mission.Verified, counted.Mission.Unverified = 1, 3
	if got := counted.proofs(); !strings.HasPrefix(got, "Of 4 items, 1 verified: 1 proven,") {
		t.Errorf("got %q", got)
	}
	if got, want := r.proofs(), "Of 4 items: 1 proven, 1 UNPROVEN, 1 FLAKY, 1 without a check or a review."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if f := r.Items[0].Checks[0].Final; f == nil || f.ID != "rcp_final" {
		t.Errorf("the final receipt is %+v", f)
	}
	d := sample() // a final red outweighs every older proof
	d.Receipts[3].Passed, d.Receipts[3].ExitCode = false, 1
	if got := New(d).Items[0].Standing; got != Failed {
		t.Errorf("with a red final run the item is %s", got)
	}
	d = sample() // without git
	d.Mission.Base, d.Receipts = nil, []centurion.Receipt{{Item: "T1", Command: "go test ./limit", Passed: true, Time: at(1)}}
	r = New(d)
	if got := r.worth(r.Items[0].Checks[0]); !strings.HasPrefix(got, "Passes, but without git") || r.Items[0].Standing != Passed || r.Items[1].Standing != NotRun {
		t.Errorf("without git: %s, %s, %s", got, r.Items[0].Standing, r.Items[1].Standing)
	}
}

// What a check did when the work was out is told as its table tells it; what an earlier try ran into is no reason.
func TestWithoutTheWork(t *testing.T) {
	t.Parallel()
	run := func(kind centurion.RunKind, passed bool, broken, empty string) centurion.CheckRun {
		return centurion.CheckRun{Kind: kind, Passed: passed, Broken: broken, Empty: empty}
	}
	const red, green, again = centurion.RunRed, centurion.RunGreen, centurion.RunRedAgain
	for want, x := range map[string]struct {
		runs []centurion.CheckRun
		died string
		why  []string
	}{
		"and the check stayed green.":                             {[]centurion.CheckRun{run(red, false, "the build failed", ""), run(red, true, "", ""), run(green, true, "", "")}, "", []string{"because"}},
		"and the check failed without the change:":                {[]centurion.CheckRun{run(red, false, "", ""), run(green, true, "", ""), run(again, false, "", "")}, "want 1", []string{"because"}},
		"and the check was red, and green when it was run again.": {[]centurion.CheckRun{run(red, false, "", ""), run(green, true, "", ""), run(again, true, "", "")}, "ok", []string{"because"}},
		"and the check did not get as far as to fail.":            {[]centurion.CheckRun{run(red, false, "the build failed", ""), run(green, true, "", "")}, "", []string{"because", "the build failed"}},
		"and the check had nothing to check.":                     {[]centurion.CheckRun{run(red, false, "", "no test ran"), run(green, true, "", "")}, "", []string{"because", "no test ran"}},
	} {
		d := sample()
		d.Receipts = []centurion.Receipt{{Item: "T2", Command: "true", Passed: true, Proof: centurion.ProofUnproven, Why: "because", Runs: x.runs, FailureLine: x.died, Removed: "@@ -1 +1 @@\n-a\n+b\n"}}
		r := New(d)
		var b bytes.Buffer
		if err := r.Markdown(&b); err != nil {
			t.Fatal(err)
		}
		page := pageOf(t, d)
		if !strings.Contains(b.String(), want+"\n") || !strings.Contains(page, "… "+want[:len(want)-1]+"</h4>") {
			t.Errorf("%q is not told", want)
		}
		if died := strings.HasSuffix(want, "without the change:"); strings.Contains(b.String(), "check failed without the change") != died || strings.Contains(page, "check failed without the change") != died || died != strings.Contains(b.String(), "want 1") {
			t.Errorf("%q: it is told that it died, or what it said: %s", want, b.String())
		}
		i := slices.IndexFunc(r.Doubts, func(d Doubt) bool { return d.Item == "T2" })
		if d := cmp.Diff(x.why, r.Doubts[i].Why); d != "" {
			t.Errorf("%q: %s", want, d)
		}
	}
}

func TestDoubts(t *testing.T) {
	t.Parallel()
	var got []string
	for _, d := range New(sample()).Doubts {
		got = append(got, strings.TrimSpace(d.Kind+" "+d.Item+" "+d.Command))
	}
	want := []string{"unproven T2 true", "weakened T2 true", "flaky T3 npm test", "unchecked T4", "not run  make check"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Files that an item's work has changed outside of those that the plan gave it are for a person to look at, unless the work is gone.
func TestOutsideItsFiles(t *testing.T) {
	t.Parallel()
	d := Data{Mission: centurion.Mission{ID: "m", Status: centurion.MissionCompleted, Started: at(0), Updated: at(9)}, Now: at(9), Tasks: []centurion.Task{
		{ID: "tsk_1", Item: "T1", Status: centurion.TaskFailed, Outside: []string{"a.md"}},
		{ID: "tsk_2", Item: "T1", Status: centurion.TaskCompleted, Outside: []string{"README.md"}},
		{ID: "tsk_3", Item: "T1", Status: centurion.TaskCompleted, Outside: []string{"README.md", "b.md"}},
		{ID: "tsk_4", Item: "T2", Status: centurion.TaskCompleted, Undone: at(8), Outside: []string{"c.md"}},
		{ID: "tsk_5", Item: "T3", Status: centurion.TaskBlocked, Landed: []centurion.Landed{{Commit: "1"}}, Outside: []string{"d.md"}},
		{ID: "tsk_6", Item: "T4", Status: centurion.TaskCompleted}}}
	var got []string
	r := New(d)
	for _, x := range r.Doubts {
		if x.Command == "" && x.Kind != string(Unchecked) {
			got = append(got, x.Kind+" "+x.Item+": "+strings.Join(x.Why, ", "))
		}
	}
	if d := cmp.Diff([]string{"outside its files T1: README.md, b.md", "outside its files T3: d.md"}, got); d != "" {
		t.Error(d)
	}
	var b strings.Builder
	if err := r.Markdown(&b); err != nil || !strings.Contains(b.String(), "**outside its files** · T1: README") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// The plan of a mission whose file is gone is what the events told last.
func TestPlanFromEvents(t *testing.T) {
	t.Parallel()
	d := sample()
	d.Mission.Status = centurion.MissionPaused
	d.Items = nil
	d.Events = append(d.Events, fact(5500, centurion.EventTodoUpdated, "", "", event.TodoData{Items: []event.PlanItem{{ID: "T1", Status: "open"}, {ID: "T2", Status: "open"}}}),
		fact(5501, centurion.EventTodoUpdated, "", "", event.TodoData{TodoCounts: event.TodoCounts{Done: 1}}))
	r := New(d)
	if len(r.Items) != 2 || r.Items[0].Status != "done" || r.Items[1].Status != "open" { // the work on T2 was taken back
		t.Errorf("got %+v", r.Items)
	}
}

func TestSpending(t *testing.T) {
	t.Parallel()
	r := New(sample())
	var got []string
	for _, s := range append(r.Agents, r.Models...) {
		got = append(got, fmt.Sprintf("%s %d %s %d", s.Name, s.Requests, text.USD(s.USD), s.Tokens.Total()))
	}
	want := []string{"commander 1 $0.40 16000", "worker 2 $0.21 18100", other + " 0 $0.01 400",
		"anthropic/opus 1 $0.40 16000", "local/small 2 $0.21 18100", other + " 0 $0.01 400"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestTroublesAndDecisions(t *testing.T) {
	t.Parallel()
	r := New(sample())
	var got []string
	for _, x := range r.Troubles {
		got = append(got, x.Where+" | "+x.What+" | "+x.Then)
	}
	want := []string{"T1 Write the limiter | overloaded | continued with local/small instead of anthropic/opus",
		"T1 Write the limiter | check failed: go test ./limit | recovered: the task was completed",
		"the mission | its host went away | a new host continued from the stored state; 1 task began another attempt",
		"T2 Wire it up | conflict in limit/limit.go | recovered: the task was completed",
		"T2 Wire it up | T2 was reverted | it has not been done again"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]Decision{{Time: at(30), Type: "plan", Asked: "4 items", Answer: "once", By: "person", WaitMS: 30000}}, r.Decisions); d != "" {
		t.Error(d)
	}
}

// A command that was asked for stands as it was written, and what names no command by what it was asked for.
func TestAskedAsWritten(t *testing.T) {
	t.Parallel()
	d := Data{Mission: centurion.Mission{ID: "m", Started: at(0), Updated: at(9)}, Now: at(9), Events: []centurion.Event{
		fact(1, centurion.EventPermissionAsked, "", "", event.AskData{ID: "per_1", Permission: "bash", Patterns: []string{"npm test", "tail -30"}, Title: "npm test 2>&1 | tail -30"}),
		fact(2, centurion.EventPermissionAsked, "", "", event.AskData{ID: "per_2", Permission: "edit", Patterns: []string{"a.go"}, Title: "a"})}}
	var got []string
	for _, x := range New(d).Decisions {
		got = append(got, x.Asked)
	}
	if d := cmp.Diff([]string{"bash: npm test 2>&1 | tail -30", "edit: a.go"}, got); d != "" {
		t.Error(d)
	}
}

// What agents did wrong and were told at once is told, with what became of it.
func TestSlips(t *testing.T) {
	t.Parallel()
	host := func(sec int, text string) centurion.Event {
		return fact(sec, centurion.EventMessageCreated, "tsk_1", "ses_1", map[string]any{"origin": "host", "role": "user", "text": text})
	}
	tool := func(sec int, task, name, refused string) centurion.Event {
		return fact(sec, centurion.EventToolCompleted, task, "ses_x", map[string]any{"tool": name, "error": refused})
	}
	reviewed := func(sec int, task, result string, reason ...string) centurion.Event {
		return fact(sec, centurion.EventTaskCompleted, task, "", map[string]any{"agent": "reviewer", "item": "T9", "result": result, "reason": strings.Join(reason, "")})
	}
	claimed := "a.go belongs to item T2, which another agent is working on. leave it alone"
	events := []centurion.Event{
		fact(0, centurion.EventMissionStarted, "", "ses_root", event.MissionData{}),
		moved(1, centurion.EventTaskStarted, "tsk_1", centurion.TaskRunning, 1, ""),
		fact(2, centurion.EventMessageUpdated, "tsk_1", "ses_1", map[string]any{"finish": "length", "calls": 1}),
		fact(3, centurion.EventMessageUpdated, "tsk_1", "ses_1", map[string]any{"finish": "stop"}),
		tool(4, "tsk_1", "edit", claimed), tool(5, "tsk_1", "edit", claimed), tool(6, "tsk_1", "bash", "exit code 1"),
		host(7, "You have changed files that somebody else is working on at the moment:\n- a.go belongs to item T2\nBring them back."),
		fact(7, centurion.EventTaskReturned, "tsk_1", "ses_1", event.ReturnData{Cause: event.ReturnedFiles, Reason: "it changes", Files: []string{"a.go"}, Returns: 1}),
		host(8, "Task tsk_2 is completed."),
		moved(9, centurion.EventTaskBlocked, "tsk_1", centurion.TaskBlocked, 1, "it came back 3 times"),
		tool(10, "", "mission_complete", "not complete; missing:\n- item T6 is open"),
		reviewed(11, "tsk_3", "FAIL\n- a.go:3: wrong"), reviewed(12, "tsk_4", "I read it.\nVerdict: PASS"), reviewed(13, "tsk_5", "**FAIL** nothing works"),
		reviewed(13, "tsk_10", "It looks good.\nDone.", noVerdict),
		moved(13, centurion.EventTaskCancelled, "tsk_6", centurion.TaskCancelled, 1, ""), moved(13, centurion.EventTaskCancelled, "tsk_7", centurion.TaskCancelled, 1, ""),
		fact(14, centurion.EventMissionCompleted, "", "ses_root", event.MissionEnd{}),
		fact(9000, centurion.EventMergeDone, "", "", event.MergeData{Branch: "main", Person: true}),
	}
	r := New(Data{Mission: centurion.Mission{ID: "m", Session: "ses_root", Status: centurion.MissionCompleted, Started: at(0), Updated: at(9000)}, Now: at(9001), Events: events,
		Tasks:    []centurion.Task{{ID: "tsk_1", Item: "T1", Title: "one"}, {ID: "tsk_2", Item: "T1", Title: "again", Status: centurion.TaskCompleted}},
		Branches: map[string]string{"tsk_1": "centurion/m/tsk_1", "tsk_6": "centurion/m/tsk_6"}})
	var got []string
	for _, x := range r.Troubles {
		got = append(got, fmt.Sprintf("%s | %s | %s | %d", x.Where, x.What, x.Then, x.Repeat))
	}
	want := []string{"T1 one | an answer was cut off because it was too long | what it called in it was not run, and it was told so | 0",
		"T1 one | a call of edit was refused: a.go belongs to item T2, which another agent was working on | the file was not touched | 1",
		"T1 one | its work was not merged: it changed files that others were working on: a.go | sent back; the task ended: blocked | 0",
		"T1 one | it came back 3 times | blocked; what it changed and was not merged stands on the branch centurion/m/tsk_1; its item was done by another task: again | 0",
		"the mission | mission_complete was refused: item T6 is open | it continued; the mission: completed | 0",
		"tsk_3 | the review found faults: a.go:3: wrong | fixed: a later review of it passed | 0",
		"tsk_5 | the review found faults: **FAIL** nothing works | its item stayed open; the mission: completed | 0",
		"tsk_10 | the review said neither PASS nor FAIL: It looks good. | its item stayed open; the mission: completed | 0",
		"tsk_6 | it was cancelled | cancelled; what it changed and was not merged stands on the branch centurion/m/tsk_6 | 0"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if marks := r.Timeline.Lanes[1].Marks; len(marks) != 2 || marks[0].Kind != MarkReturn {
		t.Errorf("the marks are %+v", marks)
	}
	var ends []string
	for _, l := range r.Timeline.Lanes[2:5] { // the reviews
		h := happenings(l)
		ends = append(ends, l.End+": "+r.when(h[len(h)-1]))
	}
	if d := cmp.Diff([]string{"found faults: 11s found faults", "completed: 12s completed", "found faults: 13s found faults"}, ends); d != "" {
		t.Error(d)
	}
	if !strings.Contains(r.way(), " 2 reviews with faults found,") {
		t.Errorf("the way is %q", r.way())
	}
	if r.WallMS != 14_000 || r.Timeline.worked().Seconds() != 14 { // a merge by the person, hours later
		t.Errorf("it took %d ms, drawn as %s", r.WallMS, r.Timeline.worked())
	}
}

// Why work was sent back is told by the fact of its return, whatever the host has said to its worker.
func TestReturns(t *testing.T) {
	t.Parallel()
	for cause, x := range map[string]struct{ mark, trouble string }{
		event.ReturnedCheck:    {"its check failed: go test", ""}, // verify.failed is the trouble
		event.ReturnedConflict: {"it does not fit to what others have merged: a.go", ""},
		event.ReturnedMarkers:  {"it had conflict markers in a.go", "it had conflict markers in a.go"},
		event.ReturnedFiles:    {"it changed files that others were working on: a.go", "it changed files that others were working on: a.go"},
		event.ReturnedGuard:    {"it broke a check of the mission that was green before it: go test", "it broke a check of the mission that was green before it: go test"},
		event.ReturnedHollow:   {"its tests tell nothing of its work: go test", "its tests tell nothing of its work: go test"},
		event.ReturnedStuck:    {"its agent said that it was stuck, and a person had it tried on", "its agent said that it was stuck, and a person had it tried on"},
		event.ReturnedQuestion: {"it had changed nothing and ended with a question that no one reads", "it had changed nothing and ended with a question that no one reads"},
		event.ReturnedVerdict:  {"its answer said neither PASS nor FAIL", "its answer said neither PASS nor FAIL"},
		"another":              {"it is so", "it is so"},
	} {
		d := event.ReturnData{Cause: cause, Reason: "it is so\nand more", Returns: 1}
		switch cause {
		case event.ReturnedCheck, event.ReturnedGuard, event.ReturnedHollow:
			d.Command = "go test"
		case "another", event.ReturnedStuck, event.ReturnedQuestion, event.ReturnedVerdict:
		default:
			d.Files = []string{"a.go"}
		}
		r := New(Data{Mission: centurion.Mission{ID: "m", Session: "ses_root"}, Now: at(99), Events: []centurion.Event{
			fact(0, centurion.EventMissionStarted, "", "ses_root", event.MissionData{}),
			moved(1, centurion.EventTaskStarted, "a", centurion.TaskRunning, 1, ""),
			moved(2, centurion.EventTaskVerifying, "a", centurion.TaskVerifying, 1, ""),
			moved(9, centurion.EventTaskUpdated, "a", centurion.TaskRunning, 1, ""),
			fact(9, centurion.EventTaskReturned, "a", "ses_a", d),
			fact(10, centurion.EventMessageCreated, "a", "ses_a", map[string]any{"origin": "host", "text": "You have changed files that somebody else is working on\n- b.go"}),
			fact(20, centurion.EventTaskReturned, "", "ses_root", d)}})
		lanes := r.Timeline.Lanes
		if len(lanes) != 2 || len(lanes[0].Marks) != 1 || len(lanes[1].Marks) != 1 || lanes[1].Marks[0].Kind != MarkReturn || lanes[1].Marks[0].Text != x.mark {
			t.Errorf("%s: the lanes are %+v", cause, lanes)
		}
		var got []string
		for _, tr := range r.Troubles {
			got = append(got, tr.Where+": "+tr.What)
		}
		var want []string
		if x.trouble != "" {
			want = []string{"a: its work was not merged: " + x.trouble, "the mission: its work was not merged: " + x.trouble}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", cause, d)
		}
	}
}

// An item that a review has passed says so, and by which.
func TestReviewed(t *testing.T) {
	t.Parallel()
	d := sample()
	d.Reviews = map[string]Review{"T1": {Name: "T9"}, "T2": {Item: "T9", Name: "T9"}, "T4": {Item: "T4", Name: "T4"}}
	r := New(d)
	var got []string
	for _, it := range r.Items {
		got = append(got, it.Worth())
	}
	if d := cmp.Diff([]string{"proven", "unproven; reviewed: PASS by T9", "flaky", "a review: PASS"}, got); d != "" {
		t.Error(d)
	}
	if r.Counts.Reviewed != 1 || r.Counts.Unchecked != 0 || slices.ContainsFunc(r.Doubts, func(d Doubt) bool { return d.Item == "T4" }) {
		t.Errorf("%+v, %+v", r.Counts, r.Doubts)
	}
	if why := r.Doubts[0].Why; !slices.Contains(why, "reviewed: PASS by T9") {
		t.Errorf("the doubt says %q", why)
	}
}

// The work started from a commit that the person knows, not from the snapshot that the host made of it.
func TestBase(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]centurion.Base{
		"It started from fedcba9876 of main with 1 uncommitted file.":           {Commit: "0123456789abcdef", Head: "fedcba9876543210", Branch: "main", Dirty: 1},
		"It started from fedcba9876 of main.":                                   {Commit: "fedcba9876543210", Head: "fedcba9876543210", Branch: "main"},
		"It started from fedcba9876.":                                           {Commit: "fedcba9876543210", Head: "fedcba9876543210"},
		"It started in a repository without a commit with 3 uncommitted files.": {Commit: "0123456789abcdef", Branch: "main", Dirty: 3},
	} {
		r := New(Data{Mission: centurion.Mission{Base: &b}})
		if got := r.base(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Both forms say how commands were confined and what that does not stop, and nothing about it for a mission that does not know.
func TestConfinement(t *testing.T) {
	t.Parallel()
	const want = "Confinement of commands: files; not stopped: sockets, UDP."
	for _, c := range []*centurion.Confinement{nil, {Way: "files", Gaps: []string{"sockets", "UDP"}}} {
		var page, md bytes.Buffer
		r := New(Data{Mission: centurion.Mission{Confinement: c}})
		if err := errors.Join(r.HTML(&page), r.Markdown(&md)); err != nil {
			t.Fatal(err)
		}
		if c == nil && strings.Contains(page.String()+md.String(), "Confinement") || c != nil && (!strings.Contains(page.String(), want) || !strings.Contains(md.String(), want)) {
			t.Errorf("%+v: %s", c, md.String())
		}
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	r := New(Data{})
	if err := r.HTML(&b); err != nil {
		t.Error(err)
	}
	b.Reset()
	if err := r.Markdown(&b); err != nil {
		t.Error(err)
	}
	for _, says := range []string{"no plan with items.", "Nothing has happened yet.", "has run no check", "No questions were asked.", "No file was changed.", "No model has answered yet.", "went wrong, and what became of it\n\nNothing.\n"} {
		if !strings.Contains(b.String(), says) {
			t.Errorf("it does not say %q", says)
		}
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

// checkMarkdown looks at what stands outside of blocks and code spans: no character there begins markup, an address or HTML.
func checkMarkdown(t *testing.T, md string) {
	t.Helper()
	fence := ""
	for line := range strings.Lines(md) {
		line = strings.TrimSuffix(line, "\n")
		if run := line[:len(line)-len(strings.TrimLeft(line, "`"))]; fence == "" && len(run) >= 3 && !strings.Contains(line[len(run):], "`") {
			fence = run
			continue
		}
		if fence != "" {
			if line == fence {
				fence = ""
			}
			continue
		}
		rest := withoutSpans(line)
		for _, no := range []string{"<", "](", "://", "www.", "WWW.", "![", "\x1b", "\u202e"} {
			if strings.Contains(rest, no) {
				t.Errorf("Markdown has %q in %q", no, line)
			}
		}
	}
	if fence != "" {
		t.Errorf("a block is not closed: %s", fence)
	}
}

// withoutSpans is a line without escaped characters and without its code spans.
func withoutSpans(line string) string {
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
			b.WriteByte(' ')
		case '`':
			n := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
			ticks, at := strings.Repeat("`", n), i+n
			for {
				end := strings.Index(line[at:], ticks)
				if end < 0 {
					i += n - 1
					break
				}
				at += end
				run := len(line[at:]) - len(strings.TrimLeft(line[at:], "`"))
				if run == n {
					i = at + n - 1
					break
				}
				at += run
			}
		default:
			b.WriteByte(line[i])
		}
	}
	return b.String()
}
