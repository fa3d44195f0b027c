package budget

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"centurion"
	"centurion/guard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// O2: whatever is reserved, granted, settled, closed and taken back, in any order and across crashes, what is spent and what is
// held are never together more than the limit, and in the end nothing is held.
func TestLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := Amount{rapid.Int64Range(1, 5*usdUnits).Draw(t, "usd"), rapid.Int64Range(1, 300_000).Draw(t, "tokens"), rapid.Int64Range(1, 60).Draw(t, "rounds")}
		limit[rapid.IntRange(0, int(dims)-1).Draw(t, "none")] = 0
		l := &ledger{limit: limit}
		own, spent := map[string]Amount{}, map[string]Amount{}
		asked := map[string]int64{} // tokens of the answer that is under way
		r := request{input: 2000, least: usefulAnswer, most: unknownAnswer, in: 3, out: 15}
		check := func() {
			held, _ := l.held()
			for d, most := range l.limit {
				if most > 0 && l.spent[d]+held[d] > most {
					t.Fatalf("dimension %d: %d spent and %d held of %d", d, l.spent[d], held[d], most)
				}
			}
			for id, a := range l.accounts {
				for d, most := range a.own {
					if most > 0 && a.spent[d]+a.held[d] > most {
						t.Fatalf("%s: dimension %d: %d spent and %d held of its own %d", id, d, a.spent[d], a.held[d], most)
					}
				}
			}
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			id := fmt.Sprint("t", rapid.IntRange(0, 9).Draw(t, "task"))
			switch rapid.SampledFrom([]string{"spawn", "spawn", "grant", "grant", "settle", "settle", "close", "reclaim", "crash"}).Draw(t, "step") {
			case "spawn":
				if l.accounts[id] == nil {
					own[id] = Amount{}
					if rapid.Bool().Draw(t, "own") {
						own[id] = Amount{usdUnits / 5, 0, 5}
					}
					spent[id] = Amount{}
					l.open(id, own[id], Amount{})
					l.spawn(id, r.cost(usefulAnswer))
				}
			case "grant":
				if l.accounts[id] != nil && asked[id] == 0 {
					if n, lacks, _ := l.grant(id, r, rapid.Int64Range(1, 10).Draw(t, "peers")); lacks == dims {
						if n < r.least || n > r.most {
							t.Fatalf("an answer of %d tokens", n)
						}
						asked[id] = n
					}
				}
			case "settle":
				if n := asked[id]; n > 0 {
					cost := r.cost(rapid.Int64Range(0, n).Draw(t, "answer"))
					total, mine := l.spent, spent[id]
					for d, c := range cost {
						total[d], mine[d] = total[d]+c, mine[d]+c
					}
					spent[id] = mine
					l.settle(id, total, mine)
					delete(asked, id)
				}
			case "close":
				if asked[id] == 0 {
					l.close(id)
				}
			case "reclaim":
				l.reclaim(r.cost(usefulAnswer), rapid.Bool().Draw(t, "whole"))
			case "crash": // what the store knows is what is spent; what was under way is forgotten
				after := &ledger{limit: l.limit, spent: l.spent}
				for id := range l.accounts {
					after.open(id, own[id], spent[id])
					after.spawn(id, r.cost(usefulAnswer))
				}
				l, asked = after, map[string]int64{}
			}
			check()
		}
		for id := range l.accounts {
			l.close(id)
		}
		if held, n := l.held(); n != 0 || held != (Amount{}) {
			t.Fatalf("%v held by %d in the end", held, n)
		}
	})
}

// O2: fifty workers that reserve, spend and end at the same time never spend more than there is, and none waits for ever.
func TestReservesAtOnce(t *testing.T) { synctest.Test(t, reserveAtOnce) }

func reserveAtOnce(t *testing.T) {
	const workers, rounds = 50, 40
	limit := centurion.Mission{Options: centurion.MissionOptions{MaxRounds: workers * rounds / 2, MaxTokens: 1 << 40}}
	var refused atomic.Int64
	b := New(limit, func(Dim) error { refused.Add(1); return centurion.ErrBudget })
	var spent atomic.Int64
	var g guard.Group
	var mission centurion.Mission
	store := make(chan struct{}, 1) // as the store's writer: one at a time
	for i := range workers {
		account, _ := b.Spawn(centurion.Task{ID: fmt.Sprint(i)}, Amount{0, 0, 1})
		g.Go("worker", func() error {
			defer b.Close(account)
			for n := range rounds {
				r := request{input: 10, least: 10, most: 100}
				c := &claimant{id: account, request: &r}
				err := b.claim(t.Context(), c, func(string) (func() error, error) { return func() error { return nil }, nil })
				if err != nil {
					return nil // nobody could give anything back
				}
				spent.Add(1)
				store <- struct{}{}
				mission.Rounds++
				b.Settle(account, mission, centurion.Task{Rounds: n + 1})
				b.Done(account)
				<-store
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	equal(t, "requests", spent.Load(), int64(limit.Options.MaxRounds))
	if refused.Load() == 0 {
		t.Error("nobody was told that the limit is reached")
	}
	end := b.State()
	equal(t, "held in the end", end.Reserved(), centurion.Reserved{})
	equal(t, "spent", end.Spent[Rounds], int64(limit.Options.MaxRounds))
}

// O2: how much of what is left one request may take: an equal share, but enough for a file, never more than there is.
func TestGrant(t *testing.T) {
	for name, test := range map[string]struct {
		left, own Amount
		most      int64
		peers     int64
		answer    int64
		lacks     Dim
		mine      bool
	}{
		"all of a small answer":        {left: Amount{10 * usdUnits}, most: 2000, peers: 1, answer: 2000, lacks: dims},
		"an equal share":               {left: Amount{10 * usdUnits}, most: 64_000, peers: 50, answer: 19_000, lacks: dims},
		"a file, though it is more":    {left: Amount{1 * usdUnits}, most: 64_000, peers: 50, answer: comfort, lacks: dims},
		"what there is":                {left: Amount{3 * usdUnits / 100}, most: 64_000, peers: 50, answer: 2000, lacks: dims},
		"too little for an answer":     {left: Amount{15 * usdUnits / 1000}, most: 64_000, peers: 1, lacks: USD},
		"too few tokens":               {left: Amount{0, 10_500}, most: 64_000, peers: 1, lacks: Tokens},
		"one of few requests":          {left: Amount{10 * usdUnits, 0, 3}, most: 64_000, peers: 50, answer: 19_000, lacks: dims},
		"its own tokens are not there": {left: Amount{0, 20_000}, own: Amount{0, 30_000}, most: 64_000, peers: 1, lacks: Tokens},
		"tokens":                       {left: Amount{0, 13_000}, most: 64_000, peers: 1, answer: 3000, lacks: dims},
		"a model with tiny answers":    {left: Amount{0, 10_600}, most: 500, peers: 1, answer: 500, lacks: dims},
		"no request":                   {left: Amount{0, 0, -1}, most: 64_000, peers: 1, lacks: Rounds},
		"its own budget":               {left: Amount{10 * usdUnits}, own: Amount{25 * usdUnits / 1000}, most: 64_000, peers: 1, answer: 1500, lacks: dims},
		"its own budget is used up":    {left: Amount{10 * usdUnits}, own: Amount{usdUnits / 100}, most: 64_000, peers: 1, lacks: USD, mine: true},
		"its own budget is not there":  {left: Amount{usdUnits / 10}, own: Amount{usdUnits}, most: 64_000, peers: 1, lacks: USD},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{limit: test.left}
			if test.left[Rounds] < 0 {
				l.limit[Rounds], l.spent[Rounds] = 1, 1
			}
			l.open("t", test.own, Amount{})
			r := request{input: 10_000, least: min(usefulAnswer, test.most), most: test.most, in: 1, out: 10}
			answer, lacks, mine := l.grant("t", r, test.peers)
			equal(t, "answer", answer, test.answer)
			equal(t, "lacks", lacks, test.lacks)
			equal(t, "its own", mine, test.mine)
		})
	}
}

// O2: what a request had reserved is free again when it is settled: less what was spent, and all of it where nothing was.
func TestSettleFrees(t *testing.T) {
	l := &ledger{limit: Amount{0, 100_000}}
	l.open("t", Amount{}, Amount{})
	r := request{input: 10_000, least: usefulAnswer, most: 5000, in: 1, out: 10}
	for _, spent := range []int64{12_000, 0} {
		before := l.free()[Tokens]
		if _, lacks, _ := l.grant("t", r, 1); lacks != dims {
			t.Fatalf("it lacks %v", lacks)
		}
		equal(t, "free while it is asked", l.free()[Tokens], before-15_000)
		l.settle("t", Amount{0, l.spent[Tokens] + spent}, Amount{0, l.accounts["t"].spent[Tokens] + spent})
		equal(t, "free when it is settled", l.free()[Tokens], before-spent)
	}
}

// O2: work that is under way goes before what has not begun: its reservation is taken back, the newest first, and never more
// than is needed; whole budgets only in the end.
func TestReclaim(t *testing.T) {
	make := func() *ledger {
		l := &ledger{limit: Amount{Rounds: 6}}
		for _, id := range []string{"begun", "own", "old", "new"} {
			o := Amount{}
			if id == "own" {
				o[Rounds] = 2
			}
			l.open(id, o, Amount{})
			l.spawn(id, Amount{Rounds: 1})
		}
		l.grant("begun", request{most: 1}, 1)
		return l
	}
	for _, test := range []struct {
		want int64
		own  bool
		free int64 // afterwards
		ok   bool
	}{{1, false, 1, true}, {2, false, 2, true}, {3, false, 3, true}, {4, false, 1, false}, {5, true, 5, true}, {6, true, 1, false}} {
		l := make()
		equal(t, fmt.Sprintf("%d, whole %v", test.want, test.own), l.reclaim(Amount{Rounds: test.want}, test.own), test.ok)
		equal(t, "free", l.free()[Rounds], test.free)
	}
	l := &ledger{limit: Amount{Rounds: 10}}
	for i := range 10 {
		l.open(fmt.Sprint(i), Amount{}, Amount{})
		l.spawn(fmt.Sprint(i), Amount{Rounds: 1})
	}
	l.reclaim(Amount{Rounds: 5}, false)
	for i := range 10 {
		equal(t, fmt.Sprint("held by number ", i), l.accounts[fmt.Sprint(i)].held[Rounds] == 1, i < 5)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
