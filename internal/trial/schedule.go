package trial

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"centurion/guard"
)

// manner says how a trial may be run: concurrently with which others, and where.
type manner uint

const (
	// byItself is a trial that measures a short time, or the memory or the goroutines of this process.
	byItself manner = 1 << iota
	// computes is a trial that keeps the processors busy: one at a time, next to those that wait.
	computes
	// waits is a trial that mostly waits. It runs next to one that computes, which its measurements must tolerate.
	waits
	// measuresFirst is a byItself trial that lets others run once it has measured, see [T.Measured]. There is at most one.
	measuresFirst
	// inMemory is a trial that does not depend on disks: its scratch directory is in memory if there is enough of it.
	inMemory
)

// schedule runs trials: first those that must be alone, then those that compute, one after the other, next to those that wait,
// likewise. The last that must be alone lets the others start once it has measured; see [T.Measured]. Finished results are passed to
// done, one at a time. The results are in the order of the trials.
func schedule(ctx context.Context, chosen []trial, run func(ctx context.Context, one trial, measured func()) result, done func(result)) []result {
	results := make([]result, len(chosen))
	var mu sync.Mutex // of results and done
	lane := func(of manner, f func(one trial, run func(measured func()))) {
		for i, one := range chosen {
			if one.how&of == 0 || ctx.Err() != nil {
				continue
			}
			f(one, func(measured func()) {
				r := run(ctx, one, measured)
				mu.Lock()
				defer mu.Unlock()
				results[i] = r
				done(r)
			})
		}
	}
	var g guard.Group
	var last func(measured func())
	lane(byItself, func(one trial, run func(func())) {
		if one.how&measuresFirst != 0 {
			last = run
			return
		}
		run(func() {})
	})
	if last != nil {
		measured := make(chan struct{})
		over := sync.OnceFunc(func() { close(measured) })
		g.Go("a trial that has measured", func() error {
			defer over()
			last(over)
			return nil
		})
		<-measured
	}
	for _, of := range []manner{computes, waits} {
		g.Go("a lane of trials", func() error {
			lane(of, func(_ trial, run func(func())) { run(func() {}) })
			return nil
		})
	}
	_ = g.Wait() // [bench.one] survives any trial
	return slices.DeleteFunc(results, func(r result) bool { return r.ID == "" })
}

// InParallel calls f for 0 to n-1, at most atOnce at a time, and returns when all have returned. Once the trial's time is over or
// something is fatal, no further call starts. f may call all methods of T.
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
					over.Store(true) // it has reported why
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

// soon waits until f is true, and reports whether it became true. It waits patiently for other processes, which may just be slow on a
// busy machine.
func soon(ctx context.Context, limit time.Duration, f func() bool) bool {
	for deadline := time.Now().Add(limit); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return false
		}
	}
	return true
}
