package pulse

import (
	"sync"
	"sync/atomic"
	"time"

	"centurion/guard"
)

// Standstill is how late a poll must come for it to have been kept from it, as everything else was.
const Standstill = 10 * time.Second

// Auditor polls while tasks live. It ends nothing that is busy, however silent, and completes nothing: a task is completed because its
// function returned.
type Auditor struct {
	Interval time.Duration
	Audit    func(gap time.Duration) // looks at everything; gap is how much later than it should the poll has come

	polls atomic.Int64

	mu     sync.Mutex // protects what follows
	living int        // tasks whose goroutines live
	stop   chan struct{}
	group  *guard.Group
}

// Watch says that a task begins to live. The first one starts the poll.
func (a *Auditor) Watch() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.living++; a.living > 1 {
		return
	}
	stop := make(chan struct{})
	a.stop, a.group = stop, &guard.Group{}
	a.group.Go("auditor", func() error { a.poll(stop); return nil })
}

// Unwatch says that a task lives no more. The last one ends the poll and waits for its end.
func (a *Auditor) Unwatch() error {
	a.mu.Lock()
	if a.living--; a.living > 0 {
		a.mu.Unlock()
		return nil
	}
	close(a.stop)
	group := a.group
	a.mu.Unlock()
	return group.Wait()
}

// Polls is how often it has looked.
func (a *Auditor) Polls() int64 { return a.polls.Load() }

// Living is how many tasks it looks at.
func (a *Auditor) Living() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.living
}

// poll audits until stop is closed.
func (a *Auditor) poll(stop <-chan struct{}) {
	tick := time.NewTicker(a.Interval)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
		a.polls.Add(1)
		gap := time.Since(last) - a.Interval
		last = time.Now()
		a.Audit(gap)
	}
}
