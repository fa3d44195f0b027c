// Package space lets missions wait for space on a full disk. It keeps the reasons of the waiting missions, which cannot be stored then.
package space

import (
	"context"
	"maps"
	"sync"
	"time"

	"centurion"
	"centurion/event"
	"centurion/store"
	"centurion/workspace"
)

// How often a full disk is probed: soon at first, then rarely enough not to disturb.
const (
	firstProbe = 500 * time.Millisecond
	lastProbe  = 5 * time.Second
)

// Waits are the missions of one project that wait for space.
type Waits struct {
	Store     *store.Store
	Workspace *workspace.Workspace
	Longest   time.Duration         // the longest wait of a mission; negative: forever
	Publish   func(centurion.Event) // sends unstored events to current watchers; may be nil

	mu  sync.Mutex // protects why
	why map[string]string
}

// Await waits until the state and the project can be written again, and reports whether the mission may continue. It returns false if
// wanted ends or the wait is too long.
func (w *Waits) Await(wanted context.Context, mission string, cause error) bool {
	why := "waiting for space: " + cause.Error()
	w.set(mission, why)
	defer w.set(mission, "")
	if w.Publish != nil {
		w.Publish(centurion.Event{Time: centurion.Now(), Type: centurion.EventMissionUpdated, Mission: mission, After: w.Store.LastSeq(),
			Data: event.Data(event.MissionData{Status: centurion.MissionPaused, Reason: why})})
	}
	var over <-chan time.Time
	if w.Longest > 0 {
		t := time.NewTimer(w.Longest)
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
		case <-wanted.Done():
			t.Stop()
			return false
		}
		if w.Store.Probe(wanted) == nil && w.Workspace.CheckWritable() == nil {
			return true
		}
	}
}

// Reason is why a running mission waits, "" if it does not.
func (w *Waits) Reason(mission string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.why[mission]
}

// All returns the reasons by mission.
func (w *Waits) All() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.why)
}

func (w *Waits) set(mission, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if why == "" {
		delete(w.why, mission)
		return
	}
	if w.why == nil {
		w.why = map[string]string{}
	}
	w.why[mission] = why
}
