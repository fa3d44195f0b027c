package centurion

import (
	"encoding/json"
	"strings"
)

// Role is the sender of a message.
type Role string

// The roles of messages. Results of tools are stored in the tool parts of the assistant message that called them.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Origin is the author of a user message. Models see no difference, but only a person's message cancels a countdown, and only the
// host's own notices count as deliveries.
type Origin string

// The origins of user messages.
const (
	OriginPerson Origin = "person" // typed by a person: the goal, an instruction
	OriginParent Origin = "parent" // the prompt of a delegated task
	OriginHost   Origin = "host"   // a notice, a delivery or a continuation made by the host
)

// Finish reasons of an assistant message. The first three are OpenCode's own; the others cover real endpoints.
const (
	FinishStop      = "stop"           // the model ended its turn
	FinishToolCalls = "tool-calls"     // it waits for the results of its calls
	FinishLength    = "length"         // the answer was cut off at the token limit
	FinishFilter    = "content-filter" // it was refused or filtered
	FinishCancelled = "cancelled"      // the host stopped it
	FinishError     = "error"          // it failed; see Error
	FinishUnknown   = "unknown"        // the endpoint gave an unknown reason
)

// MessageTime is when a message was created and, for an assistant message, completed, in Unix milliseconds.
type MessageTime struct {
	Created   int64 `json:"created"`
	Completed int64 `json:"completed,omitempty"`
}

// MessagePath is the directory of an assistant message's tools.
type MessagePath struct {
	Cwd  string `json:"cwd"`
	Root string `json:"root"`
}

// MessageError is an error of an assistant message in OpenCode's format: a name and data with at least a message.
type MessageError struct {
	Name string           `json:"name"`
	Data MessageErrorData `json:"data"`
}

// MessageErrorData is the data of a [MessageError]. Only ProviderAuthError has a ProviderID, and only APIError has status code and
// retryability.
type MessageErrorData struct {
	Message     string `json:"message"`
	ProviderID  string `json:"providerID,omitempty"`
	StatusCode  int    `json:"statusCode,omitempty"`
	IsRetryable *bool  `json:"isRetryable,omitempty"`
}

// Message is one user or assistant message. It marshals to OpenCode's UserMessage or AssistantMessage; Origin is not part of those
// formats and is stored separately.
type Message struct {
	ID        string
	SessionID string
	Role      Role
	Origin    Origin // of a user message
	ParentID  string // the user message that an assistant message answers
	Prev      string // the previous message on its line; empty for the first. Not part of OpenCode's format
	Time      MessageTime
	Agent     string
	Model     ModelRef
	Path      MessagePath   // of an assistant message
	Usage     Usage         // of an assistant message
	Finish    string        // of an assistant message; empty while it streams
	Error     *MessageError // of an assistant message
	Summary   bool          // of an assistant message: it replaces messages in a compaction
	// Wrote is what the turn that a user message began has changed in the project's own directory, oldest first: each with the trees around
	// it, as [Landed] has them. It is stored with the message, and not told with it.
	Wrote []Landed
	// Heard means that plugins have had a user message. It is stored with the message, and not told with it.
	Heard bool
	Parts []Part // in order; not part of the message's own JSON
}

type userMessageJSON struct {
	ID        string      `json:"id"`
	SessionID string      `json:"sessionID"`
	Role      Role        `json:"role"`
	Time      MessageTime `json:"time"`
	Agent     string      `json:"agent"`
	Model     ModelRef    `json:"model"`
	Wrote     []Landed    `json:"wrote,omitempty"`
	Heard     bool        `json:"heard,omitempty"`
}

type assistantMessageJSON struct {
	ID         string        `json:"id"`
	SessionID  string        `json:"sessionID"`
	Role       Role          `json:"role"`
	Time       MessageTime   `json:"time"`
	Error      *MessageError `json:"error,omitempty"`
	ParentID   string        `json:"parentID"`
	ModelID    string        `json:"modelID"`
	ProviderID string        `json:"providerID"`
	Mode       string        `json:"mode"`
	Agent      string        `json:"agent"`
	Path       MessagePath   `json:"path"`
	Summary    bool          `json:"summary,omitempty"`
	Cost       float64       `json:"cost"`
	Tokens     Tokens        `json:"tokens"`
	Finish     string        `json:"finish,omitempty"`
}

// MarshalJSON writes OpenCode's format for the message's role, without the parts.
func (m Message) MarshalJSON() ([]byte, error) {
	if m.Role == RoleUser {
		return json.Marshal(userMessageJSON{m.ID, m.SessionID, m.Role, MessageTime{Created: m.Time.Created}, m.Agent, m.Model, m.Wrote, m.Heard})
	}
	return json.Marshal(assistantMessageJSON{m.ID, m.SessionID, m.Role, m.Time, m.Error, m.ParentID, m.Model.ID,
		m.Model.Provider, m.Agent, m.Agent, m.Path, m.Summary, m.Usage.USD, m.Usage.Tokens, m.Finish})
}

// UnmarshalJSON reads either format. It always sets Unpriced to false, which is not part of it.
func (m *Message) UnmarshalJSON(b []byte) error {
	var head struct {
		Role Role `json:"role"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return err
	}
	if head.Role == RoleUser {
		var u userMessageJSON
		err := json.Unmarshal(b, &u)
		*m = Message{ID: u.ID, SessionID: u.SessionID, Role: u.Role, Time: u.Time, Agent: u.Agent, Model: u.Model, Wrote: u.Wrote, Heard: u.Heard}
		return err
	}
	var a assistantMessageJSON
	err := json.Unmarshal(b, &a)
	*m = Message{ID: a.ID, SessionID: a.SessionID, Role: a.Role, ParentID: a.ParentID, Time: a.Time, Agent: a.Agent,
		Model: ModelRef{a.ProviderID, a.ModelID}, Path: a.Path, Usage: Usage{Tokens: a.Tokens, USD: a.Cost},
		Finish: a.Finish, Error: a.Error, Summary: a.Summary}
	return err
}

// Text returns the message's text parts for a model, joined: those of a user message by blank lines.
func (m Message) Text() string {
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Type != PartText || p.Ignored {
			continue
		}
		if m.Role == RoleUser && b.Len() > 0 && p.Text != "" && p.Text[0] != '\n' {
			b.WriteString("\n\n")
		}
		b.WriteString(p.Text)
	}
	return b.String()
}
