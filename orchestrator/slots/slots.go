// Package slots is the right to run: how many sessions talk to their models at the same time, and who goes first.
//
// A session needs one of each lane that it belongs to: its agent's, its model's, its provider's, that of its mission and
// that of the host. Those of the host, the providers and the models are [Shared] by all missions of a host; the others belong
// to one mission's [Pool]. Launches wait in the order in which they came; a session that gave its [Slot] back while it waited
// for something goes before new launches. The lanes are always taken in the same order, the agent's first and the host's
// last, so that two launches can never wait for each other. Every lane can be made wider or narrower while it is in use.
//
// The package counts. It knows no missions, no tasks and no time, and decides nothing about who should run at all.
package slots

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"centurion"
)

// Caps say how many sessions may run at once beside the limits of the host and of a mission. Who is not named has no cap of
// its own. The caps of providers and models hold for all missions of a host together, those of agents in each of them.
type Caps struct {
	Providers map[string]int // by id
	Models    map[string]int // by "provider/model"
	Agents    map[string]int // by name, instead of the limit that holds for each agent
}

// Shared is what the missions of a host have in common.
type Shared struct {
	host              *lane
	providers, models map[string]*lane // those that have a cap
	agents            map[string]int   // caps, by name
}

// New lets n sessions of a host run at once.
func New(n int, c Caps) *Shared {
	s := &Shared{host: newLane(n), providers: map[string]*lane{}, models: map[string]*lane{}, agents: c.Agents}
	for id, n := range c.Providers {
		s.providers[id] = newLane(n)
	}
	for name, n := range c.Models {
		s.models[name] = newLane(n)
	}
	return s
}

// Resize lets n sessions of the host run at once from now on, as [Pool.Resize] does for a mission.
func (s *Shared) Resize(n int) { s.host.resize(n) }

// lanes are those of a model that have a cap: its own, then its provider's.
func (s *Shared) lanes(m centurion.ModelRef) []*lane {
	all := []*lane{s.models[m.String()], s.providers[m.Provider]}
	return slices.DeleteFunc(all, func(l *lane) bool { return l == nil })
}

// Pool is the right to run of one mission's sessions.
type Pool struct {
	shared *Shared
	all    *lane

	mu       sync.Mutex // protects what follows
	perAgent int
	agents   map[string]*lane
}

// Pool lets a further mission run so many sessions at once in all, and so many of each agent without a cap of its own.
func (s *Shared) Pool(all, perAgent int) *Pool {
	return &Pool{shared: s, all: newLane(all), perAgent: perAgent, agents: map[string]*lane{}}
}

func (s *Pool) agent(name string) *lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.agents[name]
	if !ok {
		l = newLane(cmp.Or(s.shared.agents[name], s.perAgent))
		s.agents[name] = l
	}
	return l
}

// Resize changes how many sessions of the mission run at once, in all and of each agent without a cap of its own. Raising
// wakes who waits. Lowering ends nothing: what runs goes on, and nobody is let in until fewer are left.
func (s *Pool) Resize(all, perAgent int) {
	s.all.resize(all)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.perAgent = perAgent
	for name, l := range s.agents {
		if s.shared.agents[name] == 0 {
			l.resize(perAgent)
		}
	}
}

// Full reports whether a session of an agent would have to wait now, whichever its model: the host, the mission or the agent has as many as
// may run, or others wait before it. What a cap of a model or provider says is not looked at.
func (s *Pool) Full(agent string) bool {
	return s.agent(agent).full() || s.all.full() || s.shared.host.full()
}

// Join takes a place among the launches of an agent. It does not wait. The place has to be left, or launched from.
func (s *Pool) Join(agent string) *Place { return s.agent(agent).join() }

// Launch waits, at a place that Join has returned, for a slot for a session that has not run yet. Which model it talks to is
// asked when its agent has room for it. The place is given up in any case. When ctx ends first, or model fails, nothing is
// held and the error is the cause of the one or that of the other.
func (s *Pool) Launch(ctx context.Context, p *Place, model func(context.Context) (centurion.ModelRef, error)) (*Slot, error) {
	x := &Slot{of: s, agent: p.at}
	defer func() { p.Leave() }()
	if err := p.admit(ctx); err != nil {
		return nil, context.Cause(ctx)
	}
	held := []*lane{p.at}
	defer func() { freeAll(held) }() // also of one that panics; what the slot has got is not held here any more
	ref, err := model(ctx)
	if err != nil {
		return nil, err
	}
	x.model = ref
	for _, l := range x.lanes(ref)[1:] {
		next := l.join() // before it leaves the last line: who stands behind it there stands behind it here
		p.Leave()
		p = next
		if err := p.admit(ctx); err != nil {
			return nil, context.Cause(ctx)
		}
		held = append(held, l)
	}
	p.Leave()
	if shrunk(held) { // while it waited for the next lane, one that it had was made smaller: as one that comes back
		freeAll(held)
		held = nil
		if err := x.Acquire(ctx); err != nil {
			return nil, err
		}
		return x, nil
	}
	x.held, held = held, nil
	return x, nil
}
