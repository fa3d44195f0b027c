package orchestrator

import (
	"context"
	"errors"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/workspace/todo"
)

// errHasPlan says that the mission has a plan already.
var errHasPlan = errors.New("there is a plan")

// takePlan writes the plan that stands in a planner's answer to the mission's todo list, if the planner ended well, was
// not asked by another planner, and nobody has written one, and returns what its parent has to know of that, or "".
func (m *mission) takePlan(ctx context.Context, r *state.Run, status centurion.TaskStatus, answer string) string {
	if status != centurion.TaskCompleted || r.Agent != agents.Planner || r.Now.Load().Parent != m.root.ID() || m.st.Fences.Check(r.ID, r.Attempt) != nil {
		return ""
	}
	if p, err := m.plan.Read(); err != nil || len(p.Items()) > 0 {
		return ""
	}
	found := todo.FromText(answer)
	if found == nil {
		return ""
	}
	doc, err := m.plan.File.Replace(ctx, string(found.Bytes()), false, func(old, _ *todo.Doc) error {
		if old != nil && len(old.Items()) > 0 { // somebody was faster
			return errHasPlan
		}
		return nil
	})
	switch {
	case errors.Is(err, errHasPlan):
		return ""
	case err != nil:
		return "The host could not take the list above over: " + err.Error() + ". Write it with update_todo."
	}
	note := centurion.Count(doc.Counts().Total(), "item") + " taken from the planner's answer into the todo list"
	if err := errors.Join(m.plan.TellTodo(ctx), m.st.Tell(ctx, func(x *event.MissionData) { x.Note = note })); err != nil {
		return "" // the list is written, and told when the mission is looked at next
	}
	return "The planner had not written the list itself: the host has taken it over.\n" + plan.Outline(doc)
}
