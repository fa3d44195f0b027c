package acp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/server"
	v1 "centurion/server/opencode/v1"
	"centurion/store"
)

// What an editor learns first: what can be sent, how a session is begun, and that servers of its own are not used.
func TestFirstAnswers(t *testing.T) {
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		e.host.mu.Lock()
		e.messages[toldBad] = server.Message{}
		e.host.mu.Unlock()
		want(t, "initialized", e.says(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`),
			`{"id":1,"result":{"agentCapabilities":{"loadSession":true,"mcpCapabilities":{"http":false,"sse":false},"promptCapabilities":{"audio":false,"embeddedContext":true,"image":true}},"agentInfo":{"name":"centurion","title":"Centurion","version":"1"},"authMethods":[],"protocolVersion":1}}`)
		want(t, "authenticated", e.says(`{"jsonrpc":"2.0","id":2,"method":"authenticate","params":{}}`), `{"id":2,"result":{}}`)
		want(t, "begun", e.says(`{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"/p","mcpServers":[{}]}}`),
			`{"id":3,"result":{"modes":{"availableModes":[{"description":"","id":"assistant","name":"assistant"},{"description":"","id":"commander","name":"commander"}],"currentModeId":"assistant"},"sessionId":"ses_1"}}`,
			`{"sessionUpdate":"available_commands_update","availableCommands":[{"description":"Work","input":{"hint":"what to do"},"name":"task"}]}`)
		want(t, "not found", e.says(`{"jsonrpc":"2.0","id":4,"method":"session/set_mode","params":{"sessionId":"ses_x","modeId":"assistant"}}`),
			`{"id":4,"error":{"code":-32602,"message":"this connection has no session ses_x; begin one with session/new, or load it with session/load","data":{"hint":"begin one with session/new, or load it with session/load","kind":"not_found"}}}`)
		if got := strings.Join(e.answers, "|"); got != "said MCP servers of the editor are not used: 1 server" {
			t.Errorf("said %q", got)
		}
	})
}

// An ask is shown no more once it is answered elsewhere, and what is told after a call's ask is not held up by it.
func TestAskIsWithdrawn(t *testing.T) {
	part := centurion.Part{ID: "prt_1", CallID: "c1", Type: centurion.PartTool, Tool: "bash", State: &centurion.ToolState{Status: centurion.ToolRunning, Input: json.RawMessage(`{"command":"ls"}`)}}
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		e.says(newSession)
		e.says(aPrompt)
		e.message("ses_1", "", "", part)
		e.says("")
		e.host.mu.Lock()
		e.messages["msg_x"] = e.messages[fmt.Sprintf("msg_%d", len(e.facts)-1)]
		e.asks = []store.Ask{{ID: "per_1", Mission: "msn_1", Type: store.AskPermission, Session: "ses_1", Message: "msg_x", Call: "c1", Permission: "bash"}}
		e.host.mu.Unlock()
		e.tell(centurion.Event{Type: centurion.EventPermissionAsked})
		if got := e.says(""); strings.Count(got, "session/request_permission") != 1 {
			t.Errorf("asked: %s", got)
		}
		e.host.mu.Lock()
		e.asks = nil
		e.host.mu.Unlock()
		e.tell(centurion.Event{Type: centurion.EventPermissionReplied})
		e.delta("ses_1", event.DeltaData{Part: "prt_2", Field: "text", Delta: "It goes on."})
		want(t, "answered elsewhere", strings.Replace(e.says(""), `{"method":"rpc.cancel","params":[1]}`+"\n", "", 1), `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"It goes on."}}`)
		e.says(`{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":"reject"}}}`)
		if len(e.answers) > 0 {
			t.Errorf("what was answered elsewhere is answered again: %q", e.answers)
		}
		e.host.mu.Lock()
		e.asks = []store.Ask{{ID: "per_1", Mission: "msn_1", Type: store.AskPermission, Permission: "bash", Patterns: []string{"a", "b"}, Text: "a"}}
		e.host.mu.Unlock()
		e.tell(centurion.Event{Type: centurion.EventPermissionAsked})
		if got := e.says(""); !strings.Contains(got, "\"toolCall\":{\"content\":[{\"type\":\"content\",\"content\":{\"type\":\"text\",\"text\":\"```\\na\\nb\\n```\"}}],\"toolCallId\":\"per_1\",\"title\":\"bash a, b\",\"kind\":\"other\",\"status\":\"pending\"}") {
			t.Errorf("asked again: %s", got)
		}
		e.says(`{"jsonrpc":"2.0","id":2,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`)
	})
}

// The answers to each kind of ask have the protocol's kinds, and so have tools.
func TestOptionsAndKinds(t *testing.T) {
	for want, a := range map[string]store.Ask{
		`[{"optionId":"once","name":"Allow once","kind":"allow_once"},{"optionId":"always","name":"Always allow a, b","kind":"allow_always"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]`:                  {Type: store.AskPermission, Always: []string{"a", "b"}},
		`[{"optionId":"run","name":"Run it","kind":"allow_once"},{"optionId":"quit","name":"Not now","kind":"reject_once"}]`:                                                                                               {Type: store.AskPlan},
		`[{"optionId":"red","name":"red","kind":"allow_once"},{"optionId":"chat","name":"Answer in the chat","kind":"allow_once"},{"optionId":"(the person did not answer)","name":"Do not answer","kind":"reject_once"}]`: {Type: store.AskQuestion, Options: []string{"red"}},
	} {
		if b, err := json.Marshal(options(a)); err != nil || string(b) != want {
			t.Errorf("got %s, %v; want %s", b, err, want)
		}
	}
	for kind, tools := range map[string]string{"read": "read skill", "search": "ls glob grep codesearch", "edit": "edit write", "execute": "bash run_background", "fetch": "webfetch websearch", "think": "update_todo update_context", "other": "ask_user"} {
		for tool := range strings.FieldsSeq(tools) {
			part := centurion.Part{ID: "p", Tool: tool, State: &centurion.ToolState{Status: centurion.ToolPending, Input: json.RawMessage("{}")}}
			if got, want := callOf(t, part, ""), `"toolCallId":"p","title":"`+tool+`","kind":"`+kind+`","status":"pending","rawInput":{}}`; got != want {
				t.Errorf("%s: %s, want %s", tool, got, want)
			}
		}
	}
	for key, want := range map[string]string{"filePath": "x v", "path": "x v", "pattern": "x v", "url": "x v", "query": "x v", "description": "x v", "question": "x v", "prompt": "x v", "name": "x v", "command": "`v`", "other": "x"} {
		if got := title("x", "", map[string]any{key: "v"}); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	if got := title("x", "given\nmore", map[string]any{"path": "v"}); got != "x given" {
		t.Errorf("its own words: %q", got)
	}
}
