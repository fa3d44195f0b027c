package report

import (
	"strings"

	"centurion"
	"centurion/event/view"
)

// retried pairs the error that has ended a session's answer with the event that tells of its being tried again: they are one trouble.
type retried struct {
	by   map[int]int // of an error's index: that of the attempt
	told map[int]int // of an attempt's index: that of the error
}

// retriedErrors finds the errors that a session's next attempt names as its reason.
func retriedErrors(events []centurion.Event) retried {
	out := retried{map[int]int{}, map[int]int{}}
	failed := map[string]int{} // the newest error of a session that nothing was done about yet
	for i, e := range events {
		switch e.Type {
		case centurion.EventSessionError:
			if e.Session != "" {
				failed[e.Session] = i
			}
		case centurion.EventMessageCreated: // it has gone on
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
			if _, ok := held(e); ok { // it is the provider's trouble, and told as that
				continue
			}
			out.by[first], out.told[i] = i, first
			delete(failed, e.Session)
		}
	}
	return out
}
