// Package plan owns the todo.md of one mission: its path, reading and marking it, changes by others, and its mistakes. Its grammar is
// in workspace/todo; packages above decide whether an item is proven.
package plan

import (
	"context"
	"sync"
	"sync/atomic"

	"centurion/orchestrator/isolation"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// Watch calls changed whenever a plan's file may have changed, until ctx ends.
type Watch func(ctx context.Context, file *workspace.TodoFile, changed func()) error

// Plan is the plan of one mission.
type Plan struct {
	st    *state.Mission
	iso   *isolation.Checkouts
	watch Watch
	File  *File
	// ownsTodo is true once the file is recorded as this mission's.
	ownsTodo atomic.Bool

	telling      sync.Mutex // held while the plan is read and published; protects the fields below
	toldPlan     string     // the plan's items when last published
	toldCounts   todo.Counts
	toldMistakes ToldMistakes
	toldEdits    PlanEdits // changes by others, as in editsWord
	editsWord    string    // the pending notice of them
}

// New returns the plan of a mission, stored in file.
func New(st *state.Mission, iso *isolation.Checkouts, watch Watch, file *workspace.TodoFile) *Plan {
	p := &Plan{st: st, iso: iso, watch: watch}
	p.File = newPlanFile(file, p.ownTodo)
	return p
}

// Desk finds a place for a new mission's plan, and moves an existing plan away.
type Desk struct {
	store  *store.Store
	ws     *workspace.Workspace
	planOf func(mission string) *File // of a running mission, otherwise nil
}

// NewDesk returns the desk of a project.
func NewDesk(st *store.Store, ws *workspace.Workspace, planOf func(mission string) *File) *Desk {
	return &Desk{store: st, ws: ws, planOf: planOf}
}

// Detail is the current size limit of the shared texts. With an unreadable plan it is the largest.
func (p *Plan) Detail() workspace.Detail {
	v, err := p.Read()
	if err != nil || v.Doc == nil {
		return workspace.Early
	}
	c := v.Doc.Counts()
	return workspace.Level(c.Done, c.Total()-c.Cancelled)
}
