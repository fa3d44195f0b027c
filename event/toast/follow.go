package toast

import (
	"context"
	"iter"
	"time"

	"centurion"
	"centurion/guard"
)

// With yields the events that open returns and, between them, the toasts that follow from them, each after the facts that
// it tells of; only those of a mission's end come just before it, because there readers leave. A toast that waits for more comes out [Window] after the first of them, whether another event comes or not,
// and at the latest when the events end. Open is called once with a context that ends when the sequence is left, and its
// events must end with it. The sequence may be ranged over once.
func With(ctx context.Context, d *Deriver, open func(context.Context) iter.Seq2[centurion.Event, error]) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		var g guard.Group
		defer func() { _ = g.Wait() }() // what went wrong in it was yielded
		defer stop()
		in := make(chan told)
		g.Go("read events for toasts", func() error {
			defer close(in)
			return guard.Call("read events", func() error { return pump(ctx, in, open(ctx)) })
		})
		clock := time.NewTimer(time.Hour)
		defer clock.Stop()
		tell := func(all []Notice) bool {
			for _, n := range all {
				if !yield(n.Event(), nil) {
					return false
				}
			}
			return true
		}
		waits := false // the clock runs for a toast
		for {
			select {
			case x, more := <-in:
				if !more {
					tell(d.Flush(d.Due().Add(24 * time.Hour)))
					return
				}
				if x.err != nil || x.e.Type == centurion.EventDelta {
					if !yield(x.e, x.err) {
						return
					}
					break
				}
				if !tell(d.Flush(x.e.Time.Time)) {
					return
				}
				follow := d.Apply(x.e)
				if x.e.Type.EndsMission() {
					if !tell(follow) {
						return
					}
					follow = nil
				}
				if !yield(x.e, nil) || !tell(follow) {
					return
				}
			case <-clock.C:
				waits = false
				if !tell(d.Flush(d.Due())) {
					return
				}
			}
			if due := !d.Due().IsZero(); due && !waits {
				clock.Reset(Window)
				waits = true
			} else if !due {
				clock.Stop()
				waits = false
			}
		}
	}
}

// told is what an iterator yields.
type told struct {
	e   centurion.Event
	err error
}

// pump hands events on until they or ctx end.
func pump(ctx context.Context, to chan<- told, events iter.Seq2[centurion.Event, error]) error {
	for e, err := range events {
		select {
		case to <- told{e, err}:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}
