package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/provider"
	"centurion/provider/scripted"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
)

// LOOP-6, LOOP-7, LOOP-13, LOOP-15, LOOP-17, LOOP-18, LOOP-21, LOOP-22, LOOP-23, LOOP-25, LOOP-26, LOOP-27, LOOP-28, LOOP-29, LOOP-30,
// LOOP-31, LOOP-34, LOOP-36, LOOP-37, LOOP-41
func TestTurn(t *testing.T) {
	r := newRig(t, inOrder(
		scripted.Answer{Reasoning: "Two files.", Say: "I look at both.", Calls: []scripted.Call{
			{ID: "a", Name: "look", Arguments: `{"path":"x.go"}`}, {ID: "b", Name: "look", Arguments: `{"path":"y.go"}`}},
			Usage: &scripted.Usage{Input: 1000, Cached: 400, Output: 50, Reasoning: 20}},
		scripted.Answer{Say: "Both are fine.", Usage: &scripted.Usage{Input: 2000, Cached: 1000, Output: 10}},
	), tool{name: "look", effect: readOnly, run: func(_ context.Context, _ *tools.Call, in json.RawMessage) (tools.Result, error) {
		p := argument(in, "path")
		return tools.Result{Output: "content of " + p, Title: p, Metadata: map[string]any{"lines": 1.0}, Files: []string{p, "z.go"}}, nil
	}})
	out := r.turn()
	want := session.Outcome{Text: "Both are fine.", Finish: centurion.FinishStop, Files: []string{"x.go", "y.go", "z.go"}, Steps: 2}
	if !reflect.DeepEqual(out, want) {
		t.Errorf("outcome %+v, want %+v", out, want)
	}

	msgs := r.messages()
	if len(msgs) != 3 {
		t.Fatalf("%d messages are stored", len(msgs))
	}
	first := msgs[1]
	var shape []string
	for _, p := range first.Parts {
		shape = append(shape, string(p.Type)+" "+p.Text+p.Reason)
		if (p.Type == centurion.PartText || p.Type == centurion.PartReasoning) && (p.Time.Start == 0 || p.Time.End == 0) {
			t.Errorf("part %s has no beginning or no end", p.Type)
		}
	}
	if got, want := strings.Join(shape, "|"), "step-start |reasoning Two files.|text I look at both.|tool |tool |step-finish tool-calls"; got != want {
		t.Errorf("parts are %s, want %s", got, want)
	}
	if first.ParentID != msgs[0].ID || first.Time.Created == 0 || first.Time.Completed < first.Time.Created || first.Model != ref || first.Finish != centurion.FinishToolCalls {
		t.Errorf("the answer is stored as %+v", first)
	}
	for i, id := range []string{"a", "b"} {
		p := calls(first)[i]
		if p.CallID != id || p.State.Status != centurion.ToolCompleted || p.State.Title == "" || p.State.Metadata["lines"] != 1.0 || p.State.Time.Start == 0 || p.State.Time.End == 0 {
			t.Errorf("call %d is stored as %+v %+v", i, p, p.State)
		}
	}
	if want := []string{"look: content of x.go", "look: content of y.go"}; !slices.Equal(outcomes(first), want) {
		t.Errorf("results %q, want %q", outcomes(first), want)
	}

	for _, q := range r.model.Requests() {
		if !slices.Equal(q.Tools(), []string{"look"}) {
			t.Errorf("request %d offers the tools %q", q.Turn, q.Tools())
		}
	}
	asked := r.model.Requests()[1].Messages()
	var roles []string
	for _, m := range asked {
		roles = append(roles, m.Role+":"+m.CallID)
	}
	if got, want := strings.Join(roles, " "), "system: user: assistant: tool:a tool:b"; got != want {
		t.Errorf("the second request holds %s, want %s", got, want)
	}
	if asked[1].Text != goal || asked[2].Text != "I look at both." || asked[2].Calls[1].Arguments != `{"path":"y.go"}` || asked[4].Text != "content of y.go" {
		t.Errorf("the second request holds %+v", asked)
	}

	var types []string
	for _, e := range r.events() {
		types = append(types, string(e.Type))
	}
	if got, want := strings.Join(types, " "), "session.created message.created message.created message.updated tool.started tool.started "+
		"tool.completed tool.completed message.created message.updated session.idle"; got != want {
		t.Errorf("facts are\n%s, want\n%s", got, want)
	}
	if r.Due() {
		t.Error("there is something to answer after the turn")
	}
}

// LOOP-20: what surrounds the session is asked before each request, and may add to the history or refuse the request.
func TestBefore(t *testing.T) {
	r := newRig(t, inOrder(call("noop"), call("noop")), tool{name: "noop"})
	n := 0
	r.host.before = func() (arrived []centurion.Message, err error) {
		switch n++; n {
		case 2:
			rec := r.Record()
			err = r.store.Update(t.Context(), func(tx *store.Tx) error {
				m, err := session.Say(tx, &rec, centurion.OriginHost, "T1 is done.")
				arrived = []centurion.Message{m}
				return err
			})
		case 3:
			return nil, centurion.ErrBudget
		}
		return arrived, err
	}
	out := r.fails(centurion.KindBudget)
	if out.Steps != 2 || len(r.model.Requests()) != 2 {
		t.Errorf("%d steps, %d requests, want 2 of each", out.Steps, len(r.model.Requests()))
	}
	if got := r.model.Requests()[1].Last(); got != "T1 is done." {
		t.Errorf("the second request ends with %q", got)
	}
	n = 3
	if r.turn(); r.last().Text() != "done" {
		t.Error("the turn did not go on after the budget was raised")
	}
}

// LOOP-17, LOOP-20: what arrives before a request counts when it is decided whether the request still fits.
func TestArrivedCounts(t *testing.T) {
	model := &answerer{main: func(provider.Request) (provider.Delta, error) {
		return provider.Delta{Tokens: centurion.Tokens{Input: 70_000, Output: 10}}, nil
	}}
	r := rigOf(t, model, func(p *past) error {
		return errors.Join(rounds(20, 6000)(p), p.answer("so far", centurion.FinishStop), p.user(centurion.OriginPerson, "and now?"))
	})
	r.turn()
	r.cfg.Window = 100_000
	r.reopen()
	r.say("go on")
	for _, long := range []bool{false, true} {
		r.host.before = func() (arrived []centurion.Message, err error) {
			if !long {
				return nil, nil
			}
			long = false
			rec := r.Record()
			err = r.store.Update(t.Context(), func(tx *store.Tx) error {
				m, err := session.Say(tx, &rec, centurion.OriginHost, strings.Repeat("T1 is done. ", 3000))
				arrived = []centurion.Message{m}
				return err
			})
			return arrived, err
		}
		want := len(r.compactions())
		if long {
			want++
		}
		r.turn()
		if got := len(r.compactions()); got != want {
			t.Errorf("%d compactions, want %d", got, want)
		}
	}
}

func TestStepsAreBounded(t *testing.T) {
	r := newRig(t, func(scripted.Request) scripted.Answer { return call("noop") }, tool{name: "noop"})
	r.cfg.MaxSteps = 3
	r.reopen()
	if out := r.fails(centurion.KindTimeout); out.Steps != 3 || len(r.model.Requests()) != 3 {
		t.Errorf("%d steps, %d requests", out.Steps, len(r.model.Requests()))
	}
	if want := []string{"noop: !Not run: this was the last request of the turn."}; !slices.Equal(outcomes(r.last()), want) {
		t.Errorf("the call of the last request: %q", outcomes(r.last()))
	}
	if n := len(r.events(centurion.EventToolCompleted)); n != 3 {
		t.Errorf("%d ends of calls were told, want one of each request", n)
	}
}

// Where nothing else is configured a turn may make 200 requests.
func TestStepsAreBoundedByDefault(t *testing.T) {
	r := newRig(t, func(q scripted.Request) scripted.Answer { return call(fmt.Sprintf(`noop {"n":%d}`, q.Turn)) }, tool{name: "noop"})
	if out := r.fails(centurion.KindTimeout); out.Steps != 200 || len(r.model.Requests()) != 200 {
		t.Errorf("%d steps, %d requests", out.Steps, len(r.model.Requests()))
	}
}

// IKI-38: before the last request that a turn may make the model is told, so that it ends with an answer.
func TestLastStepIsForTheAnswer(t *testing.T) {
	r := newRig(t, func(q scripted.Request) scripted.Answer {
		if strings.Contains(q.Last(), "last request of your turn") {
			return scripted.Answer{Say: "half of it is done"}
		}
		return call("noop")
	}, tool{name: "noop"})
	r.cfg.MaxSteps = 3
	r.reopen()
	if out := r.turn(); out.Steps != 3 || out.Text != "half of it is done" {
		t.Errorf("outcome %+v", out)
	}
}

func TestEndTurn(t *testing.T) {
	r := newRig(t, inOrder(call("finish", "noop")), tool{name: "noop"},
		tool{name: "finish", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
			return tools.Result{Output: "bye", EndTurn: true}, nil
		}})
	out := r.turn()
	if out.Steps != 1 || out.Finish != centurion.FinishToolCalls || len(r.model.Requests()) != 1 {
		t.Errorf("outcome %+v after %d requests", out, len(r.model.Requests()))
	}
	if want := []string{"finish: bye", "noop: noop"}; !slices.Equal(outcomes(r.last()), want) {
		t.Errorf("results %q", outcomes(r.last()))
	}
	r.say("Not yet.")
	r.turn()
}

func TestConsume(t *testing.T) {
	r := newRig(t, inOrder(call("get", "get"), call("none")), tool{name: "none"}, tool{name: "get", run: func(_ context.Context, c *tools.Call, _ json.RawMessage) (tools.Result, error) {
		return tools.Result{Output: "r", Consumes: []string{"task of " + c.ID}, Files: []string{"a.txt"}}, nil
	}})
	var changed []string
	r.cfg.Changed = func(_ *store.Tx, files []string) error {
		if len(files) == 0 {
			t.Error("calls that changed nothing are told as changes")
		}
		changed = append(changed, files...)
		return nil
	}
	r.reopen()
	r.turn()
	m := r.messages()[1]
	if !slices.Equal(slices.Compact(changed), []string{"a.txt"}) {
		t.Errorf("changed: %q", changed)
	}
	if got := r.host.consumed[m.ID]; len(r.host.consumed) != 1 || !slices.Equal(got, []string{"task of " + calls(m)[0].CallID, "task of " + calls(m)[1].CallID}) {
		t.Errorf("consumed: %v", r.host.consumed)
	}
}

// An answer that hit the output limit is continued, three times at most.
func TestLength(t *testing.T) {
	r := newRig(t, inOrder(scripted.Answer{Say: "one ", Finish: "length"}, scripted.Answer{Say: "two", Finish: "length"}, scripted.Answer{Say: "three"}))
	if out := r.turn(); out.Text != "three" || out.Steps != 3 {
		t.Errorf("outcome %+v", out)
	}
	msgs := r.messages()
	if len(msgs) != 6 || msgs[2].Role != centurion.RoleUser || msgs[2].Origin != centurion.OriginHost || !msgs[2].Parts[0].Synthetic || msgs[0].Parts[0].Synthetic || !strings.Contains(msgs[2].Text(), "Continue exactly where it stopped") {
		t.Errorf("the history is %+v", msgs)
	}

	endless := newRig(t, func(scripted.Request) scripted.Answer { return scripted.Answer{Say: "more", Finish: "length"} })
	isCutOff(endless)
	endless.reopen() // resumed without a word of anybody: it goes on where it stopped
	if !endless.Due() {
		t.Error("a cut answer is taken for an end")
	}
	isCutOff(endless)
	if last := endless.model.Requests()[4].Last(); !strings.Contains(last, "Continue exactly where it stopped") {
		t.Errorf("resumed, the model reads %q", last)
	}
}

// isCutOff asserts that a turn in which every answer is cut off ends as one without headway, after 4 requests.
func isCutOff(r *rig) {
	r.t.Helper()
	out, err := r.Turn(r.t.Context())
	if stuck, ok := errors.AsType[*session.StuckError](err); !ok || stuck.Times != 4 || out.Steps != 4 || !strings.Contains(err.Error(), "output limit 4 times in a row") {
		r.t.Errorf("the turn ended with %v after %d steps", err, out.Steps)
	}
}

// An answer that was cut at the output limit runs none of its calls, because the last of them may be half of what was
// meant, and a model that never gets further is not asked for ever.
func TestLengthWithCalls(t *testing.T) {
	ran := 0
	noop := tool{name: "noop", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
		ran++
		return tools.Result{Output: "ran"}, nil
	}}
	cut := scripted.Answer{Calls: []scripted.Call{{Name: "noop", Arguments: `{"a":1}`}, {Name: "noop", Arguments: `{"path":"x","con`}}, Finish: "length"}
	r := newRig(t, inOrder(cut), noop)
	if out := r.turn(); out.Text != "done" || ran != 0 {
		t.Errorf("outcome %+v, %d tools ran", out, ran)
	}
	for _, o := range outcomes(r.messages()[1]) {
		if o != "noop: !Not run: the answer was cut off (length) before it was complete. Call it again, with less input if it was long." {
			t.Error(o)
		}
	}
	if n := len(r.events(centurion.EventToolCompleted)); n != 2 {
		t.Errorf("%d facts about the end of 2 calls", n)
	}
	if n := len(r.events(centurion.EventToolStarted)); n != 0 {
		t.Errorf("%d calls were told as started", n)
	}

	endless := newRig(t, func(scripted.Request) scripted.Answer { return cut }, noop)
	if isCutOff(endless); ran != 0 {
		t.Errorf("%d tools ran", ran)
	}
}

func TestNoAnswer(t *testing.T) {
	r := newRig(t, inOrder(scripted.Answer{}, scripted.Answer{Reasoning: "Hm."}))
	for range 2 {
		r.fails(centurion.KindNoAnswer)
		if m := r.last(); m.Finish != centurion.FinishError || m.Error == nil || !r.Due() {
			t.Errorf("stored as %+v", m)
		}
	}
	r.turn()
	if n := len(r.model.Requests()[2].Messages()); n != 2 {
		t.Errorf("%d messages in the request after two empty answers, want 2", n)
	}
}

// LOOP-32, IKI-35
func TestProviderErrors(t *testing.T) {
	tests := []struct {
		name   string
		answer scripted.Answer
		kind   centurion.Kind
		stored string
	}{
		{"overloaded", scripted.Answer{Error: &scripted.Error{Status: 500, Message: "oops"}}, centurion.KindOverloaded, "APIError"},
		{"key", scripted.Answer{Error: &scripted.Error{Status: 401, Message: "no"}}, centurion.KindAuth, "ProviderAuthError"},
		{"overflow", scripted.Answer{Error: &scripted.Error{Status: 400, Code: "context_length_exceeded"}}, centurion.KindOverflow, "ContextOverflowError"},
		{"in the stream", scripted.Answer{Say: "Well, I think", Error: &scripted.Error{Status: 500, Stream: true, Message: "oops"}}, centurion.KindOverloaded, "UnknownError"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, inOrder(tt.answer))
			r.fails(tt.kind)
			m := r.last()
			if m.Finish != centurion.FinishError || m.Error == nil || m.Error.Name != tt.stored || m.Time.Completed == 0 {
				t.Errorf("stored as %+v, %+v", m, m.Error)
			}
			if tell := r.events(centurion.EventSessionError); len(tell) != 1 || !strings.Contains(string(tell[0].Data), string(tt.kind)) {
				t.Errorf("facts: %+v", tell)
			}
			if out := r.turn(); out.Text != "done" {
				t.Errorf("then %+v", out)
			}
		})
	}
}

// A wait for the provider is told while it lasts, and its end before anything of the answer is acted upon.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, inOrder(scripted.Answer{Error: &scripted.Error{Status: 429, RetryAfter: 7 * time.Second, Message: "slow down"}}))
		r.turn()
		var told []string
		for _, w := range r.host.waits {
			if w == nil {
				told = append(told, "on")
				continue
			}
			told = append(told, w.Reason)
		}
		if !slices.Equal(told, []string{"rate limit", "on"}) {
			t.Errorf("told: %q", told)
		}
		if e := r.events(centurion.EventProviderRetry); len(e) != 1 || !strings.Contains(string(e[0].Data), "slow down") {
			t.Errorf("facts: %+v", e)
		}
	})
}

// Every request of a session begins with the same system prompt and the same tools, also after a restart; the scripted
// model refuses any other. What changes all the time stands in a message of its own at the very end and nowhere else.
func TestStatusStandsInNewestMessage(t *testing.T) {
	now := ""
	r := newRig(t, inOrder(call("noop"), call("noop"), scripted.Answer{Say: "ok"}), tool{name: "noop"})
	r.host.status = func() string { now += "x"; return "state " + now + "." }
	r.turn()
	r.reopen()
	r.say("And now?")
	r.turn()
	reqs := r.model.Requests()
	for i, q := range reqs {
		for k, m := range q.Messages() {
			has, newest := strings.Contains(m.Text, "<status>"), k == len(q.Messages())-1
			if has != newest || newest && (m.Role != "user" || !strings.HasPrefix(m.Text, "<status>") || strings.Count(m.Text, "<status>") != 1 || !strings.Contains(m.Text, "state "+strings.Repeat("x", i+1)+".")) {
				t.Errorf("request %d, message %d of %d: %s %q", i, k, len(q.Messages()), m.Role, m.Text)
			}
		}
	}
	for _, m := range r.messages() {
		for _, p := range m.Parts {
			if text := p.Text; strings.Contains(text, "status") {
				t.Errorf("stored: %q", text)
			}
		}
	}
	if last := reqs[len(reqs)-1]; last.System() != system || !slices.Equal(last.Tools(), []string{"noop"}) {
		t.Errorf("system %q, tools %q", last.System(), last.Tools())
	}
}

// Consecutive requests share nearly all of their bytes, so that a provider's cache holds them.
func TestRequestsShareTheirBeginning(t *testing.T) {
	const rounds = 30
	n := 0
	r := newRig(t, func(q scripted.Request) scripted.Answer {
		if q.Turn > rounds {
			return scripted.Answer{Say: "done"}
		}
		return scripted.Answer{Reasoning: "Next.", Say: "I look at the next file.", Calls: call(fmt.Sprintf(`look {"path":"a.go","offset":%d}`, q.Turn), `look {"path":"b.go"}`).Calls}
	}, tool{name: "look", effect: readOnly, run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
		return tools.Result{Output: strings.Repeat("func f() { return }\n", 40), Metadata: map[string]any{"n": 1}}, nil
	}})
	r.host.status = func() string { n++; return strings.Repeat("running: T1 T2\n", n%7) + "x" }
	r.turn()
	shared, whole := 0, 0
	for i, q := range r.model.Requests()[1:] {
		// All of the earlier list but its status and the closing bracket has to be there again, whatever its share.
		if rest := q.Before - q.Prefix; rest > 300 {
			t.Errorf("request %d parts from the one before %d bytes before its end", i+2, rest)
		}
		shared, whole = shared+q.Prefix, whole+q.Before
	}
	if share := float64(shared) / float64(whole); share < 0.95 {
		t.Errorf("%.1f %% of the bytes are shared, want 95", 100*share)
	}
}

// The history does not depend on whether it was kept in memory or read from the store.
func TestHistorySurvivesReopening(t *testing.T) {
	answers := []scripted.Answer{
		call(`noop {"a": 1, "b":"ü <&> \u2028 \\u003c \\\\u003c `+"\u2029"+`"}`, "fail", "missing", `noop [1]`),
		{Say: "Half", Cut: scripted.CutHalf},
		{Say: "cut", Finish: "length"},
		{Say: "end"},
	}
	prompts := func(reopen bool) (out [][]scripted.Message) {
		r := newRig(t, inOrder(answers...), tool{name: "noop"}, tool{name: "fail", run: fail})
		for range 3 {
			_, _ = r.Turn(t.Context())
			if reopen {
				r.reopen()
			}
			if !r.Due() {
				r.say("Next.")
			}
		}
		for _, q := range r.model.Requests() {
			out = append(out, q.Messages())
		}
		return out
	}
	kept, read := prompts(false), prompts(true)
	if len(kept) != 5 || !reflect.DeepEqual(kept, read) {
		t.Errorf("kept in memory:\n%+v\nread again:\n%+v", kept, read)
	}
}

func fail(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
	return tools.Result{}, &centurion.Error{Op: "fail", Kind: centurion.KindUsage, Msg: "it does not work", Hint: "try another way"}
}

var _ session.Model = (*provider.Client)(nil)

// Results of which the files cannot be noted are not stored without them.
func TestChangesAreNotedWithTheResults(t *testing.T) {
	r := newRig(t, inOrder(call("get")), tool{name: "get", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
		return tools.Result{Output: "r", Files: []string{"a.txt"}}, nil
	}})
	full := errors.New("no space for it")
	r.cfg.Changed = func(*store.Tx, []string) error { return full }
	r.reopen()
	if _, err := r.Turn(t.Context()); !errors.Is(err, full) {
		t.Errorf("the turn ends with %v", err)
	}
	for _, p := range calls(r.messages()[1]) {
		if p.State.Ended() {
			t.Errorf("its call is stored as %s", p.State.Status)
		}
	}
}
