package host

import (
	"context"
	"errors"
	"iter"
	"time"

	"centurion"
	"centurion/server"
)

// maxReopened is how often in a row to reconnect to a host that sends no event.
const maxReopened = 3

// Events yields the events of a mission, and with q.Follow new ones while it runs, even when its host ends and another one takes over.
// When no process runs the mission any more, it calls note; that is no error.
func (p Place) Events(ctx context.Context, api server.API, q server.EventQuery, note func(string)) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		done, follow := func() error { return nil }, q.Follow
		defer func() { _ = done() }() // it was only read
		for tries := 0; ; tries++ {
			at := q.After
			if !untilGone(ctx, api, &q, follow, yield) || ctx.Err() != nil {
				return
			}
			if q.After > at {
				tries = 0
			}
			if tries == maxReopened {
				note("its host does not answer; see: centurion ps")
				return
			}
			if _, idle := api.(*server.Local); idle {
				if m, err := api.Mission(ctx, q.Mission); err == nil && m.Reason == server.Interrupted {
					note("the process that ran it is gone; continue with: centurion resume " + m.ID)
				}
				return
			}
			_ = done()
			p.AwaitHost(ctx, q.Mission)
			var err error
			if api, done, err = p.API(ctx); err != nil {
				done = func() error { return nil }
				yield(centurion.Event{}, err)
				return
			}
		}
	}
}

// untilGone yields the events after q.After, with follow until the mission's run has ended, or until the host is gone. It reports
// whether the host is gone; an API without a host counts as gone for who follows.
func untilGone(ctx context.Context, api server.API, q *server.EventQuery, follow bool, yield func(centurion.Event, error) bool) (gone bool) {
	_, idle := api.(*server.Local)
	q.Follow = false
	for {
		for e, err := range api.Events(ctx, *q) {
			if centurion.KindOf(err) == centurion.KindNetwork {
				return true
			}
			if !yield(e, err) || err != nil {
				return false
			}
			q.After = max(q.After, e.Seq) // a toast has no number
			if q.Follow && e.Type.EndsMission() {
				return false
			}
		}
		if !follow {
			return false
		}
		if idle || q.Follow {
			return true
		}
		m, err := api.Mission(ctx, q.Mission)
		if centurion.KindOf(err) == centurion.KindNetwork {
			return true
		}
		if q.Follow = err == nil && m.Status.Alive(); !q.Follow {
			// Events between reading them and checking the status.
			for e, err := range api.Events(ctx, *q) {
				if centurion.KindOf(err) == centurion.KindNetwork || !yield(e, err) || err != nil {
					return false
				}
			}
			return false
		}
	}
}

// HeirTimeout is how long to wait for a mission's next host, unless one has begun: one host may just be taking over from another.
const HeirTimeout = 500 * time.Millisecond

// AwaitHost returns when a running mission has a host, or when none has come in time.
func (p Place) AwaitHost(ctx context.Context, id string) {
	changes := func() bool { // one host ends or the next one begins: it has the lock, and does not say who it is
		_, unnamed := p.Owner()
		unlock, err := p.Lock()
		return unnamed != nil && IsHeld(err) || err == nil && unlock() != nil
	}
	for start := time.Now(); ctx.Err() == nil && (time.Since(start) < HeirTimeout || time.Since(start) < startTimeout && changes()); time.Sleep(retryPause) {
		m, err := p.Mission(ctx, id)
		if err != nil || m.Reason != server.Interrupted { // the next request reports the error
			return
		}
	}
}

// Mission reads a mission from the host or the store: the host may be ending right now.
func (p Place) Mission(ctx context.Context, id string) (m server.Mission, err error) {
	for range 3 {
		api, done, aerr := p.API(ctx)
		if aerr != nil {
			return m, aerr
		}
		m, err = api.Mission(ctx, id)
		if err = errors.Join(err, done()); centurion.KindOf(err) != centurion.KindNetwork {
			break
		}
	}
	return m, err
}
