package server

import (
	"testing"
	"testing/synctest"
)

// A request is answered when what happened before its end was told: a client may leave then.
func TestAnswersWaitForEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Follower
		f.mark(3)
		_ = f.Await(t.Context(), 3)
		reached := false
		go func() {
			_ = f.Await(t.Context(), 5)
			reached = true
		}()
		for _, seq := range []int64{4, 2, 0} {
			f.mark(seq)
			if synctest.Wait(); reached {
				t.Errorf("it waited until %d, and not until 5", seq)
			}
		}
		f.mark(6)
		if synctest.Wait(); !reached {
			t.Error("it waits for ever")
		}
	})
}
