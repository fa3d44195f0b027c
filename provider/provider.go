// Package provider accesses models. It converts one request, to an OpenAI-compatible endpoint or over another [Wire], to a sequence of
// deltas, retries when the provider asks for it, delays all sessions of a model together while it says "too many requests", and reports
// a cut-off answer as an error.
//
// It knows nothing of missions: the caller owns sessions and their history, which is passed completely with each request.
package provider

import (
	"encoding/json"
	"time"

	"centurion"
)

// Role is the sender of a message in a request.
type Role string

// The roles of the messages in a request. The system prompt is a field of its own.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is one message of the history for a model.
type Message struct {
	Role      Role
	Text      string
	Reasoning string    // of an assistant, sent to models that require it
	Thoughts  []Thought // of an assistant, for providers that require them unchanged
	Calls     []Call    // of an assistant
	CallID    string    // of a tool: the call that Text answers

	// Files, of a user or a tool, are sent with the text. The caller ensures that the model accepts them.
	Files []centurion.File

	// Fleeting means that the next request will not have the message. It is the last one, of a user.
	Fleeting bool
}

// Call is a tool call requested by a model.
type Call struct {
	ID        string
	Name      string
	Arguments string // JSON as the model wrote it; not checked here
}

// Thought is a block of an assistant's thinking that its provider requires back unchanged.
type Thought struct {
	Text     string
	Metadata map[string]any // the provider's data: see [Delta]
	Said     int            // bytes of the message's text that came before it
	Calls    int            // of the message's calls that came before it
}

// ToolSpec describes a tool to a model.
type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage // a JSON schema of type object
}

// Request is everything a model needs for its next answer.
type Request struct {
	Session     string // sent as x-session-id
	Parent      string // sent as x-parent-session-id; empty for a root session
	System      string
	Messages    []Message
	Tools       []ToolSpec
	Temperature *float64          // nil: the model's default
	MaxOutput   int               // tokens; 0: the model's limit, or the endpoint's default
	Header      map[string]string // sent with it, after the endpoint's own
	Alive       func()            // called at any sign of life of the provider, including keep-alives; must not block; may be nil
}

// DeltaType is the type of a [Delta].
type DeltaType int

// The types of delta, in the order in which they can come: any number of waits, then text, reasoning and calls mixed,
// then exactly one Done, which is the last.
const (
	Waiting      DeltaType = iota // the request waits without an error: see Wait
	Text                          // a piece of the answer
	Reasoning                     // a piece of the model's thinking
	ReasoningEnd                  // a block of thinking is complete: Metadata, if the provider requires it back with the block
	CallStart                     // a tool call began: Index, CallID, Name
	CallInput                     // a piece of its arguments: Index, Text
	CallEnd                       // its arguments are complete: Index
	Done                          // the answer is complete: Finish, Tokens
)

// Delta is a piece of an answer.
type Delta struct {
	Type   DeltaType
	Text   string
	Index  int    // index of the call in the answer, from 0
	CallID string // never empty: calls without an id get one that is unique within the answer
	Name   string
	// Metadata is sent back unchanged with a block of thinking, to the same model only. The block may have no text. Its only key is the
	// name of the API; its value is private to the wire and the provider.
	Metadata map[string]any
	Finish   string           // one of the centurion.Finish… constants that a model can cause
	Tokens   centurion.Tokens // zero if the endpoint did not report them
	Wait     *Wait
}

// Wait describes why a request waits, which is neither a failure nor a stall.
type Wait struct {
	Reason  string        // "rate limit", "retry", "gate"
	Attempt int           // of a retry, counted from 1
	For     time.Duration // how long
	Err     error         // the provider's error; nil for a gate closed because of another session
}
