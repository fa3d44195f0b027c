package takeover

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"centurion"
	"centurion/failpoint"
	"centurion/text"
	"centurion/worktree"
)

// undoTask adds a commit to the mission's branch that reverts a task, and to the person's if the work is there.
func (p *Person) undoTask(ctx context.Context, w workDone, r UndoReport, q UndoRequest) (UndoReport, error) {
	t := *w.task
	if !t.Undone.IsZero() {
		if done, err := p.finishTask(ctx, &w, &r, q); done || err != nil {
			return r, err
		}
		return r, conflict("restore it with: centurion undo --redo "+t.ID, "the work of %s was reverted already", t.Name())
	}
	done := landed(t)
	if len(done) == 0 {
		return r, conflict("see: centurion show "+t.ID, "task %s has no changes to revert", t.ID)
	}
	r.Back = "centurion undo --redo " + t.ID
	return p.reverse(ctx, w, r, q, done, "Revert: "+t.Title, func(t *centurion.Task, l centurion.Landed) {
		t.Undone, l.Reverts = l.Time, true
		t.Landed = append(t.Landed, l)
	})
}

// redoTask adds a commit that restores the work reverted by undoTask.
func (p *Person) redoTask(ctx context.Context, w workDone, r UndoReport, q UndoRequest) (UndoReport, error) {
	t := *w.task
	n := len(t.Landed)
	if t.Undone.IsZero() || n == 0 || !t.Landed[n-1].Reverts {
		if done, err := p.finishTask(ctx, &w, &r, q); done || err != nil {
			return r, err
		}
		if !t.Undone.IsZero() {
			return r, conflict("restore all of it with: centurion undo --redo "+w.mission.ID, "the work of %s was reverted with its mission", t.Name())
		}
		return r, conflict("see: centurion show "+t.ID, "the work of %s was not reverted", t.Name())
	}
	r.Back = "centurion undo " + t.ID
	return p.reverse(ctx, w, r, q, t.Landed[n-1:], "Bring back: "+t.Title, func(t *centurion.Task, l centurion.Landed) {
		t.Undone, l.Restores = centurion.Time{}, true
		t.Landed = append(t.Landed, l)
	})
}

// reverse adds a commit that reverts some commits. If that is impossible it reports why, and Back is empty.
func (p *Person) reverse(ctx context.Context, w workDone, r UndoReport, q UndoRequest, commits []centurion.Landed, title string, change func(*centurion.Task, centurion.Landed)) (UndoReport, error) {
	c, err := w.reverting(ctx, commits)
	if err == nil && c.stands == nil {
		r.Before = c.tip
		return p.putOn(ctx, w, r, q, c, title, change)
	}
	r.Back, r.Before, r.Refused = "", c.tip, c.stands
	return r, err
}

// counter is a tree that reverts commits of a tip.
type counter struct {
	tip, tree string
	back      []string // the reverted commits
	stands    *Refusal // why they cannot be reverted
}

// reverting reverts commits of the mission's branch, newest first.
func (w *workDone) reverting(ctx context.Context, done []centurion.Landed) (counter, error) {
	tip, err := w.tip(ctx)
	if err != nil {
		return counter{}, err
	}
	c := counter{tip: tip, tree: tip}
	for _, l := range slices.Backward(done) {
		c.back = append(c.back, l.Commit)
		tree, _, ok, err := w.repo.Revert(ctx, c.tree, l.Before, l.Commit, nil)
		if err != nil {
			return c, err
		}
		if !ok {
			c.stands = w.standsOn(l)
			return c, nil
		}
		c.tree = tree
	}
	return c, nil
}

// standsOn names the tasks that later changed the same files.
func (w *workDone) standsOn(l centurion.Landed) *Refusal {
	files := map[string]bool{}
	for _, f := range l.Files {
		files[f.Path] = true
	}
	var names, shared []string
	first := ""
	for _, t := range w.tasks {
		if t.ID == w.task.ID || !t.Undone.IsZero() {
			continue
		}
		mine := false
		for _, o := range landed(t) {
			for _, f := range o.Files {
				if files[cmp.Or(f.Old, f.Path)] && o.Time.Compare(l.Time.Time) >= 0 {
					mine, shared = true, text.Union(shared, f.Path)
				}
			}
		}
		if mine {
			names = append(names, t.Name())
			first = t.ID
		}
	}
	r := &Refusal{Why: "later work was done on top of it, and the two do not come apart", Next: "take the whole mission back: centurion undo " + w.mission.ID}
	if len(names) > 0 {
		r.Why = fmt.Sprintf("%s built on it in %s, and the two do not come apart", someNames(names), someNames(shared))
		r.Next = fmt.Sprintf("revert the newest first: centurion undo %s", first)
	}
	for _, p := range shared {
		r.Conflicts = append(r.Conflicts, Conflict{Path: p, Kind: "content"})
	}
	return r
}

// putOn commits a counter to the mission's branch, and to the person's if the reverted work was merged. change records it in the task.
func (p *Person) putOn(ctx context.Context, w workDone, r UndoReport, q UndoRequest, c counter, subject string, change func(*centurion.Task, centurion.Landed)) (UndoReport, error) {
	files, err := w.repo.Stat(ctx, c.tip, c.tree)
	if err != nil {
		return r, err
	}
	r.Files = files
	t, m := *w.task, w.mission
	message := fmt.Sprintf("%s\n\nMission: %s\nTask: %s\n", centurion.Clip(subject, 72), m.ID, t.ID)
	commit, moved, err := w.counterCommit(ctx, &c, message)
	if err != nil {
		return r, err
	}
	if moved {
		if files, err = w.repo.Stat(ctx, c.tip, commit); err != nil {
			return r, err
		}
		r.Before, r.Files = c.tip, files
	}
	merged := slices.ContainsFunc(c.back, m.Merged.Has)
	o := worktree.MergeOptions{Base: *m.Base, Tip: commit, Only: []string{commit}, Message: subject, Keep: true}
	if merged {
		got, err := w.repo.Preview(ctx, o)
		if err != nil {
			return r, err
		}
		if r.taken(got, strings.Replace("centurion undo "+t.ID, "undo", undoWord(q), 1)); r.Refused != nil {
			return r, nil
		}
	}
	if q.DryRun {
		return r, nil
	}
	if !moved {
		if err := w.repo.Advance(ctx, m.Branch, c.tip, commit); err != nil {
			return r, err
		}
	}
	failpoint.Hit(failpoint.UndoMoved)
	r.After = commit
	ctx = context.WithoutCancel(ctx)
	l := centurion.Landed{Commit: commit, Before: c.tip, Files: files, Time: centurion.Now()}
	record := func(t *centurion.Task) { change(t, l) }
	if q.Redo {
		err = p.restoreTask(ctx, w, record)
	} else {
		r.Open, err = p.revertTask(ctx, w, record)
	}
	if err == nil && merged {
		err = p.follow(ctx, &w, &r, q, o, commit)
	}
	return r, err
}

// revertTask records that the work of a task was reverted, and restoreTask that it was restored.
func (p *Person) revertTask(ctx context.Context, w workDone, change func(*centurion.Task)) ([]string, error) {
	t := *w.task
	return p.revert(ctx, w, centurion.Reverted{What: cmp.Or(t.Item, strconv.Quote(t.Title)), Task: t.ID}, itemsOf(t), []centurion.Task{t}, change)
}

func (p *Person) restoreTask(ctx context.Context, w workDone, change func(*centurion.Task)) error {
	t := *w.task
	return p.restore(ctx, w, cmp.Or(t.Item, strconv.Quote(t.Title)), []centurion.Task{t}, change, func(r centurion.Reverted) bool { return r.Task == t.ID })
}

func undoWord(q UndoRequest) string { return text.If(q.Redo, "undo --redo", "undo") }

// follow adds one more commit of the mission's branch, an undo or redo of a task, to the person's. The recorded merged items do not
// change: the tasks themselves say whether they were undone.
func (p *Person) follow(ctx context.Context, w *workDone, r *UndoReport, q UndoRequest, o worktree.MergeOptions, commit string) error {
	got, err := w.repo.Merge(ctx, o)
	if err != nil {
		return err
	}
	if r.taken(got, "centurion merge "+w.mission.ID); r.Refused != nil { // the person has written meanwhile
		return nil
	}
	failpoint.Hit(failpoint.LandingDone)
	before, err := w.beforeFollowing(ctx, got)
	if err != nil {
		return err
	}
	record := centurion.Merged{Branch: got.Branch, Before: before, Commit: got.After, From: commit,
		Time: centurion.Now(), Commits: []string{commit}, Earlier: w.mission.Merged, Follows: true}
	if record.Earlier != nil {
		record.Only = record.Earlier.Only
	}
	told := centurion.EventMergeUndone
	if q.Redo {
		told = centurion.EventMergeDone
	}
	return p.recordMerged(ctx, w, func(m *centurion.Mission) { m.Merged = &record }, mergeEvent(told, w.mission, w.task.ID, got))
}
