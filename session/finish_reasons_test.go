package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/provider"
	"centurion/provider/anthropic"
	"centurion/provider/scripted"
	"centurion/tools"
)

// wires are the APIs that a model can be asked by, by name.
var wires = map[string]provider.Wire{"chat": nil, "responses": provider.Responses{}, "messages": anthropic.Wire{}}

// over lets the rig's session ask by an API.
func (r *rig) over(api string) *rig {
	r.t.Helper()
	r.cfg.Model = provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: r.model.Client(), Wire: wires[api], MaxRetries: -1})
	r.reopen()
	return r
}

// Every reason for which an answer can end, over every API, with and without calls in it: what is stored, what runs, and what
// is asked next. Only calls of an answer that ended for them run; an answer cut at its limit is gone on from; a reason that nobody
// knows ends the turn as it is; what broke, or what a content filter ended, is asked again without a trace of it.
//
// C-12, LOOP-22, LOOP-23, LOOP-31, LOOP-32, LOOP-34, LOOP-76, OPAL-26, OPAL-27, IKI-36
func TestFinishReasons(t *testing.T) {
	calls := call(`noop {"path":"a"}`, `noop {"path":"b"}`).Calls
	tests := []struct {
		name   string
		answer scripted.Answer
		kind   centurion.Kind // of the error that the turn ends with
		stored string         // the finish reason of the first answer
		steps  int            // of the turn
		ran    int
		result string // how the results begin that the next request brings
		next   string // in the newest message of the next request, if there is one in that turn
	}{
		{name: "stop", answer: scripted.Answer{Say: "Hi."}, stored: centurion.FinishStop, steps: 1},
		{name: "tool calls", answer: scripted.Answer{Say: "Hi.", Calls: calls}, stored: centurion.FinishToolCalls, steps: 2, ran: 2, result: "noop"},
		{name: "stop, with calls", answer: scripted.Answer{Calls: calls, Finish: "stop"}, stored: centurion.FinishToolCalls, steps: 2, ran: 2, result: "noop"},
		{name: "length", answer: scripted.Answer{Say: "Hi", Finish: "length"}, stored: centurion.FinishLength, steps: 2, next: "Continue exactly where it stopped"},
		{name: "length, with calls", answer: scripted.Answer{Say: "Hi", Calls: calls, Finish: "length"}, stored: centurion.FinishLength, steps: 2,
			result: "Not run: the answer was cut off (length) before it was complete."},
		{name: "refusal", answer: scripted.Answer{Say: "I will not.", Finish: "content_filter"}, kind: centurion.KindRefusal, stored: centurion.FinishError, steps: 1},
		{name: "refusal, with calls", answer: scripted.Answer{Say: "I", Calls: calls, Finish: "content_filter"}, kind: centurion.KindRefusal, stored: centurion.FinishError, steps: 1},
		{name: "unknown, empty", answer: scripted.Answer{Say: " ", Finish: "whim"}, kind: centurion.KindNoAnswer, stored: centurion.FinishError, steps: 1},
		{name: "unknown", answer: scripted.Answer{Say: "Hi.", Finish: "whim"}, stored: centurion.FinishUnknown, steps: 1},
		{name: "unknown, with calls", answer: scripted.Answer{Say: "Hi.", Calls: calls, Finish: "whim"}, stored: centurion.FinishUnknown, steps: 2,
			result: "Not run: the answer was cut off (unknown) before it was complete."},
		{name: "error", answer: scripted.Answer{Say: "Hi, you.", Calls: calls, Error: &scripted.Error{Status: 500, Stream: true, Message: "oops"}},
			kind: centurion.KindOverloaded, stored: centurion.FinishError, steps: 1},
		{name: "no reason", answer: scripted.Answer{Say: "Hi, you.", Calls: calls, Cut: scripted.CutLate}, kind: centurion.KindStreamCut, stored: centurion.FinishError, steps: 1},
		{name: "half", answer: scripted.Answer{Say: "Hi, you.", Calls: calls, Cut: scripted.CutHalf}, kind: centurion.KindStreamCut, stored: centurion.FinishError, steps: 1},
		{name: "reset", answer: scripted.Answer{Say: "Hi, you.", Calls: calls, Cut: scripted.CutReset}, kind: centurion.KindStreamCut, stored: centurion.FinishError, steps: 1},
	}
	for api := range wires {
		for _, tt := range tests {
			t.Run(api+" "+tt.name, func(t *testing.T) {
				ran := 0
				r := newRig(t, inOrder(tt.answer), tool{name: "noop", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
					ran++
					return tools.Result{Output: "noop"}, nil
				}}).over(api)
				out, err := r.Turn(t.Context())
				if centurion.KindOf(err) != tt.kind || out.Steps != tt.steps || ran != tt.ran {
					t.Errorf("the turn ended with %v after %d steps and %d calls, want %q, %d, %d", err, out.Steps, ran, tt.kind, tt.steps, tt.ran)
				}
				if m := r.messages()[1]; m.Finish != tt.stored || m.Time.Completed == 0 || (m.Error != nil) != (tt.kind != "") {
					t.Errorf("the answer is stored with the finish reason %q, error %v", m.Finish, m.Error)
				}
				if tt.steps == 1 && r.Due() != (tt.kind != "") {
					t.Errorf("that the model has something to answer is %v", r.Due())
				}
				if tt.steps == 2 && out.Text != "done" {
					t.Errorf("the turn ended with %q", out.Text)
				}
				r.reopen()
				if !r.Due() {
					r.say("Go on.")
				}
				r.turn()
				second := r.model.Requests()[1]
				results := second.Results()
				if asked := second.Messages()[min(2, len(second.Messages())-1)].Calls; len(results) != len(asked) || (len(results) > 0) != (tt.result != "") {
					t.Errorf("the next request brings the results %q of the calls %+v", results, asked)
				}
				for _, text := range results {
					if !strings.HasPrefix(text, tt.result) {
						t.Errorf("a result is told as %q, want %q", text, tt.result)
					}
				}
				if !strings.Contains(second.Last(), tt.next) {
					t.Errorf("the next request ends with %q, want %q in it", second.Last(), tt.next)
				}
				if tt.kind != "" && len(second.Messages()) != 2 {
					t.Errorf("after what broke the model sees %+v", second.Messages())
				}
			})
		}
	}
}

// The exact texts of calls that brought nothing, as they are stored and as the provider gets them, over every API and also after a
// restart.
//
// LOOP-35, LOOP-40, LOOP-44, OPAL-59, OPAL-60, OPAL-64, OPAL-65
func TestExactTexts(t *testing.T) {
	want := []string{"Tool not found: frobnicate", "crashed: out of range", "crashed: help", "Cancelled", "Cancelled"}
	for api := range wires {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(api, " restart ", restart), func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				r := newRig(t, inOrder(call("frobnicate", "crash", "vague", "stop", "never")),
					tool{name: "crash", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) { panic("out of range") }},
					tool{name: "vague", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
						panic(fmt.Errorf("help"))
					}},
					tool{name: "stop", run: func(ctx context.Context, _ *tools.Call, _ json.RawMessage) (tools.Result, error) {
						cancel(centurion.ErrCancelled)
						return tools.Result{Output: "half"}, context.Cause(ctx)
					}},
					tool{name: "never", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
						t.Error("a call after the cancellation ran")
						return tools.Result{}, nil
					}}).over(api)
				if _, err := r.Turn(ctx); centurion.KindOf(err) != centurion.KindCancelled {
					t.Fatal(err)
				}
				for i, p := range calls(r.last()) {
					if text, bad := p.State.Result(); text != want[i] || !bad || p.State.Error != want[i] || p.State.Status != centurion.ToolError {
						t.Errorf("call %d is stored as %+v, want the error %q", i, p.State, want[i])
					}
				}
				if restart {
					r.reopen()
				}
				r.turn()
				if got := r.model.Requests()[1].Results(); strings.Join(got, "|") != strings.Join(want, "|") {
					t.Errorf("the provider gets %q, want %q", got, want)
				}
			})
		}
	}
}
