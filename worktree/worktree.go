// Package worktree isolates writers in a git repository: the snapshot that a mission starts from, checkouts from a pool, commits,
// merges and the person's side of them. It runs the git program without anything configured by a repository: no hooks, no fsmonitor, no
// signing, no filters that the person has not installed globally. It owns no policy: the orchestrator decides who writes where, when
// work is merged, and which check guards it.
//
// Only [Repo.Merge] and [Repo.Undo] touch the person's index, branch and working files.
package worktree

import "centurion"

// Options are the options for opening a repository.
type Options struct {
	Dir    string           // the project: a repository's working tree or a directory in it
	Home   string           // for checkouts, their pool and temporary indexes; absolute, outside the project
	Runner centurion.Runner // runs setup commands, confined as any other; nil if there are none
	Mark   string           // passed to git and its child processes as [centurion.HostVariable]; empty outside of a host
	// Workspaces says how checkouts are made: one of the constants, "" means [WorkspacesAuto].
	Workspaces string
	Keep       int  // unused checkouts to keep in the pool; 0 means 8
	Alone      bool // commits have no Co-Authored-By trailer
}

// How checkouts are made.
const (
	WorkspacesAuto     = "auto"     // of layers if they can be mounted
	WorkspacesOverlay  = "overlay"  // of layers, else not at all
	WorkspacesCheckout = "checkout" // with all files
)

// Head is the person's HEAD.
type Head struct {
	Commit string // empty in a repository without commits
	Branch string // without refs/heads/; empty if detached
}

// Want describes a requested checkout.
type Want struct {
	Branch string   // created, without refs/heads/; empty for a read-only one
	Commit string   // the commit to start from
	Setup  []string // setup commands; skipped if they were run in it before and no lock file has changed since
	Check  bool     // its commands are checks: see [centurion.Command.Check]
}

// Commit is one commit.
type Commit struct {
	ID, Tree, Parent string
	Files            []centurion.FileChange
}

// Conflict is a file with conflicting changes of two sides.
type Conflict struct {
	Path string // relative to the repository's top
	Kind string // as named by git: "content", "modify/delete", "rename/rename", "binary", "add/add" …
	Text string // the file with conflict markers, shortened if it is long; empty for a binary one
	// Uncommitted means that the work builds on changes of this file that were uncommitted when the mission began and are not on the
	// person's branch. Only Merge and Preview set it.
	Uncommitted bool
}

// Rebased is the result of rebasing a commit.
type Rebased struct {
	Commit    string     // empty if there are conflicts
	Tree      string     // with conflict markers, if any
	Conflicts []Conflict // sorted by path
}

// MergeOptions describe a merge of finished work into the person's branch.
type MergeOptions struct {
	Base    centurion.Base
	Tip     string   // of the mission's branch
	Only    []string // commits of the mission's branch, oldest first, if not all of them; they are applied to HEAD one by one
	Squash  bool
	Message string // of the merge or the squashed commit
	Again   bool   // even if HEAD has the commits in its history, because a later commit reverted them
	Keep    bool   // keep also uncommitted changes that are not in the snapshot, if they can be merged with the work
}

// Merging is the result of a merge, or of its preview.
type Merging struct {
	Before, After string // the person's commit
	Branch        string // empty if detached
	Files         []centurion.FileChange
	// Overlap lists files with uncommitted changes of the person that the merge would change; Conflicts those where the person's newer
	// commits and the mission's work conflict. With either, nothing was changed.
	Overlap   []string
	Conflicts []Conflict
	Stash     string // the git command that stashes all files of Overlap; empty if there is none
}
