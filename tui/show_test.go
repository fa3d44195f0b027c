package tui

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/text"
)

func ago(d time.Duration) centurion.Time { return centurion.Time{Time: curtain.Add(-d)} }

func sampleTasks() []centurion.Task {
	return []centurion.Task{
		{ID: "tsk_1", Agent: "worker", Title: "Enforce the limits", Status: centurion.TaskRunning, Created: ago(4 * time.Second), Started: ago(3 * time.Second)},
		{ID: "tsk_2", Agent: "worker", Title: "Parse\x1b[2J them", Status: centurion.TaskVerifying, Attempt: 2, Created: ago(2 * time.Minute), Started: ago(12 * time.Second)},
		{ID: "tsk_3", Agent: "reviewer", Title: "Check the whole", Status: centurion.TaskQueued, Created: ago(30 * time.Second)},
		{ID: "tsk_4", Agent: "worker", Title: "Describe them", Status: centurion.TaskWaiting, Reason: "T1", Created: ago(30 * time.Second)},
		{ID: "tsk_5", Agent: "planner", Title: "Plan", Status: centurion.TaskCompleted, Created: ago(time.Hour), Started: ago(time.Hour), Ended: ago(59 * time.Minute), Usage: centurion.Usage{USD: 0.02}},
		{ID: "tsk_6", Agent: "worker", Title: "Try", Status: centurion.TaskFailed, Created: ago(time.Hour), Started: ago(time.Hour), Ended: ago(58 * time.Minute),
			Error: &centurion.TaskError{Kind: centurion.KindStreamCut, Message: "the answer was cut off"}},
	}
}

// ORCH-94, ORCH-96, ORCH-98
func TestTasks(t *testing.T) {
	var b strings.Builder
	for _, o := range []ShowOptions{{Now: curtain}, {Now: curtain, Width: 40, Slots: 5}, {Now: curtain, IDs: true}} {
		if err := Tasks(&b, sampleTasks(), o); err != nil {
			t.Fatal(err)
		}
		b.WriteString("~~~\n")
	}
	got := b.String()
	golden(t, "tasks", got)
	for _, want := range []string{"Running (2): [1/6]\n⚡ Enforce the limits (worker) - 3s ← NEW\n", "Queued (1):\n", "Slots: 2/50 · worker 2/10\n", "Slots: 2/5 · worker 2/10\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// Of a long group the first tasks are named, and the others are counted.
func TestTasksAreCounted(t *testing.T) {
	var b strings.Builder
	if err := Tasks(&b, sampleTasks(), ShowOptions{Now: curtain, Most: 1}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "Enforce the limits") || strings.Contains(got, "Parse them") || strings.Count(got, "\n… and 1 more\n") != 1 {
		t.Error(got)
	}
}

func TestMissions(t *testing.T) {
	var b strings.Builder
	ms := []centurion.Mission{
		{ID: "msn_2", Goal: "Rate limits\nfor the API", Status: centurion.MissionRunning, Updated: ago(5 * time.Second), Usage: centurion.Usage{USD: 0.0123, Tokens: centurion.Tokens{Input: 12345}}},
		{ID: "msn_1", Goal: strings.Repeat("long ", 40), Status: centurion.MissionPaused, Reason: "interrupted", Updated: ago(26 * time.Hour), Usage: centurion.Usage{Unpriced: true}},
	}
	for _, o := range []ShowOptions{{Now: curtain}, {Now: curtain, Width: 44}} {
		if err := Missions(&b, ms, o); err != nil {
			t.Fatal(err)
		}
		b.WriteString("~~~\n")
	}
	if err := Missions(&b, nil, ShowOptions{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "missions", b.String())
}

func TestShow(t *testing.T) {
	m := &centurion.Mission{ID: "msn_1", Goal: "Rate limits", Status: centurion.MissionFailed, Reason: "key refused", Directory: "/home/u/api", Level: 2,
		ElapsedMS: 61_000, Rounds: 7, Options: centurion.MissionOptions{Model: "openai/gpt-5"}, Usage: centurion.Usage{USD: 0.5, Tokens: centurion.Tokens{Input: 1000, Cache: centurion.CacheUsage{Read: 400}}}}
	at := curtain.UnixMilli()
	tool := func(status centurion.ToolStatus, s centurion.ToolState) *centurion.ToolState {
		s.Status = status
		return &s
	}
	msgs := []centurion.Message{
		{Role: centurion.RoleUser, Origin: centurion.OriginParent, Time: centurion.MessageTime{Created: at}, Parts: []centurion.Part{{Type: centurion.PartText, Text: "Do it.\nWell."}}},
		{Role: centurion.RoleAssistant, Agent: "worker", Time: centurion.MessageTime{Created: at}, Finish: centurion.FinishLength, Parts: []centurion.Part{
			{Type: centurion.PartReasoning, Text: "a\nb\nc\nd\ne\nf"},
			{Type: centurion.PartText, Text: "I look \x1b]0;x\aaround."},
			{Type: centurion.PartTool, Tool: "bash", State: tool(centurion.ToolCompleted, centurion.ToolState{Title: "go test ./...", Output: strings.Repeat("ok\n", 20), Time: centurion.PartTime{Start: 1, End: 1201}})},
			{Type: centurion.PartTool, Tool: "edit", State: tool(centurion.ToolError, centurion.ToolState{Input: []byte(`{"file_path":"a.go"}`), Error: "it changed since you read it"})},
			{Type: centurion.PartTool, Tool: "read"},
		}, Error: &centurion.MessageError{Name: "APIError", Data: centurion.MessageErrorData{Message: "500"}}},
	}
	var b bytes.Buffer
	task := sampleTasks()[5]
	task.Title += strings.Repeat(" again", 15)
	task.Result, task.Files, task.Outside = "Nothing."+strings.Repeat(" No.", 25), []string{"a.go"}, []string{"README.md"}
	if err := Show(&b, Shown{Mission: m, Task: &task, Session: &centurion.Session{ID: "ses_1", Title: "Try", Agent: "worker", Metadata: centurion.SessionMeta{Address: "0/1"}},
		Tasks: sampleTasks(), Messages: msgs, Receipts: []centurion.Receipt{{Command: "go vet ./...", Item: "T1", Passed: true, Millis: 900}, {Command: "go test\n./...", ExitCode: 2, Final: true},
			{Command: "make check", ExitCode: 1, Early: true}, {Command: "make check", Passed: true, Millis: 1200}}},
		ShowOptions{Now: curtain, Width: 80}); err != nil {
		t.Fatal(err)
	}
	golden(t, "show", b.String())
	for l := range strings.Lines(b.String()) {
		if text.Width(strings.TrimSuffix(l, "\n")) > 80 {
			t.Errorf("a line of %d cells: %s", text.Width(l), l)
		}
	}
	b.Reset()
	if err := Show(&b, Shown{Messages: msgs}, ShowOptions{Now: curtain, Full: true}); err != nil || strings.Contains(b.String(), "more lines") {
		t.Errorf("in full: %v\n%s", err, b.String())
	}
}

// A check that ran twice is two facts: each line has its time and its number, and one that proves nothing does not look like one that does.
func TestReceiptsOfSeveralRuns(t *testing.T) {
	at := func(sec int) centurion.Time { return ago(time.Duration(60-sec) * time.Second) }
	var b strings.Builder
	err := Show(&b, Shown{Mission: &centurion.Mission{ID: "msn_1"}, Receipts: []centurion.Receipt{
		{Command: "go test", Item: "T1", ExitCode: 1, Time: at(1)},
		{Command: "go test", Item: "T2", Passed: true, Millis: 900, Proof: centurion.ProofUnproven, Time: at(2)},
		{Command: "go test", Item: "T1", ExitCode: 1, Time: at(3)},
		{Command: "go test", Item: "T2", Passed: true, Millis: 900, Proof: centurion.ProofProven, Time: at(4)},
		{Command: "go vet", Item: "T2", Passed: true, Millis: 900, Time: at(5)},
	}}, ShowOptions{Now: curtain, Width: 100})
	if err != nil {
		t.Fatal(err)
	}
	clock := func(sec int) string { return at(sec).In(curtain.Location()).Format("15:04:05") }
	for _, want := range []string{"✗ " + clock(1) + " exit 1 · run 1 of 2 · T1 go test", "? " + clock(2) + " 900ms · unproven · run 1 of 2 · T2 go test",
		"✗ " + clock(3) + " exit 1 · run 2 of 2 · T1 go test", "✓ " + clock(4) + " 900ms · proven · run 2 of 2 · T2 go test", "✓ " + clock(5) + " 900ms · T2 go vet"} {
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
