package worktree

import (
	"cmp"
	"context"
	"slices"
)

// Written is a step in which files of a directory were written: the trees of its [Shadow] before and after it.
type Written struct {
	Before, After string
	Paths         []string
}

// unwound is how far one file goes back.
type unwound struct {
	Written
	is, was entry // at After and at Before
	kept    bool  // somebody else has changed it before the steps so far
}

// Unwind determines how far files go back that were written in these steps, oldest first, when the directory is as in the tree now. A file
// goes back to before the first step after which nobody else has changed it, from Before to After of the result. Kept are the files that
// somebody else has changed after a step: they stay as they are, or as they were then.
func (s *Shadow) Unwind(ctx context.Context, steps []Written, now string) (back []Written, kept []string, err error) {
	files := map[string]*unwound{}
	for _, step := range slices.Backward(steps) {
		changed, err := s.between(ctx, step.Before, step.After, step.Paths)
		if err != nil {
			return nil, nil, err
		}
		since, err := s.between(ctx, step.After, now, step.Paths)
		if err != nil {
			return nil, nil, err
		}
		for name, c := range changed {
			f := files[name]
			if f == nil {
				_, later := since[name]
				f = &unwound{Written{After: step.After}, c.to, c.to, later}
				files[name] = f
			}
			if f.kept = f.kept || f.was != c.to; !f.kept {
				f.Before, f.was = step.Before, c.from
			}
		}
	}
	for name, f := range files {
		if f.kept {
			kept = append(kept, name)
		}
		if f.was == f.is {
			continue
		}
		i := slices.IndexFunc(back, func(w Written) bool { return w.Before == f.Before && w.After == f.After })
		if i < 0 {
			i, back = len(back), append(back, f.Written)
		}
		back[i].Paths = append(back[i].Paths, name)
	}
	for _, w := range back {
		slices.Sort(w.Paths)
	}
	slices.SortFunc(back, func(a, b Written) int { return cmp.Compare(a.Paths[0], b.Paths[0]) })
	slices.Sort(kept)
	return back, kept, nil
}

// between are the changes of files between two trees, by path.
func (s *Shadow) between(ctx context.Context, from, to string, paths []string) (map[string]change, error) {
	all, err := s.repo.raw(ctx, from, to)
	out := map[string]change{}
	for _, c := range all {
		if slices.Contains(paths, c.Path) {
			out[c.Path] = c
		}
	}
	return out, err
}
