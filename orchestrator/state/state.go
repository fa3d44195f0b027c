// Package state writes the rows and events of missions and tasks, and knows what every other room of the orchestrator asks of
// a running mission: who it is, which of its tasks live, and when something has changed. It decides nothing.
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

// Mission is what all rooms share of one running mission.
type Mission struct {
	Store   *store.Store
	ID      string
	Profile string // "" is mission
	Cast    *agents.Cast
	Ctx     context.Context         // of all its work; ended by End
	End     context.CancelCauseFunc // ends everything of this mission
	Fences  Fences
	// Spent is the mission as it was after the newest answer, so that the budget is looked at without reading it again.
	Spent atomic.Pointer[centurion.Mission]

	begun  time.Time
	before int64 // milliseconds that it had been worked on before

	mu      sync.Mutex        // protects what follows
	changed chan struct{}     // closed and replaced at each change
	runs    map[string]*Run   // by task id, while the task's goroutine lives
	over    *event.BudgetData // the limit that was reached first
}

// New returns what is shared of a mission on which work begins now.
func New(ctx context.Context, end context.CancelCauseFunc, st *store.Store, rec centurion.Mission, cast *agents.Cast) *Mission {
	m := &Mission{Store: st, ID: rec.ID, Profile: rec.Options.Profile, Cast: cast, Ctx: ctx, End: end,
		begun: time.Now(), before: rec.ElapsedMS, changed: make(chan struct{}), runs: map[string]*Run{}}
	m.Spent.Store(&rec)
	return m
}
