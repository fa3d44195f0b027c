package demo

import (
	"context"
	"os"
	"testing"

	"centurion"
	"centurion/event"
)

// A host whose parent was killed does not go on alone.
func TestWhileParent(t *testing.T) {
	var cause error
	err := WhileParent(t.Context(), os.Getppid()+1, func(ctx context.Context) error {
		<-ctx.Done()
		cause = context.Cause(ctx)
		return nil
	})
	if err != nil || centurion.KindOf(cause) != centurion.KindInterrupted {
		t.Errorf("an orphan: %v, %v", err, cause)
	}
	err = WhileParent(t.Context(), os.Getppid(), func(ctx context.Context) error { return ctx.Err() })
	if err != nil {
		t.Errorf("with its parent: %v", err)
	}
}

// Every kill comes: whatever its way, it is fired at the latest when the work is nearly done.
func TestAim(t *testing.T) {
	line := func(kind centurion.EventType, tool string) centurion.Event {
		return centurion.Event{Seq: 1, Type: kind, Data: event.Data(event.ToolData{Tool: tool})}
	}
	last := Whole * late / 100
	for _, test := range []struct {
		name  string
		aim   aim
		e     centurion.Event
		score int
		want  bool
	}{
		{"too early", aim{from: 5, last: last, how: atOnce}, line(centurion.EventToolCompleted, "bash"), 4, false},
		{"at once", aim{from: 5, last: last, how: atOnce}, line(centurion.EventToolCompleted, "bash"), 5, true},
		{"no command yet", aim{from: 5, last: last, how: intoCommand}, line(centurion.EventToolStarted, "read"), 5, false},
		{"a command", aim{from: 5, last: last, how: intoCommand}, line(centurion.EventToolStarted, "bash"), 5, true},
		{"while it comes back", aim{from: 9, last: last, how: whileBack}, line(centurion.EventMissionResumed, ""), 1, true},
		{"nearly done", aim{from: last, last: last, how: intoCommand}, line(centurion.EventToolStarted, "read"), last, true},
		{"no kill left", aim{from: -1, last: last, how: atOnce}, line(centurion.EventToolStarted, "bash"), last, false},
	} {
		a := test.aim
		a.arm()
		a.see(test.e, test.score)
		if fires := a.due == 0 && a.armed; fires != test.want {
			t.Errorf("%s: fires at once: %t", test.name, fires)
		}
	}
}
