package slots

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"
)

// lane is a counted right with a line of launches before it. Because only the launch at the head of the line waits for the
// right itself, a session that comes back waits behind at most one launch.
type lane struct {
	line  line
	right *semaphore.Weighted

	mu   sync.Mutex // protects what follows
	size int
	owed int // of what was taken away, so many are still in use: who gives one back gives it to the lane
}

// maxLane is more than a lane is ever raised to. What a lane has less, it holds itself.
const maxLane = 1 << 20

func newLane(n int) *lane {
	l := &lane{right: semaphore.NewWeighted(maxLane), size: n}
	l.right.TryAcquire(int64(maxLane - n)) // nobody else knows of it yet
	return l
}

// resize lets up to n sessions run from now on. Raising wakes who waits. Lowering ends nothing: what is in use goes on, and
// nobody is let in until fewer than n are left.
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

// acquire waits for one. Who is let in although too many are in use, because the lane was made smaller meanwhile, gives
// it to the lane and waits again.
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

// full reports whether there is none to be had, or others wait for one.
func (l *lane) full() bool {
	if !l.right.TryAcquire(1) {
		return true
	}
	l.right.Release(1)
	return false
}

// free gives back one that was acquired.
func (l *lane) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owed > 0 {
		l.owed--
		return
	}
	l.right.Release(1)
}

// join takes a place in the line.
func (l *lane) join() *Place {
	p := &Place{at: l, first: make(chan struct{})}
	l.line.add(p)
	return p
}

// shrunk reports whether more of a lane are in use than it has: what is held of it is then due to the lane, unless its
// holder runs already.
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

// line is who waits, in the order in which they came.
type line struct {
	mu     sync.Mutex // protects places
	places []*Place
}

// Place is a place in the line of an agent's launches. It is taken at once, before its holder begins to wait for a slot.
type Place struct {
	at    *lane
	first chan struct{} // closed when it is the first of its line
}

// Leave gives the place up. Nil, or a place that was given up already, changes nothing.
func (p *Place) Leave() {
	if p != nil {
		p.at.line.remove(p)
	}
}

// admit waits until p is the first of its line, and then for the right. The place is kept, so that who stands behind it does
// not pass.
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
