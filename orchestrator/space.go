package orchestrator

import (
	"context"
	"errors"
	"time"

	"centurion"
	"centurion/event"
)

// errSpace says that a mission that had stopped at a full disk can go on.
var errSpace = errors.New("there is space again")

// fullDisk returns the error of a disk that made the mission stop, or nil if something else did.
func (m *mission) fullDisk(err error, v verdict) error {
	for _, e := range []error{v.err, err, context.Cause(m.st.Ctx)} {
		if centurion.KindOf(e) == centurion.KindDisk {
			return e
		}
	}
	return nil
}

// How often a full disk is tried: soon, and then not so often that the tries disturb anybody.
const (
	firstProbe = 500 * time.Millisecond
	lastProbe  = 5 * time.Second
)

// awaitSpace waits until the state and the project can be written again and reports whether the mission may go on. It
// stands still meanwhile, which is told to whoever asks or watches; it cannot be written down.
func (h *Host) awaitSpace(m *mission, cause error) bool {
	h.suspend(m.st.ID, "waiting for space: "+cause.Error())
	defer h.suspend(m.st.ID, "")
	h.publish(m, "waiting for space: "+cause.Error())
	var over <-chan time.Time
	if h.cfg.DiskWait > 0 {
		t := time.NewTimer(h.cfg.DiskWait)
		defer t.Stop()
		over = t.C
	}
	for wait := firstProbe; ; wait = min(2*wait, lastProbe) {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-over:
			t.Stop()
			return false
		case <-m.wanted.Done():
			t.Stop()
			return false
		}
		if h.cfg.Store.Probe(m.wanted) == nil && h.cfg.Workspace.CheckWritable() == nil {
			return true
		}
	}
}

func (h *Host) suspend(id, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if why == "" {
		delete(h.suspended, id)
		return
	}
	h.suspended[id] = why
}

// publish tells who is watching right now what cannot be written down.
func (h *Host) publish(m *mission, reason string) {
	if h.cfg.Publish == nil {
		return
	}
	h.cfg.Publish(centurion.Event{Time: centurion.Now(), Type: centurion.EventMissionUpdated, Mission: m.st.ID,
		After: h.cfg.Store.LastSeq(), Data: event.Data(event.MissionData{Status: centurion.MissionPaused, Reason: reason})})
}
