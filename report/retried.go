package report

import (
	"strings"

	"centurion"
	"centurion/event/view"
)

// retried pairs the error that ended a session's answer with the event of its retry: they are one trouble.
type retried struct {
	by   map[int]int // the index of the attempt, by the error's
	told map[int]int // the index of the error, by the attempt's
}

// retriedErrors finds the errors that a session's next attempt gives as its reason.
func retriedErrors(events []centurion.Event) retried {
	out := retried{map[int]int{}, map[int]int{}}
	failed := map[string]int{} // the newest unhandled error of a session
	for i, e := range events {
		switch e.Type {
		case centurion.EventSessionError:
			if e.Session != "" {
				failed[e.Session] = i
			}
		case centurion.EventMessageCreated: // it has continued
			delete(failed, e.Session)
		case centurion.EventTaskRetrying, centurion.EventProviderRetry:
			first, ok := failed[e.Session]
			if !ok {
				continue
			}
			s := view.Read(events[first])
			r := view.Read(e)
			if s.Error.Text == "" || !strings.Contains(r.Error.Text, s.Error.Text) && (r.Error.Text == "" || !strings.Contains(s.Error.Text, r.Error.Text)) {
				continue
			}
			if _, ok := held(e); ok { // a trouble of the provider, reported as such
				continue
			}
			out.by[first], out.told[i] = i, first
			delete(failed, e.Session)
		}
	}
	return out
}
