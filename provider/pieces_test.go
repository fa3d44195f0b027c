package provider

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"centurion"
)

// Whenever many come at once to a gate that is open again they go one by one, slowly at first and faster the longer it is open.
func TestGateSpacesWhoComesLater(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{5 * time.Second: 39 * time.Second / 7 * 2, 35 * time.Second: 2 * time.Second, 66 * time.Second: 0} {
		synctest.Test(t, func(t *testing.T) {
			const sessions = 40
			var g Gate
			g.Close(time.Now().Add(time.Second))
			time.Sleep(time.Second + after)
			start := time.Now()
			var mu sync.Mutex
			var gone []time.Duration
			var wg sync.WaitGroup
			for range sessions {
				wg.Go(func() {
					if err := g.Wait(t.Context()); err != nil {
						t.Error(err)
					}
					mu.Lock()
					gone = append(gone, time.Since(start))
					mu.Unlock()
				})
			}
			wg.Wait()
			slices.Sort(gone)
			if last := gone[sessions-1]; last < want*7/10 || last > want*13/10 {
				t.Errorf("%s after it opened the last of %d goes after %s, want about %s", after, sessions, last, want)
			}
		})
	}
}

// Of several files each is sent, in its order: those of results before those of the person.
func TestSeveralFiles(t *testing.T) {
	file := func(name string) centurion.File {
		return centurion.File{Mime: "image/png", Name: name, Data: []byte(name)}
	}
	msgs := []Message{{Role: Assistant, Calls: []Call{{ID: "1", Name: "a", Arguments: "{}"}}}, {Role: Tool, CallID: "1", Text: "two", Files: []centurion.File{file("1"), file("2")}},
		{Role: User, Text: "and", Files: []centurion.File{file("3"), file("4")}}}
	const one, two, three, four = `"data:image/png;base64,MQ=="`, `"data:image/png;base64,Mg=="`, `"data:image/png;base64,Mw=="`, `"data:image/png;base64,NA=="`
	for name, wire := range map[string]Wire{"chat": chat{}, "openai": Responses{}, "other": Responses{}} {
		_, body, err := wire.Request(centurion.ModelRef{Provider: name, ID: "m"}, Request{Messages: msgs}, nil)
		if err != nil {
			t.Fatal(err)
		}
		at := -1
		for _, url := range []string{one, two, three, four} {
			if next := strings.Index(string(body), url); next <= at || strings.Count(string(body), url) != 1 {
				t.Errorf("%s: %s is not sent once and in its place: %s", name, url, body)
			} else {
				at = next
			}
		}
	}
}

// An error field that is set to nothing is no error.
func TestNoErrorAtAll(t *testing.T) {
	for _, none := range []string{"null", `""`, "{}", "[]", "false", "0"} {
		for _, c := range []string{`{"error":` + none + `,"choices":[{"delta":{"content":"a"}}]}`, `{"choices":[{"error":` + none + `,"delta":{"content":"a"}}]}`} {
			if r := collect(t, t.Context(), canned(strings.NewReader(sse(c, chunk(`{}`, "stop")))), Request{}); r.err != nil || r.text != "a" {
				t.Errorf("%s: %+v", c, r)
			}
		}
	}
}

// A provider without an address says so at whatever it is asked, with where to put one.
func TestNoAddress(t *testing.T) {
	c := New(Endpoint{Model: centurion.ModelRef{Provider: "acme", ID: "m"}})
	_, err := c.Models(t.Context())
	for _, err := range []error{err, collect(t, t.Context(), c, Request{}).err} {
		want := &centurion.Error{Op: "call acme/m", Kind: centurion.KindConfig, Msg: "the provider has no base URL", Hint: "set provider.acme.options.baseURL in opencode.json"}
		if d := cmp.Diff(error(want), err); d != "" {
			t.Error(d)
		}
	}
	c = New(Endpoint{Model: centurion.ModelRef{Provider: "acme", ID: "m"}, BaseURL: "http://model.test", Extra: map[string]any{"a": func() {}}})
	if err := collect(t, t.Context(), c, Request{}).err; err == nil || !strings.HasPrefix(err.Error(), `call acme/m: the extra field "a" is not JSON`) {
		t.Errorf("%v", err)
	}
}

// What the configuration says of a field counts instead of ours, and stands there once.
func TestFieldsOfTheConfiguration(t *testing.T) {
	r := Request{Session: "s", System: "sys", MaxOutput: 9, Temperature: new(0.5), Messages: []Message{{Role: User, Text: "hi"}}}
	extra := map[string]any{"include": []string{"x"}, "store": true, "instructions": "i", "temperature": 1, "max_output_tokens": 3, "prompt_cache_key": "k", "model": "no", "input": "no", "stream": false}
	const input = `"stream":true,"input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}]}` + "\n"
	for name, tt := range map[string]struct {
		extra map[string]any
		model string
		want  string
	}{
		"configured": {extra, "gpt-5", `{"include":["x"],"instructions":"i","max_output_tokens":3,"prompt_cache_key":"k","store":true,"temperature":1,"model":"gpt-5",` + input},
		"a model that reasons": {nil, "gpt-5", `{"model":"gpt-5","instructions":"sys","store":false,"include":["reasoning.encrypted_content"],"max_output_tokens":9,"prompt_cache_key":"s",` +
			input},
		"codex":                {nil, "a/codex-mini", `{"model":"a/codex-mini","instructions":"sys","store":false,"include":["reasoning.encrypted_content"],"max_output_tokens":9,"temperature":0.5,"prompt_cache_key":"s",` + input},
		"one that does not":    {nil, "gpt-4.1", `{"model":"gpt-4.1","instructions":"sys","store":false,"max_output_tokens":9,"temperature":0.5,"prompt_cache_key":"s",` + input},
		"one with a near name": {nil, "codexia", `{"model":"codexia","instructions":"sys","store":false,"max_output_tokens":9,"temperature":0.5,"prompt_cache_key":"s",` + input},
	} {
		path, body, err := Responses{}.Request(centurion.ModelRef{Provider: "openai", ID: tt.model}, r, tt.extra)
		var got, want map[string]any
		if err != nil || path != "/responses" || lenient(body, &got) != nil || lenient([]byte(tt.want), &want) != nil {
			t.Fatalf("%s: %s, %s, %v", name, path, body, err)
		}
		if d := cmp.Diff(want, got); d != "" || len(body) != len(tt.want) {
			t.Errorf("%s: %s\nwant %s\n%s", name, body, tt.want, d)
		}
	}
}

// Pieces of an answer come one after the other as they do from the provider: a call begins before its arguments are known.
func TestOrderOfPieces(t *testing.T) {
	events := []string{added(0, fn("A", "read", "")), piece("output_text", 1, "a"), added(2, `{"type":"custom_tool_call","call_id":"B","name":"sql","input":""}`),
		piece("custom_tool_call_input", 2, "SEL"), piece("function_call_arguments", 0, `{"p"`), piece("output_text", 1, "b"), piece("function_call_arguments", 0, `:1}`),
		ended(2, `{"type":"custom_tool_call","call_id":"B","name":"sql","input":"SELECT"}`), ended(0, fn("A", "read", `{"p":1}`)), over(`,"usage":{"input_tokens":3,"output_tokens":4}`)}
	var got []Delta
	for d, err := range viaItems(canned(strings.NewReader(cut(events...)))).Stream(t.Context(), Request{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d)
	}
	want := []Delta{{Type: CallStart, CallID: "A", Name: "read"}, {Type: Text, Text: "a"}, {Type: CallInput, Text: `{"p"`}, {Type: Text, Text: "b"}, {Type: CallInput, Text: ":1}"},
		{Type: CallStart, Index: 1, CallID: "B", Name: "sql"}, {Type: CallInput, Index: 1, Text: `{"input":"SELECT"}`}, {Type: CallEnd}, {Type: CallEnd, Index: 1},
		{Type: Done, Finish: centurion.FinishToolCalls, Tokens: centurion.Tokens{Input: 3, Output: 4}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Which fragments are one call and which are two, at the odd places of real endpoints.
func TestWhoseFragment(t *testing.T) {
	for name, tt := range map[string]struct {
		fragments []string
		want      string // name and arguments of each call
	}{
		"a call with an id behind one without": {[]string{`{"index":0,"function":{"name":"read","arguments":"{\"p\":1}"}}`, `{"index":0,"id":"B","function":{"name":"ls","arguments":"{\"q\":2}"}}`}, `read{"p":1} ls{"q":2}`},
		"an entry that is empty at first":      {[]string{`{"index":0}`, `{"index":0,"id":"A","function":{"name":"read","arguments":"{\"p\":1}"}}`}, `read{"p":1}`},
		"the same call with other arguments":   {[]string{`{"index":0,"id":"A","function":{"name":"read","arguments":"{\"p\":1}"}}`, `{"index":0,"id":"A","function":{"name":"read","arguments":"{\"p\":2}"}}`}, `read{"p":1} read{"p":2}`},
		"an id that comes with the end":        {[]string{`{"index":0,"function":{"name":"read","arguments":"{\"p\""}}`, `{"index":0,"id":"A","function":{"arguments":":1}"}}`}, `read{"p":1}`},
	} {
		events := make([]string, 0, len(tt.fragments)+1)
		for _, f := range tt.fragments {
			events = append(events, tool(f))
		}
		r := collect(t, t.Context(), canned(strings.NewReader(sse(append(events, chunk(`{}`, "tool_calls"))...))), Request{})
		var got []string
		for _, c := range r.calls {
			got = append(got, c.Name+c.Arguments)
		}
		if r.err != nil || strings.Join(got, " ") != tt.want || len(r.ended) != len(r.calls) {
			t.Errorf("%s: %q, %+v", name, got, r)
		}
	}
	whole := cut(added(1, fn("A", "read", "")), added(2, fn("B", "ls", "")), over(`,"output":[`+fn("A", "read", `{"p":1}`)+`,`+fn("B", "ls", `{"q":2}`)+`]`))
	if r := collect(t, t.Context(), viaItems(canned(strings.NewReader(whole))), Request{}); r.err != nil || len(r.calls) != 2 || r.calls[0].Arguments != `{"p":1}` || r.calls[1].Arguments != `{"q":2}` {
		t.Errorf("two calls that only the whole completes: %+v", r)
	}
}

// Where thoughts are said to stand behind the end of an answer, the answer goes back whole all the same.
func TestThoughtsBehindTheEnd(t *testing.T) {
	thought := Thought{Metadata: map[string]any{"openai": map[string]any{"itemId": "r", "reasoningEncryptedContent": "x"}}, Said: 99, Calls: 0}
	got := appendAnswer(nil, Message{Role: Assistant, Text: "ab", Calls: []Call{{ID: "A", Name: "n", Arguments: "{}"}}, Thoughts: []Thought{thought, {Metadata: thought.Metadata, Said: 0, Calls: 9}}})
	want := []any{itemMessage{Assistant, []any{itemText{"output_text", "ab"}}}, itemThought{Type: "reasoning", ID: "r", Encrypted: "x", Summary: []itemText{}},
		itemCall{Type: "function_call", CallID: "A", Name: "n", Arguments: "{}"}, itemThought{Type: "reasoning", ID: "r", Encrypted: "x", Summary: []itemText{}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
