package session

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"centurion"
	"centurion/failpoint"
	"centurion/guard"
	"centurion/tools"
)

// stopped is the result of a call that was aborted, or not started, because its turn was stopped.
const stopped = "Cancelled"

// callRun is one run of the calls of an answer. Data of a call belongs to that call's goroutine until it has ended.
type callRun struct {
	calls
	s       *Session
	effects []tools.Effect
	inputs  []json.RawMessage
	unbegun []bool // calls that had not begun when the turn ended
	files   pathSet
	endTurn bool
}

// all runs the calls: some in parallel to all others from the start, the rest in successive batches, each stored when it has ended.
func (r *callRun) all(ctx context.Context) error {
	beside, rest := r.s.cfg.Policy.split(r.effects)
	aside, drop := context.WithCancelCause(ctx)
	defer drop(nil)
	var lane guard.Group
	results := make([]tools.Result, len(beside))
	r.running(len(beside))
	if len(rest) > 0 {
		r.running(1)
	}
	for _, begun := range r.start(aside, &lane, beside, results, r.ended) {
		<-begun
	}
	err := r.batches(ctx, rest)
	if len(rest) > 0 {
		r.ended()
	}
	if err != nil {
		drop(err)
	}
	if err := errors.Join(err, lane.Wait()); err != nil {
		return err
	}
	return r.store(ctx, beside, results)
}

// running reports a change in the number of running calls.
func (r *callRun) running(more int) {
	if r.s.cfg.Running != nil && more != 0 {
		r.s.cfg.Running(more)
	}
}

func (r *callRun) ended() { r.running(-1) }

// batches runs one batch after the other. The last call of a batch counts as running until the next batch begins, so that the number of
// other calls never looks like the whole rest.
func (r *callRun) batches(ctx context.Context, of []int) error {
	for batch := range r.s.cfg.Policy.batches(r.effects, of) {
		var g guard.Group
		var left atomic.Int64
		left.Store(int64(len(batch)))
		results := make([]tools.Result, len(batch))
		r.running(len(batch) - 1)
		r.start(ctx, &g, batch, results, func() {
			if left.Add(-1) > 0 {
				r.ended()
			}
		})
		if err := g.Wait(); err != nil {
			return err
		}
		if err := r.store(ctx, batch, results); err != nil {
			return err
		}
	}
	return nil
}

// start starts calls in parallel; calls of one kind start in order. all are channels closed when each of them has begun, or ended.
// ended is called once for every call of the batch.
func (r *callRun) start(ctx context.Context, g *guard.Group, batch []int, results []tools.Result, ended func()) (all []<-chan struct{}) {
	alike := map[string]chan struct{}{} // closed when the newest call of a kind has begun
	for k, n := range batch {
		p := r.part(n)
		if p.State.Ended() {
			ended()
			continue
		}
		begun := make(chan struct{})
		all = append(all, begun)
		begin := sync.OnceFunc(func() { close(begun) })
		before := alike[r.effects[n].Alike]
		if r.effects[n].Alike != "" {
			alike[r.effects[n].Alike] = begun
		}
		g.Go("tool "+p.Tool, func() error {
			defer begin()
			defer ended()
			if before != nil {
				<-before // in the order of the model's answer
			}
			if r.unbegun[n] = ctx.Err() != nil; !r.unbegun[n] {
				results[k] = r.s.runCall(ctx, p, r.inputs[n], begin)
			}
			return nil
		})
	}
	return all
}

// store stores the results of finished calls, with their effects.
func (r *callRun) store(ctx context.Context, batch []int, results []tools.Result) error {
	if len(batch) == 0 {
		return nil
	}
	failpoint.Hit(failpoint.ToolRan)
	var consumed []string
	changed := newPathSet()
	for _, res := range results {
		changed.add(res.Files...)
		consumed = append(consumed, res.Consumes...)
		r.endTurn = r.endTurn || res.EndTurn
	}
	r.files.add(changed.sorted()...)
	r.noteSame(batch)
	return r.s.storeResults(ctx, r.calls, batch, consumed, changed.sorted())
}

// leave ends the calls that had not begun when the turn was stopped. If another call of the answer continues later, they are stored as
// not begun and run then, too: the model requested all of them together.
func (r *callRun) leave(ctx context.Context) error {
	later := false
	var rest []int
	for n := range r.parts {
		switch {
		case r.unbegun[n]:
			rest = append(rest, n)
		case !r.part(n).State.Ended():
			later = true
		}
	}
	if len(rest) == 0 {
		return nil
	}
	for _, n := range rest {
		if p := r.part(n); later {
			p.State.Status = centurion.ToolPending
		} else {
			fail(p, stopped)
		}
	}
	return r.s.storeResults(ctx, r.calls, rest, nil, nil)
}

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
