package budget

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"centurion"
)

// How long an answer may be is said to the endpoint only where a limit makes it shorter than the model's own.
func TestRequestIsAsLongAsItMay(t *testing.T) {
	price := &centurion.Price{Input: 1, Output: 10}
	for name, test := range map[string]struct {
		mission centurion.MissionOptions
		task    centurion.TaskBudget
		need    Need
		want    Grant
	}{
		"no limit":              {need: Need{Input: 5000, Price: price}},
		"no limit, a long one":  {need: Need{Input: 5000, MaxOut: 64_000, Price: price}, want: Grant{MaxOut: 64_000}},
		"money, and no price":   {mission: centurion.MissionOptions{MaxCost: 1}, need: Need{Input: 5000, MaxOut: 64_000}, want: Grant{MaxOut: 64_000}},
		"money, for an unknown": {mission: centurion.MissionOptions{MaxCost: 1}, need: Need{Input: 5000, Price: price}, want: Grant{MaxOut: 8192}},
		"unknown, and no price": {mission: centurion.MissionOptions{MaxCost: 1}, need: Need{Input: 5000}},
		"enough for an unknown": {mission: centurion.MissionOptions{MaxTokens: 1e6}, need: Need{Input: 5000}},
		"tokens":                {mission: centurion.MissionOptions{MaxTokens: 8000}, need: Need{Input: 5000}, want: Grant{MaxOut: 3000}},
		"money":                 {mission: centurion.MissionOptions{MaxCost: 0.025}, need: Need{Input: 5000, Price: price}, want: Grant{MaxOut: 2000}},
		"its own tokens":        {task: centurion.TaskBudget{Tokens: 9000}, need: Need{Input: 5000, MaxOut: 64_000}, want: Grant{MaxOut: 4000}},
		"a model's tiny answer": {mission: centurion.MissionOptions{MaxTokens: 5600}, need: Need{Input: 5000, MaxOut: 500}, want: Grant{MaxOut: 500}},
		"as many as an unknown": {mission: centurion.MissionOptions{MaxTokens: 13_192}, need: Need{Input: 5000, MaxOut: 64_000}, want: Grant{MaxOut: 8192}},
		"its own are used up":   {task: centurion.TaskBudget{Tokens: 5999}, need: Need{Input: 5000}, want: Grant{Own: true, Lacks: Tokens}},
	} {
		t.Run(name, func(t *testing.T) {
			b := New(centurion.Mission{Options: test.mission}, func(d Dim) error { return errors.New("at the limit") })
			account, _ := b.Spawn(centurion.Task{ID: "t", Budget: test.task}, Amount{})
			got, err := b.Request(t.Context(), account, test.need, func(why string) (func() error, error) { return nil, errors.New(why) })
			if err != nil || got != test.want {
				t.Errorf("%+v, %v; want %+v", got, err, test.want)
			}
		})
	}
}

// Who does not fit says for what it waits, and goes on when another gives something back.
func TestRequestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(centurion.Mission{Options: centurion.MissionOptions{MaxTokens: 10_000}}, func(Dim) error { return errors.New("at the limit") })
		first, _ := b.Spawn(centurion.Task{ID: "first"}, Amount{})
		second, _ := b.Spawn(centurion.Task{ID: "second"}, Amount{})
		b.Wake(first)
		b.Wake(second)
		never := func(why string) (func() error, error) { return nil, errors.New(why) }
		if _, err := b.Request(t.Context(), first, Need{Input: 5000, MaxOut: 4000}, never); err != nil {
			t.Fatal(err)
		}
		said, over := "", false
		g, err := b.Request(t.Context(), second, Need{Input: 2000, MaxOut: 4000}, func(why string) (func() error, error) {
			said = why
			equal(t, "waiting", b.State().Waiting, 1)
			b.Settle(first, centurion.Mission{Usage: centurion.Usage{Tokens: centurion.Tokens{Input: 3000}}}, centurion.Task{})
			return func() error { over = true; return nil }, nil
		})
		if err != nil || g.MaxOut != 4000 || !over {
			t.Errorf("%+v, %v, over %v", g, err, over)
		}
		if !strings.HasPrefix(said, "budget: ") || !strings.HasSuffix(said, " of 10000 tokens reserved by 1 agent") {
			t.Errorf("it waits for %q", said)
		}
		gone := errors.New("gone")
		b.Done(second)
		if _, err := b.Request(t.Context(), second, Need{Input: 2000, MaxOut: 4000}, nil); err != nil {
			t.Error(err)
		}
		_, err = b.Request(t.Context(), first, Need{Input: 2000, MaxOut: 4000}, func(string) (func() error, error) {
			b.Done(second)
			return func() error { return gone }, nil
		})
		equal(t, "an error at the end of a wait", err, gone)
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(centurion.ErrShutdown)
		waits := 0 // each wait that has begun ends, also one that was in vain
		wait := func(string) (func() error, error) { waits++; return func() error { waits--; return gone }, nil }
		if _, err := b.Request(ended, first, Need{Input: 50_000}, wait); err != error(centurion.ErrShutdown) || waits != 0 {
			t.Errorf("when its context has ended: %v, %d waits", err, waits)
		}
		b.Rest(second) // nobody is left who could give anything back
		if _, err := b.Request(t.Context(), first, Need{Input: 50_000}, wait); err == nil || err.Error() != "at the limit" || waits != 0 {
			t.Errorf("when everybody waits: %v, %d waits", err, waits)
		}
		equal(t, "held in the end", b.State().Reserved(), centurion.Reserved{})
	})
}

// A budget that can never fit is refused with what is left.
func TestFits(t *testing.T) {
	b := New(centurion.Mission{Options: centurion.MissionOptions{MaxRounds: 10}, Rounds: 7}, nil)
	hints := map[bool]string{true: "give it a smaller one, or none",
		false: "do what is left yourself, as short as you can, or end your turn: a person can raise the limit"}
	check := func(own int, portion int64, says string) {
		t.Helper()
		err := b.Fits(centurion.TaskBudget{Rounds: own}, Amount{Rounds: portion})
		if says == "" {
			if err != nil {
				t.Errorf("%d, %d: %v", own, portion, err)
			}
			return
		}
		var e *centurion.Error
		if !errors.As(err, &e) || *e != (centurion.Error{Op: "delegate", Kind: centurion.KindBudget, Msg: says, Hint: hints[own > 0]}) {
			t.Errorf("%d, %d: %+v", own, portion, err)
		}
	}
	check(3, 0, "")
	check(4, 0, "a budget of 4 requests does not fit: the mission has 3 requests left of 10 requests")
	check(0, 3, "")
	check(0, 4, "the mission's budget is used up: 3 requests left of 10 requests, and no task holds anything that it could give back")
	b.Spawn(centurion.Task{ID: "t"}, Amount{Rounds: 1})
	if err := b.Fits(centurion.TaskBudget{Cost: 5}, Amount{Rounds: 4}); err != nil {
		t.Errorf("while another holds something, and of what has no limit: %v", err)
	}
	b = New(centurion.Mission{Options: centurion.MissionOptions{MaxRounds: 10}, Rounds: 12}, nil)
	check(1, 0, "a budget of 1 request does not fit: the mission has 0 requests left of 10 requests")
	check(0, 1, "the mission's budget is used up: 0 requests left of 10 requests, and no task holds anything that it could give back")
	left := OwnLeft(centurion.Task{Budget: centurion.TaskBudget{Cost: 0.5, Tokens: 100, Rounds: 3}, Usage: centurion.Usage{USD: 0.25, Tokens: centurion.Tokens{Input: 150}}, Rounds: 2})
	equal(t, "left", strings.Join(left, ", "), "$0.25, 0 tokens, 1 request")
}

// What the Commander is told of the budget: what is spent of what has a limit, what tasks have reserved, and the time that is left.
func TestLine(t *testing.T) {
	spent := centurion.Mission{Usage: centurion.Usage{USD: 0.25, Tokens: centurion.Tokens{Input: 4000, Output: 500}}, Rounds: 3, ToolCalls: 7}
	unpriced := spent
	unpriced.Usage.Unpriced = true
	for name, test := range map[string]struct {
		mission centurion.Mission
		options centurion.MissionOptions
		portion Amount
		want    string
	}{
		"no limit": {mission: spent, portion: Amount{usdUnits, 500, 1}, want: "Spent: $0.25, 4500 tokens"},
		"every limit": {mission: spent, options: centurion.MissionOptions{MaxCost: 2, MaxTokens: 10_000, MaxRounds: 10, MaxToolCalls: 50, MaxDuration: 3_600_000},
			want: "Spent: $0.25 of $2.00, 4500 of 10000 tokens, 3 of 10 requests, 7 of 50 tool calls, time left: 50m"},
		"reserved": {mission: spent, options: centurion.MissionOptions{MaxCost: 2, MaxTokens: 10_000, MaxRounds: 10}, portion: Amount{usdUnits / 2, 500, 1},
			want: "Spent: $0.25 of $2.00 ($0.50 reserved by 1 task), 4500 of 10000 tokens (500 tokens reserved by 1 task), 3 of 10 requests (1 request reserved by 1 task)"},
		"one of each": {mission: centurion.Mission{}, options: centurion.MissionOptions{MaxTokens: 1, MaxRounds: 1, MaxToolCalls: 1, MaxDuration: 1},
			want: "Spent: $0.00, 0 of 1 tokens, 0 of 1 requests, 0 of 1 tool calls, time left: 0s"},
		"without a price": {mission: unpriced, options: centurion.MissionOptions{MaxCost: 2}, portion: Amount{usdUnits, 0, 1}, want: "Spent: 4500 tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			test.mission.Options = test.options
			b := New(test.mission, nil)
			b.Spawn(centurion.Task{ID: "t"}, test.portion)
			equal(t, "told", b.Line(test.mission, 600_000), test.want)
		})
	}
}
