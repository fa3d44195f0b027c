package host

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"centurion/provider"
	"centurion/redact"
)

// spoken is a model that gives written deltas, each text byte by byte, and keeps the request.
type spoken struct {
	deltas []provider.Delta
	err    error
	asked  *provider.Request
}

func (m spoken) Stream(_ context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		*m.asked = req
		for _, d := range m.deltas {
			if d.Text == "" && !yield(d, nil) {
				return
			}
			for _, c := range []byte(d.Text) {
				piece := d
				if piece.Text = string(c); !yield(piece, nil) {
					return
				}
			}
		}
		if m.err != nil {
			yield(provider.Delta{}, m.err)
		}
	}
}

// S7: neither what a model is sent nor what it says has a key, however the answer is cut; the arguments of a call do what they say, and a
// thought that was changed is not signed any more, unlike one after it.
func TestModelGetsNoKeys(t *testing.T) {
	const own, pat = "zq7-0wn-key", "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	signed := map[string]any{"signature": "x"}
	var req provider.Request
	m := withholding{spoken{asked: &req, deltas: []provider.Delta{
		{Type: provider.Reasoning, Text: "clean"}, {Type: provider.ReasoningEnd, Metadata: signed},
		{Type: provider.Reasoning, Text: "it is " + own}, {Type: provider.ReasoningEnd, Metadata: signed},
		{Type: provider.Reasoning, Text: "clean again"}, {Type: provider.ReasoningEnd, Metadata: signed},
		{Type: provider.ReasoningEnd, Metadata: signed},
		{Type: provider.Text, Text: "the key " + pat + " and gh"},
		{Type: provider.CallStart, CallID: "a", Name: "write"}, {Type: provider.CallStart, Index: 1, CallID: "b", Name: "bash"},
		{Type: provider.CallInput, Text: `{"content":"` + own + `"}`}, {Type: provider.CallInput, Index: 1, Text: `{}` + own[:3]}, {Type: provider.CallEnd},
		{Type: provider.Done, Finish: "stop"},
	}}, redact.New(redact.Key{Name: "OWN", Value: own})}
	got := said(t, m, nil)
	want := `2"clean" 3+ 2"it is [key OWN]" 3 2"clean again" 3+ 3+ 1"the key [key github] and gh" 4 4 5"{\"content\":\"zq7-0wn-key\"}" 5"{}" 6 5"zq7" 7`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	cut := errors.New("cut")
	m.Model = spoken{asked: &req, err: cut, deltas: []provider.Delta{{Type: provider.Text, Text: "half " + own[:5]}}}
	if got := said(t, m, cut); got != `1"half zq7-0"` {
		t.Errorf("a cut answer: %s", got)
	}

	m.Model = spoken{asked: &req, deltas: []provider.Delta{{Type: provider.Text, Text: "half " + own[:5]}, {Type: provider.Reasoning, Text: own[5:]},
		{Type: provider.CallInput, Text: own[:4]}, {Type: provider.Waiting}, {Type: provider.Done}}}
	if got := said(t, m, nil); got != `1"half zq7-0" 2"wn-key" 0 5"zq7-" 7` {
		t.Errorf("parts that are not ended: %s", got)
	}

	given := provider.Request{System: "use " + own, Messages: []provider.Message{{Text: pat, Reasoning: own, Thoughts: []provider.Thought{{Text: own, Metadata: signed}, {Text: "clean"}},
		Calls: []provider.Call{{Arguments: `{"a":"` + own + `\n` + pat + `"}`}}}}}
	before := fmt.Sprint(given)
	for range m.Stream(t.Context(), given) {
		break
	}
	if fmt.Sprint(given) != before {
		t.Error("the session's own messages were changed")
	}
	sent := fmt.Sprint(req.System, req.Messages)
	if strings.Contains(sent, own) || strings.Contains(sent, pat) || len(req.Messages[0].Thoughts) != 1 || req.Messages[0].Calls[0].Arguments != `{"a":"[key OWN]\n[key github]"}` {
		t.Errorf("sent %s", sent)
	}
}

// said is what a model says: the type of each delta, with the text of those that follow each other, and a + where it has metadata.
func said(t *testing.T, m withholding, want error) string {
	t.Helper()
	var out []string
	last, text := "", ""
	add := func(key string) {
		if text != "" {
			out, text = append(out, fmt.Sprintf("%s%q", last[:1], text)), ""
		}
		last = key
	}
	for d, err := range m.Stream(t.Context(), provider.Request{}) {
		if !errors.Is(err, want) && err != nil {
			t.Fatal(err)
		}
		if err != nil {
			break
		}
		key := fmt.Sprint(int(d.Type), d.Index)
		if key != last || d.Text == "" {
			add(key)
		}
		if text += d.Text; d.Text == "" {
			out = append(out, fmt.Sprint(int(d.Type))+strings.Repeat("+", len(d.Metadata)))
		}
	}
	add("")
	return strings.Join(out, " ")
}
