package plan

import (
	"context"
	"errors"
	"slices"

	"centurion"
	"centurion/orchestrator/state"
	"centurion/workspace/todo"
)

// MarkRunning and the other Mark functions are the host's own changes of an item.
func MarkRunning(d *todo.Doc, id string) error { return d.SetMark(id, todo.Running) }

func MarkOpen(d *todo.Doc, id string) error { return d.SetMark(id, todo.Open) }

func markDone(d *todo.Doc, id string) error { return d.SetMark(id, todo.Done) }

func MarkBlocked(d *todo.Doc, id string) error { return d.SetMark(id, todo.Blocked) }

// OpenAgain reopens a done item and leaves others unchanged.
func OpenAgain(d *todo.Doc, id string) error {
	if d.Status(id) != todo.Done {
		return nil
	}
	return d.SetMark(id, todo.Open)
}

// MarkItem changes the mark of an item. It ignores a missing item, and one whose id appears twice, as while a person copies a line:
// which is meant is unknown, and the status names the lines.
func (m *Plan) MarkItem(ctx context.Context, id string, change func(*todo.Doc, string) error) error {
	if id == "" {
		return nil
	}
	_, err := m.File.Edit(ctx, func(d *todo.Doc) error {
		if _, ok := d.Item(id); !ok || d.Ambiguous(id) {
			return ErrGone
		}
		return change(d, id)
	})
	if errors.Is(err, ErrGone) {
		return nil
	}
	if err == nil {
		err = m.TellTodo(ctx)
	}
	return err
}

var ErrGone = errors.New("the item is gone")

// SettleItem sets the mark of an ended task's item, unless it was marked otherwise meanwhile.
func (m *Plan) SettleItem(ctx context.Context, item string, status centurion.TaskStatus) error {
	if item == "" {
		return nil
	}
	plan, err := m.Read()
	if err != nil || plan.Doc == nil {
		return nil // errors of the plan are reported when the mission is idle
	}
	it, ok := plan.Doc.Item(item)
	if !ok || it.Mark != todo.Running && (status != centurion.TaskCompleted || it.Mark != todo.Open) {
		return nil
	}
	change := MarkOpen
	switch status {
	case centurion.TaskCompleted:
		change = markDone
	case centurion.TaskBlocked:
		change = MarkBlocked
	}
	return m.MarkItem(ctx, item, change)
}

// WouldFree reports whether completing a task's item makes another item startable that no task has.
func (m *Plan) WouldFree(ctx context.Context, t centurion.Task, status centurion.TaskStatus) (bool, error) {
	if t.Item == "" || status != centurion.TaskCompleted {
		return false, nil
	}
	plan, err := m.Read()
	if err != nil || plan.Doc == nil {
		return false, nil // as above
	}
	before := ids(plan.Doc.Runnable())
	if plan.Doc.SetMark(t.Item, todo.Done) != nil {
		return false, nil // the item is gone
	}
	waiting, err := m.itemsAtWork(ctx)
	return slices.ContainsFunc(plan.Doc.Runnable(), func(it todo.Item) bool {
		return !slices.Contains(before, it.ID) && !waiting[it.ID]
	}), err
}

// Reconcile sets the marks that a host which died could not set, according to the store. It returns the marked items.
func (m *Plan) Reconcile(ctx context.Context, tasks []centurion.Task) (marked []string, err error) {
	plan, err := m.Read()
	if err != nil || plan.Doc == nil {
		return nil, nil // as above
	}
	last := map[string]centurion.TaskStatus{}
	for _, t := range tasks {
		was, before := last[t.Item]
		if t.Reviews || t.Lost() || before && t.Race != nil && t.Race.Try > 1 && (!was.Ended() || was == centurion.TaskCompleted) {
			continue // of a race, the try that is merged or lives decides
		}
		last[t.Item] = t.Status
		if state.Rejects(t.Agent, t.Status, t.Result) || state.JudgesNothing(t.Agent, t.Status, t.Result) {
			last[t.Item] = centurion.TaskCancelled
		}
	}
	for _, it := range plan.Items() {
		status, known := last[it.ID]
		if it.Mark != todo.Running || it.Group || known && !status.Ended() {
			continue
		}
		if !known {
			status = centurion.TaskCancelled // no task works on it: open
		}
		if err := m.SettleItem(ctx, it.ID, status); err != nil {
			return marked, err
		}
		marked = append(marked, it.ID)
	}
	return marked, nil
}
