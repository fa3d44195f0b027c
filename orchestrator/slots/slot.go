package slots

import (
	"context"
	"slices"
	"sync"

	"centurion"
)

// Slot is one session's right to run. Whoever drives the session releases it and takes it back; the tool calls that the
// session runs side by side may leave and enter in between. The methods of a nil Slot do nothing: it belongs to a session
// that runs without one.
type Slot struct {
	of    *Pool
	agent *lane

	mu    sync.Mutex // protects what follows
	model centurion.ModelRef
	held  []*lane // what it has of each lane, in the order in which it was taken; none while it does not run
	away  int     // tool calls that wait for somebody else
}

// lanes are those that a session with this model needs, in the order in which they are taken.
func (x *Slot) lanes(model centurion.ModelRef) []*lane {
	s := x.of.shared
	return append(append([]*lane{x.agent}, s.lanes(model)...), x.of.all, s.host)
}

// Model returns the model whose lanes the slot stands in.
func (x *Slot) Model() centurion.ModelRef {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.model
}

// Acquire takes the slot again after Release, before any new launch. What is held is not taken twice. When ctx ends first
// nothing is held, and the error is its cause.
func (x *Slot) Acquire(ctx context.Context) error {
	if x == nil || x.holds() {
		return nil
	}
	x.mu.Lock()
	lanes := x.lanes(x.model)
	x.mu.Unlock()
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
		freeAll(lanes) // that pays what the lane owes
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.held != nil || x.away > 0 { // another call was faster, or waits again
		freeAll(lanes)
		return nil
	}
	x.held = lanes
	return nil
}

func (x *Slot) holds() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.held != nil
}

// Release gives the slot back. Releasing what is not held does nothing, so that every way out may call it.
func (x *Slot) Release() {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	freeAll(x.held)
	x.held = nil
}

// Leave gives the slot back while a tool call waits for somebody else. Each call that leaves has to Enter.
func (x *Slot) Leave() {
	if x == nil {
		return
	}
	x.mu.Lock()
	x.away++
	x.mu.Unlock()
	x.Release()
}

// Enter ends what Leave began. The last call that comes back takes the slot again, as [Slot.Acquire] does, and is told that
// it was the last.
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

// Move changes the session's model. It may be called only by who drives the session, while no tool call of it runs. If that
// takes other lanes, those of the old model are given back and released is true: the slot is not held until Acquire has
// returned. Nothing is held while the new ones are waited for, so that two sessions that change places cannot wait for each
// other.
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
