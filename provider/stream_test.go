package provider

import (
	"bytes"
	stdcmp "cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"centurion"
)

// LOOP-90: an answer comes in pieces, its text and its thinking each as what they are, with one end that tells why and what it took.
func TestAnswers(t *testing.T) {
	usage := `{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":30}}}`
	stop := chunk(`{}`, "stop")
	tests := []struct {
		name, body      string
		text, reasoning string
		finish          string
		tokens          centurion.Tokens
	}{
		{name: "text", body: sse(chunk(`{"role":"assistant","content":""}`, ""), say("Hel"), say("lo"), stop), text: "Hello", finish: "stop"},
		{name: "no [DONE]", body: cut(say("a"), stop), text: "a", finish: "stop"},
		{name: "usage after the finish", body: sse(say("a"), stop, usage), text: "a", finish: "stop",
			tokens: centurion.Tokens{Input: 60, Output: 20, Reasoning: 30, Cache: centurion.CacheUsage{Read: 40}}},
		{name: "usage with the finish", body: sse(`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`),
			text: "a", finish: "stop", tokens: centurion.Tokens{Input: 3, Output: 4}},
		{name: "running count, the last holds", body: sse(`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, stop,
			`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":9}}`), finish: "stop", tokens: centurion.Tokens{Input: 3, Output: 9}},
		{name: "an empty count after it", body: sse(`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":9}}`, stop,
			`{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}`), finish: "stop", tokens: centurion.Tokens{Input: 3, Output: 9}},
		{name: "an event without data before it", body: "event: error\n\n" + sse(say("a"), stop), text: "a", finish: "stop"},
		{name: "reasoning counted beside the output", body: sse(stop, `{"usage":{"prompt_tokens":12,"completion_tokens":2,"total_tokens":354,"completion_tokens_details":{"reasoning_tokens":340}}}`),
			finish: "stop", tokens: centurion.Tokens{Input: 12, Output: 2, Reasoning: 340}},
		{name: "the same, where the reasoning is shorter", body: sse(stop, `{"usage":{"prompt_tokens":10,"completion_tokens":20,"total_tokens":35,"completion_tokens_details":{"reasoning_tokens":5}}}`),
			finish: "stop", tokens: centurion.Tokens{Input: 10, Output: 20, Reasoning: 5}},
		{name: "cache counts of gateways", body: sse(stop, `{"usage":{"prompt_tokens":100,"completion_tokens":1,"cache_read_input_tokens":70,"cache_creation_input_tokens":20}}`),
			finish: "stop", tokens: centurion.Tokens{Input: 10, Output: 1, Cache: centurion.CacheUsage{Read: 70, Write: 20}}},
		{name: "cache hits of DeepSeek", body: sse(stop, `{"usage":{"prompt_tokens":100,"completion_tokens":1,"prompt_cache_hit_tokens":64}}`),
			finish: "stop", tokens: centurion.Tokens{Input: 36, Output: 1, Cache: centurion.CacheUsage{Read: 64}}},
		{name: "cached tokens beside the prompt", body: sse(stop, `{"usage":{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":40}}}`),
			finish: "stop", tokens: centurion.Tokens{Input: 10, Output: 1, Cache: centurion.CacheUsage{Read: 40}}},
		{name: "all of the output is reasoning", body: sse(stop, `{"usage":{"prompt_tokens":1,"completion_tokens":5,"total_tokens":6,"completion_tokens_details":{"reasoning_tokens":5}}}`),
			finish: "stop", tokens: centurion.Tokens{Input: 1, Reasoning: 5}},
		{name: "only the output is counted", body: sse(stop, `{"usage":{"completion_tokens":5}}`), finish: "stop", tokens: centurion.Tokens{Output: 5}},
		{name: "an empty piece behind the finish", body: sse(say("a"), stop, chunk(`{"content":"","tool_calls":[]}`, "")), text: "a", finish: "stop"},
		{name: "a negative count", body: sse(stop, `{"usage":{"prompt_tokens":-4,"completion_tokens":7}}`), finish: "stop", tokens: centurion.Tokens{Output: 7}},
		{name: "a refusal that is cut off", body: sse(chunk(`{"refusal":"No"}`, ""), chunk(`{}`, "length")), text: "No", finish: "length"},
		{name: "odd counts", body: sse(stop, `{"usage":{"prompt_tokens":-4,"completion_tokens":"7","prompt_tokens_details":null}}`), finish: "stop"},

		// Trap 7: reasoning under three names, and often two at once.
		{name: "reasoning_content", body: sse(chunk(`{"reasoning_content":"hm"}`, ""), say("a"), stop), text: "a", reasoning: "hm", finish: "stop"},
		{name: "reasoning", body: sse(chunk(`{"reasoning":"hm"}`, ""), say("a"), stop), text: "a", reasoning: "hm", finish: "stop"},
		{name: "reasoning_details", body: sse(chunk(`{"reasoning_details":[{"type":"reasoning.text","text":"h"},{"type":"reasoning.summary","summary":"m"},{"type":"reasoning.encrypted","data":"x"}]}`, ""), stop),
			reasoning: "hm", finish: "stop"},
		{name: "two names at once", body: sse(chunk(`{"reasoning":"hm","reasoning_details":[{"text":"hm"}]}`, ""), stop), reasoning: "hm", finish: "stop"},
		{name: "parts", body: sse(chunk(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"a"}]}`, ""), stop),
			text: "a", reasoning: "hm", finish: "stop"},

		// Trap 4.
		{name: "a thousand keep-alives", body: strings.Repeat(": keep-alive\n\n", 1000) + sse(say("a"), stop) + strings.Repeat(":\n", 400), text: "a", finish: "stop"},
		{name: "one endless comment", body: ":" + strings.Repeat("x", 100_000) + "\n\n" + sse(say("a"), stop), text: "a", finish: "stop"},
		{name: "other fields", body: "retry: 5\nid: 1\nevent: message\n" + sse(say("a"), stop), text: "a", finish: "stop"},
		{name: "CRLF, no space, byte order mark", body: "\xEF\xBB\xBF" + strings.NewReplacer("data: ", "data:", "\n", "\r\n").Replace(sse(say("a"), stop)), text: "a", finish: "stop"},
		{name: "no empty lines between", body: strings.ReplaceAll(sse(say("a"), say("b"), stop), "\n\n", "\n"), text: "ab", finish: "stop"},
		{name: "no end of line", body: strings.TrimSpace(cut(say("a"), stop)), text: "a", finish: "stop"},
		{name: "null error in every chunk", body: sse(`{"error":null,"choices":[{"delta":{"content":"a"}}]}`, `{"error":"","choices":[{"delta":{},"finish_reason":"stop"}]}`), text: "a", finish: "stop"},
		{name: "odd fields", body: sse(`{"choices":null}`, `{"choices":[{"delta":null}]}`, `{"choices":[{"index":"0","delta":{"content":5,"tool_calls":{},"role":7}}]}`,
			`{"choices":[{"delta":{"content":"a"},"logprobs":{"x":[1]},"finish_reason":null}],"created":"now"}`, `[]`, `7`, stop), text: "a", finish: "stop"},
		{name: "invalid UTF-8", body: sse(say("a\xff\xfeb"), stop), text: "a\uFFFD\uFFFDb", finish: "stop"},
		{name: "not a stream", body: "{\n \"choices\": [ {\"message\": {\"role\":\"assistant\",\n\"content\":\"whole\"}, \"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}",
			text: "whole", finish: "stop", tokens: centurion.Tokens{Input: 1, Output: 2}},

		{name: "length", body: sse(say("a"), chunk(`{}`, "length")), text: "a", finish: "length"},
		{name: "content filter", body: sse(say("a"), chunk(`{}`, "content_filter")), text: "a", finish: "content-filter"},
		{name: "refusal", body: sse(chunk(`{"refusal":"I will not"}`, ""), stop), text: "I will not", finish: "content-filter"},
		{name: "unknown reason", body: sse(say("a"), chunk(`{}`, "moonrise")), text: "a", finish: "unknown"},
		{name: "tool calls without calls", body: sse(say("a"), chunk(`{}`, "tool_calls")), text: "a", finish: "stop"},
		{name: "end of turn", body: sse(say("a"), chunk(`{}`, "end_turn")), text: "a", finish: "stop"},
		{name: "an empty answer", body: sse(stop), finish: "stop"},
	}
	for _, tt := range tests {
		for _, whole := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/whole=%v", tt.name, whole), func(t *testing.T) {
				var body io.Reader = strings.NewReader(tt.body)
				if !whole {
					body = iotest.OneByteReader(body)
				}
				r := collect(t, t.Context(), canned(body), Request{})
				if r.err != nil {
					t.Fatal(r.err)
				}
				if r.text != tt.text || r.reasoning != tt.reasoning || r.finish != tt.finish || r.tokens != tt.tokens || len(r.calls) != 0 {
					t.Errorf("got %+v", r)
				}
			})
		}
	}
}

// LOOP-76, LOOP-90: whichever word an endpoint ends with, the turn goes on or ends by what it means.
func TestFinishWordsOfEndpoints(t *testing.T) {
	for finish, words := range map[string][]string{
		centurion.FinishStop:    {"stop", "STOP", "end_turn", "stop_sequence", "eos", "eos_token", "completed", "tool_calls", "tool_use", "function_call"},
		centurion.FinishLength:  {"length", "max_tokens", "MAX_TOKENS", "model_length", "model_context_window_exceeded"},
		centurion.FinishFilter:  {"content_filter", "refusal", "SAFETY", "recitation", "prohibited_content", "blocklist", "sensitive"},
		centurion.FinishUnknown: {"pause"},
	} {
		for _, word := range words {
			if r := collect(t, t.Context(), canned(strings.NewReader(sse(say("a"), chunk(`{}`, word)))), Request{}); r.err != nil || r.finish != finish {
				t.Errorf("%s: %q, %v; want %q", word, r.finish, r.err, finish)
			}
		}
	}
}

// LOOP-90: a tool call comes as its beginning, the pieces of its arguments and its end.
func TestCalls(t *testing.T) {
	end := chunk(`{}`, "tool_calls")
	a, b := Call{ID: "A", Name: "read", Arguments: `{"p":1}`}, Call{ID: "B", Name: "ls", Arguments: `{"q":2}`}
	unnamed := func(c Call) Call { c.ID = "made"; return c }
	tests := []struct {
		name   string
		events []string
		want   []Call // an id of "made" is any id that the provider did not give
		finish string // default tool-calls
		open   []int  // calls that must not end
	}{
		{name: "interleaved", want: []Call{a, b}, events: []string{tool(`{"index":0,"id":"A","type":"function","function":{"name":"read","arguments":""}}`),
			tool(`{"index":1,"id":"B","function":{"name":"ls","arguments":"{\"q\""}}`), tool(`{"index":0,"function":{"arguments":"{\"p\""}}`),
			tool(`{"index":1,"function":{"arguments":":2}"}},{"index":0,"function":{"arguments":":1}"}}`), end}},
		{name: "finish stop with calls", want: []Call{a}, events: []string{tool(`{"index":0,"id":"A","function":{"name":"read","arguments":"{\"p\":1}"}}`), chunk(`{}`, "stop")}},
		{name: "whole and with the finish", want: []Call{a, b}, events: []string{
			chunk(`{"tool_calls":[{"id":"A","function":{"name":"read","arguments":"{\"p\":1}"}},{"id":"B","function":{"name":"ls","arguments":"{\"q\":2}"}}]}`, "tool_calls")}},
		{name: "empty id in later fragments", want: []Call{a}, events: []string{tool(`{"index":0,"id":"A","function":{"name":"read","arguments":""}}`),
			tool(`{"index":0,"id":"","function":{"name":"","arguments":"{\"p\":1}"}}`), end}},
		{name: "id and name in every fragment", want: []Call{a}, events: []string{tool(`{"index":0,"id":"A","function":{"name":"read","arguments":"{\"p\""}}`),
			tool(`{"index":0,"id":"A","function":{"name":"read","arguments":":1}"}}`), end}},
		{name: "name in every fragment, also before the arguments", want: []Call{a}, events: []string{tool(`{"index":0,"id":"A","function":{"name":"read"}}`),
			tool(`{"index":0,"id":"A","function":{"name":"read","arguments":"{\"p\":1}"}}`), end}},
		{name: "name in pieces", want: []Call{a}, events: []string{tool(`{"index":0,"id":"A","function":{"name":"re"}}`),
			tool(`{"index":0,"function":{"name":"ad"}}`), tool(`{"index":0,"function":{"arguments":"{\"p\":1}"}}`), end}},
		{name: "arguments before the name", want: []Call{a}, events: []string{tool(`{"index":0,"id":"A","function":{"arguments":"{\"p\""}}`),
			tool(`{"index":0,"function":{"name":"read","arguments":":1}"}}`), end}},
		{name: "without ids", want: []Call{unnamed(a), unnamed(b)}, events: []string{tool(`{"index":0,"function":{"name":"read","arguments":"{\"p\":1}"}}`),
			tool(`{"index":1,"function":{"name":"ls","arguments":"{\"q\":2}"}}`), end}},
		{name: "without ids, all at index 0", want: []Call{unnamed(a), unnamed(b)}, events: []string{tool(`{"index":0,"id":"","function":{"name":"read","arguments":"{\"p\":1}"}}`),
			tool(`{"index":0,"id":"","function":{"name":"ls","arguments":"{\"q\":2}"}}`), end}},
		{name: "without index and id", want: []Call{unnamed(a), unnamed(b)}, events: []string{tool(`{"function":{"name":"read","arguments":"{\"p\""}}`),
			tool(`{"function":{"arguments":":1}"}}`), tool(`{"function":{"name":"ls","arguments":"{\"q\":2}"}}`), end}},
		{name: "without index, by id", want: []Call{a, b}, events: []string{tool(`{"id":"A","function":{"name":"read","arguments":"{\"p\""}}`),
			tool(`{"id":"B","function":{"name":"ls","arguments":"{\"q\":2}"}}`), tool(`{"id":"A","function":{"arguments":":1}"}}`), end}},
		{name: "a new id at the same index", want: []Call{a, b}, events: []string{tool(`{"index":0,"id":"A","function":{"name":"read","arguments":"{\"p\":1}"}}`),
			tool(`{"index":0,"id":"B","function":{"name":"ls","arguments":"{\"q\""}}`), tool(`{"index":0,"function":{"arguments":":2}"}}`), end}},
		{name: "one id at two indexes", want: []Call{a, unnamed(b)}, events: []string{tool(`{"index":0,"id":"A","function":{"name":"read","arguments":"{\"p\":1}"}}`),
			tool(`{"index":1,"id":"A","function":{"name":"ls","arguments":"{\"q\":2}"}}`), end}},
		{name: "goes on under another index", want: []Call{a}, events: []string{tool(`{"index":0,"id":"A","function":{"name":"read","arguments":"{\"p\""}}`),
			tool(`{"index":1,"id":"A","function":{"arguments":":1}"}}`), end}},
		{name: "told twice", want: []Call{a}, events: []string{tool(`{"index":0,"id":"A","function":{"name":"read","arguments":"{\"p\":1}"}}`),
			tool(`{"index":0,"id":"A","function":{"name":"read","arguments":"{\"p\":1}"}}`), end}},
		{name: "late id", want: []Call{a}, events: []string{tool(`{"index":0,"function":{"name":"read"}}`), tool(`{"index":0,"id":"A","function":{"arguments":"{\"p\":1}"}}`), end}},
		{name: "no arguments", want: []Call{{ID: "A", Name: "read", Arguments: "{}"}, b}, events: []string{tool(`{"index":0,"id":"A","function":{"name":"read"}}`),
			tool(`{"index":1,"id":"B","function":{"name":"ls","arguments":"{\"q\":2}"}}`), end}},
		{name: "arguments as JSON", want: []Call{a}, events: []string{tool(`{"index":0,"id":"A","function":{"name":"read","arguments":{"p":1}}}`), end}},
		{name: "function_call", want: []Call{unnamed(a)}, events: []string{chunk(`{"function_call":{"name":"read","arguments":""}}`, ""),
			chunk(`{"function_call":{"arguments":"{\"p\":1}"}}`, ""), chunk(`{}`, "function_call")}},
		{name: "an empty entry", want: []Call{a}, events: []string{tool(`{}`), tool(`{"index":0,"id":"A","function":{"name":"read","arguments":"{\"p\":1}"}}`), end}},
		{name: "only an empty entry", finish: "stop", events: []string{tool(`{"index":0}`), end}},
		{name: "cut at the token limit", finish: "length", want: []Call{a, {ID: "B", Name: "ls", Arguments: `{"q"`}}, open: []int{1}, events: []string{
			tool(`{"index":0,"id":"A","function":{"name":"read","arguments":"{\"p\":1}"}}`), tool(`{"index":1,"id":"B","function":{"name":"ls","arguments":"{\"q\""}}`), chunk(`{}`, "length")}},
		{name: "cut at the token limit before the arguments", finish: "length", want: []Call{{ID: "A", Name: "read"}}, open: []int{0}, events: []string{
			tool(`{"index":0,"id":"A","function":{"name":"read","arguments":""}}`), chunk(`{}`, "length")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := collect(t, t.Context(), canned(strings.NewReader(sse(tt.events...))), Request{})
			if r.err != nil {
				t.Fatal(r.err)
			}
			seen := map[string]bool{}
			for i, c := range r.calls {
				if seen[c.ID] {
					t.Errorf("the id %s twice", c.ID)
				}
				seen[c.ID] = true
				if i < len(tt.want) && tt.want[i].ID == "made" && strings.HasPrefix(c.ID, "call_") {
					r.calls[i].ID = "made"
				}
				if want := !slices.Contains(tt.open, i); r.ended[i] != want {
					t.Errorf("call %d ended: %v, want %v", i, r.ended[i], want)
				}
			}
			if d := cmp.Diff(tt.want, r.calls); d != "" {
				t.Error(d)
			}
			if want := stdcmp.Or(tt.finish, "tool-calls"); r.finish != want {
				t.Errorf("finish %s, want %s", r.finish, want)
			}
		})
	}
}

// A reader sees each piece of a call as it comes: its beginning with the first piece of the arguments, and not all of it at the end.
func TestCallsComeInPieces(t *testing.T) {
	body := sse(tool(`{"index":0,"id":"A","function":{"name":"read"}}`), tool(`{"index":0,"function":{"arguments":"{\"p\""}}`), say("a"), tool(`{"index":0,"function":{"arguments":":1}"}}`), chunk(`{}`, "tool_calls"))
	var got []Delta
	for d, err := range canned(strings.NewReader(body)).Stream(t.Context(), Request{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d)
	}
	want := []Delta{{Type: CallStart, CallID: "A", Name: "read"}, {Type: CallInput, Text: `{"p"`}, {Type: Text, Text: "a"}, {Type: CallInput, Text: ":1}"}, {Type: CallEnd}, {Type: Done, Finish: "tool-calls"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Traps 1, 2 and 3, and every other way in which a stream breaks.
func TestBrokenStreams(t *testing.T) {
	begun := tool(`{"index":0,"id":"A","function":{"name":"rm","arguments":"{}"}}`)
	tests := []struct {
		name, body string
		breaks     error // of the connection, after body
		kind       centurion.Kind
		status     int
		says       string
	}{
		{name: "closed without a finish reason", body: cut(say("a"), begun), kind: centurion.KindStreamCut, says: "without a finish reason"},
		{name: "[DONE] without a finish reason", body: sse(say("a"), begun), kind: centurion.KindStreamCut},
		{name: "the beginning of a call was lost", body: sse(tool(`{"index":0,"function":{"arguments":"{}"}}`), chunk(`{}`, "tool_calls")), kind: centurion.KindStreamCut, says: "without a name"},
		{name: "nothing at all", kind: centurion.KindStreamCut, says: "before it began"},
		{name: "only comments", body: ": a\n\n: b\n\n", kind: centurion.KindStreamCut},
		{name: "a call after the finish reason", body: cut(say("a"), chunk(`{}`, "stop"), begun), kind: centurion.KindStreamCut},
		{name: "reset before it began", breaks: errors.New("connection reset by peer"), kind: centurion.KindNetwork, says: "reset"},
		{name: "reset in the middle", body: cut(begun), breaks: errors.New("connection reset by peer"), kind: centurion.KindStreamCut, says: "reset"},
		{name: "reset in a line", body: cut(begun) + `data: {"choices":[{"del`, breaks: errors.New("connection reset by peer"), kind: centurion.KindStreamCut, says: "reset"},
		{name: "ended in a line", body: cut(begun) + `data: {"choices":[{"del`, kind: centurion.KindStreamCut, says: "not JSON"},
		{name: "not JSON", body: sse(say("a"), `{"choices":[}`), kind: centurion.KindStreamCut, says: `{"choices":[}`},
		{name: "200 with an error", body: "{\n\"error\": {\"message\": \"model is busy\", \"type\":\"overloaded_error\"}}", kind: centurion.KindOverloaded, status: 529, says: "model is busy"},
		{name: "200 with a list of errors", body: `[{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}]`, kind: centurion.KindRateLimit, status: 429},
		{name: "200 with a page", body: "<!doctype html>\n<title>Welcome</title>", kind: centurion.KindConfig, says: "the answer is text/event-stream and not a stream of events: <!doctype html> <title>Welcome"},
		{name: "200 with half a document", body: `{"choices":[`, kind: centurion.KindStreamCut, says: "neither"},
		{name: "event: error", body: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", kind: centurion.KindOverloaded, status: 529, says: "Overloaded"},
		{name: "event: error after text", body: cut(say("a")) + "event: error\r\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"boom\"}}\r\n\r\n", kind: centurion.KindOverloaded, says: "boom"},
		{name: "event: error with words", body: "event: error\ndata: no capacity\n\n", kind: centurion.KindStreamCut, says: "no capacity"},
		{name: "error without event", body: sse(`{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`), kind: centurion.KindRateLimit, status: 429, says: "slow"},
		{name: "an object that is an error", body: sse(`{"object":"error","message":"slow","code":429}`), kind: centurion.KindRateLimit, status: 429, says: "slow"},
		{name: "error in the middle", body: cut(say("a"), `{"error":{"message":"upstream died","code":502}}`), kind: centurion.KindOverloaded, says: "upstream died"},
		{name: "error in a choice", body: sse(`{"choices":[{"delta":{},"finish_reason":"error","error":{"code":502,"message":"lost it"}}]}`), kind: centurion.KindOverloaded, status: 502, says: "lost it"},
		{name: "finish reason error", body: sse(say("a"), chunk(`{}`, "error")), kind: centurion.KindOverloaded, says: "the provider broke the answer off: error"},
		{name: "the window is full", body: sse(`{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}`), kind: centurion.KindOverflow},
		{name: "an event without end", body: "data: " + strings.Repeat("x", maxLine+2), kind: centurion.KindStreamCut, says: "longer than 16 MB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var body io.Reader = strings.NewReader(tt.body)
			if tt.breaks != nil {
				body = io.MultiReader(body, iotest.ErrReader(tt.breaks))
			}
			c := canned(body)
			c.end.MaxRetries = -1
			r := collect(t, t.Context(), c, Request{})
			e, ok := errors.AsType[*centurion.Error](r.err)
			if !ok {
				t.Fatalf("got error %v and %+v", r.err, r)
			}
			if e.Kind != tt.kind || e.Status != tt.status || e.Op != "call openai/gpt-4.1" || !strings.Contains(e.Error(), tt.says) {
				t.Errorf("got %s %d %v", e.Kind, e.Status, e)
			}
			if len(r.ended) != 0 || r.dones != 0 {
				t.Errorf("a call of a broken answer ended: %+v", r)
			}
		})
	}
}

// After a finish reason nothing that happens to the connection matters.
func TestFinishedAnswerSurvivesReset(t *testing.T) {
	body := io.MultiReader(strings.NewReader(cut(say("a"), chunk(`{}`, "stop"))), iotest.ErrReader(errors.New("reset")))
	if r := collect(t, t.Context(), canned(body), Request{}); r.err != nil || r.text != "a" || r.finish != "stop" {
		t.Errorf("got %+v", r)
	}
}

// An answer that is cut anywhere is either whole or an error, and no call of it is complete before the whole is.
func TestCutAnywhere(t *testing.T) {
	body := "event: x\n" + sse(say("a"), tool(`{"index":0,"id":"A","function":{"name":"read","arguments":"{\"p\":1}"}}`), chunk(`{}`, "tool_calls"))
	finished := strings.Index(body, `"tool_calls"}]}`) + len(`"tool_calls"}]}`)
	for n := range len(body) {
		r := collect(t, t.Context(), canned(strings.NewReader(body[:n])), Request{})
		if n < finished && (centurion.KindOf(r.err) != centurion.KindStreamCut || len(r.ended) > 0) {
			t.Fatalf("cut at %d of %d: %v, %+v", n, finished, r.err, r)
		}
		if n >= finished && (r.err != nil || !r.ended[0]) {
			t.Fatalf("cut at %d of %d: %v, %+v", n, finished, r.err, r)
		}
	}
}

func TestLongLine(t *testing.T) {
	const size = 10 << 20
	text := strings.Repeat("x", size)
	body := bytes.NewReader([]byte(sse(say(text), chunk(`{}`, "stop"))))
	c := canned(body)
	got := 0
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for d, err := range c.Stream(t.Context(), Request{}) {
		if err != nil {
			t.Fatal(err)
		}
		got += len(d.Text)
	}
	runtime.ReadMemStats(&after)
	if got != size {
		t.Errorf("got %d bytes", got)
	}
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 64 {
		t.Errorf("a line of 10 MB took %d MB", mb)
	}
}

func TestSingleUse(t *testing.T) {
	seq := canned(strings.NewReader(sse(chunk(`{}`, "stop")))).Stream(t.Context(), Request{})
	for range seq {
	}
	for _, err := range seq {
		if centurion.KindOf(err) != centurion.KindInternal {
			t.Errorf("got %v", err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "\n", "data: [DONE]\n\n", ": x\n\n", sse(say("a"), chunk(`{}`, "stop")), cut(say("a")), `{"error":{"message":"m"}}`, `[{"error":"m"}]`,
		"event: error\ndata: {}\n\n", "\xEF\xBB\xBFdata:{\"choices\":[]}", sse(tool(`{"index":0,"id":"A","function":{"name":"n","arguments":"{}"}}`), chunk(`{}`, "tool_calls")),
		sse(tool(`{"function":{"name":"n"}},{"index":3,"id":"A"},{"index":3,"id":"B","function":{"arguments":{"a":1}}}`), chunk(`{}`, "length")), "data:\ndata", "<p>"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := canned(bytes.NewReader(b))
		c.end.MaxRetries = -1
		r := collect(t, t.Context(), c, Request{})
		if r.err != nil && len(r.ended) > 0 || r.dones > 1 {
			t.Fatalf("got %+v", r)
		}
		ids := map[string]bool{}
		for _, call := range r.calls {
			if ids[call.ID] {
				t.Fatalf("id %s twice", call.ID)
			}
			ids[call.ID] = true
		}
	})
}

func BenchmarkStream(b *testing.B) {
	body := sse(say("Hello"), tool(`{"index":0,"id":"A","function":{"name":"read","arguments":""}}`), tool(`{"index":0,"function":{"arguments":"{}"}}`),
		chunk(`{}`, "tool_calls"), `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}`)
	client := pipeServer(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, body)
	}))
	c := New(Endpoint{Model: centurion.ModelRef{Provider: "openai", ID: "gpt-4.1"}, BaseURL: "http://model.test/v1", HTTP: client})
	req := Request{Session: "s", System: strings.Repeat("system ", 500), Tools: []ToolSpec{{Name: "read", Description: "reads"}, {Name: "write", Description: "writes"}},
		Messages: []Message{{Role: User, Text: "do it"}}}
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range c.Stream(b.Context(), req) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
