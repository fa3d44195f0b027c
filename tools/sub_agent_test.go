package tools

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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
	for status, how := range map[centurion.TaskStatus]string{centurion.TaskFailed: "failed", centurion.TaskCancelled: "was stopped", centurion.TaskBlocked: "was kept from going on"} {
		rep := SubReport{Calls: calls, Task: centurion.Task{ID: "tsk_1", Status: status, Result: "I had begun.",
			Error: &centurion.TaskError{Kind: centurion.KindTimeout, Message: "nothing has come", Hint: "ask for less"}}}
		r, err := rep.result("ses_0")
		want := "the sub-agent " + how + " (timeout): nothing has come. ask for less\nWhat it had done: 103 tool calls: read ×103; 0 tokens, $0.0000\n" +
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
	if r, err := rep.result("ses_0"); err != nil || len(r.Consumes) != 0 || !strings.Contains(r.Output, "you will be told its result") {
		t.Errorf("of one that goes on: %+v, %v", r, err)
	}
}

func modelWords(err error) string {
	e, ok := err.(*centurion.Error)
	if !ok {
		return fmt.Sprint(err)
	}
	return e.Msg
}
