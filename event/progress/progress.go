// Package progress derives from a mission's events how far each of its sessions was after each step. It owns the content of a snapshot
// and how long it is kept. It stores nothing: snapshots follow from answers, tool calls, the plan's counts and the states of tasks, all
// of which are in the journal.
package progress

import (
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/event"
	"centurion/event/view"
)

// Snapshot is how far a session was after a step: an answer of the model with its tool calls. Tokens and cost include the sessions
// below it.
type Snapshot struct {
	Step      int              `json:"step"` // from 1
	Time      centurion.Time   `json:"time"`
	Todo      event.TodoCounts `json:"todo"`    // of the whole plan
	Running   int              `json:"running"` // tasks of the mission
	Tokens    centurion.Tokens `json:"tokens"`
	Cost      float64          `json:"cost"` // USD
	Unpriced  bool             `json:"unpriced,omitempty"`
	ElapsedMS int64            `json:"elapsed_ms"` // of the mission, without the time paused
}

// Tracker takes the events of one mission. The zero Tracker is ready to use; it is not safe for concurrent use.
type Tracker struct {
	sessions map[string]*session
	board    view.Board    // its plan and its tasks
	begun    time.Time     // of this run; zero while the mission is not running
	earlier  time.Duration // of earlier runs
	last     time.Time
}

// session is one that has not ended.
type session struct {
	parent    string
	steps     int
	usage     centurion.Usage
	calls     int // of the newest answer, without a result yet
	snapshots event.Ring[Snapshot]
}

// Snapshots returns the newest snapshots of a session, at most [event.Kept], oldest first. Before its first step the result is empty
// but not nil; before its start and after its end it is nil.
func (t *Tracker) Snapshots(id string) []Snapshot {
	if s := t.sessions[id]; s != nil {
		return s.snapshots.All()
	}
	return nil
}

// Apply takes the next event.
func (t *Tracker) Apply(e centurion.Event) {
	switch e.Type {
	case centurion.EventMissionStarted, centurion.EventMissionResumed:
		t.stop(t.last) // a host that died has recorded no end
		t.begun = e.Time.Time
	case centurion.EventSessionCreated:
		t.session(e.Session)
	case centurion.EventTodoUpdated:
		t.board.Apply(e)
	case centurion.EventMessageUpdated:
		t.answer(e)
	case centurion.EventToolCompleted:
		t.result(e)
	}
	if e.Task != "" && strings.HasPrefix(string(e.Type), "task.") {
		t.task(e)
	}
	if !e.Time.IsZero() && e.Type != centurion.EventToast {
		t.last = e.Time.Time
	}
	if e.Type.EndsMission() {
		t.stop(e.Time.Time)
	}
	if e.Type == centurion.EventMissionCompleted || e.Type == centurion.EventMissionCancelled {
		t.sessions, t.board = nil, view.Board{Todo: t.board.Todo} // its sessions have ended; those of other ends may be resumed
	}
}

// stop ends the counting of working time.
func (t *Tracker) stop(at time.Time) {
	if !t.begun.IsZero() {
		t.earlier += max(0, at.Sub(t.begun))
	}
	t.begun = time.Time{}
}

func (t *Tracker) session(id string) *session {
	s := t.sessions[id]
	if s == nil {
		if t.sessions == nil {
			t.sessions = map[string]*session{}
		}
		s = &session{}
		t.sessions[id] = s
	}
	return s
}

// task notes the state of a task, and forgets the session of an ended one.
func (t *Tracker) task(e centurion.Event) {
	d, _ := t.board.Apply(e)
	status := d.TaskStatus()
	if !slices.Contains(centurion.TaskStatuses, status) {
		return
	}
	if d.Session != "" && d.Parent != "" {
		t.session(d.Session).parent = d.Parent
	}
	if status.Ended() && status != centurion.TaskBlocked {
		delete(t.sessions, d.Session)
	}
}

// answer takes a snapshot at the end of an answer. If it has tool calls, the snapshot is updated when they have ended.
func (t *Tracker) answer(e centurion.Event) {
	d, err := view.Decode(e)
	if err != nil || d.Finish == "" || d.Repaired || e.Session == "" {
		return
	}
	s := t.session(e.Session)
	seen := map[*session]bool{}
	for up := s; up != nil && !seen[up]; up = t.sessions[up.parent] {
		seen[up] = true
		up.usage = up.usage.Plus(d.Usage)
	}
	s.steps++
	s.calls = d.Calls
	s.snapshots.Add(t.snapshot(s, e.Time))
}

// result counts a tool's result; the last one of a batch retakes the step's snapshot.
func (t *Tracker) result(e centurion.Event) {
	s := t.sessions[e.Session]
	if s == nil || s.calls == 0 {
		return
	}
	if s.calls--; s.calls > 0 {
		return
	}
	if last := s.snapshots.Last(); last != nil {
		*last = t.snapshot(s, e.Time)
	}
}

func (t *Tracker) snapshot(s *session, at centurion.Time) Snapshot {
	elapsed := t.earlier
	if !t.begun.IsZero() {
		elapsed += max(0, at.Sub(t.begun))
	}
	return Snapshot{Step: s.steps, Time: at, Todo: t.board.Todo, Running: len(t.board.Active()), Tokens: s.usage.Tokens, Cost: s.usage.USD,
		Unpriced: s.usage.Unpriced, ElapsedMS: elapsed.Milliseconds()}
}
