package task

import (
	"slices"
	"sync"

	"centurion/orchestrator/state"
)

// leasePolls is how many polls lie between two looks for tasks that nobody works on.
const leasePolls = 10

// Lost finds tasks that are recorded as alive while no goroutine works on them.
type Lost struct {
	mu       sync.Mutex // held while they are looked for; protects what follows
	unlooked int        // polls since that was last done
	found    []string   // tasks that were found once
}

// Look calls relaunch for each task that nobody works on. A task is launched a moment after it was recorded, so one that is found must be
// found twice.
func (l *Lost) Look(m *state.Mission, relaunch func(id string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unlooked++; l.unlooked < leasePolls || m.Ctx.Err() != nil {
		return
	}
	l.unlooked = 0
	tasks, err := m.Store.Tasks(m.Ctx, m.ID)
	if err != nil {
		return // who works with the store meets it, too
	}
	living := map[string]bool{}
	for _, r := range m.Runs() {
		living[r.ID] = true
	}
	var found []string
	for _, t := range tasks {
		switch {
		case t.Status.Ended() || living[t.ID]:
		case slices.Contains(l.found, t.ID):
			relaunch(t.ID)
		default:
			found = append(found, t.ID)
		}
	}
	l.found = found
}

// Wait returns when nobody looks any more. The mission's work has ended before.
func (l *Lost) Wait() {
	l.mu.Lock()
	defer l.mu.Unlock()
}
