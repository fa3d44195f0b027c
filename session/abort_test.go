package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"centurion"
	"centurion/guard"
	"centurion/provider"
	"centurion/provider/scripted"
	"centurion/session"
	"centurion/tools"
)

// background runs a turn until stop, which cancels it with cause and returns its error.
func (r *rig) background() (stop func(cause error) error) {
	ctx, cancel := context.WithCancelCause(r.t.Context())
	var g guard.Group
	g.Go("turn", func() error {
		_, err := r.Turn(ctx)
		return err
	})
	return func(cause error) error {
		cancel(cause)
		return g.Wait()
	}
}

// LOOP-19, LOOP-42
func TestCancelledBeforeItBegins(t *testing.T) {
	r := newRig(t, inOrder())
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(centurion.ErrShutdown)
	out, err := r.Turn(ctx)
	if centurion.KindOf(err) != centurion.KindInterrupted || out.Steps != 0 || len(r.model.Requests()) != 0 || len(r.messages()) != 1 {
		t.Errorf("%v after %d steps, %d messages", err, out.Steps, len(r.messages()))
	}
}

// What had streamed by the time of a cancellation is kept, and told to the model if a person then goes on; the calls of
// a half answer are not.
//
// LOOP-33, LOOP-42, LOOP-45, LOOP-46
func TestCancelWhileStreaming(t *testing.T) {
	for _, reopen := range []bool{false, true} {
		t.Run(fmt.Sprint("reopen ", reopen), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, inOrder(scripted.Answer{Say: "I will", Pace: time.Second, Chunk: 2,
					Calls: call(`noop {}`, `noop {"text":"a long one"}`).Calls}), tool{name: "noop"})
				stop := r.background()
				time.Sleep(9500 * time.Millisecond)
				began := time.Now()
				err := stop(centurion.ErrCancelled)
				if centurion.KindOf(err) != centurion.KindCancelled || time.Since(began) != 0 {
					t.Fatalf("%v after %v", err, time.Since(began))
				}
				m := r.last()
				if m.Finish != centurion.FinishCancelled || m.Text() != "I will" || m.Error == nil || m.Error.Name != "MessageAbortedError" || m.Time.Completed == 0 {
					t.Errorf("stored as %+v %q", m, m.Text())
				}
				if want := []string{"noop: !Cancelled", "noop: !Cancelled"}; !slices.Equal(outcomes(m), want) {
					t.Errorf("its calls are stored as %q", outcomes(m))
				}
				if m.Usage.Tokens.Input == 0 {
					t.Error("what was spent on it is not counted")
				}
				if reopen {
					r.reopen()
				}
				r.say("Stop. Do something else.")
				if out := r.turn(); out.Text != "done" {
					t.Errorf("then %+v", out)
				}
				msgs := r.model.Requests()[1].Messages()
				if len(msgs) != 4 || msgs[2].Text != "I will" || len(msgs[2].Calls) != 0 || msgs[3].Text != "Stop. Do something else." {
					t.Errorf("the model sees %+v", msgs)
				}
			})
		})
	}
}

// A turn that was cancelled while the model spoke can be repeated as it is, as a resume does it.
//
// LOOP-42, LOOP-45, LOOP-46
func TestCancelThenRepeat(t *testing.T) {
	late := &centurion.Error{Kind: centurion.KindTimeout, Msg: "the task took too long"}
	for _, cause := range []error{centurion.ErrCancelled, centurion.ErrShutdown, centurion.ErrBudget, late} {
		t.Run(cause.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				half := scripted.Answer{Say: "I will now", Pace: time.Second, Chunk: 2}
				r := newRig(t, inOrder(half, half, call("noop")), tool{name: "noop"})
				for range 2 {
					stop := r.background()
					time.Sleep(3 * time.Second)
					if err := stop(cause); !errors.Is(err, cause) {
						t.Fatal(err)
					}
					if !r.Due() {
						t.Fatal("nothing to answer after an answer that was stopped")
					}
					r.reopen()
					if m := r.last(); m.Finish != centurion.FinishCancelled || len(m.Text()) < 4 || !strings.HasPrefix("I will", m.Text()) {
						t.Errorf("stored as %q with the finish reason %q", m.Text(), m.Finish)
					}
				}
				r.turn()
				reqs := r.model.Requests()
				if n := len(reqs[2].Messages()); n != 2 {
					t.Errorf("the repeated request holds %d messages, want 2", n)
				}
				if n := len(reqs[3].Messages()); n != 4 {
					t.Errorf("the request after it holds %d messages, want 4", n)
				}
			})
		})
	}
}

// A cancellation reaches the tools that run: one notices, another ends as usual, the rest are never started.
//
// LOOP-39, LOOP-42, LOOP-43, LOOP-44, LOOP-45, LOOP-46
func TestCancelWhileToolsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := 0
		r := newRig(t, inOrder(call("polite", "stubborn", "late", "late")),
			tool{name: "polite", effect: readOnly, run: func(ctx context.Context, _ *tools.Call, _ json.RawMessage) (tools.Result, error) {
				<-ctx.Done()
				return tools.Result{Output: "half"}, context.Cause(ctx)
			}},
			tool{name: "stubborn", effect: readOnly, run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
				time.Sleep(time.Minute)
				return tools.Result{Output: "whole", Files: []string{"a"}}, nil
			}},
			tool{name: "late", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
				late++
				return tools.Result{}, nil
			}})
		began := time.Now()
		stop := r.background()
		time.Sleep(time.Second)
		if err := stop(centurion.ErrCancelled); centurion.KindOf(err) != centurion.KindCancelled {
			t.Fatal(err)
		}
		if time.Since(began) != time.Minute {
			t.Errorf("over after %v: the tool that ran was not waited for", time.Since(began))
		}
		m := r.last()
		if want := []string{"polite: !Cancelled", "stubborn: whole", "late: !Cancelled", "late: !Cancelled"}; !slices.Equal(outcomes(m), want) || late != 0 {
			t.Errorf("results %q, want %q; %d of the rest ran", outcomes(m), want, late)
		}
		if m.Finish != centurion.FinishCancelled || m.Error == nil || m.Error.Name != "MessageAbortedError" || len(r.model.Requests()) != 1 {
			t.Errorf("stored as %+v", m)
		}
		r.reopen()
		r.turn()
		if got := r.model.Requests()[1].Results(); !slices.Equal(got, []string{"Cancelled", "whole", "Cancelled", "Cancelled"}) {
			t.Errorf("the model is told %q", got)
		}
	})
}

// OPAL-64, LOOP-44: a call that crashes while its turn is stopped has crashed: what it did is not known, and «Cancelled» would
// hide that.
func TestCrashWhileStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, inOrder(call("crash")), tool{name: "crash", run: func(ctx context.Context, _ *tools.Call, _ json.RawMessage) (tools.Result, error) {
			<-ctx.Done()
			panic("out of range")
		}})
		stop := r.background()
		time.Sleep(time.Second)
		if err := stop(centurion.ErrCancelled); centurion.KindOf(err) != centurion.KindCancelled {
			t.Fatal(err)
		}
		if m := r.last(); !slices.Equal(outcomes(m), []string{"crash: !crashed: out of range"}) || m.Finish != centurion.FinishCancelled {
			t.Errorf("results %q, finish %q", outcomes(m), m.Finish)
		}
	})
}

// A stream that is cut runs none of its calls, wherever the cut is, and the next turn begins from a valid history.
func TestCutStreamsRunNothing(t *testing.T) {
	event := func(delta, finish string) string {
		return `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + "}]}\n\n"
	}
	whole := event(`{"role":"assistant","content":"I read both."}`, "null") +
		event(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"noop","arguments":"{\"x\":1}"}}]}`, "null") +
		event(`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"noop","arguments":"{}"}}]}`, "null") +
		event(`{}`, `"tool_calls"`)
	end := strings.LastIndexByte(whole, '}') // without this one, the last chunk is not complete
	const step = 17
	var cuts []int
	for n := end; n > 0; n -= step {
		cuts = append(cuts, n)
	}
	ran := 0
	r := newRigOf(t, scripted.Config{Func: func(q scripted.Request) scripted.Answer {
		if q.Turn <= len(cuts) {
			return scripted.Answer{Raw: whole[:cuts[q.Turn-1]]}
		}
		return scripted.Answer{Say: "done"}
	}}, tool{name: "noop", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
		ran++
		return tools.Result{}, nil
	}})
	for _, n := range cuts {
		_, err := r.Turn(t.Context())
		switch centurion.KindOf(err) {
		case centurion.KindStreamCut, centurion.KindOverloaded, centurion.KindNetwork:
		default:
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
	}
	if fault := valid(session.History(r.messages())); fault != "" {
		t.Fatal(fault)
	}
	if m := r.messages()[1]; m.Text() != "I read both." || m.Finish != centurion.FinishError || len(calls(m)) != 2 {
		t.Errorf("what came before the cut is stored as %q, %d calls, finish %q", m.Text(), len(calls(m)), m.Finish)
	}
	r.reopen()
	r.turn()
	if ran != 0 {
		t.Errorf("%d tools ran", ran)
	}
	for _, q := range r.model.Requests() {
		if len(q.Messages()) != 2 {
			t.Fatalf("a request after a cut holds %d messages", len(q.Messages()))
		}
	}
}

// LOOP-33
func TestKilledWhileStreaming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, inOrder(scripted.Answer{Say: "I will now call a tool.", Pace: 20 * time.Millisecond, Chunk: 1,
			Calls: call(`noop {"text":"` + strings.Repeat("x", 100) + `"}`).Calls}), tool{name: "noop"})
		stop := r.background()
		time.Sleep(time.Second)
		synctest.Wait()
		after := r.crash()
		if err := stop(centurion.ErrCancelled); err == nil {
			t.Error("it had ended")
		}

		m := after.last()
		if m.Text() != "I will now call a tool." || m.Finish != centurion.FinishError || m.Error == nil || m.Error.Name != "MessageAbortedError" {
			t.Errorf("after the restart there is %q, finish %q, error %+v", m.Text(), m.Finish, m.Error)
		}
		if p := calls(m); len(p) != 1 || !p[0].State.Ended() || !strings.Contains(string(p[0].State.Input), "xxx") {
			t.Errorf("its call is %+v", p)
		}
		for p := range after.Calls() {
			t.Errorf("a call that was cut off counts as made: %+v", p)
		}
		if e := after.events(centurion.EventMessageUpdated); len(e) != 1 || !strings.Contains(string(e[0].Data), "repaired") {
			t.Errorf("told: %+v", e)
		}
		if !after.Due() {
			t.Error("nothing to answer")
		}
		if out := after.turn(); out.Text != "done" {
			t.Errorf("then %+v", out)
		}
		if msgs := r.model.Requests()[1].Messages(); len(msgs) != 2 {
			t.Errorf("the model sees %+v", msgs)
		}
	})
}

// OPAL-50, OPAL-65: each call that a crash has cut off has one result, and its end is told once.
func TestKilledWhileToolsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, inOrder(call("noop", `slow {"x":1}`, "noop")), tool{name: "noop"},
			tool{name: "slow", run: func(ctx context.Context, _ *tools.Call, _ json.RawMessage) (tools.Result, error) {
				<-ctx.Done()
				return tools.Result{}, nil
			}})
		stop := r.background()
		time.Sleep(time.Second)
		synctest.Wait()
		after := r.crash()
		if err := stop(centurion.ErrCancelled); err == nil {
			t.Error("it had ended")
		}

		const lost = "interrupted by a restart; its effects are unknown: look before you do it again"
		for range 2 { // a second restart changes nothing
			if want := []string{"noop: noop", "slow: !" + lost, "noop: !" + lost}; !slices.Equal(outcomes(after.last()), want) {
				t.Errorf("results %q, want %q", outcomes(after.last()), want)
			}
			if n := len(after.events(centurion.EventToolCompleted)); n != 3 {
				t.Errorf("%d ends of 3 calls were told", n)
			}
			after.reopen()
		}
		if fault := valid(session.History(after.messages())); fault != "" {
			t.Error(fault)
		}
		after.turn()
		if got := r.model.Requests()[1].Results(); !slices.Equal(got, []string{"noop", lost, lost}) {
			t.Errorf("the model is told %q", got)
		}
	})
}

// interrupter is a model, a host and a set of tools that stop the turn at its n-th step, whatever step that is.
type interrupter struct {
	session.Model
	left int
	stop func()
}

func (m *interrupter) step() {
	if m.left--; m.left == 0 {
		m.stop()
	}
}

func (m *interrupter) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		m.step()
		for d, err := range m.Model.Stream(ctx, req) {
			m.step()
			if !yield(d, err) {
				return
			}
		}
		m.step()
	}
}

// Whatever the model answers, and wherever a turn is cancelled or the process dies, the history that is sent next is
// valid, every call has its result, and the conversation can go on to its end.
//
// OPAL-65, LOOP-46
func TestHistoryStaysValid(t *testing.T) {
	var (
		it     = &interrupter{}
		script []scripted.Answer
		asked  int
	)
	run := func(name string, err error) tool {
		return tool{name: name, effect: readOnly, run: func(ctx context.Context, _ *tools.Call, _ json.RawMessage) (tools.Result, error) {
			if name == "crash" {
				panic("oh")
			}
			return tools.Result{Output: name}, err
		}}
	}
	step := tool{name: "step", run: func(ctx context.Context, _ *tools.Call, _ json.RawMessage) (tools.Result, error) {
		it.step()
		if ctx.Err() != nil {
			return tools.Result{Output: "half"}, context.Cause(ctx)
		}
		return tools.Result{}, nil
	}}
	r := newRig(t, func(scripted.Request) scripted.Answer {
		if asked++; asked <= len(script) {
			return script[asked-1]
		}
		return scripted.Answer{Say: "done"}
	}, run("noop", nil), run("fail", errors.New("no")), run("crash", nil), step)
	it.Model = r.cfg.Model
	r.cfg.Model = it
	r.host.before = func() ([]centurion.Message, error) { it.step(); return nil, nil }

	calls := rapid.Custom(func(t *rapid.T) []scripted.Call {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) scripted.Call {
			return scripted.Call{ID: rapid.SampledFrom([]string{"", "call_0", "call_1"}).Draw(t, "id"),
				Name:      rapid.SampledFrom([]string{"noop", "fail", "crash", "step", "step", "missing"}).Draw(t, "name"),
				Arguments: rapid.SampledFrom([]string{"", "{}", `{"path":"a"}`, `[1]`, `{"x":`, `"{}"`, "null"}).Draw(t, "arguments")}
		}), 1, 4).Draw(t, "calls")
	})
	answer := rapid.Custom(func(t *rapid.T) scripted.Answer {
		a := scripted.Answer{Say: rapid.SampledFrom([]string{"", "Good.", "A longer text, sent in several pieces."}).Draw(t, "say"),
			Reasoning: rapid.SampledFrom([]string{"", "Hm."}).Draw(t, "reasoning"), Chunk: 9}
		if rapid.IntRange(0, 3).Draw(t, "whether it calls") > 0 {
			a.Calls = calls.Draw(t, "calls")
		}
		switch rapid.IntRange(0, 9).Draw(t, "how it ends") {
		case 0:
			a.Cut = rapid.SampledFrom([]scripted.Cut{scripted.CutHalf, scripted.CutLate, scripted.CutReset}).Draw(t, "cut")
		case 1:
			a.Error = &scripted.Error{Status: 500, Stream: rapid.Bool().Draw(t, "stream")}
		case 2:
			a.Finish = rapid.SampledFrom([]string{"length", "content_filter", "whatever"}).Draw(t, "finish")
		}
		return a
	})
	rapid.Check(t, func(rt *rapid.T) {
		script, asked = rapid.SliceOfN(answer, 0, 5).Draw(rt, "script"), 0
		r.id = r.create()
		r.reopen()
		for round := 0; r.Due(); round++ {
			if round > 5+len(script) {
				rt.Fatal("it comes to no end")
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			it.left = 0 // never
			if round < 5 {
				it.left = rapid.IntRange(0, 30).Draw(rt, "step")
			}
			kill := rapid.IntRange(0, 3).Draw(rt, "how") == 0
			it.stop = func() { cancel(centurion.ErrShutdown) }
			if kill {
				it.stop = func() { panic("killed") } // in a tool it is only the tool that crashes
			}
			err := guard.Call("turn", func() error { _, err := r.Turn(ctx); return err })
			cancel(nil)
			if err != nil && centurion.KindOf(err) == centurion.KindInvalidRequest {
				rt.Fatal(err)
			}
			if centurion.KindOf(err) == centurion.KindCrashed || rapid.Bool().Draw(rt, "reopen") {
				r.reopen()
			}
			history := session.History(r.messages())
			cut := r.last().Finish == centurion.FinishLength // the next turn begins by asking for the rest
			if fault := valid(history); r.Due() && !cut && fault != "" {
				rt.Fatalf("after %v: %s in %+v", err, fault, history)
			}
			if round < 5 && rapid.IntRange(0, 3).Draw(rt, "say") == 0 {
				r.say("Go on.")
			}
		}
		for _, v := range r.model.Violations() {
			rt.Fatalf("request %d: %s", v.Number, v.Message)
		}
	})
}

// tripped is a model whose connection breaks at the moment in which its turn is stopped.
type tripped struct{ stop func() }

func (m tripped) Stream(context.Context, provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		if yield(provider.Delta{Type: provider.Text, Text: "half"}, nil) {
			m.stop()
			yield(provider.Delta{}, &centurion.Error{Kind: centurion.KindNetwork, Msg: "the connection broke"})
		}
	}
}

// LOOP-42: who stops a turn is why it ended, whatever else breaks by that.
func TestStopIsTheReason(t *testing.T) {
	r := newRig(t, inOrder())
	for range 20 { // which of the two is seen first is open
		ctx, cancel := context.WithCancelCause(t.Context())
		r.cfg.Model = tripped{func() { cancel(centurion.ErrCancelled) }}
		r.reopen()
		r.say("go on")
		if _, err := r.Turn(ctx); centurion.KindOf(err) != centurion.KindCancelled {
			t.Errorf("it ended with %v", err)
		}
		if got := r.last().Finish; got != centurion.FinishCancelled {
			t.Errorf("the answer is stored as %s", got)
		}
	}
}
