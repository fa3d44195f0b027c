package host

import (
	"context"
	"iter"

	"centurion"
	"centurion/server"
	"centurion/store"
)

// runEvents yields what began a mission, so that its goal is known, and then its facts after a number. Its last ones come even
// though working ends with the mission, before anybody else can have read them.
func (h *Host) runEvents(working context.Context, id string, after int64) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		ctx := context.WithoutCancel(working)
		begun, err := h.store.Events(ctx, store.EventQuery{Mission: id, Types: []centurion.EventType{centurion.EventMissionStarted}, Limit: 1})
		if err != nil {
			yield(centurion.Event{}, err)
			return
		}
		for _, e := range begun {
			if e.Seq <= after && !yield(e, nil) {
				return
			}
		}
		for e, err := range h.api().Events(working, server.EventQuery{After: after, Mission: id, Follow: true}) {
			if !yield(e, err) || err != nil {
				return
			}
			after = e.Seq
		}
		for e, err := range h.api().Events(ctx, server.EventQuery{After: after, Mission: id}) {
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
