package slots

import (
	"context"
	"slices"
	"sync"

	"centurion"
)

// Slot is one session's right to run. The driver of the session releases and reacquires it; its parallel tool calls may leave and enter
// in between. The methods of a nil Slot, of a session that runs without one, do nothing.
type Slot struct {
	of    *Pool
	agent *lane

	mu    sync.Mutex // protects the fields below
	model centurion.ModelRef
	held  []*lane // its lanes in order of acquisition; nil while it does not run
	away  int     // tool calls waiting for other agents

	taking chan struct{} // closed when the call that takes the slot has ended; nil while none does
}

// lanes are the lanes of a session with this model, in order of acquisition.
func (x *Slot) lanes(model centurion.ModelRef) []*lane {
	s := x.of.shared
	return slices.Concat([]*lane{x.agent}, s.lanes(model), []*lane{x.of.all}, s.all())
}

// Model returns the model whose lanes the slot uses.
func (x *Slot) Model() centurion.ModelRef {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.model
}

// Acquire takes the slot again after Release, ahead of new launches. It does nothing if the slot is held. If ctx ends first, nothing is
// held and the error is its cause.
func (x *Slot) Acquire(ctx context.Context) error {
	if x == nil {
		return nil
	}
	lanes, done, err := x.take(ctx)
	if lanes == nil {
		return err
	}
	defer done()
	for {
		for i, l := range lanes {
			if err := l.acquire(ctx); err != nil {
				freeAll(lanes[:i])
				return context.Cause(ctx)
			}
		}
		if !shrunk(lanes) {
			break
		}
		freeAll(lanes) // this pays what the lane owes
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.away > 0 { // another call waits again
		freeAll(lanes)
		return nil
	}
	x.held = lanes
	return nil
}

// take returns the lanes that the caller is to acquire, or none if the slot is held. Of several calls one does it, which calls done, and the
// others wait for that: in a full lane they would wait for their own session.
func (x *Slot) take(ctx context.Context) (lanes []*lane, done func(), err error) {
	for {
		x.mu.Lock()
		other := x.taking
		if x.held == nil && other == nil {
			defer x.mu.Unlock()
			mine := make(chan struct{})
			x.taking = mine
			return x.lanes(x.model), func() {
				x.mu.Lock()
				defer x.mu.Unlock()
				x.taking = nil
				close(mine)
			}, nil
		}
		held := x.held != nil
		x.mu.Unlock()
		if held {
			return nil, nil, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// Release releases the slot. It does nothing if the slot is not held, so every exit may call it.
func (x *Slot) Release() {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	freeAll(x.held)
	x.held = nil
}

// Leave releases the slot while a tool call waits for other agents. Each Leave needs an Enter.
func (x *Slot) Leave() {
	if x == nil {
		return
	}
	x.mu.Lock()
	x.away++
	x.mu.Unlock()
	x.Release()
}

// Enter ends a Leave. The last call to return takes the slot again, as [Slot.Acquire] does, and gets last = true.
func (x *Slot) Enter(ctx context.Context) (last bool, err error) {
	if x == nil {
		return true, nil
	}
	x.mu.Lock()
	x.away--
	last = x.away == 0
	x.mu.Unlock()
	if !last {
		return false, nil
	}
	return true, x.Acquire(ctx)
}

// Move changes the session's model. Only the driver of the session may call it, while none of its tool calls runs. If the new model
// uses other lanes, it releases the old ones and returns true: the slot is not held until Acquire returns. Nothing is held while
// waiting for the new ones, so two sessions swapping models cannot deadlock.
func (x *Slot) Move(model centurion.ModelRef) (released bool) {
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	released = !slices.Equal(x.lanes(x.model), x.lanes(model))
	x.model = model
	if released {
		freeAll(x.held)
		x.held = nil
	}
	return released
}
