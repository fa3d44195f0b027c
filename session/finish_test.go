package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/provider/scripted"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
)

// once is the effect of a tool that finds what it did before.
func once(json.RawMessage) tools.Effect { return tools.Effect{Hosted: true, Once: true} }

// recorder counts what tools ran, by name.
type recorder struct {
	mu  sync.Mutex
	ran []string
}

// tool makes a tool that is recorded.
func (r *recorder) tool(name string, effect func(json.RawMessage) tools.Effect, res tools.Result) tool {
	return tool{name: name, effect: effect, run: func(_ context.Context, c *tools.Call, in json.RawMessage) (tools.Result, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ran = append(r.ran, name+" "+c.ID+" "+argument(in, "x"))
		return res, nil
	}}
}

// slow blocks until the turn is stopped: whoever is killed meanwhile has recorded the calls after it and not begun them.
var slow = tool{name: "slow", run: func(ctx context.Context, _ *tools.Call, _ json.RawMessage) (tools.Result, error) {
	<-ctx.Done()
	return tools.Result{}, nil
}}

// killed runs a session until its tools stand still, and returns what the next process finds.
func killed(t *testing.T, script func(scripted.Request) scripted.Answer, ts ...tools.Tool) *rig {
	t.Helper()
	r := newRig(t, script, ts...)
	stop := r.background()
	time.Sleep(time.Second)
	synctest.Wait()
	after := r.crash()
	if err := stop(centurion.ErrCancelled); err == nil {
		t.Error("it had ended")
	}
	return after
}

const lost = "!interrupted by a restart; its effects are unknown: look before you do it again"

// I2, TRIAL R3: of the calls that a killed process had recorded, those that only read or that are done once run at the next
// turn, with the ids they had; every other is told as interrupted, and is not run.
func TestFinishCalls(t *testing.T) {
	var rec recorder
	look, make1, write := rec.tool("look", readOnly, tools.Result{Output: "seen"}), rec.tool("make", once, tools.Result{Output: "made"}), rec.tool("write", writes, tools.Result{Output: "written"})
	hosted := rec.tool("plan", func(json.RawMessage) tools.Effect { return tools.Effect{Hosted: true} }, tools.Result{Output: "planned"})
	unsure := rec.tool("unsure", func(json.RawMessage) tools.Effect { panic("what is this?") }, tools.Result{})
	for name, test := range map[string]struct {
		calls []string
		want  []string // what the model is told
		ran   []string // after the restart
	}{
		"one of each":           {[]string{"slow", `look {"x":1}`, `make {"x":2}`, `write {"path":"a"}`, "plan"}, []string{"slow: " + lost, "look: seen", "make: made", "write: " + lost, "plan: " + lost}, []string{"look 1", "make 2"}},
		"nothing may run again": {[]string{"slow", `write {"path":"a"}`}, []string{"slow: " + lost, "write: " + lost}, nil},
		"all may run again":     {[]string{"slow", "look", "make", "look"}, []string{"slow: " + lost, "look: seen", "make: made", "look: seen"}, []string{"look", "make", "look"}},
		"a tool that is gone":   {[]string{"slow", "unheard_of", "look"}, []string{"slow: " + lost, "unheard_of: " + lost, "look: seen"}, []string{"look"}},
		"a key was in it":       {[]string{"slow", `look {"x":"AKIAIOSFODNN7EXAMPLE"}`, "look"}, []string{"slow: " + lost, "look: " + lost, "look: seen"}, []string{"look"}},
		"an effect that panics": {[]string{"slow", "unsure", "look"}, []string{"slow: " + lost, "unsure: " + lost, "look: seen"}, []string{"look"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec.ran = nil
				after := killed(t, inOrder(call(test.calls...)), look, make1, write, hosted, unsure, slow)
				rec.ran = nil
				ids := calls(after.last())
				if !after.Due() {
					t.Error("nothing is left to do")
				}
				after.reopen() // a second restart before the turn changes nothing
				if out := after.turn(); out.Text != "done" {
					t.Errorf("then %+v", out)
				}
				msgs := after.messages()
				if got := outcomes(msgs[1]); !slices.Equal(got, test.want) {
					t.Errorf("results %q, want %q", got, test.want)
				}
				if len(rec.ran) != len(test.ran) {
					t.Fatalf("ran %q, want %q", rec.ran, test.ran)
				}
				for _, ran := range rec.ran {
					f := strings.Fields(ran)
					i := slices.IndexFunc(ids, func(p centurion.Part) bool { return p.CallID == f[1] })
					if i < 0 || ids[i].Tool != f[0] {
						t.Errorf("%s ran under the id %s", f[0], f[1])
					}
					if what := strings.Join(slices.Delete(f, 1, 2), " "); !slices.Contains(test.ran, what) {
						t.Errorf("ran %q", what)
					}
				}
				if fault := valid(session.History(after.messages())); fault != "" && !strings.HasPrefix(fault, "the end") {
					t.Error(fault)
				}
				ended := 0
				for _, e := range after.events(centurion.EventToolCompleted) {
					if e.Session == after.id {
						ended++
					}
				}
				if ended != len(test.calls) {
					t.Errorf("%d ends of %d calls were told", ended, len(test.calls))
				}
			})
		})
	}
}

// A finished call may end the turn, consumes what it tells, and is killed once more without harm.
func TestFinishedCallsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		after := killed(t, inOrder(call("slow", "get", "end")), slow, rec.tool("get", readOnly, tools.Result{Output: "r", Consumes: []string{"tsk_7"}, Files: []string{"seen.txt"}}),
			rec.tool("end", once, tools.Result{Output: "bye", EndTurn: true}))
		again := after.crash() // nothing has happened yet
		requests := len(after.model.Requests())
		for _, r := range []*rig{after, again} {
			r.host.consumed = nil
			out := r.turn()
			if out.Finish != centurion.FinishToolCalls || !slices.Equal(out.Files, []string{"seen.txt"}) || len(r.model.Requests()) != requests {
				t.Errorf("outcome %+v after %d requests", out, len(r.model.Requests())-requests)
			}
			if got := r.host.consumed[r.last().ID]; !slices.Equal(got, []string{"tsk_7"}) {
				t.Errorf("consumed %q", got)
			}
		}
	})
}

// I2: a turn that is stopped while it finishes the calls of a dead process gives them an end as it does with its own.
func TestCancelWhileFinishing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		after := killed(t, inOrder(call("slow", "look", "look")), slow, tool{name: "look", effect: readOnly,
			run: func(ctx context.Context, _ *tools.Call, _ json.RawMessage) (tools.Result, error) {
				<-ctx.Done()
				return tools.Result{}, context.Cause(ctx)
			}})
		stop := after.background()
		time.Sleep(time.Second)
		synctest.Wait()
		if err := stop(centurion.ErrShutdown); centurion.KindOf(err) != centurion.KindInterrupted {
			t.Errorf("it ended with %v", err)
		}
		for _, p := range calls(after.last()) {
			if !p.State.Ended() {
				t.Errorf("%s has no end", p.Tool)
			}
		}
		after.reopen()
		after.cfg.Tools = nil
		if out := after.turn(); out.Text != "done" {
			t.Errorf("then %+v", out)
		}
	})
}

// ORCH-116, TRIAL R3: what the fence refuses is not written, whatever the session is doing, and the turn ends with the refusal.
func TestFence(t *testing.T) {
	stale := errors.New("superseded")
	for name, test := range map[string]struct {
		raise  string // at which of these the fence comes up: start, answer, tool
		stored string // of the last message
	}{
		"before the turn":       {"start", goal},
		"while the model talks": {"answer", ""},
		"while a tool runs":     {"tool", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var up atomic.Bool
			at := func(what string) {
				if what == test.raise {
					up.Store(true)
				}
			}
			r := newRig(t, func(q scripted.Request) scripted.Answer {
				at("answer")
				return inOrder(call("noop", "noop"))(q)
			}, tool{name: "noop", effect: readOnly, run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
				at("tool")
				return tools.Result{Output: "not stored"}, nil
			}})
			r.cfg.Fence = func(*store.Tx) error {
				if up.Load() {
					return stale
				}
				return nil
			}
			r.reopen()
			at("start")
			_, err := r.Turn(t.Context())
			if !errors.Is(err, stale) {
				t.Errorf("the turn ended with %v", err)
			}
			if err := r.Say(t.Context(), centurion.OriginHost, "more"); !errors.Is(err, stale) {
				t.Errorf("something was said: %v", err)
			}
			last := r.last()
			if test.stored != "" && last.Text() != test.stored {
				t.Errorf("stored: %q", last.Text())
			}
			if test.raise == "tool" {
				if got := outcomes(last); !slices.Equal(got, []string{"noop: (running)", "noop: (running)"}) {
					t.Errorf("stored: %q", got)
				}
			} else if len(calls(last)) > 0 || last.Finish != "" {
				t.Errorf("stored: %+v", last)
			}
			if n := len(r.events(centurion.EventSessionIdle)); n != 0 {
				t.Errorf("%d ends of a turn were told", n)
			}
		})
	}
}

// ORCH-85: a wait for the provider stands in the session while it lasts, with how often was tried, and a good answer ends it.
func TestRetryIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, inOrder(scripted.Answer{Error: &scripted.Error{Status: 429, RetryAfter: 40 * time.Second, Message: "slow down"}}))
		err := r.store.Update(t.Context(), func(tx *store.Tx) error {
			return r.PutRetry(tx, centurion.Retry{At: centurion.Now(), WaitMS: 5000, Reason: "before", Attempts: 2, RateLimits: 1})
		})
		if err != nil {
			t.Fatal(err)
		}
		stop := r.background()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		after := r.crash()
		got := after.record().Metadata.Retry
		if got == nil || got.WaitMS/1000 != 40 || got.Attempts != 2 || got.RateLimits != 1 || got.Reason == "" {
			t.Errorf("stored: %+v", got)
		}
		if left := got.Left(centurion.Now()); left/time.Second != 30 {
			t.Errorf("left: %s", left)
		}
		time.Sleep(time.Minute)
		if err := stop(nil); err != nil {
			t.Error(err)
		}
		if got := r.record().Metadata.Retry; got != nil {
			t.Errorf("after a good answer: %+v", got)
		}
		after.turn()
		if got := after.record().Metadata.Retry; got != nil {
			t.Errorf("after a good answer: %+v", got)
		}
	})
}
