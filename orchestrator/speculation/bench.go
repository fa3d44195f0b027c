package speculation

import (
	"context"
	"sync"

	"centurion"
	"centurion/guard"
)

// Bench runs the checks of one mission, several at once.
type Bench struct {
	most    int
	run     func(ctx context.Context, c Check) (centurion.Receipt, error)
	may     func(ctx context.Context, w Wanted) bool
	changed chan struct{} // holds a value if the line has changed or a check has ended

	mu   sync.Mutex // protects the field below, the jobs in it, and the last fields of landings
	jobs map[Check]*job
}

// job is a check that runs or has ended.
type job struct {
	of      *Landing // that ends it when it leaves the line
	stop    context.CancelFunc
	stopped bool // it is not wanted any more
	used    bool // the queue has its result: if it asks again, the check runs again
	done    chan struct{}
	receipt centurion.Receipt // with err, set when done is closed
	err     error
}

// New returns a bench on which at most `most` checks run at once; 1 means that none runs before the queue asks for it. run runs a check; its
// error means that the check has no result. may reports whether a check may run before its time, without asking anyone.
func New(most int, run func(ctx context.Context, c Check) (centurion.Receipt, error), may func(ctx context.Context, w Wanted) bool) *Bench {
	return &Bench{most: most, run: run, may: may, changed: make(chan struct{}, 1), jobs: map[Check]*job{}}
}

// Join says that a landing is in the line. From now on its checks may run, as long as ctx lasts, until [Bench.Leave].
func (b *Bench) Join(ctx context.Context, l *Landing) {
	b.mu.Lock()
	l.life, l.stop = context.WithCancel(ctx)
	b.mu.Unlock()
	b.Tell()
}

// Leave ends the checks of a landing and waits for their end. Their results are forgotten.
func (b *Bench) Leave(l *Landing) {
	b.mu.Lock()
	l.life = nil
	l.stop()
	b.mu.Unlock()
	_ = l.checks.Wait() // each check has its own error
	b.mu.Lock()
	defer b.mu.Unlock()
	for c, j := range b.jobs {
		if j.of == l {
			delete(b.jobs, c)
		}
	}
	b.Tell()
}

// Tell says that the line has changed.
func (b *Bench) Tell() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// Known returns the result of a check of a landing in the line, if it has ended.
func (b *Bench) Known(c Check) (centurion.Receipt, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for have, j := range b.jobs {
		if have.same(c) && guard.Closed(j.done) && j.err == nil {
			return j.receipt, true
		}
	}
	return centurion.Receipt{}, false
}

// Result returns the receipt of a check that the queue needs now, for a landing or nil. Meanwhile the checks run that ahead returns, which is
// called anew whenever something has changed, with the number of checks that may run; if it returns none, those that run go on. Only the holder of the queue's turn calls it. The error is that of
// the check, which is not remembered.
func (b *Bench) Result(ctx context.Context, of *Landing, need Check, ahead func(most int) []Wanted) (centurion.Receipt, error) {
	var own guard.Group
	defer own.Wait()
	mine := false
	for {
		b.mu.Lock()
		j := b.jobs[need]
		if j == nil || !mine && guard.Closed(j.done) && (j.used || j.err != nil) {
			j, mine = b.launch(ctx, &own, of, need), true
		}
		b.mu.Unlock()
		if b.most > 1 && !guard.Closed(j.done) {
			if wanted := ahead(b.most); len(wanted) > 0 {
				b.steer(need, wanted)
			}
		}
		select {
		case <-b.changed:
			continue
		case <-ctx.Done():
			if !mine {
				return centurion.Receipt{}, context.Cause(ctx)
			}
			<-j.done // its error says what was stopped
		case <-j.done:
		}
		if j.err == nil || mine {
			b.use(need, j)
			return j.receipt, j.err
		}
	}
}

// use hands a result to the queue, once. It is forgotten unless a landing in the line has it.
func (b *Bench) use(c Check, j *job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j.used = true; j.err != nil || j.of == nil || j.of.life == nil {
		delete(b.jobs, c)
	}
}

// steer stops and starts checks beside the needed one.
func (b *Bench) steer(need Check, wanted []Wanted) {
	running := map[Check]bool{}
	b.mu.Lock()
	for c, j := range b.jobs {
		if !guard.Closed(j.done) {
			running[c] = j.stopped
		}
	}
	stop, start := steer(need, wanted, running, b.most)
	for _, c := range stop {
		b.jobs[c].stopped = true
		b.jobs[c].stop()
	}
	b.mu.Unlock()
	for _, w := range start {
		b.begin(w)
	}
}

// begin starts a check before its time, owned by its landing. One that had no result is not tried twice.
func (b *Bench) begin(w Wanted) {
	b.mu.Lock()
	life := w.Of.life
	b.mu.Unlock()
	if life == nil || !b.may(life, w) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.Of.life != nil && b.jobs[w.Check] == nil {
		b.launch(life, &w.Of.checks, w.Of, w.Check)
	}
}

// launch starts a check in a group. The caller holds the lock.
func (b *Bench) launch(ctx context.Context, g *guard.Group, of *Landing, c Check) *job {
	ctx, stop := context.WithCancel(ctx)
	j := &job{of: of, stop: stop, done: make(chan struct{})}
	b.jobs[c] = j
	j.err = &centurion.Error{Op: "check", Kind: centurion.KindCrashed, Msg: "its goroutine ended without returning"}
	g.Go("check", func() error {
		defer func() {
			stop()
			b.mu.Lock()
			defer b.mu.Unlock()
			if j.stopped {
				delete(b.jobs, c)
			}
			close(j.done)
			b.Tell()
		}()
		j.err = guard.Call("check", func() (err error) {
			j.receipt, err = b.run(ctx, c)
			return err
		})
		return nil
	})
	return j
}
