package server

import (
	"context"
	"fmt"
	"iter"

	"centurion"
	"centurion/event/agent"
)

// ViewAgent shows what agents do instead of the facts.
const ViewAgent = "agent"

// viewed yields what follows from the events of a query. A reader that begins in the middle is told nothing of what came
// before, but the events before are read first: they say who started whom.
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

// before goes through the facts that come before those of a query.
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

// view returns the query for the facts that a view follows from, and what turns them into it.
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
	q.View, q.Session, q.Task = "", "", "" // what children do is told by their own facts
	return q, d, nil
}
