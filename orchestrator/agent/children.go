package agent

import (
	"context"
	"errors"
	"slices"

	"centurion"
	"centurion/session"
)

var _ session.Host = host{}

// children are the tasks delegated by a conversation.
type children struct{ c *Conversation }

// startable describes, for a model, the items that the conversation could start instead of waiting; "" if there are none. Only the
// mission's own agent carries out a plan.
func (h children) startable(ctx context.Context) (string, error) {
	if h.c.Task != nil {
		return "", nil
	}
	return h.c.m.above.Startable(ctx)
}

// Lull waits for a call that asks about a living task, until one of the conversation's tasks ends, a message arrives, the time of a
// synchronous wait has passed, or something can be started, which it returns. Meanwhile the slot is released. If the mission stops, the
// error has [tools.ErrLater], and the call waits again after a resume.
func (c *Conversation) Lull(ctx context.Context, task centurion.Task) (string, error) {
	m := c.m
	wait, cancel := context.WithTimeout(ctx, m.cfg.Await)
	defer cancel()
	begun, err := c.children.living(ctx)
	if err != nil {
		return "", err
	}
	waits := false
	for {
		changed := m.st.Change()
		over, can, err := c.children.lullOver(ctx, begun)
		if !over && err == nil && !waits {
			waits = true
			defer c.Live.Wait(WaitChild)()
			defer c.Pulse.Attend(task.ID)()
			if err = c.Leave(ctx, "task "+task.Name()); err != nil {
				return "", err
			}
		}
		if over || err != nil || wait.Err() != nil {
			if waits {
				err = errors.Join(err, c.Enter())
			}
			return can, m.st.Later(errors.Join(err, context.Cause(ctx)))
		}
		select {
		case <-changed:
		case <-wait.Done():
		}
	}
}

// lullOver reports whether the wait is over; begun are the tasks that lived at its start.
func (h children) lullOver(ctx context.Context, begun []string) (over bool, can string, err error) {
	living, err := h.living(ctx)
	if err != nil {
		return false, "", err
	}
	if slices.ContainsFunc(begun, func(id string) bool { return !slices.Contains(living, id) }) {
		return true, "", nil
	}
	if can, err = h.startable(ctx); err != nil || can != "" {
		return true, can, err
	}
	waiting, err := h.c.m.st.Store.PendingDeliveries(ctx, h.c.id)
	return len(waiting) > 0, "", err
}

// living lists the tasks of the conversation that have not ended, or whose items are not marked yet.
func (h children) living(ctx context.Context) ([]string, error) {
	tasks, err := h.c.Tasks(ctx)
	if err != nil {
		return nil, err
	}
	var ending []string
	for _, r := range h.c.m.st.Runs() {
		ending = append(ending, r.ID)
	}
	var out []string
	for _, t := range tasks {
		if !t.Status.Ended() || slices.Contains(ending, t.ID) {
			out = append(out, t.ID)
		}
	}
	return out, nil
}

// Tasks lists the tasks that the conversation may ask about, oldest first: its own, or all for the mission's own agent.
func (c *Conversation) Tasks(ctx context.Context) ([]centurion.Task, error) {
	all, err := c.m.st.Store.Tasks(ctx, c.m.st.ID)
	return slices.DeleteFunc(all, func(t centurion.Task) bool { return c.Task != nil && t.Parent != c.id }), err
}

// await waits for the delegated tasks and reports whether there are results or messages to respond to. Meanwhile the slot is released.
func (h children) await(ctx context.Context) (more bool, err error) {
	c, waits := h.c, false
	defer c.Live.Wait(WaitChild)()
	for {
		changed := c.m.st.Change()
		running, err := h.count(ctx)
		if err != nil {
			return false, err
		}
		if err := c.TakeIn(ctx); err != nil { // after the count, so that the results of ended tasks are there
			return false, err
		}
		more := c.Heard > 0 || c.Untold > 0 && (running == 0 || c.Urgent > 0)
		if more || running == 0 {
			if waits {
				err = c.Enter()
			}
			return more, err
		}
		if !waits {
			if err := c.Leave(ctx, "the tasks that it delegated"); err != nil {
				return false, err
			}
			waits = true
		}
		if err := c.m.st.Await(ctx, changed, 0); err != nil {
			return false, err
		}
	}
}

// count counts the living tasks delegated by the conversation.
func (h children) count(ctx context.Context) (int, error) {
	if len(h.c.Agent.Delegates) == 0 {
		return 0, nil
	}
	tasks, err := h.c.m.st.Store.Tasks(ctx, h.c.m.st.ID)
	n := 0
	for _, t := range tasks {
		if t.Parent == h.c.id && !t.Status.Ended() {
			n++
		}
	}
	return n, err
}

// parks reports whether the turn of the mission's own agent ends after an answer that only delegated work: nothing else can be started,
// nothing has arrived, and the end of a living task will wake it. Another request would only produce a remark that it waits.
func (h children) parks(ctx context.Context, history []centurion.Message) bool {
	if !OnlyDelegated(history[len(history)-1]) || owesAnswer(history) {
		return false
	}
	living, err := h.living(ctx)
	if err != nil || len(living) == 0 {
		return false
	}
	if can, err := h.startable(ctx); err != nil || can != "" {
		return false
	}
	arrived, err := h.c.m.st.Store.PendingDeliveries(ctx, h.c.id)
	return err == nil && len(arrived) == 0
}

// OnlyDelegated reports whether all calls of an answer delegated background work, or wrote the plan for it without a remark. A failed
// call needs a response.
func OnlyDelegated(m centurion.Message) bool {
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

// owesAnswer reports whether the person has written since the model's last text; the goal does not count.
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
