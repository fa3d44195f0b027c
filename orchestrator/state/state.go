// Package state writes the rows and events of missions and tasks. It knows what all rooms of the orchestrator ask of a running mission:
// its identity, its living tasks, and when something has changed. It makes no decisions.
package state

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/store"
)

// Mission is the part of a running mission that all rooms share.
type Mission struct {
	Store   *store.Store
	ID      string
	Profile string // "" is mission
	Cast    *agents.Cast
	Ctx     context.Context         // for all its work; ended by End
	End     context.CancelCauseFunc // ends everything of this mission
	Fences  Fences
	// Spent is the mission as recorded after the last answer, so that budget checks need not read it again.
	Spent atomic.Pointer[centurion.Mission]

	begun  time.Time
	before int64 // earlier working time in milliseconds

	mu      sync.Mutex        // protects the fields below
	changed chan struct{}     // closed and replaced at each change
	runs    map[string]*Run   // by task id, while the task's goroutine lives
	over    *event.BudgetData // the first limit reached
}

// New returns the shared part of a mission at the start of its work.
func New(ctx context.Context, end context.CancelCauseFunc, st *store.Store, rec centurion.Mission, cast *agents.Cast) *Mission {
	m := &Mission{Store: st, ID: rec.ID, Profile: rec.Options.Profile, Cast: cast, Ctx: ctx, End: end,
		begun: time.Now(), before: rec.ElapsedMS, changed: make(chan struct{}), runs: map[string]*Run{}}
	m.Spent.Store(&rec)
	return m
}
