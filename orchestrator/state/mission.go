package state

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/guard"
	"centurion/store"
	"centurion/tools"
)

// Dropped refuses a session that can no longer be resumed.
func Dropped(rec centurion.Session) error {
	if rec.Time.Archived == 0 {
		return nil
	}
	return &centurion.Error{Op: "open session " + rec.ID, Kind: centurion.KindNotFound,
		Msg:  "the session was dropped at " + centurion.MillisTime(rec.Time.Archived).Local().Format(time.DateTime) + ", some time after its task had ended",
		Hint: "delegate the work as a new task"}
}

// Later adds [tools.ErrLater] to the error of a call that was waiting when its mission stopped.
func (m *Mission) Later(err error) error {
	if cause := context.Cause(m.Ctx); err != nil && cause != nil && centurion.KindOf(cause) != centurion.KindCancelled {
		return errors.Join(err, tools.ErrLater)
	}
	return err
}

// Elapsed is the working time of the mission in milliseconds. It does not depend on the wall clock.
func (m *Mission) Elapsed() int64 { return m.before + time.Since(m.begun).Milliseconds() }

// CauseOf returns why ctx ended, or nil. A plain cancellation means that the host ends.
func CauseOf(ctx context.Context) error {
	switch cause := context.Cause(ctx); cause {
	case context.Canceled, context.DeadlineExceeded:
		return centurion.ErrShutdown
	default:
		return cause
	}
}

// Await blocks until changed is closed, d has passed (0: forever) or ctx has ended.
func (m *Mission) Await(ctx context.Context, changed <-chan struct{}, d time.Duration) error {
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-changed:
	case <-timer:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// Change returns a channel that is closed at the next Notify. Take it before checking a condition, so that no change is missed.
func (m *Mission) Change() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// Notify wakes all waiters of the mission; each checks its condition again.
func (m *Mission) Notify() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.changed)
	m.changed = make(chan struct{})
}

// Record changes the mission's row and returns it.
func (m *Mission) Record(ctx context.Context, change func(*centurion.Mission)) (rec centurion.Mission, err error) {
	err = m.Store.Update(ctx, func(tx *store.Tx) error {
		rec, err = m.RecordIn(tx, change)
		return err
	})
	return rec, err
}

// RecordIn is [Mission.Record] within a transaction.
func (m *Mission) RecordIn(tx *store.Tx, change func(*centurion.Mission)) (centurion.Mission, error) {
	rec, err := tx.Mission(m.ID)
	if err != nil {
		return rec, err
	}
	change(&rec)
	return rec, tx.PutMission(&rec)
}

// Tell appends an event about the mission itself.
func (m *Mission) Tell(ctx context.Context, fill func(*event.MissionData)) error {
	return m.Store.Update(ctx, func(tx *store.Tx) error {
		rec, err := tx.Mission(m.ID)
		if err != nil {
			return err
		}
		d := Living(rec)
		fill(&d)
		_, err = tx.Append(centurion.Event{Type: centurion.EventMissionUpdated, Mission: m.ID, Session: rec.Session, Data: event.Data(d)})
		return err
	})
}

// Runs returns the tasks with a living goroutine.
func (m *Mission) Runs() []*Run {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.runs))
}

// Run returns the run of a task with a living goroutine, or nil.
func (m *Mission) Run(task string) *Run {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runs[task]
}

// Add registers a task whose goroutine starts.
func (m *Mission) Add(r *Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs[r.ID] = r
}

// Drop removes a run, unless a newer run of the task has replaced it.
func (m *Mission) Drop(r *Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.runs[r.ID] == r {
		delete(m.runs, r.ID)
	}
}

// PutNote shows the person a note in the event stream.
func (m *Mission) PutNote(tx *store.Tx, note string) error {
	rec, err := tx.Mission(m.ID)
	if err != nil {
		return err
	}
	d := Living(rec)
	d.Note = note
	_, err = tx.Append(centurion.Event{Type: centurion.EventMissionUpdated, Mission: m.ID, Session: rec.Session, Data: event.Data(d)})
	return err
}

// Quiet waits until no task of the mission runs, except but.
func (m *Mission) Quiet(ctx context.Context, but string) error {
	for {
		changed := m.Change()
		tasks, err := m.Store.Tasks(ctx, m.ID)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(tasks, func(t centurion.Task) bool { return t.ID != but && t.Status == centurion.TaskRunning }) {
			return nil
		}
		if err := m.Await(ctx, changed, 0); err != nil {
			return err
		}
	}
}

// Blocked ends the mission's work with a question to the person.
type Blocked struct{ Question string }

func (e *Blocked) Error() string { return e.Question }

// Crashed reports whether an error is a crash of the program itself.
func Crashed(err error) bool {
	if err == nil {
		return false
	}
	_, panicked := errors.AsType[*guard.PanicError](err)
	return panicked || centurion.KindOf(err) == centurion.KindCrashed
}

// InWords shortens a text for agents to one line for a person, without spelled-out tool calls.
func InWords(said string) string {
	said = spelledCall.ReplaceAllString(said, "")
	said = strings.ReplaceAll(strings.ReplaceAll(said, ":\n- ", ": "), "\n- ", "; ")
	return strings.TrimRight(centurion.Clip(strings.Join(strings.Fields(said), " "), 400), ".;: ")
}

// spelledCall matches a tool call with JSON arguments, and the words that introduce it.
var spelledCall = regexp.MustCompile(`[:;,]?\s*\(?\b[a-z]+(?:_[a-z]+)+ \{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}\)?`)

// Alone reports whether a single agent works without plan and proof, for a person who reads its answer.
func Alone(profile string) bool { return profile == agents.ProfileAssistant }

// CarriesOut returns the agent of a task in the form that runs the task.
func (m *Mission) CarriesOut(t centurion.Task) (agents.Agent, error) {
	a, err := m.Cast.Get(t.Agent) // as it was when the task was delegated
	switch {
	case err != nil:
		return a, err
	case t.Sub == nil:
		return a.ForTask(), nil
	}
	a = a.SubAgent(t.Sub.Tools, t.Sub.System)
	a.Model = t.Sub.Model
	return a, nil
}

// HandedOver reports whether work ended so that another host continues it.
func HandedOver(ctx context.Context) bool { return context.Cause(ctx) == centurion.ErrHandover }

// Rewound is the reason of a paused mission that had ended before its conversation was rewound.
const Rewound = "rewound"
