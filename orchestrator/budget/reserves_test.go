package budget

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
)

// counter is where accounts ask and wait, each in a goroutine of its own.
type counter struct {
	*Reserves
	t   *testing.T
	ctx context.Context // ends with the test
	g   guard.Group

	mu    sync.Mutex
	ended []string          // who need not wait any more since take was last called
	said  map[string]string // what each waited for
}

// counting runs a test with a mission that may spend so much. At a limit the error is the name of what is short.
func counting(t *testing.T, limit centurion.MissionOptions, test func(c *counter)) {
	synctest.Test(t, func(t *testing.T) {
		c := &counter{t: t, said: map[string]string{}}
		c.Reserves = New(centurion.Mission{Options: limit}, func(d Dim) error { return errors.New("no more " + strings.Fields(d.Say(2))[1]) })
		ctx, stop := context.WithCancel(t.Context())
		c.ctx = ctx
		test(c)
		stop()
		if err := c.g.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// awake opens an account that is at work and holds a portion of tokens, and its task's budget of tokens.
func (c *counter) awake(id string, portion, own int64) string {
	c.t.Helper()
	account, covered := c.Spawn(centurion.Task{ID: id, Budget: centurion.TaskBudget{Tokens: own}}, Amount{Tokens: portion})
	equal(c.t, id+" is covered", covered, true)
	c.Wake(account)
	return account
}

// request asks for so many tokens, a thousand of them for the answer; cover for a portion.
func (c *counter) request(account string, tokens int64) {
	c.ask(account, func(wait Wait) error {
		_, err := c.Request(c.ctx, account, Need{Input: tokens - 1000, MaxOut: 1000}, wait)
		return err
	})
}

func (c *counter) cover(account string, tokens int64) {
	c.ask(account, func(wait Wait) error { return c.Cover(c.ctx, account, Amount{Tokens: tokens}, wait) })
}

func (c *counter) ask(account string, claim func(Wait) error) {
	c.g.Go(account, func() error {
		err := claim(func(why string) (func() error, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.said[account] = why
			return func() error { return nil }, nil
		})
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil {
			account += ": " + err.Error()
		}
		c.ended = append(c.ended, account)
		return nil
	})
	synctest.Wait()
}

// want compares who need not wait any more since it was last called.
func (c *counter) want(when string, ended ...string) {
	c.t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.ended)
	slices.Sort(ended)
	if !slices.Equal(c.ended, ended) {
		c.t.Errorf("%s: %q, want %q", when, c.ended, ended)
	}
	c.ended = nil
}

// spend settles an account's request when the mission has spent so many tokens.
func (c *counter) spend(account string, mission int64) {
	c.Settle(account, centurion.Mission{Usage: centurion.Usage{Tokens: centurion.Tokens{Input: mission}}}, centurion.Task{})
}

// O2: requests of those who are at work go before tasks that are to be started, and these go in their order, though a later one
// would fit.
func TestWhoGoesFirst(t *testing.T) {
	counting(t, centurion.MissionOptions{MaxTokens: 10_000}, func(c *counter) {
		c.Open("root")
		c.Wake("root")
		worker, helper := c.awake("worker", 0, 0), c.awake("helper", 0, 0)
		other, _ := c.Spawn(centurion.Task{ID: "other"}, Amount{})
		c.Wake(other)
		first, _ := c.Spawn(centurion.Task{ID: "first"}, Amount{})
		second, _ := c.Spawn(centurion.Task{ID: "second"}, Amount{})
		c.request("root", 9000)
		c.cover(first, 4000)
		c.cover(second, 500)
		c.request(other, 6000)
		c.request(worker, 2000)
		c.request(helper, 1000)
		c.want("with 1000 tokens free", "root", helper)
		equal(t, "what the first task waits for", c.said[first], "budget: 9000 tokens of 10000 tokens reserved by 1 agent")
		if third, covered := c.Spawn(centurion.Task{ID: "third"}, Amount{}); covered {
			t.Error("a task was covered before those who wait")
		} else {
			c.Close(third)
		}
		c.spend("root", 3500)
		c.want("with 5500 tokens free, of which one wants more", worker)
		c.spend(helper, 3500)
		c.want("a task, with 4500 tokens free, while a request waits")
		c.spend(worker, 3600)
		c.want("with 6400 tokens free", other)
		c.spend(other, 3700)
		c.want("with 6300 tokens free", first, second)
	})
}

// O2: a wait that is given up, an account that closes and a request of which nothing was recorded each let the next one go on.
func TestWhatIsGivenBackIsServed(t *testing.T) {
	for name, give := range map[string]func(c *counter, holder string){
		"closed":   func(c *counter, holder string) { c.Close(holder) },
		"done":     func(c *counter, holder string) { c.Done(holder) },
		"settled":  func(c *counter, holder string) { c.spend(holder, 100) },
		"given up": nil,
	} {
		t.Run(name, func(t *testing.T) {
			counting(t, centurion.MissionOptions{MaxTokens: 10_000}, func(c *counter) {
				holder, watcher := c.awake("holder", 0, 0), c.awake("watcher", 0, 0)
				waiter, _ := c.Spawn(centurion.Task{ID: "waiter"}, Amount{})
				c.request(holder, 9000)
				c.want("the holder", holder)
				if give != nil {
					c.cover(waiter, 2000)
					c.want("with 1000 tokens free")
					give(c, holder)
					c.want("when it is given back", waiter)
				} else {
					before, _ := c.Spawn(centurion.Task{ID: "before"}, Amount{})
					gone := errors.New("gone")
					if err := c.Cover(c.ctx, before, Amount{Tokens: 2000}, func(string) (func() error, error) { return nil, gone }); err != gone {
						t.Errorf("%v", err)
					}
					equal(t, "waiting after an error", c.State().Waiting, 0)
					_, err := c.Request(c.ctx, before, Need{Input: 2000, MaxOut: 1000}, func(string) (func() error, error) {
						c.spend(holder, 100)
						return nil, gone
					})
					equal(t, "error", err, gone)
					equal(t, "reserved for what was given up when it was there", c.State().Held[Tokens], 0)
					c.request(holder, 9000)
					c.want("the holder again", holder)
					ctx, cancel := context.WithCancelCause(c.ctx)
					c.ask(before, func(wait Wait) error { return c.Cover(ctx, before, Amount{Tokens: 2000}, wait) })
					c.cover(waiter, 500)
					c.want("behind another")
					equal(t, "what it waits for", c.said[waiter], "budget")
					cancel(gone)
					c.want("when the one before it gave up", waiter, before+": gone")
				}
				equal(t, "waiting", c.State().Waiting, 0)
				c.Close(watcher)
			})
		})
	}
}

// O2: an answer gets an equal share of what is free: among those who have nothing reserved for a request of theirs and are at
// work, and the one who asks.
func TestShares(t *testing.T) {
	b := New(centurion.Mission{Options: centurion.MissionOptions{MaxTokens: 91_000}}, nil)
	accounts := map[string]string{}
	for _, id := range []string{"a", "b", "c", "rests"} {
		account, _ := b.Spawn(centurion.Task{ID: id, Budget: centurion.TaskBudget{Rounds: map[string]int{"c": 9}[id]}}, Amount{})
		if accounts[id] = account; id != "rests" {
			b.Wake(account)
		}
	}
	for _, step := range []struct {
		id     string
		answer int
		why    string
	}{
		{"a", 29_333, "a third"},
		{"b", 29_333, "half of the rest: a has its own"},
		{"b done", 0, ""},
		{"c", 29_333, "half of the rest, with b, which holds nothing any more"},
		{"b", 29_334, "what is left"},
		{"b done", 0, ""},
		{"c done", 0, ""},
		{"c", 29_333, "half of the rest, though its task's own budget is reserved for it"},
	} {
		id, done := strings.CutSuffix(step.id, " done")
		if done {
			b.Done(accounts[id])
			continue
		}
		got, err := b.Request(t.Context(), accounts[id], Need{Input: 1000, MaxOut: 64_000}, nil)
		if err != nil || got.MaxOut != step.answer {
			t.Errorf("%s, %s: %+v, %v; want %d", id, step.why, got, err, step.answer)
		}
	}
}

// O2: a request takes back what tasks hold that have not begun: as much as it needs beside what it holds itself, and a task's
// own budget only when everybody has waited for a second.
func TestRequestTakesBack(t *testing.T) {
	counting(t, centurion.MissionOptions{MaxTokens: 10_000}, func(c *counter) {
		worker := c.awake("worker", 3000, 0)
		old, newer := c.awake("old", 2000, 0), c.awake("newer", 2000, 0)
		own := c.awake("own", 0, 3000)
		c.request(own, 2000)
		c.want("of what is left of its own budget", own)
		c.request(worker, 4500)
		c.want("with the newest portion beside its own", worker)
		equal(t, "held by the worker", c.ledger.accounts[worker].held[Tokens], 4500)
		equal(t, "held by the older", c.ledger.accounts[old].held[Tokens], 2000)
		equal(t, "held by the newer", c.ledger.accounts[newer].held[Tokens], 0)
	})
	counting(t, centurion.MissionOptions{MaxTokens: 10_000}, func(c *counter) {
		own := c.awake("own", 0, 6000)
		worker, _ := c.Spawn(centurion.Task{ID: "worker"}, Amount{})
		task, _ := c.Spawn(centurion.Task{ID: "task"}, Amount{})
		c.request(worker, 5000)
		time.Sleep(5 * time.Second)
		c.want("while the other is at work")
		c.Rest(own)
		time.Sleep(patience - 1)
		c.want("before a second")
		time.Sleep(time.Nanosecond)
		c.want("after a second", worker)
		equal(t, "held by the worker", c.ledger.accounts[worker].held[Tokens], 5000)
		equal(t, "held by the one with a budget of its own", c.ledger.accounts[own].held[Tokens], 0)
		c.Done(own)
		equal(t, "held by it after a request of which nothing came", c.ledger.accounts[own].held[Tokens], 0)
		c.Close(worker)
		c.Wake(own)
		idle := c.awake("idle", 5000, 0)
		c.request(own, 2000)
		c.want("its own budget again", own)
		equal(t, "held by one that has not begun", c.ledger.accounts[idle].held[Tokens], 0)
		c.Close(idle)
		c.Close(own)
		other, _ := c.Spawn(centurion.Task{ID: "other", Budget: centurion.TaskBudget{Tokens: 6000}}, Amount{})
		c.cover(task, 5000)
		c.want("a task, at first")
		time.Sleep(patience)
		c.want("a task, after a second", task)
		equal(t, "held by the task", c.ledger.accounts[task].held[Tokens], 5000)
		equal(t, "held by the other", c.ledger.accounts[other].held[Tokens], 0)
	})
}

// O2: when everybody waits for a second, the limit is reached for a request before a task; who goes on meanwhile begins the
// second anew.
func TestEverybodyWaits(t *testing.T) {
	counting(t, centurion.MissionOptions{MaxTokens: 10_000, MaxRounds: 1000}, func(c *counter) {
		c.Open("root")
		worker, holder := c.awake("worker", 0, 0), c.awake("holder", 0, 0)
		task, _ := c.Spawn(centurion.Task{ID: "task"}, Amount{})
		c.request(holder, 9000)
		c.Rest(holder)
		c.want("the holder", holder)
		c.cover(task, 2000)
		c.request(worker, 3000)
		time.Sleep(patience / 2)
		c.Wake("root")
		time.Sleep(10 * patience)
		c.want("while one is at work")
		c.Rest("root")
		time.Sleep(patience / 2)
		c.Wake("root")
		c.Rest("root")
		time.Sleep(patience / 2)
		c.want("a second after the first stop")
		time.Sleep(patience / 2)
		c.want("a second after the last stop", worker+": no more tokens")
		equal(t, "waiting", c.State().Waiting, 1)
		c.Done(holder)
		c.want("the task, when there is enough", task)
	})
	counting(t, centurion.MissionOptions{MaxTokens: 10_000}, func(c *counter) {
		c.Open("root")
		first, _ := c.Spawn(centurion.Task{ID: "first"}, Amount{})
		second, _ := c.Spawn(centurion.Task{ID: "second"}, Amount{})
		c.cover(first, 20_000)
		c.cover(second, 30_000)
		time.Sleep(patience)
		c.want("of two tasks", first+": no more tokens")
		time.Sleep(patience)
		c.want("of the task that is left", second+": no more tokens")
	})
}

// O2: nobody waits for what the only account cannot get.
func TestAloneAtTheLimit(t *testing.T) {
	b := New(centurion.Mission{Options: centurion.MissionOptions{MaxTokens: 10_000, MaxRounds: 5}, Rounds: 5}, func(d Dim) error { return errors.New(d.Say(0)) })
	b.Open("root")
	b.Wake("root")
	_, err := b.Request(t.Context(), "root", Need{Input: 1000, MaxOut: 1000}, func(why string) (func() error, error) {
		t.Errorf("it waits for %q", why)
		return nil, errors.New(why)
	})
	if err == nil || err.Error() != "0 requests" {
		t.Errorf("%v", err)
	}
	if err := b.Cover(t.Context(), "root", Amount{Tokens: 10_000}, nil); err != nil {
		t.Errorf("what fits: %v", err)
	}
	equal(t, "waiting", b.State().Waiting, 0)
}

// A budget as it is told: what is held of what has a limit, by how many, and how many are at rest. A cost that is not known
// counts for no limit.
func TestState(t *testing.T) {
	options := centurion.MissionOptions{MaxCost: 1, MaxRounds: 10}
	b := New(centurion.Mission{Options: options, Rounds: 2}, nil)
	b.Open("root")
	account, covered := b.Spawn(centurion.Task{ID: "t"}, Amount{usdUnits / 4, 500, 1})
	equal(t, "covered", covered, true)
	second, covered := b.Spawn(centurion.Task{ID: "t"}, Amount{usdUnits, 500, 1})
	equal(t, "covered, with too little", covered, false)
	limit := Amount{usdUnits, 0, 10}
	want := State{Limit: limit, Spent: Amount{Rounds: 2}, Held: Amount{usdUnits / 4, 0, 1}, Holders: 1, Accounts: 3, Resting: 3}
	equal(t, "state", b.State(), want)
	equal(t, "reserved", b.State().Reserved(), centurion.Reserved{USD: 0.25, Rounds: 1, Tasks: 1})
	b.Rest(second)
	b.Wake(second)
	b.Wake(account)
	want.Resting = 2
	equal(t, "one at work", b.State(), want)
	b.Close(second)
	want.Accounts, want.Resting = 2, 1
	equal(t, "one closed", b.State(), want)
	mission := centurion.Mission{Rounds: 3, Usage: centurion.Usage{USD: 0.5}}
	equal(t, "settled", b.Settle("root", mission, centurion.Task{}), centurion.Reserved{USD: 0.25, Rounds: 1, Tasks: 1})
	mission.Usage.Unpriced = true
	equal(t, "settled, without a price", b.Settle("root", mission, centurion.Task{}), centurion.Reserved{Rounds: 1, Tasks: 1})
	equal(t, "limit without a price", b.State().Limit, Amount{Rounds: 10})
	b.Settle("gone", centurion.Mission{Rounds: 5}, centurion.Task{})
	b.Done("gone")
	equal(t, "spent when an account is gone", b.State().Spent, Amount{Rounds: 5})

	b = New(centurion.Mission{Options: options, Usage: centurion.Usage{Unpriced: true}}, nil)
	equal(t, "limit of what was without a price before", b.State().Limit, Amount{Rounds: 10})
	b.Spawn(centurion.Task{ID: "t"}, Amount{Tokens: 500})
	equal(t, "reserved of what has no limit", b.State().Reserved(), centurion.Reserved{})

	b = New(centurion.Mission{Options: centurion.MissionOptions{MaxTokens: 10_000}}, nil)
	own := centurion.Task{ID: "t", Budget: centurion.TaskBudget{Tokens: 5000}, Usage: centurion.Usage{Tokens: centurion.Tokens{Input: 3000}}}
	b.Spawn(own, Amount{Tokens: 500})
	equal(t, "reserved of what is left of its own budget", b.State().Reserved(), centurion.Reserved{Tokens: 2000, Tasks: 1})
}

// O2: no answer costs more than there is, to the last unit.
func TestPays(t *testing.T) {
	for _, test := range []struct {
		have Amount
		r    request
		want int64
	}{
		{Amount{110, 1000, 1}, request{input: 10, most: 500, in: 1, out: 1}, 1},
		{Amount{109, 1000, 1}, request{input: 10, most: 500, in: 1, out: 1}, 0},
		{Amount{99, 1000, 1}, request{input: 10, most: 500, in: 1, out: 1}, -1},
		{Amount{100, 1000, 0}, request{input: 10, most: 500, in: 1, out: 1}, -1},
		{Amount{1e9, 1000, 1}, request{input: 10, most: 500, in: 1, out: 1}, 500},
		{Amount{1e9, 400, 1}, request{input: 10, most: 500, in: 1, out: 1}, 390},
		{Amount{0, 400, 1}, request{input: 10, most: 500}, 390},
		{Amount{37, 400, 1}, request{input: 3, most: 500, in: 0.15, out: 0.6}, 5},
		{Amount{415_006, 1e6, 1}, request{input: 15_154, most: 64_000, in: 1.1, out: 0.4}, 62_077}, // one more costs a unit more, rounded
	} {
		got := test.r.pays(test.have)
		equal(t, "tokens", got, test.want)
		if got >= 0 && (test.r.cost(got)[USD] > test.have[USD] || got < test.r.most && test.r.cost(got + 1)[USD] <= test.have[USD] && test.r.cost(got + 1)[Tokens] <= test.have[Tokens]) {
			t.Errorf("%v of %v pays for %d", test.r, test.have, got)
		}
	}
}

// What is reserved for a task's start: a small request at the dearest price of what is sent, and at most a fiftieth of 10 USD.
func TestPortion(t *testing.T) {
	equal(t, "without a price", Portion(nil, 5000), Amount{0, 6000, 1})
	equal(t, "a model", Portion(&centurion.Price{Input: 1, CacheWrite: 2, CacheRead: 0.1, Output: 10}, 5000), Amount{2 * usdUnits / 100, 6000, 1})
	equal(t, "a dear one", Portion(&centurion.Price{Input: 100, Output: 100}, 5000), Amount{2 * usdUnits / 10, 6000, 1})
	equal(t, "short of what nobody wants", short(Amount{0, 5}, Amount{-1, 5}), dims)
	equal(t, "no limit", (&ledger{}).free(), Amount{math.MaxInt64 / 4, math.MaxInt64 / 4, math.MaxInt64 / 4})
}
