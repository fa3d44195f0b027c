package session

import (
	"slices"

	"centurion/tools"
)

// Policy says which calls of one answer may run in parallel. In any case the results are in the order of the calls, and the next
// request follows the last of them.
type Policy string

// The policies.
const (
	// PolicyAuto runs independent calls in parallel: those that only read, and those that write different files. All others, such as
	// shell commands, run alone. An empty Policy means the same.
	PolicyAuto Policy = "auto"
	// PolicySequential runs one call after the other: each begins after the result of the previous one is stored.
	PolicySequential Policy = "sequential"
	// PolicyConcurrent starts all calls of an answer at once. Two that write the same file are not separated: the second gets an error,
	// since the file has changed since it was read.
	PolicyConcurrent Policy = "concurrent"
)

// batches groups the calls with these indexes, in order. Calls of one group may run in parallel; the groups run one after the other.
func (p Policy) batches(effects []tools.Effect, of []int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		var batch []int
		for _, n := range of {
			if len(batch) > 0 && p.parts(effects, batch, effects[n]) {
				if !yield(batch) {
					return
				}
				batch = nil
			}
			batch = append(batch, n)
		}
		if len(batch) > 0 {
			yield(batch)
		}
	}
}

// split splits the calls of an answer, by index, into those that run beside all others and the rest.
func (p Policy) split(effects []tools.Effect) (beside, others []int) {
	for n, e := range effects {
		if e.Beside && p != PolicySequential {
			beside = append(beside, n)
		} else {
			others = append(others, n)
		}
	}
	return beside, others
}

// parts reports whether a call must wait for all of a batch.
func (p Policy) parts(effects []tools.Effect, batch []int, e tools.Effect) bool {
	switch p {
	case PolicySequential:
		return true
	case PolicyConcurrent:
		return false
	}
	return slices.ContainsFunc(batch, func(m int) bool { return disturb(effects[m], e) })
}
