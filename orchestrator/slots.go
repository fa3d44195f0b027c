package orchestrator

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"
)

// slots is the right of a mission's sessions to run: so many of one agent, so many in all, and among those of the host's
// other missions. Launches wait in the order in which they came; a session that gave its slot back while it waited for
// something goes before new launches. The lanes are always taken in the same order, the agent's first and the host's last,
// so that two launches can never wait for each other.
type slots struct {
	host     *lane
	all      *lane
	perAgent int

	mu     sync.Mutex // protects agents
	agents map[string]*lane
}

// lane is a counted right with a line of launches before it. Because only the launch at the head of the line waits for the
// right itself, a session that comes back waits behind at most one launch.
type lane struct {
	line  line
	right *semaphore.Weighted

	mu   sync.Mutex // protects size
	size int
}

// maxLane is more than a lane is ever raised to. What a lane has less, it holds itself.
const maxLane = 1 << 20

func newLane(n int) *lane {
	l := &lane{right: semaphore.NewWeighted(maxLane), size: n}
	l.right.TryAcquire(int64(maxLane - n)) // nobody else knows of it yet
	return l
}

// raise lets up to n sessions run, if that is more than now. Who waits is woken.
func (l *lane) raise(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > l.size {
		l.right.Release(int64(n - l.size))
		l.size = n
	}
}

// launch waits in the line and then for the right. The place is given up in any case.
func (l *lane) launch(ctx context.Context, p *place) error {
	defer l.line.leave(p)
	select {
	case <-p.first:
	case <-ctx.Done():
		return ctx.Err()
	}
	return l.right.Acquire(ctx, 1)
}

// line is who waits, in the order in which they came: a place is taken at once, before its holder begins to wait.
type line struct {
	mu     sync.Mutex // protects places
	places []*place
}

type place struct{ first chan struct{} } // closed when it is the first of its line

func (l *line) join() *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &place{first: make(chan struct{})}
	if l.places = append(l.places, p); len(l.places) == 1 {
		close(p.first)
	}
	return p
}

// leave gives a place up. Nil, or a place that was given up already, changes nothing.
func (l *line) leave(p *place) {
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

func newSlots(all, perAgent int, host *lane) *slots {
	return &slots{host: host, all: newLane(all), perAgent: perAgent, agents: map[string]*lane{}}
}

func (s *slots) agent(name string) *lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.agents[name]
	if !ok {
		l = newLane(s.perAgent)
		s.agents[name] = l
	}
	return l
}

// slot is one session's right to run. The goroutine of its task releases it and takes it back; the tool calls that it runs
// side by side may leave and enter in between.
type slot struct {
	of    *slots
	agent *lane

	mu   sync.Mutex // protects what follows
	held bool
	away int // tool calls that wait for somebody else
}

// join takes a place among the launches of an agent.
func (s *slots) join(agent string) *place { return s.agent(agent).line.join() }

// leave gives up a place that join has returned.
func (s *slots) leave(agent string, p *place) { s.agent(agent).line.leave(p) }

// launch waits, at the place that join has returned, for a slot for a session that has not run yet. When ctx ends first,
// nothing is held.
func (s *slots) launch(ctx context.Context, agent string, p *place) (*slot, error) {
	x := &slot{of: s, agent: s.agent(agent)}
	if err := x.agent.launch(ctx, p); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := s.all.launch(ctx, s.all.line.join()); err != nil {
		x.agent.right.Release(1)
		return nil, context.Cause(ctx)
	}
	if err := s.host.launch(ctx, s.host.line.join()); err != nil {
		s.all.right.Release(1)
		x.agent.right.Release(1)
		return nil, context.Cause(ctx)
	}
	x.held = true
	return x, nil
}

// back takes the slot again after release, before any new launch. When ctx ends first, nothing is held.
func (x *slot) back(ctx context.Context) error {
	if x == nil || x.holds() {
		return nil
	}
	if err := x.agent.right.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	if err := x.of.all.right.Acquire(ctx, 1); err != nil {
		x.agent.right.Release(1)
		return context.Cause(ctx)
	}
	if err := x.of.host.right.Acquire(ctx, 1); err != nil {
		x.of.all.right.Release(1)
		x.agent.right.Release(1)
		return context.Cause(ctx)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.held || x.away > 0 { // another call was faster, or waits again
		x.free()
		return nil
	}
	x.held = true
	return nil
}

func (x *slot) holds() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.held
}

// release gives the slot back. Releasing what is not held does nothing, so that every way out may call it.
func (x *slot) release() {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.held {
		x.held = false
		x.free()
	}
}

func (x *slot) free() {
	x.of.host.right.Release(1)
	x.of.all.right.Release(1)
	x.agent.right.Release(1)
}

// leave gives the slot back while a tool call waits for somebody else.
func (x *slot) leave() {
	if x == nil {
		return
	}
	x.mu.Lock()
	x.away++
	x.mu.Unlock()
	x.release()
}

// enter ends what leave began. The last call that comes back takes the slot again, and is told that it was the last.
func (x *slot) enter(ctx context.Context) (last bool, err error) {
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
	return true, x.back(ctx)
}
