// Package agent tells the facts and token deltas of sessions as what one agent does: it starts, says something, calls
// tools, ends. It owns the names and the shapes of these events and how they follow from what the journal holds. It stores
// nothing, starts nothing and waits for nothing: each event follows at once from one fact or delta, in their order.
//
// What a child does stands in its parent's stream at the moment at which it happens, in a [SubAgentEvent] that names the
// parent's call that started it; the events of one session keep their order, whatever others do in between.
package agent

import (
	"encoding/json"

	"centurion"
	"centurion/event"
)

// The types of event. Those of one session come in this order:
//
//	agent_start ( message_delta · thinking_delta · turn_end · tool_execution_start · tool_execution_end · retrying · compact )…  agent_end or error
//
// An error ends what agent_start began, as agent_end does; if the host tries again, another agent_start follows. A gap may
// stand anywhere: some deltas were lost there. What a person did to a session (session.aborted, session.rewound,
// session.forked) stands where it happened, as it is. The events that end a mission (mission.completed and so on) stand among these
// as they are.
const (
	Start         centurion.EventType = "agent_start"
	MessageDelta  centurion.EventType = "message_delta"
	ThinkingDelta centurion.EventType = "thinking_delta"
	TurnEnd       centurion.EventType = "turn_end"
	ToolStart     centurion.EventType = "tool_execution_start"
	ToolEnd       centurion.EventType = "tool_execution_end"
	Retrying      centurion.EventType = "retrying"
	Compact       centurion.EventType = "compact"
	End           centurion.EventType = "agent_end"
	Error         centurion.EventType = "error"
	SubAgentEvent centurion.EventType = "sub_agent_event"
	Gap           centurion.EventType = "gap"
)

// StartData is the data of agent_start: the agent begins to work on a prompt.
type StartData struct {
	Agent   string `json:"agent,omitempty"`
	Address string `json:"address,omitempty"`
	Title   string `json:"title,omitempty"`
	Text    string `json:"text,omitempty"` // the prompt, shortened to 2 KB; empty where a turn goes on after a restart
}

// DeltaData is the data of message_delta and thinking_delta.
type DeltaData struct {
	Message string `json:"message"`
	Part    string `json:"part"`
	Delta   string `json:"delta"`
}

// Message is a message as these events tell it: the whole one is in the session's history.
type Message struct {
	ID     string            `json:"id"`
	Role   centurion.Role    `json:"role"`
	Origin centurion.Origin  `json:"origin,omitempty"`
	Text   string            `json:"text,omitempty"` // shortened to 2 KB
	Finish string            `json:"finish,omitempty"`
	Tokens *centurion.Tokens `json:"tokens,omitempty"`
	Cost   float64           `json:"cost,omitempty"` // USD
}

// Call is a tool call of an answer. Its arguments stand in its tool_execution_start.
type Call struct {
	Call string `json:"call"`
	Name string `json:"name"`
}

// TurnData is the data of turn_end: the model has answered. Where it calls tools, their executions follow.
type TurnData struct {
	Message   Message `json:"message"`
	ToolCalls []Call  `json:"tool_calls"` // in the order in which the model made them
}

// ToolStartData is the data of tool_execution_start.
type ToolStartData struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"` // long strings are shortened; {} of a call that was answered without being run
	Call string          `json:"call"`
}

// ToolEndData is the data of tool_execution_end.
type ToolEndData struct {
	Name   string `json:"name"`
	Result string `json:"result"` // what the model is told, shortened to 2 KB; empty with an error
	Call   string `json:"call"`
	Error  string `json:"error,omitempty"` // shortened to 2 KB
}

// RetryData is the data of retrying: a request to the model failed and is made again.
type RetryData = event.RetryData

// CompactData is the data of compact: a summary stands for the older part of the session's history.
type CompactData struct {
	Message string `json:"message"` // the summary's id
	Reason  string `json:"reason"`
	Before  int64  `json:"before"` // tokens of the next request as it would have been, estimated
	After   int64  `json:"after"`
}

// EndData is the data of agent_end: the agent has nothing left to do until it is prompted again.
type EndData struct {
	Text     string    `json:"text"` // the last answer, shortened to 2 KB
	Finish   string    `json:"finish,omitempty"`
	Messages []Message `json:"messages"` // since agent_start, oldest first; at most the newest [MaxMessages]
	Done     bool      `json:"done"`     // always true
}

// MaxMessages is how many messages an agent_end repeats: those of 32 steps with what came in between, at most 128 KB.
const MaxMessages = 64

// ErrorData is the data of error: the agent's work ended without an answer.
type ErrorData struct {
	Reason  string         `json:"reason"`
	Kind    centurion.Kind `json:"kind,omitempty"` // cancelled for an abort
	Message string         `json:"message,omitempty"`
	Done    bool           `json:"done"` // always true
}

// SubAgentData is the data of sub_agent_event. It nests: the event of a child's child is one of these in its turn.
type SubAgentData struct {
	ParentCall string `json:"parent_call_id"` // of the call that started the child; empty of a child that no call started
	Sub        string `json:"sub_session_id"`
	Event      Inner  `json:"event"`
}

// Inner is an event inside of another one.
type Inner struct {
	Type centurion.EventType `json:"type"`
	Data json.RawMessage     `json:"data"`
}
