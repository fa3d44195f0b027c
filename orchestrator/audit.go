package orchestrator

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/pulse"
	"centurion/orchestrator/state"
	"centurion/store"
)

// Defaults of the audit in [Config].
const (
	DefaultPollInterval = time.Second
	DefaultStallTimeout = 5 * time.Minute // far above the 120 s after which a request to a silent provider ends by itself
	DefaultSessionTTL   = time.Hour       // of an attempt's own work, without its waits
)

const (
	leasePolls = 10               // polls between two looks for tasks that nobody works on
	standstill = 10 * time.Second // a poll that comes so late was kept from it, as everything else was
)

// auditor looks at the tasks of all missions once in an interval, while any of them lives. It ends nothing that is busy,
// however silent, and completes nothing: a task is completed because its function returned.
type auditor struct {
	polls atomic.Int64

	mu     sync.Mutex // protects what follows
	living int        // tasks whose goroutines live
	stop   chan struct{}
	group  *guard.Group
}

// watchTask says that a task begins to live. The first one starts the poll.
func (h *Host) watchTask() {
	a := &h.auditor
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.living++; a.living > 1 {
		return
	}
	stop := make(chan struct{})
	a.stop, a.group = stop, &guard.Group{}
	a.group.Go("auditor", func() error { h.poll(stop); return nil })
}

// unwatchTask says that a task lives no more. The last one ends the poll and waits for its end.
func (h *Host) unwatchTask() error {
	a := &h.auditor
	a.mu.Lock()
	if a.living--; a.living > 0 {
		a.mu.Unlock()
		return nil
	}
	close(a.stop)
	group := a.group
	a.mu.Unlock()
	return group.Wait()
}

// poll audits until stop is closed.
func (h *Host) poll(stop <-chan struct{}) {
	tick := time.NewTicker(h.cfg.PollInterval)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
		h.auditor.polls.Add(1)
		gap := time.Since(last) - h.cfg.PollInterval
		last = time.Now()
		h.mu.Lock()
		all := slices.Collect(maps.Values(h.missions))
		h.mu.Unlock()
		for _, m := range all {
			m.audit(gap)
		}
	}
}

// audit looks at every task of the mission that is at work. Gap is how much later than it should this poll has come.
func (m *mission) audit(gap time.Duration) {
	for _, c := range m.sessions.All() {
		if gap > standstill {
			c.Pulse.Forgive(gap)
		}
		if c.Task != nil {
			c.Examine()
		}
	}
	m.findForgotten()
}

// limits are how long a conversation may be silent and work.
func (c *Config) limits() pulse.Limits {
	return pulse.Limits{Silent: c.StallTimeout, Worked: c.SessionTTL}
}

// findForgotten looks for tasks that are recorded as alive while no goroutine works on them, and launches them anew. A
// task is launched a moment after it was recorded, so one that is found must be found twice.
func (m *mission) findForgotten() {
	m.relaunching.Lock()
	defer m.relaunching.Unlock()
	if m.unlooked++; m.unlooked < leasePolls || m.st.Ctx.Err() != nil {
		return
	}
	m.unlooked = 0
	tasks, err := m.h.cfg.Store.Tasks(m.st.Ctx, m.st.ID)
	if err != nil {
		return // who works with the store meets it, too
	}
	living := map[string]bool{}
	for _, r := range m.st.Runs() {
		living[r.ID] = true
	}
	var found []string
	for _, t := range tasks {
		switch {
		case t.Status.Ended() || living[t.ID]:
		case slices.Contains(m.forgotten, t.ID):
			m.relaunch(t.ID)
		default:
			found = append(found, t.ID)
		}
	}
	m.forgotten = found
}

// relaunch begins anew with a task that nobody works on.
func (m *mission) relaunch(id string) {
	var t centurion.Task
	if err := m.h.cfg.Store.Update(m.st.Ctx, func(tx *store.Tx) (err error) {
		t, err = state.MoveTask(tx, id, centurion.TaskQueued, func(t *centurion.Task) { t.Reason = "nobody worked on it any more" })
		return err
	}); err == nil && m.st.Ctx.Err() == nil {
		m.holdAgain(t)
		m.launch(t)
	}
}

// noRelaunch returns when no task is launched by the auditor any more. The mission's work has ended before.
func (m *mission) noRelaunch() {
	m.relaunching.Lock()
	defer m.relaunching.Unlock()
}
