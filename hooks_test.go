package centurion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

// oneHook has one hook, which answers with a text.
type oneHook struct {
	answer string
	err    error
}

func (h oneHook) Has(hook string) bool { return hook == "x" }

func (h oneHook) Hook(context.Context, string, any, json.RawMessage) (json.RawMessage, []string, error) {
	return json.RawMessage(h.answer), []string{"p"}, h.err
}

// What plugins make of an output never reaches into the value that was passed, and counts only if it is of its type.
func TestRunHook(t *testing.T) {
	type out struct{ Words map[string]string }
	given := out{map[string]string{"a": "1", "b": "2"}}
	refusal := errors.New("no")
	for name, test := range map[string]struct {
		hooks Hooks
		hook  string
		want  string
		by    string
		err   error
	}{
		"no hooks":        {nil, "x", `{"Words":{"a":"1","b":"2"}}`, "[]", nil},
		"another hook":    {oneHook{answer: `{}`}, "y", `{"Words":{"a":"1","b":"2"}}`, "[]", nil},
		"changed":         {oneHook{answer: `{"Words":{"a":"3"}}`}, "x", `{"Words":{"a":"3"}}`, "[p]", nil},
		"refused":         {oneHook{answer: `{}`, err: refusal}, "x", `{"Words":{"a":"1","b":"2"}}`, "[p]", refusal},
		"another type":    {oneHook{answer: `{"Words":1}`}, "x", `{"Words":{"a":"1","b":"2"}}`, "[]", nil},
		"what is no JSON": {oneHook{answer: `{`}, "x", `{"Words":{"a":"1","b":"2"}}`, "[]", nil},
	} {
		got, by, err := RunHook(t.Context(), test.hooks, test.hook, nil, given)
		if b, _ := json.Marshal(got); string(b) != test.want || fmt.Sprint(by) != test.by || err != test.err {
			t.Errorf("%s: %s by %v, %v", name, b, by, err)
		}
		if given.Words["a"] != "1" || len(given.Words) != 2 {
			t.Errorf("%s: what was passed is changed: %v", name, given)
		}
	}
}
