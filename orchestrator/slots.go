package orchestrator

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"

	"centurion"
)

// slots is the right of a mission's sessions to run: so many of one agent, of one model and of one provider, so many in
// all, and among those of the host's other missions. Launches wait in the order in which they came; a session that gave its
// slot back while it waited for something goes before new launches. The lanes are always taken in the same order, the
// agent's first and the host's last, so that two launches can never wait for each other.
type slots struct {
	host     *lane
	all      *lane
	keyed    *keyed
	perAgent int
	agentCap map[string]int // instead of perAgent, by agent

	mu     sync.Mutex // protects agents
	agents map[string]*lane
}

// lane is a counted right with a line of launches before it. Because only the launch at the head of the line waits for the
// right itself, a session that comes back waits behind at most one launch.
type lane struct {
	line  line
	right *semaphore.Weighted

	mu   sync.Mutex // protects what follows
	size int
	owed int // of what was taken away, so many are still in use: who gives one back gives it to the host
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
// it to the host and waits again.
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

// launch waits in the line and then for the right. The place is given up in any case.
func (l *lane) launch(ctx context.Context, p *place) error {
	defer l.line.leave(p)
	return l.admit(ctx, p)
}

// admit waits until p is the first of the line, and then for the right. The place is kept, so that who stands behind it does
// not pass.
func (l *lane) admit(ctx context.Context, p *place) error {
	select {
	case <-p.first:
	case <-ctx.Done():
		return ctx.Err()
	}
	return l.acquire(ctx)
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

func newSlots(all, perAgent int, host *lane, keyed *keyed, agentCap map[string]int) *slots {
	return &slots{host: host, all: newLane(all), keyed: keyed, perAgent: perAgent, agentCap: agentCap, agents: map[string]*lane{}}
}

func (s *slots) agent(name string) *lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.agents[name]
	if !ok {
		l = newLane(cmp.Or(s.agentCap[name], s.perAgent))
		s.agents[name] = l
	}
	return l
}

// slot is one session's right to run. The goroutine of its task releases it and takes it back; the tool calls that it runs
// side by side may leave and enter in between.
type slot struct {
	of    *slots
	agent *lane

	mu    sync.Mutex // protects what follows
	model centurion.ModelRef
	held  []*lane // what it has of each lane, in the order in which it was taken; none while it does not run
	away  int     // tool calls that wait for somebody else
}

// join takes a place among the launches of an agent.
func (s *slots) join(agent string) *place { return s.agent(agent).line.join() }

// leave gives up a place that join has returned.
func (s *slots) leave(agent string, p *place) { s.agent(agent).line.leave(p) }

// launch waits, at the place that join has returned, for a slot for a session that has not run yet. Which model it talks to
// is asked when the agent has room for it. When ctx ends first, or model fails, nothing is held.
func (s *slots) launch(ctx context.Context, agent string, p *place, model func(context.Context) (centurion.ModelRef, error)) (*slot, error) {
	x := &slot{of: s, agent: s.agent(agent)}
	at := x.agent
	defer func() { at.line.leave(p) }()
	if err := at.admit(ctx, p); err != nil {
		return nil, context.Cause(ctx)
	}
	held := []*lane{at}
	defer func() { freeAll(held) }() // also of one that panics; what the slot has got is not held here any more
	ref, err := model(ctx)
	if err != nil {
		return nil, err
	}
	x.model = ref
	for _, l := range x.lanes(ref)[1:] {
		next := l.line.join() // before it leaves the last line: who stands behind it there stands behind it here
		at.line.leave(p)
		at, p = l, next
		if err := at.admit(ctx, p); err != nil {
			return nil, context.Cause(ctx)
		}
		held = append(held, at)
	}
	at.line.leave(p)
	if shrunk(held) { // while it waited for the next lane, one that it had was made smaller: as one that comes back
		freeAll(held)
		held = nil
		if err := x.back(ctx); err != nil {
			return nil, err
		}
		return x, nil
	}
	x.held, held = held, nil
	return x, nil
}

// lanes are those that a session with this model needs, in the order in which they are taken.
func (x *slot) lanes(model centurion.ModelRef) []*lane {
	return append(append([]*lane{x.agent}, x.of.keyed.lanes(model)...), x.of.all, x.of.host)
}

// shrunk reports whether more of a lane are in use than it has: what is held of it is then due to the host, unless its
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

// back takes the slot again after release, before any new launch. When ctx ends first, nothing is held.
func (x *slot) back(ctx context.Context) error {
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

func (x *slot) holds() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.held != nil
}

// release gives the slot back. Releasing what is not held does nothing, so that every way out may call it.
func (x *slot) release() {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	freeAll(x.held)
	x.held = nil
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
