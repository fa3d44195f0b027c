package report

import (
	"cmp"
	"time"

	"centurion"
	"centurion/event/view"
)

// session draws the mission's own agent, whose turns have no task events, and interruptions of sessions.
func (l *laner) session(e centurion.Event) {
	ln := l.bySession[e.Session]
	if e.Task != "" {
		ln = l.lanes[e.Task]
	}
	if e.Session != "" && e.Session == l.root {
		ln = l.main
	}
	if ln == nil {
		return
	}
	switch e.Type {
	case centurion.EventSessionAborted:
		d := view.Read(e)
		ln.mark(MarkKill, e.Time, cmp.Or(d.Reason, "stopped by a person"))
	case centurion.EventProviderRetry:
		if d := view.Read(e); d.Reason != waitGate { // its own request was refused, not another's
			ln.mark(MarkRetry, e.Time, cmp.Or(d.Error.Text, d.Reason))
		}
	}
	if ln != l.main {
		return
	}
	asks := l.ask(e)
	if l.ended != nil {
		return
	}
	switch e.Type {
	case centurion.EventSessionIdle, centurion.EventPlanAsked:
		ln.turn(SpanWait, e.Time, 0)
		return
	case centurion.EventMessageCreated, centurion.EventMessageUpdated: // there are none while a call waits
		clear(l.asks)
		if m := view.Read(e); m.Role == string(centurion.RoleUser) { // a prompt; it works from its request on
			return
		}
	case centurion.EventToolStarted, centurion.EventPartUpdated:
	default:
		if !asks {
			return
		}
	}
	if ln.checks == 0 {
		ln.turn(l.working(), e.Time, 0)
	}
}

// ask handles an ask of the mission's own agent, or its answer, and reports whether the event was one.
func (l *laner) ask(e centurion.Event) bool {
	switch e.Type {
	case centurion.EventQuestionAsked, centurion.EventPermissionAsked:
		a := view.Read(e)
		if a.By != "" { // a policy answered at once
			return false
		}
		l.asks[a.ID] = e.Type == centurion.EventQuestionAsked
		return true
	case centurion.EventQuestionAnswered, centurion.EventPermissionReplied:
		a := view.Read(e)
		_, waited := l.asks[a.ID]
		delete(l.asks, a.ID)
		return waited
	}
	return false
}

// working is the current activity of the mission's own agent in a turn: it works, or one of its calls waits for a person.
func (l *laner) working() SpanKind {
	if len(l.asks) > 0 {
		return SpanWait
	}
	return SpanWork
}

// worked is the time without gaps.
func (t Timeline) worked() time.Duration {
	d := t.To.Sub(t.From.Time)
	for _, g := range t.Gaps {
		d -= g.To.Sub(g.From.Time)
	}
	return max(d, 0)
}

// at is the time from the start to a moment, without the gaps before it.
func (t Timeline) at(when centurion.Time) time.Duration {
	if when.Before(t.From.Time) {
		return 0
	}
	d := when.Sub(t.From.Time)
	for _, g := range t.Gaps {
		switch {
		case !when.After(g.From.Time):
		case when.Before(g.To.Time):
			d -= when.Sub(g.From.Time)
		default:
			d -= g.To.Sub(g.From.Time)
		}
	}
	return max(min(d, t.worked()), 0)
}
