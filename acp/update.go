package acp

import (
	"cmp"
	"encoding/json"
	"strings"
)

// Update is something that an agent tells during its turn: one of its fields.
type Update struct {
	Text    string // a piece of its answer
	Thought string // a piece of what it thinks
	Call    *Call  // a call has begun or changed
	First   bool   // Call has begun
	Plan    []Step // its own plan, as it is now
	Cost    *float64
}

// Step is a line of an agent's plan.
type Step struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// Call is what is told of a call; what is empty has not changed.
type Call struct {
	ID, Title string
	Kind      string // read, edit, delete, move, search, execute, think, fetch, other
	Status    string // pending, in_progress, completed, failed
	Input     json.RawMessage
	Output    string
	Paths     []string // that it reads or changes, absolute
	Diffs     []Diff
}

// Diff is a changed file.
type Diff struct{ Path, Old, New string }

// Ended reports whether nothing more comes of the call.
func (c Call) Ended() bool { return c.Status == "completed" || c.Status == "failed" }

// wireUpdate is any update, and the call of a request for permission.
type wireUpdate struct {
	Type      string          `json:"sessionUpdate"`
	Content   json.RawMessage `json:"content"`
	ID        string          `json:"toolCallId"`
	Title     string          `json:"title"`
	Kind      string          `json:"kind"`
	Status    string          `json:"status"`
	RawInput  json.RawMessage `json:"rawInput"`
	RawOutput json.RawMessage `json:"rawOutput"`
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
	Entries []Step `json:"entries"`
	Cost    *struct {
		Amount   float64 `json:"amount"`
		Currency string  `json:"currency"`
	} `json:"cost"`
}

// block is a part of the content of a message or a call.
type block struct {
	Type    string  `json:"type"`
	Text    string  `json:"text"`
	Content *block  `json:"content"` // of a call: an ordinary block
	Path    string  `json:"path"`    // of a diff
	Old     *string `json:"oldText"`
	New     string  `json:"newText"`
}

// read returns the update; an empty one if it is of a kind that does not matter here.
func (w wireUpdate) read() (u Update) {
	switch w.Type {
	case "agent_message_chunk", "agent_thought_chunk":
		var b block
		_ = json.Unmarshal(w.Content, &b) // an image has no text
		if w.Type == "agent_message_chunk" {
			u.Text = b.Text
		} else {
			u.Thought = b.Text
		}
	case "tool_call", "tool_call_update":
		call := w.call()
		u.Call, u.First = &call, w.Type == "tool_call"
	case "plan":
		u.Plan = w.Entries
	case "usage_update":
		if w.Cost != nil && (w.Cost.Currency == "" || strings.EqualFold(w.Cost.Currency, "USD")) {
			u.Cost = &w.Cost.Amount
		}
	}
	return u
}

func (w wireUpdate) call() Call {
	c := Call{ID: w.ID, Title: w.Title, Kind: w.Kind, Status: w.Status, Input: w.RawInput}
	var blocks []block
	_ = json.Unmarshal(w.Content, &blocks)
	var said []string
	for _, b := range blocks {
		switch {
		case b.Type == "diff":
			d := Diff{Path: b.Path, New: b.New}
			if b.Old != nil {
				d.Old = *b.Old
			}
			c.Diffs, c.Paths = append(c.Diffs, d), append(c.Paths, b.Path)
		case b.Content != nil && b.Content.Text != "":
			said = append(said, b.Content.Text)
		}
	}
	for _, l := range w.Locations {
		c.Paths = append(c.Paths, l.Path)
	}
	if c.Output = strings.Join(said, "\n"); c.Output == "" && len(w.RawOutput) > 0 && string(w.RawOutput) != "null" {
		var out struct{ Output string } // as many say it
		if json.Unmarshal(w.RawOutput, &c.Output) != nil {
			_ = json.Unmarshal(w.RawOutput, &out)
			c.Output = cmp.Or(out.Output, string(w.RawOutput))
		}
	}
	return c
}
