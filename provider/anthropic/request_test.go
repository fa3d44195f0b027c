package anthropic_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/provider"
	"centurion/provider/anthropic"
)

// conversation is one with n calls behind it.
func conversation(n int) provider.Request {
	r := provider.Request{Session: "ses_1", Parent: "ses_0", System: "You are the Worker.",
		Tools:    []provider.ToolSpec{{Name: "read", Description: "reads <a> file", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "list"}},
		Messages: []provider.Message{{Role: provider.User, Text: "Do it."}}}
	for i := range n {
		id := fmt.Sprintf("toolu_%d", i)
		thought := provider.Thought{Text: fmt.Sprintf("Step %d.", i), Metadata: signed(fmt.Sprintf("s%d", i))}
		r.Messages = append(r.Messages, provider.Message{Role: provider.Assistant, Text: "I look.", Thoughts: []provider.Thought{thought},
			Calls: []provider.Call{{ID: id, Name: "read", Arguments: `{"p":"a"}`}}}, provider.Message{Role: provider.Tool, CallID: id, Text: "text"})
	}
	return r
}

// sent returns the body of a request, and its fields.
func sent(t testing.TB, w anthropic.Wire, r provider.Request, extra map[string]any) (string, map[string]any) {
	t.Helper()
	path, body, err := w.Request(centurion.ModelRef{Provider: "anthropic", ID: "claude-test"}, r, extra)
	if err != nil || path != "/messages" {
		t.Fatalf("path %q, %v", path, err)
	}
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		t.Fatal(err)
	}
	return string(body), fields
}

// OPAL-25, LOOP-36, OPAL-65: a whole request as it stands on the wire. All results of an answer are in the one message that
// follows it; thinking stands where it stood, with its signature; the cache is told four borders.
func TestRequest(t *testing.T) {
	redacted := provider.Thought{Metadata: map[string]any{"anthropic": map[string]any{"redactedData": "opaque"}}}
	second := provider.Thought{Text: "And?", Metadata: signed("s2")}
	second.Said = len("One. ")
	third := provider.Thought{Text: "Third.", Metadata: signed("s3")}
	third.Said, third.Calls = len("One. Two."), 1
	foreign := provider.Thought{Text: "not ours", Metadata: map[string]any{"openai": map[string]any{"id": "x"}}}
	r := provider.Request{System: "You are the Worker.", MaxOutput: 100, Temperature: new(1.5),
		Tools: []provider.ToolSpec{{Name: "list"}, {Name: "read", Description: "reads <a> file", Schema: json.RawMessage(`{"type":"object"}`)}},
		Messages: []provider.Message{
			{Role: provider.User, Text: "Do it."},
			{Role: provider.Assistant, Text: "One. Two.", Reasoning: "First.And?Third.", Thoughts: []provider.Thought{
				{Text: "First.", Metadata: signed("s1")}, redacted, foreign, second, third},
				Calls: []provider.Call{{ID: "toolu_1", Name: "read", Arguments: `{ "p": "<a>" }`}, {ID: "functions.read:1", Name: "list", Arguments: "no"}}},
			{Role: provider.Tool, CallID: "toolu_1", Text: "text"},
			{Role: provider.Tool, CallID: "functions.read:1"},
			{Role: provider.User, Text: "Go on."},
			{Role: provider.User, Text: "<status>\nnow\n</status>", Fleeting: true},
		}}
	got, _ := sent(t, anthropic.Wire{MaxTokens: 64000}, r, nil)
	want := `{"model":"claude-test","max_tokens":100,"stream":true,"temperature":1,"tool_choice":{"type":"auto"},` +
		`"tools":[{"name":"list","input_schema":{"type":"object","properties":{}}},{"name":"read","description":"reads <a> file","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],` +
		`"system":[{"type":"text","text":"You are the Worker.","cache_control":{"type":"ephemeral"}}],"messages":[` +
		`{"role":"user","content":[{"type":"text","text":"Do it.","cache_control":{"type":"ephemeral"}}]},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"First.","signature":"s1"},{"type":"redacted_thinking","data":"opaque"},{"type":"text","text":"One. "},` +
		`{"type":"thinking","thinking":"And?","signature":"s2"},{"type":"text","text":"Two."},{"type":"tool_use","id":"toolu_1","name":"read","input":{"p":"<a>"}},` +
		`{"type":"thinking","thinking":"Third.","signature":"s3"},{"type":"tool_use","id":"functions_read_1","name":"list","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"text"},{"type":"tool_result","tool_use_id":"functions_read_1"},` +
		`{"type":"text","text":"Go on.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"<status>\nnow\n</status>"}]}]}`
	if d := cmp.Diff(strings.Split(want, `},`), strings.Split(got, `},`)); d != "" {
		t.Error(d)
	}
}

// The API refuses a request with more than four borders; the two of the messages stand at the newest that will be repeated.
func TestCacheBorders(t *testing.T) {
	for name, tt := range map[string]struct {
		req provider.Request
		at  string // of the messages, those with a border
	}{
		"long":             {conversation(5), "8 10"},
		"short":            {conversation(0), "0"},
		"a status at last": {provider.Request{Messages: append(conversation(2).Messages, provider.Message{Role: provider.Assistant, Text: "a"}, provider.Message{Role: provider.User, Text: "s", Fleeting: true})}, "2 4"},
	} {
		_, fields := sent(t, anthropic.Wire{}, tt.req, nil)
		var at []string
		for i, m := range fields["messages"].([]any) {
			if s := fmt.Sprint(m); strings.Contains(s, "cache_control") {
				at = append(at, strings.Repeat(fmt.Sprint(i), strings.Count(s, "cache_control")))
			}
		}
		if got := strings.Join(at, " "); got != tt.at {
			t.Errorf("%s: borders at %s, want %s", name, got, tt.at)
		}
	}
}

func TestRequestFields(t *testing.T) {
	hello := []provider.Message{{Role: provider.User, Text: "Hello."}}
	tests := map[string]struct {
		wire  anthropic.Wire
		req   provider.Request
		extra map[string]any
		field string
		want  any
	}{
		"the model's limit":        {anthropic.Wire{MaxTokens: 64000}, provider.Request{Messages: hello}, nil, "max_tokens", 64000.0},
		"no limit known":           {anthropic.Wire{}, provider.Request{Messages: hello}, nil, "max_tokens", 8192.0},
		"less asked":               {anthropic.Wire{MaxTokens: 64000}, provider.Request{Messages: hello, MaxOutput: 10}, nil, "max_tokens", 10.0},
		"more asked than there is": {anthropic.Wire{}, provider.Request{Messages: hello, MaxOutput: 99999}, nil, "max_tokens", 8192.0},
		"no number":                {anthropic.Wire{}, provider.Request{Messages: hello, Temperature: new(math.NaN())}, nil, "temperature", nil},
		"temperature":              {anthropic.Wire{}, provider.Request{Messages: hello, Temperature: new(0.0)}, nil, "temperature", 0.0},
		"no temperature":           {anthropic.Wire{}, provider.Request{Messages: hello}, nil, "temperature", nil},
		"who thinks takes none": {anthropic.Wire{}, provider.Request{Messages: hello, Temperature: new(0.5)},
			map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 2000}}, "temperature", nil},
		"a field more":    {anthropic.Wire{}, provider.Request{Messages: hello}, map[string]any{"top_k": 5}, "top_k", 5.0},
		"a field of ours": {anthropic.Wire{}, provider.Request{Messages: hello}, map[string]any{"max_tokens": 5, "messages": []int{}}, "max_tokens", 5.0},
		"that stays":      {anthropic.Wire{}, provider.Request{Messages: hello}, map[string]any{"stream": false}, "stream", true},
		"the model stays": {anthropic.Wire{}, provider.Request{Messages: hello}, map[string]any{"model": "x"}, "model", "claude-test"},
		"and the tools":   {anthropic.Wire{}, provider.Request{Messages: hello}, map[string]any{"tools": 1}, "tools", nil},
		"another's input": {anthropic.Wire{}, provider.Request{Messages: hello}, map[string]any{"input": 1}, "input", nil},
		"no tools":        {anthropic.Wire{}, provider.Request{Messages: hello}, nil, "tool_choice", nil},
		"no system":       {anthropic.Wire{}, provider.Request{Messages: hello, System: " \n"}, nil, "system", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, _, err := (anthropic.Wire{}).Request(ref, tt.req, map[string]any{"odd": func() {}}); err == nil {
				t.Error("a field that cannot be written was left out without a word")
			}
			_, plain := sent(t, tt.wire, tt.req, nil)
			if _, got := sent(t, tt.wire, tt.req, tt.extra); got[tt.field] != tt.want || !reflect.DeepEqual(got["messages"], plain["messages"]) {
				t.Errorf("%s is %v, not %v", tt.field, got[tt.field], tt.want)
			}
		})
	}
}

// The API refuses empty texts and messages, and roles that do not take turns.
func TestRequestOfOddHistory(t *testing.T) {
	status := "<status>\nnow\n</status>"
	user, assistant := func(s string) provider.Message { return provider.Message{Role: provider.User, Text: s} },
		func(s string) provider.Message { return provider.Message{Role: provider.Assistant, Text: s} }
	now := provider.Message{Role: provider.User, Text: status, Fleeting: true}
	tests := map[string]struct {
		msgs []provider.Message
		want string
	}{
		"empty texts": {[]provider.Message{user(" "), assistant("\n"), user("")}, "user:(empty) | assistant:(empty) | user:(empty)"},
		"thinking alone": {[]provider.Message{user("a"), {Role: provider.Assistant, Thoughts: []provider.Thought{{Text: "hm", Metadata: signed("s")}}}, user("b")},
			"user:a | assistant:[thinking],(empty) | user:b"},
		"thoughts said to be behind the end": {[]provider.Message{user("a"), {Role: provider.Assistant, Text: "bc", Calls: []provider.Call{{ID: "x", Name: "n"}}, Thoughts: []provider.Thought{
			{Text: "hm", Metadata: signed("s"), Said: 99}, {Text: "hm", Metadata: signed("s"), Said: 1, Calls: 99}}}}, "user:a | assistant:bc,[thinking],[tool_use x {}],[thinking]"},
		"text of spaces before a call": {[]provider.Message{user("a"), {Role: provider.Assistant, Text: "\n\n", Calls: []provider.Call{{ID: "x", Name: "n"}}},
			{Role: provider.Tool, CallID: "x"}}, "user:a | assistant:[tool_use x {}] | user:[tool_result]"},
		"ids and arguments of another provider": {[]provider.Message{user("a"), {Role: provider.Assistant, Calls: []provider.Call{{ID: "AZaz09_-", Name: "n", Arguments: `[{"a":1}]`},
			{Name: "n", Arguments: "{"}, {ID: "@[/:.é", Name: "n", Arguments: ` {"p":1} `}}}}, `user:a | assistant:[tool_use AZaz09_- {}],[tool_use call {}],[tool_use ______ {"p":1}]`},
		"the same role twice":      {[]provider.Message{user("a"), user("b"), assistant("c"), assistant("d"), user("e")}, "user:a,b | assistant:c,d | user:e"},
		"a status by itself":       {[]provider.Message{user("a"), assistant("b"), now}, "user:a | assistant:b | user:" + status},
		"a status after results":   {[]provider.Message{user("a"), {Role: provider.Assistant, Calls: []provider.Call{{ID: "x", Name: "n"}}}, {Role: provider.Tool, CallID: "x"}, now}, "user:a | assistant:[tool_use x {}] | user:[tool_result]," + status},
		"a status after a message": {[]provider.Message{user("a"), now}, "user:a," + status},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, fields := sent(t, anthropic.Wire{}, provider.Request{Messages: tt.msgs}, nil)
			var all []string
			for _, m := range fields["messages"].([]any) {
				var blocks []string
				for _, b := range m.(map[string]any)["content"].([]any) {
					b := b.(map[string]any)
					text, _ := b["text"].(string)
					switch b["type"] {
					case "text":
					case "tool_use":
						input, _ := json.Marshal(b["input"])
						text = fmt.Sprintf("[tool_use %s %s]", b["id"], input)
					default:
						text = fmt.Sprintf("[%s]", b["type"])
					}
					blocks = append(blocks, text)
				}
				all = append(all, m.(map[string]any)["role"].(string)+":"+strings.Join(blocks, ","))
			}
			if got := strings.Join(all, " | "); got != tt.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// OPAL-25: the headers of a request, and those of the list of models.
func TestHeaders(t *testing.T) {
	var got []*http.Request
	c := client(func(r *http.Request) (*http.Response, error) {
		got = append(got, r)
		if r.Method == http.MethodGet {
			return respond(200, "application/json", strings.NewReader(`{"data":[{"id":"claude-b"},{"id":"claude-a"}],"has_more":false}`)), nil
		}
		return respond(200, "text/event-stream", strings.NewReader(sse(events(begin, say(0, "a"), reason("end_turn"), stop)...))), nil
	})
	if r := collect(t, c, conversation(1)); r.err != nil {
		t.Fatal(r.err)
	}
	if models, err := c.Models(t.Context()); err != nil || strings.Join(models, " ") != "claude-a claude-b" {
		t.Errorf("models %v, %v", models, err)
	}
	for _, r := range got {
		if r.Header.Get("x-api-key") != "sk-ant-secret" || r.Header.Get("anthropic-version") != "2023-06-01" || r.Header.Get("Authorization") != "" {
			t.Errorf("%s: %v", r.URL, r.Header)
		}
	}
	if r := got[0]; r.URL.String() != "http://model.test/v1/messages" || r.Header.Get("x-session-id") != "ses_1" || r.Header.Get("x-parent-session-id") != "ses_0" ||
		r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: %v", r.URL, r.Header)
	}
}
