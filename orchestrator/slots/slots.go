// Package slots limits how many sessions talk to their models at the same time, and decides which goes first.
//
// A session needs one slot of each lane it belongs to: its agent's, model's, provider's, mission's and the host's. The lanes of the
// host, the providers and the models are [Shared] by all missions of a host; the others belong to one mission's [Pool]. Launches wait
// in order of arrival; a session that released its [Slot] while waiting goes before new launches. Lanes are always acquired in the same
// order, the agent's first and the host's last, so launches cannot deadlock. Every lane can be resized while it is in use.
//
// The package only counts. It has no clock, knows no missions or tasks, and does not decide whether a session should run.
package slots

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"centurion"
)

// Caps limit how many sessions run at once, in addition to the limits of the host and of the missions. A missing name has no cap. Caps
// of providers and models apply to all missions of a host together, caps of agents to each mission.
type Caps struct {
	Providers map[string]int // by id
	Models    map[string]int // by "provider/model"
	Agents    map[string]int // by name, instead of the limit for each agent
}

// Shared has the lanes that all missions of a host share.
type Shared struct {
	host              *lane
	providers, models map[string]*lane // those with a cap
	agents            map[string]int   // caps, by name

	mu      sync.Mutex // protects what follows
	size    int        // sessions at once, for missions that want no more
	entered map[*Pool]bool
}

// New lets n sessions of a host run at once.
func New(n int, c Caps) *Shared {
	s := &Shared{host: newLane(n), size: n, entered: map[*Pool]bool{}, providers: map[string]*lane{}, models: map[string]*lane{}, agents: c.Agents}
	for id, n := range c.Providers {
		s.providers[id] = newLane(n)
	}
	for name, n := range c.Models {
		s.models[name] = newLane(n)
	}
	return s
}

// Enter lets as many sessions of the host run at once as the pool has, until it leaves.
func (s *Shared) Enter(p *Pool) { s.fit(func() { s.entered[p] = true }) }

// Leave takes back what Enter has widened.
func (s *Shared) Leave(p *Pool) { s.fit(func() { delete(s.entered, p) }) }

// fit makes the host as wide as its widest pool after a change.
func (s *Shared) fit(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	n := s.size
	for p := range s.entered {
		n = max(n, p.all.size) // which nothing else changes
	}
	s.host.resize(n)
}

// lanes are the capped lanes of a model: its own, then its provider's.
func (s *Shared) lanes(m centurion.ModelRef) []*lane {
	all := []*lane{s.models[m.String()], s.providers[m.Provider]}
	return slices.DeleteFunc(all, func(l *lane) bool { return l == nil })
}

// Pool has the lanes of one mission.
type Pool struct {
	shared *Shared
	all    *lane

	mu       sync.Mutex // protects the fields below
	perAgent int
	agents   map[string]*lane
}

// Pool returns the lanes of a new mission with these limits: in all, and for each agent without a cap of its own.
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

// Resize changes how many sessions of the mission run at once, in all and for each agent without a cap. Raising it wakes waiters.
// Lowering it ends nothing: running sessions continue, and none is admitted until fewer are left.
func (s *Pool) Resize(all, perAgent int) {
	s.shared.fit(func() { s.all.resize(all) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.perAgent = perAgent
	for name, l := range s.agents {
		if s.shared.agents[name] == 0 {
			l.resize(perAgent)
		}
	}
}

// Full reports whether a session of an agent would have to wait now: the host, the mission or the agent is at its limit, or others
// wait. It ignores caps of models and providers.
func (s *Pool) Full(agent string) bool {
	return s.agent(agent).full() || s.all.full() || s.shared.host.full()
}

// Join enqueues a launch of an agent without waiting. Leave the place, or pass it to Launch.
func (s *Pool) Join(agent string) *Place { return s.agent(agent).join() }

// Launch waits at a place from Join for the slot of a new session. It asks for the model once the agent has room. The place is given up
// in any case. If ctx ends first or model fails, nothing is held, and the error is ctx's cause or that of model.
func (s *Pool) Launch(ctx context.Context, p *Place, model func(context.Context) (centurion.ModelRef, error)) (*Slot, error) {
	x := &Slot{of: s, agent: p.at}
	defer func() { p.Leave() }()
	if err := p.admit(ctx); err != nil {
		return nil, context.Cause(ctx)
	}
	held := []*lane{p.at}
	defer func() { freeAll(held) }() // also after a panic; a complete slot has taken its lanes over
	ref, err := model(ctx)
	if err != nil {
		return nil, err
	}
	x.model = ref
	for _, l := range x.lanes(ref)[1:] {
		next := l.join() // before it leaves the last line, to keep the order
		p.Leave()
		p = next
		if err := p.admit(ctx); err != nil {
			return nil, context.Cause(ctx)
		}
		held = append(held, l)
	}
	p.Leave()
	if shrunk(held) { // a held lane shrank while it waited for the next one: continue as a returning session
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
