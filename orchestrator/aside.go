package orchestrator

import (
	"context"
	"slices"

	"centurion"
	"centurion/store"
)

// keptFor lists those of the directories that no task of the mission, nor its own agent, names any more: a resumed task
// names those of its session, too.
func (r *taskRows) keptFor(aside []centurion.Aside) (dirs []string) {
	for _, a := range aside {
		same := func(o centurion.Aside) bool { return o.Dir == a.Dir }
		if !slices.ContainsFunc(r.mission.Aside, same) && !slices.ContainsFunc(r.tasks, func(t centurion.Task) bool { return slices.ContainsFunc(t.Aside, same) }) {
			dirs = append(dirs, a.Dir)
		}
	}
	return dirs
}

// removeOwnAside removes what the own agents of missions that have ended left and git ignores. The missions' records stay, and
// name it no more.
func (h *Host) removeOwnAside(ctx context.Context, missions []string) (dirs []string, err error) {
	for _, id := range missions {
		var alone []string
		err := h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
			alone = nil
			rows := txRows{tx: tx}
			r, err := rows.of(id)
			if err != nil || !r.mission.Status.Ended() {
				return err
			}
			had := r.mission.Aside
			r.mission.Aside = nil
			alone = r.keptFor(had)
			return tx.PutMission(&r.mission)
		})
		if err != nil {
			return dirs, err
		}
		gone, err := h.project.DropAside(ctx, alone)
		if dirs = append(dirs, gone...); err != nil {
			return dirs, err
		}
	}
	return dirs, nil
}
