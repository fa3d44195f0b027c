package centurion

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// PartType is the type of a message part.
type PartType string

// The types of part in use.
const (
	PartText       PartType = "text"
	PartReasoning  PartType = "reasoning"
	PartTool       PartType = "tool"
	PartStepStart  PartType = "step-start"
	PartStepFinish PartType = "step-finish"
	PartCompaction PartType = "compaction"
	PartAgent      PartType = "agent"   // an agent that a person names in a message
	PartSubtask    PartType = "subtask" // work that a person wants an agent to do
)

// PartTime is when a part began and ended, in Unix milliseconds; End is 0 before its end.
type PartTime struct {
	Start int64 `json:"start"`
	End   int64 `json:"end,omitempty"`
}

// Part is a piece of a message. The type determines the fields in use; it marshals to OpenCode's format for it.
type Part struct {
	ID        string
	SessionID string
	MessageID string
	Type      PartType
	Text      string     // text, reasoning
	Synthetic bool       // text written by the host
	Ignored   bool       // text that a person sees and a model does not
	Time      PartTime   // text, reasoning
	CallID    string     // tool
	Tool      string     // tool
	State     *ToolState // tool
	Reason    string     // step-finish
	Usage     Usage      // step-finish

	// Metadata is data that a provider requires back with a reasoning part, by the name of its API: {"anthropic": {"signature": …}},
	// {"openai": {"itemId": …, "reasoningEncryptedContent": …}}. Nil if there is none.
	Metadata map[string]any

	Compaction *Compaction // compaction
	File       *File       // file
	Meant      *Meant      // agent, subtask
}

// Meant is the agent of a part of a person's message. It marshals to OpenCode's fields of that part.
type Meant struct {
	Name        string          `json:"name,omitempty"`        // agent
	Source      json.RawMessage `json:"source,omitempty"`      // agent: where the text names it, as the client says
	Agent       string          `json:"agent,omitempty"`       // subtask
	Prompt      string          `json:"prompt,omitempty"`      // subtask
	Description string          `json:"description,omitempty"` // subtask
	Model       *ModelRef       `json:"model,omitempty"`       // subtask
	Command     string          `json:"command,omitempty"`     // subtask
}

// ToolStatus is the status of a tool call.
type ToolStatus string

// The states of a tool call.
//
//	pending ──▶ running ──▶ completed
//	   └───────────┴──────▶ error
const (
	ToolPending   ToolStatus = "pending" // its arguments are streaming, or its session stopped before it began
	ToolRunning   ToolStatus = "running" // recorded, then started
	ToolCompleted ToolStatus = "completed"
	ToolError     ToolStatus = "error"
)

// ToolState is a tool call's input and outcome. It marshals to OpenCode's format for its status.
type ToolState struct {
	Status   ToolStatus
	Input    json.RawMessage // a JSON object; invalid input of the model is in Raw
	Raw      string          // pending: the arguments streamed so far
	Title    string
	Output   string         // completed
	Error    string         // error
	Metadata map[string]any // of one that has begun
	Time     PartTime

	Attachments []Part // completed: files of the output
}

// Result returns the text for the model, and whether it is an error.
func (s *ToolState) Result() (text string, isError bool) {
	if s.Status == ToolError {
		return s.Error, true
	}
	return s.Output, false
}

// Ended reports whether the call has a result.
func (s *ToolState) Ended() bool { return s.Status == ToolCompleted || s.Status == ToolError }

type toolPendingJSON struct {
	Status ToolStatus      `json:"status"`
	Input  json.RawMessage `json:"input"`
	Raw    string          `json:"raw"`
}

type toolRunningJSON struct {
	Status   ToolStatus      `json:"status"`
	Input    json.RawMessage `json:"input"`
	Title    string          `json:"title,omitempty"`
	Metadata map[string]any  `json:"metadata,omitempty"`
	Time     struct {
		Start int64 `json:"start"`
	} `json:"time"`
}

type toolTimeJSON struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

type toolCompletedJSON struct {
	Status   ToolStatus      `json:"status"`
	Input    json.RawMessage `json:"input"`
	Output   string          `json:"output"`
	Title    string          `json:"title"`
	Metadata map[string]any  `json:"metadata"`
	Time     toolTimeJSON    `json:"time"`

	Attachments []Part `json:"attachments,omitempty"`
}

type toolErrorJSON struct {
	Status   ToolStatus      `json:"status"`
	Input    json.RawMessage `json:"input"`
	Error    string          `json:"error"`
	Metadata map[string]any  `json:"metadata,omitempty"`
	Time     toolTimeJSON    `json:"time"`
}

// MarshalJSON writes OpenCode's format for the status. Its clients accept only an object as input, so anything else is written as an
// empty one.
func (s ToolState) MarshalJSON() ([]byte, error) {
	input := s.Input
	if !bytes.HasPrefix(bytes.TrimLeft(input, " \t\r\n"), []byte("{")) {
		input = json.RawMessage("{}")
	}
	switch s.Status {
	case ToolPending:
		return json.Marshal(toolPendingJSON{s.Status, input, s.Raw})
	case ToolRunning:
		v := toolRunningJSON{Status: s.Status, Input: input, Title: s.Title, Metadata: s.Metadata}
		v.Time.Start = s.Time.Start
		return json.Marshal(v)
	case ToolCompleted:
		meta := s.Metadata
		if meta == nil {
			meta = map[string]any{}
		}
		return json.Marshal(toolCompletedJSON{s.Status, input, s.Output, s.Title, meta, toolTimeJSON(s.Time), s.Attachments})
	case ToolError:
		return json.Marshal(toolErrorJSON{s.Status, input, s.Error, s.Metadata, toolTimeJSON(s.Time)})
	}
	return nil, fmt.Errorf("tool state has unknown status %q", s.Status)
}

// UnmarshalJSON reads any of the formats.
func (s *ToolState) UnmarshalJSON(b []byte) error {
	var v struct {
		Status   ToolStatus      `json:"status"`
		Input    json.RawMessage `json:"input"`
		Raw      string          `json:"raw"`
		Title    string          `json:"title"`
		Output   string          `json:"output"`
		Error    string          `json:"error"`
		Metadata map[string]any  `json:"metadata"`
		Time     PartTime        `json:"time"`

		Attachments []Part `json:"attachments"`
	}
	err := json.Unmarshal(b, &v)
	*s = ToolState(v)
	return err
}

type partHead struct {
	ID        string   `json:"id"`
	SessionID string   `json:"sessionID"`
	MessageID string   `json:"messageID"`
	Type      PartType `json:"type"`
}

// MarshalJSON writes OpenCode's format for the type.
func (p Part) MarshalJSON() ([]byte, error) {
	head := partHead{p.ID, p.SessionID, p.MessageID, p.Type}
	switch p.Type {
	case PartText:
		var t *PartTime
		if p.Time.Start != 0 {
			t = &p.Time
		}
		return json.Marshal(struct {
			partHead
			Text      string    `json:"text"`
			Synthetic bool      `json:"synthetic,omitempty"`
			Ignored   bool      `json:"ignored,omitempty"`
			Time      *PartTime `json:"time,omitempty"`
		}{head, p.Text, p.Synthetic, p.Ignored, t})
	case PartReasoning:
		return json.Marshal(struct {
			partHead
			Text string   `json:"text"`
			Time PartTime `json:"time"`

			Metadata map[string]any `json:"metadata,omitempty"`
		}{head, p.Text, p.Time, p.Metadata})
	case PartTool:
		if p.State == nil {
			return nil, fmt.Errorf("part %s is a tool call without a state", p.ID)
		}
		return json.Marshal(struct {
			partHead
			CallID string     `json:"callID"`
			Tool   string     `json:"tool"`
			State  *ToolState `json:"state"`
		}{head, p.CallID, p.Tool, p.State})
	case PartStepStart:
		return json.Marshal(head)
	case PartStepFinish:
		return json.Marshal(struct {
			partHead
			Reason string  `json:"reason"`
			Cost   float64 `json:"cost"`
			Tokens Tokens  `json:"tokens"`
		}{head, p.Reason, p.Usage.USD, p.Usage.Tokens})
	case PartCompaction:
		return p.marshalCompaction(head)
	case PartFile:
		return p.marshalFile(head)
	case PartAgent, PartSubtask:
		return json.Marshal(struct {
			partHead
			*Meant
		}{head, p.Meant})
	}
	return nil, fmt.Errorf("part %s has unknown type %q", p.ID, p.Type)
}

// UnmarshalJSON reads any of the formats.
func (p *Part) UnmarshalJSON(b []byte) error {
	var v struct {
		partHead
		Text      string     `json:"text"`
		Synthetic bool       `json:"synthetic"`
		Ignored   bool       `json:"ignored"`
		Time      PartTime   `json:"time"`
		CallID    string     `json:"callID"`
		Tool      string     `json:"tool"`
		State     *ToolState `json:"state"`
		Reason    string     `json:"reason"`
		Cost      float64    `json:"cost"`
		Tokens    Tokens     `json:"tokens"`

		Metadata map[string]any `json:"metadata"`
		Compaction
	}
	err := json.Unmarshal(b, &v)
	*p = Part{ID: v.ID, SessionID: v.SessionID, MessageID: v.MessageID, Type: v.Type, Text: v.Text, Synthetic: v.Synthetic,
		Ignored: v.Ignored, Time: v.Time, CallID: v.CallID, Tool: v.Tool, State: v.State, Reason: v.Reason,
		Usage: Usage{Tokens: v.Tokens, USD: v.Cost}}
	switch p.Type {
	case PartCompaction:
		p.Compaction = &v.Compaction
	case PartReasoning:
		p.Metadata = v.Metadata
	case PartFile:
		p.File = new(File)
		if err == nil {
			err = p.File.UnmarshalJSON(b)
		}
	case PartAgent, PartSubtask:
		p.Meant = new(Meant)
		if err == nil {
			err = json.Unmarshal(b, p.Meant)
		}
	}
	return err
}
