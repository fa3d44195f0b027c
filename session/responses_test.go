package session_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"centurion"
	"centurion/provider"
	"centurion/provider/scripted"
	"centurion/tools"
)

// itemRig is a session whose model is asked over /responses. What the scripted model there refuses as a strict provider
// would, among it reasoning that is not its own or has lost its place, ends the test with a fault.
func itemRig(t *testing.T, model centurion.ModelRef, script func(scripted.Request) scripted.Answer) *rig {
	t.Helper()
	look := tool{name: "look", effect: readOnly, run: func(_ context.Context, _ *tools.Call, in json.RawMessage) (tools.Result, error) {
		return tools.Result{Output: "content of " + argument(in, "path")}, nil
	}}
	r := newRig(t, script, look)
	r.asks(model)
	return r
}

// asks makes another model the session's.
func (r *rig) asks(model centurion.ModelRef) {
	r.cfg.Ref = model
	r.cfg.Model = provider.New(provider.Endpoint{Model: model, BaseURL: scripted.URL, HTTP: r.model.Client(), Wire: provider.Responses{}})
	r.reopen()
}

// A conversation over /responses: text, reasoning and calls are stored as over chat completions, and what was thought goes
// back unchanged, also after a restart, but to no other model.
func TestTurnOverResponses(t *testing.T) {
	look := func(id string) []scripted.Call {
		return []scripted.Call{{ID: id, Name: "look", Arguments: `{"path":"x.go"}`}}
	}
	first := centurion.ModelRef{Provider: "test", ID: "gpt-5"}
	r := itemRig(t, first, inOrder(
		scripted.Answer{Reasoning: "One file.", Say: "I look.", Calls: look("a"), Usage: &scripted.Usage{Input: 1000, Cached: 400, Output: 50, Reasoning: 20}},
		scripted.Answer{Reasoning: "Once more.", Calls: look("b")},
		scripted.Answer{Say: "Fine."},
		scripted.Answer{Say: "Still fine."},
		scripted.Answer{Say: "I agree."},
	))
	if out := r.turn(); out.Text != "Fine." || out.Steps != 3 {
		t.Errorf("the turn ended with %+v", out)
	}
	msgs := r.messages()
	var thought centurion.Part
	for _, p := range msgs[1].Parts {
		if p.Type == centurion.PartReasoning {
			thought = p
		}
	}
	meta, _ := json.Marshal(thought.Metadata)
	if thought.Text != "One file." || string(meta) != `{"openai":{"itemId":"rs_1","reasoningEncryptedContent":"sealed by gpt-5: 1"}}` {
		t.Errorf("the thought is stored as %q with %s", thought.Text, meta)
	}
	if u := msgs[1].Usage.Tokens; u.Input != 600 || u.Cache.Read != 400 || u.Output != 30 || u.Reasoning != 20 {
		t.Errorf("usage %+v", u)
	}
	again := func(text string) {
		t.Helper()
		if err := r.Say(t.Context(), centurion.OriginPerson, text); err != nil {
			t.Fatal(err)
		}
		r.turn()
	}
	r.reopen()
	again("Sure?")
	r.asks(centurion.ModelRef{Provider: "test", ID: "gpt-5-mini"})
	again("And you?")

	thoughts := func(n int) string {
		var all []string
		for _, m := range r.model.Requests()[n].Messages() {
			if m.Reasoning != "" {
				all = append(all, m.Reasoning)
			}
		}
		return strings.Join(all, " ")
	}
	for n, want := range []string{"", "One file.", "One file. Once more.", "One file. Once more.", ""} {
		if got := thoughts(n); got != want {
			t.Errorf("request %d brings the thoughts %q, want %q", n+1, got, want)
		}
	}
	if q := r.model.Requests()[3]; q.Prefix < q.Before-1 {
		t.Errorf("after a restart %d of %d bytes are those of the request before", q.Prefix, q.Before)
	}
}

// Whatever an answer over /responses breaks off at, nothing of it is run, and the history that follows is valid.
func TestCutOverResponses(t *testing.T) {
	for _, broken := range []scripted.Cut{scripted.CutHalf, scripted.CutLate, scripted.CutReset} {
		r := itemRig(t, ref, inOrder(
			scripted.Answer{Reasoning: "Hm.", Say: "I look.", Calls: []scripted.Call{{Name: "look", Arguments: `{"path":"x.go"}`}}, Cut: broken},
			scripted.Answer{Say: "Fine."},
		))
		r.fails(centurion.KindStreamCut)
		for _, p := range calls(r.messages()[1]) {
			if p.State.Status != centurion.ToolError {
				t.Errorf("cut %s: the call is %s", broken, p.State.Status)
			}
		}
		if out := r.turn(); out.Text != "Fine." {
			t.Errorf("cut %s: then %+v", broken, out)
		}
	}
}
