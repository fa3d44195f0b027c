package todotest

import (
	"testing"
	"testing/synctest"
	"time"
)

// A save that stood still in the middle for long is told from one that did not, while it lasts and until the plan is whole.
func TestStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &round{}
		r.save(1)
		time.Sleep(stall)
		if r.stalls() {
			t.Error("a save stalls that takes no longer than one may")
		}
		r.save(-1)
		if r.stalls() || r.report.Stalled != 0 {
			t.Errorf("%d saves have stalled", r.report.Stalled)
		}
		r.save(1)
		time.Sleep(stall + 1)
		if !r.stalls() {
			t.Error("a save that stands still does not stall")
		}
		r.save(-1)
		if !r.stalls() || r.report.Stalled != 1 {
			t.Errorf("after a save that stood still: %t, %d", r.stalls(), r.report.Stalled)
		}
	})
}
