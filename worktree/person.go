package worktree

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"centurion"
)

// Preview returns the result of a Merge without changing anything. After is empty.
func (u *userSide) Preview(ctx context.Context, o MergeOptions) (Merging, error) {
	m, err := u.merge(ctx, o, true)
	m.After = ""
	return m, err
}

// Merge merges finished work into the person's branch and files, keeping their uncommitted changes, or does nothing at all. Uncommitted
// work that was part of the snapshot stays uncommitted. With an overlap or a conflict it returns no error, and After is empty: see
// Merging.Clear.
//
// If the person's branch is where the mission began, the mission's commits are added unchanged; if it has moved, with a merge commit.
// If the mission began with uncommitted work, which their history contains, or the person's history was rewritten, the commits are
// applied one by one; if that fails, as one commit.
//
// The error has centurion.KindConflict if the person's own merge or rebase is unfinished, or another git is running. The next Merge or
// Undo completes a merge that was killed.
func (u *userSide) Merge(ctx context.Context, o MergeOptions) (Merging, error) {
	return u.merge(ctx, o, false)
}

// Clear reports whether there are no obstacles.
func (m Merging) Clear() bool { return len(m.Overlap) == 0 && len(m.Conflicts) == 0 }

// stand returns the person's HEAD, with landing held by the caller. It first completes an interrupted merge, unless dry is set.
func (u *userSide) stand(ctx context.Context, dry bool) (m Merging, err error) {
	if dry {
		err = u.undisturbed(true)
	} else {
		err = u.settle(ctx)
	}
	if err != nil {
		return m, err
	}
	h, err := u.Head(ctx)
	return Merging{Before: h.Commit, Branch: h.Branch}, err
}

func (u *userSide) merge(ctx context.Context, o MergeOptions, dry bool) (Merging, error) {
	u.landing.Lock()
	defer u.landing.Unlock()
	m, err := u.stand(ctx, dry)
	if err != nil {
		return Merging{}, err
	}
	after, conflicts, err := u.compose(ctx, o, m.Before)
	if err != nil {
		return m, err
	}
	if len(conflicts) > 0 {
		m.Conflicts, err = u.explain(ctx, conflicts, o.Base, m.Before)
		return m, err
	}
	return u.land(ctx, m, after, mine{snapshot: o.Base.Commit, any: o.Keep}, dry)
}

// compose makes the commit for the person's branch.
func (u *userSide) compose(ctx context.Context, o MergeOptions, head string) (after string, conflicts []Conflict, err error) {
	if len(o.Only) > 0 && !o.Squash {
		return u.replay(ctx, o.Only, head)
	}
	if len(o.Only) > 0 {
		if after, conflicts, err = u.replay(ctx, o.Only, head); err != nil || len(conflicts) > 0 {
			return after, conflicts, err
		}
		return u.single(ctx, after, o.Message, head)
	}
	if o.Squash {
		return u.total(ctx, o, head)
	}
	if head != "" {
		switch has, err := u.IsAncestor(ctx, o.Tip, head); {
		case err != nil:
			return "", nil, err
		case has && !o.Again:
			return head, nil, nil
		}
		if head == o.Base.Commit {
			return o.Tip, nil, nil
		}
		switch on, err := u.IsAncestor(ctx, o.Base.Commit, head); {
		case err != nil:
			return "", nil, err
		case on:
			return u.mergeCommit(ctx, o, head)
		}
	}
	after, conflicts, err = u.replayAll(ctx, o, head)
	if err != nil || len(conflicts) == 0 {
		return after, nil, err
	}
	// One of the commits conflicts with what the person has not committed; all together may not.
	return u.total(ctx, o, head)
}

// replayAll applies all commits of the work to head, one by one.
func (u *userSide) replayAll(ctx context.Context, o MergeOptions, head string) (string, []Conflict, error) {
	out, err := u.git(ctx, call{Args: []string{"rev-list", "--reverse", "--first-parent", "--end-of-options", o.Base.Commit + ".." + o.Tip}})
	if err != nil {
		return "", nil, err
	}
	return u.replay(ctx, strings.Fields(string(out)), head)
}

// replay applies commits to head, one by one. It skips those that change nothing there.
func (u *userSide) replay(ctx context.Context, commits []string, head string) (string, []Conflict, error) {
	at, err := u.tree(ctx, head)
	if err != nil {
		return "", nil, err
	}
	for _, c := range commits {
		next, err := u.Rebase(ctx, c, head)
		if err != nil || len(next.Conflicts) > 0 {
			return "", next.Conflicts, err
		}
		if next.Tree != at {
			head, at = next.Commit, next.Tree
		}
	}
	return head, nil, nil
}

// total makes one commit of all the work.
func (u *userSide) total(ctx context.Context, o MergeOptions, head string) (string, []Conflict, error) {
	m, err := u.mergeTrees(ctx, o.Base.Commit, head, o.Tip)
	if err != nil || len(m.conflicts) > 0 {
		return "", m.conflicts, err
	}
	return u.single(ctx, m.tree, o.Message, head)
}

// single makes one commit of a tree on head, if it differs.
func (u *userSide) single(ctx context.Context, tree, message, head string) (string, []Conflict, error) {
	t, err := u.trees(ctx, tree, head)
	if err != nil || t[0] == t[1] {
		return head, nil, err
	}
	id, err := u.commitTree(ctx, t[0], u.mergeMessageOf(message), nil, head)
	return id, nil, err
}

// mergeCommit merges the mission's commits into a branch that has moved.
func (u *userSide) mergeCommit(ctx context.Context, o MergeOptions, head string) (string, []Conflict, error) {
	out, err := u.git(ctx, call{Args: []string{"merge-base", "--end-of-options", head, o.Tip}})
	if err != nil {
		return "", nil, err
	}
	if o.Again && line(out) != o.Base.Commit { // a merge would skip reverted commits in its history
		return u.replayAll(ctx, o, head)
	}
	m, err := u.mergeTrees(ctx, line(out), head, o.Tip)
	if err != nil || len(m.conflicts) > 0 {
		return "", m.conflicts, err
	}
	id, err := u.commitTree(ctx, m.tree, u.mergeMessageOf(o.Message), nil, head, o.Tip)
	return id, nil, err
}

func (u *userSide) mergeMessageOf(s string) string {
	return u.attributed(cmp.Or(strings.TrimSpace(s), "Merge the work of a mission"))
}

// explain marks conflicts in files whose uncommitted changes were part of the snapshot, if head still has their old content: the person
// can commit them.
func (u *userSide) explain(ctx context.Context, conflicts []Conflict, base centurion.Base, head string) ([]Conflict, error) {
	if base.Commit == base.Head {
		return conflicts, nil
	}
	before, err := u.tree(ctx, base.Head)
	if err != nil {
		return nil, err
	}
	uncommitted, err := u.changes(ctx, before, base.Commit, false)
	if err != nil {
		return nil, err
	}
	mine := map[string]bool{}
	for _, c := range uncommitted {
		mine[c.Path], mine[c.before()] = true, true
	}
	var names []string
	for _, c := range conflicts {
		names = append(names, c.Path)
	}
	old, err := u.entries(ctx, before, names)
	if err != nil {
		return nil, err
	}
	tree, err := u.tree(ctx, head)
	if err != nil {
		return nil, err
	}
	now, err := u.entries(ctx, tree, names)
	if err != nil {
		return nil, err
	}
	for i, c := range conflicts {
		if mine[c.Path] && old[c.Path] == now[c.Path] {
			conflicts[i].Uncommitted = true
		}
	}
	return conflicts, nil
}

// PreviewUndo returns the result of an Undo without changing anything. After is empty, unless there is nothing to undo.
func (u *userSide) PreviewUndo(ctx context.Context, m centurion.Merged) (Merging, error) {
	return u.takeBack(ctx, m, true)
}

// Undo undoes a merge: it resets the branch if there are no later commits, otherwise it adds a commit that reverts the merge.
// Uncommitted changes stay, merged three-way; files where that fails, or with other staged changes, are listed in Overlap, and later
// commits that depend on the merge in Conflicts; then nothing is changed. The error has centurion.KindConflict if the person is on
// another branch, or the merge is no longer in its history.
func (u *userSide) Undo(ctx context.Context, m centurion.Merged) (Merging, error) {
	return u.takeBack(ctx, m, false)
}

func (u *userSide) takeBack(ctx context.Context, m centurion.Merged, dry bool) (Merging, error) {
	u.landing.Lock()
	defer u.landing.Unlock()
	back, err := u.stand(ctx, dry)
	if err != nil {
		return Merging{}, err
	}
	head := back.Before
	refuse := func(msg, hint string) (Merging, error) {
		return back, &centurion.Error{Op: "undo merge", Kind: centurion.KindConflict, Msg: msg, Hint: hint}
	}
	if m.Branch != "" && back.Branch != m.Branch {
		return refuse("the work was merged into "+m.Branch+", and this is "+cmp.Or(back.Branch, "a detached HEAD"), "git switch "+m.Branch)
	}
	switch {
	case head == m.Before:
		back.After = head
		return back, nil
	case head == m.Commit:
		return u.land(ctx, back, m.Before, mine{any: true}, dry)
	}
	if on, err := u.IsAncestor(ctx, m.Commit, head); err != nil || !on {
		if err != nil && centurion.KindOf(err) == centurion.KindCancelled {
			return back, err
		}
		return refuse("the branch no longer has the commit "+short(m.Commit)+" that the merge made", "git log shows what it has; git revert takes single commits back")
	}
	t, err := u.mergeTrees(ctx, m.Commit, head, m.Before)
	if err != nil {
		return back, err
	}
	if len(t.conflicts) > 0 {
		back.Conflicts = t.conflicts
		return back, nil
	}
	after, _, err := u.single(ctx, t.tree, "Revert the merge of a mission\n\nThis reverts commit "+m.Commit+".", head)
	if err != nil {
		return back, err
	}
	return u.land(ctx, back, after, mine{any: true}, dry)
}

// mine selects the uncommitted changes to keep in files that a landing changes; others are an overlap.
type mine struct {
	snapshot string // a commit: keep the changes that it contains; none if empty
	any      bool   // keep all
}

// land moves the person's branch, index and files to another commit (none if empty), or lists the obstacles. Uncommitted changes in
// affected files stay if they are to be kept and can be merged with the new content; others are an overlap.
func (u *userSide) land(ctx context.Context, m Merging, after string, keep mine, dry bool) (Merging, error) {
	if after == m.Before {
		m.After = after
		return m, nil
	}
	var err error
	if !dry {
		if after, err = u.signed(ctx, m.Before, after); err != nil {
			return m, err
		}
	}
	if m.Files, err = u.Stat(ctx, m.Before, after); err != nil {
		return m, err
	}
	p, err := u.plan(ctx, m.Before, after, keep)
	if p != nil {
		defer p.close()
	}
	if err != nil {
		return m, err
	}
	if len(p.overlap) > 0 {
		slices.Sort(p.overlap)
		m.Overlap = slices.Compact(p.overlap)
		m.Stash, err = p.stash(ctx, m.Overlap)
		return m, err
	}
	if dry {
		return m, nil
	}
	if err := p.carryOut(ctx); err != nil {
		return m, err
	}
	m.After = after
	return m, nil
}

// Redo returns the person's branch and files to their state before a merge was undone, if nothing was committed since. exact is false,
// with nothing changed, if something was committed, on another branch, or if the state is unknown: then the work must be merged again.
// Uncommitted changes are obstacles as for Merge, except those contained in the snapshot base. With look nothing is changed in any
// case.
func (u *userSide) Redo(ctx context.Context, t centurion.TakenBack, base centurion.Base, look bool) (m Merging, exact bool, err error) {
	u.landing.Lock()
	defer u.landing.Unlock()
	if m, err = u.stand(ctx, look); err != nil {
		return Merging{}, false, err
	}
	if t.Before == "" || m.Before != t.After || m.Branch != t.Merge.Branch {
		return m, false, nil
	}
	m, err = u.land(ctx, m, t.Before, mine{snapshot: base.Commit}, look)
	return m, true, err
}
