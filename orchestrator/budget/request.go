package budget

import (
	"math"

	"centurion"
)

const (
	// usefulAnswer is how many tokens an answer needs at least to be worth its request.
	usefulAnswer = 1000
	// unknownAnswer stands for the longest answer of a model of which nobody knows it.
	unknownAnswer = 8192
	// maxPortion is the most that is reserved for a task at its start, in units of USD: fifty of them have room in 10 USD,
	// the default of --max-cost.
	maxPortion = 10 * usdUnits / 50
)

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
func (r request) cost(answer int64) Amount {
	return Amount{int64(math.Ceil((float64(r.input)*r.in + float64(answer)*r.out) * usdUnits / 1e6)), r.input + answer, 1}
}

// pays is how many tokens of an answer have pays for, at most what the answer can have; less than zero if not even an
// empty one.
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

// priced makes a request at a price; what is sent is taken for new to the provider's cache. Without a price it costs nothing.
func priced(p *centurion.Price, input, least, most int64) request {
	r := request{input: input, least: least, most: most}
	if p != nil {
		r.in, r.out = max(p.Input, p.CacheWrite, p.CacheRead), p.Output
	}
	return r
}

// Portion is what is reserved for a task when it is started: what a small first request to a model at that price may cost,
// with so many tokens to send.
func Portion(p *centurion.Price, input int64) Amount {
	a := priced(p, input, usefulAnswer, usefulAnswer).cost(usefulAnswer)
	a[USD] = min(a[USD], maxPortion)
	return a
}
