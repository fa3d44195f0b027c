package revert

import (
	"context"
	"fmt"
	"slices"

	"centurion"
	"centurion/orchestrator/isolation"
	"centurion/workspace"
	"centurion/worktree"
)

// Files moves the project's own files back to before turns of a conversation, and to after them again.
type Files struct {
	Project   *isolation.Project
	Workspace *workspace.Workspace
}

// maxPatch limits the patch in a record, in bytes.
const maxPatch = 64 << 10

// Plan determines which files go back when these messages are reverted, oldest first. It moves nothing.
func (f *Files) Plan(ctx context.Context, messages []centurion.Message) (r centurion.Revert, err error) {
	r = centurion.Revert{Message: messages[0].ID, Moving: true}
	var steps []worktree.Written
	for _, m := range messages {
		for _, l := range m.Wrote {
			steps = append(steps, worktree.Written{Before: l.Before, After: l.Commit, Paths: centurion.Paths(l.Files)})
		}
	}
	if len(steps) == 0 {
		return r, nil
	}
	return r, f.history(ctx, func(s *worktree.Shadow) error {
		now, err := s.Save(ctx, "before a revert")
		if err != nil {
			return err
		}
		var back []worktree.Written
		if back, r.Kept, err = s.Unwind(ctx, steps, now); err != nil {
			return err
		}
		for _, w := range back {
			l := centurion.Landed{Before: w.Before, Commit: w.After, Time: centurion.Now()}
			for _, name := range w.Paths {
				l.Files = append(l.Files, centurion.FileChange{Path: name, Status: "modified"})
			}
			patch, err := s.Patch(ctx, w.After, w.Before, false, w.Paths...)
			if err != nil {
				return err
			}
			r.Files, r.Patch = append(r.Files, l), r.Patch+patch
		}
		if len(r.Patch) > maxPatch {
			r.Patch = ""
		}
		return nil
	})
}

// Move moves files to before what they are recorded with, or to after it again. Left are those that somebody has changed, or for which
// there is no place: they stay as they are. After a crash, again, a file that is missing was being replaced.
func (f *Files) Move(ctx context.Context, files []centurion.Landed, again, crashed bool) (left []string, err error) {
	if len(files) == 0 {
		return nil, nil
	}
	return left, f.history(ctx, func(s *worktree.Shadow) error {
		for _, l := range files {
			from, to := l.Before, l.Commit
			if again {
				from, to = to, from
			}
			paths := centurion.Paths(l.Files)
			_, changed, err := s.Restore(ctx, from, to, false, paths...)
			if err != nil {
				return err
			}
			if len(changed) == 0 {
				continue
			}
			if crashed {
				if changed, err = f.replace(ctx, s, from, to, changed); err != nil {
					return err
				}
			}
			paths = slices.DeleteFunc(paths, func(name string) bool { return slices.Contains(changed, name) })
			left = append(left, changed...)
			if len(paths) == 0 {
				continue
			}
			_, more, err := s.Restore(ctx, from, to, false, paths...)
			if err == nil && len(more) > 0 {
				err = &centurion.Error{Op: "revert", Kind: centurion.KindConflict, Msg: fmt.Sprintf("%s changed meanwhile", more[0]), Hint: "revert again"}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// replace finishes replacing those of the files that are missing, and returns the others.
func (f *Files) replace(ctx context.Context, s *worktree.Shadow, from, to string, files []string) (left []string, err error) {
	var missing []string
	for _, name := range files {
		if _, err := f.Workspace.Stat(name); centurion.KindOf(err) == centurion.KindNotFound {
			missing = append(missing, name)
		} else {
			left = append(left, name)
		}
	}
	if len(missing) == 0 {
		return left, nil
	}
	_, blocked, err := s.Restore(ctx, from, to, true, missing...)
	return append(left, blocked...), err
}

// Written lists what was changed between the first and the last of some records, in the files that they name.
func (f *Files) Written(ctx context.Context, records []centurion.Landed) (diffs []centurion.FileDiff, err error) {
	if len(records) == 0 {
		return nil, nil
	}
	var paths []string
	for _, l := range records {
		paths = append(paths, centurion.Paths(l.Files)...)
	}
	return diffs, f.history(ctx, func(s *worktree.Shadow) (err error) {
		diffs, err = s.Diff(ctx, records[0].Before, records[len(records)-1].Commit, paths...)
		return err
	})
}

func (f *Files) history(ctx context.Context, do func(*worktree.Shadow) error) error {
	return f.Project.WithHistory(ctx, func(s *worktree.Shadow) error {
		if s == nil {
			return &centurion.Error{Op: "revert", Kind: centurion.KindConflict, Msg: "this host keeps no history of the project's files", Hint: "install git"}
		}
		return do(s)
	})
}
