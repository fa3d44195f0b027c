package orchestrator

import (
	"context"
	"slices"

	"centurion"
	"centurion/orchestrator/state"
	"centurion/store"
)

// ChangeTasks applies change to what is recorded of tasks, all in one transaction. Each keeps the state that it has in tasks.
// The record that change gets is its own, with a Landed that it may write to. The error has centurion.KindConflict for a task that meanwhile cannot be in that state any more; then none was changed.
// also, if not nil, records more in the same transaction.
func (h *Host) ChangeTasks(ctx context.Context, tasks []centurion.Task, change func(*centurion.Task), also func(*store.Tx) error) error {
	return h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		for _, t := range tasks {
			_, err := state.MoveTask(tx, t.ID, t.Status, func(t *centurion.Task) {
				t.Landed = slices.Clone(t.Landed)
				change(t)
			})
			if err != nil {
				return err
			}
		}
		if also == nil {
			return nil
		}
		return also(tx)
	})
}
