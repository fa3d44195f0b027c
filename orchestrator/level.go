package orchestrator

import (
	"cmp"
	"context"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/plan"
)

// levelAllows checks that the mission's own agent hands no work out that level 3 wants planned first.
func (d delegator) levelAllows(ctx context.Context, to agents.Agent, p plan.View) error {
	if d.c.Task != nil || to.Name == agents.Planner || to.Name == agents.Reviewer || len(p.Items()) > 0 {
		return nil
	}
	rec, err := d.m.h.cfg.Store.Mission(ctx, d.m.st.ID)
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
