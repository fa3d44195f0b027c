package budget

import (
	"maps"
	"slices"
)

// ledger divides a mission's budget: limit = spent + held by its accounts + free. It only calculates; it never blocks and has no clock.
//
// Each living task has an account, and so has the Commander. Before its first request, a task's account holds the portion reserved at
// its start, which may be reclaimed for agents at work. From then on it holds the maximum cost of the current request. In dimensions
// with a budget of the task's own, it holds what remains of that.
type ledger struct {
	limit    Amount
	spent    Amount
	accounts map[string]*holding
	opened   int // number of accounts ever opened
}

type holding struct {
	number int    // order of opening
	own    Amount // the task's own budget; zero where unlimited
	spent  Amount // by the task
	held   Amount
	whole  bool // the remainder of the own budget is held
	begun  bool // it has made a request
}

// left is the remainder of an account's own budget.
func (a *holding) left() Amount {
	var l Amount
	for d, most := range a.own {
		if most > 0 {
			l[d] = max(0, most-a.spent[d])
		}
	}
	return l
}

// open creates an account.
func (l *ledger) open(id string, own, spent Amount) {
	if l.accounts == nil {
		l.accounts = map[string]*holding{}
	}
	l.opened++
	l.accounts[id] = &holding{number: l.opened, own: own, spent: spent}
}

// close releases what an account holds.
func (l *ledger) close(id string) { delete(l.accounts, id) }

// held sums what the accounts hold. n counts the accounts that hold anything limited.
func (l *ledger) held() (sum Amount, n int) {
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

// free is the unreserved rest. It is negative if more was spent than reserved, as when an endpoint exceeds the requested answer length.
func (l *ledger) free() Amount {
	held, _ := l.held()
	var f Amount
	for d, most := range l.limit {
		f[d] = unlimited
		if most > 0 {
			f[d] = most - l.spent[d] - held[d]
		}
	}
	return f
}

// short returns the first dimension in which have does not cover want, or dims.
func short(want, have Amount) Dim {
	for d, w := range want {
		if w > 0 && w > have[d] {
			return Dim(d)
		}
	}
	return dims
}

// spawn reserves the portion of an account that holds nothing yet: the remainder of its own budget, and a small first request in the
// other dimensions. It returns dims; or the dimension that is short, and then changes nothing.
func (l *ledger) spawn(id string, portion Amount) Dim {
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

// reclaim releases reservations of accounts that have made no request yet, newest first, until want is free. With own it also releases
// whole own budgets. If all of them would not be enough, it releases nothing.
func (l *ledger) reclaim(want Amount, own bool) bool {
	idle := slices.DeleteFunc(slices.Collect(maps.Values(l.accounts)), func(a *holding) bool {
		return a.begun || a.held == Amount{} || !own && a.own != Amount{}
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
		a.held, a.whole = Amount{}, false
	}
	return true
}

// grant covers a request: the account then holds its maximum cost. peers is the number of conversations that share the free rest. It
// returns the maximum tokens of the answer; or 0, the dimension that is short, and whether that is the task's own budget.
func (l *ledger) grant(id string, r request, peers int64) (answer int64, lacks Dim, own bool) {
	a, free := l.accounts[id], l.free()
	if !a.whole { // it was started without, or its reservation was reclaimed
		left := a.left()
		if d := short(left, free); d < dims {
			return 0, d, false
		}
		for d := range left {
			if a.own[d] > 0 {
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
	share[Rounds] = all[Rounds]
	answer = min(r.most, max(r.least, r.pays(share), min(comfort, r.pays(all))))
	for d, c := range r.cost(answer) {
		if a.own[d] == 0 {
			a.held[d] = c
		}
	}
	a.begun = true
	return answer, dims, false
}

// settle ends a request and releases the unspent part of its reservation. mission and task are the totals spent so far.
func (l *ledger) settle(id string, mission, task Amount) {
	l.spent = mission
	a := l.accounts[id]
	if a == nil {
		return
	}
	a.spent = task
	if a.whole { // otherwise it holds nothing
		a.held = a.left()
	}
}
