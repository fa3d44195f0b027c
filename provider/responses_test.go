package provider

import (
	stdcmp "cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/guard"
)

// viaItems makes a client ask over /responses.
func viaItems(c *Client) *Client { c.end.Wire = Responses{}; return c }

func added(place int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, place, item)
}

func ended(place int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, place, item)
}

func piece(kind string, place int, delta string) string {
	return fmt.Sprintf(`{"type":"response.%s.delta","item_id":"i%d","output_index":%d,"delta":%q}`, kind, place, place, delta)
}

func over(fields string) string {
	return `{"type":"response.completed","response":{"object":"response","status":"completed"` + fields + `}}`
}

func fn(id, name, args string) string {
	return fmt.Sprintf(`{"type":"function_call","id":"f_%s","call_id":%q,"name":%q,"arguments":%q}`, id, id, name, args)
}

// numbered gives events their places, as OpenAI does.
func numbered(events ...string) []string {
	for i, e := range events {
		events[i] = strings.Replace(e, "{", fmt.Sprintf(`{"sequence_number":%d,`, i), 1)
	}
	return events
}

func TestItems(t *testing.T) {
	a, b := Call{ID: "A", Name: "read", Arguments: `{"p":1}`}, Call{ID: "B", Name: "ls", Arguments: `{"q":2}`}
	text := []string{piece("output_text", 0, "Hel"), piece("output_text", 0, "lo")}
	callA := []string{added(0, fn("A", "read", "")), piece("function_call_arguments", 0, `{"p"`), piece("function_call_arguments", 0, `:1}`), ended(0, fn("A", "read", `{"p":1}`))}
	with := func(list []string, more ...string) []string { return append(slices.Clone(list), more...) }
	tests := []struct {
		name            string
		events          []string
		text, reasoning string
		calls           []Call
		open            []int
		finish          string // default stop
		tokens          centurion.Tokens
	}{
		{name: "text", events: with(text, over(`,"usage":{"input_tokens":100,"output_tokens":50,"total_tokens":150,"input_tokens_details":{"cached_tokens":40},"output_tokens_details":{"reasoning_tokens":30}}`)),
			text: "Hello", tokens: centurion.Tokens{Input: 60, Output: 20, Reasoning: 30, Cache: centurion.CacheUsage{Read: 40}}},
		{name: "text that is told whole only", text: "Hello", events: []string{`{"type":"response.output_text.done","output_index":0,"text":"Hello"}`, over("")}},
		{name: "the end of a text was lost", text: "Hello", events: with(text[:1], `{"type":"response.output_text.done","output_index":0,"text":"Hello"}`,
			ended(0, `{"type":"message","content":[{"type":"output_text","text":"Hello"}]}`), over(""))},
		{name: "nothing but the whole", text: "Hello", calls: []Call{a}, finish: "tool-calls",
			events: []string{over(`,"output":[{"type":"message","content":[{"type":"output_text","text":"Hello"}]},` + fn("A", "read", `{"p":1}`) + `]`)}},
		{name: "the whole lists other places", text: "Hello", events: with([]string{piece("output_text", 2, "Hello"), ended(2, `{"type":"message","content":[{"type":"output_text","text":"Hello"}]}`)},
			over(`,"output":[{"type":"message","content":[{"type":"output_text","text":"Hello"}]}]`))},
		{name: "a call", calls: []Call{a}, finish: "tool-calls", events: with(callA, over(""))},
		{name: "a call and its whole again", calls: []Call{a}, finish: "tool-calls", events: with(callA, over(`,"output":[`+fn("A", "read", `{"p":1}`)+`]`))},
		{name: "a call that only the whole completes", calls: []Call{a}, finish: "tool-calls", events: with(callA[:2], over(`,"output":[`+fn("A", "read", `{"p":1}`)+`]`))},
		{name: "a call without pieces", calls: []Call{a}, finish: "tool-calls", events: []string{ended(0, fn("A", "read", `{"p":1}`)), over("")}},
		{name: "two calls at once", calls: []Call{a, b}, finish: "tool-calls", events: []string{added(1, fn("A", "read", "")), added(2, fn("B", "ls", "")),
			piece("function_call_arguments", 2, `{"q"`), piece("function_call_arguments", 1, `{"p":1}`), piece("function_call_arguments", 2, `:2}`),
			ended(1, fn("A", "read", `{"p":1}`)), ended(2, fn("B", "ls", `{"q":2}`)), over("")}},
		{name: "two calls at the same place", calls: []Call{a, b}, finish: "tool-calls", events: with(callA, added(0, fn("B", "ls", "")), ended(0, fn("B", "ls", `{"q":2}`)), over(""))},
		{name: "by ids and not by places", calls: []Call{a, b}, finish: "tool-calls", events: func() (out []string) {
			for _, e := range []string{added(1, fn("A", "read", "")), added(2, fn("B", "ls", "")),
				`{"type":"response.function_call_arguments.delta","item_id":"f_B","delta":"{\"q\""}`, `{"type":"response.function_call_arguments.delta","item_id":"f_A","delta":"{\"p\":1}"}`,
				`{"type":"response.function_call_arguments.delta","item_id":"f_B","delta":":2}"}`, over("")} {
				out = append(out, strings.NewReplacer(`"output_index":1,`, "", `"output_index":2,`, "").Replace(e))
			}
			return out
		}()},
		{name: "pieces behind the end of their call", calls: []Call{a}, finish: "tool-calls", events: with(callA, piece("function_call_arguments", 0, "}"), over(""))},
		{name: "only the output is counted", text: "Hello", events: with(text, over(`,"usage":{"output_tokens":5}`)), tokens: centurion.Tokens{Output: 5}},
		{name: "no arguments", calls: []Call{{ID: "A", Name: "read", Arguments: "{}"}}, finish: "tool-calls", events: []string{added(0, fn("A", "read", "")), ended(0, fn("A", "read", "")), over("")}},
		{name: "the name comes late", calls: []Call{a}, finish: "tool-calls", events: with(callA[1:], over(""))},
		{name: "input that is no JSON", calls: []Call{{ID: "A", Name: "sql", Arguments: `{"input":"SELECT"}`}}, finish: "tool-calls", events: []string{
			added(0, `{"type":"custom_tool_call","call_id":"A","name":"sql","input":""}`), piece("custom_tool_call_input", 0, "SEL"),
			ended(0, `{"type":"custom_tool_call","call_id":"A","name":"sql","input":"SELECT"}`), over("")}},
		{name: "events told twice", text: "Hello", calls: []Call{a}, finish: "tool-calls", events: func() []string {
			var twice []string
			for _, e := range numbered(with(callA, piece("output_text", 1, "Hel"), piece("output_text", 1, "lo"), over(""))...) {
				twice = append(twice, e, e)
			}
			return twice
		}()},
		{name: "reasoning", reasoning: "First.\n\nSecond.", text: "a", events: []string{added(0, `{"type":"reasoning","id":"r","summary":[]}`),
			`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"First."}`,
			`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"Sec"}`,
			ended(0, `{"type":"reasoning","id":"r","summary":[{"text":"First."},{"text":"Second."}],"encrypted_content":"x"}`), piece("output_text", 1, "a"), over("")}},
		{name: "reasoning without a summary", reasoning: "hm", events: []string{`{"type":"response.reasoning_text.delta","output_index":0,"delta":"hm"}`, over("")}},
		{name: "refused", text: "No.", finish: "content-filter", events: []string{piece("refusal", 0, "No."), over("")}},
		{name: "refused, said at its end only", text: "No.", finish: "content-filter", events: []string{`{"type":"response.refusal.done","output_index":0,"refusal":"No."}`, over("")}},
		{name: "refused, in the whole only", text: "No.", finish: "content-filter", events: []string{ended(0, `{"type":"message","content":[{"type":"refusal","refusal":"No."}]}`), over("")}},
		{name: "ends of reasoning were lost", reasoning: "First.\n\nhm", events: []string{`{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"Fi"}`,
			`{"type":"response.reasoning_summary_text.done","output_index":0,"text":"First."}`, `{"type":"response.reasoning_text.done","output_index":0,"text":"hm"}`, over("")}},
		{name: "reasoning in the whole only", reasoning: "hm", events: []string{ended(0, `{"type":"reasoning","id":"r","content":[{"type":"reasoning_text","text":"hm"}]}`), over("")}},
		{name: "a piece behind the end of its text", text: "Hello", events: []string{ended(0, `{"type":"message","content":[{"text":"Hello"}]}`), piece("output_text", 0, "lo"), over("")}},
		{name: "at the token limit", text: "Hello", calls: []Call{a, {ID: "B", Name: "ls", Arguments: `{"q"`}}, open: []int{1}, finish: "length",
			events: with(callA, added(1, fn("B", "ls", "")), piece("function_call_arguments", 1, `{"q"`), piece("output_text", 2, "Hello"),
				`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`)},
		{name: "filtered", text: "Hello", finish: "content-filter", events: with(text, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`)},
		{name: "incomplete, nobody knows why", text: "Hello", finish: "unknown", events: with(text, `{"type":"response.incomplete","response":{"status":"incomplete"}}`)},
		{name: "events that nobody knows", text: "Hello", events: with(text, `{"type":"response.web_search_call.searching","output_index":1}`, `{}`, `{"type":7,"delta":{}}`, over(""))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := collect(t, t.Context(), viaItems(canned(strings.NewReader(cut(tt.events...)))), Request{})
			if r.err != nil {
				t.Fatal(r.err)
			}
			if r.text != tt.text || r.reasoning != tt.reasoning || r.finish != stdcmp.Or(tt.finish, "stop") || r.tokens != tt.tokens {
				t.Errorf("got %+v", r)
			}
			if d := cmp.Diff(tt.calls, r.calls); d != "" {
				t.Error(d)
			}
			for i := range r.calls {
				if r.ended[i] == slices.Contains(tt.open, i) {
					t.Errorf("call %d ended: %v", i, r.ended[i])
				}
			}
		})
	}
}

// An answer that did not stream is read as well.
func TestItemsInOneDocument(t *testing.T) {
	body := `{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hello"}]}],"usage":{"input_tokens":3,"output_tokens":4}}`
	if r := collect(t, t.Context(), viaItems(canned(strings.NewReader(body))), Request{}); r.err != nil || r.text != "Hello" || r.finish != "stop" || r.tokens.Output != 4 {
		t.Errorf("got %+v", r)
	}
}

// R8: whatever breaks a stream has an end that says what it is, and no call of it may be run.
func TestBrokenItems(t *testing.T) {
	begun := added(0, fn("A", "rm", ""))
	whole := ended(0, fn("A", "rm", `{}`))
	tests := []struct {
		name, body string
		kind       centurion.Kind
		status     int
		says       string
	}{
		{name: "closed", body: cut(begun, whole), kind: centurion.KindStreamCut, says: "without a finish reason"},
		{name: "[DONE] and no end", body: sse(begun, whole), kind: centurion.KindStreamCut},
		{name: "nothing at all", kind: centurion.KindStreamCut, says: "before it began"},
		{name: "ended in a line", body: cut(begun, whole) + `data: {"type":"response.comp`, kind: centurion.KindStreamCut, says: "not JSON"},
		{name: "not JSON", body: cut(begun, `{"type":}`), kind: centurion.KindStreamCut},
		{name: "a call without its end", body: cut(begun, piece("function_call_arguments", 0, `{"a`), over("")), kind: centurion.KindStreamCut, says: "events were lost"},
		{name: "a call without a name", body: cut(piece("function_call_arguments", 0, `{}`), over("")), kind: centurion.KindStreamCut, says: "without a name"},
		{name: "a lost piece", body: cut(begun, piece("function_call_arguments", 0, `"b":1}`), ended(0, fn("A", "rm", `{"a":0,"b":1}`)), over("")), kind: centurion.KindStreamCut, says: "events were lost"},
		{name: "pieces that changed places", body: cut(begun, piece("function_call_arguments", 0, `:1}`), piece("function_call_arguments", 0, `{"a"`),
			`{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"a\":1}"}`, over("")), kind: centurion.KindStreamCut, says: "events were lost"},
		{name: "failed", body: cut(begun, `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"oh"}}}`), kind: centurion.KindOverloaded, says: "oh"},
		{name: "failed without a word", body: cut(`{"type":"response.failed","response":{"status":"failed"}}`), kind: centurion.KindOverloaded, says: "broke the answer off"},
		{name: "the end says nothing", body: cut(begun, whole, `{"type":"response.completed"}`), kind: centurion.KindOverloaded},
		{name: "cancelled", body: cut(`{"type":"response.cancelled","response":{"status":"cancelled"}}`), kind: centurion.KindOverloaded},
		{name: "refused prompt", body: cut(`{"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"flagged"}}}`), kind: centurion.KindRefusal, says: "flagged"},
		{name: "an object that is an error", body: cut(begun, `{"object":"error","code":"rate_limit_exceeded","message":"slow"}`), kind: centurion.KindRateLimit, says: "slow"},
		{name: "no quota", body: cut(`{"type":"error","sequence_number":2,"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"pay"}}`), kind: centurion.KindBudget, says: "pay"},
		{name: "error beside its words", body: cut(begun, `{"type":"error","code":"rate_limit_exceeded","message":"slow","param":null}`), kind: centurion.KindRateLimit, says: "slow"},
		{name: "too many, before anything", body: cut(`{"type":"error","code":"rate_limit_exceeded","message":"slow"}`), kind: centurion.KindRateLimit, status: 429},
		{name: "event: error", body: "event: error\ndata: {\"type\":\"error\",\"code\":\"context_length_exceeded\",\"message\":\"long\"}\n\n", kind: centurion.KindOverflow, says: "long"},
		{name: "chunks of the other wire", body: sse(say("a"), chunk(`{}`, "stop")), kind: centurion.KindStreamCut},
		{name: "a page", body: "<html>", kind: centurion.KindConfig},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := viaItems(canned(strings.NewReader(tt.body)))
			c.end.MaxRetries = -1
			r := collect(t, t.Context(), c, Request{})
			e, ok := errors.AsType[*centurion.Error](r.err)
			if !ok {
				t.Fatalf("got error %v and %+v", r.err, r)
			}
			if e.Kind != tt.kind || tt.status != 0 && e.Status != tt.status || e.Op != "call openai/gpt-4.1" || !strings.Contains(e.Error(), tt.says) {
				t.Errorf("got %s %d %v", e.Kind, e.Status, e)
			}
			if len(r.ended) != 0 || r.dones != 0 {
				t.Errorf("a call of a broken answer ended: %+v", r)
			}
		})
	}
}

// R7: an answer that is cut anywhere, over either wire, is either whole or an error, and no call of it is complete before the
// whole is.
func TestItemsCutAnywhere(t *testing.T) {
	last := over("")
	body := "event: x\n" + cut(piece("output_text", 0, "a"), added(1, fn("A", "read", "")), piece("function_call_arguments", 1, `{"p":1}`), ended(1, fn("A", "read", `{"p":1}`)), last)
	finished := strings.Index(body, last) + len(last)
	for n := range len(body) {
		r := collect(t, t.Context(), viaItems(canned(strings.NewReader(body[:n]))), Request{})
		if n < finished && (centurion.KindOf(r.err) != centurion.KindStreamCut || len(r.ended) > 0) {
			t.Fatalf("cut at %d of %d: %v, %+v", n, finished, r.err, r)
		}
		if n >= finished && (r.err != nil || !r.ended[0]) {
			t.Fatalf("cut at %d of %d: %v, %+v", n, finished, r.err, r)
		}
	}
}

// The body is what the endpoint documents: nothing is kept there, schemas are not strict, and what was thought goes back in
// its place, unchanged, before what came of it.
func TestItemsRequest(t *testing.T) {
	thought := func(id string) map[string]any {
		return map[string]any{"openai": map[string]any{"itemId": id, "reasoningEncryptedContent": "sealed " + id}}
	}
	req := Request{Session: "ses", System: "Be <brief>.", MaxOutput: 9, Temperature: new(0.5), Tools: []ToolSpec{{Name: "read", Description: "d"}}, Messages: []Message{
		{Role: User, Text: "go"},
		{Role: Assistant, Text: "One.Two.", Reasoning: "r", Calls: []Call{{"A", "read", `{"p":1}`}, {"B", "read", `{"p"`}}, Thoughts: []Thought{
			{Text: "think", Metadata: thought("r1")}, {Text: "no metadata", Said: 4}, {Metadata: thought("r2"), Said: 4, Calls: 0},
			{Metadata: thought("r3"), Said: 8, Calls: 1}, {Metadata: thought("r4"), Said: 8, Calls: 2}}},
		{Role: Tool, CallID: "A", Text: "x"}, {Role: Tool, CallID: "B"},
	}}
	var got struct {
		body   map[string]any
		path   string
		header http.Header
	}
	c := New(Endpoint{Model: centurion.ModelRef{Provider: "openai", ID: "gpt-5.5"}, BaseURL: "http://model.test/v1/", APIKey: "sk", Wire: Responses{},
		Extra: map[string]any{"input": "mine", "reasoning": map[string]any{"effort": "low"}},
		HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			got.path, got.header = r.URL.Path, r.Header
			b, _ := io.ReadAll(r.Body)
			if int64(len(b)) != r.ContentLength {
				t.Errorf("%d bytes, told as %d", len(b), r.ContentLength)
			}
			if err := json.Unmarshal(b, &got.body); err != nil {
				t.Error(err)
			}
			return answer(200, "text/event-stream", cut(over(""))), nil
		})}})
	if r := collect(t, t.Context(), c, req); r.err != nil {
		t.Fatal(r.err)
	}
	var want map[string]any
	if err := json.Unmarshal([]byte(`{"model":"gpt-5.5","instructions":"Be <brief>.","stream":true,"store":false,"include":["reasoning.encrypted_content"],
		"max_output_tokens":9,"prompt_cache_key":"ses","reasoning":{"effort":"low"},
		"tools":[{"type":"function","name":"read","description":"d","parameters":{"type":"object","properties":{}},"strict":false}],
		"input":[{"role":"user","content":[{"type":"input_text","text":"go"}]},
		{"type":"reasoning","id":"r1","encrypted_content":"sealed r1","summary":[{"type":"summary_text","text":"think"}]},
		{"role":"assistant","content":[{"type":"output_text","text":"One."}]},
		{"type":"reasoning","id":"r2","encrypted_content":"sealed r2","summary":[]},
		{"role":"assistant","content":[{"type":"output_text","text":"Two."}]},
		{"type":"function_call","call_id":"A","name":"read","arguments":"{\"p\":1}"},
		{"type":"reasoning","id":"r3","encrypted_content":"sealed r3","summary":[]},
		{"type":"function_call","call_id":"B","name":"read","arguments":"{}"},
		{"type":"function_call_output","call_id":"A","output":"x"},
		{"type":"function_call_output","call_id":"B","output":"(empty)"}]}`), &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got.body); d != "" {
		t.Error(d)
	}
	if got.path != "/v1/responses" || got.header.Get("Authorization") != "Bearer sk" || got.header.Get("X-Session-Id") != "ses" {
		t.Errorf("asked %s with %v", got.path, got.header)
	}
	if q := responsesBody(centurion.ModelRef{Provider: "corp", ID: "gpt-4.1"}, req, nil); q.Include != nil || q.CacheKey != "" || q.Temperature == nil {
		t.Errorf("a model that does not reason, elsewhere, is asked %+v", q)
	}
}

// Reasoning that has nothing sealed has an end if there was any.
func TestItemsOpenReasoning(t *testing.T) {
	for name, tt := range map[string]struct {
		item string
		ends int
	}{"thought": {`{"type":"reasoning","id":"r","summary":[{"text":"hm"}]}`, 1}, "nothing": {`{"type":"reasoning","id":"r","summary":[]}`, 0}} {
		ends := 0
		for d, err := range viaItems(canned(strings.NewReader(cut(ended(0, tt.item), over(""))))).Stream(t.Context(), Request{}) {
			if err != nil {
				t.Fatal(err)
			}
			if d.Type == ReasoningEnd {
				ends++
			}
		}
		if ends != tt.ends {
			t.Errorf("%s: reasoning ended %d times", name, ends)
		}
	}
}

// What a piece of reasoning needs to go back with comes once, at its end.
func TestItemsSealedReasoning(t *testing.T) {
	body := cut(added(0, `{"type":"reasoning","id":"r","encrypted_content":"early"}`), piece("reasoning_summary_text", 0, "hm"),
		ended(0, `{"type":"reasoning","id":"r","summary":[{"text":"hm"}],"encrypted_content":"late"}`), ended(0, `{"type":"reasoning","id":"r","encrypted_content":"again"}`), piece("output_text", 1, "a"), over(""),
		piece("output_text", 1, "b"))
	var got []Delta
	for d, err := range viaItems(canned(strings.NewReader(body))).Stream(t.Context(), Request{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d)
	}
	want := []Delta{{Type: Reasoning, Text: "hm"}, {Type: ReasoningEnd, Metadata: map[string]any{"openai": map[string]any{"itemId": "r", "reasoningEncryptedContent": "late"}}},
		{Type: Text, Text: "a"}, {Type: Done, Finish: "stop"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// R9: a stream that stalls after its first piece, and one with a byte in ten seconds, end when the idle timeout says so;
// nothing shortens it and nothing but silence ends it. Both wires share the clock.
func TestStallAfterFirstPiece(t *testing.T) {
	for api, wire := range map[string]Wire{"chat": nil, "responses": Responses{}} {
		for _, tt := range []struct {
			name  string
			pause time.Duration // between two bytes; 0: silence
			want  time.Duration
		}{
			{name: "silence", want: 120 * time.Second},
			{name: "a byte in ten seconds", pause: 10 * time.Second, want: 10 * time.Minute},
			{name: "a byte in three minutes", pause: 3 * time.Minute, want: 120 * time.Second},
		} {
			t.Run(api+" "+tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					first := map[string]string{"chat": cut(say("a")), "responses": cut(piece("output_text", 0, "a"))}[api]
					client := pipeServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						_, _ = io.Copy(io.Discard, r.Body)
						_, _ = io.WriteString(w, first)
						w.(http.Flusher).Flush()
						for tt.pause > 0 && guard.Sleep(r.Context(), tt.pause) == nil {
							_, _ = io.WriteString(w, ":")
							w.(http.Flusher).Flush()
						}
						<-r.Context().Done()
					}))
					c := New(Endpoint{Model: centurion.ModelRef{Provider: "p", ID: "m"}, BaseURL: "http://model.test/v1", HTTP: client, Wire: wire})
					start := time.Now()
					lived := start
					r := collect(t, t.Context(), c, Request{Alive: func() { lived = time.Now() }})
					if tt.pause > 0 && time.Since(lived) > max(tt.pause, 120*time.Second) {
						t.Errorf("of the last %s no sign of life was told", time.Since(lived))
					}
					if took := time.Since(start); centurion.KindOf(r.err) != centurion.KindStall || r.text != "a" || took < tt.want-time.Second || took > tt.want+time.Second {
						t.Errorf("ended after %s with %v", took, r.err)
					}
					client.CloseIdleConnections()
					synctest.Wait()
				})
			})
		}
	}
}

// R8: an event of ten megabytes costs no more than 64 more.
func TestItemsLongLine(t *testing.T) {
	const size = 10 << 20
	body := strings.NewReader(cut(piece("output_text", 0, strings.Repeat("x", size)), over("")))
	c := viaItems(canned(body))
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

func FuzzItems(f *testing.F) {
	for _, s := range []string{"", "data: [DONE]\n\n", cut(over("")), cut(piece("output_text", 0, "a"), over("")), cut(piece("output_text", 0, "a")),
		cut(added(0, fn("A", "read", "")), piece("function_call_arguments", 0, `{}`), ended(0, fn("A", "read", `{}`)), over("")),
		cut(added(0, fn("A", "read", "")), ended(0, fn("A", "ls", `{"a":1}`)), added(0, fn("B", "read", "")), over(`,"output":[`+fn("A", "x", "{}")+`]`)),
		cut(`{"type":"response.output_text.delta","output_index":-1,"content_index":-5,"delta":"\ud800"}`), `{"object":"response","status":"completed"}`,
		cut(ended(0, `{"type":"reasoning","summary":[{}],"encrypted_content":"x"}`), over("")), cut(`{"type":"response.failed","response":[]}`),
		"event: error\ndata: {}\n\n", cut(`{"type":"response.incomplete","response":{"status":"incomplete"}}`)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := viaItems(canned(strings.NewReader(string(b))))
		c.end.MaxRetries = -1
		r := collect(t, t.Context(), c, Request{})
		if r.err != nil && len(r.ended) > 0 || r.dones > 1 {
			t.Fatalf("got %+v", r)
		}
		ids := map[string]bool{}
		for i, call := range r.calls {
			if ids[call.ID] || r.ended[i] && (call.Name == "" || !json.Valid([]byte(call.Arguments)) && r.finish != "tool-calls") {
				t.Fatalf("call %+v, ended %v", call, r.ended[i])
			}
			ids[call.ID] = true
		}
	})
}

func BenchmarkItems(b *testing.B) {
	body := cut(piece("output_text", 0, "Hello"), added(1, fn("A", "read", "")), piece("function_call_arguments", 1, "{}"), ended(1, fn("A", "read", "{}")),
		over(`,"usage":{"input_tokens":10,"output_tokens":5}`))
	client := pipeServer(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, body)
	}))
	c := New(Endpoint{Model: centurion.ModelRef{Provider: "openai", ID: "gpt-5"}, BaseURL: "http://model.test/v1", HTTP: client, Wire: Responses{}})
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
