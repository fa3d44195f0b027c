package report

import (
	"strings"
	"testing"

	"centurion"
)

// The faults that a review has found are fixed when a later review of the same item passes, not when one of another item does.
func TestReviewOfAnotherItemMendsNothing(t *testing.T) {
	for item, fixed := range map[string]bool{"T1": true, "T2": false} {
		reviewed := func(item, result string) centurion.Event {
			return fact(1, centurion.EventTaskCompleted, "tsk_"+item, "", map[string]any{"agent": "reviewer", "item": item, "result": result})
		}
		d := Data{Mission: centurion.Mission{Status: centurion.MissionCompleted}, Events: []centurion.Event{reviewed("T1", "FAIL\nwrong"), reviewed(item, "PASS")}}
		if got := reviewedLater(d, "T1", 0); strings.HasPrefix(got, "fixed") != fixed {
			t.Errorf("after a review of %s has passed: %q", item, got)
		}
	}
}
