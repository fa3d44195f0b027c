package orchestrator

import (
	"cmp"
	"context"
	"fmt"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/workspace/todo"
)

// independentItems is how many items that do not wait for each other are worked on without a planner: level 2 of THINK.
const independentItems = 5

// impliedLevel is the level of THINK that a plan implies when nobody has said it: 1 without items, 2 for up to five that do
// not wait for each other, else 3.
func impliedLevel(items []todo.Item) int {
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

// putLevel records a mission's level and who said it, and tells a change. What the person has set stays; what is inferred
// gives way to what anybody says.
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

// setLevel records the level that an agent has assessed, and returns what it has to be told if another one holds.
func (m *mission) setLevel(ctx context.Context, level int, agent string) (note string, err error) {
	err = m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		note = ""
		rec, err := putLevel(tx, m.st.ID, level, agent)
		if err == nil && rec.Level != level {
			note = fmt.Sprintf("The level stays %d: the person has set it.", rec.Level)
		}
		return err
	})
	return note, err
}

// inferLevel records, at the end, what the plan implies if nobody has said a level. Where work was handed out without a plan there
// is nothing to read it from.
func (m *mission) inferLevel(ctx context.Context) error {
	p, err := m.plan()
	if err != nil {
		return nil // what cannot be read implies nothing
	}
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		if len(p.items()) == 0 {
			if tasks, err := tx.Tasks(m.st.ID); err != nil || len(tasks) > 0 {
				return err
			}
		}
		_, err := putLevel(tx, m.st.ID, impliedLevel(p.items()), centurion.LevelInferred)
		return err
	})
}

// levelAllows checks that the mission's own agent hands no work out that level 3 wants planned first.
func (d delegator) levelAllows(ctx context.Context, to agents.Agent, p planView) error {
	if d.c.task != nil || to.Name == agents.Planner || to.Name == agents.Reviewer || len(p.items()) > 0 {
		return nil
	}
	rec, err := d.c.m.h.cfg.Store.Mission(ctx, d.c.m.st.ID)
	if err != nil || rec.Level != 3 {
		return err
	}
	return &centurion.Error{Kind: centurion.KindConflict,
		Msg:  "this mission is of level 3" + map[bool]string{true: ", set by the person"}[rec.LevelFrom == centurion.LevelByPerson] + ", and there is no todo list yet",
		Hint: "delegate to the planner first and let it write the list, or write it with update_todo; then start its items"}
}

// raiseLevel applies the level that a person gives to a mission that is resumed.
func raiseLevel(m *centurion.Mission, level int) {
	m.Options.Level = cmp.Or(level, m.Options.Level)
	if m.Options.Level != 0 {
		m.Level, m.LevelFrom = m.Options.Level, centurion.LevelByPerson
	}
}
