package event

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"centurion"
)

// OPAL-78, OPAL-79: a watcher that crashes while it chooses, or is gone, costs neither who publishes nor the others anything;
// after it has subscribed anew, facts come to it from its cursor on, and deltas again.
func TestHubCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, h := &fakeJournal{}, &Hub{}
		other, cancel := context.WithCancel(t.Context())
		events := h.Subscribe(other)
		bad := h.add(func(centurion.Event) bool { panic("no") })
		j.commit(centurion.Event{Type: centurion.EventTaskQueued})
		h.Publish(delta(j.LastSeq(), "ses_1", "prt_1", "a"))
		if len(events) != 1 || len(bad.events) != 0 {
			t.Errorf("%d to the other, %d to the one that crashed", len(events), len(bad.events))
		}
		h.remove(bad)
		ctx, leave := context.WithCancel(t.Context())
		var got []string
		var wg sync.WaitGroup
		wg.Go(func() {
			for e := range Follow(ctx, j, h, 0, Filter{Deltas: true}) {
				got = append(got, show(e))
			}
		})
		synctest.Wait()
		h.Publish(delta(j.LastSeq(), "ses_1", "prt_1", "b"))
		synctest.Wait()
		if fmt.Sprint(got) != "[2:task.queued 2+ses_1/b]" {
			t.Errorf("after it subscribed anew: %v", got)
		}
		leave()
		wg.Wait()
		cancel()
		synctest.Wait()
		if len(h.subs) != 0 {
			t.Errorf("%d registrations are left", len(h.subs))
		}
	})
}

// OPAL-3, OPAL-86, LOOP-81, LOOP-82, LOOP-83: many that watch one session each get everything; when one's context ends its
// registration and its goroutine are gone, also while somebody publishes, who never waits.
func TestHubCleansUp(t *testing.T) {
	before := goleak.IgnoreCurrent()
	var h Hub
	var publishers, readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		publishers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					h.Publish(delta(1, "ses_1", "prt_1", "x"))
				}
			}
		})
	}
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		c := h.Subscribe(ctx)
		readers.Go(func() {
			<-c
			cancel()
			for range c { // it is closed
			}
		})
	}
	readers.Wait()
	close(stop)
	publishers.Wait()
	h.mu.Lock()
	left := len(h.subs)
	h.mu.Unlock()
	if left != 0 {
		t.Errorf("%d registrations are left", left)
	}
	goleak.VerifyNone(t, before)

	var got [5]<-chan centurion.Event
	for i := range got {
		got[i] = h.Subscribe(t.Context())
	}
	for i := range 3 {
		h.Publish(delta(int64(i), "ses_1", "prt_1", fmt.Sprint(i)))
	}
	for i, c := range got {
		for n := range 3 {
			if e := <-c; e.After != int64(n) {
				t.Errorf("subscriber %d: %v in place %d", i, e.After, n)
			}
		}
	}
}
