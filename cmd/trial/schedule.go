package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"centurion/guard"
)

// company says beside what a trial may run. Trials that wait for clocks most of the time would make a run long for nothing.
type company int

const (
	// byItself is a trial whose figure is a short time, or that looks at the memory or the goroutines of this process.
	byItself company = iota
	// computes is a trial that keeps the processors busy: one at a time, beside those that wait.
	computes
	// waits is a trial that mostly waits. It runs beside one that computes, and what it measures, if anything, has to bear that.
	waits
)

// schedule runs trials in three lanes: those that compute, one after the other, beside those that wait, likewise; then, one by
// one, those that have to be alone. What ends is told to done, one at a time.
func schedule(ctx context.Context, chosen []trial, run func(context.Context, trial) result, done func(result)) []result {
	results := make([]result, len(chosen))
	var mu sync.Mutex // of results and done
	lane := func(with company) error {
		for i, one := range chosen {
			if one.with != with || ctx.Err() != nil {
				continue
			}
			r := run(ctx, one)
			mu.Lock()
			results[i] = r
			done(r)
			mu.Unlock()
		}
		return nil
	}
	var g guard.Group
	g.Go("trials that compute", func() error { return lane(computes) })
	g.Go("trials that wait", func() error { return lane(waits) })
	_ = g.Wait() // lanes return nil
	_ = lane(byItself)
	return slices.DeleteFunc(results, func(r result) bool { return r.ID == "" })
}

// InParallel calls f for 0 to n-1, so many at a time, and returns when all have returned. Once the trial's time is over or
// something is fatal no further call begins. In f all methods of T may be called.
func (t *T) InParallel(n, atOnce int, f func(i int)) {
	var next atomic.Int64
	var over atomic.Bool
	var g guard.Group
	for range min(n, atOnce) {
		g.Go("part of a trial", func() error {
			for t.ctx.Err() == nil && !over.Load() {
				i := int(next.Add(1)) - 1
				if i >= n {
					break
				}
				err := guard.Call("part of a trial", func() error { f(i); return nil })
				if p, ok := errors.AsType[*guard.PanicError](err); ok && p.Value == any(stopped{}) {
					over.Store(true) // it has said why
				} else if err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := g.Wait()
	if over.Load() {
		panic(stopped{})
	}
	t.Must(err)
}

// soon waits until f is true, and says whether it became so: what other processes do is waited for with much patience, because
// on a busy machine nothing else is wrong with them.
func soon(ctx context.Context, limit time.Duration, f func() bool) bool {
	for deadline := time.Now().Add(limit); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return false
		}
	}
	return true
}
