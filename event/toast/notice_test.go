package toast

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/event"
)

// A notice of a fact says when and where it was: in the mission's root session, once that is known.
func TestNoticeOfAFact(t *testing.T) {
	var d Deriver
	retry := centurion.Event{Seq: 7, After: 3, Time: at(0), Type: centurion.EventProviderRetry, Mission: "msn_1", Session: "ses_a", Task: "tsk_a", Data: []byte(`{"wait_ms":2000,"reason":"gate"}`)}
	start := centurion.Event{Seq: 8, Time: at(time.Second), Type: centurion.EventMissionStarted, Mission: "msn_1", Session: "ses_root", Data: []byte(`{"goal":"g"}`)}
	again := retry
	again.Seq, again.Time = 9, at(time.Minute)
	var got []string
	for _, e := range []centurion.Event{retry, start, again} {
		for _, n := range d.Apply(e) {
			got = append(got, fmt.Sprintf("%s after %d in %s of %s: %s", n.Time.Format(time.TimeOnly), n.After, n.Session, n.Mission, n.Message))
		}
	}
	want := []string{"12:00:00 after 7 in ses_a of msn_1: Retry in 2s: gate", "12:00:01 after 8 in ses_root of msn_1: g", "12:01:00 after 9 in ses_root of msn_1: Retry in 2s: gate"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// What is no fact of a mission makes nothing due, also when something waits; and a name without a template shows itself.
func TestNoFact(t *testing.T) {
	var d Deriver
	for _, e := range (&script{}).queued("a").started("a").events {
		d.Apply(e)
	}
	for _, e := range []centurion.Event{{Type: centurion.EventDelta, Mission: "msn_1"}, {Type: centurion.EventToast, Mission: "msn_1"}, {Type: centurion.EventTodoUpdated, Session: "ses_root"}} {
		e.Time = at(time.Hour)
		if got := d.Apply(e); len(got) > 0 {
			t.Errorf("%+v: %+v", e, got)
		}
	}
	if got := preset("x"); got != (Preset{Name: "x", Message: "x", Variant: Error, Duration: time.Second}) {
		t.Errorf("%+v", got)
	}
}

// Of several families the one that waits longest is due first, and each is told at its own time. The limits of a mission that is joined
// late are asked for by its id.
func TestDue(t *testing.T) {
	d := Deriver{Caps: func(mission string) (int, int) { return len(mission), 4 }}
	s := (&script{}).queued("a").wait(100 * time.Millisecond).queued("b").wait(50 * time.Millisecond).queued("c")
	for i, e := range s.events {
		e.Data = []byte(strings.Replace(string(e.Data), "ses_root", []string{"ses_z", "ses_x", "ses_y"}[i], 1))
		d.Apply(e)
	}
	if due := d.Due(); !due.Equal(noon.Add(Window)) {
		t.Errorf("due %v", due)
	}
	var got []string
	for _, n := range d.Flush(noon.Add(time.Hour)) {
		got = append(got, fmt.Sprint(n.Session, " ", n.Time.Sub(noon)))
		if !strings.HasSuffix(n.Message, "Slots: 0/5") {
			t.Errorf("the limits: %s", n.Message)
		}
	}
	if want := []string{"ses_z 500ms", "ses_x 600ms", "ses_y 650ms"}; !slices.Equal(got, want) || !d.Due().IsZero() {
		t.Errorf("got %q, want %q; due %v", got, want, d.Due())
	}
}

// Errors and deltas pass as they are and in their order, what waits is told when the events end, and a panic is the last error. A reader may
// leave at each of them.
func TestWithPassesOn(t *testing.T) {
	broken := errors.New("the disk is gone")
	for _, panics := range []bool{false, true} {
		for leave := range 6 {
			synctest.Test(t, func(t *testing.T) {
				open := func(context.Context) iter.Seq2[centurion.Event, error] {
					return func(yield func(centurion.Event, error) bool) {
						for _, e := range append((&script{}).queued("a").started("a").events, centurion.Event{Type: centurion.EventDelta, Mission: "msn_1", Data: event.Data(nil)}) {
							e.Time = centurion.Now()
							if !yield(e, nil) {
								return
							}
						}
						if yield(centurion.Event{}, broken) && panics {
							panic("of the source")
						}
					}
				}
				var got []string
				for e, err := range With(t.Context(), &Deriver{}, open) {
					switch {
					case err == nil:
						got = append(got, string(e.Type))
					case errors.Is(err, broken):
						got = append(got, "broken")
					default:
						got = append(got, err.Error())
					}
					if len(got) > leave {
						break
					}
				}
				want := []string{"task.queued", "task.started", string(centurion.EventDelta), "broken", string(centurion.EventToast)}
				if panics {
					want[4] = "read events for toasts: crashed: of the source"
				}
				if want = want[:min(leave+1, len(want))]; !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

// Notices that are due at once come in the order of their time, whatever mission they are of.
func TestOrderOfMissions(t *testing.T) {
	var d Deriver
	var want []string
	for i := range 9 {
		s := (&script{}).wait(time.Duration(i) * 10 * time.Millisecond).queued("a")
		s.events[0].Mission = fmt.Sprintf("msn_%d", 9-i)
		d.Apply(s.events[0])
		want = append(want, s.events[0].Mission)
	}
	var got []string
	for _, n := range d.Flush(noon.Add(time.Hour)) {
		got = append(got, n.Mission)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Of several tasks that end together the worst says how the notice looks; each is told once, whatever is recorded of it later.
func TestTheWorstOfSeveral(t *testing.T) {
	for name, order := range map[string][]centurion.TaskStatus{"first": {centurion.TaskFailed, centurion.TaskCompleted, centurion.TaskCompleted}, "in the middle": {centurion.TaskCompleted, centurion.TaskFailed, centurion.TaskCancelled},
		"last": {centurion.TaskCompleted, centurion.TaskCancelled, centurion.TaskFailed}} {
		s := (&script{}).queued("a", "b", "c", "d").started("a", "b", "c", "d").wait(time.Second)
		for i, status := range order {
			s.ended(string(rune('a'+i)), status)
		}
		s.wait(time.Second).ended("a", order[0]).task(centurion.EventTaskUpdated, "b", order[1])
		all := s.toasts()
		if len(all) != 2 || all[1].Variant != Error || strings.Count(all[1].Message, "Write ") < 3 {
			t.Errorf("%s:\n%s", name, show(all))
		}
	}
}

// What a plan waits for is told until it is answered; an attempt without a number is the first one.
func TestPlansAndAttempts(t *testing.T) {
	plan := (&script{}).fact(centurion.EventPlanAsked, `{"id":"pln_1"}`).wait(time.Second).fact(centurion.EventPermissionAsked, `{"id":"per_1","permission":"bash"}`).
		fact(centurion.EventPlanAnswered, `{"id":"pln_1"}`).fact(centurion.EventQuestionAsked, `{"id":"que_1"}`).fact(centurion.EventPermissionReplied, `{"id":"per_1"}`).fact(centurion.EventQuestionAnswered, `{"id":"que_1"}`).
		wait(time.Second).fact(centurion.EventPermissionAsked, `{"id":"per_2","permission":"edit"}`)
	var got []string
	for _, n := range plan.toasts() {
		got = append(got, n.Message)
	}
	if want := []string{"A plan waits for your approval", "Something waits for your permission: edit"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	s := (&script{}).queued("a")
	s.fact(centurion.EventTaskRetrying, `{"id":"tsk_b","title":"Write b","parent":"ses_root","status":"running","reason":"stall"}`)
	s.events[1].Task = "tsk_b"
	if all := show(s.toasts()); !strings.Contains(all, "Write b (attempt 1)") {
		t.Errorf("its first attempt: %s", all)
	}
}
