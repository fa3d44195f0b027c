// Package budget bounds what a mission spends before it is spent.
//
// What a mission may spend is divided: limit = spent + held + free. Each conversation has an account. A task holds a portion
// from when it is started ([Reserves.Spawn], [Reserves.Cover]); each request is covered, with the most that it can cost, before
// it is made ([Reserves.Request]); and what it did not spend is free again when it has ended ([Reserves.Settle]). For whom
// there is not enough waits until somebody gives something back. When everybody waits the limit is reached.
//
// The package keeps nothing: after a restart the division is made anew from what is recorded as spent. Tool calls and time
// are limited elsewhere.
package budget

import (
	"fmt"
	"sync"
	"time"

	"centurion"
)

// Reserves is the budget of a running mission with those who wait for something in it. Requests of conversations that are
// at work go before tasks that are to be started; who has waited longest goes first among those for whom there is enough.
// Its methods may be called from several goroutines. Only Request and Cover wait.
type Reserves struct {
	over func(Dim) error // stops the mission at a limit; called without mu

	mu      sync.Mutex // protects what follows
	ledger  ledger
	resting map[string]int // accounts that wait for somebody else, by how many of their calls do; they neither spend nor give back
	waiting []*claimant
	stuck   *time.Timer // runs while everybody waits
}

// New divides what a mission may still spend. At a limit over is called, which stops the mission and returns why; it may call
// the Reserves.
func New(m centurion.Mission, over func(Dim) error) *Reserves {
	o := m.Options
	b := &Reserves{over: over, resting: map[string]int{}}
	b.ledger.limit = Amount{amountOf(centurion.Usage{USD: o.MaxCost}, 0)[USD], o.MaxTokens, int64(o.MaxRounds)}
	b.ledger.spent = amountOf(m.Usage, m.Rounds)
	if m.Usage.Unpriced { // its cost is not known
		b.ledger.limit[USD] = 0
	}
	return b
}

// Open makes the account of a conversation that is not at work.
func (b *Reserves) Open(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.open(id, Amount{}, Amount{})
	b.resting[id] = 1
}

// Spawn makes an account for a task that is launched and reserves its portion, unless others wait before it or it does not
// fit. It rests until the task has a slot. A task that is launched again while it still runs has an account more.
func (b *Reserves) Spawn(t centurion.Task, portion Amount) (account string, covered bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	account = fmt.Sprintf("%s/%d", t.ID, b.ledger.opened)
	b.ledger.open(account, Own(t.Budget), amountOf(t.Usage, t.Rounds))
	b.resting[account] = 1
	return account, len(b.waiting) == 0 && b.ledger.spawn(account, portion) == dims
}

// Close ends an account: what it holds is free again.
func (b *Reserves) Close(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.close(id)
	delete(b.resting, id)
	b.serve(false)
}

// Rest says that an account's conversation waits for somebody else, so that nothing comes back from it. Each Rest is followed
// by a Wake.
func (b *Reserves) Rest(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resting[id]++
	b.serve(false)
}

// Wake says that an account's conversation goes on.
func (b *Reserves) Wake(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resting[id]--
	b.serve(false)
}

// Settle ends the request of an account whose answer has been paid for: of what was held for it, what was not spent is free
// again. The mission and the task, the zero one for a conversation without, are as they are with the answer's cost. It returns
// what is held then.
func (b *Reserves) Settle(id string, mission centurion.Mission, task centurion.Task) centurion.Reserved {
	b.mu.Lock()
	defer b.mu.Unlock()
	if mission.Usage.Unpriced {
		b.ledger.limit[USD] = 0
	}
	b.ledger.settle(id, amountOf(mission.Usage, mission.Rounds), amountOf(task.Usage, task.Rounds))
	b.serve(false)
	return b.now().Reserved()
}

// Done ends a request of which nothing was recorded.
func (b *Reserves) Done(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.ledger.accounts[id]; a != nil {
		b.ledger.settle(id, b.ledger.spent, a.spent)
	}
	b.serve(false)
}

// State is a budget at one moment.
type State struct {
	Limit, Spent, Held Amount // Held is told of what is limited only
	Holders            int    // accounts that hold something that is limited
	Accounts           int    // conversations that have one
	Resting, Waiting   int    // of these, those that wait for somebody else, and for a part of the budget
}

// State returns the budget as it is now.
func (b *Reserves) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now()
}

// now is called with the lock held.
func (b *Reserves) now() State {
	s := State{Limit: b.ledger.limit, Spent: b.ledger.spent, Accounts: len(b.ledger.accounts), Waiting: len(b.waiting)}
	s.Held, s.Holders = b.ledger.held()
	for d, most := range s.Limit {
		if most == 0 {
			s.Held[d] = 0
		}
	}
	for _, n := range b.resting {
		if n != 0 {
			s.Resting++
		}
	}
	return s
}

// Reserved is what is held, as a mission's record tells it.
func (s State) Reserved() centurion.Reserved {
	return centurion.Reserved{USD: float64(s.Held[USD]) / usdUnits, Tokens: s.Held[Tokens], Rounds: int(s.Held[Rounds]), Tasks: s.Holders}
}
