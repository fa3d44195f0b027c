package takeover

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"centurion"
	"centurion/failpoint"
	"centurion/worktree"
)

// The mission records undone merges (TakenBack) until they are redone, or merged by other means.

// tookBack is a kind of undo.
type tookBack int

const (
	tookNothing tookBack = iota
	tookBranch           // the mission's branch was reset to its base
	tookMerge
	tookTask
)

// latestUndo finds the newest undo of a mission or its tasks that was not redone. dropped means that the mission's branch is at its
// base and had work.
func (w *workDone) latestUndo(dropped bool) (what tookBack, task *centurion.Task, at centurion.Time) {
	for i, t := range w.tasks {
		n := len(t.Landed)
		switch {
		case n == 0 || t.Undone.IsZero() || t.Undone.Before(at.Time):
		case t.Landed[n-1].Reverts:
			what, task, at = tookTask, &w.tasks[i], t.Undone
		default:
			what, task, at = tookBranch, nil, t.Undone
		}
	}
	if dropped {
		return tookBranch, nil, at
	}
	if n := len(w.mission.TakenBack); n > 0 && !w.mission.TakenBack[n-1].Time.Before(at.Time) {
		return tookMerge, nil, w.mission.TakenBack[n-1].Time
	}
	return what, task, at
}

// redoMission redoes the latest undo: of a merge, of the mission's branch, or of one task.
func (p *Person) redoMission(ctx context.Context, w workDone, r UndoReport, q UndoRequest) (UndoReport, error) {
	kept, _, err := w.kept(ctx)
	if err != nil {
		return r, err
	}
	tip, err := w.tip(ctx)
	if err != nil && (centurion.KindOf(err) != centurion.KindNotFound || len(w.mission.TakenBack) == 0) {
		return r, err // while it was merged, its branch could be deleted; the merge can be redone anyway
	}
	what, task, at := w.latestUndo(kept != "" && tip == w.mission.Base.Commit)
	r.Undone = at
	switch {
	case what == tookMerge:
		return p.redoMerge(ctx, w, r, q)
	case what == tookTask:
		w.task = task
		r.Task, r.Item, r.Title = task.ID, task.Item, task.Title
		return p.redoTask(ctx, w, r, q)
	case kept == "" || tip == "":
		return r, w.nothingToRedo()
	}
	return p.redoDrop(ctx, w, r, q, tip, kept, what)
}

// nothingToRedo is the error when nothing of a mission can be redone.
func (w *workDone) nothingToRedo() error {
	if w.mission.Merged != nil {
		return conflict("see: centurion show "+w.mission.ID, "mission %s has no reverted change: it was merged %s", w.mission.ID, mergedWords(w.mission.Merged))
	}
	return conflict("put it on your branch with: centurion merge "+w.mission.ID, "mission %s has no reverted change", w.mission.ID)
}

// redoMerge redoes the newest undone merge: unchanged if the person has not committed since, otherwise by merging the same commits
// again.
func (p *Person) redoMerge(ctx context.Context, w workDone, r UndoReport, q UndoRequest) (UndoReport, error) {
	last := len(w.mission.TakenBack) - 1
	back := w.mission.TakenBack[last]
	r.Back = "centurion undo " + w.mission.ID
	head, err := w.repo.Head(ctx)
	if err != nil {
		return r, err
	}
	if head.Branch != back.Merge.Branch {
		r.Person, r.Branch, r.Before = true, head.Branch, head.Commit
		was, here := cmp.Or(back.Merge.Branch, "a detached HEAD"), cmp.Or(head.Branch, "a detached HEAD")
		r.Refused = &Refusal{Why: "it was reverted on " + was + ", and this is " + here,
			Next: "git switch " + cmp.Or(back.Merge.Branch, "--detach "+branchOfMerging(back.After)) + "; then: centurion undo --redo " + w.mission.ID}
		return r, nil
	}
	got, exact, err := w.repo.Redo(ctx, back, *w.mission.Base, q.DryRun)
	if err != nil {
		return r, err
	}
	if !exact {
		return p.redoOnTop(ctx, w, r, q, back)
	}
	if r.retaken(got, w.mission.ID); r.Refused != nil || q.DryRun {
		return r, nil
	}
	failpoint.Hit(failpoint.LandingDone)
	return r, p.recordRedo(context.WithoutCancel(ctx), &w, mergeEvent(centurion.EventMergeDone, w.mission, "", got))
}

// recordRedo records that the last undone merge is back.
func (p *Person) recordRedo(ctx context.Context, w *workDone, e *centurion.Event) error {
	last := len(w.mission.TakenBack) - 1
	merge := w.mission.TakenBack[last].Merge
	return p.recordMerged(ctx, w, func(m *centurion.Mission) {
		m.Merged, m.TakenBack = &merge, slices.Clone(m.TakenBack[:last])
	}, e)
}

// redoOnTop merges undone work onto the person's later commits.
func (p *Person) redoOnTop(ctx context.Context, w workDone, r UndoReport, q UndoRequest, back centurion.TakenBack) (UndoReport, error) {
	chosen, mq := w.chooseAgain(back)
	if len(chosen.commits) == 0 {
		return r, w.nothingToRedo()
	}
	got, err := w.repo.Preview(ctx, chosen.options)
	if err != nil {
		return r, err
	}
	if r.retaken(got, w.mission.ID); r.Refused != nil {
		return r, nil
	}
	if len(got.Files) == 0 {
		return r, conflict("git log shows what it has", "the reverted changes of mission %s are in your branch already", w.mission.ID)
	}
	if q.DryRun {
		return r, nil
	}
	m := MergeReport{Branch: got.Branch, Before: got.Before}
	if err := p.merge(ctx, &w, chosen, mq, &m); err != nil {
		return r, err
	}
	r.Before, r.After, r.Files, r.Refused = m.Before, m.After, m.Files, m.Refused
	return r, nil
}

// chooseAgain selects the work for redoing a merge.
func (w *workDone) chooseAgain(back centurion.TakenBack) (picked, MergeRequest) {
	all, rest := newestMerge(&back.Merge)
	q := MergeRequest{Only: all.Only, Squash: all.Squash}
	p := picked{tip: all.From, options: worktree.MergeOptions{Base: *w.mission.Base, Tip: all.From, Squash: all.Squash, Again: true,
		Message: mergeMessage(w.mission, q)}}
	p.commits = slices.DeleteFunc(slices.Clone(all.Commits), w.mission.Merged.Has)
	if len(all.Only) > 0 || rest != nil || len(p.commits) < len(all.Commits) || w.mission.Merged != nil {
		p.options.Only = p.commits
	}
	return p, q
}

// retaken fills in git's result of a redo on the person's branch.
func (r *UndoReport) retaken(g worktree.Merging, mission string) {
	again := "centurion undo --redo " + mission
	r.Person, r.Branch, r.Before, r.After = true, g.Branch, g.Before, g.After
	if len(g.Files) > 0 {
		r.Files = g.Files
	}
	if r.Refused = refusal(g, again); r.Refused != nil && r.Refused.Next == "" {
		r.Refused.Next = "revert or fix what you committed there, then: " + again
	}
}

// settleRedo detects a branch that is where it was before its newest merge was undone: a host died right after a redo, or the person
// redid it with git.
func (p *Person) settleRedo(ctx context.Context, w *workDone, head worktree.Head) error {
	m := w.mission
	back := m.TakenBack[len(m.TakenBack)-1]
	_, rest := newestMerge(&back.Merge)
	if back.Before == "" || head.Commit != back.Before || head.Branch != back.Merge.Branch || !sameMerge(m.Merged, rest) {
		return nil
	}
	w.back = true
	if w.look {
		w.mission.Merged = &back.Merge
		return nil
	}
	got := worktree.Merging{Before: back.After, After: head.Commit, Branch: head.Branch}
	var err error
	if got.Files, err = w.repo.Stat(ctx, back.After, head.Commit); err != nil {
		return err
	}
	return p.recordRedo(ctx, w, mergeEvent(centurion.EventMergeDone, m, "", got))
}

func sameMerge(a, b *centurion.Merged) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Commit == b.Commit
}

// redone reports a redo that had already happened.
func (p *Person) redone(ctx context.Context, w *workDone, r *UndoReport) (err error) {
	if w.settled && !r.Person { // it was the mission's own branch
		r.Before = w.mission.Base.Commit
		if r.After, err = w.tip(ctx); err == nil {
			r.Files, err = w.repo.Stat(ctx, r.Before, r.After)
		}
		return err
	}
	mm, _ := newestMerge(w.mission.Merged)
	r.Undone = centurion.Now() // nothing was undone later
	r.Person, r.Branch, r.Before, r.After, r.Back = true, mm.Branch, mm.Before, mm.Commit, "centurion undo "+w.mission.ID
	r.Files, err = w.repo.Stat(ctx, mm.Before, mm.Commit)
	return err
}

// forgetMerged forgets undone work that is merged again.
func forgetMerged(m *centurion.Mission) {
	if m.Merged != nil && m.Merged.Commit == "" { // not known yet
		return
	}
	m.TakenBack = slices.DeleteFunc(slices.Clone(m.TakenBack), func(t centurion.TakenBack) bool {
		all, _ := newestMerge(&t.Merge)
		return len(all.Commits) > 0 && !slices.ContainsFunc(all.Commits, func(c string) bool { return !m.Merged.Has(c) })
	})
}

// redoDrop redoes a dropMission, unless the branch has new work. tip is the tip of the mission's branch.
func (p *Person) redoDrop(ctx context.Context, w workDone, r UndoReport, q UndoRequest, tip, kept string, what tookBack) (UndoReport, error) {
	m := w.mission
	was, err := w.repo.Tip(ctx, kept)
	if err != nil {
		return r, err
	}
	on, err := w.repo.IsAncestor(ctx, was, tip)
	if err != nil {
		return r, err
	}
	if on && what == tookNothing { // it was redone
		return r, w.nothingToRedo()
	}
	if tip != m.Base.Commit && tip != was {
		return r, conflict(fmt.Sprintf("the reverted changes are at %s: see `git log %s`", kept, kept), "mission %s has done other work since", m.ID)
	}
	r.Before, r.After, r.Back = tip, was, "centurion undo "+m.ID
	if r.Files, err = w.repo.Stat(ctx, tip, was); err != nil || q.DryRun {
		return r, err
	}
	if tip != was { // otherwise a host died right after that
		if err := w.repo.Advance(ctx, m.Branch, tip, was); err != nil {
			return r, err
		}
	}
	failpoint.Hit(failpoint.UndoMoved)
	mine := w.tasksThat(func(t centurion.Task) bool {
		n := len(t.Landed)
		return n > 0 && !t.Undone.IsZero() && !t.Landed[n-1].Reverts
	})
	return r, p.restore(ctx, w, "this mission's work", mine, func(t *centurion.Task) { t.Undone = centurion.Time{} },
		func(r centurion.Reverted) bool { return r.Task == "" && r.Merge.IsZero() })
}
