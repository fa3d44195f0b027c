package acp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/creachadair/jrpc2"

	"centurion"
	"centurion/event"
	"centurion/server"
	v1 "centurion/server/opencode/v1"
	"centurion/store"
)

// puts stores a message that is told later.
func (h *host) puts(id, session string, parts ...centurion.Part) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.messages[id] = server.Message{Info: centurion.Message{ID: id, SessionID: session, Role: centurion.RoleAssistant}, Parts: parts}
}

// running is a call of bash that runs.
func running(id string) centurion.Part {
	return centurion.Part{ID: id, Type: centurion.PartTool, Tool: "bash", State: &centurion.ToolState{Status: centurion.ToolRunning, Input: json.RawMessage(`{"command":"ls"}`)}}
}

// What other missions of the project do is not told in a session.
func TestOtherMissionsAreNotTold(t *testing.T) {
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		e.says(newSession)
		e.says(aPrompt)
		e.puts("msg_o", "ses_other", running("prt_o"))
		e.tell(centurion.Event{Type: centurion.EventToolStarted, Mission: "msn_2", Session: "ses_other", Data: []byte(`{"message":"msg_o","part":"prt_o"}`)})
		want(t, "of another mission", e.says(""))
	})
}

// After a loss a text comes when its message is whole. A call of that message, which is told before, does not make it whole.
func TestCallInAGap(t *testing.T) {
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		e.says(newSession)
		e.says(aPrompt)
		e.delta("ses_1", event.DeltaData{Part: "prt_1", Field: "text", Delta: "One, "})
		e.delta("", event.DeltaData{Gap: true})
		e.puts("msg_x", "ses_1", running("prt_2"))
		e.tell(centurion.Event{Type: centurion.EventToolStarted, Data: []byte(`{"message":"msg_x","part":"prt_2"}`)})
		e.delta("ses_1", event.DeltaData{Part: "prt_1", Field: "text", Delta: "three."})
		e.message("ses_1", "", centurion.FinishStop, textPart("prt_1", "One, two, three."))
		want(t, "told", e.says(""), `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"One, "}}`,
			"{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"prt_2\",\"title\":\"`ls`\",\"kind\":\"execute\",\"status\":\"in_progress\",\"rawInput\":{\"command\":\"ls\"}}",
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"two, three."}}`)
	})
}

// The editor is asked what the sub-agents of a conversation need, also if another program gave it its first message.
func TestBegunElsewhere(t *testing.T) {
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		e.says(newSession)
		e.tell(centurion.Event{Type: centurion.EventMissionStarted})
		e.host.mu.Lock()
		e.asks = []store.Ask{{ID: "per_1", Mission: "msn_1", Type: store.AskPermission, Permission: "bash", Patterns: []string{"ls"}}}
		e.host.mu.Unlock()
		e.tell(centurion.Event{Type: centurion.EventPermissionAsked, Session: "ses_child"})
		if got := e.says(""); !strings.Contains(got, `"method":"session/request_permission"`) {
			t.Errorf("it is not asked: %s", got)
		}
	})
}

// A host that cannot be reached does not end a turn: the next one tells how it goes on.
func TestTurnWithoutAHost(t *testing.T) {
	played(t, func(h *host, _ v1.Begin) { h.fault = &centurion.Error{Kind: centurion.KindNetwork, Msg: "it has gone"} }, func(e *editor) {
		e.says(newSession)
		want(t, "without a host", e.says(aPrompt))
		e.host.mu.Lock()
		e.fault = nil
		e.host.mu.Unlock()
		e.end(centurion.MissionCompleted, "")
		want(t, "with the next one", e.says(""), `{"id":2,"result":{"stopReason":"end_turn"}}`)
	})
}

// The person is told that a cancelled session works on, and why.
func TestStopThatFails(t *testing.T) {
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		e.says(newSession)
		e.says(aPrompt)
		e.host.mu.Lock()
		e.fault, e.messages[toldBad] = &centurion.Error{Kind: centurion.KindDisk, Msg: "no room"}, server.Message{}
		e.host.mu.Unlock()
		e.says(aCancel)
		if got := strings.Join(e.answers, "|"); got != "said session ses_1 could not be stopped: no room" {
			t.Errorf("said %q", got)
		}
	})
}

// A prompt that begins with a path is no command.
func TestPathIsNoCommand(t *testing.T) {
	for _, text := range []string{"/usr/bin/x is slow", "/ is full"} {
		goal := ""
		played(t, func(h *host, b v1.Begin) {
			goal = b.Goal
			h.end(centurion.MissionCompleted, "")
		}, func(e *editor) {
			e.says(newSession)
			e.says(strings.Replace(aPrompt, "hello", text, 1))
		})
		if goal != text {
			t.Errorf("%q is brought as %q", text, goal)
		}
	}
}

// A crash ends the call that caused it, and no other.
func TestMethodThatCrashes(t *testing.T) {
	requests, err := jrpc2.ParseRequests([]byte(`{"jsonrpc":"2.0","id":1,"method":"session/new"}`))
	if err != nil || len(requests) != 1 {
		t.Fatal(requests, err)
	}
	crashes := method(func(context.Context, struct{}) (any, error) { panic("boom") })
	if _, err := crashes(t.Context(), requests[0].ToRequest()); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("got %v", err)
	}
}
