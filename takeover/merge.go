package takeover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/event"
	"centurion/failpoint"
	"centurion/orchestrator/review"
	"centurion/store"
	"centurion/text"
	"centurion/trust"
	"centurion/worktree"
)

// MergeRequest selects the work of a mission to merge into the person's branch.
type MergeRequest struct {
	Only       []string `json:"only,omitempty"`       // items of the plan, or ids of tasks; empty means everything not merged yet
	Squash     bool     `json:"squash,omitempty"`     // as one commit
	DryRun     bool     `json:"dry_run,omitempty"`    // only report
	Unfinished bool     `json:"unfinished,omitempty"` // even if the mission is not complete
	Force      bool     `json:"force,omitempty"`      // with Only: even without predecessors in the plan
}

// MergeReport is the result of a merge, or of its dry run.
type MergeReport struct {
	Mission    string                 `json:"mission"`
	Goal       string                 `json:"goal"`
	Branch     string                 `json:"branch,omitempty"` // the person's; empty for a detached HEAD
	Before     string                 `json:"before,omitempty"` // its commit; empty in an empty repository
	After      string                 `json:"after,omitempty"`
	From       string                 `json:"from"` // the tip of the mission's branch
	Squash     bool                   `json:"squash,omitempty"`
	DryRun     bool                   `json:"dry_run,omitempty"`
	Commits    int                    `json:"commits"` // of the mission's branch
	Items      []MergedItem           `json:"items,omitempty"`
	Files      []centurion.FileChange `json:"files"`
	Unfinished []string               `json:"unfinished,omitempty"` // why the mission is not complete
	Refused    *Refusal               `json:"refused,omitempty"`    // nothing was changed
	Finished   bool                   `json:"finished,omitempty"`   // completes an interrupted merge
	Aside      []centurion.Aside      `json:"aside,omitempty"`      // git-ignored files of the work, which are not merged
	Running    bool                   `json:"running,omitempty"`    // the mission is running: the merge cannot be undone until it is paused
	Trust      []string               `json:"trust,omitempty"`      // changed files that configure agents: only restrictions in them count until the person trusts them
	// Lost is the commit that the mission began on if the same branch of the person no longer contains it: a rebase, or a program that
	// moved the branch.
	Lost string `json:"lost,omitempty"`
}

// MergedItem is a merged task with its proof.
type MergedItem struct {
	Item     string          `json:"item,omitempty"`
	Task     string          `json:"task"`
	Title    string          `json:"title"`
	Proof    centurion.Proof `json:"proof,omitempty"`    // that of the weakest check; empty without any
	Why      string          `json:"why,omitempty"`      // why it is not better
	Weakened []string        `json:"weakened,omitempty"` // checks that the work deleted or weakened
	Outside  []string        `json:"outside,omitempty"`  // changed files that are not in its item's `files:`
	Review   string          `json:"review,omitempty"`   // the review that has passed since the work ended: its item, or else its title; see [review.Reviewed]
}

// Merge merges the work of a mission into the person's branch and files. If their own changes are in the way, it changes nothing and
// reports a Refusal. The error has centurion.KindConflict for a mission that is not complete, has changed nothing, works in the project
// itself or is merged already, and KindNotFound for an unknown item.
func (p *Person) Merge(ctx context.Context, id string, q MergeRequest) (MergeReport, error) {
	p.changing.Lock()
	defer p.changing.Unlock()
	w, err := p.workOf(ctx, id)
	if err != nil {
		return MergeReport{}, err
	}
	finished, err := p.mergeable(ctx, &w)
	if err != nil {
		return MergeReport{}, err
	}
	chosen, err := w.choose(ctx, q)
	if finished && centurion.KindOf(err) == centurion.KindConflict { // there was nothing else to merge
		return p.finishedMerge(ctx, w)
	}
	if err != nil {
		return MergeReport{}, err
	}
	r := MergeReport{Mission: w.mission.ID, Goal: w.mission.Goal, From: chosen.tip, Squash: q.Squash, DryRun: q.DryRun, Commits: len(chosen.commits),
		Unfinished: p.unfinished(w), Aside: w.aside(), Files: []centurion.FileChange{}}
	r.Running = p.host.AtRest(w.mission.ID, func() error { return nil }) != nil
	if r.Items, err = p.mergedItems(ctx, w, chosen.commits); err != nil {
		return r, err
	}
	if len(r.Unfinished) > 0 && !q.Unfinished && len(q.Only) == 0 && !q.DryRun {
		return r, conflict("continue it: centurion resume "+w.mission.ID+"; or merge what is done with --yes, or some items with --only",
			"mission %s is not complete: %s", w.mission.ID, strings.Join(r.Unfinished, "; "))
	}
	plan := p.planOf(w)
	if r.Refused = w.lacking(plan, chosen, q); r.Refused != nil {
		head, err := w.repo.Head(ctx)
		r.Branch, r.Before = head.Branch, head.Commit
		return r, err
	}
	got, err := w.repo.Preview(ctx, chosen.options)
	if err != nil {
		return r, err
	}
	r.take(got, q, w.mission.ID)
	if r.Lost, err = w.lost(ctx, got); err != nil {
		return r, err
	}
	if r.Refused != nil {
		err = w.otherWays(ctx, plan, chosen, q, got, &r)
		return r, err
	}
	if q.DryRun {
		return r, nil
	}
	err = p.merge(ctx, &w, chosen, q, &r)
	return r, err
}

// take fills in git's result of the merge.
func (r *MergeReport) take(g worktree.Merging, q MergeRequest, mission string) {
	r.Branch, r.Before, r.After = g.Branch, g.Before, g.After
	r.changed(g.Files)
	again := mergeCommand(mission, q)
	if r.Refused = refusal(g, again); r.Refused == nil || len(g.Overlap) > 0 {
		return
	}
	switch {
	case r.Refused.Next != "": // only the person's uncommitted changes are in the way
	case len(q.Only) > 0:
		r.Refused.Why = strings.Join(q.Only, ", ") + " cannot be merged alone: " + r.Refused.Why
		r.Refused.Next = wholeInstead(mission)
	default:
		r.Refused.Next = "see it with `centurion diff " + mission + "`; then merge its branch yourself: git merge " + branchOfMerging(r.From)
	}
}

// lost is the commit that the mission began on, if the person's branch of that time is checked out and no longer contains it, else "".
func (w *workDone) lost(ctx context.Context, g worktree.Merging) (string, error) {
	base := w.mission.Base
	if base.Head == "" || base.Branch == "" || g.Branch != base.Branch || g.Before == "" {
		return "", nil
	}
	there, err := w.repo.IsAncestor(ctx, base.Head, g.Before)
	return text.When(!there && err == nil, base.Head), err
}

// mergeCommand is the command for a request.
func mergeCommand(mission string, q MergeRequest) string {
	return "centurion merge " + mission + text.When(len(q.Only) > 0, " --only "+strings.Join(q.Only, ",")) +
		text.When(q.Squash, " --squash") + text.When(q.Unfinished, " --yes") + text.When(q.Force, " --force")
}

// branchOfMerging is the name of the work in git commands.
func branchOfMerging(tip string) string { return tip[:min(len(tip), 12)] }

// finishedMerge reports an interrupted merge that was completed now.
func (p *Person) finishedMerge(ctx context.Context, w workDone) (MergeReport, error) {
	mm := w.mission.Merged
	r := MergeReport{Mission: w.mission.ID, Goal: w.mission.Goal, Branch: mm.Branch, Before: mm.Before, After: mm.Commit, From: mm.From, Squash: mm.Squash,
		Commits: len(mm.Commits), Unfinished: p.unfinished(w), Finished: true}
	var err error
	if r.Items, err = p.mergedItems(ctx, w, mm.Commits); err != nil {
		return r, err
	}
	files, err := w.repo.Stat(ctx, mm.Before, mm.Commit)
	r.changed(files)
	return r, err
}

// changed fills in the changed files.
func (r *MergeReport) changed(files []centurion.FileChange) {
	r.Files, r.Trust = append([]centurion.FileChange{}, files...), nil
	for _, f := range files {
		if trust.Covers(f.Path) {
			r.Trust = append(r.Trust, f.Path)
		}
	}
}

// mergeable opens the repository of a mission that has something to merge. finished is true if it completed an interrupted merge.
func (p *Person) mergeable(ctx context.Context, w *workDone) (finished bool, err error) {
	id := w.mission.ID
	switch {
	case w.task != nil:
		return false, &centurion.Error{Kind: centurion.KindUsage, Msg: w.task.ID + " is a task, and a mission is merged",
			Hint: fmt.Sprintf("merge this task alone: centurion merge %s --only %s", id, w.task.Name())}
	case w.shared():
		return false, conflict("see what it has changed: centurion diff "+id, "mission %s works in the project itself: there is nothing to merge", id)
	}
	if err := w.open(ctx, p); err != nil {
		return false, err
	}
	if finished, err = p.settleMerge(ctx, w); err != nil || !slices.ContainsFunc(w.mission.Reverted, unsettled) {
		return finished, err
	}
	// It was recorded, but the host died before it updated the plan.
	finished = finished || w.merged() && slices.ContainsFunc(w.mission.Reverted, func(r centurion.Reverted) bool { return r.Back })
	_, _, err = p.reverts.Settle(ctx, w.mission.ID)
	return finished, errors.Join(err, w.again(ctx, p))
}

// unsettled reports whether the plan does not reflect an undo or redo yet.
func unsettled(r centurion.Reverted) bool { return r.Back || !r.Marked }

// picked is the work to merge.
type picked struct {
	options worktree.MergeOptions
	tip     string
	commits []string // of the mission's branch, oldest first
}

// choose finds the selected commits that are not merged yet.
func (w *workDone) choose(ctx context.Context, q MergeRequest) (picked, error) {
	m := w.mission
	tip, err := w.tip(ctx)
	if err != nil {
		return picked{}, err
	}
	log, err := w.repo.Log(ctx, m.Base.Commit, tip)
	if err != nil {
		return picked{}, err
	}
	p := picked{tip: tip, options: worktree.MergeOptions{Base: *m.Base, Tip: tip, Squash: q.Squash, Again: len(m.TakenBack) > 0, Message: mergeMessage(m, q)}}
	some := len(q.Only) > 0
	var only map[string]bool
	if some {
		if only, err = w.only(q.Only); err != nil {
			return p, err
		}
	}
	for _, c := range log {
		switch {
		case m.Merged.Has(c.ID):
			some = some || len(m.Merged.Only) > 0 || m.Merged.Earlier != nil
		case only == nil || only[c.ID]:
			p.commits = append(p.commits, c.ID)
		}
	}
	switch {
	case len(p.commits) == 0:
		return p, w.nothing(q, len(log))
	case some:
		p.options.Only = p.commits
	case m.Merged != nil: // everything after it
		p.options.Base = centurion.Base{Commit: m.Merged.From, Head: m.Merged.Commit, Branch: m.Merged.Branch}
	}
	return p, nil
}

// nothing is the error when there is nothing to merge.
func (w *workDone) nothing(q MergeRequest, commits int) error {
	m := w.mission
	if commits == 0 {
		if aside := w.aside(); len(aside) > 0 {
			return conflict("take what you want of it from there; see: centurion show "+m.ID, "mission %s has changed nothing that can be merged: %s", m.ID, aside[0])
		}
		return conflict("see: centurion show "+m.ID, "mission %s has changed nothing: there is nothing to merge", m.ID)
	}
	some := text.When(len(q.Only) > 0, strings.Join(q.Only, ", ")+" of ")
	return conflict("revert it with: centurion undo "+m.ID, "%smission %s was merged already: %s", some, m.ID, mergedWords(m.Merged))
}

// mergedWords describes where and when a merge was made.
func mergedWords(m *centurion.Merged) string {
	if m == nil {
		return ""
	}
	where := cmp.Or(m.Branch, "a detached HEAD")
	return fmt.Sprintf("on %s as %s, %s", where, m.Commit[:min(len(m.Commit), 12)], m.Time.Local().Format(time.DateTime))
}

// only finds the commits of the named items and tasks.
func (w *workDone) only(names []string) (map[string]bool, error) {
	commits := map[string]bool{}
	for _, name := range names {
		tasks := w.named(name)
		if len(tasks) == 0 {
			return nil, w.unknown(name)
		}
		n := 0
		for _, t := range tasks {
			if !t.Undone.IsZero() {
				continue
			}
			for _, l := range landed(t) {
				commits[l.Commit] = true
				n++
			}
		}
		if n == 0 {
			return nil, conflict("see: centurion tasks "+w.mission.ID, "there is no work of %s to merge: %s", name, whyNoWork(tasks[len(tasks)-1]))
		}
	}
	return commits, nil
}

func whyNoWork(t centurion.Task) string {
	switch {
	case !t.Undone.IsZero() && len(t.Landed) > 0:
		return "it was reverted"
	case !t.Status.Ended():
		return "its task is " + string(t.Status)
	}
	return "it has changed nothing"
}

// named returns the tasks for the id of an item or a task, or a prefix of the latter.
func (w *workDone) named(name string) []centurion.Task {
	found := w.tasksThat(func(t centurion.Task) bool {
		return strings.EqualFold(t.Name(), name) || strings.EqualFold(t.Item, name) && !t.Lost() || t.ID == name
	})
	if len(found) > 0 || len(name) < len(centurion.PrefixTask)+5 {
		return found
	}
	if found = w.tasksThat(func(t centurion.Task) bool { return strings.HasPrefix(t.ID, name) }); len(found) > 1 {
		return nil
	}
	return found
}

func (w *workDone) unknown(name string) error {
	known := map[string]bool{}
	for _, t := range w.tasks {
		known[t.Name()] = true
	}
	all := slices.Sorted(maps.Keys(known))
	e := &centurion.Error{Kind: centurion.KindNotFound, Msg: fmt.Sprintf("mission %s has no item and no task %q", w.mission.ID, name), Hint: "see: centurion tasks " + w.mission.ID}
	if near := centurion.Nearest(name, all); near != "" {
		e.Hint = fmt.Sprintf("did you mean %s?", near)
	} else if len(all) > 0 {
		e.Msg += "; it has " + someNames(all)
	}
	return e
}

// merge performs the merge. It records its intention first, so that a crash can be resolved.
func (p *Person) merge(ctx context.Context, w *workDone, chosen picked, q MergeRequest, r *MergeReport) error {
	record := centurion.Merged{Branch: r.Branch, Before: r.Before, From: chosen.tip, Squash: q.Squash, Only: q.Only, Time: centurion.Now(), Commits: chosen.commits,
		Earlier: w.mission.Merged}
	if err := p.recordMerged(ctx, w, func(m *centurion.Mission) { m.Merged = &record }, nil); err != nil {
		return err
	}
	failpoint.Hit(failpoint.MergeIntent)
	got, err := w.repo.Merge(ctx, chosen.options)
	ctx = context.WithoutCancel(ctx)
	if err != nil || len(got.Overlap)+len(got.Conflicts) > 0 {
		r.take(got, q, w.mission.ID)
		return errors.Join(err, p.recordMerged(ctx, w, func(m *centurion.Mission) { m.Merged = m.Merged.Earlier }, nil))
	}
	r.take(got, q, w.mission.ID)
	failpoint.Hit(failpoint.LandingDone)
	return p.recordMerged(ctx, w, func(m *centurion.Mission) {
		m.Merged.Branch, m.Merged.Before, m.Merged.Commit = got.Branch, got.Before, got.After
	}, mergeEvent(centurion.EventMergeDone, w.mission, "", got))
}

// MergeUnasked merges the work of an unattended mission according to its options and records an event; for a refusal that is
// merge.conflict.
func (p *Person) MergeUnasked(ctx context.Context, id string) {
	r, err := p.Merge(ctx, id, MergeRequest{})
	if err != nil || r.Refused == nil {
		return // there was nothing to merge, or the mission is visibly unmerged
	}
	files := slices.Concat(r.Refused.Overlap, text.Each(r.Refused.Conflicts, func(c Conflict) string { return c.Path }))
	_ = p.store.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error { // the mission is visibly unmerged
		_, err := tx.Append(centurion.Event{Type: centurion.EventMergeConflict, Mission: id,
			Data: event.Data(event.MergeData{Branch: cmp.Or(r.Branch, "HEAD"), Files: files, Person: true})})
		return err
	})
}

func mergeEvent(typ centurion.EventType, m centurion.Mission, task string, g worktree.Merging) *centurion.Event {
	return &centurion.Event{Type: typ, Mission: m.ID, Session: m.Session, Task: task,
		Data: event.Data(event.MergeData{Branch: cmp.Or(g.Branch, "HEAD"), Commit: g.After, Person: true}.WithFiles(g.Files))}
}

// mergeMessage is the message of the merge commit.
func mergeMessage(m centurion.Mission, q MergeRequest) string {
	subject, _, _ := strings.Cut(strings.TrimSpace(m.Goal), "\n")
	items := text.When(len(q.Only) > 0, "Items: "+strings.Join(q.Only, ", ")+"\n")
	return centurion.Clip(subject, 72) + "\n\n" + items + missionLine(m.ID) + "\n"
}

// missionLine is the line of a commit message that names its mission.
func missionLine(id string) string { return "Mission: " + id }

// unfinished says why a mission is not complete; empty if it is.
func (p *Person) unfinished(w workDone) []string {
	m := w.mission
	onlyMerges := !slices.ContainsFunc(m.Reverted, func(r centurion.Reverted) bool { return r.Merge.IsZero() })
	if m.Status == centurion.MissionCompleted || m.Was != nil && onlyMerges { // the reverted work is still on its branch
		return nil
	}
	why := []string{"it is " + string(m.Status) + text.When(m.Reason != "", " ("+m.Reason+")")}
	doc := p.planOf(w)
	if doc == nil {
		return why
	}
	var open []string
	for _, it := range doc.Items() {
		if s := doc.Status(it.ID).String(); !it.Group && s != "done" && s != "cancelled" {
			open = append(open, it.ID+" is "+s)
		}
	}
	if len(open) > 0 {
		why = append(why, someNames(open))
	}
	return why
}

// mergedItems lists the tasks whose commits are merged, with their proofs.
func (p *Person) mergedItems(ctx context.Context, w workDone, commits []string) ([]MergedItem, error) {
	receipts, err := p.store.Receipts(ctx, w.mission.ID)
	if err != nil {
		return nil, err
	}
	reviews := p.reviewsOf(w)
	var out []MergedItem
	for _, t := range w.tasks {
		if !slices.ContainsFunc(t.Landed, func(l centurion.Landed) bool { return !l.Reverts && slices.Contains(commits, l.Commit) }) || !t.Undone.IsZero() {
			continue
		}
		it := MergedItem{Item: t.Item, Task: t.ID, Title: t.Title, Outside: t.Outside}
		it.Proof, it.Why, it.Weakened = proofOf(receipts, t)
		if by, ok := reviews[t.Item]; ok && t.Item != "" {
			it.Review = cmp.Or(by.Item, by.Title, by.ID)
		}
		out = append(out, it)
	}
	return out, nil
}

// reviewsOf finds the passed reviews of the tasks' items.
func (p *Person) reviewsOf(w workDone) map[string]centurion.Task {
	items := text.Each(w.tasks, func(t centurion.Task) string { return t.Item })
	return review.Reviewed(p.planOf(w), items, w.tasks, w.mission)
}

// proofOf is the grade of a task's newest receipts, that of the weakest check. If the task has receipts of its own, those of later
// tasks on its item do not count.
func proofOf(receipts []centurion.Receipt, t centurion.Task) (proof centurion.Proof, why string, weakened []string) {
	own := slices.ContainsFunc(receipts, func(r centurion.Receipt) bool { return !r.Final && r.Task == t.ID })
	seen := map[string]bool{}
	for _, r := range slices.Backward(receipts) {
		if r.Final || r.Task != t.ID && (own || t.Item == "" || r.Item != t.Item) || seen[r.Command] {
			continue
		}
		seen[r.Command] = true
		weakened = text.Union(weakened, r.Weakened...)
		if proof == "" || proof.Solid() && r.Proof != "" {
			proof, why = r.Proof, r.Why
		}
	}
	return proof, why, weakened
}
