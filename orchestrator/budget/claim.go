package budget

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"centurion"
)

// Need describes a request before it is made.
type Need struct {
	Input  int64            // estimated tokens to send
	MaxOut int              // longest answer of the model in tokens; 0 if unknown
	Price  *centurion.Price // nil if unknown: the request then counts as free
}

// Grant is the answer to a claim for a request.
type Grant struct {
	MaxOut int  // tokens of its answer; unchanged where nothing limits it
	Own    bool // the request may not be made: the task's own budget does not cover it
	Lacks  Dim  // the dimension that its own budget is short of
}

// Wait is called with the reason when a claimant has to wait; over is called when the wait ends. An error of either cancels the claim.
type Wait func(why string) (over func() error, err error)

// Request reserves the cost of an account's request before it is made; call Settle or Done when the request has ended. It blocks until
// the budget suffices or ctx ends (the error is then ctx's cause). If nothing can be released any more, it returns the error of the
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
		return Grant{MaxOut: n.MaxOut}, nil // some endpoints reject a number above their own maximum
	}
	return Grant{MaxOut: int(c.answer)}, nil
}

// limits is above zero in each dimension that the mission or the account's task limits.
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

// Cover waits until the portion of a task about to start is reserved for its account. It returns the same errors as Request.
func (b *Reserves) Cover(ctx context.Context, account string, portion Amount, wait Wait) error {
	return b.claim(ctx, &claimant{id: account, portion: portion, lacks: dims}, wait)
}

// Fits rejects a task that can never start: its own budget exceeds the rest of the mission's, or its portion does and no account holds
// anything to release. The error has centurion.KindBudget.
func (b *Reserves) Fits(o centurion.TaskBudget, portion Amount) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	held, _ := b.ledger.held()
	for i, most := range b.ledger.limit {
		d, left := Dim(i), most-b.ledger.spent[i]
		switch own := Own(o)[d]; {
		case most == 0:
		case own > max(0, left):
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
	request *request // nil for a task about to start
	portion Amount
	lacks   Dim           // the dimension that is short
	given   chan struct{} // closed when the claim is granted or can never be
	answer  int64         // maximum tokens of the answer
	own     bool          // its own budget does not cover the request
	never   bool
}

// claim blocks until c is granted. It calls wait with the reason before it blocks, and the returned function afterwards. If nothing can
// be released any more, it returns the error of over.
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
		err = b.got(c)
	case <-ctx.Done():
		b.forget(c)
		err = context.Cause(ctx)
	}
	return cmp.Or(err, on())
}

// line grants a claim or queues it, and returns the reason for waiting.
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
	if len(b.ledger.accounts) == 1 && slices.Contains(b.waiting, c) { // no other account could release anything
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

// forget cancels a claim. Anything granted meanwhile is released when its account is settled or closed.
func (b *Reserves) forget(c *claimant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(c)
	b.serve(false)
}

// why describes the wait.
func (b *Reserves) why(lacks Dim) string {
	if lacks == dims {
		return "budget"
	}
	held, n := b.ledger.held()
	return fmt.Sprintf("budget: %s of %s reserved by %s", lacks.Say(held[lacks]), lacks.Say(b.ledger.limit[lacks]), centurion.Count(n, "agent"))
}
