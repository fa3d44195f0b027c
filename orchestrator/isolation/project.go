// Package isolation keeps the writers of a mission apart. It owns the snapshot that the work starts from, the branch that collects the
// work, a checkout for each writing session, and a view for readers. Where all sessions write in the project's own directory, it
// records the trees before and after each task. Other packages decide what is merged.
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

// Project is the repository and the file history that all missions of a host share.
type Project struct {
	store      *store.Store
	ws         *workspace.Workspace
	open       func(context.Context) (*worktree.Repo, error)   // nil where there is no repository
	openShadow func(context.Context) (*worktree.Shadow, error) // nil keeps no history

	trees   trees
	opening sync.Mutex                                // held while the repository is opened; protects the fields below
	repo    *worktree.Repo                            // nil until it is needed
	parked  map[centurion.Checkout]*worktree.Checkout // of stopped missions, by location without Start
}

// NewProject returns a project that opens its repository and history on first use.
func NewProject(st *store.Store, ws *workspace.Workspace, open func(context.Context) (*worktree.Repo, error),
	openShadow func(context.Context) (*worktree.Shadow, error)) *Project {
	return &Project{store: st, ws: ws, open: open, openShadow: openShadow}
}

// MayRun asks whether one of the project's own commands may run; what describes the command, since no agent called it.
type MayRun func(ctx context.Context, rec centurion.Mission, command, agent, task, what string) error

// Checkouts are the places where the sessions of one mission work.
type Checkouts struct {
	st      *state.Mission
	project *Project
	mayRun  MayRun
	Ground  *Ground // nil unless the mission is isolated; set before any session runs

	// Wrote is set once the mission's own agent has changed a named file, since this host took over the mission.
	Wrote atomic.Bool

	mu     sync.Mutex            // protects places
	places map[string]*Workplace // by session id
}

// New returns the places of a mission, before any session uses one.
func New(st *state.Mission, project *Project, mayRun MayRun) *Checkouts {
	return &Checkouts{st: st, project: project, mayRun: mayRun, places: map[string]*Workplace{}}
}
