package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/workspace/todo"
)

// independentItems is the maximum number of independent items for level 2 of THINK, without a planner.
const independentItems = 5

// ImpliedLevel is the level of THINK that a plan implies: 1 without items, 2 for up to five independent ones, otherwise 3.
func ImpliedLevel(items []todo.Item) int {
	n, ordered := 0, false
	for _, it := range items {
		if !it.Group {
			n++
		}
		ordered = ordered || len(it.After) > 0
	}
	switch {
	case n == 0:
		return 1
	case n <= independentItems && !ordered:
		return 2
	}
	return 3
}

// putLevel records a mission's level and its source, and publishes a change. The person's level stays; an inferred one yields to any
// other.
func putLevel(tx *store.Tx, mission string, level int, from string) (centurion.Mission, error) {
	rec, err := tx.Mission(mission)
	if err != nil {
		return rec, err
	}
	if rec.Options.Level != 0 {
		level, from = rec.Options.Level, centurion.LevelByPerson
	}
	if from == centurion.LevelInferred && rec.Level != 0 && rec.LevelFrom != centurion.LevelInferred ||
		rec.Level == level && rec.LevelFrom == from {
		return rec, nil
	}
	rec.Level, rec.LevelFrom = level, from
	if err := tx.PutMission(&rec); err != nil {
		return rec, err
	}
	_, err = tx.Append(centurion.Event{Type: centurion.EventMissionUpdated, Mission: rec.ID, Session: rec.Session, Data: event.Data(state.Living(rec))})
	return rec, err
}

// SetLevel records the level assessed by an agent, and returns a note for it if another level applies.
func (m *Plan) SetLevel(ctx context.Context, level int, agent string) (note string, err error) {
	err = m.st.Store.Update(ctx, func(tx *store.Tx) error {
		note = ""
		rec, err := putLevel(tx, m.st.ID, level, agent)
		if err == nil && rec.Level != level {
			note = fmt.Sprintf("The level stays %d: the person has set it.", rec.Level)
		}
		return err
	})
	return note, err
}

// LevelAllows checks that the mission's own agent does not delegate work that level 3 wants planned first; p is the plan. The error has
// centurion.KindConflict.
func (m *Plan) LevelAllows(ctx context.Context, p View, to agents.Agent) error {
	if to.Name == agents.Planner || to.Name == agents.Reviewer || len(p.Items()) > 0 {
		return nil
	}
	rec, err := m.st.Store.Mission(ctx, m.st.ID)
	if err != nil || rec.Level != 3 {
		return err
	}
	return &centurion.Error{Kind: centurion.KindConflict,
		Msg:  "this mission is of level 3" + map[bool]string{true: ", set by the person"}[rec.LevelFrom == centurion.LevelByPerson] + ", and there is no todo list yet",
		Hint: "delegate to the planner first and let it write the list, or write it with update_todo; then start its items"}
}

// InferLevel records, at the end, the level that the plan implies if no level was given. Without a plan but with tasks there is nothing
// to infer it from.
func (m *Plan) InferLevel(ctx context.Context) error {
	p, err := m.Read()
	if err != nil {
		return nil // an unreadable plan implies nothing
	}
	return m.st.Store.Update(ctx, func(tx *store.Tx) error {
		if len(p.Items()) == 0 {
			if tasks, err := tx.Tasks(m.st.ID); err != nil || len(tasks) > 0 {
				return err
			}
		}
		_, err := putLevel(tx, m.st.ID, ImpliedLevel(p.Items()), centurion.LevelInferred)
		return err
	})
}

// LacksIDs reports whether an item of the plan has no id yet.
func LacksIDs(d *todo.Doc) bool {
	return slices.ContainsFunc(d.Items(), func(it todo.Item) bool { return it.ID == "" })
}

// Outline is a summary of the plan for a model that has just changed it.
func Outline(d *todo.Doc) string {
	var b strings.Builder
	c := d.Counts()
	fmt.Fprintf(&b, "%s: %d open, %d running, %d done, %d cancelled, %d blocked.\n", centurion.Count(c.Total(), "item"), c.Open, c.Running, c.Done, c.Cancelled, c.Blocked)
	for _, it := range d.Items() {
		fmt.Fprintf(&b, "[%c] %s %s", d.Status(it.ID), it.ID, it.Shown())
		if it.Agent != "" {
			b.WriteString(" @" + it.Agent)
		}
		if unmet := d.Unmet(it.ID); len(unmet) > 0 && it.Mark == todo.Open {
			b.WriteString(" (after " + strings.Join(unmet, ", ") + ")")
		}
		switch {
		case it.Group:
		case strings.EqualFold(it.Agent, agents.Reviewer):
			b.WriteString(" (a review of " + reviewOf(it) + ")")
		case mayReview(it):
			b.WriteString(" (no verify command: a review has to pass; if it is itself one, name @reviewer)")
		case len(it.Verify) == 0:
			b.WriteString(" (no verify command: a review has to pass)")
		}
		b.WriteByte('\n')
	}
	for _, p := range d.Problems() {
		fmt.Fprintf(&b, "Problem in line %d: %s\n", p.Line, p.Msg)
	}
	return strings.TrimRight(b.String(), "\n")
}
