package orchestrator

import (
	"cmp"
	"context"

	"centurion"
	"centurion/store"
)

// fit lets as many sessions of the host run at once as the widest mission that is being worked on may. h.mu is held.
func (h *Host) fit() {
	n := h.cfg.Workers
	for _, m := range h.missions {
		n = max(n, m.workers)
	}
	h.slots.Resize(n)
}

func (c *Config) workersOf(rec centurion.Mission) int {
	return cmp.Or(rec.Options.MaxWorkers, c.Workers)
}

func (c *Config) perAgentOf(rec centurion.Mission) int {
	return cmp.Or(rec.Options.MaxPerAgent, c.PerAgent)
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
	m.workers = h.cfg.workersOf(rec)
	m.slots.Resize(m.workers, h.cfg.perAgentOf(rec))
	h.fit()
	return nil
}
