// Package provider speaks to models. It turns one request, to an OpenAI-compatible endpoint or over another [Wire], into a
// sequence of deltas, retries what the provider asks to be retried, holds back every session of a model together while it
// says "too many requests", and reports an answer that was cut off as an error instead of as an end.
//
// It knows nothing of missions: sessions and their history are the caller's, given to it whole with each request.
package provider

import (
	"encoding/json"
	"time"

	"centurion"
)

// Role is who a message in a request is from.
type Role string

// The roles of the messages in a request. The system prompt is a field of its own.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is one message of the history handed to a model.
type Message struct {
	Role      Role
	Text      string
	Reasoning string    // of an assistant, echoed to models that want it back
	Thoughts  []Thought // of an assistant, for those who want their thinking back as they gave it
	Calls     []Call    // of an assistant
	CallID    string    // of a tool: the call that Text answers

	// Files, of a user or a tool, are sent with the text. Whoever makes a request gives only what its model takes.
	Files []centurion.File

	// Fleeting says that the next request will not have the message. It is the last one, of a user.
	Fleeting bool
}

// Call is a model's wish to run a tool.
type Call struct {
	ID        string
	Name      string
	Arguments string // JSON as the model wrote it; not checked here
}

// Thought is a block of an assistant's thinking that its provider wants back word by word.
type Thought struct {
	Text     string
	Metadata map[string]any // what its provider gave with it: see [Delta]
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
	Temperature *float64 // nil: the model's default
	MaxOutput   int      // tokens; 0: the model's limit, or the endpoint's default
	Alive       func()   // is called whenever anything is heard of the provider, a keep-alive too; must not block; may be nil
}

// DeltaType is what a [Delta] tells.
type DeltaType int

// The types of delta, in the order in which they can come: any number of waits, then text, reasoning and calls mixed,
// then exactly one Done, which is the last.
const (
	Waiting      DeltaType = iota // nothing is wrong; the request waits: see Wait
	Text                          // a piece of the answer
	Reasoning                     // a piece of the model's thinking
	ReasoningEnd                  // a block of thinking is complete: Metadata, if the provider wants it back with the block
	CallStart                     // a tool call began: Index, CallID, Name
	CallInput                     // a piece of its arguments: Index, Text
	CallEnd                       // its arguments are complete: Index
	Done                          // the answer is complete: Finish, Tokens
)

// Delta is a piece of an answer.
type Delta struct {
	Type   DeltaType
	Text   string
	Index  int    // which of the answer's calls, counted from 0
	CallID string // never empty: calls that come without an id are given one that is unique within the answer
	Name   string
	// Metadata is handed back, as it is, with a block of thinking to the same model, and to no other. The block may be without
	// any text. Its one key is the name of the API; what it holds is between the wire and the provider.
	Metadata map[string]any
	Finish   string           // one of the centurion.Finish… constants that a model can cause
	Tokens   centurion.Tokens // zero if the endpoint did not say
	Wait     *Wait
}

// Wait says what a request waits for. Waiting is not failing, and it is no stall.
type Wait struct {
	Reason  string        // "rate limit", "retry", "gate"
	Attempt int           // of a retry, counted from 1
	For     time.Duration // how long
	Err     error         // what the provider said; nil for a gate that another session's answer closed
}
