package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/provider"
	"centurion/provider/anthropic"
	"centurion/provider/scripted"
)

// wiretap remembers the bodies of requests.
type wiretap struct {
	http.RoundTripper
	bodies [][]byte
}

func (w *wiretap) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w.bodies = append(w.bodies, b)
	r.Body = io.NopCloser(bytes.NewReader(b))
	return w.RoundTripper.RoundTrip(r)
}

// native lets the rig's session speak Anthropic's API, as a model that signs what it thinks and refuses its calls without it.
func (r *rig) native(m centurion.ModelRef) *wiretap {
	r.t.Helper()
	tap := &wiretap{RoundTripper: r.model.Client().Transport}
	r.cfg.Ref, r.cfg.Model = m, provider.New(provider.Endpoint{Model: m, BaseURL: scripted.URL, Wire: anthropic.Wire{}, HTTP: &http.Client{Transport: tap}})
	r.reopen()
	return tap
}

func think(thought string, a scripted.Answer) scripted.Answer {
	a.Reasoning = thought
	return a
}

// ORCH-81, LOOP-27, OPAL-25: a model's thinking is stored with its signature and goes back to the same model with the calls that it
// led to, in the next request and after a restart in the same bytes; another model does not get it.
func TestThinkingComesBack(t *testing.T) {
	r := newRig(t, inOrder(think("I look.", call(`read {"path":"a"}`, `read {"path":"b"}`)), think("And again.", call(`read {"path":"<c>"}`)), scripted.Answer{Say: "Seen."}),
		tool{name: "read", effect: readOnly})
	tap := r.native(ref)
	r.turn()
	stored := r.messages()[1].Parts
	i := slices.IndexFunc(stored, func(p centurion.Part) bool { return p.Type == centurion.PartReasoning })
	if i < 0 || stored[i].Text != "I look." || fmt.Sprint(stored[i].Metadata["anthropic"]) == "<nil>" {
		t.Fatalf("stored are %+v", stored)
	}
	third := tap.bodies[2]
	if n := bytes.Count(third, []byte(`"type":"thinking"`)); n != 2 || bytes.Index(third, []byte("I look.")) > bytes.Index(third, []byte(`"tool_use"`)) {
		t.Errorf("thinking went back %d times: %s", n, third)
	}

	after := r.crash() // reads what is on disk
	tap = after.native(ref)
	after.say("Once more.")
	after.turn()
	before, now := plain(third), plain(tap.bodies[0])
	if messages := before[:len(before)-len("]}")]; !strings.HasPrefix(now, messages) {
		t.Errorf("the request after a restart began otherwise:\n%s\n%s", before, now)
	}
	tap = after.native(centurion.ModelRef{Provider: "test", ID: "other"})
	after.say("You, too.")
	after.turn()
	if got := tap.bodies[0]; bytes.Contains(got, []byte("thinking")) || !bytes.Contains(got, []byte("Seen.")) {
		t.Errorf("the other model was sent %s", got)
	}
}

// plain is a body without the marks of the cache, which move on with the conversation.
func plain(body []byte) string {
	return strings.ReplaceAll(string(body), `,"cache_control":{"type":"ephemeral"}`, "")
}

// LOOP-27, LOOP-73: an endpoint of chat completions that wants the model's thinking back gets all of it, also after a restart.
func TestThinkingIsEchoed(t *testing.T) {
	r := newRig(t, inOrder(think("I look.", call(`read {"path":"a"}`)), think("And again.", call(`read {"path":"b"}`)), scripted.Answer{Say: "Seen."}),
		tool{name: "read", effect: readOnly})
	tap := &wiretap{RoundTripper: r.model.Client().Transport}
	r.cfg.Model = provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, EchoReasoning: true, HTTP: &http.Client{Transport: tap}})
	r.reopen()
	r.turn()
	r.reopen()
	r.say("Once more.")
	r.turn()
	for n, want := range []string{"", "I look.", "I look.|And again.", "I look.|And again."} {
		var body struct {
			Messages []struct {
				Reasoning string `json:"reasoning_content"`
			}
		}
		if err := json.Unmarshal(tap.bodies[n], &body); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range body.Messages {
			if m.Reasoning != "" {
				got = append(got, m.Reasoning)
			}
		}
		if strings.Join(got, "|") != want {
			t.Errorf("request %d brings back %q, want %q", n, got, want)
		}
	}
}

// A part of the thinking that nobody may read is kept, too.
func TestRedactedThinkingComesBack(t *testing.T) {
	raw := "data: " + strings.Join([]string{`{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"opaque"}}`, `{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input":{}}}`, `{"type":"content_block_stop","index":1}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`}, "\n\ndata: ") + "\n\n"
	r := newRig(t, inOrder(scripted.Answer{Raw: raw}), tool{name: "read", effect: readOnly})
	tap := r.native(ref)
	r.turn()
	want := `[{"type":"redacted_thinking","data":"opaque"},{"type":"tool_use","id":"toolu_1"`
	if got := string(tap.bodies[1]); !strings.Contains(got, want) {
		t.Errorf("sent was %s", got)
	}
}

// ORCH-81: thinking that the provider has refused does not go back again, neither after a restart; what comes later does.
func TestRefusedThinking(t *testing.T) {
	refused := scripted.Answer{Error: &scripted.Error{Status: 400, Message: "messages.1.content.0: Invalid `signature` in `thinking` block"}}
	r := newRig(t, inOrder(think("First.", scripted.Answer{Say: "One."}), refused, think("Third.", scripted.Answer{Say: "Three."})))
	r.native(ref)
	r.turn()
	r.say("two")
	r.fails(centurion.KindInvalidRequest)
	after := r.crash()
	tap := after.native(ref)
	after.say("three")
	after.turn()
	after.say("four")
	after.turn()
	if b := tap.bodies[0]; bytes.Contains(b, []byte("First.")) || !bytes.Contains(b, []byte("One.")) {
		t.Errorf("sent was %s", b)
	}
	if b := tap.bodies[1]; bytes.Contains(b, []byte("First.")) || !bytes.Contains(b, []byte("Third.")) {
		t.Errorf("then %s", b)
	}
}

// OPAL-25: over 30 rounds at least 95 % of the request before lies in the next one before a border that was laid already, so that
// the provider reads it from its cache, although each request ends with a status that always changes.
func TestCacheBorders(t *testing.T) {
	const rounds = 30
	r := newRig(t, func(q scripted.Request) scripted.Answer {
		if q.Turn > rounds {
			return scripted.Answer{Say: "done"}
		}
		return think(fmt.Sprintf("Round %d.", q.Turn), call(fmt.Sprintf(`read {"path":"file%d"}`, q.Turn)))
	}, tool{name: "read", effect: readOnly})
	n := 0
	r.host.status = func() string { n++; return fmt.Sprintf("%d of %d tasks run", n, rounds) }
	tap := r.native(ref)
	r.turn()
	if len(tap.bodies) != rounds+1 {
		t.Fatalf("%d requests", len(tap.bodies))
	}
	kept := map[string]bool{} // what the provider has in its cache
	read, whole := 0, 0
	for i, b := range tap.bodies {
		prefixes, marked := borders(t, b)
		hit := 0
		for _, m := range marked {
			if kept[prefixes[m]] {
				hit = max(hit, len(prefixes[m]))
			}
		}
		for _, m := range marked {
			kept[prefixes[m]] = true
		}
		if len(marked) > 4 {
			t.Errorf("request %d lays %d borders", i+1, len(marked))
		}
		if i > 0 {
			before, _ := borders(t, tap.bodies[i-1])
			read += hit
			whole += len(before[len(before)-1])
		}
	}
	if share := float64(read) / float64(whole); share < 0.95 {
		t.Errorf("%.1f %% of the request before is read from the cache", 100*share)
	} else {
		t.Logf("%.1f %%", 100*share)
	}
}

// borders returns what a request holds up to each of its blocks, in the order in which the provider reads them, and which blocks
// are marked.
func borders(t *testing.T, body []byte) (prefixes []string, marked []int) {
	t.Helper()
	type block = map[string]json.RawMessage
	var in struct {
		Tools, System []block
		Messages      []struct {
			Role    string
			Content []block
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	add := func(where string, b block) {
		if b["cache_control"] != nil {
			marked = append(marked, len(prefixes))
			delete(b, "cache_control")
		}
		text, _ := json.Marshal(b)
		all.WriteString(where + string(text) + "\n")
		prefixes = append(prefixes, all.String())
	}
	for _, b := range in.Tools {
		add("tool ", b)
	}
	for _, b := range in.System {
		add("system ", b)
	}
	for _, m := range in.Messages {
		for _, b := range m.Content {
			add(m.Role+" ", b)
		}
	}
	return prefixes, marked
}

// played is a model that sends these pieces, and that it is done.
type played []provider.Delta

func (p played) Stream(context.Context, provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		for _, d := range append(p, provider.Delta{Type: provider.Done, Finish: centurion.FinishStop}) {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// LOOP-27: what a model thinks and says is stored in the parts and in the order in which it came: two blocks of thinking in a row
// keep a signature each, and what it thinks after a piece of text does not go to what it thought before.
func TestThinkingInBlocks(t *testing.T) {
	r := newRig(t, inOrder())
	thinks := func(text string) provider.Delta { return provider.Delta{Type: provider.Reasoning, Text: text} }
	says := func(text string) provider.Delta { return provider.Delta{Type: provider.Text, Text: text} }
	signed := func(by string) provider.Delta {
		return provider.Delta{Type: provider.ReasoningEnd, Metadata: map[string]any{"anthropic": by}}
	}
	for _, test := range []struct {
		pieces played
		want   string
	}{
		{played{thinks("a"), thinks("b"), signed("1"), thinks("c"), signed("2"), says("d"), says("e")}, "reasoning ab 1 | reasoning c 2 | text de"},
		{played{thinks("a"), signed("1"), signed("2"), says("b")}, "reasoning a 1 | reasoning  2 | text b"},
		{played{thinks("a"), says("b"), thinks("c"), says("d")}, "reasoning a | text b | reasoning c | text d"},
	} {
		r.cfg.Model = test.pieces
		r.reopen()
		r.say("go on")
		r.turn()
		var got []string
		for _, p := range r.last().Parts {
			if p.Type == centurion.PartReasoning || p.Type == centurion.PartText {
				by := ""
				if p.Metadata != nil {
					by = fmt.Sprint(" ", p.Metadata["anthropic"])
				}
				got = append(got, fmt.Sprint(p.Type, " ", p.Text, by))
			}
		}
		if strings.Join(got, " | ") != test.want {
			t.Errorf("stored as %q, want %q", strings.Join(got, " | "), test.want)
		}
	}
}
