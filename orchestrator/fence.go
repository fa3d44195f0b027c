package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"centurion"
	"centurion/orchestrator/state"
)

// current refuses a conversation whose task a newer attempt works on.
func (c *conversation) current() error {
	if c.task == nil {
		return nil
	}
	select {
	case <-c.task.Done:
		return &centurion.Error{Kind: centurion.KindConflict, Err: state.ErrSuperseded,
			Msg: fmt.Sprintf("attempt %d of task %s writes no more: the task has ended", c.attempt, c.task.Name)}
	default:
	}
	return c.m.st.Fences.Check(c.task.ID, c.attempt)
}

// fenced refuses, and records, what a stale attempt is about to do.
func (c *conversation) fenced(ctx context.Context, what string) error {
	err := c.current()
	if err == nil {
		return nil
	}
	return errors.Join(err, c.m.st.RecordRefusal(ctx, c.task.ID, c.id(), c.attempt, what))
}
