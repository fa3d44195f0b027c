package budget

import (
	"maps"
	"slices"
)

// ledger divides what a mission may spend: limit = spent + held by its accounts + free. It is arithmetic alone: it waits
// for nobody and knows no time.
//
// Each living task has an account, and so has the Commander. What an account holds for a task that has made no request
// yet was reserved when the task was started and may be taken back for those who are at work; from its first request on it
// holds what the request that is under way may cost. In a dimension in which the task has a budget of its own, the account
// holds what is left of that.
type ledger struct {
	limit    Amount
	spent    Amount
	accounts map[string]*holding
	opened   int // accounts, ever
}

type holding struct {
	number int    // the order in which they were opened
	own    Amount // the task's own budget; zero where it has none
	spent  Amount // by the task
	held   Amount
	whole  bool // what is left of the own budget is held
	begun  bool // it has made a request
}

// left is what remains of an account's own budget.
func (a *holding) left() Amount {
	var l Amount
	for d, most := range a.own {
		if most > 0 {
			l[d] = max(0, most-a.spent[d])
		}
	}
	return l
}

// open makes an account.
func (l *ledger) open(id string, own, spent Amount) {
	if l.accounts == nil {
		l.accounts = map[string]*holding{}
	}
	l.opened++
	l.accounts[id] = &holding{number: l.opened, own: own, spent: spent}
}

// close gives back what an account holds.
func (l *ledger) close(id string) { delete(l.accounts, id) }

// held is the sum of what the accounts hold, and how many hold something that is limited.
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

// free is what nobody holds. It is below zero where more was spent than had been reserved, which an answer can do whose
// endpoint does not keep to the limit it was given.
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

// short returns the first dimension in which have does not pay for want, or dims.
func short(want, have Amount) Dim {
	for d, w := range want {
		if w > 0 && w > have[d] {
			return Dim(d)
		}
	}
	return dims
}

// spawn reserves a portion for an account that holds nothing yet: what is left of its own budget, and a small first
// request beside it. It returns dims, or the dimension that is short; then nothing has changed.
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

// reclaim takes back what accounts hold that have made no request yet, the newest first, until want is free. With own it
// takes whole budgets as well. It takes nothing where all of it would not be enough.
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

// grant covers a request: the account then holds the most that it can cost. Peers is how many conversations share what is
// free. It returns how many tokens the answer may have; or, with 0, which dimension is short, and whether it is the
// task's own budget.
func (l *ledger) grant(id string, r request, peers int64) (answer int64, lacks Dim, own bool) {
	a, free := l.accounts[id], l.free()
	if !a.whole { // it was started without, or had to give it back
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

// settle ends a request: of what the account held for it, what was not spent is free again. Mission and task are what both
// have spent by then.
func (l *ledger) settle(id string, mission, task Amount) {
	l.spent = mission
	a := l.accounts[id]
	if a == nil {
		return
	}
	a.spent = task
	if a.whole { // else it holds nothing
		a.held = a.left()
	}
}
