package pulse

import (
	"sync"
	"sync/atomic"
	"time"

	"centurion/guard"
)

// Standstill is how late a poll must be to show that the whole process was stopped.
const Standstill = 10 * time.Second

// Auditor polls while tasks live. It never ends a busy task, however silent, and completes none: a task is completed when its function
// returns.
type Auditor struct {
	Interval time.Duration
	Audit    func(gap time.Duration) // checks all tasks; gap is how late the poll is

	polls atomic.Int64

	mu     sync.Mutex // protects the fields below
	living int        // tasks with a living goroutine
	stop   chan struct{}
	group  *guard.Group
}

// Watch counts a starting task. The first one starts the poll.
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

// Unwatch counts an ended task. The last one stops the poll and waits for its end.
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

// Polls is the number of polls so far.
func (a *Auditor) Polls() int64 { return a.polls.Load() }

// Living is the number of watched tasks.
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
