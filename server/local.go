package server

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/retention"
	"centurion/orchestrator/roots"
	"centurion/store"
)

// Missions lists all missions of the project.
func (l *Local) Missions(ctx context.Context) ([]Mission, error) {
	all, err := l.Store.Missions(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Mission, 0, len(all))
	for _, m := range all {
		tasks, err := l.Store.Tasks(ctx, m.ID)
		if err != nil {
			return nil, err
		}
		out = append(out, l.standing(ctx, missionView(l.now(m, tasks))))
	}
	return out, nil
}

// mission finds a mission by id or unique prefix, or the latest for "".
func (l *Local) mission(ctx context.Context, id string) (centurion.Mission, error) {
	if id == "" {
		return l.Store.LatestMission(ctx)
	}
	full, err := l.Store.ResolveMission(ctx, id)
	if err != nil {
		return centurion.Mission{}, err
	}
	return l.Store.Mission(ctx, full)
}

// Mission returns one mission.
func (l *Local) Mission(ctx context.Context, id string) (Mission, error) {
	m, err := l.mission(ctx, id)
	if err != nil {
		return Mission{}, err
	}
	tasks, err := l.Store.Tasks(ctx, m.ID)
	return l.standing(ctx, missionView(l.now(m, tasks))), err
}

// standing adds what a running mission waits for: the number of open asks, and whether a person has stopped its root session.
func (l *Local) standing(ctx context.Context, m Mission) Mission {
	if !m.Status.Alive() {
		return m
	}
	if asks, err := l.Store.Asks(ctx, m.ID, true); err == nil {
		m.Asks = len(asks)
	}
	if m.Reason != "" {
		return m
	}
	s, err := l.Store.Session(ctx, m.Session)
	if err != nil || s.Metadata.Aborted == "" { // without its session nothing is known; the mission is shown anyway
		return m
	}
	m.Reason = agent.StoppedByPerson(s.Metadata.Aborted) + "; it is idle until someone writes to it or resumes the mission"
	return m
}

// Tasks lists the tasks of a mission.
func (l *Local) Tasks(ctx context.Context, mission string) ([]Task, error) {
	m, err := l.mission(ctx, mission)
	if err != nil {
		return nil, err
	}
	tasks, err := l.Store.Tasks(ctx, m.ID)
	return told(tasks, func(t centurion.Task) Task { return taskView(l.taskNow(t)) }), err
}

// Task returns one task.
func (l *Local) Task(ctx context.Context, id string) (Task, error) {
	full, err := l.Store.ResolveTask(ctx, id)
	if centurion.KindOf(err) == centurion.KindNotFound && l.Archive != nil {
		if t, aerr := retention.FromArchive(l.Archive, id); centurion.KindOf(aerr) != centurion.KindNotFound {
			return taskView(t), aerr
		}
	}
	if err != nil {
		return Task{}, err
	}
	t, err := l.Store.Task(ctx, full)
	return taskView(l.taskNow(t)), err
}

// Sessions lists the sessions of a mission.
func (l *Local) Sessions(ctx context.Context, mission string) ([]centurion.Session, error) {
	m, err := l.mission(ctx, mission)
	if err != nil {
		return nil, err
	}
	return some(l.Store.Sessions(ctx, m.ID))
}

// Session returns one session.
func (l *Local) Session(ctx context.Context, id string) (centurion.Session, error) {
	full, err := l.Store.ResolveSession(ctx, id)
	if err != nil {
		return centurion.Session{}, err
	}
	rec, err := l.Store.Session(ctx, full)
	if err != nil || rec.ParentID != "" || rec.Metadata.Mission == "" {
		return rec, err
	}
	m, err := l.Store.Mission(ctx, rec.Metadata.Mission)
	return roots.Shown(rec, m), err
}

// Messages lists the messages of a session.
func (l *Local) Messages(ctx context.Context, session string) ([]Message, error) {
	full, err := l.Store.ResolveSession(ctx, session)
	if err != nil {
		return nil, err
	}
	stored, err := l.Store.Messages(ctx, full)
	return told(stored, messageView), err
}

// Message returns one message.
func (l *Local) Message(ctx context.Context, session, id string, parts ...string) (Message, error) {
	stored, err := l.Store.Message(ctx, session, id, parts...)
	return messageView(stored), err
}

// Todo is the plan of a mission.
func (l *Local) Todo(ctx context.Context, mission string) (d event.TodoData, err error) {
	m, err := l.mission(ctx, mission)
	if err != nil {
		return d, err
	}
	q := store.EventQuery{Mission: m.ID, Types: []centurion.EventType{centurion.EventTodoUpdated}}
	for {
		found, err := l.Store.Events(ctx, q)
		if err != nil || len(found) == 0 {
			return d, err
		}
		last := found[len(found)-1]
		if d, err = event.Decode[event.TodoData](last); err != nil {
			return d, err
		}
		q.After = last.Seq
	}
}

// Receipts lists the receipts of a mission.
func (l *Local) Receipts(ctx context.Context, mission string) ([]centurion.Receipt, error) {
	m, err := l.mission(ctx, mission)
	if err != nil {
		return nil, err
	}
	return some(l.Store.Receipts(ctx, m.ID))
}

// Asks lists the open asks.
func (l *Local) Asks(ctx context.Context) ([]store.Ask, error) {
	return some(l.Store.Asks(ctx, "", true))
}

// told converts a list for the API.
func told[T, V any](list []T, as func(T) V) []V {
	out := make([]V, 0, len(list))
	for _, v := range list {
		out = append(out, as(v))
	}
	return out
}

// some makes an empty list of nil, which is [] instead of null in JSON.
func some[T any](list []T, err error) ([]T, error) {
	if list == nil {
		list = []T{}
	}
	return list, err
}

// journal adapts the store's events for cursors.
type journal struct{ *store.Store }

func (j journal) Events(ctx context.Context, after int64, limit int) ([]centurion.Event, error) {
	return j.Store.Events(ctx, store.EventQuery{After: after, Limit: limit})
}

// Events yields events from the journal.
func (l *Local) Events(ctx context.Context, q EventQuery) iter.Seq2[centurion.Event, error] {
	if q.Keep && l.Work != nil {
		q.Keep = false
		return func(yield func(centurion.Event, error) bool) {
			defer l.Work.Keep(q.Mission)()
			l.Events(ctx, q)(yield)
		}
	}
	if q.View != "" {
		return l.viewed(ctx, q)
	}
	if q.Toasts {
		q.Toasts = false
		return l.withToasts(ctx, q)
	}
	if q.Follow {
		return event.Follow(ctx, journal{l.Store}, cmp.Or(l.Hub, &event.Hub{}), q.After,
			event.Filter{Mission: q.Mission, Session: q.Session, Task: q.Task, Deltas: q.Deltas})
	}
	return func(yield func(centurion.Event, error) bool) {
		after := q.After
		for {
			page, err := l.Store.Events(ctx, store.EventQuery{After: after, Limit: eventPage, Mission: q.Mission, Session: q.Session, Task: q.Task})
			if err != nil {
				yield(centurion.Event{}, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
				after = e.Seq
			}
			if len(page) < eventPage {
				return
			}
		}
	}
}

// eventPage is the number of events read at once.
const eventPage = 500

// Answer answers an ask.
func (l *Local) Answer(ctx context.Context, ask, answer string) error {
	if l.Host == nil {
		return notRunning("answer")
	}
	open, err := l.Store.Asks(ctx, "", true)
	if err != nil {
		return err
	}
	full := ask
	for _, a := range open {
		switch {
		case !strings.HasPrefix(a.ID, ask) || ask == "":
		case full != ask && full != a.ID:
			return &centurion.Error{Op: "answer", Kind: centurion.KindUsage, Msg: fmt.Sprintf("several asks begin with %q", ask),
				Hint: "give more of the id; see: centurion asks"}
		default:
			full = a.ID
		}
	}
	return l.Host.Answer(ctx, full, answer, peerOf(ctx))
}

// Cancel ends a mission or a task.
func (l *Local) Cancel(ctx context.Context, id, reason string) error {
	if l.Host == nil {
		return notRunning("cancel")
	}
	full := id
	if t, err := l.Store.ResolveTask(ctx, id); err == nil {
		full = t
	} else if m, err := l.Store.ResolveMission(ctx, id); err == nil {
		full = m
	} else {
		return err
	}
	return l.Host.Control.Cancel(ctx, full, reason)
}

// Start records a mission and starts to work on it.
func (l *Local) Start(ctx context.Context, goal string, opts centurion.MissionOptions) (Mission, error) {
	if l.Work == nil {
		return Mission{}, notRunning("start mission")
	}
	m, err := l.Host.Start(ctx, goal, opts)
	if err == nil {
		err = l.Work.Launch(m.ID)
	}
	return missionView(m, nil), err
}

// Resume resumes a mission.
func (l *Local) Resume(ctx context.Context, id string, opts centurion.MissionOptions) (Mission, error) {
	if l.Work == nil {
		return Mission{}, notRunning("resume mission")
	}
	m, err := l.mission(ctx, id)
	if err != nil {
		return Mission{}, err
	}
	l.Host.Control.Proceed(m.ID)
	if !slices.Contains(l.Host.Running(), m.ID) {
		if err := l.Host.Control.Raise(ctx, m.ID, opts); err != nil {
			return Mission{}, err
		}
		if err := l.Work.Launch(m.ID); err != nil {
			return Mission{}, err
		}
		if err := l.Host.Control.AwaitResumed(ctx, m.ID, func() bool { return l.Host.Mail.Attended(m.ID) }); err != nil {
			return Mission{}, err
		}
	} else if opts.MaxWorkers > 0 || opts.MaxPerAgent > 0 {
		if err := l.Host.Control.Resize(ctx, m.ID, opts.MaxWorkers, opts.MaxPerAgent); err != nil {
			return Mission{}, err
		}
	}
	return l.Mission(ctx, m.ID)
}

// Pause stops a mission.
func (l *Local) Pause(ctx context.Context, id, reason string) error {
	if l.Host == nil {
		return notRunning("pause")
	}
	m, err := l.mission(ctx, id)
	if err != nil {
		return err
	}
	return l.Host.Control.Pause(ctx, m.ID, reason)
}

// Expand gives a task a checkout with all files.
func (l *Local) Expand(ctx context.Context, id, reason string) error {
	if l.Host == nil {
		return notRunning("path")
	}
	return l.Host.Control.Expand(ctx, id, reason)
}

// Tidy cleans up after ended missions.
func (l *Local) Tidy(ctx context.Context, o retention.TidyOptions) (retention.TidyReport, error) {
	if l.Host == nil {
		return retention.TidyReport{}, notRunning("tidy")
	}
	return l.Host.Keeper.Tidy(ctx, o)
}

// LastSeq is the number of the newest event.
func (l *Local) LastSeq(context.Context) (int64, error) { return l.Store.LastSeq(), nil }

func notRunning(op string) error {
	return &centurion.Error{Op: op, Kind: centurion.KindConflict, Msg: "nothing is running in this project",
		Hint: "continue with: centurion resume"}
}

// with calls do with the completed id, unless nothing runs in this project.
func with[T any](ctx context.Context, runs bool, op string, find func(ctx context.Context, id string) (string, error), id string, do func(id string) (T, error)) (got T, err error) {
	if !runs {
		return got, notRunning(op)
	}
	if id, err = find(ctx, id); err != nil {
		return got, err
	}
	return do(id)
}
