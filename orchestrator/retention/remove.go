package retention

import (
	"context"
	"slices"
	"time"

	"centurion"
	"centurion/store"
)

// collectGarbage removes the oldest archived tasks beyond KeepTasks and reports whether too many remain. After a failure it does not
// retry at once, unless more was archived.
func (k *Keeper) collectGarbage(ctx context.Context, more bool) (over bool, err error) {
	keep := k.KeepTasks
	n, err := k.Store.TaskCount(ctx)
	if err != nil || n <= keep {
		return false, err
	}
	if !more && !k.stuck.IsZero() && time.Since(k.stuck) < cleanRetry {
		return true, nil
	}
	missions, err := k.Store.Missions(ctx)
	if err != nil {
		return true, err
	}
	var old []centurion.Task
	for _, m := range missions {
		tasks, err := k.Store.Tasks(ctx, m.ID)
		if err != nil {
			return true, err
		}
		for _, t := range tasks {
			if !t.Archived.IsZero() {
				old = append(old, t)
			}
		}
	}
	removed, _, err := k.Remove(ctx, old, n-keep)
	k.stuck = time.Time{}
	if over = removed < n-keep; over {
		k.stuck = time.Now()
	}
	return over, err
}

// oldestFirst sorts tasks by their end; a task's own delegations thus come before it.
func oldestFirst(tasks []centurion.Task) {
	slices.SortStableFunc(tasks, func(a, b centurion.Task) int { return a.Ended.Compare(b.Ended.Time) })
}

// Remove removes up to n removable tasks, oldest first, with their git-ignored files. It returns the number of removed tasks and the
// directories of those files.
func (k *Keeper) Remove(ctx context.Context, tasks []centurion.Task, n int) (removed int, dirs []string, err error) {
	oldestFirst(tasks)
	for part := range slices.Chunk(tasks, cleanBatch) {
		now := 0
		var alone []string
		if err := k.Store.Update(ctx, func(tx *store.Tx) error {
			now, alone = 0, nil
			rows := txRows{tx: tx}
			for _, t := range part {
				r, err := rows.of(t.Mission)
				if err != nil {
					return err
				}
				if removed+now >= n || !r.removable(t.ID) {
					continue
				}
				if err := tx.RemoveTask(t.ID, r.remove(t.ID)); err != nil {
					return err
				}
				alone = append(alone, r.keptFor(t.Aside)...)
				now++
			}
			return nil
		}); err != nil {
			return removed, dirs, err
		}
		removed += now
		// After the records: a crash in between leaves unreferenced files, never a record of missing files.
		gone, err := k.Project.DropAside(ctx, alone)
		if dirs = append(dirs, gone...); err != nil {
			return removed, dirs, err
		}
	}
	return removed, dirs, nil
}

// removeOwnAside removes the git-ignored files of the own agents of ended missions. The missions' records stay, without them.
func (k *Keeper) removeOwnAside(ctx context.Context, missions []string) (dirs []string, err error) {
	for _, id := range missions {
		var alone []string
		err := k.Store.Update(ctx, func(tx *store.Tx) error {
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
		gone, err := k.Project.DropAside(ctx, alone)
		if dirs = append(dirs, gone...); err != nil {
			return dirs, err
		}
	}
	return dirs, nil
}

// taskRows are the tasks of a mission, and the data that decides whether they may be removed.
type taskRows struct {
	mission    centurion.Mission
	tasks      []centurion.Task
	deliveries []store.Delivery
}

// txRows caches the rows of each mission for one transaction.
type txRows struct {
	tx  *store.Tx
	all map[string]*taskRows
}

func (t *txRows) of(mission string) (*taskRows, error) {
	if r := t.all[mission]; r != nil {
		return r, nil
	}
	r := &taskRows{}
	var err error
	if r.mission, err = t.tx.Mission(mission); err != nil {
		return nil, err
	}
	if r.tasks, err = t.tx.Tasks(mission); err != nil {
		return nil, err
	}
	if r.deliveries, err = t.tx.Deliveries(mission); err != nil {
		return nil, err
	}
	if t.all == nil {
		t.all = map[string]*taskRows{}
	}
	t.all[mission] = r
	return r, nil
}

// removable reports whether a task is no longer needed: it has ended and is archived, its result was delivered or its mission has
// ended, and none of its delegations are left.
func (r *taskRows) removable(id string) bool {
	i := slices.IndexFunc(r.tasks, func(t centurion.Task) bool { return t.ID == id })
	if i < 0 {
		return false
	}
	t := r.tasks[i]
	if !t.Status.Ended() || t.Archived.IsZero() ||
		t.Session != "" && slices.ContainsFunc(r.tasks, func(o centurion.Task) bool { return o.Parent == t.Session }) {
		return false
	}
	if r.mission.Status.Ended() {
		return true
	}
	delivered := false
	for _, d := range r.deliveries {
		if d.Task == id {
			if d.Taken.IsZero() {
				return false
			}
			delivered = true
		}
	}
	return delivered
}

// remove deletes a task and reports whether its session goes too, because no other task uses it.
func (r *taskRows) remove(id string) (session bool) {
	i := slices.IndexFunc(r.tasks, func(t centurion.Task) bool { return t.ID == id })
	t := r.tasks[i]
	r.tasks = slices.Delete(r.tasks, i, i+1)
	return t.Session != "" && !slices.ContainsFunc(r.tasks, func(o centurion.Task) bool { return o.Session == t.Session })
}

// later reports whether another task uses the session of an ended one, and is still alive or ended later.
func (r *taskRows) later(t centurion.Task) bool {
	return slices.ContainsFunc(r.tasks, func(o centurion.Task) bool {
		return o.ID != t.ID && o.Session == t.Session && (!o.Status.Ended() || o.Ended.After(t.Ended.Time))
	})
}

// keptFor lists the directories that neither a task of the mission nor its own agent refers to any more. A resumed task also refers to
// those of its session.
func (r *taskRows) keptFor(aside []centurion.Aside) (dirs []string) {
	for _, a := range aside {
		same := func(o centurion.Aside) bool { return o.Dir == a.Dir }
		if !slices.ContainsFunc(r.mission.Aside, same) && !slices.ContainsFunc(r.tasks, func(t centurion.Task) bool { return slices.ContainsFunc(t.Aside, same) }) {
			dirs = append(dirs, a.Dir)
		}
	}
	return dirs
}
