package takeover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"centurion"
	"centurion/failpoint"
	"centurion/orchestrator/revert"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/text"
	"centurion/worktree"
)

// UndoRequest describes an undo of the work of a mission or a task.
type UndoRequest struct {
	DryRun bool `json:"dry_run,omitempty"` // only report
	Drop   bool `json:"drop,omitempty"`    // include work that is only on the mission's own branch
	Force  bool `json:"force,omitempty"`   // shared isolation: include files that were changed since
	Redo   bool `json:"redo,omitempty"`    // redo an undo
}

// back is the command that undoes the request for a mission or a task.
func (q UndoRequest) back(id string) string {
	return "centurion undo " + text.When(!q.Redo, "--redo ") + id
}

// UndoReport is the result of an undo, or of its dry run.
type UndoReport struct {
	Mission string                 `json:"mission"`
	Task    string                 `json:"task,omitempty"`
	Item    string                 `json:"item,omitempty"`
	Title   string                 `json:"title"`
	Redo    bool                   `json:"redo,omitempty"`
	DryRun  bool                   `json:"dry_run,omitempty"`
	Person  bool                   `json:"person"`           // the person's branch and files were changed
	Branch  string                 `json:"branch,omitempty"` // the person's; empty for a detached HEAD
	Before  string                 `json:"before,omitempty"`
	After   string                 `json:"after,omitempty"`
	Dropped bool                   `json:"dropped,omitempty"` // the mission's branch was reset to its base
	Kept    string                 `json:"kept,omitempty"`    // the ref that keeps the dropped work
	Files   []centurion.FileChange `json:"files"`
	Open    []string               `json:"open,omitempty"`  // reopened items of the plan
	Later   []string               `json:"later,omitempty"` // items of the plan that depend on the task's, and keep their work
	Back    string                 `json:"back,omitempty"`  // the command that reverses this
	Undone  centurion.Time         `json:"undone,omitzero"` // of a redo: when the work was undone
	Refused *Refusal               `json:"refused,omitempty"`
}

// Undo reverts a mission's merge into the person's branch, or the work of a mission or a task on the mission's branch; with Redo it
// restores undone work. Nothing is lost: undone work stays under a ref. The error has centurion.KindConflict while the mission is
// running and if there is nothing to undo.
func (p *Person) Undo(ctx context.Context, id string, q UndoRequest) (UndoReport, error) {
	p.changing.Lock()
	defer p.changing.Unlock()
	w, err := p.workOf(ctx, id)
	if err != nil {
		return UndoReport{}, err
	}
	r := UndoReport{Mission: w.mission.ID, Title: w.mission.Goal, Redo: q.Redo, DryRun: q.DryRun, Files: []centurion.FileChange{}}
	if t := w.task; t != nil {
		r.Task, r.Item, r.Title = t.ID, t.Item, t.Title
	}
	err = p.host.AtRest(w.mission.ID, func() (err error) {
		r, err = p.undo(ctx, w, r, q)
		return err
	})
	return r, err
}

// undo determines the kind of undo and performs it.
func (p *Person) undo(ctx context.Context, w workDone, r UndoReport, q UndoRequest) (UndoReport, error) {
	if err := w.begun(); err != nil {
		return r, err
	}
	if !q.Redo {
		r.Later = w.later(p.planOf(w))
	}
	done, err := p.finishPlan(ctx, &w, &r, q)
	if err != nil {
		return r, err
	}
	if w.shared() {
		if done {
			return r, nil
		}
		for _, t := range w.mine() {
			if q.Redo && t.Undone.After(r.Undone.Time) {
				r.Undone = t.Undone
			}
		}
		return p.sharedUndo(ctx, w, r, q)
	}
	if err := w.open(ctx, p); err != nil {
		return r, err
	}
	w.look = q.DryRun && q.Redo
	finished, err := p.settleMerge(ctx, &w)
	if err != nil {
		return r, err
	}
	switch {
	case done && !q.Redo:
		return p.finishedUndo(ctx, w, r)
	case (finished || w.back || done) && q.Redo && w.task == nil:
		err = p.redone(ctx, &w, &r)
		return r, err
	case w.task != nil && q.Redo:
		return p.redoTask(ctx, w, r, q)
	case w.task != nil:
		return p.undoTask(ctx, w, r, q)
	case q.Redo:
		return p.redoMission(ctx, w, r, q)
	case w.mission.Merged != nil:
		return p.undoMerge(ctx, w, r, q)
	}
	return p.dropMission(ctx, w, r, q)
}

// begun refuses to undo a task that has nothing on the mission's branch yet.
func (w *workDone) begun() error {
	if t := w.task; t != nil && len(t.Landed) == 0 && !t.Status.Ended() && !w.shared() {
		return conflict("end it with: centurion cancel "+t.ID, "nothing of task %s is on the mission's branch: it is %s", t.ID, t.Status)
	}
	return nil
}

// undoMerge undoes the newest merge of a mission.
func (p *Person) undoMerge(ctx context.Context, w workDone, r UndoReport, q UndoRequest) (UndoReport, error) {
	mm, rest := newestMerge(w.mission.Merged)
	head, err := w.repo.Head(ctx)
	if err != nil {
		return r, err
	}
	r.Person, r.Branch, r.Before = true, head.Branch, head.Commit
	if r.Files, err = w.repo.Stat(ctx, mm.Commit, mm.Before); err != nil {
		return r, err
	}
	undo := w.repo.Undo
	if q.DryRun {
		undo = w.repo.PreviewUndo
	}
	got, err := undo(ctx, mm)
	if err != nil {
		return r, err
	}
	if r.taken(got, "centurion undo "+w.mission.ID); r.Refused != nil || q.DryRun {
		return r, nil
	}
	r.Back = "centurion undo --redo " + w.mission.ID
	failpoint.Hit(failpoint.LandingDone)
	back := centurion.TakenBack{Merge: *w.mission.Merged, Before: got.Before, After: got.After, Time: centurion.Now()}
	back.Merge.Branch = got.Branch // after a merge into a detached HEAD it may be another one
	if got.Before == got.After {   // a host that died, or the person, has undone it already
		if back.Before = ""; got.After == mm.Before {
			back.Before = mm.Commit
			r.Before = mm.Commit
		}
	}
	ctx = context.WithoutCancel(ctx)
	rv, err := p.reverts.Reversal(ctx, w.mission, centurion.Reverted{What: "the merge of " + cmp.Or(someNames(mm.Only), "this mission's work"), Merge: back.Time}, w.itemsIn(mm))
	if err != nil {
		return r, err
	}
	r.Open = rv.Items
	return r, p.recordMerged(ctx, &w, func(m *centurion.Mission) {
		m.Merged, m.TakenBack = rest, append(slices.Clone(m.TakenBack), back)
	}, mergeEvent(centurion.EventMergeUndone, w.mission, "", got), rv)
}

// itemsIn lists the items whose work is in a merge: nil for all, if it is the only merge.
func (w *workDone) itemsIn(mm centurion.Merged) []string {
	if len(mm.Only) == 0 && mm.Earlier == nil {
		return nil
	}
	items := []string{}
	for _, t := range w.tasks {
		if t.Item != "" && slices.ContainsFunc(t.Landed, func(l centurion.Landed) bool { return slices.Contains(mm.Commits, l.Commit) }) {
			items = append(items, t.Item)
		}
	}
	return items
}

// newestMerge returns the newest merge, including later undos and redos of single tasks, and the merge before it.
func newestMerge(m *centurion.Merged) (centurion.Merged, *centurion.Merged) {
	all := *m
	for all.Follows && all.Earlier != nil && all.Earlier.Commit == all.Before {
		e := all.Earlier
		all.Before, all.Only, all.Squash, all.Follows, all.Earlier = e.Before, e.Only, e.Squash, e.Follows, e.Earlier
		all.Commits = slices.Concat(e.Commits, all.Commits)
	}
	return all, all.Earlier
}

// taken fills in git's change of the person's branch.
func (r *UndoReport) taken(g worktree.Merging, again string) {
	r.Person, r.Branch, r.Before, r.After = true, g.Branch, g.Before, g.After
	if len(g.Files) > 0 {
		r.Files = g.Files
	}
	if r.Refused = refusal(g, again); r.Refused != nil && len(g.Overlap) == 0 {
		r.Refused.Next = "later changes build on it: revert those first, or edit the files yourself"
	}
}

// dropMission resets the mission's own branch to its base and keeps its work under a ref.
func (p *Person) dropMission(ctx context.Context, w workDone, r UndoReport, q UndoRequest) (UndoReport, error) {
	m := w.mission
	tip, err := w.tip(ctx)
	if err != nil {
		return r, err
	}
	if tip == m.Base.Commit {
		if kept, _, err := w.kept(ctx); err != nil || kept != "" {
			if done, err := p.finishDrop(ctx, w, &r, kept, q); done || err != nil {
				return r, err
			}
			return r, errors.Join(err, conflict("restore it with: centurion undo --redo "+m.ID, "the work of mission %s was reverted already", m.ID))
		}
		return r, conflict("see: centurion show "+m.ID, "mission %s has no changes to revert", m.ID)
	}
	r.Dropped, r.Before, r.After = true, tip, m.Base.Commit
	if r.Files, err = w.repo.Stat(ctx, tip, m.Base.Commit); err != nil || q.DryRun {
		return r, err
	}
	if !q.Drop {
		return r, &centurion.Error{Kind: centurion.KindUsage, Msg: fmt.Sprintf("nothing of mission %s is on your branch; its own branch would be reset to its start", m.ID),
			Hint: fmt.Sprintf("to do so: centurion undo %s --yes", m.ID)}
	}
	_, next, err := w.kept(ctx)
	if err != nil {
		return r, err
	}
	r.Kept = next
	if err := w.repo.Advance(ctx, r.Kept, "", tip); err != nil {
		return r, err
	}
	if err := w.repo.Advance(ctx, m.Branch, tip, m.Base.Commit); err != nil {
		return r, err
	}
	failpoint.Hit(failpoint.UndoMoved)
	r.Back = "centurion undo --redo " + m.ID
	r.Open, err = p.dropped(context.WithoutCancel(ctx), w, w.standing())
	return r, err
}

// dropped records that all of the mission's work is off its branch, and returns the reopened items.
func (p *Person) dropped(ctx context.Context, w workDone, tasks []centurion.Task) ([]string, error) {
	now := centurion.Now()
	return p.revert(ctx, w, centurion.Reverted{What: "all of this mission's work"}, nil, tasks, func(t *centurion.Task) { t.Undone = now })
}

// revert records a change of tasks whose work was reverted with its effect on the plan, and applies that. items are those of the work,
// nil for all.
func (p *Person) revert(ctx context.Context, w workDone, r centurion.Reverted, items []string, tasks []centurion.Task, change func(*centurion.Task)) ([]string, error) {
	ctx = context.WithoutCancel(ctx)
	rv, err := p.reverts.Reversal(ctx, w.mission, r, items)
	if err != nil {
		return nil, err
	}
	if err := state.ChangeTasks(ctx, p.store, tasks, change, rv.Record); err != nil {
		return nil, err
	}
	opened, _, err := p.reverts.Settle(ctx, w.mission.ID)
	return opened, err
}

// restore records a change of tasks whose work was restored, and applies its effect on the plan. match selects the undos that it
// covers, see [revert.Restore].
func (p *Person) restore(ctx context.Context, w workDone, what string, tasks []centurion.Task, change func(*centurion.Task), match func(centurion.Reverted) bool) error {
	ctx = context.WithoutCancel(ctx)
	err := state.ChangeTasks(ctx, p.store, tasks, change, func(tx *store.Tx) error {
		return revert.Restore(tx, w.mission.ID, what, itemsOf(w.latest(tasks)...), match)
	})
	if err != nil {
		return err
	}
	_, _, err = p.reverts.Settle(ctx, w.mission.ID)
	return err
}

// itemsOf lists the items of some tasks; it is never nil.
func itemsOf(tasks ...centurion.Task) []string {
	items := []string{}
	for _, t := range tasks {
		if t.Item != "" && t.Status == centurion.TaskCompleted && !slices.Contains(items, t.Item) {
			items = append(items, t.Item)
		}
	}
	return items
}

// kept returns the newest ref that keeps dropped work of the mission, and the next free name for one.
func (w *workDone) kept(ctx context.Context) (newest, next string, err error) {
	for n := 1; ; n++ {
		next = fmt.Sprintf("refs/centurion/undone/%s/%d", w.mission.ID, n)
		_, err := w.repo.Tip(ctx, next)
		if centurion.KindOf(err) == centurion.KindNotFound {
			return newest, next, nil
		}
		if err != nil {
			return "", "", err
		}
		newest = next
	}
}
