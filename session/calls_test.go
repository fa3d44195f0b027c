package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/provider/scripted"
	"centurion/store"
	"centurion/tools"
)

// timed records when its calls ran. A call sleeps for its argument "for".
type timed struct {
	mu    sync.Mutex
	spans map[string][2]time.Duration // by the argument "id"
	zero  time.Time
}

func (l *timed) tool(name string, effect func(json.RawMessage) tools.Effect) tool {
	return tool{name: name, effect: effect, run: func(_ context.Context, _ *tools.Call, in json.RawMessage) (tools.Result, error) {
		from := time.Since(l.zero)
		d, err := time.ParseDuration(argument(in, "for"))
		if err != nil {
			return tools.Result{}, err
		}
		time.Sleep(d)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.spans[argument(in, "id")] = [2]time.Duration{from, time.Since(l.zero)}
		return tools.Result{Output: argument(in, "id")}, nil
	}}
}

// Calls that cannot disturb each other run at the same time, others one after the other; results stand in the order of
// the calls whichever ended first, and the model is asked again only after the last of them.
//
// LOOP-35, LOOP-38, OPAL-26, OPAL-58, OPAL-87, OPAL-88
func TestOverlap(t *testing.T) {
	const s = time.Second
	tests := []struct {
		name  string
		calls []string
		want  [][2]time.Duration // from and to, by call
	}{
		{"three that read", []string{`read {"id":"0","for":"3s"}`, `read {"id":"1","for":"1s"}`, `read {"id":"2","for":"2s"}`},
			[][2]time.Duration{{0, 3 * s}, {0, s}, {0, 2 * s}}},
		{"one that writes is a barrier", []string{`read {"id":"0","for":"2s"}`, `write {"id":"1","for":"1s","path":"a"}`, `read {"id":"2","for":"1s"}`, `read {"id":"3","for":"1s"}`},
			[][2]time.Duration{{0, 2 * s}, {2 * s, 3 * s}, {3 * s, 4 * s}, {3 * s, 4 * s}}},
		{"two that write different files", []string{`write {"id":"0","for":"2s","path":"a"}`, `write {"id":"1","for":"1s","path":"b"}`},
			[][2]time.Duration{{0, 2 * s}, {0, s}}},
		{"two that write one file", []string{`write {"id":"0","for":"2s","path":"a"}`, `write {"id":"1","for":"1s","path":"a"}`},
			[][2]time.Duration{{0, 2 * s}, {2 * s, 3 * s}}},
		{"the first file again", []string{`write {"id":"0","for":"2s","path":"a"}`, `write {"id":"1","for":"1s","path":"b"}`, `write {"id":"2","for":"1s","path":"a"}`},
			[][2]time.Duration{{0, 2 * s}, {0, s}, {2 * s, 3 * s}}},
		{"anything could be written", []string{`any {"id":"0","for":"2s"}`, `any {"id":"1","for":"1s"}`, `write {"id":"2","for":"1s","path":"a"}`, `any {"id":"3","for":"1s"}`},
			[][2]time.Duration{{0, 2 * s}, {2 * s, 3 * s}, {3 * s, 4 * s}, {4 * s, 5 * s}}},
		{"alike", []string{`start {"id":"0","for":"2s"}`, `start {"id":"1","for":"1s"}`, `any {"id":"2","for":"1s"}`},
			[][2]time.Duration{{0, 2 * s}, {0, s}, {2 * s, 3 * s}}},
		{"what cannot run is no barrier", []string{`read {"id":"0","for":"2s"}`, `missing {}`, `any [1]`, `read {"id":"3","for":"1s"}`},
			[][2]time.Duration{{0, 2 * s}, {}, {}, {0, s}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &timed{spans: map[string][2]time.Duration{}, zero: time.Now()}
				start := l.tool("start", func(json.RawMessage) tools.Effect { return tools.Effect{Alike: "start"} })
				slow := start.run
				start.run = func(ctx context.Context, c *tools.Call, in json.RawMessage) (tools.Result, error) {
					c.Begun()
					return slow(ctx, c, in)
				}
				r := newRig(t, inOrder(call(tt.calls...)), l.tool("read", readOnly), l.tool("write", writes), l.tool("any", nil), start)
				r.turn()
				var end time.Duration
				for i, want := range tt.want {
					if got := l.spans[fmt.Sprint(i)]; got != want {
						t.Errorf("call %d ran from %v to %v, want %v to %v", i, got[0], got[1], want[0], want[1])
					}
					end = max(end, want[1])
				}
				if got := time.Since(l.zero); got != end {
					t.Errorf("the turn ended after %v, the last call after %v", got, end)
				}
				for i, p := range calls(r.messages()[1]) {
					if text, bad := p.State.Result(); !bad && text != fmt.Sprint(i) {
						t.Errorf("result %d is that of call %s", i, text)
					}
				}
				results := r.model.Requests()[1].Results()
				if len(results) != len(tt.calls) {
					t.Errorf("%d results for %d calls", len(results), len(tt.calls))
				}
				for i, text := range results {
					if tt.want[i] != [2]time.Duration{} && text != fmt.Sprint(i) {
						t.Errorf("the model sees result %d as %q", i, text)
					}
				}
			})
		})
	}
}

// Calls that are alike begin in the order in which the model wrote them.
func TestAlikeBeginInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		r := newRig(t, inOrder(call(`start {"id":"0"}`, `start {"id":"1"}`, `start {"id":"2"}`)),
			tool{name: "start", effect: func(json.RawMessage) tools.Effect { return tools.Effect{Alike: "start"} },
				run: func(_ context.Context, c *tools.Call, in json.RawMessage) (tools.Result, error) {
					id := argument(in, "id")
					time.Sleep(map[string]time.Duration{"0": 3 * time.Second, "1": 2 * time.Second}[id])
					order = append(order, id) // guarded by the order that is tested
					c.Begun()
					time.Sleep(time.Minute)
					return tools.Result{}, nil
				}})
		began := time.Now()
		r.turn()
		if !slices.Equal(order, []string{"0", "1", "2"}) || time.Since(began) != time.Minute+5*time.Second {
			t.Errorf("begun in the order %q, over after %v", order, time.Since(began))
		}
	})
}

// LOOP-30: a call whose arguments are complete is stored as running before it is started; until then it is pending, see TestEveryEvent.
func TestCallIsStoredBeforeItRuns(t *testing.T) {
	var r *rig
	var stored []string
	r = newRig(t, inOrder(call(`look {"a":1}`, "look")), tool{name: "look", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
		stored = append(stored, strings.Join(outcomes(r.last()), ", "))
		for _, p := range calls(r.last()) {
			if p.State.Status == centurion.ToolPending || p.State.Raw != "" {
				t.Errorf("while it runs it is stored as %+v", p.State)
			}
		}
		return tools.Result{Output: "x"}, nil
	}})
	r.turn()
	if want := []string{"look: (running), look: (running)", "look: x, look: (running)"}; !slices.Equal(stored, want) {
		t.Errorf("stored while they ran: %q, want %q", stored, want)
	}
	if in := string(calls(r.messages()[1])[0].State.Input); in != `{"a":1}` {
		t.Errorf("stored input %s", in)
	}
}

// LOOP-40
func TestUnknownTool(t *testing.T) {
	r := newRig(t, inOrder(call(`frobnicate {"x":1}`, "noop")), tool{name: "noop"})
	r.turn()
	if want := []string{"frobnicate: !Tool not found: frobnicate", "noop: noop"}; !slices.Equal(outcomes(r.messages()[1]), want) {
		t.Errorf("results %q, want %q", outcomes(r.messages()[1]), want)
	}
	if got := r.model.Requests()[1].Results()[0]; got != "Tool not found: frobnicate" {
		t.Errorf("the model is told %q", got)
	}
}

// LOOP-35: an error of a tool is told to the model with its hint and ends nothing.
func TestToolErrors(t *testing.T) {
	r := newRig(t, inOrder(call("fail", "plain", "wrapped")), tool{name: "fail", run: fail},
		tool{name: "plain", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
			return tools.Result{}, errors.New("out of paper")
		}},
		tool{name: "wrapped", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
			return tools.Result{Files: []string{"half.go"}}, &centurion.Error{Op: "write half.go", Msg: "after 3 bytes", Err: errors.New("disk full"), Hint: "free some space"}
		}})
	out := r.turn()
	want := []string{"fail: !it does not work. try another way", "plain: !out of paper", "wrapped: !write half.go: after 3 bytes: disk full. free some space"}
	if got := outcomes(r.messages()[1]); !slices.Equal(got, want) {
		t.Errorf("results %q, want %q", got, want)
	}
	if out.Text != "done" || !slices.Equal(out.Files, []string{"half.go"}) {
		t.Errorf("outcome %+v: a tool that failed half way has changed its file", out)
	}
}

// OPAL-59, OPAL-60, OPAL-64, OPAL-65, OPAL-73
func TestToolCrashes(t *testing.T) {
	crash := func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
		return tools.Result{Output: strings.Split("a", ",")[1]}, nil
	}
	r := newRig(t, inOrder(call("noop", `crash {"path":"a"}`, "noop", "confused", "vague")), tool{name: "noop", effect: readOnly}, tool{name: "crash", effect: readOnly, run: crash},
		tool{name: "confused", effect: func(json.RawMessage) tools.Effect { panic("no idea") }},
		tool{name: "vague", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) { panic(errors.New("help")) }})
	if out := r.turn(); out.Text != "done" || out.Steps != 2 {
		t.Errorf("outcome %+v", out)
	}
	want := []string{"noop: noop", "crash: !crashed: runtime error: index out of range [1] with length 1", "noop: noop", "confused: !crashed: no idea", "vague: !crashed: help"}
	if got := outcomes(r.messages()[1]); !slices.Equal(got, want) {
		t.Errorf("results %q, want %q", got, want)
	}
	if p := calls(r.messages()[1])[1]; string(p.State.Input) != `{"path":"a"}` || p.State.Time.End == 0 {
		t.Errorf("the crashed call is stored as %+v", p.State)
	}
}

// OPAL-37: nothing is held while a tool runs, so that one that looks at the session, or writes, gets an answer at once.
func TestToolMayReadState(t *testing.T) {
	var r *rig
	r = newRig(t, inOrder(call("look")), tool{name: "look", run: func(ctx context.Context, c *tools.Call, _ json.RawMessage) (tools.Result, error) {
		rec, err := r.store.Session(ctx, c.Session)
		if err != nil {
			return tools.Result{}, err
		}
		err = r.store.Update(ctx, func(tx *store.Tx) error {
			_, err := tx.Append(centurion.Event{Type: centurion.EventTaskUpdated, Session: c.Session})
			return err
		})
		return tools.Result{Output: rec.Agent}, err
	}})
	r.turn()
	if got := outcomes(r.messages()[1])[0]; got != "look: worker" {
		t.Error(got)
	}
}

// OPAL-38, IKI-37: each call has its own copy of its surroundings.
func TestCallIsACopy(t *testing.T) {
	var seen []string
	r := newRig(t, inOrder(call("vandal", "vandal"), call("vandal")), tool{name: "vandal", run: func(_ context.Context, c *tools.Call, _ json.RawMessage) (tools.Result, error) {
		seen = append(seen, c.Mission+" "+c.Task+" "+c.Session+" "+c.Message+" "+c.ID)
		c.Mission, c.Task, c.Session, c.Message, c.ID = "other", "other", "other", "other", "other"
		c.Progress("working")
		return tools.Result{}, nil
	}})
	r.turn()
	var want []string
	for _, m := range r.messages() {
		for _, p := range calls(m) {
			want = append(want, "msn_1 tsk_1 "+r.id+" "+m.ID+" "+p.CallID)
		}
	}
	if !slices.Equal(seen, want) || len(seen) != 3 {
		t.Errorf("the calls saw %q, want %q", seen, want)
	}
}

// Arguments that are no object are answered with what is wrong with them, and are no reason to send a history that a
// provider refuses.
func TestMalformedArguments(t *testing.T) {
	tests := []struct{ name, args, want string }{
		{"a list", `[1,2]`, "has to be an object"},
		{"a number", `7`, "has to be an object"},
		{"null", `null`, "has to be an object"},
		{"cut", `{"path": "a.go", "text": "pack`, "not valid JSON"},
		{"two objects", `{"a":1}{"b":2}`, "not valid JSON"},
		{"prose", `the file a.go`, "not valid JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ran := false
			r := newRig(t, inOrder(scripted.Answer{Calls: []scripted.Call{{Name: "noop", Arguments: tt.args}}}),
				tool{name: "noop", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
					ran = true
					return tools.Result{}, nil
				}})
			r.turn()
			p := calls(r.messages()[1])[0]
			if text, bad := p.State.Result(); !bad || !strings.Contains(text, tt.want) || ran {
				t.Errorf("the model is told %q (ran: %v), want %q in it", text, ran, tt.want)
			}
			var in map[string]string
			if err := json.Unmarshal(p.State.Input, &in); err != nil || in["raw"] != tt.args {
				t.Errorf("the history holds %s", p.State.Input)
			}
			sent := r.model.Requests()[1].Messages()[2].Calls[0].Arguments
			if err := json.Unmarshal([]byte(sent), &in); err != nil || in["raw"] != tt.args {
				t.Errorf("the model sees its arguments as %s", sent)
			}
		})
	}
}

// An object that was written as a string is what was meant.
func TestArgumentsInAString(t *testing.T) {
	r := newRig(t, inOrder(call(`echo "{\"a\":1}"`, `echo`)),
		tool{name: "echo", run: func(_ context.Context, _ *tools.Call, in json.RawMessage) (tools.Result, error) {
			return tools.Result{Output: string(in)}, nil
		}})
	r.turn()
	if want := []string{`echo: {"a":1}`, "echo: {}"}; !slices.Equal(outcomes(r.messages()[1]), want) {
		t.Errorf("results %q, want %q", outcomes(r.messages()[1]), want)
	}
}

// The arguments of parallel calls may come in turns.
func TestArgumentsInTurns(t *testing.T) {
	event := func(calls, finish string) string {
		return `data: {"choices":[{"index":0,"delta":{"tool_calls":[` + calls + `]},"finish_reason":` + finish + "}]}\n\n"
	}
	piece := func(index int, args string) string {
		return fmt.Sprintf(`{"index":%d,"function":{"arguments":%q}}`, index, args)
	}
	begin := func(index int) string {
		return fmt.Sprintf(`{"index":%d,"id":"c%d","type":"function","function":{"name":"echo","arguments":"{\"id\":"}}`, index, index)
	}
	r := newRig(t, inOrder(scripted.Answer{Raw: event(begin(0), "null") + event(begin(1), "null") + event(begin(2), "null") +
		event(piece(0, `"a`), "null") + event(piece(2, `"c"}`)+","+piece(1, `"b"}`), "null") + event(piece(0, `"}`), `"tool_calls"`)}),
		tool{name: "echo", run: func(_ context.Context, _ *tools.Call, in json.RawMessage) (tools.Result, error) {
			return tools.Result{Output: argument(in, "id")}, nil
		}})
	r.turn()
	if want := []string{"echo: a", "echo: b", "echo: c"}; !slices.Equal(outcomes(r.messages()[1]), want) {
		t.Errorf("results %q, want %q", outcomes(r.messages()[1]), want)
	}
}

// Some gateways count the calls of every answer from call_0, or give all calls of an answer one id.
func TestCallIDsRepeat(t *testing.T) {
	same := scripted.Answer{Calls: []scripted.Call{{ID: "call_0", Name: "echo", Arguments: `{"id":"a"}`}, {ID: "call_0", Name: "echo", Arguments: `{"id":"b"}`}}}
	r := newRig(t, inOrder(same, same, same), tool{name: "echo", run: func(_ context.Context, _ *tools.Call, in json.RawMessage) (tools.Result, error) {
		return tools.Result{Output: argument(in, "id")}, nil
	}})
	r.turn()
	ids := map[string]bool{}
	for _, m := range r.messages()[1:4] {
		if got := outcomes(m); !slices.Equal(got, []string{"echo: a", "echo: b"}) {
			t.Errorf("results %q", got)
		}
		within := map[string]bool{}
		for _, p := range calls(m) {
			within[p.CallID], ids[m.ID+"/"+p.CallID] = true, true
		}
		if len(within) != 2 {
			t.Errorf("the two calls of an answer share the id %v", within)
		}
	}
	if last := r.model.Requests()[3]; valid(nil) == "" || len(last.Results()) != 2 || len(ids) != 6 {
		t.Errorf("%d results, %d ids", len(last.Results()), len(ids))
	}
}

func TestResultIsBounded(t *testing.T) {
	r := newRig(t, inOrder(call("flood")), tool{name: "flood", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
		return tools.Result{Output: strings.Repeat("ü", 1<<20)}, nil
	}})
	r.turn()
	if got := r.model.Requests()[1].Results()[0]; len(got) > 101<<10 || len(got) < 99<<10 || !strings.HasSuffix(got, "ü…") {
		t.Errorf("%d bytes of output reached the model, ending in %q", len(got), got[max(0, len(got)-10):])
	}
}

// A call that had not begun when its session stopped is made later only if its answer was complete: one of a cancelled or failed answer is over.
func TestCallsOfUnacceptedAnswers(t *testing.T) {
	for finish, want := range map[string]centurion.ToolStatus{centurion.FinishCancelled: centurion.ToolError, centurion.FinishError: centurion.ToolError, "tool-calls": centurion.ToolPending} {
		r := newRig(t, inOrder(call("get")), tool{name: "get"})
		r.turn()
		m := r.messages()[1]
		m.Finish = finish
		p := calls(m)[0]
		p.State = &centurion.ToolState{Status: centurion.ToolPending, Input: p.State.Input}
		if err := r.store.Update(t.Context(), func(tx *store.Tx) error { return errors.Join(tx.PutMessage(&m), tx.PutPart(&p)) }); err != nil {
			t.Fatal(err)
		}
		r.reopen()
		if got := calls(r.messages()[1])[0].State.Status; got != want {
			t.Errorf("a call of an answer that ended by %q is %s, not %s", finish, got, want)
		}
	}
}
