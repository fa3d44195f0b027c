package event

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"centurion"
)

// momentJournal is a journal in which something happens right after it was read for the first time.
type momentJournal struct {
	*fakeJournal
	then func()
}

func (j *momentJournal) Events(ctx context.Context, after int64, limit int) ([]centurion.Event, error) {
	found, err := j.fakeJournal.Events(ctx, after, limit)
	if then := j.then; then != nil {
		j.then = nil
		then()
	}
	return found, err
}

// OPAL-72: what is committed and published between the first reading and the wait for more is told at once, and not only
// when something else happens.
func TestFollowLosesNoMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, h := &momentJournal{fakeJournal: &fakeJournal{}}, &Hub{}
		j.then = func() {
			h.Publish(delta(0, "ses_1", "prt_1", "a"))
			j.commit(centurion.Event{Type: centurion.EventTaskQueued})
		}
		ctx, leave := context.WithCancel(t.Context())
		var got []string
		var wg sync.WaitGroup
		wg.Go(func() {
			for e := range Follow(ctx, j, h, 0, Filter{Deltas: true}) {
				got = append(got, show(e))
			}
		})
		synctest.Wait()
		if fmt.Sprint(got) != "[0+ses_1/a 2:task.queued]" {
			t.Errorf("got %v", got)
		}
		leave()
		wg.Wait()
	})
}
