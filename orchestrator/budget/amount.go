package budget

import (
	"fmt"
	"math"

	"centurion"
	"centurion/text"
)

// Dim is one of the dimensions of what a mission spends.
type Dim int

// The dimensions. Tool calls and time are limited, too, but not here: nothing of them is reserved.
const (
	USD Dim = iota // ten-millionths of a USD, to which prices are rounded
	Tokens
	Rounds // requests to a model
	dims
)

// Amount is something of each dimension. As a limit, zero means none.
type Amount [dims]int64

// unlimited is what is left of something that has no limit: more than can be spent, and twice of it is no overflow.
const unlimited = math.MaxInt64 / 4

// usdUnits is how many units of USD make a USD.
const usdUnits = 1e7

func amountOf(u centurion.Usage, rounds int) Amount {
	return Amount{int64(math.Round(u.USD * usdUnits)), u.Tokens.Total(), int64(rounds)}
}

// Own is what a task's own budget limits; zero in the dimensions in which it has none.
func Own(o centurion.TaskBudget) Amount {
	return Amount{amountOf(centurion.Usage{USD: o.Cost}, 0)[USD], o.Tokens, int64(o.Rounds)}
}

// OwnLeft is what is left of a task's own budget, a phrase for each dimension in which it has one.
func OwnLeft(t centurion.Task) (phrases []string) {
	own := Own(t.Budget)
	for d, n := range (&holding{own: own, spent: amountOf(t.Usage, t.Rounds)}).left() {
		if own[d] > 0 {
			phrases = append(phrases, Dim(d).Say(n))
		}
	}
	return phrases
}

// Say writes so much of the dimension: "$0.25", "300 tokens", "1 request".
func (d Dim) Say(n int64) string {
	switch d {
	case USD:
		return text.USD(float64(n) / usdUnits)
	case Tokens:
		return fmt.Sprintf("%d tokens", n)
	}
	return centurion.Count(int(n), "request")
}
