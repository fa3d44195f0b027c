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

// Dropped refuses a session that cannot be resumed any more.
func Dropped(rec centurion.Session) error {
	if rec.Time.Archived == 0 {
		return nil
	}
	return &centurion.Error{Op: "open session " + rec.ID, Kind: centurion.KindNotFound,
		Msg:  "the session was dropped at " + centurion.MillisTime(rec.Time.Archived).Local().Format(time.DateTime) + ", some time after its task had ended",
		Hint: "delegate the work as a new task"}
}

// Later adds [tools.ErrLater] to the error of a call that waited when its mission stopped.
func (m *Mission) Later(err error) error {
	if cause := context.Cause(m.Ctx); err != nil && cause != nil && centurion.KindOf(cause) != centurion.KindCancelled {
		return errors.Join(err, tools.ErrLater)
	}
	return err
}

// Elapsed is how long the mission has been worked on, in milliseconds. It rests on no wall clock.
func (m *Mission) Elapsed() int64 { return m.before + time.Since(m.begun).Milliseconds() }

// CauseOf returns why ctx ended, or nil. Whoever only says that it ended means the end of the host.
func CauseOf(ctx context.Context) error {
	switch cause := context.Cause(ctx); cause {
	case context.Canceled, context.DeadlineExceeded:
		return centurion.ErrShutdown
	default:
		return cause
	}
}

// Await blocks until something has changed, d has passed (0: for ever) or ctx has ended.
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

// Change returns a channel that is closed at the next notify. Take it before looking, so that nothing is missed.
func (m *Mission) Change() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// Notify wakes everybody who waits for something in this mission: each looks again whether it has come.
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

// RecordIn is [Mission.Record] as part of a transaction.
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

// Runs returns the tasks whose goroutines live.
func (m *Mission) Runs() []*Run {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.runs))
}

// Run returns the run of a task whose goroutine lives, or nil.
func (m *Mission) Run(task string) *Run {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runs[task]
}

// Add enters a task whose goroutine begins.
func (m *Mission) Add(r *Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs[r.ID] = r
}

// Drop ends what addRun began, unless a newer run of the task is at work.
func (m *Mission) Drop(r *Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.runs[r.ID] == r {
		delete(m.runs, r.ID)
	}
}

// PutNote tells the person something in the stream.
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

// Quiet waits until no other task of the mission runs.
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

// InWords is what an agent was told, for a person: one line, without the calls that were spelled out for it.
func InWords(said string) string {
	said = spelledCall.ReplaceAllString(said, "")
	said = strings.ReplaceAll(strings.ReplaceAll(said, ":\n- ", ": "), "\n- ", "; ")
	return strings.TrimRight(centurion.Clip(strings.Join(strings.Fields(said), " "), 400), ".;: ")
}

// spelledCall is a call of a tool with its arguments as JSON, and what leads up to it.
var spelledCall = regexp.MustCompile(`[:;,]?\s*\(?\b[a-z]+(?:_[a-z]+)+ \{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}\)?`)

// Alone reports whether one agent works without plan and proof, for the person who reads its answer.
func Alone(profile string) bool { return profile == agents.ProfileAssistant }

// CarriesOut returns the agent of a task as it carries the task out.
func (m *Mission) CarriesOut(t centurion.Task) (agents.Agent, error) {
	a, err := m.Cast.Get(t.Agent) // as it was found when it was delegated to
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

// HandedOver reports whether the work was ended so that another host goes on with it.
func HandedOver(ctx context.Context) bool { return context.Cause(ctx) == centurion.ErrHandover }

// Rewound is why a mission is paused that had ended before its conversation was Rewound.
const Rewound = "rewound"
