package provider

import (
	stdcmp "cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"centurion"
)

// sent returns what a request looks like on the wire.
func sent(t *testing.T, e Endpoint, req Request) (map[string]any, *http.Request) {
	t.Helper()
	var body map[string]any
	var got *http.Request
	e.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if int64(len(b)) != r.ContentLength {
			t.Errorf("%d bytes with a content length of %d", len(b), r.ContentLength)
		}
		again, _ := r.GetBody()
		if b2, _ := io.ReadAll(again); string(b2) != string(b) {
			t.Errorf("sent again it would be %s", b2)
		}
		if err := json.Unmarshal(b, &body); err != nil {
			t.Errorf("%v: %s", err, b)
		}
		got = r
		return answer(200, "text/event-stream", done), nil
	})}
	if e.BaseURL == "" {
		e.BaseURL = "http://model.test/v1"
	}
	if e.Model.Provider == "" {
		e.Model.Provider = "openai"
	}
	if r := collect(t, t.Context(), New(e), req); r.err != nil {
		t.Fatal(r.err)
	}
	return body, got
}

// Traps 7, 8 and 9: what go-openai cannot send by itself.
func TestRequestFields(t *testing.T) {
	zero, some := 0.0, 0.7
	tests := []struct {
		name     string
		provider string
		model    string
		extra    map[string]any
		req      Request
		want     map[string]any // nil: must not be there
	}{
		{name: "plain", model: "gpt-4.1", want: map[string]any{"model": "gpt-4.1", "stream": true, "stream_options": map[string]any{"include_usage": true}, "temperature": nil, "max_tokens": nil, "tools": nil}},
		{name: "temperature 0", model: "gpt-4.1", req: Request{Temperature: &zero}, want: map[string]any{"temperature": 0.0}},
		{name: "temperature", model: "gpt-4.1", req: Request{Temperature: &some}, want: map[string]any{"temperature": 0.7}},
		{name: "temperature of a reasoning model", model: "gpt-5-mini", req: Request{Temperature: &zero}, want: map[string]any{"temperature": nil}},
		{name: "limit", model: "gpt-4.1", req: Request{MaxOutput: 9}, want: map[string]any{"max_tokens": 9.0, "max_completion_tokens": nil}},
		{name: "limit of o3", model: "o3", req: Request{MaxOutput: 9}, want: map[string]any{"max_completion_tokens": 9.0, "max_tokens": nil}},
		{name: "limit of gpt-5.1-codex", model: "gpt-5.1-codex", req: Request{MaxOutput: 9}, want: map[string]any{"max_completion_tokens": 9.0, "max_tokens": nil}},
		{name: "limit of gpt-5-chat-latest", model: "gpt-5-chat-latest", req: Request{MaxOutput: 9, Temperature: &some}, want: map[string]any{"max_completion_tokens": 9.0, "temperature": 0.7}},
		{name: "limit through a gateway", model: "openai/gpt-5", req: Request{MaxOutput: 9}, want: map[string]any{"max_completion_tokens": 9.0}},
		{name: "a name that only looks like it", model: "o1x-large", req: Request{MaxOutput: 9, Temperature: &zero}, want: map[string]any{"max_tokens": 9.0, "temperature": 0.0}},
		{name: "extra fields", model: "gpt-4.1", extra: map[string]any{"reasoning_effort": "low", "provider": map[string]any{"sort": "price"}},
			want: map[string]any{"reasoning_effort": "low", "provider": map[string]any{"sort": "price"}}},
		{name: "extra fields win", model: "gpt-4.1", req: Request{Temperature: &zero, MaxOutput: 9}, extra: map[string]any{"temperature": 1, "max_completion_tokens": 5, "stream_options": nil},
			want: map[string]any{"temperature": 1.0, "max_completion_tokens": 5.0, "max_tokens": nil, "stream_options": nil}},
		{name: "but not these", model: "gpt-4.1", extra: map[string]any{"model": "x", "stream": false, "messages": 1}, want: map[string]any{"model": "gpt-4.1", "stream": true}},
		{name: "tools of gpt-6-sol", model: "gpt-6-sol", req: Request{Tools: []ToolSpec{{Name: "b"}}}, want: map[string]any{"reasoning_effort": "none"}},
		{name: "tools of gpt-5.6-terra", model: "gpt-5.6-terra", req: Request{Tools: []ToolSpec{{Name: "b"}}}, want: map[string]any{"reasoning_effort": "none"}},
		{name: "tools of gpt-6-sol, configured otherwise", model: "gpt-6-sol", req: Request{Tools: []ToolSpec{{Name: "b"}}}, extra: map[string]any{"reasoning_effort": "low"},
			want: map[string]any{"reasoning_effort": "low"}},
		{name: "tools of gpt-5.5", model: "gpt-5.5", req: Request{Tools: []ToolSpec{{Name: "b"}}}, want: map[string]any{"reasoning_effort": nil}},
		{name: "no tools of gpt-6-astra", model: "gpt-6-astra", want: map[string]any{"reasoning_effort": nil}},
		{name: "another's gpt-5", model: "my-gpt-5.6", req: Request{MaxOutput: 9, Tools: []ToolSpec{{Name: "b"}}}, want: map[string]any{"max_tokens": 9.0, "reasoning_effort": nil}},
		{name: "no tools of gpt-6-sol", model: "gpt-6-sol", want: map[string]any{"reasoning_effort": nil}},
		{name: "mistral", provider: "mistral", model: "m", want: map[string]any{"stream_options": nil}},
		{name: "tools", model: "gpt-4.1", req: Request{Tools: []ToolSpec{{Name: "a", Description: "d", Schema: json.RawMessage(`{"type":"object","x":1}`)}, {Name: "b"}}},
			want: map[string]any{"tools": []any{
				map[string]any{"type": "function", "function": map[string]any{"name": "a", "description": "d", "parameters": map[string]any{"type": "object", "x": 1.0}}},
				map[string]any{"type": "function", "function": map[string]any{"name": "b", "parameters": map[string]any{"type": "object", "properties": map[string]any{}}}},
			}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body, _ := sent(t, Endpoint{Model: centurion.ModelRef{Provider: tt.provider, ID: tt.model}, Extra: tt.extra}, tt.req)
			for k, want := range tt.want {
				if d := cmp.Diff(want, body[k]); d != "" {
					t.Errorf("%s: %s", k, d)
				}
			}
		})
	}
}

func TestNoNumberIsNoTemperature(t *testing.T) {
	nan := math.NaN()
	body, _ := sent(t, Endpoint{Model: centurion.ModelRef{ID: "m"}}, Request{Temperature: &nan})
	if _, ok := body["temperature"]; ok {
		t.Error("a temperature was sent")
	}
}

func TestMessages(t *testing.T) {
	req := Request{System: "sys", Messages: []Message{
		{Role: User, Text: "hi"},
		{Role: Assistant, Reasoning: "hm", Calls: []Call{{ID: "A", Name: "read", Arguments: `{"p":1}`}, {ID: "B", Name: "ls", Arguments: `{"broken`}}},
		{Role: Tool, CallID: "A", Text: "out"},
		{Role: Tool, CallID: "B"},
		{Role: Assistant, Reasoning: "only thought"},
		{Role: User},
	}}
	call := func(id, name, args string) map[string]any {
		return map[string]any{"id": id, "type": "function", "function": map[string]any{"name": name, "arguments": args}}
	}
	want := []any{
		map[string]any{"role": "system", "content": "sys"},
		map[string]any{"role": "user", "content": "hi"},
		map[string]any{"role": "assistant", "reasoning_content": "hm", "tool_calls": []any{call("A", "read", `{"p":1}`), call("B", "ls", `{}`)}},
		map[string]any{"role": "tool", "tool_call_id": "A", "content": "out"},
		map[string]any{"role": "tool", "tool_call_id": "B", "content": "(empty)"},
		map[string]any{"role": "assistant", "content": "(empty)", "reasoning_content": "only thought"},
		map[string]any{"role": "user", "content": "(empty)"},
	}
	body, _ := sent(t, Endpoint{Model: centurion.ModelRef{ID: "m"}, EchoReasoning: true}, req)
	if d := cmp.Diff(want, body["messages"]); d != "" {
		t.Error(d)
	}
	body, _ = sent(t, Endpoint{Model: centurion.ModelRef{ID: "m"}}, req)
	if strings.Contains(mustJSON(t, body), "reasoning_content") {
		t.Error("reasoning was handed back unasked")
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestHeaders(t *testing.T) {
	req := Request{Session: "ses_1", Parent: "ses_0"}
	e := Endpoint{Model: centurion.ModelRef{ID: "m"}, BaseURL: "http://model.test/base/v1/", APIKey: "k", Headers: map[string]string{"X-Own": "1", "User-Agent": "mine"}}
	_, r := sent(t, e, req)
	if r.URL.String() != "http://model.test/base/v1/chat/completions" {
		t.Errorf("sent to %s", r.URL)
	}
	for k, want := range map[string]string{"x-session-id": "ses_1", "x-parent-session-id": "ses_0", "X-Own": "1", "User-Agent": "mine", "Authorization": "Bearer k"} {
		if got := r.Header.Get(k); got != want {
			t.Errorf("%s is %q, want %q", k, got, want)
		}
	}
	e.NoSessionHeaders, e.APIKey = true, ""
	_, r = sent(t, e, req)
	for _, k := range []string{"x-session-id", "x-parent-session-id", "Authorization"} {
		if got := r.Header.Get(k); got != "" {
			t.Errorf("%s is %q, want none", k, got)
		}
	}
	_, r = sent(t, Endpoint{Model: centurion.ModelRef{ID: "m"}}, Request{Session: "ses_0"})
	if _, ok := r.Header["X-Parent-Session-Id"]; ok {
		t.Error("a root session has a parent")
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		name   string
		status int
		header http.Header
		body   string
		kind   centurion.Kind
		says   []string
	}{
		{"wrong key", 401, nil, `{"error":{"message":"Incorrect API key provided: sk-secret-key.","code":"invalid_api_key"}}`, centurion.KindAuth, []string{"openai refused the request with the key from OPENAI_API_KEY", "Incorrect", "[key]", "401"}},
		{"wrong key by code", 400, nil, `{"error":{"message":"no","code":"invalid_api_key"}}`, centurion.KindAuth, nil},
		{"a flagged field", 400, nil, `{"error":{"message":"the flagged field is wrong"}}`, centurion.KindInvalidRequest, nil},
		{"content policy around it", 400, nil, `{"type":"content_filter","error":{"message":"m"}}`, centurion.KindRefusal, nil},
		{"a window that is out of order", 503, nil, `{"error":{"message":"the context window service is down"}}`, centurion.KindOverloaded, nil},
		{"forbidden", 403, nil, `{"error":{"message":"no access"}}`, centurion.KindAuth, []string{"OPENAI_API_KEY"}},
		{"wrong key at Google", 400, nil, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, centurion.KindAuth, []string{"OPENAI_API_KEY"}},
		{"flagged", 403, nil, `{"error":{"message":"Your input was flagged by moderation"}}`, centurion.KindRefusal, nil},
		{"content policy", 400, nil, `{"error":{"message":"filtered","code":"content_filter"}}`, centurion.KindRefusal, nil},
		{"unknown model", 404, nil, `{"error":{"message":"The model gpt-9 does not exist","code":"model_not_found"}}`, centurion.KindModelNotFound, []string{"gpt-9"}},
		{"unknown model, with a list around it", 404, nil, `{"error":{"message":"no such model"},"available_models":["a","b"]}`, centurion.KindModelNotFound, []string{"no such model", "it offers a, b"}},
		{"unknown model, with a list", 404, nil, `{"error":"model 'x' not found","available_models":["a","b"]}`, centurion.KindModelNotFound, []string{"model 'x' not found", "a, b"}},
		{"unknown model, 400", 400, nil, `{"error":{"message":"foo is not a valid model ID","code":400}}`, centurion.KindModelNotFound, nil},
		{"wrong path", 404, nil, "<html>404 page not found</html>", centurion.KindConfig, []string{"page not found"}},
		{"redirect", 307, nil, "", centurion.KindConfig, nil},
		{"window, by code", 400, nil, `{"error":{"message":"too long","code":"context_length_exceeded"}}`, centurion.KindOverflow, nil},
		{"window, as a field that is wrong", 422, nil, `{"detail":"prompt is too long"}`, centurion.KindOverflow, nil},
		{"rate limit, told twice", 429, http.Header{"Retry-After": {"3"}}, `[{"error":{"code":429,"message":"slow","details":[{"retryDelay":"9s"}]}}]`, centurion.KindRateLimit, nil},
		{"window, by words", 400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}`, centurion.KindOverflow, nil},
		{"window at a local server", 400, nil, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, centurion.KindOverflow, nil},
		{"window at a server that fails", 500, nil, `{"error":"input length exceeds the context length"}`, centurion.KindOverflow, nil},
		{"too large", 413, nil, "Payload Too Large", centurion.KindOverflow, []string{"Payload"}},
		{"bad request", 400, nil, `{"error":{"message":"messages[1]: missing content","param":"messages"}}`, centurion.KindInvalidRequest, []string{"missing content"}},
		{"bad request, FastAPI", 422, nil, `{"detail":[{"loc":["body","tools"],"msg":"extra fields not permitted"}]}`, centurion.KindInvalidRequest, []string{"body.tools: extra fields"}},
		{"bad request, detail", 422, nil, `{"detail":"nope"}`, centurion.KindInvalidRequest, []string{"nope"}},
		{"no credit", 402, nil, `{"error":{"message":"Insufficient credits"}}`, centurion.KindBudget, []string{"Insufficient"}},
		{"no credit at Anthropic", 400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}`, centurion.KindBudget, nil},
		{"rate limit", 429, http.Header{"Retry-After": {"3"}}, `{"error":{"message":"slow"}}`, centurion.KindRateLimit, nil},
		{"rate limit at Google", 429, nil, `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x.RetryInfo","retryDelay":"3s"}]}}]`, centurion.KindRateLimit, nil},
		{"timeout", 408, nil, "", centurion.KindOverloaded, []string{"Request Timeout"}},
		{"failing", 500, nil, `{"error":{"message":"boom"}}`, centurion.KindOverloaded, []string{"boom", "500"}},
		{"gateway", 502, nil, "<html>bad gateway</html>", centurion.KindOverloaded, []string{"bad gateway"}},
		{"overloaded", 529, nil, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, centurion.KindOverloaded, nil},
		{"words of another provider", 400, nil, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"schema too deep"}}}`, centurion.KindInvalidRequest, []string{"Provider returned error: schema too deep"}},
		{"garbage", 400, nil, "\xff\x00{", centurion.KindInvalidRequest, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := collect(t, t.Context(), refusing(tt.status, tt.header, tt.body), Request{})
			e, ok := errors.AsType[*centurion.Error](r.err)
			if !ok || e.Kind != tt.kind || e.Status != tt.status {
				t.Fatalf("got %+v", r.err)
			}
			for _, s := range append(tt.says, "call openai/gpt-4.1") {
				if !strings.Contains(e.Error(), s) {
					t.Errorf("%q does not say %q", e, s)
				}
			}
			if strings.Contains(e.Error()+e.Hint, "sk-secret-key") {
				t.Errorf("%q %q tells the key", e, e.Hint)
			}
			if tt.kind == centurion.KindRateLimit && e.RetryAfter != 3*time.Second {
				t.Errorf("retry after %s", e.RetryAfter)
			}
			if tt.kind == centurion.KindAuth && !strings.Contains(e.Hint, "OPENAI_API_KEY") {
				t.Errorf("hint %q", e.Hint)
			}
		})
	}
}

// A provider's own words are told once, whatever they are wrapped in.
func TestComplaints(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"a: b","metadata":{"raw":"b"}}}`: "a: b",
		`{"error":{"message":"a","metadata":{"raw":"b"}}}`:    "a: b",
		`{"message":"m","error":null}`:                        "m",
		`{"error":"e","message":"m"}`:                         "e",
		`{"error":{"error":{"error":{"message":"deep"}}}}`:    "deep",
		`{"detail":[]}`:                      `{"detail":[]}`,
		`[]`:                                 `[]`,
		strings.Repeat("x", 300):             strings.Repeat("x", 300),
		strings.Repeat("x", 301):             strings.Repeat("x", 300) + "…",
		"x" + strings.Repeat(" ", 400) + "y": "x…",
	} {
		if got := string(readComplaint([]byte(body)).Message); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	for code, want := range map[string]int{"399": 0, "400": 400, "599": 599, "600": 0, `"408"`: 408, `"4x8"`: 0, "4.5": 0} {
		if e := Refusal([]byte(`{"error":{"message":"m","code":` + code + `}}`)); e.Status != want {
			t.Errorf("code %s is taken for status %d", code, e.Status)
		}
	}
	anonymous := New(Endpoint{Model: centurion.ModelRef{Provider: "acme"}, BaseURL: "http://model.test"})
	if e := anonymous.complete(Refusal([]byte(`{"code":401,"message":"who?"}`)), "x"); e.Msg != "acme refused the request without a key: who? (status 401)" || !strings.Contains(e.Hint, "the key of provider acme") {
		t.Errorf("%q, hint %q", e.Msg, e.Hint)
	}
}

func TestUnreachable(t *testing.T) {
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := dead.Addr().String()
	_ = dead.Close()
	tests := []struct {
		name string
		e    Endpoint
		kind centurion.Kind
		says string
	}{
		{"nobody listens", Endpoint{BaseURL: "http://user:pass@" + address + "/v1?key=secret"}, centurion.KindNetwork, "cannot reach http://" + address},
		{"a time-out of the transport", Endpoint{BaseURL: "http://model.test/v1", HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return nil, context.DeadlineExceeded
		})}}, centurion.KindNetwork, "the connection to http://model.test/v1 broke: context deadline exceeded"},
		{"a transport that gives up", Endpoint{BaseURL: "http://model.test/v1", HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return nil, context.Canceled
		})}}, centurion.KindNetwork, "canceled"},
		{"no base URL", Endpoint{}, centurion.KindConfig, "no base URL"},
		{"a model that is not served this way", Endpoint{BaseURL: "http://model.test/v1", Model: centurion.ModelRef{ID: "text-davinci-003"}}, centurion.KindInvalidRequest, "not supported"},
		{"no URL", Endpoint{BaseURL: "http://[::1"}, centurion.KindInvalidRequest, ""},
		{"fields that are no JSON", Endpoint{BaseURL: "http://model.test/v1", Extra: map[string]any{"x": func() {}}}, centurion.KindConfig, `"x"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.e.Model = centurion.ModelRef{Provider: "p", ID: stdcmp.Or(tt.e.Model.ID, "m")}
			r := collect(t, t.Context(), New(tt.e), Request{})
			if centurion.KindOf(r.err) != tt.kind || !strings.Contains(r.err.Error(), tt.says) || errors.Is(r.err, context.DeadlineExceeded) || errors.Is(r.err, context.Canceled) ||
				tt.kind == centurion.KindNetwork && centurion.HintOf(r.err) == "" ||
				strings.Contains(r.err.Error(), "secret") || strings.Contains(r.err.Error(), "pass@") {
				t.Errorf("got %v", r.err)
			}
		})
	}
}

func TestModels(t *testing.T) {
	get := func(status int, body string) ([]string, error) {
		c := New(Endpoint{Model: centurion.ModelRef{Provider: "google"}, BaseURL: "http://model.test/v1/", APIKey: "sk-secret-key", KeySource: "GEMINI_API_KEY",
			Headers: map[string]string{"X-Own": "1"}, HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer sk-secret-key" || r.Header.Get("X-Own") != "1" {
					t.Errorf("asked %s with %v", r.URL, r.Header)
				}
				return answer(status, "application/json", body), nil
			})}})
		return c.Models(t.Context())
	}
	ids, err := get(200, `{"object":"list","data":[{"id":"models/b","created":"odd"},{"id":"a"},{"id":"a"},{"id":7}]}`)
	if d := cmp.Diff([]string{"a", "b"}, ids); err != nil || d != "" {
		t.Error(err, d)
	}
	if _, err = get(401, `{}`); centurion.KindOf(err) != centurion.KindAuth || !strings.Contains(err.Error(), "GEMINI_API_KEY") {
		t.Errorf("got %v", err)
	}
	if _, err = get(200, `<html>`); centurion.KindOf(err) != centurion.KindConfig || !strings.Contains(centurion.HintOf(err), "http://model.test/v1") {
		t.Errorf("got %v", err)
	}
	for name, wire := range map[string]Wire{"chat": nil, "responses": Responses{}} {
		local := New(Endpoint{BaseURL: "http://model.test/v1", Wire: wire, HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if v, ok := r.Header["Authorization"]; ok {
				t.Errorf("%s: a key that there is none of is sent as %q", name, v)
			}
			return answer(200, "application/json", `{"data":[]}`), nil
		})}})
		if _, err := local.Models(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := New(Endpoint{}).Models(t.Context()); centurion.KindOf(err) != centurion.KindConfig || !strings.Contains(err.Error(), "no base URL") {
		t.Errorf("got %v", err)
	}
	if _, err := New(Endpoint{BaseURL: "http://[::1"}).Models(t.Context()); centurion.KindOf(err) != centurion.KindConfig {
		t.Errorf("got %v", err)
	}
}

// A key follows no redirect: it is told as an address that is not one of a provider.
func TestRedirectsAreNotFollowed(t *testing.T) {
	e := Endpoint{Model: centurion.ModelRef{Provider: "p", ID: "m"}, BaseURL: "http://model.test/v1", APIKey: "sk-secret", Headers: map[string]string{"x-api-key": "sk-secret"}, HTTP: newHTTPClient()}
	var asked []string
	e.HTTP.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.URL.Host)
		a := answer(http.StatusTemporaryRedirect, "text/plain", "")
		a.Header.Set("Location", "http://other.test/v1/chat/completions")
		return a, nil
	})
	if r := collect(t, t.Context(), New(e), Request{}); centurion.KindOf(r.err) != centurion.KindConfig || !slices.Equal(asked, []string{"model.test"}) {
		t.Errorf("it asked %v: %v", asked, r.err)
	}
}

func TestSharedClient(t *testing.T) {
	gates := &Gates{}
	a, b := New(Endpoint{Gates: gates, BaseURL: "http://a.test"}), New(Endpoint{Gates: gates, BaseURL: "http://b.test"})
	if a.end.HTTP != b.end.HTTP || a.end.HTTP.Timeout != 0 {
		t.Error("want one client without a limit for a whole request")
	}
	if tr := a.end.HTTP.Transport.(*http.Transport); !tr.DisableCompression || tr.TLSHandshakeTimeout == 0 || tr.MaxIdleConnsPerHost < 50 {
		t.Errorf("the shared client is %+v", tr)
	}
	if a.gate.Close(time.Now().Add(time.Minute)); b.Closed() > 0 {
		t.Error("one address refuses, and the other is held back")
	}
	gates.CloseIdleConnections()
	(&Gates{}).CloseIdleConnections()
	var idle idleCloser
	gates.http = &http.Client{Transport: &idle}
	if gates.CloseIdleConnections(); idle != 1 {
		t.Errorf("idle connections were closed %d times", idle)
	}
}

// idleCloser counts how often its idle connections are closed.
type idleCloser int

func (c *idleCloser) RoundTrip(*http.Request) (*http.Response, error) { return nil, io.EOF }
func (c *idleCloser) CloseIdleConnections()                           { *c++ }

// Fields that a configuration sets stand once in the body of a request, as it sets them.
func TestItemsRequestOfConfiguration(t *testing.T) {
	model := centurion.ModelRef{Provider: "openai", ID: "gpt-4.1"}
	req := Request{Session: "ses", System: "Ours.", Temperature: new(0.5), MaxOutput: 7, Messages: []Message{{Role: User}, {Role: Assistant}},
		Tools: []ToolSpec{{Name: "read", Schema: []byte(`{"type":"string"}`)}}}
	body := func(extra map[string]any) string {
		path, b, err := Responses{}.Request(model, req, extra)
		if err != nil || path != "/responses" {
			t.Fatalf("%s, %v", path, err)
		}
		return strings.TrimSpace(string(b))
	}
	plain := body(nil)
	for _, field := range []string{`"store":false`, `"instructions":"Ours."`, `"temperature":0.5`, `"max_output_tokens":7`, `"prompt_cache_key":"ses"`, `"parameters":{"type":"string"}`,
		`"input":[{"role":"user","content":[{"type":"input_text","text":"(empty)"}]},{"role":"assistant","content":[{"type":"output_text","text":"(empty)"}]}]`} {
		if strings.Count(plain, field) != 1 {
			t.Errorf("%s is not in %s", field, plain)
		}
	}
	for name, value := range map[string]any{"store": true, "instructions": "Mine.", "temperature": 1, "max_output_tokens": 9, "prompt_cache_key": "own"} {
		if got := body(map[string]any{name: value}); strings.Count(got, `"`+name+`":`) != 1 {
			t.Errorf("%s stands not once in %s", name, got)
		}
	}
	req.Temperature = new(math.Inf(1))
	if got := body(nil); strings.Contains(got, "temperature") {
		t.Errorf("no number is sent as a temperature: %s", got)
	}
	if _, _, err := (Responses{}).Request(model, req, map[string]any{"x": func() {}}); centurion.KindOf(err) != centurion.KindConfig {
		t.Errorf("a field that cannot be written: %v", err)
	}
}
