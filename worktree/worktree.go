// Package worktree keeps writers apart in a git repository: the snapshot that a mission starts from, isolated checkouts
// from a pool, commits, merges and the person's side of them. It runs the git program, and nothing of what a repository
// configures runs with it: no hooks, no fsmonitor, no signing, no filters that the person has not installed for all their repositories. It owns no policy: who writes where,
// when something is merged and which check guards it is the orchestrator's business.
//
// The person's index, branch and working files are touched by [Repo.Merge] and [Repo.Undo] only.
package worktree

import (
	"context"

	"centurion"
)

// Options says how to open a repository.
type Options struct {
	Dir    string           // the project: the top of a repository's working tree or a directory below it
	Home   string           // where checkouts, their pool and temporary indexes are kept; absolute, outside the project
	Runner centurion.Runner // runs setup commands, confined as any other; nil where there are none
	Mark   string           // what git and all that it starts have as [centurion.HostVariable]; empty outside of a host
	Keep   int              // checkouts that stay in the pool when nobody uses them; 0 means 8
	Alone  bool             // commits carry no Co-Authored-By trailer
}

// Head is where the person stands.
type Head struct {
	Commit string // empty in a repository without commits
	Branch string // without refs/heads/; empty if detached
}

// Want is a checkout that somebody needs.
type Want struct {
	Branch string   // to be made, without refs/heads/; empty for one that nobody writes to
	Commit string   // what it starts from
	Setup  []string // commands that make it usable, run if they were not run in it before, or a lock file has changed since
}

// Commit is one commit.
type Commit struct {
	ID, Tree, Parent string
	Files            []centurion.FileChange
}

// Conflict is a file that two sides have changed so that neither can be kept alone.
type Conflict struct {
	Path string // relative to the repository's top
	Kind string // as git says it, in words: "content", "modify/delete", "rename/rename", "binary", "add/add" …
	Text string // the file with conflict markers, cut where it is long; empty for a binary one
	// Uncommitted says that the work builds on changes in this file that were not committed when the mission began, and that the
	// person's branch does not have. Only Merge and Preview tell it.
	Uncommitted bool
}

// Rebased is a commit laid onto another one.
type Rebased struct {
	Commit    string     // empty if there are conflicts
	Tree      string     // with conflict markers, if there are any
	Conflicts []Conflict // sorted by path
}

// MergeOptions is how finished work is put on the person's branch.
type MergeOptions struct {
	Base    centurion.Base
	Tip     string   // of the mission's branch
	Only    []string // commits of the mission's branch, oldest first, if not all of them; they are laid on HEAD one by one
	Squash  bool
	Message string // of the merge or the squashed commit
	Again   bool   // also where HEAD has the commits in its history already: what they did was taken back by a later one
	Keep    bool   // also uncommitted changes that the snapshot has not, where they come apart from the work
}

// Merging is what a merge would do, or has done.
type Merging struct {
	Before, After string // the person's commit
	Branch        string // empty if detached
	Files         []centurion.FileChange
	// Overlap lists files with uncommitted work of the person that the merge would have to change; Conflicts those that the
	// person's newer commits and the mission's work do not agree on. With either, nothing was touched.
	Overlap   []string
	Conflicts []Conflict
	Stash     string // the git command that puts the work in all files of Overlap aside; empty if none does
}

// lifecycle of a checkout, and who may call what, in one place:
//
//	Take ──▶ (written to) ──▶ Commit ──▶ Start over on a newer tip ──▶ … ──▶ Release
//
// Nothing is lost on any of these ways: Release commits what is dirty to the branch first, and a branch is deleted only when
// the commit that it is released into has it as an ancestor.
var _ context.Context
