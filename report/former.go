package report

import (
	"slices"
	"strings"

	"centurion"
	"centurion/event/view"
	"centurion/text"
)

// Former is what a check was that its item does not ask for any more.
type Former struct {
	Item    string   `json:"item"`
	By      string   `json:"by,omitempty"`      // the agent that changed it; empty where nothing tells
	Now     []string `json:"now,omitempty"`     // what the item asks for instead
	Dropped bool     `json:"dropped,omitempty"` // the item is not in the plan any more
}

// words tell whose check it was, and what has taken its place.
func (f *Former) words() string {
	switch {
	case f == nil:
		return ""
	case f.Dropped:
		return "former check of " + text.Clean(f.Item) + ", which is not in the plan any more"
	}
	line := "former check of " + text.Clean(f.Item) + ", changed"
	if f.By != "" {
		line += " by the " + text.Clean(f.By)
	}
	return line + " (now: " + short(strings.Join(f.Now, "; "), maxCommand) + ")"
}

// formerChecks are the commands that have run for an item and that it does not ask for any more.
func formerChecks(d Data, p PlanItem) []Check {
	var out []Check
	if len(p.Verify) == 0 { // then what has run is still all that there is of it
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

// changedBy is the agent that took a command away from an item. Once work on an item has begun, only a reviewer may, and a person in
// the plan's file: it was the reviewer if one has changed the plan between the last time that it was told with the command and the first
// time without.
func changedBy(d Data, item, command string) string {
	by, had := "", false
	for _, e := range d.Events {
		switch e.Type {
		case centurion.EventToolCompleted:
			t := view.Read(e)
			i := slices.IndexFunc(d.Tasks, func(t centurion.Task) bool { return e.Task != "" && t.ID == e.Task })
			if had && t.Tool == "update_todo" && t.Error.Text == "" && i >= 0 && d.Tasks[i].Agent == reviewer {
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
