package tui

import (
	"encoding/json"
	"time"

	"centurion"
	"centurion/event"
	"centurion/text"
)

// payload is the union of what package event lets the data of events hold. One reader for all types keeps the view
// working on a journal that another version of the program wrote: what is missing or of another form stays zero.
type payload struct {
	// Missions.
	Goal      string                   `json:"goal"`
	Directory string                   `json:"directory"`
	Branch    string                   `json:"branch"`
	Level     int                      `json:"level"`
	LevelFrom string                   `json:"level_from"`
	Status    string                   `json:"status"`
	Reason    string                   `json:"reason"`
	Options   centurion.MissionOptions `json:"options"`
	Usage     centurion.Usage          `json:"usage"`
	Rounds    int                      `json:"rounds"`
	Countdown *int64                   `json:"countdown_ms"`
	Note      string                   `json:"note"`
	Base      *centurion.Base          `json:"base"`
	MaxCost   float64                  `json:"max_cost"`
	MaxTokens int64                    `json:"max_tokens"`
	Limit     string                   `json:"limit"` // of a budget
	Spent     float64                  `json:"spent"`
	Max       float64                  `json:"max"`

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
	Open      int     `json:"open"`
	Running   int     `json:"running"`
	Done      int     `json:"done"`
	Cancelled int     `json:"cancelled"`
	Blocked   int     `json:"blocked"`
	Items     []Item  `json:"items"`
	CostLow   float64 `json:"cost_low"`
	CostHigh  float64 `json:"cost_high"`

	// Tasks, sessions, messages.
	ID       string         `json:"id"`
	Agent    string         `json:"agent"`
	Title    string         `json:"title"`
	Name     string         `json:"name"`
	Item     string         `json:"item"`
	Session  string         `json:"session"`
	Address  string         `json:"address"`
	Attempt  int            `json:"attempt"`
	Result   string         `json:"result"`
	Files    []string       `json:"files"`
	Changed  int            `json:"changed"`
	Role     string         `json:"role"`
	Origin   string         `json:"origin"`
	Text     string         `json:"text"`
	Finish   string         `json:"finish"`
	Kind     centurion.Kind `json:"kind"`
	Error    errorText      `json:"error"`
	Tokens   tokenCount     `json:"tokens"`
	Cost     float64        `json:"cost"`
	Unpriced bool           `json:"unpriced"`

	// Tools, deltas, retries.
	Tool   string          `json:"tool"`
	Call   string          `json:"call"`
	Input  json.RawMessage `json:"input"`
	Field  string          `json:"field"`
	Delta  string          `json:"delta"`
	Gap    bool            `json:"gap"`
	WaitMS int64           `json:"wait_ms"`

	From string `json:"from"` // a model, of one that was changed
	To   string `json:"to"`

	// Branches of a conversation.
	Mark    string `json:"mark"`
	Undone  int    `json:"undone"`
	Mission string `json:"mission"`

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
	Deadline   centurion.Time `json:"deadline"`
}

// read decodes an event's data. A value of an unexpected form leaves its field zero and the others as they are.
func read(e centurion.Event) payload {
	var p payload
	if e.Type == centurion.EventDelta { // there are thousands of these
		var d event.DeltaData
		_ = json.Unmarshal(e.Data, &d)
		p.Field, p.Delta, p.Gap = d.Field, d.Delta, d.Gap
		return p
	}
	_ = json.Unmarshal(e.Data, &p)
	if p.Usage == (centurion.Usage{}) {
		p.Usage = centurion.Usage{Tokens: centurion.Tokens(p.Tokens), USD: p.Cost, Unpriced: p.Unpriced}
	}
	return p
}

// choices returns the options of a question; a mission's options stand under the same key in another form.
func choices(e centurion.Event) []string {
	var v struct {
		Options []string `json:"options"`
	}
	_ = json.Unmarshal(e.Data, &v)
	return v.Options
}

// duration returns how long the work took that the event tells of.
func (p payload) duration() time.Duration { return time.Duration(p.DurationMS) * time.Millisecond }

// errorText is an error that is a text or an object with a message.
type errorText struct {
	Kind    centurion.Kind
	Message string
	Hint    string
}

// full is the message with the next step.
func (e errorText) full() string { return withHint(e.Message, e.Hint) }

// UnmarshalJSON reads either form.
func (e *errorText) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &e.Message) == nil {
		return nil
	}
	var o centurion.TaskError
	err := json.Unmarshal(b, &o)
	e.Kind, e.Message, e.Hint = o.Kind, o.Message, o.Hint
	return err
}

func withHint(said, hint string) string {
	if hint == "" {
		return text.Clean(said)
	}
	return text.Clean(said) + " (" + text.Clean(hint) + ")"
}

// tokenCount is a count of tokens by kind, or one number.
type tokenCount centurion.Tokens

// UnmarshalJSON reads either form.
func (t *tokenCount) UnmarshalJSON(b []byte) error {
	var n int64
	if json.Unmarshal(b, &n) == nil {
		*t = tokenCount{Output: n}
		return nil
	}
	return json.Unmarshal(b, (*centurion.Tokens)(t))
}
