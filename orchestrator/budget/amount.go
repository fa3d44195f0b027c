package budget

import (
	"math"

	"centurion"
	"centurion/text"
)

// Dim is a dimension of a mission's spending.
type Dim int

// The dimensions that are reserved. Tool calls and time are limited elsewhere.
const (
	USD Dim = iota // in ten-millionths of a USD, the unit prices are rounded to
	Tokens
	Rounds // requests to a model
	dims
)

// Amount has a number for each dimension. As a limit, zero means unlimited.
type Amount [dims]int64

// unlimited is the remainder where there is no limit: more than can be spent, and doubling it does not overflow.
const unlimited = math.MaxInt64 / 4

// usdUnits is the number of units per USD.
const usdUnits = 1e7

func amountOf(u centurion.Usage, rounds int) Amount {
	return Amount{int64(math.Round(u.USD * usdUnits)), u.Tokens.Total(), int64(rounds)}
}

// Own returns the limits of a task's own budget, zero in dimensions without one.
func Own(o centurion.TaskBudget) Amount {
	return Amount{amountOf(centurion.Usage{USD: o.Cost}, 0)[USD], o.Tokens, int64(o.Rounds)}
}

// OwnLeft describes what remains of a task's own budget, one phrase for each limited dimension.
func OwnLeft(t centurion.Task) (phrases []string) {
	own := Own(t.Budget)
	for d, n := range (&holding{own: own, spent: amountOf(t.Usage, t.Rounds)}).left() {
		if own[d] > 0 {
			phrases = append(phrases, Dim(d).Say(n))
		}
	}
	return phrases
}

// Say formats n units of the dimension: "$0.25", "300 tokens", "1 request".
func (d Dim) Say(n int64) string {
	switch d {
	case USD:
		return text.USD(float64(n) / usdUnits)
	case Tokens:
		return centurion.Count(int(n), "token")
	}
	return centurion.Count(int(n), "request")
}
