package budget

import (
	"slices"
	"time"
)

// patience is how long all accounts have to wait before the limit counts as reached. It covers the moments between two waits.
const patience = time.Second

// try grants a claim if the budget suffices.
func (b *Reserves) try(c *claimant, own bool) bool {
	if c.request == nil {
		if c.lacks = b.ledger.spawn(c.id, c.portion); c.lacks == dims {
			return true
		}
		return own && b.ledger.reclaim(c.portion, true) && b.ledger.spawn(c.id, c.portion) == dims
	}
	peers := int64(0)
	for id, a := range b.ledger.accounts {
		if id == c.id || b.resting[id] == 0 && (!a.begun || a.held == Amount{}) {
			peers++
		}
	}
	grant := func() bool {
		c.answer, c.lacks, c.own = b.ledger.grant(c.id, *c.request, peers)
		return c.lacks == dims || c.own
	}
	if grant() {
		return true
	}
	want, a := c.request.cost(c.request.least), b.ledger.accounts[c.id]
	for d := range want { // needed in addition to what it holds
		if a.own[d] > 0 {
			want[d] = a.left()[d]
		}
		want[d] = max(0, want[d]-a.held[d])
	}
	return b.ledger.reclaim(want, own) && grant()
}

// serve grants queued claims, and starts the timer if no account can release anything. With own it also reclaims whole budgets of tasks
// that have not begun.
func (b *Reserves) serve(own bool) {
	for _, spawns := range []bool{false, true} {
		for i := 0; i < len(b.waiting); i++ {
			c := b.waiting[i]
			if spawns != (c.request == nil) {
				continue
			}
			if b.try(c, own) {
				b.waiting = slices.Delete(b.waiting, i, i+1)
				i--
				close(c.given)
			} else if spawns { // tasks start in their order
				break
			}
		}
		if slices.ContainsFunc(b.waiting, func(c *claimant) bool { return c.request != nil }) {
			break
		}
	}
	switch {
	case len(b.waiting) == 0 || b.moving():
		if b.stuck != nil {
			b.stuck.Stop()
			b.stuck = nil
		}
	case b.stuck == nil:
		b.stuck = time.AfterFunc(patience, b.giveUp)
	}
}

// moving reports whether an account is at work, and so may release something.
func (b *Reserves) moving() bool {
	waits := make(map[string]bool, len(b.waiting))
	for _, c := range b.waiting {
		waits[c.id] = true
	}
	for id := range b.ledger.accounts {
		if b.resting[id] == 0 && !waits[id] {
			return true
		}
	}
	return false
}

// giveUp fails the first claim in the queue after all accounts have waited for the length of patience.
func (b *Reserves) giveUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stuck = nil
	if len(b.waiting) == 0 || b.moving() {
		return
	}
	if b.serve(true); len(b.waiting) == 0 || b.moving() {
		return
	}
	c := b.waiting[0]
	if i := slices.IndexFunc(b.waiting, func(c *claimant) bool { return c.request != nil }); i >= 0 {
		c = b.waiting[i]
	}
	c.never = true
	b.drop(c)
	close(c.given)
}

func (b *Reserves) drop(c *claimant) {
	if i := slices.Index(b.waiting, c); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
}
