package budget

import (
	"math"

	"centurion"
)

const (
	// usefulAnswer is the fewest tokens of an answer that make a request worthwhile.
	usefulAnswer = 1000
	// unknownAnswer is assumed for models whose longest answer is unknown.
	unknownAnswer = 8192
	// maxPortion is the most that is reserved for a task at its start, in units of USD. Fifty tasks fit into 10 USD, the default of
	// --max-cost.
	maxPortion = 10 * usdUnits / 50
)

// request describes a request before it is made.
type request struct {
	input       int64   // estimated tokens to send
	least, most int64   // tokens of its answer: shorter is useless, longer is impossible
	in, out     float64 // USD per million tokens
}

// comfort is the number of tokens that an answer may have even beyond an equal share of the rest: enough for most files. While that
// much is free, others wait for a moment instead.
const comfort = 4096

// cost is the maximum cost of the request with an answer of that many tokens.
func (r request) cost(answer int64) Amount {
	return Amount{int64(math.Ceil((float64(r.input)*r.in + float64(answer)*r.out) * usdUnits / 1e6)), r.input + answer, 1}
}

// pays returns how many tokens of an answer have covers, at most r.most. It is negative if not even an empty answer is covered.
func (r request) pays(have Amount) int64 {
	usd := have[USD] - r.cost(0)[USD]
	if usd < 0 || have[Rounds] < 1 {
		return -1
	}
	n := min(r.most, have[Tokens]-r.input)
	if r.out > 0 {
		n = int64(min(float64(n), math.Floor(float64(usd)*1e6/usdUnits/r.out)))
	}
	for n > 0 && r.cost(n)[USD] > have[USD] { // rounding
		n--
	}
	return n
}

// priced makes a request at a price, assuming that nothing sent is in the provider's cache. Without a price it is free.
func priced(p *centurion.Price, input, least, most int64) request {
	r := request{input: input, least: least, most: most}
	if p != nil {
		r.in, r.out = max(p.Input, p.CacheWrite, p.CacheRead), p.Output
	}
	return r
}

// Portion is reserved for a task at its start: the cost of a small first request that sends that many tokens at that price.
func Portion(p *centurion.Price, input int64) Amount {
	a := priced(p, input, usefulAnswer, usefulAnswer).cost(usefulAnswer)
	a[USD] = min(a[USD], maxPortion)
	return a
}
