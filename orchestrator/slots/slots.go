// Package slots limits how many sessions talk to their models at the same time, and decides which goes first.
//
// A session needs one slot of each lane it belongs to: its agent's, model's, provider's, mission's and the host's, and that of the
// [Process] if it has several hosts. The lanes of the host, the providers and the models are [Shared] by all missions of a host; the
// others belong to one mission's [Pool]. Launches wait
// in order of arrival; a session that released its [Slot] while waiting goes before new launches. Lanes are always acquired in the same
// order, the agent's first and the host's or the process's last, so launches cannot deadlock. Every lane can be resized while it is in use.
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
	host              *wide
	process           *wide            // of all hosts; nil if there is only this one
	providers, models map[string]*lane // those with a cap
	agents            map[string]int   // caps, by name
}

// New lets n sessions of a host run at once, or more if one of its missions may have more.
func New(n int, c Caps) *Shared {
	s := &Shared{host: newWide(n), providers: map[string]*lane{}, models: map[string]*lane{}, agents: c.Agents}
	for id, n := range c.Providers {
		s.providers[id] = newLane(n)
	}
	for name, n := range c.Models {
		s.models[name] = newLane(n)
	}
	return s
}

// Process limits the sessions of several hosts together: as many run at once as the mission with the most may have.
type Process struct{ all *wide }

// NewProcess returns a Process without hosts.
func NewProcess() *Process { return &Process{newWide(0)} }

// Within makes the host one of a process, before it is used; nil leaves it alone.
func (s *Shared) Within(p *Process) *Shared {
	if p != nil {
		s.process = p.all
	}
	return s
}

// Enter lets as many sessions of the host run at once as the pool has, until it leaves.
func (s *Shared) Enter(p *Pool) { s.fit(func(w *wide) { w.entered[p] = true }) }

// Leave takes back what Enter has widened.
func (s *Shared) Leave(p *Pool) { s.fit(func(w *wide) { delete(w.entered, p) }) }

// fit fits the lanes that are as wide as their widest pool, after a change of each.
func (s *Shared) fit(change func(*wide)) {
	s.host.fit(change)
	if s.process != nil {
		s.process.fit(change)
	}
}

// wide is a lane as wide as the widest pool in it.
type wide struct {
	*lane

	mu      sync.Mutex // protects the fields below
	least   int        // its width for pools that want no more
	entered map[*Pool]bool
}

func newWide(n int) *wide { return &wide{lane: newLane(n), least: n, entered: map[*Pool]bool{}} }

func (w *wide) fit(change func(*wide)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
	n := w.least
	for p := range w.entered {
		n = max(n, p.all.width())
	}
	w.resize(n)
}

// all are the lanes of everybody, in order of acquisition.
func (s *Shared) all() []*lane {
	if s.process == nil {
		return []*lane{s.host.lane}
	}
	return []*lane{s.host.lane, s.process.lane}
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
	s.all.resize(all)
	s.shared.fit(func(*wide) {})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.perAgent = perAgent
	for name, l := range s.agents {
		if s.shared.agents[name] == 0 {
			l.resize(perAgent)
		}
	}
}

// Full reports whether a session of an agent would have to wait now: the process, the host, the mission or the agent is at its limit, or
// others wait. It ignores caps of models and providers.
func (s *Pool) Full(agent string) bool {
	return slices.ContainsFunc(append(s.shared.all(), s.agent(agent), s.all), (*lane).full)
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
