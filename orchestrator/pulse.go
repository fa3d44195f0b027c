package orchestrator

import (
	"context"
	"encoding/json"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"centurion"
	"centurion/provider"
	"centurion/session"
	"centurion/tools"
)

// pulse is what the auditor knows of a conversation: when it last did anything, what it is at, and whether it waits for
// somebody else. The conversation's own goroutines keep it, at the price of an atomic store for each piece of an answer.
type pulse struct {
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
type callPulse struct {
	name  string
	limit time.Time
}

// signs are the facts that the decision about a conversation rests on.
type signs struct {
	turn   bool          // a turn is under way
	task   bool          // it works on a task; otherwise it is a mission's own
	waits  bool          // it waits for somebody else
	silent time.Duration // since it last did anything; below zero while the provider has said how long it makes it wait
	asking bool          // the model is being asked
	calls  int           // tool calls that run
	late   time.Duration // since the last of them should have ended; below zero while one may still run
	worked time.Duration // by the attempt, without its waits
	did    string
}

func newPulse() *pulse {
	return &pulse{born: time.Now(), tasks: map[string]int{}, calls: map[*callPulse]int{}}
}

// beat says that something has come from the conversation.
func (p *pulse) beat() { p.last.Store(int64(time.Since(p.born))) }

// ahead says that nothing can come from it for d.
func (p *pulse) ahead(d time.Duration) { p.last.Store(int64(time.Since(p.born) + max(d, 0))) }

// at says what the conversation begins.
func (p *pulse) at(what string) {
	p.mu.Lock()
	p.did = what
	p.mu.Unlock()
	p.beat()
}

// begin says that a turn begins, which end ends early.
func (p *pulse) begin(end context.CancelCauseFunc) {
	p.beat()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end, p.waits, p.queued, p.under, p.did = end, 0, 0, 0, "the beginning of a turn"
	p.clock()
}

// over says that the turn has ended.
func (p *pulse) over() {
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

// leave says that the conversation waits for somebody else, and enter that it goes on. Several of its calls may do so at
// the same time.
func (p *pulse) leave() { p.away(0) }

func (p *pulse) enter() { p.back(0) }

// away begins a wait, and back ends it; queued is 1 for one that goes on by itself. Both counters change together: a wait must
// not look for a moment as if it were for somebody's word.
func (p *pulse) away(queued int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queued += queued
	if p.waits++; p.waits == 1 {
		p.left = time.Now()
	}
	p.clock()
}

func (p *pulse) back(queued int) {
	p.beat()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queued = max(p.queued-queued, 0) // a turn that ends sets it back
	if p.waits == 1 {                  // what a call has waited is no part of its limit
		p.extend(time.Since(p.left))
	}
	p.waits = max(p.waits-1, 0)
	p.clock()
}

// queue says that a call waits for a check or for commands of others, which end by themselves, and the function that it
// returns that it waits no more. That may be called more than once.
func (p *pulse) queue() (over func()) {
	p.away(1)
	return sync.OnceFunc(func() { p.back(1) })
}

// running says that so many calls more, or fewer, are under way.
func (p *pulse) running(more int) { p.count(&p.under, more) }

// attend says that a call is about to wait for a task, and the function that it returns that it has gone on: between its own
// leave and enter, both included.
func (p *pulse) attend(task string) (over func()) {
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

// resting reports whether nothing comes from the conversation by itself: no turn is under way, or all calls that are wait for
// an answer, of which so many are due, or for a task that lives. Whoever waits for an answer that has come, or for a task
// that has ended, is about to go on; so is who waits for the provider, a slot, a check, or the commands of others.
func (p *pulse) resting(answers int, lives func(task string) bool) bool {
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
func (p *pulse) count(n *int, d int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*n = max(*n+d, 0)
}

// clock counts the time worked: that of turns, without what was waited.
func (p *pulse) clock() {
	now := time.Now()
	if !p.since.IsZero() {
		p.worked += now.Sub(p.since)
	}
	p.since = time.Time{}
	if p.end != nil && p.waits == 0 {
		p.since = now
	}
}

// forgive takes back a time in which the whole process stood still.
func (p *pulse) forgive(gap time.Duration) {
	p.beat()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.since.IsZero() {
		p.worked -= gap
	}
	p.extend(gap)
}

// extend gives the calls that run more time.
func (p *pulse) extend(d time.Duration) {
	for c := range p.calls {
		if !c.limit.IsZero() {
			c.limit = c.limit.Add(d)
		}
	}
}

// signs returns how the conversation stands.
func (p *pulse) signs(task bool) signs {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	s := signs{turn: p.end != nil, task: task, waits: p.waits > 0, asking: p.asking > 0, calls: len(p.calls), worked: p.worked, did: p.did,
		silent: now.Sub(p.born) - time.Duration(p.last.Load()), late: time.Hour}
	if !p.since.IsZero() {
		s.worked += now.Sub(p.since)
	}
	for c := range p.calls {
		if c.limit.IsZero() {
			s.late = -time.Hour // it has no limit: what it waits for has
			break
		}
		s.late = min(s.late, now.Sub(c.limit))
	}
	return s
}

// take returns what ends the turn, once: nil for one that has ended or is being ended.
func (p *pulse) take() context.CancelCauseFunc {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := p.end
	p.end = nil
	p.clock()
	return end
}

// expire reports true once.
func (p *pulse) expire() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.expired
	p.expired = true
	return first
}

// callLimit is how long a tool may run whose calls say nothing about it. It is the longest that a shell command may ask for.
const callLimit = 10 * time.Minute

// call says that a tool begins to run. It has limit for it, 0 being no limit.
func (p *pulse) call(name string, limit time.Duration) (c *callPulse, done func()) {
	c = &callPulse{name: name}
	if limit > 0 {
		c.limit = time.Now().Add(limit)
	}
	p.at("a call of " + name)
	p.mu.Lock()
	p.calls[c]++
	p.mu.Unlock()
	return c, func() {
		p.mu.Lock()
		delete(p.calls, c)
		p.mu.Unlock()
		p.beat()
	}
}

// limit gives a running call another limit from now on, 0 being none.
func (p *pulse) limit(c *callPulse, d time.Duration) {
	p.beat()
	p.mu.Lock()
	defer p.mu.Unlock()
	c.limit = time.Time{}
	if d > 0 {
		c.limit = time.Now().Add(d)
	}
}

// heard is a model whose answers are signs of life.
type heard struct {
	session.Model
	p *pulse
}

func (h heard) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		h.p.at("a request to the model")
		h.p.count(&h.p.asking, 1)
		defer h.p.count(&h.p.asking, -1)
		req.Alive = h.p.beat // a provider that only says that it lives is silent for as long as the client lets it
		for d, err := range h.Model.Stream(ctx, req) {
			if d.Type == provider.Waiting && d.Wait != nil {
				h.p.ahead(d.Wait.For)
			} else {
				h.p.beat()
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// run runs a tool so that the auditor knows of it. A shell command has the limit that it was given, from the moment at
// which it runs; what only changes what the host keeps has none, because whoever it waits for is looked at as well.
func (p *pulse) run(ctx context.Context, t tools.Tool, c *tools.Call, input json.RawMessage, hosted bool) (tools.Result, error) {
	limit := callLimit
	if hosted {
		limit = 0
	}
	running, done := p.call(t.Name(), limit)
	defer done()
	own := *c
	if own.Progress != nil {
		own.Progress = func(line string) {
			p.beat()
			c.Progress(line)
		}
	}
	if own.Runner != nil {
		own.Runner = timed{own.Runner, p, running}
	}
	return t.Run(ctx, &own, input)
}

// timed is a runner that tells the pulse how long a command may take.
type timed struct {
	centurion.Runner
	p    *pulse
	call *callPulse
}

func (r timed) Run(ctx context.Context, c centurion.Command) (centurion.CommandResult, error) {
	r.p.limit(r.call, 0)
	begun := r.p.queue() // it may wait until other commands have ended
	defer begun()        // also of one that never ran
	c.Begun = func() {
		begun()
		r.p.limit(r.call, c.Timeout)
	}
	return r.Runner.Run(ctx, c)
}
