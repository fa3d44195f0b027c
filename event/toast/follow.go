package toast

import (
	"context"
	"iter"
	"time"

	"centurion"
	"centurion/guard"
)

// With yields the events of open and, between them, the toasts derived from them, each after its facts; only those of a mission's end
// come just before it, because readers leave there. A toast that waits for more comes [Window] after its first fact, even without
// another event, and at the latest when the events end. open is called once with a context that ends when the sequence is left, and its
// events must end with it. The sequence may be ranged over once.
func With(ctx context.Context, d *Deriver, open func(context.Context) iter.Seq2[centurion.Event, error]) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		var g guard.Group
		defer func() { _ = g.Wait() }()
		defer stop()
		in := make(chan told)
		g.Go("read events for toasts", func() error {
			defer close(in)
			return pump(ctx, in, open(ctx))
		})
		clock := time.NewTimer(time.Hour)
		defer clock.Stop()
		w := weaver{deriver: d, yield: yield}
		for going, waits := true, false; going; {
			select {
			case x, more := <-in:
				if !more {
					if err := g.Wait(); err != nil { // it panicked; other errors came as the events' own
						yield(centurion.Event{}, err)
						return
					}
					w.tell(d.Flush(d.Due().Add(24 * time.Hour))) // everything that waits
					return
				}
				going = w.take(x)
			case <-clock.C:
				waits = false
				going = w.tell(d.Flush(d.Due()))
			}
			switch due := !d.Due().IsZero(); {
			case due && !waits:
				clock.Reset(Window)
			case !due && waits:
				clock.Stop()
			}
			waits = !d.Due().IsZero()
		}
	}
}

// weaver yields facts and toasts. Its methods report false when the reader has left.
type weaver struct {
	deriver *Deriver
	yield   func(centurion.Event, error) bool
}

func (w weaver) tell(all []Notice) bool {
	for _, n := range all {
		if !w.yield(n.Event(), nil) {
			return false
		}
	}
	return true
}

func (w weaver) take(x told) bool {
	if x.err != nil || x.e.Type == centurion.EventDelta {
		return w.yield(x.e, x.err)
	}
	if !w.tell(w.deriver.Flush(x.e.Time.Time)) {
		return false
	}
	toasts := w.deriver.Apply(x.e)
	if x.e.Type.EndsMission() {
		return w.tell(toasts) && w.yield(x.e, nil)
	}
	return w.yield(x.e, nil) && w.tell(toasts)
}

// told is an iterator's value.
type told struct {
	e   centurion.Event
	err error
}

// pump passes events on until they or ctx end.
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
