package budget

import (
	"context"
	"errors"
	"testing"
	"time"

	"centurion"
)

// O2: a task's own budget is what is left of it after each request that was recorded, to the last request.
func TestOwnBudgetIsUsedUp(t *testing.T) {
	b := New(centurion.Mission{Options: centurion.MissionOptions{MaxTokens: 100_000, MaxRounds: 100}}, nil)
	task := centurion.Task{ID: "t", Budget: centurion.TaskBudget{Tokens: 10_000, Rounds: 3}}
	account, covered := b.Spawn(task, Amount{})
	equal(t, "covered", covered, true)
	want := func(when string, grant Grant, held centurion.Reserved) {
		t.Helper()
		got, err := b.Request(t.Context(), account, Need{Input: 1000, MaxOut: 64_000}, nil)
		if err != nil || got != grant {
			t.Errorf("%s: %+v, %v; want %+v", when, got, err, grant)
		}
		equal(t, when+": reserved", b.State().Reserved(), held)
	}
	settle := func(tokens int64, rounds int) {
		task.Usage.Tokens.Input, task.Rounds = tokens, rounds
		b.Settle(account, centurion.Mission{Usage: task.Usage, Rounds: rounds}, task)
	}
	want("all of it", Grant{MaxOut: 9000}, centurion.Reserved{Tokens: 10_000, Rounds: 3, Tasks: 1})
	settle(4000, 1)
	want("what is left", Grant{MaxOut: 5000}, centurion.Reserved{Tokens: 6000, Rounds: 2, Tasks: 1})
	b.Done(account)
	want("after one of which nothing came", Grant{MaxOut: 5000}, centurion.Reserved{Tokens: 6000, Rounds: 2, Tasks: 1})
	settle(5000, 2)
	want("the last request", Grant{MaxOut: 4000}, centurion.Reserved{Tokens: 5000, Rounds: 1, Tasks: 1})
	settle(6000, 3)
	want("no request is left", Grant{Own: true, Lacks: Rounds}, centurion.Reserved{Tokens: 4000, Tasks: 1})
}

// O2: a budget of one request is one, from its start to its end.
func TestOwnBudgetOfOneRequest(t *testing.T) {
	b := New(centurion.Mission{Options: centurion.MissionOptions{MaxRounds: 100}}, nil)
	task := centurion.Task{ID: "t", Budget: centurion.TaskBudget{Rounds: 1}}
	account, _ := b.Spawn(task, Amount{Rounds: 7})
	equal(t, "reserved", b.State().Reserved(), centurion.Reserved{Rounds: 1, Tasks: 1})
	task.Rounds = 1
	equal(t, "reserved when it is made", b.Settle(account, centurion.Mission{Rounds: 1}, task), centurion.Reserved{})
	got, err := b.Request(t.Context(), account, Need{Input: 1000}, nil)
	if err != nil || got != (Grant{Own: true, Lacks: Rounds}) {
		t.Errorf("another one: %+v, %v", got, err)
	}
}

// O2: while anybody is at work, no step of anybody takes a task's own budget away, however long another waits for it.
func TestOwnBudgetIsKept(t *testing.T) {
	counting(t, centurion.MissionOptions{MaxTokens: 10_000}, func(c *counter) {
		own, beside := c.awake("own", 0, 6000), c.awake("beside", 0, 0)
		worker, _ := c.Spawn(centurion.Task{ID: "worker"}, Amount{})
		other, _ := c.Spawn(centurion.Task{ID: "other"}, Amount{})
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(c.ctx)
		c.request(worker, 5000)
		c.ask(other, func(wait Wait) error { return c.Cover(ctx, other, Amount{Tokens: 7000}, wait) })
		for _, step := range []struct {
			name  string
			f     func()
			ended []string
		}{
			{"a rest", func() { c.Rest(beside) }, nil},
			{"its end", func() { c.Wake(beside) }, nil},
			{"a request that was recorded", func() { c.spend(beside, 0) }, nil},
			{"one that was not", func() { c.Done(beside) }, nil},
			{"a wait that was given up", func() { cancel(gone) }, []string{other + ": gone"}},
			{"an account that closed", func() { c.Close(other) }, nil},
		} {
			step.f()
			c.want("after "+step.name, step.ended...)
			equal(t, "held after "+step.name, c.State().Held[Tokens], 6000)
		}
		time.Sleep(time.Minute)
		c.want("after a minute")
		c.Close(own)
		c.want("when the task has ended", worker)
	})
}

// O2: when everybody has waited for a second and one of them can go on with what is taken back, the others go on waiting for that.
func TestOneOfThoseWhoWait(t *testing.T) {
	counting(t, centurion.MissionOptions{MaxTokens: 10_000}, func(c *counter) {
		c.awake("own", 0, 6000)
		own := "own/0"
		first, second := c.awake("first", 0, 0), c.awake("second", 0, 0)
		c.Rest(own)
		c.request(first, 8000)
		c.request(second, 9000)
		time.Sleep(patience)
		c.want("with what was taken back", first)
		time.Sleep(time.Minute)
		c.want("while that is at work")
		c.spend(first, 1000)
		c.want("when it has ended", second)
	})
}
