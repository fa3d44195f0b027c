// Package merge proves the work of a mission and puts it on the mission's branch: it runs checks and keeps their receipts, merges one
// batch after the other, and says why work goes back to who did it. Who writes, and what becomes of work that goes back, is decided elsewhere.
package merge

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"centurion"
	"centurion/orchestrator/approval"
	"centurion/orchestrator/claims"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/verify"
	"centurion/worktree"
)

// Prover is the one way to run a check of a mission and to keep its receipt. Where the writers have checkouts of their own it runs on
// commits in a checkout for checks, else in the project's directory while nobody writes.
type Prover struct {
	st      *state.Mission
	iso     *isolation.Checkouts
	plan    *plan.Plan
	may     *approval.Approvals
	checker *verify.Checker
	dir     string                                          // the project's
	alone   func(ctx context.Context, f func() error) error // runs f while no tool call of the mission writes

	turn *semaphore.Weighted // of one; held by who merges or checks. It protects what follows
	// bench is the checkout in which checks run. It is kept, so that what a check builds or fetches is there for the next.
	bench *worktree.Checkout
	known map[string]centurion.Receipt // what the mission's own checks said, by command and tree
	// unkept are receipts that the next transaction stores: see update.
	unkept []unkeptReceipt
}

// NewProver returns the prover of a mission; dir is the project's directory, and alone runs a function while no tool call writes.
func NewProver(st *state.Mission, iso *isolation.Checkouts, plan *plan.Plan, may *approval.Approvals, checker *verify.Checker, dir string,
	alone func(ctx context.Context, f func() error) error) *Prover {
	return &Prover{st: st, iso: iso, plan: plan, may: may, checker: checker, dir: dir, alone: alone,
		turn: semaphore.NewWeighted(1), known: map[string]centurion.Receipt{}}
}

// Queue puts finished work on the mission's branch: one round at a time, first come, first served. Whoever has the turn does the work,
// also for those who wait behind it if they are many.
type Queue struct {
	*Prover
	returns int              // how often work may come back before a person, or whoever has handed it out, decides
	claims  *claims.Registry // who else works in the same directory
	own     sync.Mutex       // held while the work of the mission's own agent is landed

	mu      sync.Mutex // protects waiting, and taken of those in it
	waiting []*Work
}

// NewQueue returns the merge queue of a mission. returns is how often work may come back before somebody decides.
func NewQueue(p *Prover, c *claims.Registry, returns int) *Queue {
	return &Queue{Prover: p, claims: c, returns: returns}
}

// Waiting returns how many wait to be merged, those who are being merged included.
func (m *Queue) Waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiting)
}

// Hold keeps everybody from merging and checking until the returned function is called.
func (m *Prover) Hold(ctx context.Context) (release func(), err error) {
	if err := m.turn.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	return func() { m.turn.Release(1) }, nil
}
