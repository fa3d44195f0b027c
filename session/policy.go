package session

import (
	"slices"

	"centurion/tools"
)

// Policy says which calls of one answer may run at the same time. Whatever it says, the results stand in the order of the
// calls, and the model is asked again after the last of them.
type Policy string

// The policies.
const (
	// PolicyAuto lets calls overlap that cannot disturb each other: those that only read, and those that write different
	// files. Every other call, a shell command above all, runs alone. An empty Policy means the same.
	PolicyAuto Policy = "auto"
	// PolicySequential runs one call after the other: none begins before the one before it has ended and its result is
	// stored.
	PolicySequential Policy = "sequential"
	// PolicyConcurrent begins all calls of an answer at once. Two that write one file are not kept apart: the second
	// finds that the file has changed since it was read, and is told so.
	PolicyConcurrent Policy = "concurrent"
)

// batches groups the calls with these indexes, in order, so that those of one group may run at the same time and the groups run one after the
// other.
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

// split parts the calls of an answer, by their indexes, into those that run beside all others and the rest.
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

// parts reports whether a call has to wait for all of a batch.
func (p Policy) parts(effects []tools.Effect, batch []int, e tools.Effect) bool {
	switch p {
	case PolicySequential:
		return true
	case PolicyConcurrent:
		return false
	}
	return slices.ContainsFunc(batch, func(m int) bool { return disturb(effects[m], e) })
}
