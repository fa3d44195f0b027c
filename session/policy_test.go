package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/session"
	"centurion/tools"
)

// C-1, LOOP-35, LOOP-36, LOOP-38, OPAL-26, OPAL-58, OPAL-87, OPAL-88: one after the other, all at once, or as they can
// disturb each other: whatever the policy, no call begins too early, the results stand in the order of the calls, and the
// model is asked again after the last.
func TestToolPolicies(t *testing.T) {
	const s = time.Second
	list := []string{`read {"id":"0","for":"3s"}`, `read {"id":"1","for":"1s"}`, `write {"id":"2","for":"2s","path":"a"}`,
		`write {"id":"3","for":"1s","path":"a"}`, `shell {"id":"4","for":"1s"}`, `start {"id":"5","for":"2s"}`, `start {"id":"6","for":"1s"}`}
	for policy, want := range map[session.Policy][][2]time.Duration{
		"":                       {{0, 3 * s}, {0, s}, {3 * s, 5 * s}, {5 * s, 6 * s}, {6 * s, 7 * s}, {7 * s, 9 * s}, {7 * s, 8 * s}},
		session.PolicyAuto:       {{0, 3 * s}, {0, s}, {3 * s, 5 * s}, {5 * s, 6 * s}, {6 * s, 7 * s}, {7 * s, 9 * s}, {7 * s, 8 * s}},
		session.PolicySequential: {{0, 3 * s}, {3 * s, 4 * s}, {4 * s, 6 * s}, {6 * s, 7 * s}, {7 * s, 8 * s}, {8 * s, 10 * s}, {10 * s, 11 * s}},
		session.PolicyConcurrent: {{0, 3 * s}, {0, s}, {0, 2 * s}, {0, s}, {0, s}, {0, 2 * s}, {0, s}},
	} {
		t.Run("policy "+string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &timed{spans: map[string][2]time.Duration{}, zero: time.Now()}
				start := l.tool("start", func(json.RawMessage) tools.Effect { return tools.Effect{Alike: "start"} })
				slow := start.run
				start.run = func(ctx context.Context, c *tools.Call, in json.RawMessage) (tools.Result, error) {
					c.Begun()
					return slow(ctx, c, in)
				}
				r := newRig(t, inOrder(call(list...)), l.tool("read", readOnly), l.tool("write", writes), l.tool("shell", nil), start)
				r.cfg.Policy = policy
				r.reopen()
				r.turn()
				var end time.Duration
				for i, span := range want {
					if got := l.spans[fmt.Sprint(i)]; got != span {
						t.Errorf("call %d ran from %v to %v, want %v to %v", i, got[0], got[1], span[0], span[1])
					}
					end = max(end, span[1])
				}
				if got := time.Since(l.zero); got != end {
					t.Errorf("the model was asked again after %v, the last call had ended after %v", got, end)
				}
				if got := r.model.Requests()[1].Results(); !slices.Equal(got, []string{"0", "1", "2", "3", "4", "5", "6"}) {
					t.Errorf("the model sees the results %q", got)
				}
			})
		})
	}
}

// LOOP-35, LOOP-38: in sequence a call finds the result of the one before in the store.
func TestSequentialStoresBetween(t *testing.T) {
	var r *rig
	var seen []string
	r = newRig(t, inOrder(call("look", "look", "look")), tool{name: "look", effect: readOnly, run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
		seen = append(seen, strings.Join(outcomes(r.last()), " "))
		return tools.Result{Output: "x"}, nil
	}})
	r.cfg.Policy = session.PolicySequential
	r.reopen()
	r.turn()
	want := []string{"look: (running) look: (running) look: (running)", "look: x look: (running) look: (running)", "look: x look: x look: (running)"}
	if !slices.Equal(seen, want) {
		t.Errorf("stored while they ran: %q", seen)
	}
}

// LOOP-35, LOOP-39, LOOP-43, LOOP-44, LOOP-45, LOOP-46: who is cancelled in the middle of a sequence starts nothing more.
// The call that runs notices or ends, the rest are cancelled, in the store as in the next request; where all began at once,
// each decides for itself.
func TestCancelByPolicy(t *testing.T) {
	for _, tt := range []struct {
		policy session.Policy
		want   []string
		began  int
	}{
		{session.PolicySequential, []string{"read: !Cancelled", "read: !Cancelled", "shell: !Cancelled", "missing: !Tool not found: missing"}, 1},
		{session.PolicyAuto, []string{"read: !Cancelled", "read: whole", "shell: !Cancelled", "missing: !Tool not found: missing"}, 2},
		{session.PolicyConcurrent, []string{"read: !Cancelled", "read: whole", "shell: whole", "missing: !Tool not found: missing"}, 3},
	} {
		t.Run(string(tt.policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := make(chan string, 8)
				run := func(ctx context.Context, c *tools.Call, in json.RawMessage) (tools.Result, error) {
					began <- c.ID
					if argument(in, "polite") != "" {
						<-ctx.Done()
						return tools.Result{}, context.Cause(ctx)
					}
					time.Sleep(time.Minute)
					return tools.Result{Output: "whole"}, nil
				}
				r := newRig(t, inOrder(call(`read {"polite":1}`, "read", "shell", "missing")), tool{name: "read", effect: readOnly, run: run}, tool{name: "shell", run: run})
				r.cfg.Policy = tt.policy
				r.reopen()
				stop := r.background()
				time.Sleep(time.Second)
				if err := stop(centurion.ErrCancelled); centurion.KindOf(err) != centurion.KindCancelled {
					t.Fatal(err)
				}
				if got := outcomes(r.last()); !slices.Equal(got, tt.want) || len(began) != tt.began {
					t.Errorf("results %q, want %q; %d began, want %d", got, tt.want, len(began), tt.began)
				}
				if m := r.last(); m.Finish != centurion.FinishCancelled {
					t.Errorf("the answer is stored with the finish reason %q", m.Finish)
				}
				after := r.crash()
				after.say("Go on.")
				after.turn()
				var told []string
				for _, o := range tt.want {
					_, text, _ := strings.Cut(o, ": ")
					told = append(told, strings.TrimPrefix(text, "!"))
				}
				var got []string
				for _, m := range r.model.Requests()[1].Messages() {
					if m.Role == "tool" {
						got = append(got, m.Text)
					}
				}
				if !slices.Equal(got, told) {
					t.Errorf("the model is told %q, want %q", got, told)
				}
			})
		})
	}
}
