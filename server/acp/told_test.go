package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/roots"
	"centurion/server"
	v1 "centurion/server/opencode/v1"
	"centurion/store"
)

// toldBad is the message by which a test says that it expects to hear something.
const toldBad = "msg_say"

// hears returns what hears the person's messages: an error, unless the test has asked for them.
func (h *host) hears(t *testing.T) func(string) {
	return func(said string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if _, expected := h.messages[toldBad]; !expected {
			t.Error(said)
		}
		h.answers = append(h.answers, "said "+said)
	}
}

func (h *host) Messages(context.Context, string) (all []server.Message, err error) {
	for _, id := range slices.Sorted(maps.Keys(h.messages)) {
		all = append(all, h.messages[id])
	}
	return all, nil
}

func (h *host) Change(_ context.Context, id string, c roots.Change) (centurion.Session, error) {
	h.answers = append(h.answers, fmt.Sprint(id, " is one of ", *c.Agent, " for ", *c.Profile))
	return centurion.Session{}, nil
}

// A session that is loaded is told from its beginning: what the person and its own agent said, calls with their results, the plan and
// what is asked. What is being written comes when it is whole, and nothing twice.
func TestLoad(t *testing.T) {
	id := centurion.NewID(centurion.PrefixSession)
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		say := func(n string, m server.Message) {
			m.Info.ID, m.Info.SessionID = n, id
			e.messages[n] = m
		}
		bash := centurion.Part{ID: "prt_b", Type: centurion.PartTool, Tool: "bash", State: &centurion.ToolState{Status: centurion.ToolCompleted, Input: json.RawMessage(`{"command":"ls"}`), Output: "a"}}
		user, assistant := centurion.Message{Role: centurion.RoleUser}, centurion.Message{Role: centurion.RoleAssistant, Time: centurion.MessageTime{Completed: 1}}
		say("msg_1", server.Message{Info: user, Origin: centurion.OriginPerson, Parts: []centurion.Part{textPart("p1", "Do it"), {Type: centurion.PartText, Text: "hidden", Synthetic: true},
			{Type: centurion.PartFile, File: &centurion.File{Name: "a.txt", Mime: "text/plain"}}, {Type: centurion.PartReasoning, Text: "no"}}})
		say("msg_2", server.Message{Info: assistant, Parts: []centurion.Part{{ID: "p2", Type: centurion.PartReasoning, Text: "Hm."}, textPart("p3", "I look."), bash}})
		say("msg_3", server.Message{Info: user, Origin: centurion.OriginHost, Parts: []centurion.Part{textPart("p4", "status")}})
		summary, half := assistant, assistant
		summary.Summary, half.Time.Completed = true, 0
		say("msg_4", server.Message{Info: summary, Parts: []centurion.Part{textPart("p5", "summary")}})
		say("msg_5", server.Message{Info: half, Parts: []centurion.Part{textPart("p6", "One, ")}})
		e.status = centurion.MissionRunning
		e.todo = event.TodoData{Items: []event.PlanItem{{ID: "T1", Title: "a", Status: "open"}}}
		e.asks = []store.Ask{{ID: "que_1", Mission: "msn_1", Type: store.AskQuestion, Title: "Which?\nof them"}, {ID: "que_2", Mission: "msn_2", Type: store.AskQuestion, Title: "Not this one"}}
		got := e.says(`{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"cwd":"/p/","sessionId":"` + id + `"}}`)
		whole := e.messages["msg_5"]
		whole.Info.Time.Completed, whole.Parts = 1, []centurion.Part{textPart("p6", "One, two.")}
		e.host.mu.Lock()
		e.messages["msg_5"] = whole
		e.host.mu.Unlock()
		e.delta(id, event.DeltaData{Part: "p6", Field: "text", Delta: "two"})
		e.tell(centurion.Event{Type: centurion.EventMessageUpdated, Session: id, Data: event.Data(map[string]string{"message": "msg_5"})})
		got += e.says(`{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"cancelled"}}}`)
		got = strings.ReplaceAll(strings.ReplaceAll(got, `{"method":"session/update","params":{"sessionId":"`+id+`","update":`, ""), id, "ID")
		chunk := func(kind, text string) string {
			return `{"sessionUpdate":"` + kind + `_chunk","content":{"type":"text","text":"` + text + `"}}`
		}
		var told, aside []string // what is asked and the commands come when they come
		for line := range strings.Lines(strings.ReplaceAll(got, "}}}\n", "}\n")) {
			if strings.Contains(line, "request_permission") || strings.Contains(line, "available_commands") {
				aside = append(aside, line)
			} else {
				told = append(told, line)
			}
		}
		slices.Sort(aside)
		want(t, "beside it", strings.Join(aside, ""),
			"{\"id\":1,\"method\":\"session/request_permission\",\"params\":{\"options\":[{\"optionId\":\"chat\",\"name\":\"Answer in the chat\",\"kind\":\"allow_once\"},{\"optionId\":\"(the person did not answer)\",\"name\":\"Do not answer\",\"kind\":\"reject_once\"}],\"sessionId\":\"ID\",\"toolCall\":{\"content\":[{\"type\":\"content\",\"content\":{\"type\":\"text\",\"text\":\"```\\nWhich?\\nof them\\n```\"}}],\"toolCallId\":\"que_1\",\"title\":\"Which?\",\"kind\":\"other\",\"status\":\"pending\"}",
			`{"sessionUpdate":"available_commands_update","availableCommands":[{"description":"Work","input":{"hint":"what to do"},"name":"task"}]}`)
		want(t, "loaded", strings.Join(told, ""), chunk("user_message", "Do it"), chunk("user_message", "[file a.txt]"), chunk("agent_thought", "Hm."), chunk("agent_message", "I look."),
			"{\"sessionUpdate\":\"tool_call\",\"content\":[{\"type\":\"content\",\"content\":{\"type\":\"text\",\"text\":\"```\\na\\n```\"}}],\"toolCallId\":\"prt_b\",\"title\":\"`ls`\",\"kind\":\"execute\",\"status\":\"completed\",\"rawInput\":{\"command\":\"ls\"},\"rawOutput\":{\"output\":\"a\"}}",
			chunk("agent_message", "One, "), `{"sessionUpdate":"plan","entries":[{"content":"T1 a","priority":"medium","status":"pending"}]}`,
			`{"id":1,"result":{"modes":{"availableModes":[{"description":"","id":"assistant","name":"assistant"},{"description":"","id":"commander","name":"commander"}],"currentModeId":"assistant"}`,
			chunk("agent_message", "two."))
	})
}

// callOf is a call of the session's own agent, or of a task's, as it is told.
func callOf(t *testing.T, part centurion.Part, task string) string {
	t.Helper()
	s := &session{project: &project{Project: &Project{Project: &v1.Project{Directory: "/p", API: func() server.API { return &host{} }}}}, conn: &conn{ctx: t.Context()}, id: "ses_1"}
	s.telling.reset()
	b, err := json.Marshal(s.call(part, "ses_1", task))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(string(b), `{"sessionUpdate":"tool_call",`)
}

// A call says where it is, what it is given and what it did: a new file whole, an output as it stands, a failure as one.
func TestCalls(t *testing.T) {
	call := func(tool, input, title string, status centurion.ToolStatus, text string, meta map[string]any) centurion.Part {
		st := &centurion.ToolState{Status: status, Input: json.RawMessage(input), Title: title, Output: text, Metadata: meta}
		if status == centurion.ToolError {
			st.Output, st.Error = "", text
		}
		return centurion.Part{ID: "p", Type: centurion.PartTool, Tool: tool, State: st}
	}
	long := strings.Repeat("x", 201)
	const diff = "--- a/a.go\n+++ b/a.go\n@@ -0,0 +1 @@\n+x\n"
	for i, c := range []struct {
		part centurion.Part
		task string
		want string
	}{
		{call("read", `{"filePath":"a.go","offset":7}`, "", centurion.ToolPending, "", nil), "",
			`"toolCallId":"p","title":"read a.go","kind":"read","status":"pending","locations":[{"path":"/p/a.go","line":7}],"rawInput":{"filePath":"a.go","offset":7}}`},
		{call("read", `{"filePath":"/b.go"}`, "of b", centurion.ToolCompleted, "x", nil), "",
			`"content":[{"type":"content","content":{"type":"text","text":"x"}}],"toolCallId":"p","title":"read of b","kind":"read","status":"completed","locations":[{"path":"/b.go"}],"rawInput":{"filePath":"/b.go"},"rawOutput":{"output":"x"}}`},
		{call("bash", `{"command":"a\nb"}`, "t", centurion.ToolError, "no ``` here", nil), "tsk_1",
			"\"content\":[{\"type\":\"content\",\"content\":{\"type\":\"text\",\"text\":\"````\\nno ``` here\\n````\"}}],\"toolCallId\":\"p\",\"title\":\"T2 worker: `a\\nb`\",\"kind\":\"execute\",\"status\":\"failed\",\"rawInput\":{\"command\":\"a\\nb\"},\"rawOutput\":{\"error\":\"no ``` here\"}}"},
		{call("write", `{"filePath":"a.go","content":"x\n"}`, "", centurion.ToolCompleted, "new", map[string]any{"diff": diff, "exists": false}), "",
			`"content":[{"type":"diff","path":"/p/a.go","newText":"x\n"}],"toolCallId":"p","title":"write a.go","kind":"edit","status":"completed","locations":[{"path":"/p/a.go"}],"rawInput":{"content":"x\n","filePath":"a.go"},"rawOutput":{"output":"new"}}`},
		{call("write", `{"filePath":"a.go","content":"x\n"}`, "", centurion.ToolCompleted, "old", map[string]any{"diff": diff, "exists": true}), "",
			`"content":[{"type":"diff","path":"/p/a.go","oldText":"","newText":"x\n"}],"toolCallId":"p","title":"write a.go","kind":"edit","status":"completed","locations":[{"path":"/p/a.go"}],"rawInput":{"content":"x\n","filePath":"a.go"},"rawOutput":{"output":"old"}}`},
		{call("edit", `{"filePath":"a.go","oldString":"a"}`, "", centurion.ToolError, "none", map[string]any{"diff": diff}), "",
			`"content":[{"type":"content","content":{"type":"text","text":"none"}}],"toolCallId":"p","title":"edit a.go","kind":"edit","status":"failed","locations":[{"path":"/p/a.go"}],"rawInput":{"filePath":"a.go","oldString":"a"},"rawOutput":{"error":"none"}}`},
		{call("ask_user", `{"question":"which?\nor"}`, "", centurion.ToolRunning, "", nil), "", `"toolCallId":"p","title":"ask_user which?","kind":"other","status":"in_progress","rawInput":{"question":"which?\nor"}}`},
		{call("todo", `[1]`, "", centurion.ToolRunning, "", nil), "", `"toolCallId":"p","title":"todo","kind":"other","status":"in_progress","rawInput":null}`},
		{call("grep", `{"pattern":"`+long+`"}`, "", centurion.ToolRunning, "", nil), "", `"toolCallId":"p","title":"grep ` + centurion.Clip(long, 200) + `","kind":"search","status":"in_progress","rawInput":{"pattern":"` + long + `"}}`},
		{call("bash", `{"command":"`+long+`"}`, "", centurion.ToolRunning, "", nil), "", "\"toolCallId\":\"p\",\"title\":\"`" + centurion.Clip(long, 200) + "`\",\"kind\":\"execute\",\"status\":\"in_progress\",\"rawInput\":{\"command\":\"" + long + `"}}`},
	} {
		if got := callOf(t, c.part, c.task); got != c.want {
			t.Errorf("%d: got\n%s\nwant\n%s", i, got, c.want)
		}
	}
}

// What a running command prints is told as it comes, and no more once it has ended.
func TestPrints(t *testing.T) {
	part := centurion.Part{ID: "prt_1", Type: centurion.PartTool, Tool: "bash", State: &centurion.ToolState{Status: centurion.ToolRunning, Input: json.RawMessage(`{"command":"ls"}`)}}
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		e.says(newSession)
		e.says(aPrompt)
		e.delta("ses_1", event.DeltaData{Part: "prt_1", Field: "output", Delta: "early"})
		e.message("ses_1", "", "", part)
		e.delta("ses_1", event.DeltaData{Part: "prt_1", Field: "output", Delta: "a\n"})
		e.delta("ses_1", event.DeltaData{Part: "prt_1", Field: "output", Delta: "b\n"})
		done := *part.State
		done.Status, done.Output = centurion.ToolCompleted, "a\nb"
		part.State = &done
		e.message("ses_1", "", "", part)
		e.delta("ses_1", event.DeltaData{Part: "prt_1", Field: "output", Delta: "late"})
		print := func(text string) string {
			return "{\"sessionUpdate\":\"tool_call_update\",\"content\":[{\"type\":\"content\",\"content\":{\"type\":\"text\",\"text\":\"```\\n" + text + "\\n```\"}}],\"toolCallId\":\"prt_1\"}"
		}
		want(t, "printed", e.says(""), "{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"prt_1\",\"title\":\"`ls`\",\"kind\":\"execute\",\"status\":\"in_progress\",\"rawInput\":{\"command\":\"ls\"}}",
			print("a\\n"), print("a\\nb\\n"),
			strings.Replace(print("a\\nb"), "}}],\"toolCallId\":\"prt_1\"}", "}}],\"toolCallId\":\"prt_1\",\"title\":\"`ls`\",\"kind\":\"execute\",\"status\":\"completed\",\"rawInput\":{\"command\":\"ls\"},\"rawOutput\":{\"output\":\"a\\nb\"}}", 1))
	})
}

// The agent of a session is chosen before its first message; choosing the same one later changes nothing.
func TestSetMode(t *testing.T) {
	mode := func(name string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"session/set_mode","params":{"sessionId":"ses_1","modeId":"` + name + `"}}`
	}
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		e.says(newSession)
		want(t, "chosen", e.says(mode("commander"))+e.says(mode("assistant")), `{"id":7,"result":{}}`, `{"id":7,"result":{}}`)
		e.status = centurion.MissionRunning
		want(t, "chosen again", e.says(mode("assistant")), `{"id":7,"result":{}}`)
		if got := strings.Join(e.answers, "|"); got != "ses_1 is one of commander for mission|ses_1 is one of assistant for assistant" {
			t.Errorf("changed: %s", got)
		}
		if got := e.says(mode("nobody")); !strings.Contains(got, `"code":-32602`) || !strings.Contains(got, "nobody") {
			t.Errorf("an unknown one: %s", got)
		}
	})
}

// An ask that waits for a call is shown as that call, with its changes; an answer that nobody offered leaves it open, and says so.
func TestAskOfCall(t *testing.T) {
	part := centurion.Part{ID: "prt_1", CallID: "c1", Type: centurion.PartTool, Tool: "edit", State: &centurion.ToolState{Status: centurion.ToolRunning, Input: json.RawMessage(`{"filePath":"a.go"}`)}}
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		e.says(newSession)
		e.says(aPrompt)
		e.host.mu.Lock()
		e.messages["msg_x"] = server.Message{Parts: []centurion.Part{textPart("p", "x"), part, {ID: "prt_2", CallID: "c2", Type: centurion.PartTool, State: part.State}}}
		e.messages[toldBad] = server.Message{}
		e.asks = []store.Ask{{ID: "per_9", Mission: "msn_2"}, {ID: "per_1", Mission: "msn_1", Type: store.AskPermission, Session: "ses_child", Task: "tsk_1", Message: "msg_x", Call: "c1", Permission: "edit", Patterns: []string{"a.go"},
			Always: []string{"*"}, Text: "asks", Metadata: map[string]any{"filepath": "a.go", "diff": "@@ -1 +1 @@\n-x\n+y\n"}}}
		e.host.mu.Unlock()
		e.tell(centurion.Event{Type: centurion.EventPermissionAsked})
		want(t, "asked", e.says(""), "{\"id\":1,\"method\":\"session/request_permission\",\"params\":{\"options\":[{\"optionId\":\"once\",\"name\":\"Allow once\",\"kind\":\"allow_once\"},{\"optionId\":\"always\",\"name\":\"Always allow *\",\"kind\":\"allow_always\"},"+
			"{\"optionId\":\"reject\",\"name\":\"Reject\",\"kind\":\"reject_once\"}],\"sessionId\":\"ses_1\",\"toolCall\":{\"content\":[{\"type\":\"content\",\"content\":{\"type\":\"text\",\"text\":\"```\\nasks\\na.go\\n```\"}},"+
			"{\"type\":\"diff\",\"path\":\"/p/a.go\",\"oldText\":\"x\\n\",\"newText\":\"y\\n\"}],\"toolCallId\":\"prt_1\",\"title\":\"T2 worker: edit a.go\",\"kind\":\"edit\",\"status\":\"pending\",\"rawInput\":{\"filePath\":\"a.go\"}}}}")
		e.tell(centurion.Event{Type: centurion.EventPermissionAsked})
		want(t, "asked once", e.says(""))
		e.says(`{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":"never"}}}`)
		if got := strings.Join(e.answers, "|"); got != "said per_1 stays open: the editor chose an option that there is not: never; see: centurion asks" {
			t.Errorf("answered %q", got)
		}
		synctest.Wait()
	})
}

// An editor that leaves while it is asked hears no more, and neither does the person: the ask is open still.
func TestLeavingWithAnAsk(t *testing.T) {
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		e.says(newSession)
		e.says(aPrompt)
		e.host.mu.Lock()
		e.asks = []store.Ask{{ID: "per_1", Mission: "msn_1", Type: store.AskPermission, Permission: "bash", Patterns: []string{"a"}}}
		e.host.mu.Unlock()
		e.tell(centurion.Event{Type: centurion.EventPermissionAsked})
		if got := e.says(""); !strings.Contains(got, "session/request_permission") {
			t.Errorf("asked: %s", got)
		}
	})
}
