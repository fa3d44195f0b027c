package takeover

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"centurion"
	"centurion/worktree"
)

// If a host died in the middle of an undo, requesting the same undo again completes it.

// counterCommit commits a counter. moved is true if the mission's branch already has that commit, although it was not recorded; c.tip
// is then its parent.
func (w *workDone) counterCommit(ctx context.Context, c *counter, message string) (commit string, moved bool, err error) {
	log, err := w.repo.Log(ctx, w.mission.Base.Commit, c.tip)
	if err != nil {
		return "", false, err
	}
	recorded := func(t centurion.Task) bool {
		return slices.ContainsFunc(t.Landed, func(l centurion.Landed) bool { return l.Commit == c.tip })
	}
	if n := len(log); n > 0 && log[n-1].ID == c.tip && !slices.ContainsFunc(w.tasks, recorded) {
		same, err := w.sameTree(ctx, c.tip, c.tree)
		if err != nil {
			return "", false, err
		}
		said, err := w.repo.Message(ctx, c.tip)
		if err != nil {
			return "", false, err
		}
		if same && strings.HasPrefix(said, strings.TrimSpace(message)) { // a trailer may follow
			commit, c.tip = c.tip, w.mission.Base.Commit
			if n > 1 {
				c.tip = log[n-2].ID
			}
			return commit, true, nil
		}
	}
	commit, err = w.repo.CommitTree(ctx, c.tree, c.tip, message)
	return commit, false, err
}

func (w *workDone) sameTree(ctx context.Context, a, b string) (bool, error) {
	one, err := w.repo.TreeOf(ctx, a)
	if err != nil {
		return false, err
	}
	other, err := w.repo.TreeOf(ctx, b)
	return one == other, err
}

// finishTask completes an undo or redo of a task that was recorded but has not reached the person's branch and the plan. done is true
// if there was anything to complete.
func (p *Person) finishTask(ctx context.Context, w *workDone, r *UndoReport, q UndoRequest) (done bool, err error) {
	t := *w.task
	n := len(t.Landed)
	if n < 2 || t.Landed[n-1].Reverts == t.Landed[n-2].Reverts || t.Landed[n-1].Reverts == q.Redo || q.DryRun {
		return false, nil
	}
	last := t.Landed[n-1]
	merged := slices.ContainsFunc(t.Landed[:n-1], func(l centurion.Landed) bool { return w.mission.Merged.Has(l.Commit) })
	ctx = context.WithoutCancel(ctx)
	if merged && !w.mission.Merged.Has(last.Commit) {
		o := worktree.MergeOptions{Base: *w.mission.Base, Tip: last.Commit, Only: []string{last.Commit}, Message: undoWord(q) + " " + t.Name()}
		if err := p.follow(ctx, w, r, q, o, last.Commit); err != nil || r.Refused != nil {
			return true, err
		}
		done = true
	}
	r.Before, r.After, r.Files, r.Back = last.Before, last.Commit, last.Files, q.back(t.ID)
	return done || w.settled, nil
}

// finishPlan applies to the plan an undo or redo that a host recorded before it died. done is true if it is the requested one, so that
// nothing else can be missing.
func (p *Person) finishPlan(ctx context.Context, w *workDone, r *UndoReport, q UndoRequest) (done bool, err error) {
	if q.DryRun {
		return false, nil
	}
	var last *centurion.Reverted
	for _, e := range w.mission.Reverted {
		if e.Back || !e.Marked {
			last = &e
		}
	}
	if last == nil {
		return false, nil
	}
	ctx = context.WithoutCancel(ctx)
	opened, _, err := p.reverts.Settle(ctx, w.mission.ID)
	if err == nil {
		err = w.again(ctx, p)
	}
	if err != nil || last.Back != q.Redo {
		return false, err
	}
	if last.Task != "" && w.task == nil && q.Redo {
		if i := slices.IndexFunc(w.tasks, func(t centurion.Task) bool { return t.ID == last.Task }); i >= 0 {
			w.task = &w.tasks[i]
			r.Task, r.Item, r.Title = w.task.ID, w.task.Item, w.task.Title
		}
	}
	if idOf(w.task) != last.Task {
		return false, nil
	}
	r.Open, w.settled, r.Person = opened, true, w.shared() || !last.Merge.IsZero()
	r.Back = q.back(cmp.Or(r.Task, r.Mission))
	if q.Redo {
		r.Undone = centurion.Now() // nothing was reverted later
	}
	return w.task == nil || w.shared(), nil
}

func idOf(t *centurion.Task) string {
	if t == nil {
		return ""
	}
	return t.ID
}

// finishedUndo reports the undo of a mission that was only missing in the plan.
func (p *Person) finishedUndo(ctx context.Context, w workDone, r UndoReport) (_ UndoReport, err error) {
	if n := len(w.mission.TakenBack); r.Person && n > 0 {
		back := w.mission.TakenBack[n-1]
		r.Branch, r.Before, r.After = back.Merge.Branch, cmp.Or(back.Before, back.Merge.Commit), back.After
	} else {
		if r.Kept, _, err = w.kept(ctx); err != nil {
			return r, err
		}
		r.Dropped, r.After = true, w.mission.Base.Commit
		if r.Before, err = w.repo.Tip(ctx, r.Kept); err != nil {
			return r, err
		}
	}
	r.Files, err = w.repo.Stat(ctx, r.Before, r.After)
	return r, err
}

// finishDrop completes the undo of a mission that has reset its branch but is not recorded in its tasks and the plan. kept is the
// current ref of its work.
func (p *Person) finishDrop(ctx context.Context, w workDone, r *UndoReport, kept string, q UndoRequest) (done bool, err error) {
	if q.DryRun {
		return false, nil
	}
	mine := w.standing()
	landed := len(w.tasksThat(func(t centurion.Task) bool { return len(t.Landed) > 0 })) > 0
	if len(mine) == 0 && (landed || len(w.mission.Reverted) > 0 || w.mission.Status != centurion.MissionCompleted) {
		return false, nil
	}
	ctx = context.WithoutCancel(ctx)
	if r.Open, err = p.dropped(ctx, w, mine); err != nil {
		return false, err
	}
	was, err := w.repo.Tip(ctx, kept)
	if err != nil {
		return false, err
	}
	r.Dropped, r.Kept, r.Before, r.After, r.Back = true, kept, was, w.mission.Base.Commit, "centurion undo --redo "+w.mission.ID
	r.Files, err = w.repo.Stat(ctx, was, w.mission.Base.Commit)
	return true, err
}

// latest leaves out tasks whose item was done again since.
func (w *workDone) latest(tasks []centurion.Task) []centurion.Task {
	return slices.DeleteFunc(slices.Clone(tasks), func(t centurion.Task) bool {
		return slices.ContainsFunc(w.tasks, func(o centurion.Task) bool {
			return o.ID != t.ID && o.Item != "" && o.Item == t.Item && o.Undone.IsZero() && o.Status == centurion.TaskCompleted
		})
	})
}

// beforeFollowing is the commit of the person's branch before one more commit was added. If a host that died had added it already, that
// is the merge before it.
func (w *workDone) beforeFollowing(ctx context.Context, got worktree.Merging) (string, error) {
	mm := w.mission.Merged
	if mm == nil || got.Before != got.After || mm.Commit == got.After {
		return got.Before, nil
	}
	on, err := w.repo.IsAncestor(ctx, mm.Commit, got.After)
	if err != nil || !on {
		return got.Before, err
	}
	log, err := w.repo.Log(ctx, mm.Commit, got.After)
	if err == nil && len(log) == 1 {
		return mm.Commit, nil
	}
	return got.Before, err
}
