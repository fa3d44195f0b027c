// Package plan is the todo.md of one mission: where it is, how it is read and marked, what others have changed in it and what is
// wrong with it. Its grammar is workspace/todo; whether an item is proven is decided above.
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
	// ownsTodo says that the file is recorded as this mission's.
	ownsTodo atomic.Bool

	telling      sync.Mutex // held while the plan is read and told; protects what follows
	toldPlan     string     // the plan's items when they were last told
	toldCounts   todo.Counts
	toldMistakes ToldMistakes
	toldEdits    PlanEdits // what others have changed, as editsWord tells it
	editsWord    string    // the delivery that does
}

// New returns the plan of a mission that has it in file.
func New(st *state.Mission, iso *isolation.Checkouts, watch Watch, file *workspace.TodoFile) *Plan {
	p := &Plan{st: st, iso: iso, watch: watch}
	p.File = newPlanFile(file, p.ownTodo)
	return p
}

// Desk gives a new mission the place for its plan, and the plan that was there another one.
type Desk struct {
	store  *store.Store
	ws     *workspace.Workspace
	planOf func(mission string) *File // of a mission that is being worked on, else nil
}

// NewDesk returns the desk of a project.
func NewDesk(st *store.Store, ws *workspace.Workspace, planOf func(mission string) *File) *Desk {
	return &Desk{store: st, ws: ws, planOf: planOf}
}

// Detail is how much the texts that sessions share may say now. Where the plan cannot be read that is as much as ever.
func (p *Plan) Detail() workspace.Detail {
	v, err := p.Read()
	if err != nil || v.Doc == nil {
		return workspace.Early
	}
	c := v.Doc.Counts()
	return workspace.Level(c.Done, c.Total()-c.Cancelled)
}
