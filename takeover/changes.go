package takeover

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"centurion"
	"centurion/worktree"
)

// Unmerged finds the branches of tasks that ended without a merge. It skips them if git cannot be read.
func Unmerged(ctx context.Context, state string, m centurion.Mission, tasks []centurion.Task) map[string]string {
	out := map[string]string{}
	family, ok := strings.CutSuffix(m.Branch, "mission")
	if !ok || m.Base == nil {
		return out
	}
	repo, err := worktree.Open(ctx, worktree.Options{Dir: m.Directory, Home: filepath.Join(state, "worktrees")})
	if err != nil {
		return out
	}
	defer repo.Close()
	for _, t := range tasks {
		if t.Status != centurion.TaskBlocked && t.Status != centurion.TaskFailed && t.Status != centurion.TaskCancelled {
			continue
		}
		if tip, err := repo.Tip(ctx, family+t.ID); err == nil && tip != "" && tip != m.Base.Commit {
			out[t.ID] = family + t.ID
		}
	}
	return out
}

// Changes lists the files changed by a mission: completely from git, otherwise as recorded by its tasks.
func Changes(ctx context.Context, state string, m centurion.Mission, tasks []centurion.Task) (files []centurion.FileDiff, why string) {
	if m.Base != nil && m.Branch != "" {
		files, err := diffBranch(ctx, state, m)
		if err == nil {
			return files, ""
		}
		why = "What was changed cannot be read from git: " + err.Error()
	}
	seen := map[string]int{}
	add := func(f centurion.FileChange) {
		i, ok := seen[f.Path]
		if !ok {
			seen[f.Path] = len(files)
			files = append(files, centurion.FileDiff{FileChange: f})
			return
		}
		files[i].Added, files[i].Deleted, files[i].Status = files[i].Added+f.Added, files[i].Deleted+f.Deleted, f.Status
	}
	for _, t := range tasks {
		for _, l := range t.Landed {
			for _, f := range l.Files {
				add(f)
			}
		}
		if len(t.Landed) > 0 {
			continue
		}
		for _, name := range t.Files {
			if _, ok := seen[name]; !ok {
				add(centurion.FileChange{Path: name, Status: "changed"})
			}
		}
	}
	return files, why
}

func diffBranch(ctx context.Context, state string, m centurion.Mission) ([]centurion.FileDiff, error) {
	repo, err := worktree.Open(ctx, worktree.Options{Dir: m.Directory, Home: filepath.Join(state, "worktrees")})
	if err != nil {
		return nil, err
	}
	tip, err := repo.Tip(ctx, m.Branch)
	if err == nil && tip == "" {
		err = &centurion.Error{Op: "read branch", Kind: centurion.KindNotFound, Msg: "the branch " + m.Branch + " is gone"}
	}
	var files []centurion.FileDiff
	if err == nil {
		files, err = repo.Diff(ctx, m.Base.Commit, tip)
	}
	return files, errors.Join(err, repo.Close())
}
