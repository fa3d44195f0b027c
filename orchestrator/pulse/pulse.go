// Package pulse tells from the activity of a conversation whether it is alive.
//
// A [Pulse] belongs to one conversation, whose goroutines record each piece of an answer, each start or end of a call, and each wait.
// Others read its [Signs], from which [Limits.Judge] alone decides whether it hangs or has worked too long. Busy or waiting
// conversations may be silent for any time. The package ends nothing and asks no one.
package pulse

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Pulse records the last activity of a conversation, and whether it waits. It costs an atomic store for each piece of an answer. Its
// methods are safe for concurrent use and never wait for the conversation.
type Pulse struct {
	born time.Time
	last atomic.Int64 // last activity: nanoseconds after born, on the monotonic clock

	mu      sync.Mutex // protects the fields below
	did     string     // the last activity
	end     context.CancelCauseFunc
	waits   int                // current waits: for a slot, a person, a child, a gate, a check, or a command's turn
	queued  int                // those of waits that end by themselves: for checks or commands of others
	tasks   map[string]int     // those of waits that are for a task, by its id
	under   int                // running calls, as the session counts them
	asking  int                // running requests to the model
	left    time.Time          // start of the current wait
	since   time.Time          // start of the current work; zero while it does not work
	worked  time.Duration      // work before since
	calls   map[*callPulse]int // running tool calls
	timer   *time.Timer        // checks a conversation that is not polled
	expired bool
}

// callPulse is a running tool call. Its limit is zero while it has none.
type callPulse struct{ limit time.Time }

// New returns the pulse of a conversation without a turn.
func New() *Pulse {
	return &Pulse{born: time.Now(), tasks: map[string]int{}, calls: map[*callPulse]int{}}
}

// Beat records activity.
func (p *Pulse) Beat() { p.last.Store(int64(time.Since(p.born))) }

// ahead extends the permitted silence by d.
func (p *Pulse) ahead(d time.Duration) { p.last.Store(int64(time.Since(p.born) + max(d, 0))) }

// at records the start of an activity.
func (p *Pulse) at(what string) {
	p.mu.Lock()
	p.did = what
	p.mu.Unlock()
	p.Beat()
}

// Begin starts a turn; end aborts it.
func (p *Pulse) Begin(end context.CancelCauseFunc) {
	p.Beat()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end, p.waits, p.queued, p.under, p.did = end, 0, 0, 0, "the beginning of a turn"
	p.clock()
}

// Over ends the turn.
func (p *Pulse) Over() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end, p.waits, p.queued, p.under = nil, 0, 0, 0
	clear(p.calls)
	p.clock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// After calls f in a new goroutine once the current turn has lasted for d. It replaces an earlier call, and does nothing outside a
// turn.
func (p *Pulse) After(d time.Duration, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end == nil {
		return
	}
	if p.timer != nil { // of the previous turn
		p.timer.Stop()
	}
	p.timer = time.AfterFunc(d, f)
}

// Leave begins a wait for other agents or a person; Enter ends it. Several calls may wait at the same time.
func (p *Pulse) Leave() { p.away(0) }

// Enter ends a Leave.
func (p *Pulse) Enter() { p.back(0) }

// away begins a wait and back ends it; queued is 1 for a wait that ends by itself. Both counters change under one lock, so that such a
// wait never looks like one for an answer.
func (p *Pulse) away(queued int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queued += queued
	if p.waits++; p.waits == 1 {
		p.left = time.Now()
	}
	p.clock()
}

func (p *Pulse) back(queued int) {
	p.Beat()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queued = max(p.queued-queued, 0) // reset at the end of a turn
	if p.waits == 1 {                  // a call's waits do not count towards its limit
		p.extend(time.Since(p.left))
	}
	p.waits = max(p.waits-1, 0)
	p.clock()
}

// Queue begins a wait for a check or for commands of others, which ends by itself. over ends it and may be called more than once.
func (p *Pulse) Queue() (over func()) {
	p.away(1)
	return sync.OnceFunc(func() { p.back(1) })
}

// Running changes the number of running calls.
func (p *Pulse) Running(more int) { p.count(&p.under, more) }

// Attend marks the wait of a call for a task. It must enclose the call's Leave and Enter; over ends it.
func (p *Pulse) Attend(task string) (over func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tasks[task]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.tasks[task]--; p.tasks[task] <= 0 {
			delete(p.tasks, task)
		}
	}
}

// Resting reports whether the conversation cannot continue by itself: no turn is running, or every running call waits for one of that
// many open answers, or for a living task. A call is not resting if its answer has come, if its task has ended, or if it waits for the
// provider, a slot, a check or commands of others.
func (p *Pulse) Resting(answers int, lives func(task string) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end == nil {
		return true
	}
	waits := p.waits - p.queued
	if p.under == 0 || waits < p.under {
		return false
	}
	for task, n := range p.tasks {
		if !lives(task) {
			return false
		}
		waits -= n
	}
	return waits <= answers
}

// count changes a counter but keeps it at zero or above: the end of a turn resets it.
func (p *Pulse) count(n *int, d int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*n = max(*n+d, 0)
}

// clock adds up the working time: that of turns, without waits.
func (p *Pulse) clock() {
	now := time.Now()
	if !p.since.IsZero() {
		p.worked += now.Sub(p.since)
	}
	p.since = time.Time{}
	if p.end != nil && p.waits == 0 {
		p.since = now
	}
}

// Forgive discounts a time in which the whole process was stopped.
func (p *Pulse) Forgive(gap time.Duration) {
	p.Beat()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.since.IsZero() {
		p.worked -= gap
	}
	p.extend(gap)
}

// extend moves the limits of the running calls by d.
func (p *Pulse) extend(d time.Duration) {
	for c := range p.calls {
		if !c.limit.IsZero() {
			c.limit = c.limit.Add(d)
		}
	}
}

// Signs returns the current signs; task is whether the conversation works on a task.
func (p *Pulse) Signs(task bool) Signs {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	s := Signs{Turn: p.end != nil, Task: task, Waits: p.waits > 0, Asking: p.asking > 0, Calls: len(p.calls), Worked: p.worked, Did: p.did,
		Silent: now.Sub(p.born) - time.Duration(p.last.Load()), Late: time.Hour}
	if !p.since.IsZero() {
		s.Worked += now.Sub(p.since)
	}
	for c := range p.calls {
		if c.limit.IsZero() {
			s.Late = -time.Hour // no limit of its own: the agents it waits for have one
			break
		}
		s.Late = min(s.Late, now.Sub(c.limit))
	}
	return s
}

// Take returns the function that ends the turn, once: nil if it has ended or is being ended.
func (p *Pulse) Take() context.CancelCauseFunc {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := p.end
	p.end = nil
	p.clock()
	return end
}

// Expire returns true at the first call.
func (p *Pulse) Expire() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.expired
	p.expired = true
	return first
}
