package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"centurion"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
)

const (
	// usefulAnswer is how many tokens an answer needs at least to be worth its request.
	usefulAnswer = 1000
	// unknownAnswer stands for the longest answer of a model of which nobody knows it.
	unknownAnswer = 8192
	// maxPortion is the most that is reserved for a task at its start, in units of dimUSD: fifty of them have room in 10 USD,
	// the default of --max-cost.
	maxPortion = 10 * usdUnits / 50
)

// reserves is the ledger of a running mission with those who wait for something in it. Requests of conversations that are
// at work go before tasks that are to be started; who has waited longest goes first among those for whom there is enough.
type reserves struct {
	over func(dim int) error // stops the mission at a limit; called without mu

	mu      sync.Mutex // protects what follows
	ledger  ledger
	resting map[string]int // accounts that wait for somebody else, by how many of their calls do; they neither spend nor give back
	waiting []*claimant
	stuck   *time.Timer // runs while everybody waits
}

// claimant waits for a part of the budget.
type claimant struct {
	id      string
	request *request // nil: a task that is to be started
	portion amount
	lacks   int           // what is short
	given   chan struct{} // closed when it has what it waits for, or will never get it
	answer  int64         // tokens that the answer may have
	own     bool          // its own budget does not pay for it
	never   bool
}

func newReserves(over func(dim int) error) *reserves {
	return &reserves{over: over, resting: map[string]int{}}
}

// limits takes over what a mission may spend and what it has spent.
func (b *reserves) limits(rec centurion.Mission) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.limit = amount{amountOf(centurion.Usage{USD: rec.Options.MaxCost}, 0)[dimUSD], rec.Options.MaxTokens, int64(rec.Options.MaxRounds)}
	b.ledger.spent = amountOf(rec.Usage, rec.Rounds)
	if rec.Usage.Unpriced { // its cost is not known
		b.ledger.limit[dimUSD] = 0
	}
}

// open makes the account of a conversation that is not at work.
func (b *reserves) open(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.open(id, amount{}, amount{})
	b.resting[id] = 1
}

// spawn makes an account for a task that is launched and reserves its portion, unless others wait before it or it does not
// fit. It rests until the task has a slot. A task that is launched again while it still runs has an account more.
func (b *reserves) spawn(t centurion.Task, portion amount) (account string, covered bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	account = fmt.Sprintf("%s/%d", t.ID, b.ledger.opened)
	b.ledger.open(account, ownLimit(t.Budget), amountOf(t.Usage, t.Rounds))
	b.resting[account] = 1
	return account, len(b.waiting) == 0 && b.ledger.spawn(account, portion) == dims
}

func ownLimit(o centurion.TaskBudget) amount {
	return amount{amountOf(centurion.Usage{USD: o.Cost}, 0)[dimUSD], o.Tokens, int64(o.Rounds)}
}

// close ends an account.
func (b *reserves) close(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.close(id)
	delete(b.resting, id)
	b.serve(false)
}

// rest says that an account's conversation waits for somebody else, and wake that it goes on.
func (b *reserves) rest(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resting[id]++
	b.serve(false)
}

func (b *reserves) wake(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resting[id]--
	b.serve(false)
}

// settle ends the request of an account, as [ledger.settle] does.
func (b *reserves) settle(id string, mission centurion.Mission, task amount) centurion.Reserved {
	b.mu.Lock()
	defer b.mu.Unlock()
	if mission.Usage.Unpriced {
		b.ledger.limit[dimUSD] = 0
	}
	b.ledger.settle(id, amountOf(mission.Usage, mission.Rounds), task)
	b.serve(false)
	return b.ledger.reserved()
}

// done ends a request of which nothing was recorded.
func (b *reserves) done(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.ledger.accounts[id]; a != nil {
		b.ledger.settle(id, b.ledger.spent, a.spent)
	}
	b.serve(false)
}

// state returns what is limited, spent and reserved.
func (b *reserves) state() (l ledger, r centurion.Reserved) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return ledger{limit: b.ledger.limit, spent: b.ledger.spent}, b.ledger.reserved()
}

// try gives a claimant what it wants, if that is there.
func (b *reserves) try(c *claimant, own bool) bool {
	if c.request == nil {
		if c.lacks = b.ledger.spawn(c.id, c.portion); c.lacks == dims {
			return true
		}
		return own && b.ledger.reclaim(c.portion, true) && b.ledger.spawn(c.id, c.portion) == dims
	}
	peers := int64(0)
	for id, a := range b.ledger.accounts {
		if id == c.id || b.resting[id] == 0 && (!a.begun || a.held == amount{}) {
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
	for d := range want { // what it would take beside what it holds
		if a.own[d] > 0 {
			want[d] = a.left()[d]
		}
		want[d] = max(0, want[d]-a.held[d])
	}
	return b.ledger.reclaim(want, own) && grant()
}

// serve gives what is free to those who wait, and watches that somebody can still give something back. With own it takes
// also whole budgets from tasks that have not begun.
func (b *reserves) serve(own bool) {
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
			} else if spawns { // in their order
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
		b.stuck = time.AfterFunc(stuckFor, b.giveUp)
	}
}

// moving reports whether anybody is at work who may give something back, or go on.
func (b *reserves) moving() bool {
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

// giveUp tells the first who waits, when everybody has waited for a moment, that the limit is reached.
func (b *reserves) giveUp() {
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

func (b *reserves) drop(c *claimant) {
	if i := slices.Index(b.waiting, c); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
}

// claim gets a claimant what it wants. While it has to wait, wait is called with the reason, and what that returns when it
// need not wait any more. The error is that of over when nobody can give anything back.
func (b *reserves) claim(ctx context.Context, c *claimant, wait func(why string) (func() error, error)) error {
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
func (b *reserves) line(c *claimant) (why string) {
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

func (b *reserves) got(c *claimant) error {
	if c.never {
		return b.over(c.lacks)
	}
	return nil
}

// forget gives up a claim. What it has got meanwhile is given back when its account is settled or closed.
func (b *reserves) forget(c *claimant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(c)
	b.serve(false)
}

// why says what is waited for.
func (b *reserves) why(lacks int) string {
	if lacks == dims {
		return "budget"
	}
	held, n := b.ledger.held()
	return fmt.Sprintf("budget: %s of %s reserved by %s", inDim(lacks, held[lacks]), inDim(lacks, b.ledger.limit[lacks]), centurion.Count(n, "agent"))
}

// inDim writes an amount of one dimension.
func inDim(d int, n int64) string {
	switch d {
	case dimUSD:
		return fmt.Sprintf("$%.2f", float64(n)/usdUnits)
	case dimTokens:
		return fmt.Sprintf("%d tokens", n)
	}
	return centurion.Count(int(n), "request")
}

// account is the name of the conversation's account.
func (c *conversation) account() string {
	if c.task != nil {
		return c.task.account
	}
	return c.m.id
}

// reserve covers a request before it is made. The slot is kept while that takes: whoever got it instead would need a part
// of the same budget.
func (c *conversation) reserve(ctx context.Context, n session.Need) (session.Cover, error) {
	b, most := c.m.reserves, cmp.Or(n.MaxOut, unknownAnswer)
	r := priced(c.cfg.Price, n.Input, int64(min(usefulAnswer, most)), int64(most))
	claim := &claimant{id: c.account(), request: &r}
	err := b.claim(ctx, claim, func(why string) (func() error, error) {
		done := c.live.wait(WaitBudget)
		return func() error { done(); return c.goOn(ctx) }, c.halt(ctx, why)
	})
	if err != nil {
		b.done(c.account())
		return session.Cover{}, err
	}
	if claim.own {
		return session.Cover{}, c.spentOwn(claim.lacks)
	}
	cover := session.Cover{MaxOut: int(claim.answer), Done: func() { b.done(c.account()) }}
	l, _ := b.state()
	own := amount{}
	if c.task != nil {
		own = ownLimit(c.task.now.Load().Budget)
	}
	usd, tokens := l.limit[dimUSD]+own[dimUSD] > 0 && r.out > 0, l.limit[dimTokens]+own[dimTokens] > 0
	if !usd && !tokens || !usd && n.MaxOut == 0 && claim.answer == unknownAnswer {
		cover.MaxOut = n.MaxOut // some endpoints refuse a number that is higher than their own
	}
	return cover, nil
}

// priced makes a request at a price; what is sent is taken for new to the provider's cache.
func priced(p *centurion.Price, input, least, most int64) request {
	r := request{input: input, least: least, most: most}
	if p != nil {
		r.in, r.out = max(p.Input, p.CacheWrite, p.CacheRead), p.Output
	}
	return r
}

// begun records that n tool calls of an answer begin, and says how many of them may.
func (c *conversation) begun(tx *store.Tx, n int) (may int, why string, err error) {
	rec, err := tx.Mission(c.m.id)
	if err != nil {
		return 0, "", err
	}
	may = n
	if most := rec.Options.MaxToolCalls; most > 0 && most-rec.ToolCalls < may {
		may, why = max(0, most-rec.ToolCalls), fmt.Sprintf("the mission's limit of %d tool calls is reached. Call it again when it has been raised.", most)
	}
	var t centurion.Task
	if c.task != nil {
		if t, err = tx.Task(c.task.id); err != nil {
			return 0, "", err
		}
		if most := t.Budget.ToolCalls; most > 0 && most-t.ToolCalls < may {
			may, why = max(0, most-t.ToolCalls), fmt.Sprintf("the task's own budget of %s is used up.", centurion.Count(most, "tool call"))
			c.task.refused.Store(true)
		}
		t.ToolCalls += may
		c.task.now.Store(&t)
		err = tx.PutTask(&t)
	}
	rec.ToolCalls += may
	c.m.spent.Store(&rec)
	if err == nil {
		err = tx.PutMission(&rec)
	}
	return may, why, err
}

// portion is what is reserved for a task when it is started: what a small first request of its agent may cost.
// Nothing where nothing is limited.
func (m *mission) portion(t centurion.Task) amount {
	if l, _ := m.reserves.state(); l.limit == (amount{}) {
		return amount{}
	}
	rec := m.spent.Load()
	agent, err := m.carriesOut(t)
	if err != nil {
		return amount{dimRounds: 1} // it will fail when it starts, and is told then
	}
	model, err := m.h.cfg.Model(cmp.Or(agent.Model, rec.Options.Model))
	if err != nil {
		return amount{dimRounds: 1}
	}
	bytes := len(agent.Prompt) + len(t.Prompt)
	if held, err := tools.Named(agent.Tools...); err == nil {
		for _, t := range held {
			bytes += len(t.Name()) + len(t.Description()) + schemaBytes
		}
	}
	p := priced(model.Price, session.TokensOf(bytes), usefulAnswer, usefulAnswer).cost(usefulAnswer)
	p[dimUSD] = min(p[dimUSD], maxPortion)
	return p
}

// schemaBytes is how long the schema of a tool is, roughly.
const schemaBytes = 500

// spawnable refuses a task for which there will never be room: its own budget is more than the mission has left, or
// nobody holds anything that could still be given back.
func (m *mission) spawnable(t centurion.Task, portion amount) error {
	b := m.reserves
	b.mu.Lock()
	defer b.mu.Unlock()
	held, _ := b.ledger.held()
	for d, most := range b.ledger.limit {
		left := most - b.ledger.spent[d]
		switch own := ownLimit(t.Budget)[d]; {
		case most == 0:
		case own > left:
			return &centurion.Error{Op: "delegate", Kind: centurion.KindBudget,
				Msg:  fmt.Sprintf("a budget of %s does not fit: the mission has %s left of %s", inDim(d, own), inDim(d, max(0, left)), inDim(d, most)),
				Hint: "give it a smaller one, or none"}
		case held[d] == 0 && portion[d] > left:
			return &centurion.Error{Op: "delegate", Kind: centurion.KindBudget,
				Msg:  fmt.Sprintf("the mission's budget is used up: %s left of %s, and no task holds anything that it could give back", inDim(d, max(0, left)), inDim(d, most)),
				Hint: "do what is left yourself, as short as you can, or end your turn: a person can raise the limit"}
		}
	}
	return nil
}

// cover waits until what a task needs at its start is reserved for it.
func (m *mission) cover(ctx context.Context, r *taskRun) error {
	if r.covered {
		return nil
	}
	t := r.now.Load()
	return m.reserves.claim(ctx, &claimant{id: r.account, portion: m.portion(*t)}, func(why string) (func() error, error) {
		r.place.Leave()
		r.place = nil
		return func() error { return nil }, m.moveRun(ctx, r, centurion.TaskWaiting, func(t *centurion.Task) { t.Reason = why })
	})
}
