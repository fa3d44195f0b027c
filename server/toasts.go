package server

import (
	"context"
	"iter"
	"time"

	"centurion"
	"centurion/event/toast"
)

// withToasts yields the events of a query with derived toasts. A reader that begins in the middle gets no toasts for earlier events,
// but later ones count them: the earlier events are read first.
func (l *Local) withToasts(ctx context.Context, q EventQuery) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		d := &toast.Deriver{Caps: func(mission string) (slots, perAgent int) {
			m, err := l.Store.Mission(ctx, mission)
			if err != nil {
				return 0, 0 // the defaults are shown
			}
			return m.Options.MaxWorkers, m.Options.MaxPerAgent
		}}
		if err := l.before(ctx, q, func(e centurion.Event) { d.Apply(e) }); err != nil {
			yield(centurion.Event{}, err)
			return
		}
		d.Flush(time.Now().Add(toast.Window))
		toast.With(ctx, d, func(ctx context.Context) iter.Seq2[centurion.Event, error] { return l.Events(ctx, q) })(yield)
	}
}
