package plan

import (
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/loop"
	"centurion/workspace/todo"
)

// Held reports whether a task must wait until a person has accepted the plan. Planners, agents that work before there is a plan, and
// missions of level 1 do not wait, unless nothing may be written before.
func (p View) Held(rec centurion.Mission, agent string) bool {
	return rec.Options.ShowPlan && !rec.Accepted && (rec.Level != 1 || rec.Options.PlanFirst) && agent != agents.Planner && len(p.Items()) > 0
}

// Wanted refuses work before there is a plan, in a mission whose person wants to see it first.
func (p View) Wanted(rec centurion.Mission) error {
	if !rec.Options.PlanFirst || rec.Accepted || len(p.Items()) > 0 {
		return nil
	}
	return &centurion.Error{Kind: centurion.KindPermission, Msg: "the person wants to see the plan before anything is written",
		Hint: "save it first with update_todo, one item for small work; then this call shows it to the person and waits for the answer"}
}

// VerifyLines lists every acceptance command of the plan, each once.
func (p View) VerifyLines() []string {
	if p.Doc == nil {
		return nil
	}
	all := slices.Clone(p.Doc.Checks())
	for _, it := range p.Doc.Items() {
		all = append(all, it.Verify...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// View is the current plan; the zero value is for a mission without one.
type View struct{ Doc *todo.Doc }

func (p View) Items() []todo.Item {
	if p.Doc == nil {
		return nil
	}
	return p.Doc.Items()
}

// HeldForNobody counts the waiting tasks that would wait forever: for an item without a living task or whose own task waits forever, or
// because the plan is gone.
func (p View) HeldForNobody(waiting []centurion.Task, alive map[string]bool) int {
	held := map[string]bool{}
	for again := true; again; {
		again = false
		for _, t := range waiting {
			if t.Item == "" || held[t.Item] {
				continue
			}
			if p.Doc == nil || p.Doc.Misread(t.Item) > 0 || slices.ContainsFunc(p.Doc.Unmet(t.Item), func(id string) bool { return !alive[id] || held[id] }) {
				held[t.Item], again = true, true
			}
		}
	}
	return len(held)
}

// problem describes a mistake in the plan about an item, or returns "".
func (p View) problem(id string) string {
	for _, x := range p.Doc.Problems() {
		if slices.Contains(x.IDs, id) {
			return fmt.Sprintf(" (line %d: %s)", x.Line, x.Msg)
		}
	}
	return ""
}

// AddMisread counts as blocked the items of waiting tasks whose lines cannot be read.
func (p View) AddMisread(f *loop.Facts, waiting []centurion.Task) {
	if p.Doc == nil {
		return
	}
	for _, t := range waiting {
		if line := p.Doc.Misread(t.Item); line > 0 {
			f.Counts.Blocked++
			f.Stuck = append(f.Stuck, fmt.Sprintf("%s %s (line %d: it is not read as an item)", t.Item, t.Title, line))
		}
	}
}

// Told is the plan in the form for events.
func (p View) Told() []event.PlanItem {
	var out []event.PlanItem
	for _, it := range p.Items() {
		if !it.Group {
			out = append(out, event.PlanItem{ID: it.ID, Title: it.Shown(), Agent: it.Agent, After: it.After, Files: it.Files,
				Verify: it.Verify, Status: p.Doc.Status(it.ID).String()})
		}
	}
	return out
}

// IsDone reports whether an item exists and is done.
func (p View) IsDone(id string) bool {
	if p.Doc == nil || id == "" {
		return false
	}
	it, ok := p.Doc.Item(id)
	return ok && !it.Group && p.Doc.Status(id) == todo.Done
}

// ItemOpen checks that an item exists and is open.
func (p View) ItemOpen(id string) error {
	if id == "" {
		return nil
	}
	if p.Doc == nil {
		return &centurion.Error{Kind: centurion.KindNotFound, Msg: fmt.Sprintf("there is no item %q: there is no todo list yet", id),
			Hint: "write it first with update_todo, or delegate without an item"}
	}
	it, ok := p.Doc.Item(id)
	if !ok {
		hint := "the items are: " + strings.Join(ids(p.Items()), ", ")
		if near := p.Doc.Nearest(id); near != "" {
			hint = "did you mean " + near + "?"
		}
		return &centurion.Error{Kind: centurion.KindNotFound, Msg: fmt.Sprintf("there is no item %q", id), Hint: hint}
	}
	if s := p.Doc.Status(id); it.Group || s == todo.Done || s == todo.Cancelled {
		what := s.String()
		if it.Group {
			what = "a group; its sub-items are what can be delegated"
		}
		e := &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("item %s is %s", id, what),
			Hint: "set it to open with update_todo if it has to be done again"}
		if s == todo.Done && !it.Group {
			e.Hint += "; the reviewer may take it as it is: " + ReviewCall(id)
		}
		return e
	}
	return nil
}

func ids(items []todo.Item) []string {
	out := make([]string, len(items))
	for i, it := range items {
		out[i] = it.ID
	}
	return out
}
