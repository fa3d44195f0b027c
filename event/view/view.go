// Package view is how readers see the journal: it decodes every fact into one type ([Fact]) and folds a mission's facts into one state
// ([Board]). It owns which fields of a fact are read, how leniently, and what they change. It publishes and stores nothing.
package view

import (
	"encoding/json"
	"time"

	"centurion"
	"centurion/event"
	"centurion/text"
)

// Fact is the union of the event data in package event. One reader for all types keeps a view working on journals of other versions of
// the program: missing or malformed values stay zero.
type Fact struct {
	// Missions.
	Goal      string          `json:"goal"`
	Directory string          `json:"directory"`
	Branch    string          `json:"branch"`
	Level     int             `json:"level"`
	LevelFrom string          `json:"level_from"`
	Status    string          `json:"status"`
	Reason    string          `json:"reason"`
	Options   *Options        `json:"options"`
	Usage     centurion.Usage `json:"usage"`
	Countdown *int64          `json:"countdown_ms"`
	Note      string          `json:"note"`
	Base      *centurion.Base `json:"base"`

	Confinement *centurion.Confinement `json:"confinement"`

	MaxCost   float64 `json:"max_cost"`
	MaxTokens int64   `json:"max_tokens"`
	Limit     string  `json:"limit"` // of a budget
	Spent     float64 `json:"spent"`
	Max       float64 `json:"max"`

	// The end of a mission.
	DurationMS int64          `json:"duration_ms"`
	Tasks      map[string]int `json:"tasks"`
	centurion.Tally
	Evidence centurion.Evidence `json:"evidence"`
	Profile  string             `json:"profile"`
	Summary  string             `json:"summary"`

	// The todo list and the plan.
	Open      int              `json:"open"`
	Running   int              `json:"running"`
	Done      int              `json:"done"`
	Cancelled int              `json:"cancelled"`
	Blocked   int              `json:"blocked"`
	Items     []event.PlanItem `json:"items"`
	CostLow   float64          `json:"cost_low"`
	CostHigh  float64          `json:"cost_high"`

	// Tasks, sessions, messages.
	ID        string           `json:"id"`
	Agent     string           `json:"agent"`
	Title     string           `json:"title"`
	Name      string           `json:"name"`
	Parent    string           `json:"parent"` // the session that delegated it
	Item      string           `json:"item"`
	Session   string           `json:"session"`
	Address   string           `json:"address"`
	Attempt   int              `json:"attempt"`
	Result    string           `json:"result"`
	Files     []string         `json:"files"`
	Changed   int              `json:"changed"`
	Message   string           `json:"message"`
	Model     string           `json:"model"`
	Calls     int              `json:"calls"` // tool calls of an answer: these
	ToolCalls []event.CallData `json:"tool_calls"`
	Repaired  bool             `json:"repaired"` // an answer from before a crash
	Role      string           `json:"role"`
	Origin    string           `json:"origin"`
	Text      string           `json:"text"`
	Finish    string           `json:"finish"`
	Kind      centurion.Kind   `json:"kind"`
	Error     Error            `json:"error"`
	Tokens    tokens           `json:"tokens"`
	Cost      float64          `json:"cost"`
	Unpriced  bool             `json:"unpriced"`

	// Tools, deltas, retries.
	Tool   string          `json:"tool"`
	Call   string          `json:"call"`
	Input  json.RawMessage `json:"input"`
	Field  string          `json:"field"`
	Delta  string          `json:"delta"`
	Gap    bool            `json:"gap"`
	WaitMS int64           `json:"wait_ms"`

	// Why a task was cut off or sent back.
	Cause    string `json:"cause"`
	SilentMS int64  `json:"silent_ms"`
	Last     string `json:"last"`
	Refused  string `json:"refused"`

	From string `json:"from"` // the previous model
	To   string `json:"to"`

	// The shortening of a conversation, in estimated tokens of the next request.
	Before int64 `json:"before"`
	After  int64 `json:"after"`
	ByHost bool  `json:"by_host"`

	// Checks and merges.
	Command  string `json:"command"`
	ExitCode int    `json:"exit_code"`
	Output   string `json:"output"`
	Final    bool   `json:"final"`
	Early    bool   `json:"early"`
	Commit   string `json:"commit"`
	Person   bool   `json:"person"`

	Proof       centurion.Proof `json:"proof"`
	Why         string          `json:"why"`
	FailureLine string          `json:"died"`
	Weakened    []string        `json:"weakened"`

	// Asks.
	Type       string         `json:"type"`
	Permission string         `json:"permission"`
	Patterns   []string       `json:"patterns"`
	Always     []string       `json:"always"`
	Metadata   map[string]any `json:"metadata"`
	Answer     string         `json:"answer"`
	Line       string         `json:"line"`
	By         string         `json:"by"`
}

// Read decodes an event's data. A malformed value leaves its field zero and the others intact.
func Read(e centurion.Event) Fact {
	f, _ := Decode(e)
	return f
}

// Decode is [Read] with an error for malformed values.
func Decode(e centurion.Event) (f Fact, err error) {
	if e.Type == centurion.EventDelta { // there are thousands of these
		var d event.DeltaData
		err = json.Unmarshal(e.Data, &d)
		f.Field, f.Delta, f.Gap = d.Field, d.Delta, d.Gap
		return f, err
	}
	err = json.Unmarshal(e.Data, &f)
	if f.Usage == (centurion.Usage{}) {
		f.Usage = centurion.Usage{Tokens: centurion.Tokens(f.Tokens), USD: f.Cost, Unpriced: f.Unpriced}
	}
	return f, err
}

// Duration returns how long the event's work took.
func (f Fact) Duration() time.Duration { return text.Millis(f.DurationMS) }

// Wait returns the wait before the next attempt or request.
func (f Fact) Wait() time.Duration { return text.Millis(f.WaitMS) }

// TaskStatus returns the state of the event's task.
func (f Fact) TaskStatus() centurion.TaskStatus { return centurion.TaskStatus(f.Status) }

// TaskError returns the error of the event's task, nil without one.
func (f Fact) TaskError() *centurion.TaskError {
	if f.Error.Text != "" || f.Error.TaskError == (centurion.TaskError{}) {
		return nil
	}
	return &f.Error.TaskError
}

// Options are those of a mission or the choices of a question, which share a key.
type Options struct {
	centurion.MissionOptions
	Choices []string
}

// Choices returns those of a question.
func (f Fact) Choices() []string {
	if f.Options == nil {
		return nil
	}
	return f.Options.Choices
}

// UnmarshalJSON reads either form.
func (o *Options) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, &o.Choices)
	}
	return json.Unmarshal(b, &o.MissionOptions)
}

// Error is an error given as a text, or as an object like a task's.
type Error struct {
	centurion.TaskError
	Text string // the message, if the error is a text
}

// UnmarshalJSON reads either form.
func (e *Error) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &e.Text) == nil {
		e.Message = e.Text
		return nil
	}
	return json.Unmarshal(b, &e.TaskError)
}

// tokens is a count of tokens by kind, or one number.
type tokens centurion.Tokens

// UnmarshalJSON reads either form.
func (t *tokens) UnmarshalJSON(b []byte) error {
	var n int64
	if json.Unmarshal(b, &n) == nil {
		*t = tokens{Output: n}
		return nil
	}
	return json.Unmarshal(b, (*centurion.Tokens)(t))
}
