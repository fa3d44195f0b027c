package view_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/event/view"
)

// known returns what a board holds, as JSON with sorted keys and without what is empty.
func known(t *testing.T, b *view.Board) string {
	t.Helper()
	data, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var all any
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(told(all)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// told drops what is empty; nil if nothing is left.
func told(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			if x = told(x); x != nil {
				out[k] = x
			}
		}
		if len(out) > 0 {
			return out
		}
		return nil
	case []any:
		var out []any
		for _, x := range v {
			out = append(out, told(x))
		}
		if len(out) > 0 {
			return out
		}
		return nil
	case string:
		if v != "" && v != "0001-01-01T00:00:00Z" {
			return v
		}
		return nil
	case float64:
		if v != 0 {
			return v
		}
		return nil
	case bool:
		if v {
			return v
		}
		return nil
	}
	return nil
}

// What a board knows after some events, whole: one case for each kind of event, and each field of it that is read.
func TestBoardIsWhole(t *testing.T) {
	delta := func(d event.DeltaData) [3]string {
		return [3]string{string(centurion.EventDelta), "", string(event.Data(d))}
	}
	started := [3]string{"mission.started", "", `{}`}
	for _, c := range []struct {
		name string
		all  [][3]string
		want string
	}{
		{"a mission with its limits", [][3]string{{"mission.started", "", `{"goal":"Build\u0007 it","directory":"/p","branch":"b","level":2,"status":"planning","options":{"max_workers":3,"max_per_agent":2,"max_cost":1.5,"max_tokens":500},"open":9}`}}, `{"Branch":"b","Directory":"/p","Goal":"Build it","ID":"msn_1","Last":"2026-03-01T12:00:00Z","Level":2,"MaxCost":1.5,"MaxTokens":500,"PerAgent":2,"Session":"ses_root","Slots":3,"Started":"2026-03-01T12:00:00Z","Status":"planning"}`},
		{"changed limits", [][3]string{started, {"mission.updated", "", `{"status":"running","reason":"waits","max_cost":2.5,"max_tokens":700,"spent":9,"duration_ms":9,"level":3,"goal":"g","directory":"/d","note":"n"}`}}, `{"Directory":"/d","Goal":"g","ID":"msn_1","Last":"2026-03-01T12:00:01Z","Level":3,"MaxCost":2.5,"MaxTokens":700,"Reason":"waits","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running"}`},
		{"changed to nothing", [][3]string{{"mission.started", "", `{"goal":"g","directory":"/d","level":2,"options":{"max_cost":1.5}}`}, {"mission.updated", "", `{}`}}, `{"Directory":"/d","Goal":"g","ID":"msn_1","Last":"2026-03-01T12:00:01Z","Level":2,"MaxCost":1.5,"Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running"}`},
		{"a limit is reached", [][3]string{started, {"budget.exceeded", "", `{"reason":"max_cost","limit":"max_cost","spent":2,"note":"n"}`}}, `{"ID":"msn_1","Last":"2026-03-01T12:00:01Z","Reason":"max_cost","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running"}`},
		{"a plan", [][3]string{started, {"todo.updated", "", `{"open":1,"running":2,"done":3,"cancelled":4,"blocked":5}`}}, `{"ID":"msn_1","Last":"2026-03-01T12:00:01Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running","Todo":{"blocked":5,"cancelled":4,"done":3,"open":1,"running":2}}`},
		{"an end", [][3]string{started, {"mission.updated", "", `{"reason":"before","countdown_ms":5000}`}, {"mission.failed", "", `{"reason":"no\u0007 key","summary":"one\u0007\ntwo","duration_ms":1,"id":"x","note":"n"}`}}, `{"End":{"duration_ms":1,"id":"x","note":"n","reason":"no key","summary":"one\ntwo"},"Ended":"2026-03-01T12:00:02Z","ID":"msn_1","Last":"2026-03-01T12:00:02Z","Reason":"no key","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"failed"}`},
		{"an end without a reason", [][3]string{started, {"mission.updated", "", `{"reason":"before"}`}, {"mission.paused", "", `{"usage":{"tokens":{"output":5}}}`}}, `{"End":{"reason":"before","usage":{"tokens":{"output":5}}},"Ended":"2026-03-01T12:00:02Z","ID":"msn_1","Last":"2026-03-01T12:00:02Z","Reason":"before","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"paused"}`},
		{"a countdown that is called off", [][3]string{started, {"mission.updated", "", `{"countdown_ms":5000}`}, {"mission.updated", "", `{"countdown_ms":0}`}}, `{"ID":"msn_1","Last":"2026-03-01T12:00:02Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running"}`},
		{"a task, queued", [][3]string{started, {"task.queued", "tsk_a", `{"agent":"worker","title":"Write\u0007 it","item":"T2","parent":"ses_root","name":"w7","status":"queued","attempt":1,"files":["a.go"],"changed":8,"reason":"a\u0007 slot","session":"ses_root"}`}}, `{"ID":"msn_1","Last":"2026-03-01T12:00:01Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running","Tasks":[{"Short":"w7","agent":"worker","attempt":1,"created":"2026-03-01T12:00:01.000Z","files":["a.go"],"id":"tsk_a","item":"T2","mission":"msn_1","parent":"ses_root","reason":"a slot","status":"queued","title":"Write it"}]}`},
		{"a task of an older journal", [][3]string{started, {"task.queued", "", `{"id":"tsk_b","agent":"worker","status":"queued"}`}, {"task.queued", "", `{"agent":"worker","status":"queued"}`}}, `{"ID":"msn_1","Last":"2026-03-01T12:00:02Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running","Tasks":[{"agent":"worker","created":"2026-03-01T12:00:01.000Z","id":"tsk_b","mission":"msn_1","status":"queued"}]}`},
		{"a task, waiting to be tried again", [][3]string{started, {"task.started", "tsk_a", `{"status":"running"}`}, {"task.retrying", "tsk_a", `{"status":"waiting","attempt":2,"wait_ms":1000,"error":{"kind":"network","message":"cut\u0007_off"},"changed":8}`}}, `{"ID":"msn_1","Last":"2026-03-01T12:00:02Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running","Tasks":[{"Retry":{"Attempt":2,"Reason":"cut off","Until":"2026-03-01T12:00:03Z"},"attempt":2,"created":"2026-03-01T12:00:01.000Z","error":{"kind":"network","message":"cut\u0007_off"},"id":"tsk_a","mission":"msn_1","session":"ses_tsk_a","started":"2026-03-01T12:00:01.000Z","status":"waiting"}]}`},
		{"a task, retried without a wait", [][3]string{started, {"task.started", "tsk_a", `{"status":"running"}`}, {"task.retrying", "tsk_a", `{"status":"waiting","reason":"stall"}`}}, `{"ID":"msn_1","Last":"2026-03-01T12:00:02Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running","Tasks":[{"created":"2026-03-01T12:00:01.000Z","id":"tsk_a","mission":"msn_1","reason":"stall","session":"ses_tsk_a","started":"2026-03-01T12:00:01.000Z","status":"waiting"}]}`},
		{"a task, begun again", [][3]string{started, {"task.started", "tsk_a", `{"status":"running"}`}, {"task.updated", "tsk_a", `{"status":"queued"}`}, {"task.started", "tsk_a", `{"status":"running"}`}}, `{"ID":"msn_1","Last":"2026-03-01T12:00:03Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running","Tasks":[{"created":"2026-03-01T12:00:01.000Z","id":"tsk_a","mission":"msn_1","session":"ses_tsk_a","started":"2026-03-01T12:00:03.000Z","status":"running"}]}`},
		{"a task that goes on after a check", [][3]string{started, {"task.started", "tsk_a", `{"status":"running"}`}, {"tool.started", "tsk_a", `{"tool":"ls"}`}, {"task.verifying", "tsk_a", `{}`}, {"task.updated", "tsk_a", `{"status":"running"}`}}, `{"ID":"msn_1","Last":"2026-03-01T12:00:04Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running","Tasks":[{"Doing":"ls","created":"2026-03-01T12:00:01.000Z","id":"tsk_a","mission":"msn_1","session":"ses_tsk_a","started":"2026-03-01T12:00:01.000Z","status":"running"}]}`},
		{"a task begun without a state", [][3]string{started, {"task.queued", "tsk_a", `{}`}, {"task.started", "tsk_a", `{}`}}, `{"ID":"msn_1","Last":"2026-03-01T12:00:02Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running","Tasks":[{"created":"2026-03-01T12:00:01.000Z","id":"tsk_a","mission":"msn_1","session":"ses_tsk_a","started":"2026-03-01T12:00:02.000Z","status":"running"}]}`},
		{"a task, failed", [][3]string{started, {"task.started", "tsk_a", `{"status":"running"}`}, {"message.updated", "tsk_a", `{"text":"tried","usage":{"tokens":{"output":5}}}`}, {"task.failed", "tsk_a", `{"status":"failed","error":{"kind":"verify","message":"red"},"usage":{"tokens":{"output":3}}}`}}, `{"ID":"msn_1","Last":"2026-03-01T12:00:03Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running","Tasks":[{"Doing":"tried","Said":"tried","created":"2026-03-01T12:00:01.000Z","ended":"2026-03-01T12:00:03.000Z","error":{"kind":"verify","message":"red"},"id":"tsk_a","mission":"msn_1","session":"ses_tsk_a","started":"2026-03-01T12:00:01.000Z","status":"failed","usage":{"tokens":{"output":5}}}]}`},
		{"a task in another session than its event", [][3]string{started, {"session.created", "tsk_a", `{"address":"0/1","agent":"worker"}`}, {"task.updated", "", `{"id":"tsk_c","status":"running","session":"ses_tsk_a","address":"0/9"}`}}, `{"ID":"msn_1","Last":"2026-03-01T12:00:02Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running","Tasks":[{"Address":"0/1","created":"2026-03-01T12:00:02.000Z","id":"tsk_c","mission":"msn_1","session":"ses_tsk_a","started":"2026-03-01T12:00:02.000Z","status":"running"}]}`},
		{"a session of a known task", [][3]string{started, {"task.queued", "tsk_a", `{"status":"queued","session":"ses_x"}`}, {"session.created", "tsk_a", `{"address":"0/1","agent":"wor\u0007ker"}`}}, `{"ID":"msn_1","Last":"2026-03-01T12:00:02Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running","Tasks":[{"Address":"0/1","created":"2026-03-01T12:00:01.000Z","id":"tsk_a","mission":"msn_1","session":"ses_tsk_a","status":"queued"}]}`},
		{"the root session, told by its first event", [][3]string{{"session.created", "", `{"address":"0/","agent":"commander"}`}, {"tool.started", "", `{"tool":"ls","title":"a\u0007"}`}}, `{"Commander":{"Address":"0/","Doing":"ls a"},"ID":"msn_1","Last":"2026-03-01T12:00:01Z","Session":"ses_root"}`},
		{"a wait for the provider", [][3]string{started, {"provider.retrying", "", `{"attempt":2,"wait_ms":3000,"reason":"rate_limit","error":"429","note":"n","changed":8}`}}, `{"Commander":{"Retry":{"Attempt":2,"Reason":"rate limit","Until":"2026-03-01T12:00:04Z"}},"ID":"msn_1","Last":"2026-03-01T12:00:01Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running"}`},
		{"a wait without a reason", [][3]string{started, {"provider.retrying", "", `{"attempt":2,"wait_ms":3000,"error":"4\u000729"}`}}, `{"Commander":{"Retry":{"Attempt":2,"Reason":"429","Until":"2026-03-01T12:00:04Z"}},"ID":"msn_1","Last":"2026-03-01T12:00:01Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running"}`},
		{"an answer", [][3]string{started, delta(event.DeltaData{Field: "text", Delta: "one\ntw"}), {"message.updated", "", `{"text":"one\ntwo","usage":{"tokens":{"output":5},"cost":1}}`}, delta(event.DeltaData{Field: "text", Delta: "next"})}, `{"Commander":{"Doing":"next","Said":"one\ntwo"},"ID":"msn_1","Last":"2026-03-01T12:00:03Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running"}`},
		{"thoughts", [][3]string{started, {"message.part.updated", "", `{"type":"text","text":"said\nthis"}`}, {"message.part.updated", "", `{"type":"reasoning","text":"hm"}`}}, `{"Commander":{"Doing":"this","Said":"said\nthis"},"ID":"msn_1","Last":"2026-03-01T12:00:02Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running"}`},
		{"a line about a call, then text", [][3]string{started, delta(event.DeltaData{Field: "text", Delta: "text"}), delta(event.DeltaData{Field: "progress", Delta: "half done"}), delta(event.DeltaData{Field: "text", Delta: " and more"})}, `{"Commander":{"Doing":"half done and more"},"ID":"msn_1","Last":"2026-03-01T12:00:03Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running"}`},
		{"after a gap", [][3]string{started, delta(event.DeltaData{Field: "text", Delta: "lost"}), delta(event.DeltaData{Gap: true}), delta(event.DeltaData{Field: "text", Delta: "found"})}, `{"Commander":{"Doing":"found"},"ID":"msn_1","Last":"2026-03-01T12:00:03Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running"}`},
		{"a line that has ended", [][3]string{started, delta(event.DeltaData{Field: "text", Delta: "\none\n"}), delta(event.DeltaData{Field: "text", Delta: " \n"})}, `{"Commander":{"Doing":"one"},"ID":"msn_1","Last":"2026-03-01T12:00:02Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running"}`},
		{"an answer to nobody's task", [][3]string{started, {"task.started", "tsk_a", `{"status":"running"}`}, {"session.error", "tsk_a", `{"error":"no\u0007"}`}, {"session.error", "", `{"error":"no\u0007"}`}}, `{"Commander":{"Doing":"no"},"ID":"msn_1","Last":"2026-03-01T12:00:03Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running","Tasks":[{"created":"2026-03-01T12:00:01.000Z","id":"tsk_a","mission":"msn_1","session":"ses_tsk_a","started":"2026-03-01T12:00:01.000Z","status":"running"}]}`},
		{"a sub-agent's session", [][3]string{started, {"tool.started", "tsk_a", `{"tool":"ls"}`}, {"session.model", "", `{"to":"b/\u0007two"}`}}, `{"Commander":{"Doing":"continues with b/two"},"ID":"msn_1","Last":"2026-03-01T12:00:02Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running"}`},
		{"text after a call", [][3]string{started, delta(event.DeltaData{Field: "text", Delta: "half"}), {"tool.completed", "", `{"tool":"ls"}`}, delta(event.DeltaData{Field: "text", Delta: "whole"})}, `{"Commander":{"Doing":"whole"},"ID":"msn_1","Last":"2026-03-01T12:00:03Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running"}`},
		{"text after a stop", [][3]string{started, delta(event.DeltaData{Field: "text", Delta: "half"}), {"session.aborted", "", `{"reason":"by\u0007 a person"}`}, delta(event.DeltaData{Field: "text", Delta: "whole"})}, `{"Commander":{"Doing":"whole"},"ID":"msn_1","Last":"2026-03-01T12:00:03Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running"}`},
		{"text after an idle session", [][3]string{started, delta(event.DeltaData{Field: "text", Delta: "half"}), {"session.idle", "", `{}`}, delta(event.DeltaData{Field: "text", Delta: "whole"})}, `{"Commander":{"Doing":"whole"},"ID":"msn_1","Last":"2026-03-01T12:00:03Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running"}`},
		{"a task's session rests", [][3]string{started, {"task.started", "tsk_a", `{"status":"running"}`}, {"tool.started", "tsk_a", `{"tool":"ls"}`}, {"session.idle", "tsk_a", `{}`}, {"verify.undone", "tsk_a", `{"command":"x"}`}}, `{"ID":"msn_1","Last":"2026-03-01T12:00:04Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running","Tasks":[{"Doing":"ls","created":"2026-03-01T12:00:01.000Z","id":"tsk_a","mission":"msn_1","session":"ses_tsk_a","started":"2026-03-01T12:00:01.000Z","status":"running"}]}`},
		{"an ask of a task", [][3]string{started, {"task.started", "tsk_a", `{"status":"running","agent":"worker"}`}, {"permission.asked", "tsk_a", `{"id":"per_1","permission":"bash","title":"t","patterns":["ls *"],"line":"l"}`}, {"permission.asked", "tsk_a", `{"id":"per_1","permission":"edit"}`}}, `{"Asks":[{"Task":"tsk_a","agent":"worker","id":"per_1","permission":"edit","session":"ses_tsk_a","type":"permission"}],"ID":"msn_1","Last":"2026-03-01T12:00:03Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running","Tasks":[{"agent":"worker","created":"2026-03-01T12:00:01.000Z","id":"tsk_a","mission":"msn_1","session":"ses_tsk_a","started":"2026-03-01T12:00:01.000Z","status":"running"}]}`},
		{"asks without an id", [][3]string{started, {"question.asked", "tsk_a", `{"text":"a?","agent":"a\u0007b"}`}, {"question.asked", "", `{"text":"b?"}`}, {"question.answered", "", `{}`}}, `{"Asks":[{"Task":"tsk_a","agent":"ab","session":"ses_tsk_a","text":"a?","type":"question"}],"ID":"msn_1","Last":"2026-03-01T12:00:03Z","Session":"ses_root","Started":"2026-03-01T12:00:00Z","Status":"running"}`},
	} {
		if got := known(t, board(c.all...)); got != c.want+"\n" {
			t.Errorf("%s:\n%s", c.name, got)
		}
	}
}

// What a call is about is its most telling argument.
func TestToolSubject(t *testing.T) {
	keys := []string{"command", "file_path", "filePath", "path", "pattern", "description", "title", "item", "task_id", "task", "summary", "other"}
	for i, want := range keys {
		args := map[string]any{"n": 1}
		for _, k := range keys[i:] {
			args[k] = "of\u0007 " + k
		}
		for _, k := range keys[:i] {
			args[k] = ""
		}
		if want = "of " + want; want == "of other" {
			want = ""
		}
		if got := view.ToolSubject("x", event.Data(args)); got != want {
			t.Errorf("%v: %q, want %q", args, got, want)
		}
	}
	if got := view.ToolLine(view.Fact{Title: "title"}); got != "" {
		t.Errorf("a call of no tool: %q", got)
	}
}

// What is malformed in one of its forms is an error, and one number of tokens is the model's output.
func TestDecodeErrors(t *testing.T) {
	for data, bad := range map[string]bool{
		`{"options":[1]}`: true, `{"options":{"max_workers":"x"}}`: true, `{"error":{"kind":1}}`: true, `{"tokens":{"output":"x"}}`: true,
		`{"options":["a"],"error":{"kind":"auth"},"tokens":3}`: false, `{"options":{"max_workers":1},"error":"x","tokens":{"output":3}}`: false,
	} {
		if _, err := view.Decode(fact(centurion.EventMessageUpdated, data)); (err != nil) != bad {
			t.Errorf("%s: %v", data, err)
		}
	}
	if _, err := view.Decode(fact(centurion.EventDelta, `[]`)); err == nil {
		t.Error("a delta of another form is none")
	}
}
