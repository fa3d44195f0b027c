package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"centurion"
	"centurion/event"
	"centurion/store"
)

// fences knows the newest attempt of each task. A new attempt raises the fence before it writes anything; what an older
// one still wants to write, in its session, its task, the plan or the project, is refused and recorded. It is kept in
// memory: a host that has lost its project is kept out by the store.
type fences struct {
	mu     sync.Mutex // protects newest
	newest map[string]int
}

// raise lets nothing below attempt pass any more.
func (f *fences) raise(task string, attempt int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.newest == nil {
		f.newest = map[string]int{}
	}
	f.newest[task] = max(f.newest[task], attempt)
}

// forget lets go of a task that has ended long ago. What its attempts still want to write is refused because they are
// over: see current.
func (f *fences) forget(task string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.newest, task)
}

// check returns an error that wraps errSuperseded if a newer attempt of the task has begun.
func (f *fences) check(task string, attempt int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if newest := f.newest[task]; attempt < newest {
		return &centurion.Error{Kind: centurion.KindConflict, Err: errSuperseded,
			Msg: fmt.Sprintf("attempt %d of task %s writes no more: attempt %d has begun", attempt, task, newest)}
	}
	return nil
}

// errSuperseded is the cause of everything that a stale attempt is refused.
var errSuperseded = errors.New("superseded")

// current refuses a conversation whose task a newer attempt works on.
func (c *conversation) current() error {
	if c.task == nil {
		return nil
	}
	select {
	case <-c.task.done:
		return &centurion.Error{Kind: centurion.KindConflict, Err: errSuperseded,
			Msg: fmt.Sprintf("attempt %d of task %s writes no more: the task has ended", c.attempt, c.task.name)}
	default:
	}
	return c.m.fences.check(c.task.id, c.attempt)
}

// fenced refuses, and records, what a stale attempt is about to do.
func (c *conversation) fenced(ctx context.Context, what string) error {
	err := c.current()
	if err == nil {
		return nil
	}
	return errors.Join(err, c.m.recordRefusal(ctx, c.task.id, c.id(), c.attempt, what))
}

// recordRefusal tells that a stale attempt was kept from writing.
func (m *mission) recordRefusal(ctx context.Context, task, session string, attempt int, what string) error {
	return m.h.cfg.Store.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		_, err := tx.Append(centurion.Event{Type: centurion.EventTaskFenced, Mission: m.id, Session: session, Task: task,
			Data: event.Data(event.FenceData{Attempt: attempt, Refused: what})})
		return err
	})
}

// moveRun moves the task of a running attempt. A stale attempt moves nothing.
func (m *mission) moveRun(ctx context.Context, r *taskRun, to centurion.TaskStatus, change func(*centurion.Task)) error {
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		if err := m.fences.check(r.id, r.attempt); err != nil {
			return err
		}
		_, err := moveTask(tx, r.id, to, change)
		return err
	})
}
