// Package isolation keeps the writers of a mission apart: the snapshot that its work starts from, the branch on which that work
// is put together, a checkout for each session that writes and a view for those who read; and where all write in the project's own
// directory, the trees before and after each one's work. What is merged is decided elsewhere.
package isolation

import (
	"context"
	"sync"
	"sync/atomic"

	"centurion"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/workspace"
	"centurion/worktree"
)

// Project is the repository, and the history of the files, that all missions of a host share.
type Project struct {
	store      *store.Store
	ws         *workspace.Workspace
	open       func(context.Context) (*worktree.Repo, error)   // nil where there is no repository
	openShadow func(context.Context) (*worktree.Shadow, error) // nil keeps no history

	trees   trees
	opening sync.Mutex                                // held while the repository is opened; protects what follows
	repo    *worktree.Repo                            // nil until it is needed
	parked  map[centurion.Checkout]*worktree.Checkout // of missions that have stopped, by where they are, without Start
}

// NewProject returns a project whose repository and history are opened when they are first needed.
func NewProject(st *store.Store, ws *workspace.Workspace, open func(context.Context) (*worktree.Repo, error),
	openShadow func(context.Context) (*worktree.Shadow, error)) *Project {
	return &Project{store: st, ws: ws, open: open, openShadow: openShadow}
}

// MayRun asks whether a command of the project's own may run, which is no agent's call; what says which it is.
type MayRun func(ctx context.Context, rec centurion.Mission, command, agent, task, what string) error

// Checkouts is where the sessions of one mission work.
type Checkouts struct {
	st      *state.Mission
	project *Project
	mayRun  MayRun
	Ground  *Ground // nil unless its writers have checkouts of their own; set before anything of it runs

	// Wrote says that a tool call of the mission's own agent has named a file that it changed, since this host began to work on it.
	Wrote atomic.Bool

	mu     sync.Mutex            // protects places
	places map[string]*Workplace // by session id
}

// New returns the places of a mission's sessions, before the first of them is taken.
func New(st *state.Mission, project *Project, mayRun MayRun) *Checkouts {
	return &Checkouts{st: st, project: project, mayRun: mayRun, places: map[string]*Workplace{}}
}
