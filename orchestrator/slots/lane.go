package slots

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"
)

// lane limits how many sessions run, with a queue of launches. Only the launch at the head of the queue waits for the semaphore, so a
// returning session waits behind at most one launch.
type lane struct {
	line  line
	right *semaphore.Weighted

	mu   sync.Mutex // protects the fields below
	size int
	owed int // removed by resize but still in use: released slots pay this off first
}

// maxLane is above any size of a lane. The lane itself holds the difference to its size.
const maxLane = 1 << 20

func newLane(n int) *lane {
	l := &lane{right: semaphore.NewWeighted(maxLane), size: n}
	l.right.TryAcquire(int64(maxLane - n)) // not shared yet
	return l
}

// resize sets the number of sessions that may run. Raising it wakes waiters. Lowering it ends nothing: running sessions continue, and
// none is admitted until fewer than n are left.
func (l *lane) resize(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ; l.size > n; l.size-- {
		if !l.right.TryAcquire(1) {
			l.owed++
		}
	}
	for ; l.size < n; l.size++ {
		if l.owed > 0 {
			l.owed--
		} else {
			l.right.Release(1)
		}
	}
}

func (l *lane) width() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

// acquire waits for a slot. A session admitted although the lane has shrunk meanwhile pays its slot to the lane and waits again.
func (l *lane) acquire(ctx context.Context) error {
	for {
		if err := l.right.Acquire(ctx, 1); err != nil {
			return err
		}
		l.mu.Lock()
		admitted := l.owed == 0
		if !admitted {
			l.owed--
		}
		l.mu.Unlock()
		if admitted {
			return nil
		}
	}
}

// full reports whether no slot is free, or others wait for one.
func (l *lane) full() bool {
	if !l.right.TryAcquire(1) {
		return true
	}
	l.right.Release(1)
	return false
}

// free releases a slot.
func (l *lane) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owed > 0 {
		l.owed--
		return
	}
	l.right.Release(1)
}

// join enqueues and returns the place.
func (l *lane) join() *Place {
	p := &Place{at: l, first: make(chan struct{})}
	l.line.add(p)
	return p
}

// shrunk reports whether more slots of a lane are in use than it has. A launch then has to return the slots that it holds, unless its
// session already runs.
func shrunk(lanes []*lane) bool {
	return slices.ContainsFunc(lanes, func(l *lane) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.owed > 0
	})
}

func freeAll(held []*lane) {
	for _, l := range slices.Backward(held) {
		l.free()
	}
}

// line is a queue in order of arrival.
type line struct {
	mu     sync.Mutex // protects places
	places []*Place
}

// Place is a place in the queue of an agent's launches. It is taken before its holder begins to wait for a slot.
type Place struct {
	at    *lane
	first chan struct{} // closed when it is the first of its line
}

// Leave gives up the place. It does nothing for nil or a place already given up.
func (p *Place) Leave() {
	if p != nil {
		p.at.line.remove(p)
	}
}

// admit waits until p is the first of its line, and then for a slot. It keeps the place, so that the next in line does not overtake.
func (p *Place) admit(ctx context.Context) error {
	select {
	case <-p.first:
	case <-ctx.Done():
		return ctx.Err()
	}
	return p.at.acquire(ctx)
}

func (l *line) add(p *Place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.places = append(l.places, p); len(l.places) == 1 {
		close(p.first)
	}
}

func (l *line) remove(p *Place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.places, p)
	if i < 0 {
		return
	}
	if l.places = slices.Delete(l.places, i, i+1); i == 0 && len(l.places) > 0 {
		close(l.places[0].first)
	}
}
