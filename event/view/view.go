// Package view is how the readers of the journal see it: every fact is decoded into one type ([Fact]), and what follows from a mission's
// facts into one state ([Board]), whoever shows it. It owns what of a fact is read, how forgivingly, and what it changes. It tells and
// stores nothing.
package view

import (
	"encoding/json"
	"time"

	"centurion"
	"centurion/event"
	"centurion/text"
)

// Fact is the union of what package event lets the data of events hold. One reader for all types keeps a view
// working on a journal that another version of the program wrote: what is missing or of another form stays zero.
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
	MaxCost   float64         `json:"max_cost"`
	MaxTokens int64           `json:"max_tokens"`
	Limit     string          `json:"limit"` // of a budget
	Spent     float64         `json:"spent"`
	Max       float64         `json:"max"`

	// The end of a mission.
	DurationMS int64                         `json:"duration_ms"`
	Tasks      map[string]int                `json:"tasks"`
	Verified   int                           `json:"verified"`
	Unverified int                           `json:"unverified"`
	Unproven   []string                      `json:"unproven"`
	Flaky      []string                      `json:"flaky"`
	Reviewed   map[string]centurion.PassedBy `json:"reviewed"`
	Evidence   centurion.Evidence            `json:"evidence"`
	Profile    string                        `json:"profile"`
	Summary    string                        `json:"summary"`

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
	Calls     int              `json:"calls"` // of tools, that an answer asks for: these
	ToolCalls []event.CallData `json:"tool_calls"`
	Repaired  bool             `json:"repaired"` // an answer of before a crash
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

	// What cut a task off, or sent it back.
	Cause    string `json:"cause"`
	SilentMS int64  `json:"silent_ms"`
	Last     string `json:"last"`
	Refused  string `json:"refused"`

	From string `json:"from"` // a model, of one that was changed
	To   string `json:"to"`

	// What shortened a conversation, in estimated tokens of the next request.
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

// Read decodes an event's data. A value of an unexpected form leaves its field zero and the others as they are.
func Read(e centurion.Event) Fact {
	f, _ := Decode(e)
	return f
}

// Decode is [Read] with the error that tells of a value of an unexpected form.
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

// Duration returns how long the work took that the event tells of.
func (f Fact) Duration() time.Duration { return text.Millis(f.DurationMS) }

// Wait returns how long is waited before the next attempt or request.
func (f Fact) Wait() time.Duration { return text.Millis(f.WaitMS) }

// TaskStatus is the state of the task that the event tells of.
func (f Fact) TaskStatus() centurion.TaskStatus { return centurion.TaskStatus(f.Status) }

// TaskError is the error of the task that the event tells of, and nil without one.
func (f Fact) TaskError() *centurion.TaskError {
	if f.Error.Text != "" || f.Error.TaskError == (centurion.TaskError{}) {
		return nil
	}
	return &f.Error.TaskError
}

// Options are those of a mission, or the choices of a question, which stand under the same key.
type Options struct {
	centurion.MissionOptions
	Choices []string
}

// Choices are those of a question.
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

// Error is an error that is a text, or an object as a task has it.
type Error struct {
	centurion.TaskError
	Text string // the message, of an error that is a text
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
