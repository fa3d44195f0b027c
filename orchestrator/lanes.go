package orchestrator

import (
	"cmp"
	"context"
	"slices"

	"centurion"
	"centurion/store"
)

// Concurrency caps how many sessions run at once beside [Config.Workers] and [Config.PerAgent]. Who is not named has no cap
// of its own. The caps of providers and models hold for all missions of a host together.
type Concurrency struct {
	Providers map[string]int // by id
	Models    map[string]int // by "provider/model"
	Agents    map[string]int // by name, instead of PerAgent
}

// keyed are the lanes of the providers and the models that have a cap.
type keyed struct{ providers, models map[string]*lane }

func newKeyed(c Concurrency) *keyed {
	k := &keyed{providers: map[string]*lane{}, models: map[string]*lane{}}
	for id, n := range c.Providers {
		k.providers[id] = newLane(n)
	}
	for name, n := range c.Models {
		k.models[name] = newLane(n)
	}
	return k
}

// lanes are those of a model: its own, then its provider's.
func (k *keyed) lanes(m centurion.ModelRef) []*lane {
	all := []*lane{k.models[m.String()], k.providers[m.Provider]}
	return slices.DeleteFunc(all, func(l *lane) bool { return l == nil })
}

// onto changes the model of a slot. It may be called only by the goroutine of the slot's task, while no tool call of it
// runs. If that takes other lanes, those of the old model are given back and changed is true: the slot is not held until
// back has returned. Nothing is held while the new ones are waited for, so that two sessions that change places cannot
// wait for each other.
func (x *slot) onto(model centurion.ModelRef) (changed bool) {
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	changed = !slices.Equal(x.lanes(x.model), x.lanes(model))
	x.model = model
	if changed {
		freeAll(x.held)
		x.held = nil
	}
	return changed
}

// resize changes how many sessions of the mission run at once, in all and of each agent without a cap of its own.
func (s *slots) resize(all, perAgent int) {
	s.all.resize(all)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.perAgent = perAgent
	for name, l := range s.agents {
		if s.agentCap[name] == 0 {
			l.resize(perAgent)
		}
	}
}

// fit makes the host's own lane as wide as the widest mission that is being worked on. h.mu is held.
func (h *Host) fit() {
	n := h.cfg.Workers
	for _, m := range h.missions {
		n = max(n, m.workers)
	}
	h.slots.resize(n)
}

func (h *Host) workersOf(rec centurion.Mission) int {
	return cmp.Or(rec.Options.MaxWorkers, h.cfg.Workers)
}

func (h *Host) perAgentOf(rec centurion.Mission) int {
	return cmp.Or(rec.Options.MaxPerAgent, h.cfg.PerAgent)
}

// Resize changes how many sessions of a mission run at once while it is being worked on, in all and of one agent; 0 leaves
// a limit as it is. Raising wakes who waits; lowering lets run what runs and admits nobody until fewer are left. The
// mission keeps the new limits. The error has centurion.KindConflict if it is not being worked on.
func (h *Host) Resize(ctx context.Context, id string, workers, perAgent int) error {
	m := h.running(id)
	if m == nil {
		return &centurion.Error{Op: "resize mission", Kind: centurion.KindConflict, Msg: "mission " + id + " is not running",
			Hint: "give the limits when it goes on: centurion resume " + id + " --max-workers N"}
	}
	var rec centurion.Mission
	err := h.cfg.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if rec, err = tx.Mission(id); err != nil {
			return err
		}
		rec.Options.MaxWorkers = cmp.Or(workers, rec.Options.MaxWorkers)
		rec.Options.MaxPerAgent = cmp.Or(perAgent, rec.Options.MaxPerAgent)
		return tx.PutMission(&rec)
	})
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	m.workers = h.workersOf(rec)
	m.slots.resize(m.workers, h.perAgentOf(rec))
	h.fit()
	return nil
}
