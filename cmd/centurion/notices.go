package main

import (
	"context"
	"iter"

	"centurion"
	"centurion/notify"
	"centurion/server"
	"centurion/store"
	"centurion/tui"
)

// tellDesktop shows on the desktop what a person must know of one run of a mission, until working ends. A notice that could not
// be shown is no failure of the mission.
func (h *host) tellDesktop(working context.Context, id string, after int64) {
	_ = notify.Watch(context.WithoutCancel(working), tui.UntilEnd(h.runEvents(working, id, after)), notify.NewDesktop())
}

// runEvents yields what began a mission, so that its goal is known, and then its facts after a number. Its last ones come even
// though working ends with the mission, before anybody else can have read them.
func (h *host) runEvents(working context.Context, id string, after int64) iter.Seq2[centurion.Event, error] {
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
