package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
)

// LOOP-38, SUB-26, SUB-28: calls that disturb nobody, such as a question to the person, begin before everything else in their answer,
// in their order, and the others do not wait for their end, whatever they touch; where calls run one after the other, these
// do as well. The results stand in the order of the calls.
func TestBeside(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		policy session.Policy
		calls  []string
		want   [][2]time.Duration
	}{
		{session.PolicyAuto, []string{`any {"id":"0","for":"2s"}`, `wait {"id":"1","for":"9s"}`, `any {"id":"2","for":"1s"}`, `wait {"id":"3","for":"1s"}`, `read {"id":"4","for":"1s"}`},
			[][2]time.Duration{{s, 3 * s}, {0, 9 * s}, {3 * s, 4 * s}, {s / 2, 3 * s / 2}, {4 * s, 5 * s}}},
		{session.PolicyConcurrent, []string{`any {"id":"0","for":"2s"}`, `wait {"id":"1","for":"9s"}`, `any {"id":"2","for":"1s"}`},
			[][2]time.Duration{{s / 2, 5 * s / 2}, {0, 9 * s}, {s / 2, 3 * s / 2}}},
		{session.PolicySequential, []string{`any {"id":"0","for":"2s"}`, `wait {"id":"1","for":"9s"}`, `any {"id":"2","for":"1s"}`},
			[][2]time.Duration{{0, 2 * s}, {2 * s, 11 * s}, {11 * s, 12 * s}}},
	} {
		t.Run(string(tt.policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &timed{spans: map[string][2]time.Duration{}, zero: time.Now()}
				wait := l.tool("wait", func(json.RawMessage) tools.Effect { return tools.Effect{Once: true, Beside: true, Alike: "wait"} })
				slow := wait.run
				wait.run = func(ctx context.Context, c *tools.Call, in json.RawMessage) (tools.Result, error) {
					begun := time.AfterFunc(s/2, c.Begun) // it takes a while to be put
					defer begun.Stop()
					return slow(ctx, c, in)
				}
				r := newRig(t, inOrder(call(tt.calls...)), wait, l.tool("read", readOnly), l.tool("any", func(json.RawMessage) tools.Effect { return tools.Effect{} }))
				r.cfg.Policy = tt.policy
				r.reopen()
				r.turn()
				ids := []string{"0", "1", "2", "3", "4"}[:len(tt.calls)]
				for n, id := range ids {
					if l.spans[id] != tt.want[n] {
						t.Errorf("call %s ran at %v, want %v", id, l.spans[id], tt.want[n])
					}
				}
				if got := r.model.Requests()[1].Results(); !slices.Equal(got, ids) {
					t.Errorf("the results are %q", got)
				}
			})
		})
	}
}

// SUB-28: from the first call of an answer to the last there is no moment at which it seems as if nothing but the calls beside
// all others were under way; when the turn is over nothing is.
func TestRunning(t *testing.T) {
	const long, short = `wait {"id":"0","for":"9s"}`, `any {"id":"1","for":"1s"}`
	for name, tt := range map[string]struct {
		policy session.Policy
		calls  []string
		want   []int
	}{
		"one":                {"", []string{short}, []int{1, 0}},
		"beside nothing":     {"", []string{long}, []int{1, 0}},
		"beside two batches": {"", []string{long, short, short}, []int{1, 2, 1, 0}},
		"beside a batch of two": {"", []string{`read {"id":"1","for":"1s"}`, long, `read {"id":"2","for":"2s"}`},
			[]int{1, 2, 3, 2, 1, 0}},
		"at once":           {session.PolicyConcurrent, []string{short, long, `any {"id":"2","for":"2s"}`}, []int{1, 2, 3, 2, 1, 0}},
		"one by one":        {session.PolicySequential, []string{long, short}, []int{1, 0}},
		"what cannot begin": {"", []string{long, `missing {}`, short}, []int{1, 2, 1, 0}},
		"stopped":           {"", []string{long, `any {"id":"1","for":"1h"}`, short}, []int{1, 2, 1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &timed{spans: map[string][2]time.Duration{}, zero: time.Now()}
				wait := l.tool("wait", func(json.RawMessage) tools.Effect { return tools.Effect{Once: true, Beside: true, Alike: "wait"} })
				slow := wait.run
				wait.run = func(ctx context.Context, c *tools.Call, in json.RawMessage) (tools.Result, error) {
					c.Begun()
					return slow(ctx, c, in)
				}
				r := newRig(t, inOrder(call(tt.calls...)), wait, l.tool("read", readOnly), l.tool("any", func(json.RawMessage) tools.Effect { return tools.Effect{} }))
				r.cfg.Policy = tt.policy
				var mu sync.Mutex
				sum, got := 0, []int(nil)
				r.cfg.Running = func(more int) {
					mu.Lock()
					defer mu.Unlock()
					sum += more
					got = append(got, sum)
				}
				r.reopen()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := r.Turn(ctx); (err != nil) != (name == "stopped") {
					t.Error(err)
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("under way are %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// SUB-35, R3: what a batch has done is stored when it is over, also while a call beside it waits on; a call that had not begun
// when the program stopped runs when the session goes on, once, and one that had begun does not run again. When a person
// stops the turn, all that is left is answered.
func TestLeftForLater(t *testing.T) {
	for name, tt := range map[string]struct {
		later, reopen bool
		want          []string
	}{
		"in the same process": {later: true, want: []string{"ran", "answered", "Cancelled", "ran"}},
		"in another":          {later: true, reopen: true, want: []string{"ran", "answered", "Cancelled", "ran"}},
		"a person's stop":     {want: []string{"ran", "Cancelled", "Cancelled", "Cancelled"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				waits, runs := 0, map[string]int{}
				wait := tool{name: "wait", effect: func(json.RawMessage) tools.Effect { return tools.Effect{Once: true, Beside: true, Alike: "wait"} },
					run: func(ctx context.Context, c *tools.Call, _ json.RawMessage) (tools.Result, error) {
						c.Begun()
						if waits++; waits > 1 {
							return tools.Result{Output: "answered"}, nil
						}
						<-ctx.Done()
						if !tt.later {
							return tools.Result{}, context.Cause(ctx)
						}
						return tools.Result{}, errors.Join(context.Cause(ctx), tools.ErrLater)
					}}
				shell := tool{name: "shell", effect: func(json.RawMessage) tools.Effect { return tools.Effect{} },
					run: func(ctx context.Context, c *tools.Call, in json.RawMessage) (tools.Result, error) {
						runs[argument(in, "id")]++
						if argument(in, "id") != "long" {
							return tools.Result{Output: "ran"}, nil
						}
						<-ctx.Done()
						return tools.Result{}, context.Cause(ctx)
					}}
				r := newRig(t, inOrder(call(`shell {"id":"quick"}`, `wait {}`, `shell {"id":"long"}`, `shell {"id":"next"}`)), wait, shell)
				stop := r.background()
				time.Sleep(time.Minute)
				if got := calls(r.last()); got[0].State.Output != "ran" || got[1].State.Ended() || got[2].State.Ended() || got[3].State.Ended() {
					t.Errorf("stored while the question waits: %+v", got)
				}
				if err := stop(centurion.ErrShutdown); err == nil {
					t.Fatal("it was not stopped")
				}
				if got := calls(r.last()); got[1].State.Ended() == tt.later || got[3].State.Ended() == tt.later || !got[2].State.Ended() {
					t.Errorf("stored when it was stopped: %+v", got)
				}
				told := 2 // a call that begins later has no result yet
				if !tt.later {
					told = 4
				}
				if n := len(r.events(centurion.EventToolCompleted)); n != told {
					t.Errorf("%d calls are told as ended, want %d", n, told)
				}
				if tt.reopen {
					r.reopen()
				}
				r.turn()
				if got := r.model.Requests()[1].Results(); !slices.Equal(got, tt.want) {
					t.Errorf("the model is told %q", got)
				}
				if next := runs["next"]; runs["quick"] != 1 || runs["long"] != 1 || next == 1 != tt.later || next > 1 {
					t.Errorf("they ran %v", runs)
				}
			})
		})
	}
}

// R3: a call that was left and has begun since is not run a second time after a crash.
func TestLeftCallThatBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lives, runs := 0, 0
		wait := tool{name: "wait", effect: func(json.RawMessage) tools.Effect { return tools.Effect{Once: true, Beside: true, Alike: "wait"} },
			run: func(ctx context.Context, c *tools.Call, _ json.RawMessage) (tools.Result, error) {
				c.Begun()
				if lives++; lives == 3 {
					return tools.Result{Output: "answered"}, nil
				}
				<-ctx.Done()
				return tools.Result{}, errors.Join(context.Cause(ctx), tools.ErrLater)
			}}
		shell := tool{name: "shell", effect: func(json.RawMessage) tools.Effect { return tools.Effect{} },
			run: func(ctx context.Context, _ *tools.Call, in json.RawMessage) (tools.Result, error) {
				if argument(in, "id") == "next" {
					runs++
				}
				<-ctx.Done()
				return tools.Result{}, context.Cause(ctx)
			}}
		r := newRig(t, inOrder(call(`wait {}`, `shell {"id":"long"}`, `shell {"id":"next"}`)), wait, shell)
		for range 2 {
			stop := r.background()
			time.Sleep(time.Minute)
			synctest.Wait()
			if m := r.last(); runs == 1 { // as a crash would leave it now
				if st := calls(m)[2].State; st.Status != centurion.ToolRunning || st.Time.Start == 0 {
					t.Errorf("it runs and is stored as %+v", st)
				}
			}
			_ = stop(centurion.ErrShutdown)
			r.reopen()
		}
		r.turn()
		if runs != 1 {
			t.Errorf("it ran %d times", runs)
		}
	})
}

// SUB-26: where what a batch did cannot be stored, the turn ends with that: it does not wait for an answer that a call beside it
// waits for.
func TestBesideAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("superseded")
		var ran atomic.Bool
		r := newRig(t, inOrder(call(`wait {}`, `shell {}`)),
			tool{name: "wait", effect: func(json.RawMessage) tools.Effect { return tools.Effect{Once: true, Beside: true, Alike: "wait"} },
				run: func(ctx context.Context, c *tools.Call, _ json.RawMessage) (tools.Result, error) {
					c.Begun()
					select {
					case <-ctx.Done():
					case <-time.After(time.Hour):
						t.Error("it has waited on")
					}
					return tools.Result{}, context.Cause(ctx)
				}},
			tool{name: "shell", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
				ran.Store(true)
				return tools.Result{Output: "ran"}, nil
			}})
		r.cfg.Fence = func(*store.Tx) error {
			if ran.Load() {
				return broken
			}
			return nil
		}
		r.reopen()
		if _, err := r.Turn(t.Context()); !errors.Is(err, broken) {
			t.Errorf("the turn ended with %v", err)
		}
	})
}
