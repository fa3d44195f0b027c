package server

import (
	"context"
	"iter"
	"sync"

	"centurion"
)

// Follower tells someone the facts of a project in their order, also when its host changes. The zero Follower is ready to use, for one Run.
type Follower struct {
	mu   sync.Mutex    // protects the fields below
	told int64         // the newest fact that was told
	more chan struct{} // closed when another one was; nil without waiters
}

// Run tells all facts after q.After until ctx ends. A fact of which tell says that its host cannot be reached is told again from the next
// one; any other failure is noted.
func (f *Follower) Run(ctx context.Context, q EventQuery, events func(context.Context, EventQuery) iter.Seq2[centurion.Event, error],
	tell func(context.Context, centurion.Event) error, note func(string)) error {
	f.mark(q.After)
	for again := true; again; {
		again = false
		for e, err := range events(ctx, q) {
			if err != nil {
				return err
			}
			if err := tell(ctx, e); err != nil && ctx.Err() == nil {
				if again = centurion.KindOf(err) == centurion.KindNetwork && e.Seq > 0; again {
					break
				}
				note("an event of " + string(e.Type) + " could not be told to clients: " + err.Error())
			}
			q.After = max(q.After, e.Seq)
			f.mark(q.After)
		}
	}
	return context.Cause(ctx)
}

// mark notes that a fact was told.
func (f *Follower) mark(seq int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = max(f.told, seq)
	if f.more != nil {
		close(f.more)
		f.more = nil
	}
}

// Await waits until all facts up to one were told: a client that has the answer to its request may leave, and has to know by then what was
// told before it.
func (f *Follower) Await(ctx context.Context, seq int64) error {
	for {
		f.mu.Lock()
		if f.told >= seq {
			f.mu.Unlock()
			return nil
		}
		if f.more == nil {
			f.more = make(chan struct{})
		}
		more := f.more
		f.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
