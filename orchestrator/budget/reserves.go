// Package budget limits a mission's spending before the money is spent.
//
// A mission's budget is divided: limit = spent + held + free. Each conversation has an account. A task holds a portion from its start
// ([Reserves.Spawn], [Reserves.Cover]). Each request is covered with its maximum cost before it is made ([Reserves.Request]);
// afterwards the unspent part is free again ([Reserves.Settle]). A claim that is not covered waits until others release something. If
// all of them wait, the limit is reached.
//
// The package stores nothing: after a restart the budget is divided again, based on the recorded spending. Tool calls and time are
// limited elsewhere.
package budget

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/text"
)

// Reserves is the budget of a running mission and its queue of claims. Requests of running conversations go before tasks about to
// start; among those that can be covered, the longest wait goes first. Its methods are safe for concurrent use. Only Request and Cover
// block.
type Reserves struct {
	over func(Dim) error // stops the mission at a limit; called without mu

	mu      sync.Mutex // protects the fields below
	ledger  ledger
	resting map[string]int // accounts waiting for others, by number of such calls; they neither spend nor release anything
	waiting []*claimant
	stuck   *time.Timer // runs while all accounts wait
}

// New divides the rest of a mission's budget. At a limit it calls over, which stops the mission and returns the error; over may call
// the Reserves.
func New(m centurion.Mission, over func(Dim) error) *Reserves {
	o := m.Options
	b := &Reserves{over: over, resting: map[string]int{}}
	b.ledger.limit = Amount{amountOf(centurion.Usage{USD: o.MaxCost}, 0)[USD], o.MaxTokens, int64(o.MaxRounds)}
	b.ledger.spent = amountOf(m.Usage, m.Rounds)
	if m.Usage.Unpriced { // its cost is unknown
		b.ledger.limit[USD] = 0
	}
	return b
}

// Open creates the account of an idle conversation.
func (b *Reserves) Open(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.open(id, Amount{}, Amount{})
	b.resting[id] = 1
}

// Spawn creates the account of a launched task and reserves its portion, unless others are queued or it does not fit. The account rests
// until the task has a slot. A task that is launched again while it still runs gets another account.
func (b *Reserves) Spawn(t centurion.Task, portion Amount) (account string, covered bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	account = fmt.Sprintf("%s/%d", t.ID, b.ledger.opened)
	b.ledger.open(account, Own(t.Budget), amountOf(t.Usage, t.Rounds))
	b.resting[account] = 1
	return account, len(b.waiting) == 0 && b.ledger.spawn(account, portion) == dims
}

// Close closes an account and releases what it holds.
func (b *Reserves) Close(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.close(id)
	delete(b.resting, id)
	b.serve(false)
}

// Rest marks an account whose conversation waits for others, so that it will release nothing. Each Rest is followed by a Wake.
func (b *Reserves) Rest(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resting[id]++
	b.serve(false)
}

// Wake ends a Rest.
func (b *Reserves) Wake(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resting[id]--
	b.serve(false)
}

// Settle ends a request whose answer has been recorded, and releases the unspent part of its reservation. mission and task (zero
// without a task) include the answer's cost. It returns what is held afterwards.
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

// Done ends a request that was not recorded.
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
	Limit, Spent, Held Amount // Held is zero in dimensions without a limit
	Holders            int    // accounts that hold anything limited
	Accounts           int    // open accounts
	Resting, Waiting   int    // those waiting for other agents, and for a part of the budget
}

// State returns the budget as it is now.
func (b *Reserves) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now()
}

// now needs mu to be held.
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

// Reserved converts Held for the mission's record.
func (s State) Reserved() centurion.Reserved {
	return centurion.Reserved{USD: float64(s.Held[USD]) / usdUnits, Tokens: s.Held[Tokens], Rounds: int(s.Held[Rounds]), Tasks: s.Holders}
}

// Line is what the Commander sees of the budget of a mission that was worked on for elapsed milliseconds: what is spent of
// what limit, and what tasks have reserved.
func (b *Reserves) Line(rec centurion.Mission, elapsed int64) string {
	now := b.State()
	var w strings.Builder
	w.WriteString("Spent: ")
	if !rec.Usage.Unpriced {
		w.WriteString(text.Cost(rec.Usage))
		if now.Limit[USD] > 0 {
			w.WriteString(" of " + text.USD(rec.Options.MaxCost) + now.reserved(USD))
		}
		w.WriteString(", ")
	}
	fmt.Fprintf(&w, "%d", rec.Usage.Tokens.Total())
	if now.Limit[Tokens] > 0 {
		fmt.Fprintf(&w, " of %d", rec.Options.MaxTokens)
	}
	w.WriteString(" tokens" + now.reserved(Tokens))
	if now.Limit[Rounds] > 0 {
		fmt.Fprintf(&w, ", %d of %d requests%s", rec.Rounds, rec.Options.MaxRounds, now.reserved(Rounds))
	}
	if most := rec.Options.MaxToolCalls; most > 0 {
		fmt.Fprintf(&w, ", %d of %d tool calls", rec.ToolCalls, most)
	}
	if rec.Options.MaxDuration > 0 {
		left := time.Duration(rec.Options.MaxDuration-elapsed) * time.Millisecond
		fmt.Fprintf(&w, ", time left: %s", text.Took(left.Round(time.Minute)))
	}
	return w.String()
}

// reserved says how much of a dimension tasks have reserved, " (9 requests reserved by 2 tasks)"; "" if nothing.
func (s State) reserved(d Dim) string {
	if s.Held[d] == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s reserved by %s)", d.Say(s.Held[d]), centurion.Count(s.Holders, "task"))
}
