// Package agent presents the facts and token deltas of sessions as the actions of one agent: it starts, says something, calls tools,
// ends. It owns the names and forms of these events and how they follow from the journal. It stores nothing, starts nothing and waits
// for nothing: each event follows at once from one fact or delta, in order.
//
// A child's actions appear in its parent's stream when they happen, in a [SubAgentEvent] that names the parent's call that started it.
// The events of one session keep their order, whatever others do in between.
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
// An error ends what agent_start began, as agent_end does; if the host retries, another agent_start follows. A gap marks lost deltas
// and may be anywhere. A person's actions on a session (session.aborted, session.rewound, session.forked) and the events that end a
// mission (mission.completed and so on) appear unchanged where they happened.
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
	Text    string `json:"text,omitempty"` // the prompt, shortened to 2 KB; empty if a turn continues after a restart
}

// DeltaData is the data of message_delta and thinking_delta.
type DeltaData struct {
	Message string `json:"message"`
	Part    string `json:"part"`
	Delta   string `json:"delta"`
}

// Message is a message in these events; the session's history has it in full.
type Message struct {
	ID     string            `json:"id"`
	Role   centurion.Role    `json:"role"`
	Origin centurion.Origin  `json:"origin,omitempty"`
	Text   string            `json:"text,omitempty"` // shortened to 2 KB
	Finish string            `json:"finish,omitempty"`
	Tokens *centurion.Tokens `json:"tokens,omitempty"`
	Cost   float64           `json:"cost,omitempty"` // USD
}

// Call is a tool call of an answer. Its arguments are in its tool_execution_start.
type Call struct {
	Call string `json:"call"`
	Name string `json:"name"`
}

// TurnData is the data of turn_end: the model has answered. The executions of its tool calls follow.
type TurnData struct {
	Message   Message `json:"message"`
	ToolCalls []Call  `json:"tool_calls"` // in the order the model made them
}

// ToolStartData is the data of tool_execution_start.
type ToolStartData struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"` // long strings are shortened; {} for a call answered without being run
	Call string          `json:"call"`
}

// ToolEndData is the data of tool_execution_end.
type ToolEndData struct {
	Name   string `json:"name"`
	Result string `json:"result"` // for the model, shortened to 2 KB; empty with an error
	Call   string `json:"call"`
	Error  string `json:"error,omitempty"` // shortened to 2 KB
}

// RetryData is the data of retrying: a failed request to the model is repeated.
type RetryData = event.RetryData

// CompactData is the data of compact: a summary replaces the older part of the session's history.
type CompactData struct {
	Message string `json:"message"` // the summary's id
	Reason  string `json:"reason"`
	Before  int64  `json:"before"` // estimated tokens of the next request before
	After   int64  `json:"after"`
}

// EndData is the data of agent_end: the agent has nothing left to do until it is prompted again.
type EndData struct {
	Text     string    `json:"text"` // the last answer, shortened to 2 KB
	Finish   string    `json:"finish,omitempty"`
	Messages []Message `json:"messages"` // since agent_start, oldest first; at most the newest [MaxMessages]
	Done     bool      `json:"done"`     // always true
}

// MaxMessages is how many messages an agent_end repeats: 32 steps' worth, at most 128 KB.
const MaxMessages = 64

// ErrorData is the data of error: the agent's work ended without an answer.
type ErrorData struct {
	Reason  string         `json:"reason"`
	Kind    centurion.Kind `json:"kind,omitempty"` // cancelled for an abort
	Message string         `json:"message,omitempty"`
	Done    bool           `json:"done"` // always true
}

// SubAgentData is the data of sub_agent_event. It nests for a child's children.
type SubAgentData struct {
	ParentCall string `json:"parent_call_id"` // of the call that started the child; empty if none did
	Sub        string `json:"sub_session_id"`
	Event      Inner  `json:"event"`
}

// Inner is an event inside another one.
type Inner struct {
	Type centurion.EventType `json:"type"`
	Data json.RawMessage     `json:"data"`
}
