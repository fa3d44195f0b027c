package orchestrator

import (
	"context"

	"centurion"
)

// parks reports whether the turn of the mission's own agent ends behind an answer that only handed out work: nothing is left to be
// started, nothing has arrived, and a task lives whose end wakes it. Asked again, the model could only say that it waits.
func (c *conversation) parks(ctx context.Context, history []centurion.Message) bool {
	if !onlyDelegated(history[len(history)-1]) || owesAnswer(history) {
		return false
	}
	living, err := c.living(ctx)
	if err != nil || len(living) == 0 {
		return false
	}
	if can, err := c.startable(ctx); err != nil || can != "" {
		return false
	}
	arrived, err := c.m.h.cfg.Store.PendingDeliveries(ctx, c.id())
	return err == nil && len(arrived) == 0
}

// onlyDelegated reports whether all calls of an answer handed out work that goes on by itself, or wrote the plan for it without
// a remark. A call that failed is something to answer.
func onlyDelegated(m centurion.Message) bool {
	delegated := false
	for _, p := range m.Parts {
		if p.Type != centurion.PartTool {
			continue
		}
		switch {
		case p.State == nil || p.State.Status != centurion.ToolCompleted:
			return false
		case p.State.Metadata["background"] == true && p.Tool == "delegate_task":
			delegated = true
		case p.State.Metadata["remarks"] == false && p.Tool == "update_todo":
		default:
			return false
		}
	}
	return delegated
}

// owesAnswer reports whether a person has written since the model last said something; the goal is no such message.
func owesAnswer(history []centurion.Message) bool {
	for i := len(history) - 1; i > 0; i-- {
		switch m := history[i]; {
		case m.Role == centurion.RoleAssistant && m.Text() != "":
			return false
		case m.Role == centurion.RoleUser && m.Origin == centurion.OriginPerson:
			return true
		}
	}
	return false
}
