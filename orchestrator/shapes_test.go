package orchestrator

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/provider"
	"centurion/recovery"
)

type responds func(*http.Request) (*http.Response, error)

func (f responds) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// ORCH-74, ORCH-78, ORCH-79, ORCH-82, ORCH-109: what real providers and what stands before them answer, from the wire to what
// is done about it.
func TestShapesOfRealErrors(t *testing.T) {
	const page = "<html>\r\n<head><title>%s</title></head>\r\n<body><center><h1>%s</h1></center><hr><center>nginx/1.25.3</center></body></html>"
	html := func(s string) string { return strings.ReplaceAll(page, "%s", s) }
	for name, test := range map[string]struct {
		status int
		header string // Retry-After
		body   string
		kind   centurion.Kind
		action recovery.Action
		wait   time.Duration
	}{
		"OpenAI, rate limit": {429, "20", `{"error":{"message":"Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Used 29112. Please try again in 20s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`,
			centurion.KindRateLimit, recovery.Retry, 20 * time.Second},
		"OpenAI, no money": {429, "", `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`,
			centurion.KindBudget, recovery.AskPerson, 0},
		"OpenAI, key": {401, "", `{"error":{"message":"Incorrect API key provided: sk-x.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`,
			centurion.KindAuth, recovery.AskPerson, 0},
		"OpenAI, model": {404, "", `{"error":{"message":"The model 'gpt-9' does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}`,
			centurion.KindModelNotFound, recovery.AskPerson, 0},
		"OpenAI, too long": {400, "", `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130012 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			centurion.KindOverflow, recovery.Compact, 0},
		"OpenAI, a result is missing": {400, "", `{"error":{"message":"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1","type":"invalid_request_error","param":"messages.[3].role","code":null}}`,
			centurion.KindInvalidRequest, recovery.Inject, 5 * time.Second},
		"Anthropic, overloaded": {529, "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`,
			centurion.KindOverloaded, recovery.Retry, 5 * time.Second},
		"Anthropic, rate limit": {429, "7", `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 40,000 input tokens per minute."}}`,
			centurion.KindRateLimit, recovery.Retry, 7 * time.Second},
		"Anthropic, thinking": {400, "", "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.\"}}",
			centurion.KindInvalidRequest, recovery.Inject, 5 * time.Second},
		"Anthropic, credit": {400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`,
			centurion.KindBudget, recovery.AskPerson, 0},
		"OpenRouter, the provider behind it": {429, "", `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"x/y is temporarily rate-limited upstream","provider_name":"Z"}},"user_id":"u"}`,
			centurion.KindRateLimit, recovery.Retry, 30 * time.Second},
		"OpenRouter, credits": {402, "", `{"error":{"message":"Insufficient credits. Add more using https://openrouter.ai/settings/credits","code":402}}`,
			centurion.KindBudget, recovery.AskPerson, 0},
		"OpenRouter, moderated": {403, "", `{"error":{"message":"Your chosen model requires moderation and your input was flagged","code":403,"metadata":{"reasons":["x"]}}}`,
			centurion.KindRefusal, recovery.GiveUp, 0},
		"Ollama, model":                     {404, "", `{"error":{"message":"model 'llama9' not found","type":"api_error","param":null,"code":null}}`, centurion.KindModelNotFound, recovery.AskPerson, 0},
		"Ollama, old form":                  {500, "", `{"error":"llama runner process has terminated: signal: killed"}`, centurion.KindOverloaded, recovery.Retry, 5 * time.Second},
		"a proxy, bad gateway":              {502, "", html("502 Bad Gateway"), centurion.KindOverloaded, recovery.Retry, 5 * time.Second},
		"a proxy, gateway timeout":          {504, "", html("504 Gateway Time-out"), centurion.KindOverloaded, recovery.Retry, 5 * time.Second},
		"a proxy, too many requests":        {429, "3", html("429 Too Many Requests"), centurion.KindRateLimit, recovery.Retry, 3 * time.Second},
		"a proxy, too large":                {413, "", html("413 Request Entity Too Large"), centurion.KindOverflow, recovery.Compact, 0},
		"a page that holds the number only": {500, "", html("error in file line 4291"), centurion.KindOverloaded, recovery.Retry, 5 * time.Second},
		"nothing at all":                    {503, "", "", centurion.KindOverloaded, recovery.Retry, 5 * time.Second},
		"OpenCode's form":                   {400, "", `{"name":"APIError","data":{"message":"prompt is too long","statusCode":400}}`, centurion.KindOverflow, recovery.Compact, 0},
	} {
		t.Run(name, func(t *testing.T) {
			wire := &http.Client{Transport: responds(func(q *http.Request) (*http.Response, error) {
				h := http.Header{"Content-Type": {"application/json"}}
				if test.header != "" {
					h.Set("Retry-After", test.header)
				}
				return &http.Response{StatusCode: test.status, Header: h, Body: io.NopCloser(strings.NewReader(test.body)), Request: q}, nil
			})}
			c := provider.New(provider.Endpoint{Model: ref, BaseURL: "http://model.test/v1", HTTP: wire, MaxRetries: -1})
			var err error
			for _, e := range c.Stream(t.Context(), provider.Request{Messages: []provider.Message{{Role: provider.User, Text: "x"}}}) {
				err = e
			}
			d := recovery.Policy{}.Decide(recovery.Failure{Err: err, Attempt: 1, RateLimits: 1})
			if d.Kind != test.kind || d.Action != test.action || d.Wait != test.wait {
				t.Errorf("got %s: %s after %s, want %s: %s after %s (%v)", d.Kind, d.Action, d.Wait, test.kind, test.action, test.wait, err)
			}
			if d.Action.Fatal() && (d.Hint == "" || d.Reason == "") {
				t.Errorf("nobody is told what to do: %+v", d)
			}
		})
	}
}
