// Package space lets missions wait for space on a full disk. It owns what is known of missions that stand still for that reason: the
// store cannot be told.
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

// How often a full disk is tried: soon, and then not so often that the tries disturb anybody.
const (
	firstProbe = 500 * time.Millisecond
	lastProbe  = 5 * time.Second
)

// Waits are the waits for space of the missions of one project.
type Waits struct {
	Store     *store.Store
	Workspace *workspace.Workspace
	Longest   time.Duration         // how long a mission waits; below zero: for ever
	Publish   func(centurion.Event) // tells who is watching right now what cannot be written down; may be nil

	mu  sync.Mutex // protects why
	why map[string]string
}

// Await waits until the state and the project can be written again, and reports whether the mission may go on: not when wanted ends or
// it has taken too long.
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

// Reason says why a mission that is being worked on stands still at the moment, "" if it does not.
func (w *Waits) Reason(mission string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.why[mission]
}

// All returns every reason by its mission.
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
