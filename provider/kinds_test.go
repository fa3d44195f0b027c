package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
)

// Trap 4: every word that a provider has for a kind of refusal, alone in its place.
func TestKindsOfWords(t *testing.T) {
	tests := map[centurion.Kind][]string{ // status, code, type, message
		centurion.KindBudget: {"402|||", "400|insufficient_quota||", "429||insufficient_quota|", "400|billing_hard_limit_reached||", "400|insufficient_balance||",
			"400|||Your CREDIT balance is too low", "400|||Insufficient Balance"},
		centurion.KindRateLimit: {"429|||", "429|context_length_exceeded||"},
		centurion.KindOverflow: {"413|||", "400|context_length_exceeded||", "400||exceed_context_size_error|", "0|||the context length", "400|||context_length", "422|||context window",
			"500|||context size", "400|||prompt is too long", "400|||input is too long", "400|||the input token count", "400|||would exceed context limit",
			"400|||the maximum prompt length", "400|||model token limit", "400|||reduce the length of the messages"},
		centurion.KindRefusal: {"400|content_filter||", "400|content_policy_violation||", "400||moderation_blocked|", "403|||moderation", "403|||it was Flagged"},
		centurion.KindAuth:    {"401|||", "403|||", "400|invalid_api_key||", "400|||API key not valid", "400|||Invalid API key", "400|||Incorrect API key"},
		centurion.KindModelNotFound: {"400|model_not_found||", "404|||no such model", "400|||not a valid model id", "400|||Model Not Exist", "400|||the model does not exist",
			"400|||invalid model", "400|||unknown model"},
		centurion.KindConfig:         {"404|||", "405|||", "300|||", "399|||"},
		centurion.KindOverloaded:     {"408|||", "500|||", "599|||", "0|||"},
		centurion.KindInvalidRequest: {"400|||", "422|||", "409|||", "299|||", "400|||flagged", "422|||invalid api key", "422|||unknown model", "499|||"},
	}
	for want, all := range tests {
		for _, one := range all {
			p := strings.Split(one, "|")
			var status int
			_, _ = fmt.Sscanf(p[0], "%d", &status)
			if got := kindOf(status, complaint{Code: scalar(p[1]), Type: text(p[2]), Message: text(p[3])}); got != want {
				t.Errorf("%s is %s, want %s", one, got, want)
			}
		}
	}
	if got := kindOf(503, complaint{Message: "the context window service"}); got != centurion.KindOverloaded {
		t.Errorf("a server that is down is %s", got)
	}
}

// The status of an error that comes in the middle of an answer is found by its word.
func TestStatusOfWords(t *testing.T) {
	for status, words := range map[int]string{
		400: "invalid_request_error INVALID_ARGUMENT failed_precondition bad_request", 401: "authentication_error UNAUTHENTICATED invalid_api_key", 402: "billing_error",
		403: "permission_error PERMISSION_DENIED", 404: "not_found_error NOT_FOUND model_not_found", 413: "request_too_large",
		429: "rate_limit_error rate_limit_exceeded RESOURCE_EXHAUSTED too_many_requests", 529: "overloaded_error overloaded", 0: "api_error x",
	} {
		for word := range strings.FieldsSeq(words) {
			for _, field := range []string{"code", "type", "status"} {
				if e := Refusal([]byte(`{"error":{"message":"m","` + field + `":"` + word + `"}}`)); e.Status != status || e.Msg != "m" {
					t.Errorf("%s %s: status %d, %q", field, word, e.Status, e.Msg)
				}
			}
		}
	}
	if e := Refusal([]byte(`{"error":{"message":"m"},"available_models":["a","b","c","d","e","f"]}`)); e.Msg != "m; it offers a, b, c, d, e" {
		t.Errorf("got %q", e.Msg)
	}
	if got := Excerpt([]byte("a\n" + strings.Repeat("b", 400))); got != "a "+strings.Repeat("b", 298)+"…" {
		t.Errorf("an excerpt is %q", got)
	}
}

// What a person is told of each kind of refusal, in full.
func TestHintsOfKinds(t *testing.T) {
	c := New(Endpoint{Model: centurion.ModelRef{Provider: "acme", ID: "m"}, BaseURL: "http://u:p@model.test/v1?key=k", APIKey: "sk-secret-key"})
	for kind, want := range map[centurion.Kind]string{
		centurion.KindAuth:           "x: acme refused the request with the key from the configuration: [key] (status 418)|check the key of provider acme, or run `centurion auth login`",
		centurion.KindBudget:         "x: [key] (status 418)|add credit at acme, or use another model, then `centurion resume`",
		centurion.KindModelNotFound:  "x: [key] (status 418)|run `centurion models` to see what acme offers",
		centurion.KindConfig:         "x: [key] (status 418)|check the base URL http://model.test/v1; it usually ends in /v1",
		centurion.KindRateLimit:      "x: [key] (status 418)|wait, or use fewer workers (--max-workers)",
		centurion.KindInvalidRequest: "x: [key] (status 418)|",
	} {
		e := c.complete(&centurion.Error{Kind: kind, Status: 418, Msg: "sk-secret-key"}, "x")
		if got := e.Error() + "|" + e.Hint; got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
	if e := c.complete(&centurion.Error{Kind: centurion.KindBudget, Hint: "h", Msg: "m"}, "x"); e.Hint != "h" || e.Msg != "m" {
		t.Errorf("its own hint: %+v", e)
	}
	short := New(Endpoint{BaseURL: "http://model.test", APIKey: "abc"})
	if got := short.redact("abc"); got != "abc" {
		t.Errorf("a word of three letters is taken for a key: %q", got)
	}
	short.end.APIKey = "abcd"
	if got := short.redact("abcd abcd"); got != "[key] [key]" {
		t.Errorf("a key is told: %q", got)
	}
}

// LOOP-91: a request is made again as often as the endpoint says and not once more.
func TestLimitOfRetries(t *testing.T) {
	for limit, want := range map[int]int64{-1: 1, 1: 2, 3: 4} {
		synctest.Test(t, func(t *testing.T) {
			c, requests := served(t, Endpoint{MaxRetries: limit}, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(529) })
			if r := collect(t, t.Context(), c, Request{}); r.err == nil || requests.Load() != want || len(r.waits) != int(want)-1 {
				t.Errorf("at most %d: %d requests, %d waits, %v", limit, requests.Load(), len(r.waits), r.err)
			}
		})
	}
}

// A wait is worth it up to an hour, and up to the end of the time there is.
func TestAffordable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for d, want := range map[time.Duration]bool{maxWait: true, maxWait + 1: false} {
			if affordable(t.Context(), d) != want {
				t.Errorf("%s without an end: %v", d, !want)
			}
		}
		for d, want := range map[time.Duration]bool{time.Minute: true, time.Minute + 1: false} {
			if affordable(ctx, d) != want {
				t.Errorf("%s of a minute: %v", d, !want)
			}
		}
	})
}

// The latest of all limits of Anthropic that are used up counts.
func TestEveryLimitIsRead(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, limit := range []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"} {
		h := http.Header{"Anthropic-Ratelimit-" + limit + "-Remaining": {"0"}, "Anthropic-Ratelimit-" + limit + "-Reset": {"2026-11-20T12:00:09Z"}}
		if got := untilReset(h, now); got != 9*time.Second {
			t.Errorf("%s: %s", limit, got)
		}
	}
}

// The headers of a request, and those that plugins add to one, in the order in which they win.
func TestHeadersOfARequest(t *testing.T) {
	_, r := sent(t, Endpoint{Model: centurion.ModelRef{ID: "m"}, Headers: map[string]string{"X-A": "endpoint", "X-B": "endpoint"}}, Request{Header: map[string]string{"X-B": "request"}})
	want := http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "User-Agent": {"centurion"}, "X-A": {"endpoint"}, "X-B": {"request"}}
	if fmt.Sprint(r.Header) != fmt.Sprint(want) {
		t.Errorf("sent %v, want %v", r.Header, want)
	}
}

// What each family of models of OpenAI takes over chat completions.
func TestFamiliesOfModels(t *testing.T) {
	some := 0.5
	for model, want := range map[string]string{
		"o1":            `{"max_completion_tokens":9}`,
		"o3-mini":       `{"max_completion_tokens":9}`,
		"o4-mini":       `{"max_completion_tokens":9}`,
		"gpt-5.6-x":     `{"max_completion_tokens":9,"reasoning_effort":"none"}`,
		"gpt-6":         `{"max_completion_tokens":9}`,
		"gpt-6-chat":    `{"max_tokens":9,"temperature":0.5}`,
		"gpt-6-luna":    `{"max_completion_tokens":9,"reasoning_effort":"none"}`,
		"gpt-6-sol":     `{"max_completion_tokens":9,"reasoning_effort":"none"}`,
		"gpt-6-astra":   "tool calling with this model requires the Responses API",
		"gpt-6.1-sol":   "tool calling with this model requires the Responses API",
		"text-ada-001":  "this model is not supported by chat completions",
		"a/gpt-5-chat":  `{"max_tokens":9,"temperature":0.5}`,
		"deepseek-chat": `{"max_tokens":9,"temperature":0.5}`,
	} {
		path, body, err := chat{}.Request(centurion.ModelRef{Provider: "openai", ID: model}, Request{Temperature: &some, MaxOutput: 9, Tools: []ToolSpec{{Name: "a"}}}, nil)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			var all map[string]any
			if err := json.Unmarshal(body, &all); err != nil || path != "/chat/completions" {
				t.Fatal(path, err)
			}
			for _, name := range []string{"model", "messages", "stream", "stream_options", "tools"} {
				delete(all, name)
			}
			b, _ := json.Marshal(all)
			got = string(b)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", model, got, want)
		}
	}
	for _, model := range []string{"text-davinci-003", "code-cushman-001", "babbage", "curie-instruct-beta", "ada-002"} {
		if !completionsOnly.MatchString(model) {
			t.Errorf("%s is taken for a chat model", model)
		}
	}
	for extra, want := range map[string]string{"max_tokens": `"max_tokens":5`, "max_completion_tokens": `"max_completion_tokens":5`} {
		_, body, err := chat{}.Request(centurion.ModelRef{ID: "gpt-4.1"}, Request{MaxOutput: 9}, map[string]any{extra: 5})
		if err != nil || !strings.Contains(string(body), want) || strings.Contains(string(body), "9") {
			t.Errorf("%s: %s, %v", extra, body, err)
		}
	}
}
