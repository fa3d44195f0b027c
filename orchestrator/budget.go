package orchestrator

import (
	"maps"
	"math"
	"slices"

	"centurion"
)

// The dimensions of what a mission spends.
const (
	dimUSD = iota // ten-millionths of a USD, to which prices are rounded
	dimTokens
	dimRounds
	dims
)

// amount is something of each dimension. As a limit, zero means none.
type amount [dims]int64

// unlimited is what is left of something that has no limit: more than can be spent, and twice of it is no overflow.
const unlimited = math.MaxInt64 / 4

// usdUnits is how many units of dimUSD make a USD.
const usdUnits = 1e7

func amountOf(u centurion.Usage, rounds int) amount {
	return amount{int64(math.Round(u.USD * usdUnits)), u.Tokens.Total(), int64(rounds)}
}

// ledger divides what a mission may spend: limit = spent + held by its accounts + free. It is arithmetic alone: it waits
// for nobody and knows no time.
//
// Each living task has an account, and so has the Commander. What an account holds for a task that has made no request
// yet was reserved when the task was started and may be taken back for those who are at work; from its first request on it
// holds what the request that is under way may cost. In a dimension in which the task has a budget of its own, the account
// holds what is left of that.
type ledger struct {
	limit    amount
	spent    amount
	accounts map[string]*holding
	opened   int // accounts, ever
}

type holding struct {
	number int    // the order in which they were opened
	own    amount // the task's own budget; zero where it has none
	spent  amount // by the task
	held   amount
	whole  bool // what is left of the own budget is held
	begun  bool // it has made a request
}

// left is what remains of an account's own budget.
func (a *holding) left() amount {
	var l amount
	for d, most := range a.own {
		if most > 0 {
			l[d] = max(0, most-a.spent[d])
		}
	}
	return l
}

// open makes an account. An account that is there stays as it is.
func (l *ledger) open(id string, own, spent amount) *holding {
	if a := l.accounts[id]; a != nil {
		return a
	}
	if l.accounts == nil {
		l.accounts = map[string]*holding{}
	}
	l.opened++
	a := &holding{number: l.opened, own: own, spent: spent}
	l.accounts[id] = a
	return a
}

// close gives back what an account holds.
func (l *ledger) close(id string) { delete(l.accounts, id) }

// held is the sum of what the accounts hold, and how many hold something that is limited.
func (l *ledger) held() (sum amount, n int) {
	for _, a := range l.accounts {
		some := false
		for d, h := range a.held {
			sum[d] += h
			some = some || h > 0 && l.limit[d] > 0
		}
		if some {
			n++
		}
	}
	return sum, n
}

// free is what nobody holds. It is below zero where more was spent than had been reserved, which an answer can do whose
// endpoint does not keep to the limit it was given.
func (l *ledger) free() amount {
	held, _ := l.held()
	var f amount
	for d, most := range l.limit {
		f[d] = unlimited
		if most > 0 {
			f[d] = most - l.spent[d] - held[d]
		}
	}
	return f
}

// short returns the first dimension in which have does not pay for want, or dims.
func short(want, have amount) int {
	for d, w := range want {
		if w > 0 && w > have[d] {
			return d
		}
	}
	return dims
}

// spawn reserves a portion for an account that holds nothing yet: what is left of its own budget, and a small first
// request beside it. It returns dims, or the dimension that is short; then nothing has changed.
func (l *ledger) spawn(id string, portion amount) int {
	a := l.accounts[id]
	left := a.left()
	for d, most := range a.own {
		if most > 0 {
			portion[d] = left[d]
		}
	}
	if d := short(portion, l.free()); d < dims {
		return d
	}
	a.held, a.whole = portion, true
	return dims
}

// reclaim takes back what accounts hold that have made no request yet, the newest first, until want is free. With own it
// takes whole budgets as well. It takes nothing where all of it would not be enough.
func (l *ledger) reclaim(want amount, own bool) bool {
	idle := slices.DeleteFunc(slices.Collect(maps.Values(l.accounts)), func(a *holding) bool {
		return a.begun || a.held == amount{} || !own && a.own != amount{}
	})
	slices.SortFunc(idle, func(a, b *holding) int { return b.number - a.number })
	have, n := l.free(), 0
	for ; n < len(idle) && short(want, have) < dims; n++ {
		for d, h := range idle[n].held {
			have[d] += h
		}
	}
	if short(want, have) < dims {
		return false
	}
	for _, a := range idle[:n] {
		a.held, a.whole = amount{}, false
	}
	return true
}

// request is what is known of a request before it is made.
type request struct {
	input       int64   // tokens that are sent, estimated
	least, most int64   // tokens of its answer: fewer would be of no use, more cannot be
	in, out     float64 // USD for a million tokens
}

// comfort is how many tokens an answer may have even where an equal share of what is left would not pay for them: enough
// for most files. As long as that much is free, somebody else waits for a moment instead.
const comfort = 4096

// cost is the most that the request can cost with an answer of so many tokens.
func (r request) cost(answer int64) amount {
	return amount{int64(math.Ceil((float64(r.input)*r.in + float64(answer)*r.out) * usdUnits / 1e6)), r.input + answer, 1}
}

// pays is how many tokens of an answer have pays for, at most what the answer can have; less than zero if not even an
// empty one.
func (r request) pays(have amount) int64 {
	usd := have[dimUSD] - r.cost(0)[dimUSD]
	if usd < 0 || have[dimRounds] < 1 {
		return -1
	}
	n := min(r.most, have[dimTokens]-r.input)
	if r.out > 0 {
		n = int64(min(float64(n), math.Floor(float64(usd)*1e6/usdUnits/r.out)))
	}
	for n > 0 && r.cost(n)[dimUSD] > have[dimUSD] { // rounding
		n--
	}
	return n
}

// grant covers a request: the account then holds the most that it can cost. Peers is how many conversations share what is
// free. It returns how many tokens the answer may have; or, with 0, which dimension is short, and whether it is the
// task's own budget.
func (l *ledger) grant(id string, r request, peers int64) (answer int64, lacks int, own bool) {
	a, free := l.accounts[id], l.free()
	if !a.whole { // it was started without, or had to give it back
		left := a.left()
		if d := short(left, free); d < dims {
			return 0, d, false
		}
		for d := range left {
			if a.own[d] > 0 {
				free[d] -= left[d] - a.held[d]
				a.held[d] = left[d]
			}
		}
		a.whole = true
	}
	all, share := a.held, a.held
	for d := range all {
		if a.own[d] == 0 {
			all[d] += free[d]
			share[d] += max(0, free[d]) / max(1, peers)
		}
	}
	if d := short(r.cost(r.least), all); d < dims {
		return 0, d, a.own[d] > 0
	}
	share[dimRounds] = all[dimRounds]
	answer = min(r.most, max(r.least, r.pays(share), min(comfort, r.pays(all))))
	for d, c := range r.cost(answer) {
		if a.own[d] == 0 {
			a.held[d] = c
		}
	}
	a.begun = true
	return answer, dims, false
}

// settle ends a request: of what the account held for it, what was not spent is free again. Mission and task are what both
// have spent by then.
func (l *ledger) settle(id string, mission, task amount) {
	l.spent = mission
	a := l.accounts[id]
	if a == nil {
		return
	}
	a.spent = task
	a.held = amount{}
	if a.whole {
		a.held = a.left()
	}
}

// reserved is what the accounts hold, of what is limited.
func (l *ledger) reserved() centurion.Reserved {
	sum, n := l.held()
	for d, most := range l.limit {
		if most == 0 {
			sum[d] = 0
		}
	}
	return centurion.Reserved{USD: float64(sum[dimUSD]) / usdUnits, Tokens: sum[dimTokens], Rounds: int(sum[dimRounds]), Tasks: n}
}
