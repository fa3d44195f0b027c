package anthropic_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/provider"
)

func signed(s string) map[string]any {
	return map[string]any{"anthropic": map[string]any{"signature": s}}
}

type answer struct {
	name           string
	body           string
	text, thinking string
	finish         string
	calls          []provider.Call
	metadata       []map[string]any
	tokens         *centurion.Tokens // nil: those of begin and reason
	cut            bool              // the answer must not count
}

func answers() []answer {
	read := provider.Call{ID: "toolu_1", Name: "read", Arguments: `{"p":"a"}`}
	list := provider.Call{ID: "toolu_2", Name: "list", Arguments: `{}`}
	return []answer{
		{name: "text", body: sse(events(begin, ping, say(0, "Hel", "lo"), reason("end_turn"), stop)...), text: "Hello", finish: "stop"},
		{name: "stop sequence", body: sse(events(begin, say(0, "a"), reason("stop_sequence"), stop)...), text: "a", finish: "stop"},
		{name: "calls, one without arguments", body: sse(events(begin, say(0, "I look."), call(1, "toolu_1", "read", `{"p":`, `"a"}`), ping,
			call(2, "toolu_2", "list"), reason("tool_use"), stop)...), text: "I look.", finish: "tool-calls", calls: []provider.Call{read, list}},
		{name: "arguments in the start", body: sse(events(begin, start(0, `{"type":"tool_use","id":"toolu_1","name":"read","input":{"p":"a"}}`), end(0),
			reason("tool_use"), stop)...), finish: "tool-calls", calls: []provider.Call{read}},
		{name: "calls under another reason", body: sse(events(begin, call(0, "toolu_1", "read", `{"p":"a"}`), reason("end_turn"), stop)...),
			finish: "tool-calls", calls: []provider.Call{read}},
		{name: "tool_use without calls", body: sse(events(begin, say(0, "a"), reason("tool_use"), stop)...), text: "a", finish: "stop"},
		{name: "thinking between", body: sse(events(begin, think(0, "First.", "s1"), say(1, "So."), think(2, " Then.", "s2"), call(3, "toolu_1", "read", `{"p":"a"}`),
			reason("tool_use"), stop)...), text: "So.", thinking: "First. Then.", finish: "tool-calls", calls: []provider.Call{read},
			metadata: []map[string]any{signed("s1"), signed("s2")}},
		{name: "redacted thinking", body: sse(events(begin, start(0, `{"type":"redacted_thinking","data":"opaque"}`), end(0), say(1, "a"), reason("end_turn"), stop)...),
			text: "a", finish: "stop", metadata: []map[string]any{{"anthropic": map[string]any{"redactedData": "opaque"}}}},
		{name: "thinking without a signature", body: sse(events(begin, start(0, `{"type":"thinking","thinking":"hm"}`), end(0), say(1, "a"), reason("end_turn"), stop)...),
			text: "a", thinking: "hm", finish: "stop"},
		{name: "signature in pieces", body: sse(events(begin, start(0, `{"type":"thinking","thinking":""}`), delta(0, `{"type":"signature_delta","signature":"ab"}`),
			delta(0, `{"type":"signature_delta","signature":"cd"}`), end(0), say(1, "a"), reason("end_turn"), stop)...), text: "a", finish: "stop",
			metadata: []map[string]any{signed("abcd")}},
		{name: "limit, in the middle of a call", body: sse(events(begin, say(0, "a"), call(1, "toolu_1", "read", `{"p":`)[:3], reason("max_tokens"), stop)...),
			text: "a", finish: "length", calls: []provider.Call{{ID: "toolu_1", Name: "read", Arguments: `{"p":`}}},
		{name: "window", body: sse(events(begin, say(0, "a"), reason("model_context_window_exceeded"), stop)...), text: "a", finish: "length"},
		{name: "pause", body: sse(events(begin, say(0, "a"), reason("pause_turn"), stop)...), text: "a", finish: "length"},
		{name: "refusal", body: sse(events(begin, `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"explanation":"Not this."}},"usage":{"output_tokens":9}}`, stop)...),
			text: "Not this.", finish: "content-filter"},
		{name: "refusal after some text", body: sse(events(begin, say(0, "a"), `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"explanation":"No."}},"usage":{"output_tokens":9}}`, stop)...),
			text: "a", finish: "content-filter"},
		{name: "unknown reason", body: sse(events(begin, say(0, "a"), reason("moonrise"), stop)...), text: "a", finish: "unknown"},
		{name: "tools of the provider's own", body: sse(events(begin, start(0, `{"type":"server_tool_use","id":"srvtoolu_1","name":"search","input":{}}`),
			delta(0, `{"type":"input_json_delta","partial_json":"{}"}`), end(0), start(1, `{"type":"search_result","content":[{"type":"text","text":"x"}]}`), end(1),
			say(2, "a"), reason("end_turn"), stop)...), text: "a", finish: "stop"},
		{name: "counts that grow", body: sse(events(`{"type":"message_start","message":{"id":"m","usage":{"input_tokens":3,"output_tokens":1}}}`, say(0, "a"),
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":20,"cache_read_input_tokens":50,"output_tokens":30,"output_tokens_details":{"thinking_tokens":12}}}`, stop)...),
			text: "a", finish: "stop", tokens: &centurion.Tokens{Input: 20, Output: 18, Reasoning: 12, Cache: centurion.CacheUsage{Read: 50}}},
		{name: "odd counts", body: sse(events(`{"type":"message_start","message":{"id":"m","usage":null}}`, say(0, "a"),
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":-2,"output_tokens":"7"}}`, stop)...), text: "a", finish: "stop", tokens: &centurion.Tokens{}},
		{name: "a count without sense", body: sse(events(`{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1e16,"cache_read_input_tokens":1e15}}}`, say(0, "a"), reason("end_turn"), stop)...),
			text: "a", finish: "stop", tokens: &centurion.Tokens{Output: 9, Cache: centurion.CacheUsage{Read: 1e15}}},
		{name: "a count of thinking that is left out later", body: sse(events(`{"type":"message_start","message":{"id":"m","usage":{"output_tokens":5,"output_tokens_details":{"thinking_tokens":4}}}}`, say(0, "a"), reason("end_turn"), stop)...),
			text: "a", finish: "stop", tokens: &centurion.Tokens{Output: 5, Reasoning: 4}},
		{name: "more thinking than output", body: sse(events(begin, say(0, "a"),
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":30,"output_tokens_details":{"thinking_tokens":40}}}`, stop)...),
			text: "a", finish: "stop", tokens: &centurion.Tokens{Input: 7, Reasoning: 30, Cache: centurion.CacheUsage{Read: 40, Write: 5}}},
		{name: "no error", body: sse(events(strings.Replace(begin, `{"type"`, `{"error":null,"type"`, 1), say(0, "a"), reason("end_turn"), stop)...), text: "a", finish: "stop"},
		{name: "redacted thinking without data", body: sse(events(begin, start(0, `{"type":"redacted_thinking","data":""}`), end(0), say(1, "a"), reason("end_turn"), stop)...), text: "a", finish: "stop"},
		{name: "a reason that explains itself", body: sse(events(begin, `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_details":{"explanation":"Done."}},"usage":{"output_tokens":9}}`, stop)...), finish: "stop"},
		{name: "a limit that explains itself", body: sse(events(begin, `{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_details":{"explanation":"Done."}},"usage":{"output_tokens":9}}`, stop)...), finish: "length"},
		{name: "arguments of spaces", body: sse(events(begin, call(0, "toolu_2", "list", " "), reason("tool_use"), stop)...), finish: "tool-calls", calls: []provider.Call{{ID: "toolu_2", Name: "list", Arguments: " {}"}}},
		{name: "two calls in pieces", body: sse(events(begin, start(0, `{"type":"tool_use","id":"toolu_1","name":"read","input":{}}`), start(1, `{"type":"tool_use","id":"toolu_2","name":"list","input":{}}`),
			delta(1, `{"type":"input_json_delta","partial_json":"{"}`), delta(0, `{"type":"input_json_delta","partial_json":"{\"p\":\"a\"}"}`), delta(1, `{"type":"input_json_delta","partial_json":"}"}`),
			end(1), end(0), reason("tool_use"), stop)...), finish: "tool-calls", calls: []provider.Call{read, list}},
		{name: "pieces of another kind than their block", body: sse(events(begin,
			start(0, `{"type":"text","text":"a"}`), delta(0, `{"type":"thinking_delta","thinking":"x"}`), delta(0, `{"type":"new_delta","text":"x"}`), delta(0, `{"type":"signature_delta","signature":"x"}`),
			delta(0, `{"type":"input_json_delta","partial_json":"x"}`), end(0),
			start(1, `{"type":"thinking","thinking":"hm"}`), delta(1, `{"type":"text_delta","text":"x"}`), delta(1, `{"type":"new_delta","thinking":"x","signature":"x"}`), end(1),
			start(2, `{"type":"tool_use","id":"toolu_2","name":"list","input":{}}`), delta(2, `{"type":"new_delta","partial_json":"x"}`), end(2), reason("tool_use"), stop)...),
			text: "a", thinking: "hm", finish: "tool-calls", calls: []provider.Call{list}},
		{name: "begun twice", body: sse(events(begin, begin, say(0, "a"), reason("end_turn"), stop)...), text: "a", finish: "stop"},
		{name: "the same id twice", body: sse(events(begin, call(0, "toolu_1", "read", `{"p":"a"}`), call(1, "", "list"), reason("tool_use"), stop)...),
			finish: "tool-calls", calls: []provider.Call{read, {Name: "list", Arguments: "{}"}}},
		{name: "one id for two calls", body: sse(events(begin, call(0, "toolu_1", "read", `{"p":"a"}`), call(1, "toolu_1", "list"), reason("tool_use"), stop)...),
			finish: "tool-calls", calls: []provider.Call{read, {Name: "list", Arguments: "{}"}}},
		{name: "counts that are left out later", body: sse(events(begin, say(0, "a"), reason("end_turn"), `{"type":"message_delta","delta":{},"usage":{"input_tokens":7}}`, stop)...),
			text: "a", finish: "stop"},
		{name: "new kinds of event, block and delta", body: sse(events(begin, `{"type":"weather","sun":1}`, start(0, `{"type":"moon"}`), delta(0, `{"type":"tide"}`), end(0),
			delta(7, `{"type":"text_delta","text":"lost"}`), end(9), say(1, "a"), reason("end_turn"), stop)...), text: "a", finish: "stop"},
		{name: "not a stream", body: `{"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"whole"},` + "\n" +
			`{"type":"tool_use","id":"toolu_1","name":"read","input":{"p":"a"}}],"stop_reason":"tool_use","usage":{"input_tokens":7,"output_tokens":9,"cache_read_input_tokens":40,"cache_creation_input_tokens":5}}`,
			text: "whole", thinking: "hm", finish: "tool-calls", calls: []provider.Call{read}, metadata: []map[string]any{signed("s")}},
		{name: "what follows the end does not count", body: sse(events(begin, say(0, "a"), reason("end_turn"), stop, begin, say(0, "b"))...), text: "a", finish: "stop"},

		{name: "no message_stop", body: sse(events(begin, call(0, "toolu_1", "read", `{"p":"a"}`), reason("tool_use"))...), cut: true},
		{name: "no stop reason", body: sse(events(begin, say(0, "a"), stop)...), cut: true},
		{name: "a call that never ended", body: sse(events(begin, call(0, "toolu_1", "read", `{"p":"a"}`)[:3], reason("tool_use"), stop)...), cut: true},
		{name: "another answer before a word", body: sse(events(begin, strings.Replace(begin, "msg_a", "msg_b", 1), say(0, "a"), reason("end_turn"), stop)...), cut: true},
		{name: "begun again after a word", body: sse(events(begin, say(0, "a"), begin, reason("end_turn"), stop)...), cut: true},
		{name: "begun again after a call", body: sse(events(begin, call(0, "toolu_1", "read", `{"p":"a"}`), begin, reason("tool_use"), stop)...), cut: true},
		{name: "begun again after redacted thinking", body: sse(events(begin, start(0, `{"type":"redacted_thinking","data":"opaque"}`), end(0), begin, reason("end_turn"), stop)...), cut: true},
		{name: "another answer in the middle", body: sse(events(begin, call(0, "toolu_1", "read", `{"p":`)[:3], strings.Replace(begin, "msg_a", "msg_b", 1),
			call(0, "toolu_2", "read", `{"p":"a"}`), reason("tool_use"), stop)...), cut: true},
		{name: "another answer after a whole call", body: sse(events(begin, call(0, "toolu_1", "read", `{"p":"a"}`), strings.Replace(begin, "msg_a", "msg_b", 1),
			call(0, "toolu_2", "list"), reason("tool_use"), stop)...), cut: true},
		{name: "a piece of a call before it began", body: sse(events(begin, delta(0, `{"type":"input_json_delta","partial_json":"{\"p\":"}`), start(0, `{"type":"tool_use","id":"toolu_1","name":"read","input":{}}`), end(0),
			reason("tool_use"), stop)...), cut: true},
		{name: "a piece of a call after it ended", body: sse(events(begin, call(0, "toolu_1", "read", `{"p":"a"}`), delta(0, `{"type":"input_json_delta","partial_json":"}"}`), reason("tool_use"), stop)...), cut: true},
		{name: "a block that began twice", body: sse(events(begin, start(0, `{"type":"text","text":"a"}`), start(0, `{"type":"text","text":"b"}`), end(0),
			reason("end_turn"), stop)...), cut: true},
		{name: "a call without a name", body: sse(events(begin, call(0, "toolu_1", ""), reason("tool_use"), stop)...), cut: true},
		{name: "no JSON", body: sse(events(begin, say(0, "a"))...) + "data: {\"type\":\n\n", cut: true},
		{name: "no JSON in the middle", body: sse(events(begin, say(0, "a"))...) + "data: {\"type\":\n\n" + sse(events(reason("end_turn"), stop)...), cut: true},
		{name: "not a stream, a call without a name", body: `{"type":"message","content":[{"type":"tool_use","id":"toolu_1","name":"","input":{}}],"stop_reason":"tool_use"}`, cut: true},
		{name: "nothing", body: "", cut: true},
	}
}

// OPAL-25, LOOP-25, LOOP-27, LOOP-31: what a stream of the Messages API says comes out as text, thinking with its signature, calls,
// a finish reason and counts; what is not complete is an error.
func TestAnswers(t *testing.T) {
	for _, tt := range answers() {
		t.Run(tt.name, func(t *testing.T) {
			r := collect(t, canned(strings.NewReader(tt.body)), provider.Request{})
			if tt.cut {
				if e, _ := errors.AsType[*centurion.Error](r.err); e == nil || e.Kind != centurion.KindStreamCut || e.Msg == "" || r.dones > 0 {
					t.Fatalf("got %+v", r)
				}
				return
			}
			ids := map[string]bool{}
			for i := range r.calls {
				if ids[r.calls[i].ID] {
					t.Errorf("two calls have the id %q", r.calls[i].ID)
				}
				ids[r.calls[i].ID] = true
				if i < len(tt.calls) && tt.calls[i].ID == "" {
					r.calls[i].ID = "" // any is good
				}
			}
			tokens := centurion.Tokens{Input: 7, Output: 9, Cache: centurion.CacheUsage{Read: 40, Write: 5}}
			if tt.tokens != nil {
				tokens = *tt.tokens
			}
			if r.thinking != "" && r.closed == 0 {
				t.Error("nobody was told that the thinking is over")
			}
			if r.err != nil || r.text != tt.text || r.thinking != tt.thinking || r.finish != tt.finish || r.tokens != tokens {
				t.Errorf("got %+v", r)
			}
			if d := cmp.Diff(tt.calls, r.calls) + cmp.Diff(tt.metadata, r.metadata); d != "" {
				t.Error(d)
			}
		})
	}
}

// LOOP-32, OPAL-65: wherever a stream breaks off, the answer does not count and none of its calls would be run.
func TestCutAnywhere(t *testing.T) {
	for _, tt := range answers() {
		whole := strings.TrimRight(tt.body, "\n")
		if tt.name == "what follows the end does not count" {
			continue
		}
		for n := range len(whole) {
			r := collect(t, canned(strings.NewReader(whole[:n])), provider.Request{})
			if r.err == nil || r.ended > 0 || centurion.KindOf(r.err) != centurion.KindStreamCut && centurion.KindOf(r.err) != centurion.KindConfig {
				t.Fatalf("%s, cut after %d of %d bytes: %+v", tt.name, n, len(whole), r)
			}
		}
	}
}

func FuzzStream(f *testing.F) {
	for _, a := range answers() {
		f.Add([]byte(a.body))
	}
	f.Add([]byte("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) { collect(t, canned(bytes.NewReader(b)), provider.Request{}) })
}

// BenchmarkStream is an answer with thinking, text and a call, after a history of 40 messages.
func BenchmarkStream(b *testing.B) {
	body := sse(events(begin, think(0, "I see.", "sig"), say(1, "I ", "look ", "into ", "it."), call(2, "toolu_1", "read", `{"p":`, `"a"}`), reason("tool_use"), stop)...)
	c := client(func(r *http.Request) (*http.Response, error) {
		_, _ = io.Copy(io.Discard, r.Body)
		return respond(200, "text/event-stream", strings.NewReader(body)), nil
	})
	req := conversation(20)
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range c.Stream(b.Context(), req) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
