package server

import (
	"context"
	"fmt"
	"iter"

	"centurion"
	"centurion/event/agent"
)

// ViewAgent is the view of agents instead of plain events.
const ViewAgent = "agent"

// viewed yields events derived from those of a query. A reader that begins in the middle gets nothing for earlier events, but these are
// read first, because they tell which session started which.
func (l *Local) viewed(ctx context.Context, q EventQuery) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		facts, d, err := l.view(ctx, q)
		if err != nil {
			yield(centurion.Event{}, err)
			return
		}
		if err := l.before(ctx, facts, func(e centurion.Event) { d.Apply(e) }); err != nil {
			yield(centurion.Event{}, err)
			return
		}
		for e, err := range l.Events(ctx, facts) {
			if err != nil {
				yield(centurion.Event{}, err)
				return
			}
			for _, told := range d.Apply(e) {
				if !yield(told, nil) {
					return
				}
			}
		}
	}
}

// before reads the events before those of a query.
func (l *Local) before(ctx context.Context, q EventQuery, see func(e centurion.Event)) error {
	last := q.After
	if last == 0 {
		return nil
	}
	q.After, q.Follow, q.Deltas = 0, false, false
	for e, err := range l.Events(ctx, q) {
		if err != nil || e.Seq > last {
			return err
		}
		see(e)
	}
	return nil
}

// view returns the query for the underlying events of a view, and the deriver.
func (l *Local) view(ctx context.Context, q EventQuery) (EventQuery, *agent.Deriver, error) {
	switch {
	case q.View != ViewAgent:
		return q, nil, &centurion.Error{Op: "read events", Kind: centurion.KindUsage, Msg: fmt.Sprintf("there is no view %q", q.View),
			Hint: "the only one is " + ViewAgent}
	case q.Toasts:
		return q, nil, &centurion.Error{Op: "read events", Kind: centurion.KindUsage, Msg: "notices are not part of the view " + ViewAgent,
			Hint: "ask for one of the two"}
	}
	d := &agent.Deriver{Session: q.Session}
	if q.Task != "" && q.Session == "" {
		t, err := l.Store.Task(ctx, q.Task)
		if err != nil {
			return q, nil, err
		}
		if d.Session = t.Session; t.Session == "" {
			return q, nil, &centurion.Error{Op: "read events", Kind: centurion.KindConflict, Msg: "task " + t.ID + " has no session yet",
				Hint: "it waits to be started; see: centurion tasks"}
		}
		q.Mission = t.Mission
	}
	if d.Session != "" {
		s, err := l.Store.Session(ctx, d.Session)
		if err != nil {
			return q, nil, err
		}
		q.Mission = s.Metadata.Mission
	}
	q.View, q.Session, q.Task = "", "", "" // the children's work is in their own events
	return q, d, nil
}
