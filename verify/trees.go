package verify

import (
	"context"

	"centurion"
)

// Trees gives a proof its git trees and the one checkout where checks run.
type Trees interface {
	// Lay brings the checkout to a tree or commit and returns the project's directory in it. Ignored files stay: dependencies need not be
	// fetched anew.
	Lay(ctx context.Context, tree string) (dir string, err error)
	// Changed lists tracked files that differ from what was laid last.
	Changed(ctx context.Context) ([]string, error)
	// Diff lists what changed between two trees or commits.
	Diff(ctx context.Context, from, to string) ([]centurion.FileDiff, error)
	// Read returns a file of a tree; an error of centurion.KindNotFound if there is none.
	Read(ctx context.Context, tree, path string) ([]byte, error)
	// Without makes a tree of to in which the hunks that out chooses are as they were in from; see the same method of a repository.
	Without(ctx context.Context, from, to string, out func(f centurion.FileDiff, h *centurion.Hunk) bool) (tree, removed string, err error)
	// With makes a tree in which these files have this content; nil takes a file out.
	With(ctx context.Context, tree string, files map[string][]byte) (string, error)
}

// Work is the work that a receipt is to prove.
type Work struct {
	Command    string
	Before     string // tree or commit that the work stands on
	After      string // tree or commit with the work
	Regression bool   // the check must only pass before and after
}
