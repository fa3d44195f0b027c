package budget

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"centurion"
)

// Need is what is known of a request before it is made.
type Need struct {
	Input  int64            // tokens that are sent, estimated
	MaxOut int              // tokens of the longest answer that its model gives; 0 if nobody knows
	Price  *centurion.Price // nil if nobody knows: it is taken for free then
}

// Grant is what a request may have.
type Grant struct {
	MaxOut int  // tokens of its answer; as it was needed where nothing limits it
	Own    bool // it may not be made at all: the task's own budget does not pay for it
	Lacks  Dim  // what its own budget is short of
}

// Wait is called when somebody has to wait, with what for; it returns what is to be called when the wait is over. An error of
// either gives the claim up.
type Wait func(why string) (over func() error, err error)

// Request covers a request of an account before it is made. Settle or Done has to be called when it has ended. It waits until
// there is enough, or ctx ends: the error is then its cause. When nobody can give anything back, the error is that of the
// mission's limit.
func (b *Reserves) Request(ctx context.Context, account string, n Need, wait Wait) (Grant, error) {
	most := cmp.Or(n.MaxOut, unknownAnswer)
	r := priced(n.Price, n.Input, int64(min(usefulAnswer, most)), int64(most))
	c := &claimant{id: account, request: &r}
	if err := b.claim(ctx, c, wait); err != nil {
		b.Done(account)
		return Grant{}, err
	}
	if c.own {
		return Grant{Own: true, Lacks: c.lacks}, nil
	}
	limits := b.limits(account)
	usd, tokens := limits[USD] > 0 && r.out > 0, limits[Tokens] > 0
	if !usd && !tokens || !usd && n.MaxOut == 0 && c.answer == unknownAnswer {
		return Grant{MaxOut: n.MaxOut}, nil // some endpoints refuse a number that is higher than their own
	}
	return Grant{MaxOut: int(c.answer)}, nil
}

// limits is above zero where the mission or the account's task has a limit.
func (b *Reserves) limits(account string) Amount {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.ledger.limit
	if a := b.ledger.accounts[account]; a != nil {
		for d, own := range a.own {
			l[d] += own
		}
	}
	return l
}

// Cover waits until the portion of a task that is to be started is reserved for its account. Its errors are those of Request.
func (b *Reserves) Cover(ctx context.Context, account string, portion Amount, wait Wait) error {
	return b.claim(ctx, &claimant{id: account, portion: portion}, wait)
}

// Fits refuses a task for which there will never be room: its own budget is more than the mission has left, or nobody holds
// anything that could still be given back for its portion. The error has centurion.KindBudget.
func (b *Reserves) Fits(o centurion.TaskBudget, portion Amount) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	held, _ := b.ledger.held()
	for i, most := range b.ledger.limit {
		d, left := Dim(i), most-b.ledger.spent[i]
		switch own := Own(o)[d]; {
		case most == 0:
		case own > left:
			return &centurion.Error{Op: "delegate", Kind: centurion.KindBudget,
				Msg:  fmt.Sprintf("a budget of %s does not fit: the mission has %s left of %s", d.Say(own), d.Say(max(0, left)), d.Say(most)),
				Hint: "give it a smaller one, or none"}
		case held[d] == 0 && portion[d] > left:
			return &centurion.Error{Op: "delegate", Kind: centurion.KindBudget,
				Msg:  fmt.Sprintf("the mission's budget is used up: %s left of %s, and no task holds anything that it could give back", d.Say(max(0, left)), d.Say(most)),
				Hint: "do what is left yourself, as short as you can, or end your turn: a person can raise the limit"}
		}
	}
	return nil
}

// claimant waits for a part of the budget.
type claimant struct {
	id      string
	request *request // nil: a task that is to be started
	portion Amount
	lacks   Dim           // what is short
	given   chan struct{} // closed when it has what it waits for, or will never get it
	answer  int64         // tokens that the answer may have
	own     bool          // its own budget does not pay for it
	never   bool
}

// claim gets a claimant what it wants. While it has to wait, wait is called with the reason, and what that returns when it
// need not wait any more. The error is that of over when nobody can give anything back.
func (b *Reserves) claim(ctx context.Context, c *claimant, wait Wait) error {
	why := b.line(c)
	select {
	case <-c.given:
		return b.got(c)
	default:
	}
	on, err := wait(why)
	if err != nil {
		b.forget(c)
		return err
	}
	select {
	case <-c.given:
	case <-ctx.Done():
		b.forget(c)
		return context.Cause(ctx)
	}
	if err := b.got(c); err != nil {
		return err
	}
	return on()
}

// line gives a claimant what it wants, or a place among those who wait; then it says what it waits for.
func (b *Reserves) line(c *claimant) (why string) {
	c.given = make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.request != nil && b.try(c, false) {
		close(c.given)
		return ""
	}
	b.waiting = append(b.waiting, c)
	b.serve(false)
	if len(b.ledger.accounts) == 1 && slices.Contains(b.waiting, c) { // there is nobody else
		c.never = true
		b.drop(c)
		close(c.given)
		b.serve(false)
	}
	return b.why(c.lacks)
}

func (b *Reserves) got(c *claimant) error {
	if c.never {
		return b.over(c.lacks)
	}
	return nil
}

// forget gives up a claim. What it has got meanwhile is given back when its account is settled or closed.
func (b *Reserves) forget(c *claimant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(c)
	b.serve(false)
}

// why says what is waited for.
func (b *Reserves) why(lacks Dim) string {
	if lacks == dims {
		return "budget"
	}
	held, n := b.ledger.held()
	return fmt.Sprintf("budget: %s of %s reserved by %s", lacks.Say(held[lacks]), lacks.Say(b.ledger.limit[lacks]), centurion.Count(n, "agent"))
}
