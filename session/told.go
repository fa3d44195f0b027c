package session

import "centurion/event"

// called names the calls of an answer, for readers who see it before the calls.
func called(a *answer) []event.CallData {
	all := make([]event.CallData, len(a.calls))
	for n, i := range a.calls {
		all[n] = event.CallData{Call: a.msg.Parts[i].CallID, Tool: a.msg.Parts[i].Tool}
	}
	return all
}
