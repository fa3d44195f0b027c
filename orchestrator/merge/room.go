// Package merge proves a mission's work and puts it on the mission's branch: it runs checks and keeps their receipts, merges one batch
// after the other, and says why work is returned. Who writes, and what happens to returned work, is decided elsewhere.
package merge

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"centurion"
	"centurion/orchestrator/approval"
	"centurion/orchestrator/claims"
	"centurion/orchestrator/frozen"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/speculation"
	"centurion/orchestrator/state"
	"centurion/verify"
	"centurion/worktree"
)

// Prover is the only way to run a mission's check and keep its receipt. If the writers have their own checkouts it runs on commits in a
// checkout for checks, otherwise in the project's directory while no tool writes.
type Prover struct {
	st      *state.Mission
	iso     *isolation.Checkouts
	plan    *plan.Plan
	may     *approval.Approvals
	checker *verify.Checker
	dir     string                                          // the project's
	alone   func(ctx context.Context, f func() error) error // runs f while no tool call of the mission writes

	bench   *speculation.Bench                                       // runs every check of an isolated mission
	ahead   func(ctx context.Context, most int) []speculation.Wanted // what the queue will need
	placing sync.Mutex                                               // protects free
	free    []*worktree.Checkout                                     // where no check runs now; kept, because checks build and fetch things

	turn  *semaphore.Weighted          // of one; held while merging or asking for a check; protects the fields below
	known map[string]centurion.Receipt // results of the mission's own checks, by command and tree
	// unkept are receipts that the next transaction stores: see update.
	unkept []unkeptReceipt
}

// NewProver returns the prover of a mission; dir is the project's directory, alone runs a function while no tool call writes, and at most most
// checks run at once.
func NewProver(st *state.Mission, iso *isolation.Checkouts, plan *plan.Plan, may *approval.Approvals, checker *verify.Checker, dir string,
	alone func(ctx context.Context, f func() error) error, most int) *Prover {
	p := &Prover{st: st, iso: iso, plan: plan, may: may, checker: checker, dir: dir, alone: alone,
		turn: semaphore.NewWeighted(1), known: map[string]centurion.Receipt{}}
	p.bench = speculation.New(most, p.run, func(ctx context.Context, w speculation.Wanted) bool { return may.Allows(ctx, w.Command, w.Of.Agent) })
	return p
}

// Queue puts finished work on the mission's branch: one round at a time, first come, first served. The holder of the turn does the
// work, also for those behind it if there are many.
type Queue struct {
	*Prover
	returns int              // how often work may be returned before a person, or the delegating agent, decides
	claims  *claims.Registry // the others in the same directory
	frozen  *frozen.Desk
	own     sync.Mutex // held while landing the work of the mission's own agent

	now     speculation.Course // of the round that goes on; protected by the turn
	mu      sync.Mutex         // protects waiting, and the taken field of its elements
	waiting []*Work
}

// NewQueue returns the merge queue of a mission. returns is how often work may be returned before others decide.
func NewQueue(p *Prover, c *claims.Registry, f *frozen.Desk, returns int) *Queue {
	q := &Queue{Prover: p, claims: c, frozen: f, returns: returns}
	p.ahead = q.foresee
	return q
}

// Waiting returns how many landings are waiting or being merged.
func (m *Queue) Waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiting)
}

// Hold blocks all merging and checking until the returned function is called.
func (m *Prover) Hold(ctx context.Context) (release func(), err error) {
	if err := m.turn.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	return func() { m.turn.Release(1) }, nil
}
