package orchestrator

import (
	"context"

	"centurion"
	"centurion/store"
)

// claimTodo makes room for a new mission's plan and returns its path: the plan of a mission that has ended is archived,
// that of one that runs or can be resumed is kept under the mission's own name, and one that no mission owns is adopted.
// It is called with h.starting held.
func (h *Host) claimTodo(ctx context.Context) (string, error) {
	todo := h.cfg.Workspace.Todo()
	owner, err := h.todoOwner(ctx, todo.Path())
	if err != nil || owner.ID == "" {
		return todo.Path(), err
	}
	if m := h.running(owner.ID); m != nil {
		err := m.todo.move(h.cfg.Workspace, "todo-"+owner.ID+".md", func(path string) error { return h.setTodo(ctx, owner.ID, path) })
		return todo.Path(), err
	}
	put := todo.Rename
	switch owner.Status {
	case centurion.MissionCompleted, centurion.MissionFailed, centurion.MissionCancelled:
		put = todo.Archive
	}
	kept, err := put("todo-" + owner.ID + ".md")
	switch centurion.KindOf(err) {
	case "", centurion.KindNotFound: // it may never have been written
	case centurion.KindConflict: // it was put there before this process was killed: what is here now is somebody else's
	default:
		return "", err
	}
	return todo.Path(), h.setTodo(ctx, owner.ID, kept)
}

// todoOwner returns the newest mission whose plan is the file at path, or the zero mission if there is none.
func (h *Host) todoOwner(ctx context.Context, path string) (centurion.Mission, error) {
	all, err := h.cfg.Store.Missions(ctx)
	if err != nil {
		return centurion.Mission{}, err
	}
	for _, m := range all {
		if m.Todo == path && (m.HadItems || m.Status.Alive()) {
			return m, nil
		}
		if m.Todo == path {
			break
		}
	}
	return centurion.Mission{}, nil
}

// setTodo records that a mission's plan is another file from now on.
func (h *Host) setTodo(ctx context.Context, mission, path string) error {
	return h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		m, err := tx.Mission(mission)
		if err != nil {
			return err
		}
		m.Todo = path
		return tx.PutMission(&m)
	})
}
