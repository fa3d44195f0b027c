package centurion

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"
)

// ModelRef names a model of a provider, written "provider/model".
type ModelRef struct {
	Provider string `json:"providerID"`
	ID       string `json:"modelID"`
}

// String returns "provider/model".
func (m ModelRef) String() string { return m.Provider + "/" + m.ID }

// Span is OpenCode's pair of creation and change times, in Unix milliseconds.
type Span struct {
	Created int64 `json:"created"`
	Updated int64 `json:"updated"`
	// Archived is when a session was dropped after its task had ended, 0 while it can be resumed. It can be read until its task is
	// removed.
	Archived int64 `json:"archived,omitempty"`
}

// SessionModel is a model as in OpenCode's sessions: with id instead of modelID.
type SessionModel struct {
	ID       string `json:"id"`
	Provider string `json:"providerID"`
}

// Session is one conversation of one agent, in OpenCode's format.
type Session struct {
	ID        string        `json:"id"`
	Slug      string        `json:"slug"` // the address with dashes, unique within its mission
	ProjectID string        `json:"projectID"`
	Directory string        `json:"directory"`
	ParentID  string        `json:"parentID,omitempty"`
	Cost      float64       `json:"cost"`
	Tokens    Tokens        `json:"tokens"`
	Title     string        `json:"title"`
	Agent     string        `json:"agent,omitempty"`
	Model     *SessionModel `json:"model,omitempty"`
	Version   string        `json:"version"` // of the program that created it
	Metadata  SessionMeta   `json:"metadata"`
	Time      Span          `json:"time"`
}

// SessionMeta is the data of a session beyond OpenCode's fields.
type SessionMeta struct {
	Mission  string `json:"mission"`
	Task     string `json:"task,omitempty"`
	Attempt  int    `json:"attempt,omitempty"` // the fencing number of its task's attempt
	Address  string `json:"address"`           // 0/ for the Commander, 0/3 for its fourth child
	System   string `json:"system,omitempty"`  // the system prompt; it never changes during a session
	Unpriced bool   `json:"unpriced,omitempty"`
	// AgentFile is the agent's definition file, as shown to a person; empty for a built-in agent.
	AgentFile string `json:"agent_file,omitempty"`
	// Roster describes custom agents in the session's tool texts; like System it never changes.
	Roster string `json:"roster,omitempty"`
	// Offered are the agents offered by its delegate_task, which never change either; empty for the tool's own schema.
	Offered []string `json:"offered,omitempty"`
	// Skills lists the skills that the session may load; like System it never changes. If empty, it has no tool for them.
	Skills string `json:"skills,omitempty"`
	// External are the tools of MCP servers and plugins that it has. They too change only with a compaction.
	External []ExternalTool `json:"external,omitempty"`
	// Plugged is what plugins made of System and of the tools: when it began, or got another agent, and after each compaction. Nil until then.
	Plugged *Plugged `json:"plugged,omitempty"`
	// Given are the texts of the project and the person in its system prompt or its first message.
	Given []Given `json:"given,omitempty"`
	// Compact means that a compaction was requested before the next request.
	Compact bool   `json:"compact,omitempty"`
	Retry   *Retry `json:"retry,omitempty"` // a pending retry of a failed request; nil after a good answer
	// Tools are the tools of a sub-agent's session, out of its agent's; like System they never change. Nil means all.
	Tools []string `json:"tools,omitzero"`
	// Aborted is why a person has stopped its turn, until the next one begins; empty otherwise.
	Aborted string `json:"aborted,omitempty"`
	// OwnModel is the session's original model while it uses another one because that failed.
	OwnModel *SessionModel `json:"own_model,omitempty"`
	// Rewound is where the conversation continues after a rewind; nil without one.
	Rewound *Rewound `json:"rewound,omitempty"`
	// Marks are the ids of named messages, by name.
	Marks map[string]string `json:"marks,omitempty"`
	// Profile is that of the mission which an opened session will begin; "" is mission.
	Profile string `json:"profile,omitempty"`
	// Below is the session below which a person has opened a root session; "" for most.
	Below string `json:"below,omitempty"`
	// Revert is what a person has reverted of a root session; nil if nothing. Its mission's record has it.
	Revert *Revert `json:"revert,omitempty"`
	// Removed is when a person removed a root session from lists; zero otherwise.
	Removed Time `json:"removed,omitzero"`
	// ForkedFrom is the original of a copied conversation; nil for others.
	ForkedFrom *ForkedFrom `json:"forked_from,omitempty"`
	// Outside is the conversation that an agent from outside has of its own for this one; nil without one.
	Outside *Outside `json:"outside,omitempty"`
}

// Outside is a conversation of an agent that is another program.
type Outside struct {
	ID   string  `json:"id"`             // as the agent calls it
	Cost float64 `json:"cost,omitempty"` // USD until now, as the agent says
}

// ForkedFrom identifies the conversation that another one is a copy of, up to a message.
type ForkedFrom struct {
	Mission string `json:"mission"`
	Session string `json:"session"`
	Message string `json:"message"`
}

// ExternalTool is a tool of an MCP server or a plugin, as a model is shown it.
type ExternalTool struct {
	Name        string          `json:"name"` // server_tool
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"`              // of its input, an object
	ReadOnly    bool            `json:"read_only,omitempty"` // its source says so and is trusted
	Away        bool            `json:"away,omitempty"`      // it runs on another machine, and reaches no file of this one
}

// Plugged is what plugins made of what every request of a session begins with.
type Plugged struct {
	System string              `json:"system,omitempty"` // the system prompt; "" is the session's own
	Tools  map[string]Defined  `json:"tools,omitempty"`  // those that are described differently, by name
	By     map[string][]string `json:"by,omitempty"`     // the plugins that did it, by hook
}

// Defined is how a model is told of a tool. Parameters are a JSON schema; nil is the tool's own. Calls are checked against that either way.
type Defined struct {
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// Prompt is the system prompt of its requests.
func (m SessionMeta) Prompt() string {
	if m.Plugged == nil {
		return m.System
	}
	return cmp.Or(m.Plugged.System, m.System)
}

// Given is the text of a file that a session got at its start.
type Given struct {
	Path    string `json:"path"`    // relative to the project; ~/… or absolute outside of it
	Version string `json:"version"` // of the file then: its SHA-256 in hexadecimal; "" if it did not exist
	Bytes   int    `json:"bytes"`   // the length of the given text
	Whole   bool   `json:"whole"`   // the text was complete
}

// Retry is a wait before a failed request is repeated. It is stored, so that a restart preserves the wait and the number of failures.
type Retry struct {
	At         Time   `json:"at"`      // its end
	WaitMS     int64  `json:"wait_ms"` // its full length: clock changes cannot extend it
	Reason     string `json:"reason,omitempty"`
	Attempts   int    `json:"attempts,omitempty"`    // consecutive failures
	RateLimits int    `json:"rate_limits,omitempty"` // consecutive rate limits
	// Failed are the models given up during this streak of failures, as "provider/model".
	Failed []string `json:"failed,omitempty"`
}

// Own returns the session's original model, regardless of the current one.
func (s Session) Own() ModelRef {
	m := cmp.Or(s.Metadata.OwnModel, s.Model, &SessionModel{})
	return ModelRef{Provider: m.Provider, ID: m.ID}
}

// Left returns the rest of the wait at now, between zero and its full length.
func (r *Retry) Left(now Time) time.Duration {
	if r == nil {
		return 0
	}
	whole := time.Duration(r.WaitMS) * time.Millisecond
	return min(max(r.At.Sub(now.Time), 0), max(whole, 0))
}

// ChildAddress returns the address of the child with the given serial number: 0/ and 3 give 0/3, 0/3 and 1 give 0/3/1.
// Only a root's address ends in a slash.
func ChildAddress(parent string, serial int) string {
	if n := len(parent); n > 0 && parent[n-1] == '/' {
		return parent + strconv.Itoa(serial)
	}
	return parent + "/" + strconv.Itoa(serial)
}
