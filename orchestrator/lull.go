package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"centurion"
	"centurion/orchestrator/brief"
)

// startable says, for a model, what a conversation could do now instead of waiting for its tasks; it is empty if that is nothing. Only
// the mission's own agent carries a plan out.
func (c *conversation) startable(ctx context.Context) (string, error) {
	if c.task != nil {
		return "", nil
	}
	v, err := c.m.judge.Look(ctx)
	if err = cmp.Or(err, v.Unread); err != nil || v.Plan.Doc == nil {
		return "", err
	}
	return brief.StandingOf(v, &c.m.claims).Startable(), nil
}

// lull is the wait of a call that asks about a living task: until one of the conversation's tasks ends, something can be started,
// which it returns, something has arrived for the conversation, or the time of a synchronous wait is over. The slot is given back
// meanwhile. When the mission stops the error has [tools.ErrLater]: the call waits on when the session goes on.
func (c *conversation) lull(ctx context.Context, task centurion.Task) (string, error) {
	m := c.m
	wait, cancel := context.WithTimeout(ctx, m.h.cfg.Await)
	defer cancel()
	begun, err := c.living(ctx)
	if err != nil {
		return "", err
	}
	waits := false
	for {
		changed := m.st.Change()
		over, can, err := c.lullOver(ctx, begun)
		if !over && err == nil && !waits {
			waits = true
			defer c.live.wait(WaitChild)()
			defer c.pulse.Attend(task.ID)()
			if err = c.leave(ctx, "task "+task.Name()); err != nil {
				return "", err
			}
		}
		if over || err != nil || wait.Err() != nil {
			if waits {
				err = errors.Join(err, c.enter())
			}
			return can, m.st.Later(errors.Join(err, context.Cause(ctx)))
		}
		select {
		case <-changed:
		case <-wait.Done():
		}
	}
}

// lullOver looks whether something is there to go on for; begun are the tasks that lived before.
func (c *conversation) lullOver(ctx context.Context, begun []string) (over bool, can string, err error) {
	living, err := c.living(ctx)
	if err != nil {
		return false, "", err
	}
	if slices.ContainsFunc(begun, func(id string) bool { return !slices.Contains(living, id) }) {
		return true, "", nil
	}
	if can, err = c.startable(ctx); err != nil || can != "" {
		return true, can, err
	}
	waiting, err := c.m.h.cfg.Store.PendingDeliveries(ctx, c.id())
	return len(waiting) > 0, "", err
}

// living lists the tasks of the conversation that have not ended, or whose items are not marked yet.
func (c *conversation) living(ctx context.Context) ([]string, error) {
	tasks, err := c.tasks(ctx)
	if err != nil {
		return nil, err
	}
	var ending []string
	for _, r := range c.m.st.Runs() {
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

// tasks lists the tasks that the conversation may ask about, oldest first: its own, and to the mission's own agent all.
func (c *conversation) tasks(ctx context.Context) ([]centurion.Task, error) {
	all, err := c.m.h.cfg.Store.Tasks(ctx, c.m.st.ID)
	return slices.DeleteFunc(all, func(t centurion.Task) bool { return c.task != nil && t.Parent != c.id() }), err
}
