package takeover

import (
	"context"
	"slices"

	"centurion/text"
	"centurion/workspace/todo"
	"centurion/worktree"
)

// otherWays adds to a refused merge the alternatives that would succeed now: the items that do not touch the files in the way. It tries
// them and names no others.
func (w *workDone) otherWays(ctx context.Context, plan *todo.Doc, p picked, q MergeRequest, got worktree.Merging, r *MergeReport) error {
	if len(q.Only) > 0 && r.Refused.Next == wholeInstead(w.mission.ID) {
		if err := w.checkWhole(ctx, q, r); err != nil {
			return err
		}
	}
	names, err := w.clearItems(ctx, plan, p, q, got)
	if err != nil || len(names) == 0 {
		return err
	}
	q.Only, q.Unfinished = names, false
	r.Refused.Next += "; or merge now what does not touch these files: " + mergeCommand(w.mission.ID, q)
	return nil
}

// wholeInstead is the advice when items cannot be merged without others.
func wholeInstead(mission string) string {
	return buildsOn + ", or merge all: centurion merge " + mission
}

const buildsOn = "name the items whose work it builds on as well"

// checkWhole removes the advice to merge everything if that would fail.
func (w *workDone) checkWhole(ctx context.Context, q MergeRequest, r *MergeReport) error {
	all := MergeRequest{Squash: q.Squash, Unfinished: len(r.Unfinished) > 0}
	p, err := w.choose(ctx, all)
	if err != nil {
		return err
	}
	got, err := w.repo.Preview(ctx, p.options)
	if err != nil {
		return err
	}
	r.Refused.Next = buildsOn
	if got.Clear() {
		r.Refused.Next += ", or merge all: " + mergeCommand(w.mission.ID, all)
	}
	return nil
}

// clearItems finds the items of a refused merge that can be merged without those that touch files in the way; none if there are no such
// items.
func (w *workDone) clearItems(ctx context.Context, plan *todo.Doc, p picked, q MergeRequest, got worktree.Merging) ([]string, error) {
	const rounds = 5 // an item may turn out to depend on one that was left out; each round costs a merge in memory
	avoid := map[string]bool{}
	for range rounds {
		known := len(avoid)
		for _, name := range got.Overlap {
			avoid[name] = true
		}
		for _, c := range got.Conflicts {
			avoid[c.Path] = true
		}
		if len(avoid) == known {
			return nil, nil
		}
		names, commits := w.besides(plan, p.commits, avoid)
		if len(commits) == 0 || len(commits) == len(p.commits) {
			return nil, nil
		}
		p.options.Only, p.options.Squash = commits, q.Squash
		var err error
		if got, err = w.repo.Preview(ctx, p.options); err != nil {
			return nil, err
		}
		if got.Clear() {
			if len(got.Files) == 0 {
				return nil, nil
			}
			return names, nil
		}
	}
	return nil, nil
}

// besides lists the items of the given commits that touch none of the files to avoid and depend on no item that does, with their
// commits, oldest first.
func (w *workDone) besides(plan *todo.Doc, commits []string, avoid map[string]bool) (names, chosen []string) {
	touches, has := map[string]bool{}, map[string]bool{}
	item := map[string]string{} // by commit
	for _, t := range w.tasks {
		name := t.Name()
		if !t.Undone.IsZero() {
			continue
		}
		for _, l := range landed(t) {
			if item[l.Commit] = name; !slices.Contains(commits, l.Commit) {
				continue
			}
			has[name] = true
			for _, f := range l.Files {
				touches[name] = touches[name] || avoid[f.Path] || f.Old != "" && avoid[f.Old]
			}
		}
	}
	stays := func(name string) bool {
		return touches[name] || slices.ContainsFunc(before(plan, name), func(b string) bool { return touches[b] })
	}
	for _, c := range commits {
		if name := item[c]; has[name] && !stays(name) {
			chosen = append(chosen, c)
			names = text.Union(names, name)
		}
	}
	return names, chosen
}
