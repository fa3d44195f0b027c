package tui

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/text"
)

// Arguments stand in lines for people as they were written; what is no escape of JSON's stays.
func TestPlainJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"command":"a 2\u003e\u00261 \u003cb"}`: `{"command":"a 2>&1 <b"}`,
		`{"command":"grep '\\u003e' \u001b"}`:    `{"command":"grep '\\u003e' \u001b"}`,
	} {
		if got := plainJSON([]byte(in)); got != want {
			t.Errorf("%s became %s", in, got)
		}
	}
}

// A task that has ended shows the time that it was worked on, where that is known.
func TestTaskTime(t *testing.T) {
	task := centurion.Task{Status: centurion.TaskCompleted, Started: ago(time.Hour), Ended: ago(time.Minute), ElapsedMS: 4000}
	if got := taskTime(task, curtain); got != 4*time.Second {
		t.Errorf("worked on: %v", got)
	}
	task.ElapsedMS = 0
	if got := taskTime(task, curtain); got != 59*time.Minute {
		t.Errorf("where that is not known: %v", got)
	}
}

// A mission shown whole names what its tasks changed, each file once, and no group without a task.
func TestShowMissionWhole(t *testing.T) {
	tasks := []centurion.Task{{ID: "tsk_1", Agent: "worker", Title: "A", Status: centurion.TaskCompleted, Files: []string{"b.go", "a.go"}},
		{ID: "tsk_2", Agent: "worker", Title: "B", Status: centurion.TaskCompleted, Files: []string{"a.go"}}}
	var b strings.Builder
	if err := Show(&b, Shown{Mission: &centurion.Mission{ID: "msn_1", Goal: "g", Status: centurion.MissionCompleted}, Tasks: tasks}, ShowOptions{Now: curtain}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "changed   a.go b.go\n") || strings.Contains(got, "Running") || !strings.Contains(got, "Completed (2):\n") {
		t.Error(got)
	}
}

// What ended a message's turn is said in words, and only a failure by its name.
func TestErrorLine(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"MessageAbortedError", "stopped by the person: enough", "stopped by the person: enough"},
		{"MessageAbortedError", "interrupted", "stopped: interrupted"},
		{"UnknownError", "clerk asks: why? (centurion answer que_1 TEXT)", "waits for your answer: clerk asks: why? (centurion answer que_1 TEXT)"},
		{"UnknownError", "clerk asks 2 questions: a · b (centurion asks)", "waits for your answer: clerk asks 2 questions: a · b (centurion asks)"},
		{"APIError", "500", "APIError: 500"},
	} {
		if got, _ := errorLine(&centurion.MessageError{Name: tt.name, Data: centurion.MessageErrorData{Message: tt.text}}); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}

// A blocked task that another has gone on with is told as such, and counts in no total; one whose check waits for the person waits.
func TestTasksContinuedAndAsking(t *testing.T) {
	tasks := []centurion.Task{{ID: "tsk_1", Item: "T4", Agent: "worker", Title: "rename Card.titel to title everywhere", Status: centurion.TaskBlocked, Reason: "it came back 3 times and still cannot be merged"},
		{ID: "tsk_2", Item: "T4", Agent: "worker", Title: "finish the renaming", Status: centurion.TaskCompleted},
		{ID: "tsk_3", Item: "T2", Agent: "worker", Title: "to_csv", Status: centurion.TaskVerifying}}
	var b strings.Builder
	if err := Tasks(&b, tasks, ShowOptions{Now: curtain, Asking: map[string]bool{"tsk_3": true}}); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for _, want := range []string{"Running (0): [1/2]\n", "Waiting (1):\n◦ to_csv (worker) - 0s · T2 · needs you: centurion asks\n", "Slots: 0/50",
		"Continued (1):\n› rename Card.titel to title ", "T4 · continued in: finish the ren"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "Blocked") || strings.Contains(got, "3 times") {
		t.Error(got)
	}
}

// What is to be pasted stands on one line however long it is, and a question of ask_user with all that it offers.
func TestShowWhole(t *testing.T) {
	command := "    git checkout ab5f70c085af -- kanban/card.py kanban/report.py tests/test_board.py tests/test_card.py"
	code := "rm -- kanban/one_file_with_a_long_name.py kanban/another_file_with_a_long_name.py kanban/third.py"
	long := strings.Repeat("word ", 30)
	call := centurion.Part{Type: centurion.PartTool, Tool: "ask_user", State: &centurion.ToolState{Status: centurion.ToolCompleted, Output: "MIT",
		Input: []byte(`{"question":"` + long + `which licence?","choices":["MIT","Apache-2.0"]}`)}}
	m := centurion.Message{Role: centurion.RoleAssistant, Agent: "worker", Parts: []centurion.Part{
		{Type: centurion.PartText, Text: "Bring them back:\n\n" + command + "\n\n```\n" + code + "\n```\n" + long}, call}}
	var b strings.Builder
	if err := Show(&b, Shown{Messages: []centurion.Message{m}}, ShowOptions{Width: 60, Now: curtain}); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for _, want := range []string{"  " + command + "\n", "  " + code + "\n", "which licence?\n", "1  MIT\n", "2  Apache-2.0\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	for l := range strings.SplitSeq(got, "\n") {
		if text.Width(l) > 60 && !strings.Contains(l, "git checkout") && !strings.Contains(l, "rm --") {
			t.Errorf("too wide: %q", l)
		}
	}
}

// Files that git ignores stand in show with the directory that keeps them, which is never broken.
func TestShowAside(t *testing.T) {
	a := centurion.Aside{Dir: "/home/somebody/.local/share/centurion/projects/x/worktrees/aside/centurion/msn_1/tsk_1/1", Files: []string{"out/result.txt"}}
	own := centurion.Aside{Dir: "/own", Files: []string{"log.txt"}}
	task := centurion.Task{ID: "tsk_1", Agent: "worker", Title: "A", Status: centurion.TaskCompleted, Aside: []centurion.Aside{a}}
	for name, s := range map[string]Shown{"mission": {Mission: &centurion.Mission{ID: "msn_1", Goal: "g", Aside: []centurion.Aside{own}}, Tasks: []centurion.Task{task}}, "task": {Task: &task}} {
		var b strings.Builder
		if err := Show(&b, s, ShowOptions{Width: 60, Now: curtain}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "  aside     git ignores out/result.txt: not merged, kept in "+a.Dir+"\n") || (name == "mission") != strings.Contains(b.String(), "kept in /own\n") {
			t.Errorf("%s:\n%s", name, b.String())
		}
	}
}

// A completed task whose check proves too little is marked as such, in the list, by itself and beside its receipt. What was proven later, what
// has not ended and final checks are not.
func TestUnprovenIsMarked(t *testing.T) {
	task := func(id, item string, s centurion.TaskStatus) centurion.Task {
		return centurion.Task{ID: id, Item: item, Title: "Do " + item, Agent: "worker", Status: s}
	}
	tasks := []centurion.Task{task("tsk_1", "T1", centurion.TaskCompleted), task("tsk_2", "T2", centurion.TaskCompleted), task("tsk_3", "T3", centurion.TaskRunning)}
	of := func(task string, p centurion.Proof, final bool) centurion.Receipt {
		return centurion.Receipt{Task: task, Command: "go test", Passed: true, Proof: p, Final: final}
	}
	receipts := []centurion.Receipt{of("tsk_1", centurion.ProofUnproven, false), of("tsk_2", centurion.ProofFlaky, false), of("tsk_2", centurion.ProofProven, false),
		of("tsk_2", centurion.ProofUnproven, true), of("tsk_3", centurion.ProofUnproven, false)}
	// A doubt about one command is not outweighed by another command's proof.
	vet := centurion.Receipt{Task: "tsk_4", Command: "go vet", Passed: true, Proof: centurion.ProofProven}
	if got := Doubts([]centurion.Receipt{of("tsk_4", centurion.ProofUnproven, false), vet}); got["tsk_4"] != "unproven" {
		t.Errorf("two commands: %q", got)
	}
	o := ShowOptions{Now: time.Unix(0, 0), Doubt: Doubts(receipts)}
	var b strings.Builder
	if err := Show(&b, Shown{Tasks: tasks, Receipts: receipts[:1]}, o); err != nil {
		t.Fatal(err)
	}
	if err := Show(&b, Shown{Task: &tasks[0]}, o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Do T1 (worker) - 0s · unproven · T1", "? 0s · unproven · mission go test", "tsk_1 · completed · unproven"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, b.String())
		}
	}
	if n := strings.Count(b.String(), "unproven") + strings.Count(b.String(), "flaky"); n != 3 {
		t.Errorf("%d marks in:\n%s", n, b.String())
	}
	b.Reset()
	o.Color = true
	if err := Tasks(&b, tasks[:2], o); err != nil {
		t.Fatal(err)
	}
	paint := theme{true}
	for _, want := range []string{paint.paint(warn, "✓") + " Do T1", paint.paint(good, "✓") + " Do T2"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// A note of the host, such as of a mistake in the plan, is shown whole: in the live view on as many lines as it needs, in plain lines on one.
func TestNoteIsShownWhole(t *testing.T) {
	note := ".opencode/todo.md: line 12 (* T2 Parse the limits of the file): it is not read as item T2, whose task is kept: write «- [~] T2 title», or delete the line to cancel the task"
	s := newStage().start().at(centurion.EventMissionUpdated, "ses_0", "", event.MissionData{Note: note})
	var out bytes.Buffer
	if err := RunPlain(t.Context(), &out, s.seqOf()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "· "+note+"\n") {
		t.Errorf("plain:\n%s", out.String())
	}
	told := story{board: &Board{}}
	var lines []string
	for _, e := range s.events {
		lines = nil
		for _, f := range told.apply(e) {
			if !f.quiet {
				lines = append(lines, f.lines(theme{}, 60)...)
			}
		}
	}
	if got := strings.Join(strings.Fields(strings.Join(lines, " ")), " "); got != "· "+note || len(lines) < 3 {
		t.Errorf("live:\n%s", strings.Join(lines, "\n"))
	}
	for _, l := range lines {
		if text.Width(l) > 60 {
			t.Errorf("%d cells: %s", text.Width(l), l)
		}
	}
}
