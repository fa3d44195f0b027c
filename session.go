package centurion

import (
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
	// Archived is when a session was dropped after its task had ended, 0 while it may be resumed. It can be read until its
	// task is removed.
	Archived int64 `json:"archived,omitempty"`
}

// SessionModel is a model as OpenCode's sessions spell it: with id instead of modelID.
type SessionModel struct {
	ID       string `json:"id"`
	Provider string `json:"providerID"`
}

// Session is one conversation of one agent, in OpenCode's shape.
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

// SessionMeta is what a session has beyond OpenCode's fields.
type SessionMeta struct {
	Mission  string `json:"mission"`
	Task     string `json:"task,omitempty"`
	Attempt  int    `json:"attempt,omitempty"` // the fencing number of the task's attempt that this session is
	Address  string `json:"address"`           // 0/ for the Commander, 0/3 for its fourth child
	System   string `json:"system,omitempty"`  // the system prompt; it never changes during a session
	Unpriced bool   `json:"unpriced,omitempty"`
	// AgentFile is where the agent was defined, as a person reads it; empty for one that is built in.
	AgentFile string `json:"agent_file,omitempty"`
	// Roster is what the session's tools tell of agents that are not built in; like System it never changes.
	Roster string `json:"roster,omitempty"`
	// Offered are the agents that its delegate_task offers, which never change either; empty for the tool's own schema.
	Offered []string `json:"offered,omitempty"`
	// Skills lists the skills that the session may load; like System it never changes. Without any it has no tool for them.
	Skills string `json:"skills,omitempty"`
	// Given are the texts of the project and the person that stand in its system prompt or its first message.
	Given []Given `json:"given,omitempty"`
	// Compact says that somebody wants the history shortened before the next request.
	Compact bool   `json:"compact,omitempty"`
	Retry   *Retry `json:"retry,omitempty"` // a failed request waits to be repeated; nil after a good answer
	// Tools is what a sub-agent's session holds, of what its agent does; like System it never changes. Nil means all.
	Tools []string `json:"tools,omitzero"`
	// Aborted is why a person has stopped its turn, until the next one begins; empty if nobody has.
	Aborted string `json:"aborted,omitempty"`
	// OwnModel is the model that the session was given, while it talks to another one because that failed.
	OwnModel *SessionModel `json:"own_model,omitempty"`
	// Rewound is where the conversation goes on after it was taken back; nil if it never was.
	Rewound *Rewound `json:"rewound,omitempty"`
	// Marks are names that were given to messages, with their ids.
	Marks map[string]string `json:"marks,omitempty"`
	// ForkedFrom is what the conversation was copied from; nil if it began by itself.
	ForkedFrom *ForkedFrom `json:"forked_from,omitempty"`
}

// ForkedFrom names the conversation that another one is a copy of, up to a message.
type ForkedFrom struct {
	Mission string `json:"mission"`
	Session string `json:"session"`
	Message string `json:"message"`
}

// Given is a text of a file that a session was given when it began.
type Given struct {
	Path    string `json:"path"`    // relative to the project; ~/… or absolute outside of it
	Version string `json:"version"` // of the file then: its SHA-256 in hexadecimal; "" if there was none
	Bytes   int    `json:"bytes"`   // how much of it was given
	Whole   bool   `json:"whole"`   // that was all of it
}

// Retry is a wait before a failed request is repeated. It is stored, so that a restart neither forgets the wait nor how
// often the request has failed.
type Retry struct {
	At         Time   `json:"at"`      // when it is over
	WaitMS     int64  `json:"wait_ms"` // how long it was when it began: no clock that jumps makes it longer
	Reason     string `json:"reason,omitempty"`
	Attempts   int    `json:"attempts,omitempty"`    // failures in a row
	RateLimits int    `json:"rate_limits,omitempty"` // rate limits in a row
	// Failed are the models that this row of failures has ended with, as "provider/model".
	Failed []string `json:"failed,omitempty"`
}

// Own returns the model that the session was given, whatever it talks to at the moment.
func (s Session) Own() ModelRef {
	m := s.Metadata.OwnModel
	if m == nil {
		m = s.Model
	}
	if m == nil {
		return ModelRef{}
	}
	return ModelRef{Provider: m.Provider, ID: m.ID}
}

// Left returns how much of the wait is left at now: never less than nothing and never more than the whole of it.
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
