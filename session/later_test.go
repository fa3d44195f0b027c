package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/provider/scripted"
	"centurion/tools"
)

// SUB-35: a call that says, when the program stops, that it is not over gets no result; the session goes on with it, and
// what stood beside it is run once only. A call that says so while nothing stops has failed.
func TestCallForLater(t *testing.T) {
	for _, reopen := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var runs atomic.Int32
			wait := tool{name: "wait", effect: func(json.RawMessage) tools.Effect { return tools.Effect{Once: true, Hosted: true, Alike: "wait"} },
				run: func(ctx context.Context, c *tools.Call, _ json.RawMessage) (tools.Result, error) {
					c.Begun()
					if runs.Add(1) > 2 {
						return tools.Result{Output: "answered"}, nil
					}
					<-ctx.Done()
					return tools.Result{}, errors.Join(context.Cause(ctx), tools.ErrLater)
				}}
			looks := 0
			look := tool{name: "look", effect: readOnly, run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
				looks++
				return tools.Result{Output: "seen"}, nil
			}}
			r := newRig(t, inOrder(call(`look {}`, `wait {}`, `wait {}`)), wait, look)
			stop := r.background()
			time.Sleep(time.Minute)
			if err := stop(centurion.ErrShutdown); centurion.KindOf(err) != centurion.KindOf(centurion.ErrShutdown) {
				t.Fatal(err)
			}
			m := r.last()
			if got := calls(m); !got[0].State.Ended() || got[1].State.Ended() || got[2].State.Ended() || m.Finish != centurion.FinishToolCalls {
				t.Fatalf("stored as %+v", m)
			}
			if told := len(r.events(centurion.EventToolCompleted)); told != 1 {
				t.Errorf("%d calls are told as completed", told)
			}
			if reopen {
				r.reopen()
			}
			if !r.Due() {
				t.Fatal("the turn is not over and nothing is due")
			}
			r.turn()
			if got := r.model.Requests()[1].Results(); !slices.Equal(got, []string{"seen", "answered", "answered"}) || looks != 1 {
				t.Errorf("the model is told %q after %d looks", got, looks)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, inOrder(call(`odd {}`)), tool{name: "odd", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
			return tools.Result{}, tools.ErrLater
		}})
		r.turn()
		if got := r.model.Requests()[1].Results(); len(got) != 1 || got[0] == "" {
			t.Errorf("the model is told %q", got)
		}
	})
}

// A turn ends behind the calls of an answer, without another request, while what surrounds the session says so: also when it is repeated.
func TestTurnParks(t *testing.T) {
	r := newRig(t, inOrder(scripted.Answer{Say: "I wait.", Calls: call(`noop {}`).Calls}, scripted.Answer{Say: "over"}), tool{name: "noop"})
	parked := true
	r.cfg.Parks = func(_ context.Context, history []centurion.Message) bool { return parked && len(history) > 1 }
	r.reopen()
	for n := range 2 {
		if out := r.turn(); out.Text != "I wait." || out.Finish != centurion.FinishToolCalls || len(r.model.Requests()) != 1 || len(r.events(centurion.EventSessionIdle)) != n+1 {
			t.Errorf("parked, the turn ended with %+v after %d requests and told its end %d times", out, len(r.model.Requests()), len(r.events(centurion.EventSessionIdle)))
		}
	}
	if !r.Due() {
		t.Error("nothing is due of a turn that is parked")
	}
	parked = false
	if out := r.turn(); out.Text != "over" || !slices.Equal(r.model.Requests()[1].Results(), []string{"noop"}) {
		t.Errorf("woken, it ended with %+v", out)
	}
}
