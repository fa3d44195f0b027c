package report

import (
	"slices"
	"strings"

	"centurion"
	"centurion/event/view"
	"centurion/text"
)

// Former describes a check that its item no longer has.
type Former struct {
	Item    string   `json:"item"`
	By      string   `json:"by,omitempty"`      // the agent that changed it; empty if unknown
	Now     []string `json:"now,omitempty"`     // the item's current checks
	Dropped bool     `json:"dropped,omitempty"` // the item is no longer in the plan
}

// words describes whose check it was, and what replaced it.
func (f *Former) words() string {
	switch {
	case f == nil:
		return ""
	case f.Dropped:
		return "former check of " + text.Clean(f.Item) + ", which is not in the plan any more"
	}
	return "former check of " + text.Clean(f.Item) + ", changed" + suffix(" by the ", text.Clean(f.By)) +
		" (now: " + short(strings.Join(f.Now, "; "), maxCommand) + ")"
}

// formerChecks are the commands that ran for an item that no longer has them.
func formerChecks(d Data, p PlanItem) []Check {
	var out []Check
	if len(p.Verify) == 0 { // then earlier runs are all there is
		return nil
	}
	for _, r := range d.Receipts {
		if r.Item != p.ID || r.Final || slices.Contains(p.Verify, r.Command) ||
			slices.ContainsFunc(out, func(c Check) bool { return c.Command == r.Command }) {
			continue
		}
		c := checkOf(r.Command, d.Receipts, func(r centurion.Receipt) bool { return r.Item == p.ID })
		c.Former = &Former{Item: p.ID, By: changedBy(d, p.ID, r.Command), Now: p.Verify}
		out = append(out, c)
	}
	return out
}

// changedBy is the agent that removed a command from an item. Once work on an item has begun, only a reviewer may do that, or a person
// in the plan's file. It was the reviewer if one changed the plan between the last event with the command and the first one without it.
func changedBy(d Data, item, command string) string {
	by, had := "", false
	for _, e := range d.Events {
		switch e.Type {
		case centurion.EventToolCompleted:
			t, of := view.Read(e), d.task(e)
			if had && t.Tool == "update_todo" && t.Error.Text == "" && of != nil && of.Agent == reviewer {
				by = reviewer
			}
		case centurion.EventTodoUpdated:
			t := view.Read(e)
			i := slices.IndexFunc(t.Items, func(p PlanItem) bool { return p.ID == item })
			switch {
			case i < 0: // only marks have changed
			case slices.Contains(t.Items[i].Verify, command):
				by, had = "", true
			case had:
				return by
			}
		}
	}
	return by
}
