package tools

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
)

// person answers whatever is asked.
type person struct {
	asked []Question
	err   error
}

func (p *person) AskPerson(_ context.Context, _ *Call, q Question) (Answer, error) {
	p.asked = append(p.asked, q)
	return Answer{Text: "the second", By: "person"}, p.err
}

// SUB-33: a question goes to the person where there is a way to one, and its answer is the result, word for word; where there
// is none the model is told so at once.
func TestAskUser(t *testing.T) {
	ask, err := Named("ask_user")
	if err != nil {
		t.Fatal(err)
	}
	run := func(p *person, in string) (Result, error) {
		b := newBench(t)
		if p != nil {
			b.Asker = p
		}
		return ask[0].Run(t.Context(), b.Call, json.RawMessage(in))
	}
	p := &person{}
	r, err := run(p, `{"question": " Which? ", "choices": ["a  one", "b"]}`)
	if err != nil || r.Output != "the second" || r.Metadata["by"] != "person" || len(p.asked) != 1 || p.asked[0].Text != "Which?" ||
		strings.Join(p.asked[0].Choices, "|") != "a one|b" {
		t.Errorf("asked %+v, got %+v, %v", p.asked, r, err)
	}
	if r, err := run(nil, `{"question": "Which?"}`); err != nil || r.Output != event.NobodyThere || r.Metadata["by"] != "policy" {
		t.Errorf("with nobody to ask: %+v, %v", r, err)
	}
	if _, err := run(&person{err: centurion.ErrCancelled}, `{"question": "Which?"}`); centurion.KindOf(err) != centurion.KindCancelled {
		t.Errorf("who is stopped: %v", err)
	}
	for in, what := range map[string]string{`{"question": "  "}`: "empty", `{"question": "x", "choices": ["a", " a "]}`: "twice", `{"question": "x", "choices": [" "]}`: "empty"} {
		p := &person{}
		if _, err := run(p, in); centurion.KindOf(err) != centurion.KindUsage || !strings.Contains(err.Error(), what) || len(p.asked) > 0 {
			t.Errorf("%s: %v, asked %v", in, err, p.asked)
		}
	}
	for _, in := range []string{`{"question": ""}`, `{}`, `{"question": "x", "choices": ["1","2","3","4","5","6","7","8","9","10","11"]}`,
		`{"question": "x", "choices": [""]}`, `{"question": "` + strings.Repeat("x", MaxQuestion+1) + `"}`} {
		if Check(ask[0], json.RawMessage(in)) == nil {
			t.Errorf("%.60s is accepted", in)
		}
	}
	if e := ask[0].Effect(json.RawMessage(`{"question": "x"}`)); !e.Once || !e.Hosted || e.ReadOnly || e.Alike == "" {
		t.Errorf("its effect is %+v", e)
	}
}
