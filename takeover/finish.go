package takeover

import (
	"context"
	"slices"
	"strings"

	"centurion"
	"centurion/workspace/todo"
	"centurion/worktree"
)

// What a host that died in the middle of an undo has left is completed when the same is asked for again.

// counterCommit commits a counter. moved says that the mission's branch has that commit already, and nobody has recorded it:
// c.tip is then what it stands on.
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

// finishTask completes what the undo of a task, or its redo, has recorded but not carried to the person's branch and the
// plan. done says that there was something to complete.
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
		o := worktree.MergeOptions{Base: *w.mission.Base, Tip: last.Commit, Only: []string{last.Commit}, Message: undoWord(q) + " " + taskName(t)}
		if err := p.follow(ctx, w, r, q, o, last.Commit); err != nil || r.Refused != nil {
			return true, err
		}
		done = true
	}
	r.Before, r.After, r.Files = last.Before, last.Commit, last.Files
	r.Back = "centurion undo --redo " + t.ID
	if q.Redo {
		r.Back = "centurion undo " + t.ID
		closed, err := p.remark(ctx, *w, w.latest([]centurion.Task{t}), todo.Open, todo.Done)
		return done || len(closed) > 0, err
	}
	r.Open, err = p.openItems(ctx, *w, w.latest([]centurion.Task{t}))
	return done || len(r.Open) > 0, err
}

// finishDrop completes what the undo of a mission has done to its branch, but not recorded in its tasks and in the plan. kept
// is where its work is now.
func (p *Person) finishDrop(ctx context.Context, w workDone, r *UndoReport, kept string, q UndoRequest) (done bool, err error) {
	if q.DryRun {
		return false, nil
	}
	var landed, mine []centurion.Task
	now := centurion.Now()
	for _, t := range w.tasks {
		if len(t.Landed) == 0 {
			continue
		}
		landed = append(landed, t)
		if t.Undone.IsZero() {
			mine = append(mine, t)
		}
	}
	ctx = context.WithoutCancel(ctx)
	if err := p.host.ChangeTasks(ctx, mine, func(t *centurion.Task) { t.Undone = now }); err != nil {
		return false, err
	}
	if r.Open, err = p.openItems(ctx, w, w.latest(landed)); err != nil {
		return false, err
	}
	was, err := w.repo.Tip(ctx, kept)
	if err != nil {
		return false, err
	}
	r.Dropped, r.Kept, r.Before, r.After, r.Back = true, kept, was, w.mission.Base.Commit, "centurion undo --redo "+w.mission.ID
	r.Files, err = w.repo.Stat(ctx, was, w.mission.Base.Commit)
	return len(mine)+len(r.Open) > 0, err
}

// latest leaves out tasks whose item another one has done since.
func (w *workDone) latest(tasks []centurion.Task) []centurion.Task {
	var out []centurion.Task
	for _, t := range tasks {
		newer := func(o centurion.Task) bool {
			return o.ID != t.ID && o.Item != "" && o.Item == t.Item && o.Undone.IsZero() && o.Status == centurion.TaskCompleted
		}
		if !slices.ContainsFunc(w.tasks, newer) {
			out = append(out, t)
		}
	}
	return out
}

// beforeFollowing is where the person's branch stood before one more commit was put on it: if a host that died has put it there
// already, at the merge before it.
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
