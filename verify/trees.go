package verify

import (
	"context"

	"centurion"
)

// Trees provides the git trees for a proof and the only checkout where checks run.
type Trees interface {
	// Lay sets the checkout to a tree or commit and returns the project's directory in it. Ignored files stay, so that dependencies need not be fetched
	// again.
	Lay(ctx context.Context, tree string) (dir string, err error)
	// Changed lists tracked files that differ from the last laid tree.
	Changed(ctx context.Context) ([]string, error)
	// Diff lists the changes between two trees or commits.
	Diff(ctx context.Context, from, to string) ([]centurion.FileDiff, error)
	// Read returns a file of a tree. The error has centurion.KindNotFound if there is none.
	Read(ctx context.Context, tree, path string) ([]byte, error)
	// Without makes a tree of `to` with the hunks that out selects reverted to `from`; see the same method of a repository.
	Without(ctx context.Context, from, to string, out func(f centurion.FileDiff, h *centurion.Hunk) bool) (tree, removed string, err error)
	// With makes a tree in which these files have this content; nil removes a file.
	With(ctx context.Context, tree string, files map[string][]byte) (string, error)
}

// Work is the work that a receipt has to prove.
type Work struct {
	Command    string
	Before     string // the tree or commit before the work
	After      string // tree or commit with the work
	Regression bool   // the check must only pass before and after
}
