package host

import (
	"context"
	"path/filepath"

	"centurion"
	"centurion/workspace"
	"centurion/worktree"
)

// worktrees opens the git repository of a project. Its checkouts are kept beside the project's state. alone leaves the
// Co-Authored-By trailer out of commits.
func worktrees(p Place, ws *workspace.Workspace, run centurion.Runner, alone bool) func(context.Context) (*worktree.Repo, error) {
	return func(ctx context.Context) (*worktree.Repo, error) {
		return worktree.Open(ctx, worktree.Options{Dir: ws.Dir(), Home: filepath.Join(p.State, "checkouts"), Runner: run, Mark: markOf(p, run), Alone: alone})
	}
}

// markOf returns the mark of a host's git; without a runner it is a command's own, which no next host may end.
func markOf(p Place, run centurion.Runner) string {
	if run == nil {
		return ""
	}
	return p.Mark()
}

// shadow opens the history of a project's files that is kept beside the project's state.
func shadow(p Place, ws *workspace.Workspace, run centurion.Runner) func(context.Context) (*worktree.Shadow, error) {
	return func(ctx context.Context) (*worktree.Shadow, error) {
		return worktree.OpenShadow(ctx, worktree.Options{Dir: ws.Dir(), Home: filepath.Join(p.State, "shadow"), Mark: markOf(p, run)})
	}
}
