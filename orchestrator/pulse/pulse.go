// Package pulse tells whether a conversation is alive, by what has come from it.
//
// A [Pulse] belongs to one conversation, whose goroutines keep it: each piece of an answer, each call that begins or ends, each
// wait. Whoever looks at it from outside gets its [Signs], and [Limits.Judge] says by them, and by nothing else, whether it hangs
// or has worked for too long. What is busy or waits may be as silent as it likes. The package ends nothing and asks nobody.
package pulse

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Pulse is what is known of a conversation from outside: when it last did anything, what it is at, and whether it waits for
// somebody else. It costs an atomic store for each piece of an answer. Its methods may be called from several goroutines and
// never wait for the conversation.
type Pulse struct {
	born time.Time
	last atomic.Int64 // when it last did anything: nanoseconds after born, on the monotonic clock

	mu      sync.Mutex // protects what follows
	did     string     // what it was last at
	end     context.CancelCauseFunc
	waits   int                // what it waits for: a slot, a person, a child, a gate, a check, a command's turn
	queued  int                // of these, the calls that wait for a check or a command of others, which ends by itself
	tasks   map[string]int     // of these, how many wait for a task, by its id
	under   int                // calls that are under way, as the session counts them
	asking  int                // requests to the model that are under way
	left    time.Time          // since when it waits
	since   time.Time          // since when it works; zero while it does not
	worked  time.Duration      // before since
	calls   map[*callPulse]int // the tool calls that run
	timer   *time.Timer        // looks at a conversation that no poll looks at
	expired bool
}

// callPulse is a tool call that runs. Its limit is zero while it has none.
type callPulse struct{ limit time.Time }

// New makes the pulse of a conversation that has no turn.
func New() *Pulse {
	return &Pulse{born: time.Now(), tasks: map[string]int{}, calls: map[*callPulse]int{}}
}

// Beat says that something has come from the conversation.
func (p *Pulse) Beat() { p.last.Store(int64(time.Since(p.born))) }

// ahead says that nothing can come from it for d.
func (p *Pulse) ahead(d time.Duration) { p.last.Store(int64(time.Since(p.born) + max(d, 0))) }

// at says what the conversation begins.
func (p *Pulse) at(what string) {
	p.mu.Lock()
	p.did = what
	p.mu.Unlock()
	p.Beat()
}

// Begin says that a turn begins, which end ends early.
func (p *Pulse) Begin(end context.CancelCauseFunc) {
	p.Beat()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end, p.waits, p.queued, p.under, p.did = end, 0, 0, 0, "the beginning of a turn"
	p.clock()
}

// Over says that the turn has ended.
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

// After calls f, in a goroutine of its own, when the turn that is under way has gone on for d. It takes the place of what was
// to be called before, and nothing is called where no turn is under way.
func (p *Pulse) After(d time.Duration, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end == nil {
		return
	}
	if p.timer != nil { // of the turn before
		p.timer.Stop()
	}
	p.timer = time.AfterFunc(d, f)
}

// Leave says that the conversation waits for somebody else, until Enter says that it goes on. Several of its calls may do so at
// the same time.
func (p *Pulse) Leave() { p.away(0) }

// Enter ends what Leave began.
func (p *Pulse) Enter() { p.back(0) }

// away begins a wait, and back ends it; queued is 1 for one that goes on by itself. Both counters change together: a wait must
// not look for a moment as if it were for somebody's word.
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
	p.queued = max(p.queued-queued, 0) // a turn that ends sets it back
	if p.waits == 1 {                  // what a call has waited is no part of its limit
		p.extend(time.Since(p.left))
	}
	p.waits = max(p.waits-1, 0)
	p.clock()
}

// Queue says that a call waits for a check or for commands of others, which end by themselves, and the function that it
// returns that it waits no more. That may be called more than once.
func (p *Pulse) Queue() (over func()) {
	p.away(1)
	return sync.OnceFunc(func() { p.back(1) })
}

// Running says that so many calls more, or fewer, are under way.
func (p *Pulse) Running(more int) { p.count(&p.under, more) }

// Attend says that a call is about to wait for a task, and the function that it returns that it has gone on: between its own
// Leave and Enter, both included.
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

// Resting reports whether nothing comes from the conversation by itself: no turn is under way, or all calls that are wait for
// an answer, of which so many are due, or for a task that lives. Whoever waits for an answer that has come, or for a task
// that has ended, is about to go on; so is who waits for the provider, a slot, a check, or the commands of others.
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

// count adds to one of the counters, which never falls below zero: a turn that ends sets it back.
func (p *Pulse) count(n *int, d int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*n = max(*n+d, 0)
}

// clock counts the time worked: that of turns, without what was waited.
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

// Forgive takes back a time in which the whole process stood still.
func (p *Pulse) Forgive(gap time.Duration) {
	p.Beat()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.since.IsZero() {
		p.worked -= gap
	}
	p.extend(gap)
}

// extend gives the calls that run more time.
func (p *Pulse) extend(d time.Duration) {
	for c := range p.calls {
		if !c.limit.IsZero() {
			c.limit = c.limit.Add(d)
		}
	}
}

// Signs returns how the conversation stands, which works on a task or is a mission's own.
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
			s.Late = -time.Hour // it has no limit: what it waits for has
			break
		}
		s.Late = min(s.Late, now.Sub(c.limit))
	}
	return s
}

// Take returns what ends the turn, once: nil for one that has ended or is being ended.
func (p *Pulse) Take() context.CancelCauseFunc {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := p.end
	p.end = nil
	p.clock()
	return end
}

// Expire reports whether it is called for the first time.
func (p *Pulse) Expire() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.expired
	p.expired = true
	return first
}
