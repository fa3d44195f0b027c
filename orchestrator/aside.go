package orchestrator

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/tools"
)

// withIgnored tells a session at once that what its tool has written is ignored by git: it would think that it is merged.
func withIgnored(ctx context.Context, c *conversation, res tools.Result) (tools.Result, error) {
	if len(res.Files) == 0 {
		return res, nil
	}
	ignored, err := c.where.ignored(ctx, res.Files)
	if err != nil || len(ignored) == 0 {
		return res, err
	}
	res.Output = strings.TrimRight(res.Output, "\n") + "\n\n(git ignores " + strings.Join(ignored, ", ") +
		": it stays in your checkout and is not merged. If the person is to have it, write it where git does not ignore it.)"
	return res, nil
}

// ignored returns those of the files that git ignores and that were not asked for before.
func (w *workplace) ignored(ctx context.Context, files []string) ([]string, error) {
	if err := w.lock(ctx); err != nil {
		return nil, err
	}
	defer w.unlock()
	if w.checkout == nil {
		return nil, nil
	}
	files = slices.DeleteFunc(slices.Clone(files), func(f string) bool { return w.asked[f] })
	if len(files) == 0 {
		return nil, nil
	}
	ignored, err := w.checkout.Ignored(ctx, files)
	if err != nil {
		return nil, err
	}
	if w.asked == nil {
		w.asked = map[string]bool{}
	}
	for _, f := range files {
		w.asked[f] = true
	}
	return ignored, nil
}

// leftAs records that the session has left the checkout that had this branch, with what its tools have written there and git
// ignores, and tells the person of that.
func (w *workplace) leftAs(ctx context.Context, branch string) error {
	aside, err := w.m.ground.repo.Aside(branch)
	if err != nil {
		return err
	}
	w.asked = nil
	return w.m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error { return putLeft(tx, w.m.st.ID, w.task, aside) })
}

// putLeft is leftAs in a transaction; task is "" for the mission's own agent.
func putLeft(tx *store.Tx, mission, task string, aside []centurion.Aside) error {
	rec, err := tx.Mission(mission)
	if err != nil {
		return err
	}
	who, had := rec.Options.Agent, &rec.Aside
	var t centurion.Task
	if task != "" {
		if t, err = tx.Task(task); err != nil {
			return err
		}
		who, had, t.Checkout = cmp.Or(t.Item, t.Agent), &t.Aside, nil
	} else {
		rec.Checkout = nil
	}
	for _, a := range aside {
		if slices.ContainsFunc(*had, func(old centurion.Aside) bool { return old.Dir == a.Dir }) {
			continue
		}
		*had = append(*had, a)
		if !rec.Status.Alive() { // nothing comes after its end, whose records have it
			continue
		}
		d := state.Living(rec)
		d.Note = strings.TrimPrefix(who+": ", ": ") + a.String()
		if _, err := tx.Append(centurion.Event{Type: centurion.EventMissionUpdated, Mission: mission, Session: rec.Session, Task: task, Data: event.Data(d)}); err != nil {
			return err
		}
	}
	if task != "" {
		return tx.PutTask(&t)
	}
	return tx.PutMission(&rec)
}

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
		gone, err := h.dropAside(ctx, alone)
		if dirs = append(dirs, gone...); err != nil {
			return dirs, err
		}
	}
	return dirs, nil
}

// dropAside removes directories that hold what git ignores, and returns those that it has removed.
func (h *Host) dropAside(ctx context.Context, dirs []string) ([]string, error) {
	if len(dirs) == 0 {
		return nil, nil
	}
	repo, err := h.Repository(ctx)
	if centurion.KindOf(err) == centurion.KindNotFound {
		return nil, nil // the project is in no repository any more
	}
	if err != nil {
		return nil, err
	}
	return repo.DropAside(dirs...)
}

// withoutAside lists the files of a task that are its work: what git ignores came nowhere. Without isolation nothing is aside.
func (m *mission) withoutAside(t centurion.Task) []string {
	var aside []string
	for _, a := range t.Aside {
		aside = append(aside, m.inProject(a.Files)...)
	}
	return slices.DeleteFunc(slices.Clone(t.Files), func(f string) bool { return slices.Contains(aside, f) })
}
