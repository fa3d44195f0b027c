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
	}
	for _, tt := range tests {
		for _, err := range []error{errors.New(tt.text), fmt.Errorf("session failed: %w", errors.New(tt.text+"\nat x.go:429"))} {
			if kind, fault := Classify(err); kind != tt.kind || fault != tt.fault {
				t.Errorf("%s: got %s %q, want %s %q", err, kind, fault, tt.kind, tt.fault)
			}
		}
	}
}
