package recovery

import (
	"errors"
	"fmt"
	"testing"

	"centurion"
)

// ORCH-78, ORCH-109: an error that another program hands on as {name, data: {message, statusCode}} is read by its fields.
func TestClassifyByShape(t *testing.T) {
	tests := []struct {
		text  string
		kind  centurion.Kind
		fault Fault
	}{
		{`{"name":"APIError","data":{"message":"slow down","statusCode":429,"isRetryable":true}}`, centurion.KindRateLimit, ""},
		{`{"name":"APIError","data":{"message":"file line 4291","statusCode":500}}`, centurion.KindOverloaded, ""},
		{`{"name":"APIError","data":{"message":"rate limit exceeded in test 429","statusCode":401}}`, centurion.KindAuth, ""},
		{`{"name":"APIError","data":{"message":"prompt is too long: 9 tokens","statusCode":400}}`, centurion.KindOverflow, ""},
		{`{"name":"APIError","data":{"message":"tool_use ids were found without tool_result","statusCode":400}}`, centurion.KindInvalidRequest, FaultToolResult},
		{`{"name":"ProviderAuthError","data":{"providerID":"x","message":"no"}}`, centurion.KindAuth, ""},
		{`{"name":"ProviderAuthError","data":{"message":"no","statusCode":503}}`, centurion.KindAuth, ""},
		{`{"name":"MessageAbortedError","data":{"message":"connection reset"}}`, centurion.KindCancelled, ""},
		{`{"name":"ContextOverflowError","data":{"message":"no"}}`, centurion.KindOverflow, ""},
		{`{"name":"ContentFilterError","data":{"message":"no"}}`, centurion.KindRefusal, ""},
		{`{"name":"UnknownError","data":{"message":"socket hang up"}}`, centurion.KindNetwork, ""},
		{`{"name":"UnknownError","data":{"message":"prompt is too long"}}`, centurion.KindOverflow, ""},
		{`{"name":"UnknownError","data":{"message":"HTTP 429","statusCode":503}}`, centurion.KindOverloaded, ""},
		{`{"name":"UnknownError","data":{"message":"prompt is too long","statusCode":503}}`, centurion.KindOverloaded, ""},
		{`{"name":"UnknownError","data":{"message":"bad parameter","statusCode":400}}`, centurion.KindInvalidRequest, ""},
		{`{"name":"UnknownError","data":{"message":"file line 4291"}}`, centurion.KindInternal, ""},
		{`{"name":"x"`, centurion.KindInternal, ""},
		{`{"name":429}`, centurion.KindInternal, ""},
		{`{"name":"","data":{"statusCode":503}} HTTP 429`, centurion.KindRateLimit, ""},
		{`{"name":5,"data":{"statusCode":503}} HTTP 429`, centurion.KindRateLimit, ""},
	}
	for _, tt := range tests {
		for _, err := range []error{errors.New(tt.text), fmt.Errorf("session failed: %w", errors.New(tt.text+"\nat x.go:429"))} {
			if kind, fault := Classify(err); kind != tt.kind || fault != tt.fault {
				t.Errorf("%s: got %s %q, want %s %q", err, kind, fault, tt.kind, tt.fault)
			}
		}
	}
}

// Each of the phrases is enough by itself.
func TestClassifyByPhrase(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind  centurion.Kind
		fault Fault
		texts []string
	}{
		{centurion.KindInvalidRequest, FaultToolResult, []string{"tool_use id was found without it", "The following tool_call_ids did not have response messages: call_1",
			"tool_calls must be followed by tool messages", "the calls are not followed by tool messages", "message with role `tool` must be a response", "unexpected `tool_result`",
			"No tool call found for function call output", "number of function response parts should be equal"}},
		{centurion.KindInvalidRequest, FaultThinkingOrder, []string{"a final message must start with a thinking block", "Expected `thinking`, but found `text`", "expected redacted_thinking, but found text",
			"`thinking` blocks cannot be modified", "redacted_thinking blocks must remain", "thinking block: wrong order", "Invalid signature in thinking", "missing thought_signature"}},
		{centurion.KindOverflow, FaultNone, []string{"context_length_exceeded", "exceeds the model's context window", "exceed context length", "context window is exceeded", "context length exceeded",
			"exceeds the maximum number of input tokens", "too many tokens in the prompt", "too many input tokens in the request"}},
		{centurion.KindRateLimit, FaultNone, []string{"you are rate limited", "rate-limit exceeded", "rate_limit_error", "the rate limit was not the fault: rate limit hit", "too_many_requests", "error code: 429", "429 too many"}},
		{centurion.KindOverloaded, FaultNone, []string{"overloaded_error", "the model is overloaded", "engine is currently overloaded", "Bad Gateway", "Gateway Timeout", "gateway time-out", "Internal Server Error",
			"HTTP 500", "HTTP 502", "status: 504", "status code 520", "http status 529"}},
		{centurion.KindAuth, FaultNone, []string{"missing api key", "no api-key", "invalid_api_key", "401 Unauthorized", "HTTP 403", "status: 401"}},
		{centurion.KindNetwork, FaultNone, []string{"connection closed", "connection timed out", "network is unreachable", "no route to host", "i/o timeout", "TLS handshake", "socket hang up",
			"read ECONNRESET", "connect ECONNREFUSED", "ETIMEDOUT", "getaddrinfo ENOTFOUND x", "unexpected EOF"}},
		{centurion.KindInternal, FaultNone, []string{"HTTP 501", "status 505", "error 4290", "the rate limit", "the thinking of a block", "context", "an engine that is not overloaded", "api key"}},
	} {
		for _, text := range tt.texts {
			if kind, fault := Classify(errors.New(text)); kind != tt.kind || fault != tt.fault {
				t.Errorf("%s: got %s %q, want %s %q", text, kind, fault, tt.kind, tt.fault)
			}
		}
	}
}
