package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"centurion"
)

// SUB-10, SUB-11, OPAL-74: what a sub-agent's parent is told of its end: how it ended, what it had done, its newest calls and
// its last words; clients get the log of its newest hundred calls. Whatever the end, it is not told a second time.
func TestSubReport(t *testing.T) {
	var calls []SubCall
	for i := range 103 {
		calls = append(calls, SubCall{ID: fmt.Sprint("call_", i), Tool: "read", Args: fmt.Sprint(i)})
	}
	calls[102].Error = "no such file"
	for status, how := range map[centurion.TaskStatus]string{centurion.TaskFailed: "failed", centurion.TaskCancelled: "was stopped", centurion.TaskBlocked: "was blocked"} {
		rep := SubReport{Calls: calls, Task: centurion.Task{ID: "tsk_1", Status: status, Result: "I had begun.",
			Error: &centurion.TaskError{Kind: centurion.KindTimeout, Message: "nothing has come", Hint: "ask for less"}}}
		r, err := rep.result("ses_0")
		want := "the sub-agent " + how + " (timeout): nothing has come. ask for less\nWhat it had done: 103 tool calls: read ×103; 0 tokens, $0.00\n" +
			"- read 98\n- read 99\n- read 100\n- read 101\n- read 102: no such file\nIts last words:\nI had begun."
		if got := modelWords(err); got != want || centurion.KindOf(err) != centurion.KindTimeout {
			t.Errorf("%s: told\n%s\nwant\n%s", status, got, want)
		}
		if !slices.Equal(r.Consumes, []string{"tsk_1"}) {
			t.Errorf("%s: it takes %q", status, r.Consumes)
		}
		log, _ := r.Metadata["log"].([]SubCall)
		if len(log) != 100 || log[0].ID != "call_3" || log[99].ID != "call_102" || r.Metadata["tool_calls"] != 103 {
			t.Errorf("%s: a log of %d calls of %v", status, len(log), r.Metadata["tool_calls"])
		}
	}
	rep := SubReport{Task: centurion.Task{ID: "tsk_1", Status: centurion.TaskRunning, Result: "not yet"}}
	if r, err := rep.result("ses_0"); err != nil || len(r.Consumes) != 0 || !strings.Contains(r.Output, "its result will follow") {
		t.Errorf("of one that goes on: %+v, %v", r, err)
	}
}

// family is the orchestrator as far as sub_agent sees it.
type family struct {
	spawned SubAgent
	joined  string
}

func (f *family) Spawn(_ context.Context, _ *Call, s SubAgent) (centurion.Task, error) {
	f.spawned = s
	return centurion.Task{ID: "tsk_1", Number: 1, Title: "look"}, nil
}

func (f *family) Join(_ context.Context, _ *Call, task string) (SubReport, error) {
	f.joined = task
	at := centurion.MillisTime(5000)
	return SubReport{Model: "acme/large", Task: centurion.Task{ID: task, Status: centurion.TaskCompleted, Result: "Seen.\n\n", Session: "ses_1", Started: at,
		Ended: centurion.MillisTime(8500), Files: []string{"a.go"}, Usage: centurion.Usage{Tokens: centurion.Tokens{Input: 1200}, Unpriced: true}}}, nil
}

// SUB-10: what a model asks for reaches the host without blanks, and what became of it the model.
func TestSubAgent(t *testing.T) {
	b := newBench(t)
	b.refused("sub_agent", args{"prompt": "x"}, centurion.KindPermission, "your role starts no sub-agents", "do it yourself")
	f, begun, told := &family{}, 0, ""
	b.SubAgents, b.Begun, b.Progress = f, func() { begun++ }, func(s string) { told = s }
	b.refused("sub_agent", args{"prompt": " "}, centurion.KindUsage, "the prompt is empty")
	r := b.must("sub_agent", args{"prompt": " Look. ", "tools": []string{" read ", "grep"}, "model": " acme/large ", "system_prompt": "\nBe brief.\n"})
	if d := cmp.Diff(SubAgent{Prompt: " Look. ", Tools: []string{"read", "grep"}, Model: "acme/large", System: "Be brief."}, f.spawned); d != "" {
		t.Error(d)
	}
	want(t, "output", r.Output, "Seen.\n\n(0 tool calls; 1 file changed; 1.2k tokens, 3.5s)")
	want(t, "joined", f.joined, "tsk_1")
	want(t, "begun", begun, 1)
	want(t, "told", told, "sub-agent w1: look")
	wantList(t, "consumed", r.Consumes, "tsk_1")
	if d := cmp.Diff(map[string]string{"providerID": "acme", "modelID": "large"}, r.Metadata["model"]); d != "" || r.Metadata["ms"] != int64(3500) || r.Metadata["parentSessionId"] != "ses_1" {
		t.Errorf("%s, %v", d, r.Metadata)
	}
}

// What of a conversation counts as a call, and what is known of one that has not ended.
func TestSubCalls(t *testing.T) {
	state := func(s centurion.ToolStatus) *centurion.ToolState {
		st := &centurion.ToolState{Status: s, Input: []byte(`{ "a": 1 }`), Output: "out", Error: ""}
		st.Time.Start, st.Time.End = 100, 350
		return st
	}
	part := func(id string, st *centurion.ToolState) centurion.Part {
		return centurion.Part{Type: centurion.PartTool, CallID: id, Tool: "read", State: st}
	}
	got := SubCalls([]centurion.Message{
		{Role: centurion.RoleUser, Parts: []centurion.Part{part("of a person", state(centurion.ToolCompleted))}},
		{Role: centurion.RoleAssistant, Parts: []centurion.Part{{Type: centurion.PartText}, part("1", state(centurion.ToolCompleted)), part("without a state", nil), part("2", state(centurion.ToolRunning))}},
	})
	want := []SubCall{{ID: "1", Tool: "read", Args: `{"a":1}`, Result: "out", Millis: 250}, {ID: "2", Tool: "read", Args: `{"a":1}`, Result: "out", Error: "has not ended"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// The last text of a sub-agent is cut where it would fill its parent's history, not before.
func TestSubTextIsCut(t *testing.T) {
	full := strings.Repeat("x", subTextMax)
	want(t, "full", capped(full+"\n", "ses_1"), full)
	want(t, "more", capped(full+"y", "ses_1"), full+"\n… (24576 of 24577 bytes; the whole: centurion show ses_1)")
}

func modelWords(err error) string {
	e, ok := err.(*centurion.Error)
	if !ok {
		return fmt.Sprint(err)
	}
	return e.Msg
}
