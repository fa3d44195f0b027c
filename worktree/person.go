package worktree

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"centurion"
)

// Preview says what Merge would do, and touches nothing. After is empty.
func (r *Repo) Preview(ctx context.Context, o MergeOptions) (Merging, error) {
	r.landing.Lock()
	defer r.landing.Unlock()
	if err := r.undisturbed(true); err != nil {
		return Merging{}, err
	}
	m, err := r.merge(ctx, o, true)
	m.After = ""
	return m, err
}

// Merge puts finished work on the person's branch and into their files, together with what they have not committed, or does nothing at all.
// Work that the snapshot had taken in uncommitted stays uncommitted. With an overlap or a conflict there is no error, and After is
// empty: ask Merging.Clear.
//
// The mission's commits come as they are if the person's branch stands where the mission began, and with a merge commit if it has moved
// on. Where the mission began with uncommitted work, which their history holds, or the person's history was rewritten, they are laid on
// the branch one by one; if that cannot be done, as one commit.
//
// The error has centurion.KindConflict if the person is in the middle of a merge or rebase of their own, or another git is at work.
// A merge that was killed in the middle is completed by the next Merge or Undo.
func (r *Repo) Merge(ctx context.Context, o MergeOptions) (Merging, error) {
	r.landing.Lock()
	defer r.landing.Unlock()
	if err := r.settle(ctx); err != nil {
		return Merging{}, err
	}
	return r.merge(ctx, o, false)
}

// Clear reports whether nothing stands in the way: what was to be done can be, or is.
func (m Merging) Clear() bool { return len(m.Overlap) == 0 && len(m.Conflicts) == 0 }

func (r *Repo) merge(ctx context.Context, o MergeOptions, dry bool) (Merging, error) {
	h, err := r.Head(ctx)
	if err != nil {
		return Merging{}, err
	}
	m := Merging{Before: h.Commit, Branch: h.Branch}
	after, conflicts, err := r.compose(ctx, o, h.Commit)
	if err != nil {
		return m, err
	}
	if len(conflicts) > 0 {
		m.Conflicts, err = r.explain(ctx, conflicts, o.Base, h.Commit)
		return m, err
	}
	return r.land(ctx, m, after, mine{snapshot: o.Base.Commit, any: o.Keep}, dry)
}

// compose makes the commit that the person's branch will stand at.
func (r *Repo) compose(ctx context.Context, o MergeOptions, head string) (after string, conflicts []Conflict, err error) {
	if len(o.Only) > 0 && !o.Squash {
		return r.replay(ctx, o.Only, head)
	}
	if len(o.Only) > 0 {
		if after, conflicts, err = r.replay(ctx, o.Only, head); err != nil || len(conflicts) > 0 || after == head {
			return after, conflicts, err
		}
		return r.single(ctx, after, o.Message, head)
	}
	if o.Squash {
		return r.total(ctx, o, head)
	}
	if head != "" {
		switch has, err := r.IsAncestor(ctx, o.Tip, head); {
		case err != nil:
			return "", nil, err
		case has && !o.Again:
			return head, nil, nil
		}
		if head == o.Base.Commit {
			return o.Tip, nil, nil
		}
		switch on, err := r.IsAncestor(ctx, o.Base.Commit, head); {
		case err != nil:
			return "", nil, err
		case on:
			return r.mergeCommit(ctx, o, head)
		}
	}
	after, conflicts, err = r.replayAll(ctx, o, head)
	if err != nil || len(conflicts) == 0 {
		return after, nil, err
	}
	// One of the commits stands on what the person has not committed, but all of them together may not.
	return r.total(ctx, o, head)
}

// replayAll lays all commits of the work onto head, one by one.
func (r *Repo) replayAll(ctx context.Context, o MergeOptions, head string) (string, []Conflict, error) {
	out, err := r.git(ctx, call{Args: []string{"rev-list", "--reverse", "--first-parent", "--end-of-options", o.Base.Commit + ".." + o.Tip}})
	if err != nil {
		return "", nil, err
	}
	return r.replay(ctx, strings.Fields(string(out)), head)
}

// replay lays commits onto head, one by one. Those that change nothing there are passed over.
func (r *Repo) replay(ctx context.Context, commits []string, head string) (string, []Conflict, error) {
	at, err := r.tree(ctx, head)
	if err != nil {
		return "", nil, err
	}
	for _, c := range commits {
		next, err := r.Rebase(ctx, c, head)
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
func (r *Repo) total(ctx context.Context, o MergeOptions, head string) (string, []Conflict, error) {
	m, err := r.mergeTrees(ctx, o.Base.Commit, head, o.Tip)
	if err != nil || len(m.conflicts) > 0 {
		return "", m.conflicts, err
	}
	return r.single(ctx, m.tree, o.Message, head)
}

// single makes one commit of a tree on head, if it differs.
func (r *Repo) single(ctx context.Context, tree, message, head string) (string, []Conflict, error) {
	t, err := r.trees(ctx, tree, head)
	if err != nil || t[0] == t[1] {
		return head, nil, err
	}
	var parents []string
	if head != "" {
		parents = append(parents, head)
	}
	id, err := r.commitTree(ctx, t[0], r.mergeMessageOf(message), nil, parents...)
	return id, nil, err
}

// mergeCommit merges the mission's commits into a branch that has moved on.
func (r *Repo) mergeCommit(ctx context.Context, o MergeOptions, head string) (string, []Conflict, error) {
	out, err := r.git(ctx, call{Args: []string{"merge-base", "--end-of-options", head, o.Tip}})
	if err != nil {
		return "", nil, err
	}
	if o.Again && line(out) != o.Base.Commit { // a merge would pass over what is in the history and was reverted
		return r.replayAll(ctx, o, head)
	}
	m, err := r.mergeTrees(ctx, line(out), head, o.Tip)
	if err != nil || len(m.conflicts) > 0 {
		return "", m.conflicts, err
	}
	id, err := r.commitTree(ctx, m.tree, r.mergeMessageOf(o.Message), nil, head, o.Tip)
	return id, nil, err
}

func (r *Repo) mergeMessageOf(s string) string {
	return r.attributed(cmp.Or(strings.TrimSpace(s), "Merge the work of a mission"))
}

// explain marks conflicts in files whose uncommitted changes the mission had taken in, as long as head has them as they were before: the
// person can commit them.
func (r *Repo) explain(ctx context.Context, conflicts []Conflict, base centurion.Base, head string) ([]Conflict, error) {
	if base.Commit == base.Head {
		return conflicts, nil
	}
	before, err := r.tree(ctx, base.Head)
	if err != nil {
		return nil, err
	}
	uncommitted, err := r.changes(ctx, before, base.Commit, false)
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
	old, err := r.entries(ctx, before, names)
	if err != nil {
		return nil, err
	}
	tree, err := r.tree(ctx, head)
	if err != nil {
		return nil, err
	}
	now, err := r.entries(ctx, tree, names)
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

// PreviewUndo says what Undo would do, and touches nothing. After is empty, unless there is nothing to take back.
func (r *Repo) PreviewUndo(ctx context.Context, m centurion.Merged) (Merging, error) {
	r.landing.Lock()
	defer r.landing.Unlock()
	if err := r.undisturbed(true); err != nil {
		return Merging{}, err
	}
	return r.takeBack(ctx, m, true)
}

// Undo takes a merge back: the branch goes back to before if nothing came after it, else a commit that reverts it is added. What is not committed
// stays, three ways; files in which it does not come apart from what is taken back, or in which something else is staged, are named in Overlap and nothing
// is touched; so are later commits that build on the merge, in Conflicts.
// The error has centurion.KindConflict if the person is on another branch, or the merge is no longer in its history.
func (r *Repo) Undo(ctx context.Context, m centurion.Merged) (Merging, error) {
	r.landing.Lock()
	defer r.landing.Unlock()
	if err := r.settle(ctx); err != nil {
		return Merging{}, err
	}
	return r.takeBack(ctx, m, false)
}

func (r *Repo) takeBack(ctx context.Context, m centurion.Merged, dry bool) (Merging, error) {
	h, err := r.Head(ctx)
	if err != nil {
		return Merging{}, err
	}
	u := Merging{Before: h.Commit, Branch: h.Branch}
	refuse := func(msg, hint string) (Merging, error) {
		return u, &centurion.Error{Op: "undo merge", Kind: centurion.KindConflict, Msg: msg, Hint: hint}
	}
	if m.Branch != "" && h.Branch != m.Branch {
		return refuse("the work was merged into "+m.Branch+", and this is "+cmp.Or(h.Branch, "a detached HEAD"), "git switch "+m.Branch)
	}
	switch {
	case h.Commit == m.Before:
		u.After = h.Commit
		return u, nil
	case h.Commit == m.Commit:
		return r.land(ctx, u, m.Before, mine{any: true}, dry)
	}
	if on, err := r.IsAncestor(ctx, m.Commit, h.Commit); err != nil || !on {
		if err != nil && centurion.KindOf(err) == centurion.KindCancelled {
			return u, err
		}
		return refuse("the branch no longer has the commit "+short(m.Commit)+" that the merge made", "git log shows what it has; git revert takes single commits back")
	}
	t, err := r.mergeTrees(ctx, m.Commit, h.Commit, m.Before)
	if err != nil {
		return u, err
	}
	if len(t.conflicts) > 0 {
		u.Conflicts = t.conflicts
		return u, nil
	}
	after, _, err := r.single(ctx, t.tree, "Revert the merge of a mission\n\nThis takes back what came with "+m.Commit+".", h.Commit)
	if err != nil {
		return u, err
	}
	return r.land(ctx, u, after, mine{any: true}, dry)
}

// mine says which uncommitted changes are kept in files that a landing changes; others are an overlap.
type mine struct {
	snapshot string // a commit: those that are as it has them; none if it is empty
	any      bool   // whatever they are
}

// land brings the person's branch, index and files from where they stand to another commit (none if it is empty), or names what is in the way. Uncommitted
// changes in files that would have to be changed stay if they are to be kept and come apart from the new content; other ones are an overlap.
func (r *Repo) land(ctx context.Context, m Merging, after string, keep mine, dry bool) (Merging, error) {
	if after == m.Before {
		m.After = after
		return m, nil
	}
	var err error
	if !dry {
		if after, err = r.signed(ctx, m.Before, after); err != nil {
			return m, err
		}
	}
	if m.Files, err = r.Stat(ctx, m.Before, after); err != nil {
		return m, err
	}
	p, err := r.plan(ctx, m.Before, after, keep)
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
