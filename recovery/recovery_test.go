package recovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"centurion"
)

func fail(k centurion.Kind) error { return &centurion.Error{Op: "call model", Kind: k, Msg: "said so"} }

// ORCH-79, ORCH-80, ORCH-81, ORCH-82, ORCH-83, ORCH-84, ORCH-85, ORCH-109: the table of the package comment, row by row.
func TestDecide(t *testing.T) {
	limited := &centurion.Error{Kind: centurion.KindRateLimit, Status: 429, RetryAfter: 90 * time.Second}
	tomorrow := &centurion.Error{Kind: centurion.KindRateLimit, RetryAfter: 20 * time.Hour}
	orphan := &centurion.Error{Kind: centurion.KindInvalidRequest, Status: 400, Msg: "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'"}
	other := []string{"b/two"}
	tests := []struct {
		name   string
		f      Failure
		action Action
		wait   time.Duration
		model  string
	}{
		{"cancelled", Failure{Err: centurion.ErrCancelled, Attempt: 1}, None, 0, ""},
		{"cancelled inside", Failure{Err: fmt.Errorf("run: %w", context.Canceled), Attempt: 1}, None, 0, ""},
		{"interrupted", Failure{Err: centurion.ErrShutdown, Attempt: 9}, None, 0, ""},
		{"nothing", Failure{}, None, 0, ""},

		{"rate limit with time", Failure{Err: limited, Attempt: 1, RateLimits: 1}, Retry, 90 * time.Second, ""},
		{"rate limit without", Failure{Err: fail(centurion.KindRateLimit), Attempt: 1, RateLimits: 1}, Retry, 30 * time.Second, ""},
		{"rate limit without, 3rd", Failure{Err: fail(centurion.KindRateLimit), Attempt: 1, RateLimits: 3}, Retry, 120 * time.Second, ""},
		{"rate limit without, 8th", Failure{Err: fail(centurion.KindRateLimit), Attempt: 1, RateLimits: 8}, Retry, 10 * time.Minute, ""},
		{"rate limit, 9th", Failure{Err: limited, Attempt: 1, RateLimits: 9}, AskPerson, 0, ""},
		{"rate limit, 9th, task", Failure{Err: limited, Attempt: 1, RateLimits: 9, Task: true}, GiveUp, 0, ""},
		{"rate limit first, other model", Failure{Err: limited, Attempt: 1, RateLimits: 1, Fallbacks: other}, Retry, 90 * time.Second, ""},
		{"rate limit again, other model", Failure{Err: limited, Attempt: 1, RateLimits: 2, Fallbacks: other}, Fallback, 0, "b/two"},
		{"rate limit with a time that is over", Failure{Err: &centurion.Error{Kind: centurion.KindRateLimit, RetryAfter: -time.Second}, Attempt: 1, RateLimits: 1}, Retry, 30 * time.Second, ""},
		{"rate limit for an hour", Failure{Err: &centurion.Error{Kind: centurion.KindRateLimit, RetryAfter: time.Hour}, Attempt: 1, RateLimits: 1}, Retry, time.Hour, ""},
		{"rate limit with the time in its cause", Failure{Err: &centurion.Error{Kind: centurion.KindRateLimit, Err: limited}, Attempt: 1, RateLimits: 1}, Retry, 90 * time.Second, ""},
		{"rate limit until tomorrow", Failure{Err: tomorrow, Attempt: 1, RateLimits: 1}, AskPerson, 0, ""},
		{"rate limit until tomorrow, other", Failure{Err: tomorrow, Attempt: 1, RateLimits: 1, Fallbacks: other}, Fallback, 0, "b/two"},

		{"overloaded 1", Failure{Err: fail(centurion.KindOverloaded), Attempt: 1}, Retry, 5 * time.Second, ""},
		{"overloaded 2", Failure{Err: fail(centurion.KindOverloaded), Attempt: 2}, Retry, 10 * time.Second, ""},
		{"overloaded 3", Failure{Err: fail(centurion.KindOverloaded), Attempt: 3}, Retry, 20 * time.Second, ""},
		{"overloaded 4", Failure{Err: fail(centurion.KindOverloaded), Attempt: 4}, GiveUp, 0, ""},
		{"overloaded 4, other", Failure{Err: fail(centurion.KindOverloaded), Attempt: 4, Fallbacks: other}, Fallback, 0, "b/two"},

		{"network", Failure{Err: fail(centurion.KindNetwork), Attempt: 1}, Retry, 5 * time.Second, ""},
		{"network 3", Failure{Err: fail(centurion.KindNetwork), Attempt: 3}, Retry, 5 * time.Second, ""},
		{"network 4", Failure{Err: fail(centurion.KindNetwork), Attempt: 4}, GiveUp, 0, ""},
		{"network, long after", Failure{Err: fail(centurion.KindNetwork), Attempt: 2, Since: 3 * time.Second}, Retry, 2 * time.Second, ""},
		{"network, very long after", Failure{Err: fail(centurion.KindNetwork), Attempt: 2, Since: time.Minute}, Retry, 0, ""},
		{"cut", Failure{Err: fail(centurion.KindStreamCut), Attempt: 1}, Retry, 5 * time.Second, ""},
		{"stall", Failure{Err: fail(centurion.KindStall), Attempt: 1}, Retry, 5 * time.Second, ""},
		{"conflict", Failure{Err: fail(centurion.KindConflict), Attempt: 1}, Retry, 5 * time.Second, ""},
		{"crashed", Failure{Err: fail(centurion.KindCrashed), Attempt: 1, Task: true}, Retry, 5 * time.Second, ""},
		{"crashed 4", Failure{Err: fail(centurion.KindCrashed), Attempt: 4, Task: true}, GiveUp, 0, ""},
		{"unknown", Failure{Err: errors.New("something odd"), Attempt: 1}, Retry, 5 * time.Second, ""},
		{"no answer", Failure{Err: fail(centurion.KindNoAnswer), Attempt: 1}, Retry, 5 * time.Second, ""},
		{"no answer 2", Failure{Err: fail(centurion.KindNoAnswer), Attempt: 2}, Inject, 5 * time.Second, ""},
		{"no answer 4", Failure{Err: fail(centurion.KindNoAnswer), Attempt: 4}, GiveUp, 0, ""},

		{"orphan call", Failure{Err: orphan, Attempt: 1}, Inject, 5 * time.Second, ""},
		{"orphan call 4", Failure{Err: orphan, Attempt: 4}, GiveUp, 0, ""},
		{"bad request", Failure{Err: fail(centurion.KindInvalidRequest), Attempt: 1}, GiveUp, 0, ""},
		{"bad request, other", Failure{Err: fail(centurion.KindInvalidRequest), Attempt: 1, Fallbacks: other}, Fallback, 0, "b/two"},
		{"overflow", Failure{Err: fail(centurion.KindOverflow), Attempt: 1}, Compact, 0, ""},
		{"overflow 3", Failure{Err: fail(centurion.KindOverflow), Attempt: 3}, Compact, 0, ""},
		{"overflow 4", Failure{Err: fail(centurion.KindOverflow), Attempt: 4}, GiveUp, 0, ""},
		{"overflow 4, other", Failure{Err: fail(centurion.KindOverflow), Attempt: 4, Fallbacks: other}, Fallback, 0, "b/two"},

		{"auth", Failure{Err: fail(centurion.KindAuth), Attempt: 1}, AskPerson, 0, ""},
		{"auth, task", Failure{Err: fail(centurion.KindAuth), Attempt: 1, Task: true}, GiveUp, 0, ""},
		{"auth, same provider", Failure{Err: fail(centurion.KindAuth), Attempt: 1, Model: "b/one", Fallbacks: other}, AskPerson, 0, ""},
		{"auth, other provider", Failure{Err: fail(centurion.KindAuth), Attempt: 1, Model: "a/one", Fallbacks: []string{"a/two", "b/two"}}, Fallback, 0, "b/two"},
		{"no model", Failure{Err: fail(centurion.KindModelNotFound), Attempt: 1}, AskPerson, 0, ""},
		{"no model, other", Failure{Err: fail(centurion.KindModelNotFound), Attempt: 1, Fallbacks: other}, Fallback, 0, "b/two"},
		{"budget", Failure{Err: centurion.ErrBudget, Attempt: 1}, AskPerson, 0, ""},
		{"budget, task", Failure{Err: centurion.ErrBudget, Attempt: 1, Task: true, Fallbacks: other}, AskPerson, 0, ""},
		{"disk", Failure{Err: fail(centurion.KindDisk), Attempt: 1, Task: true}, AskPerson, 0, ""},
		{"refusal", Failure{Err: fail(centurion.KindRefusal), Attempt: 1}, GiveUp, 0, ""},
		{"permission", Failure{Err: fail(centurion.KindPermission), Attempt: 1}, GiveUp, 0, ""},
		{"deadline", Failure{Err: context.DeadlineExceeded, Attempt: 1}, GiveUp, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := decide(tt.f)
			if d.Action != tt.action || d.Wait != tt.wait || d.Model != tt.model {
				t.Errorf("got %s after %v with %q, want %s after %v with %q (%s)", d.Action, d.Wait, d.Model, tt.action, tt.wait,
					tt.model, d.Reason)
			}
			if d.Reason == "" {
				t.Error("a decision without a reason")
			}
			if kind, _ := Classify(tt.f.Err); d.Kind != kind || d.Action.Fatal() != slices.Contains([]Action{AskPerson, GiveUp}, d.Action) {
				t.Errorf("kind %q, fatal %v", d.Kind, d.Action.Fatal())
			}
			if d.Action == Inject && d.Prompt == "" {
				t.Error("inject without a prompt")
			}
			if d.Action != Fallback && d.Action.Fatal() != (d.Hint != "") {
				t.Errorf("%s with the hint %q", d.Action, d.Hint)
			}
		})
	}
}

// ORCH-86: a second failure while the first is being recovered starts nothing.
func TestRecoveringDoesNotLoop(t *testing.T) {
	d := decide(Failure{Err: fail(centurion.KindNetwork), Attempt: 1, Recovering: true})
	if d.Action != None {
		t.Errorf("got %s, want none", d.Action)
	}
}

// ORCH-84, ORCH-87: three recoveries in a row, counted anew after a good answer; ORCH-82: waiting is not failing.
func TestStreak(t *testing.T) {
	network, limit := fail(centurion.KindNetwork), fail(centurion.KindRateLimit)
	var s Streak
	for i := 1; i <= 4; i++ {
		s = s.After(network)
		if s.Attempts != i {
			t.Fatalf("after %d failures: %+v", i, s)
		}
		want := Retry
		if i == 4 {
			want = GiveUp
		}
		if d := decide(Failure{Err: network, Attempt: s.Attempts}); d.Action != want {
			t.Errorf("failure %d: got %s, want %s", i, d.Action, want)
		}
	}
	s = Streak{}
	for range 5 {
		s = s.After(limit)
	}
	if s != (Streak{Attempts: 1, RateLimits: 5}) {
		t.Errorf("five rate limits: %+v", s)
	}
	if s = s.After(network); s != (Streak{Attempts: 2}) {
		t.Errorf("then a network error: %+v", s)
	}
	for _, err := range []error{centurion.ErrCancelled, centurion.ErrShutdown, nil} {
		if s = s.After(err); s != (Streak{Attempts: 2}) {
			t.Errorf("then %v, which does not count: %+v", err, s)
		}
	}
	if s = s.After(limit); s != (Streak{Attempts: 3, RateLimits: 1}) {
		t.Errorf("then a rate limit: %+v", s)
	}
}

func TestHintOfTheErrorComesFirst(t *testing.T) {
	err := &centurion.Error{Kind: centurion.KindAuth, Msg: "401", Hint: "set OPENAI_API_KEY"}
	d := decide(Failure{Err: fmt.Errorf("wrapped: %w", err), Attempt: 1})
	if d.Hint != "set OPENAI_API_KEY" || !strings.Contains(d.Reason, "401") {
		t.Errorf("got %+v", d)
	}
}

// A person reads what happened, how often, and what to do next.
func TestWords(t *testing.T) {
	for _, test := range []struct {
		f            Failure
		reason, hint string
	}{
		{Failure{Err: fail(centurion.KindNetwork), Attempt: 2}, "the provider could not be reached (attempt 2 of 3)", ""},
		{Failure{Err: fail(centurion.KindNetwork), Attempt: 4}, "the provider could not be reached, 4 times in a row: call model: said so", "see `centurion logs`"},
		{Failure{Err: errors.New("messages.1: tool_result_missing"), Attempt: 1}, "the provider rejected the history: tool_result_missing (attempt 1 of 3)", ""},
		{Failure{Err: fail(centurion.KindRateLimit), RateLimits: 9}, "the provider says too many requests, 9 times in a row: call model: said so", "wait until the limit is over"},
		{Failure{Err: &centurion.Error{Kind: centurion.KindRateLimit, RetryAfter: 2 * time.Hour}, RateLimits: 1}, "the provider says too many requests and asks to wait 2h0m0s: rate_limit", "wait until the limit is over"},
		{Failure{Err: fail(centurion.KindRateLimit), RateLimits: 2}, "the provider says too many requests; waiting 1m0s (2 of 8)", ""},
		{Failure{Err: &centurion.Error{Kind: centurion.KindRateLimit, RetryAfter: time.Hour}, RateLimits: 9}, "the provider says too many requests, 9 times in a row: rate_limit", "wait until the limit is over"},
		{Failure{Err: fail(centurion.KindOverloaded), Attempt: 1}, "the provider is overloaded (attempt 1 of 3)", ""},
		{Failure{Err: fail(centurion.KindNoAnswer), Attempt: 1}, "the model ended without an answer (attempt 1 of 3)", ""},
		{Failure{Err: fail(centurion.KindNoAnswer), Attempt: 2}, "the model ended without an answer again (attempt 2 of 3)", ""},
		{Failure{Err: errors.New("odd \n"), Attempt: 4}, "an unexpected error, 4 times in a row: odd", "see `centurion logs`"},
		{Failure{Err: fail("from a newer version")}, "from a newer version: call model: said so", "see `centurion logs`"},
		{Failure{Err: fail(centurion.KindConfig)}, "the configuration is wrong: call model: said so", "see `centurion logs`"},
		{Failure{Err: fail(centurion.KindRefusal), Fallbacks: []string{"b/two"}}, "the model failed: the model refused to answer: call model: said so; continuing with b/two", ""},
		{Failure{Err: fail(centurion.KindNetwork), Attempt: 1, Recovering: true}, "a recovery of this session is already under way", ""},
		{Failure{Err: centurion.ErrCancelled}, "cancelled: this was wanted and is not recovered", ""},
		{Failure{Err: fail(centurion.KindOverflow), Attempt: 4}, "the conversation is longer than the model's window, also after it was shortened: call model: said so", "split the work into smaller items"},
		{Failure{Err: fail(centurion.KindBudget)}, "the spending limit is reached", "--max-cost"},
		{Failure{Err: fail(centurion.KindDisk)}, "the disk is full or failing", "free some space"},
		{Failure{Err: fail(centurion.KindAuth)}, "the provider refused the key: call model: said so", "centurion auth login"},
		{Failure{Err: &centurion.Error{Kind: centurion.KindAuth, Msg: "refused the key"}}, "the provider refused the key", "centurion auth login"},
		{Failure{Err: fail(centurion.KindModelNotFound)}, "the provider does not know the model: call model: said so", "centurion models"},
		{Failure{Err: fail(centurion.KindRefusal)}, "the model refused to answer: call model: said so", "say it differently"},
		{Failure{Err: fail(centurion.KindPermission)}, "it was not permitted: call model: said so", "allow it with a rule"},
		{Failure{Err: fail(centurion.KindTimeout)}, "the time allowed for it is over: call model: said so", "split the work, or give it more time"},
		{Failure{Err: fail(centurion.KindStreamCut), Attempt: 3}, "the answer was cut off (attempt 3 of 3)", ""},
		{Failure{Err: fail(centurion.KindStall), Attempt: 1}, "the provider fell silent (attempt 1 of 3)", ""},
		{Failure{Err: fail(centurion.KindCrashed), Attempt: 1}, "the session crashed (attempt 1 of 3)", ""},
		{Failure{Err: fail(centurion.KindConflict), Attempt: 1}, "something changed meanwhile (attempt 1 of 3)", ""},
		{Failure{Err: fail(centurion.KindVerify)}, "an acceptance command failed: call model: said so", "see `centurion logs`"},
		{Failure{Err: fail(centurion.KindUsage)}, "the input is wrong: call model: said so", "see `centurion logs`"},
		{Failure{Err: fail(centurion.KindNotFound)}, "what was named does not exist: call model: said so", "see `centurion logs`"},
		{Failure{Err: fail(centurion.KindState)}, "the state database cannot be used: call model: said so", "see `centurion logs`"},
		{Failure{Err: fail(centurion.KindInvalidRequest)}, "the provider rejected the request: call model: said so", "see `centurion logs`"},
		{Failure{Err: fail(centurion.KindRateLimit), RateLimits: 2, Fallbacks: []string{"b/two"}}, "the provider still says too many requests; continuing with b/two", ""},
		{Failure{Err: fail(centurion.KindRefusal), Model: "a/one", Fallbacks: []string{"b/two"}}, "a/one failed: the model refused to answer: call model: said so; continuing with b/two", ""},
	} {
		d := decide(test.f)
		if d.Reason != test.reason || !strings.Contains(d.Hint, test.hint) || d.Action.Fatal() && test.hint == "" {
			t.Errorf("%q\nhint %q; want\n%q\nhint %q", d.Reason, d.Hint, test.reason, test.hint)
		}
	}
}

func TestPolicyOverrides(t *testing.T) {
	p := Policy{MaxAttempts: 2, Cooldown: time.Second, RateLimitWait: 3 * time.Second, MaxRateLimits: 5, MaxWait: 10 * time.Second, MaxRetryAfter: time.Minute}
	limited := func(after time.Duration) error {
		return &centurion.Error{Kind: centurion.KindRateLimit, RetryAfter: after}
	}
	for _, test := range []struct {
		f      Failure
		action Action
		wait   time.Duration
	}{
		{Failure{Err: fail(centurion.KindStall), Attempt: 2}, Retry, time.Second},
		{Failure{Err: fail(centurion.KindStall), Attempt: 3}, GiveUp, 0},
		{Failure{Err: fail(centurion.KindOverflow), Attempt: 3}, GiveUp, 0},
		{Failure{Err: limited(0), RateLimits: 1}, Retry, 3 * time.Second},
		{Failure{Err: limited(0), RateLimits: 2}, Retry, 6 * time.Second},
		{Failure{Err: limited(0), RateLimits: 5}, Retry, 10 * time.Second},
		{Failure{Err: limited(0), RateLimits: 6}, AskPerson, 0},
		{Failure{Err: limited(time.Minute), RateLimits: 1}, Retry, time.Minute},
		{Failure{Err: limited(24 * time.Hour), RateLimits: 1, Patient: true}, Retry, 24 * time.Hour},
		{Failure{Err: limited(time.Minute + 1), RateLimits: 1}, AskPerson, 0},
	} {
		if d := p.Decide(test.f); d.Action != test.action || d.Wait != test.wait {
			t.Errorf("%+v: %s after %v (%s), want %s after %v", test.f, d.Action, d.Wait, d.Reason, test.action, test.wait)
		}
	}
	p = Policy{MaxRateLimits: 1000, MaxRetryAfter: 48 * time.Hour}
	if d := p.Decide(Failure{Err: limited(0), RateLimits: 100}); d.Action != Retry || d.Wait != DefaultMaxWait {
		t.Errorf("the hundredth rate limit in a row: %+v", d)
	}
	if d := p.Decide(Failure{Err: limited(30 * time.Hour), RateLimits: 1, Patient: true}); d.Action != Retry || d.Wait != 30*time.Hour {
		t.Errorf("a policy more patient than a plan's limit: %+v", d)
	}
}

// The model reads what has happened to its history and what to do about it.
func TestPrompts(t *testing.T) {
	for msg, want := range map[string]string{
		"tool_result_missing": "A tool call of yours broke off before its result was recorded; the history has been repaired and shows what is known. " +
			"Check what the call did before you repeat it, then continue your task.",
		"thinking_block_order": "The previous turn could not be continued and was closed. Continue your task from the last recorded result.",
		"":                     "Your last turn ended without any text or tool call. Continue your task; if it is done, say in a few sentences what you did and what came of it.",
	} {
		err := errors.New(msg)
		if msg == "" {
			err = fail(centurion.KindNoAnswer)
		}
		if d := decide(Failure{Err: err, Attempt: 2}); d.Action != Inject || d.Prompt != want {
			t.Errorf("%s: %q, want %q", msg, d.Prompt, want)
		}
	}
}

// ORCH-78, ORCH-80, ORCH-81, ORCH-82, ORCH-83: messages that real endpoints and runtimes write.
func TestClassifyByText(t *testing.T) {
	const (
		invalid  = centurion.KindInvalidRequest
		internal = centurion.KindInternal
	)
	tests := []struct {
		msg   string
		kind  centurion.Kind
		fault Fault
	}{
		{"tool_result_missing", invalid, FaultToolResult},
		{"messages.4: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01A. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", invalid, FaultToolResult},
		{"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1", invalid, FaultToolResult},
		{"Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.", invalid, FaultToolResult},
		{"messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_9", invalid, FaultToolResult},
		{"No tool output found for function call call_abc.", invalid, FaultToolResult},
		{"Not the same number of function calls and responses", invalid, FaultToolResult},
		{"Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.", invalid, FaultToolResult},

		{"messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is enabled, a final `assistant` message must start with a thinking block", invalid, FaultThinkingOrder},
		{"messages.3.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.", invalid, FaultThinkingOrder},
		{"messages.5.content.0: Invalid `signature` in `thinking` block", invalid, FaultThinkingOrder},
		{"thinking_block_order", invalid, FaultThinkingOrder},

		{"This model's maximum context length is 128000 tokens. However, your messages resulted in 130012 tokens.", centurion.KindOverflow, ""},
		{"prompt is too long: 213462 tokens > 200000 maximum", centurion.KindOverflow, ""},
		{"The input token count (1050000) exceeds the maximum number of tokens allowed (1048576).", centurion.KindOverflow, ""},
		{"the request exceeds the available context size, try increasing it", centurion.KindOverflow, ""},
		{"Input is too long for requested model.", centurion.KindOverflow, ""},

		{"Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000", centurion.KindRateLimit, ""},
		{"This request would exceed your organization's rate limit of 40,000 input tokens per minute.", centurion.KindRateLimit, ""},
		{"rate_limit_error: Number of request tokens has exceeded your per-minute rate limit", centurion.KindRateLimit, ""},
		{"error, status code: 429, status: 429 Too Many Requests", centurion.KindRateLimit, ""},
		{"HTTP 429", centurion.KindRateLimit, ""},
		{"RESOURCE_EXHAUSTED: Quota exceeded for quota metric", centurion.KindRateLimit, ""},

		{"overloaded_error: Overloaded", centurion.KindOverloaded, ""},
		{"The server is currently overloaded. Please try again later.", centurion.KindOverloaded, ""},
		{"status code: 503 Service Unavailable", centurion.KindOverloaded, ""},
		{"Incorrect API key provided: sk-x. You can find your API key at …", centurion.KindAuth, ""},
		{"authentication_error: invalid x-api-key", centurion.KindAuth, ""},
		{"dial tcp 127.0.0.1:11434: connect: connection refused", centurion.KindNetwork, ""},
		{"dial tcp: lookup api.example.test: no such host", centurion.KindNetwork, ""},
		{"read tcp 10.0.0.1:443: read: connection reset by peer", centurion.KindNetwork, ""},

		// What only looks like one.
		{"file line 4291", internal, ""},
		{"main.go:429: undefined: x", internal, ""},
		{"line 429, column 5: unexpected token", internal, ""},
		{"exit code 429", internal, ""},
		{"open rate_limit.go: file does not exist", internal, ""},
		{"the rate limiter test failed", internal, ""},
		{"read 500 lines", internal, ""},
		{"internal/network/dial.go is missing", internal, ""},
		{"the tool result was empty", internal, ""},
		{"max_tokens must be positive", internal, ""},
		{"unauthorised_test.go: PASS", internal, ""},
	}
	for _, tt := range tests {
		for _, err := range []error{errors.New(tt.msg), fmt.Errorf("call model: %w", errors.New(tt.msg)),
			&centurion.Error{Kind: internal, Msg: tt.msg}} {
			if kind, fault := Classify(err); kind != tt.kind || fault != tt.fault {
				t.Errorf("%q: got %s %q, want %s %q", tt.msg, kind, fault, tt.kind, tt.fault)
			}
		}
	}
}

// hidden is an error that does not say what it is.
type hidden struct{ error }

func (hidden) Error() string   { return "odd" }
func (h hidden) Unwrap() error { return h.error }

// ORCH-78: what an error is outranks what it says.
func TestClassifyByStructure(t *testing.T) {
	tests := []struct {
		name string
		err  error
		kind centurion.Kind
	}{
		{"kind before text", &centurion.Error{Kind: centurion.KindVerify, Msg: "test printed: rate limit exceeded, status: 429"}, centurion.KindVerify},
		{"kind before status", &centurion.Error{Kind: centurion.KindOverflow, Status: 400}, centurion.KindOverflow},
		{"a cancel with a telling text", &centurion.Error{Kind: centurion.KindCancelled, Msg: "connection reset"}, centurion.KindCancelled},
		{"status before text", &centurion.Error{Status: 503, Msg: "rate limit exceeded"}, centurion.KindOverloaded},
		{"status before the shape of the text", &centurion.Error{Status: 503, Msg: `{"name":"ProviderAuthError","data":{"message":"no"}}`}, centurion.KindOverloaded},
		{"an overflow that is told as too many requests", errors.New("HTTP 429: prompt is too long"), centurion.KindOverflow},
		{"status 429", &centurion.Error{Status: 429, Msg: "quota"}, centurion.KindRateLimit},
		{"status 529", &centurion.Error{Status: 529}, centurion.KindOverloaded},
		{"status 401", &centurion.Error{Status: 401}, centurion.KindAuth},
		{"status 413", &centurion.Error{Status: 413}, centurion.KindOverflow},
		{"status 400", &centurion.Error{Status: 400, Msg: "no"}, centurion.KindInvalidRequest},
		{"status 400, overflow in the text", &centurion.Error{Status: 400, Msg: "prompt is too long"}, centurion.KindOverflow},
		{"status of a cause", &centurion.Error{Op: "run", Err: &centurion.Error{Status: 429}}, centurion.KindRateLimit},
		{"refused", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, centurion.KindNetwork},
		{"no host", &net.DNSError{Err: "no such host", Name: "x"}, centurion.KindNetwork},
		{"cut body", fmt.Errorf("read: %w", io.ErrUnexpectedEOF), centurion.KindNetwork},
		{"disk full", &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, centurion.KindDisk},
		{"quota used up", &os.PathError{Op: "write", Path: "x", Err: syscall.EDQUOT}, centurion.KindDisk},
		{"status 403", &centurion.Error{Status: 403}, centurion.KindAuth},
		{"status 404", &centurion.Error{Status: 404}, centurion.KindModelNotFound},
		{"status 408", &centurion.Error{Status: 408}, centurion.KindOverloaded},
		{"disk failing", hidden{syscall.EIO}, centurion.KindDisk},
		{"cut", hidden{io.ErrUnexpectedEOF}, centurion.KindNetwork},
		{"refused, hidden", hidden{syscall.ECONNREFUSED}, centurion.KindNetwork},
		{"reset", hidden{syscall.ECONNRESET}, centurion.KindNetwork},
		{"broken pipe", hidden{syscall.EPIPE}, centurion.KindNetwork},
		{"closed", hidden{net.ErrClosed}, centurion.KindNetwork},
		{"a file that is not there", &os.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, centurion.KindInternal},
		{"any network error", hidden{net.UnknownNetworkError("x")}, centurion.KindNetwork},
		{"deadline", fmt.Errorf("x: %w", context.DeadlineExceeded), centurion.KindTimeout},
	}
	for _, tt := range tests {
		if kind, _ := Classify(tt.err); kind != tt.kind {
			t.Errorf("%s: got %s, want %s", tt.name, kind, tt.kind)
		}
	}
	if kind, fault := Classify(&centurion.Error{Status: 400, Msg: "tool_result_missing"}); kind != centurion.KindInvalidRequest || fault != FaultToolResult {
		t.Errorf("a rejected history with its status: %s %q", kind, fault)
	}
}

// Whatever fails, there is a decision, it is bounded, and a fatal one is told with its next step.
func TestDecideIsTotal(t *testing.T) {
	kinds := []centurion.Kind{"", "from a newer version", centurion.KindInternal, centurion.KindUsage, centurion.KindConfig,
		centurion.KindNotFound, centurion.KindConflict, centurion.KindPermission, centurion.KindDisk, centurion.KindState,
		centurion.KindAuth, centurion.KindRateLimit, centurion.KindOverloaded, centurion.KindNetwork, centurion.KindStreamCut,
		centurion.KindStall, centurion.KindOverflow, centurion.KindRefusal, centurion.KindModelNotFound,
		centurion.KindInvalidRequest, centurion.KindTimeout, centurion.KindCancelled, centurion.KindInterrupted,
		centurion.KindCrashed, centurion.KindBudget, centurion.KindVerify, centurion.KindNoAnswer}
	actions := []Action{None, Retry, Inject, Compact, Fallback, AskPerson, GiveUp}
	rapid.Check(t, func(t *rapid.T) {
		f := Failure{
			Err: &centurion.Error{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Status: rapid.IntRange(0, 600).Draw(t, "status"),
				Msg:        rapid.SampledFrom([]string{"", "odd", "prompt is too long", "tool_result_missing", "HTTP 429"}).Draw(t, "msg"),
				RetryAfter: time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "after"))},
			Attempt: rapid.IntRange(0, 100).Draw(t, "attempt"), RateLimits: rapid.IntRange(0, 100).Draw(t, "limits"),
			Since: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "since")),
			Task:  rapid.Bool().Draw(t, "task"), Recovering: rapid.Bool().Draw(t, "recovering"),
			Model: "a/b", Fallbacks: rapid.SliceOfN(rapid.SampledFrom([]string{"a/c", "b/d"}), 0, 2).Draw(t, "fallbacks"),
		}
		d := decide(f)
		switch {
		case !slices.Contains(actions, d.Action):
			t.Fatalf("unknown action %q", d.Action)
		case d.Reason == "":
			t.Fatal("no reason")
		case d.Wait < 0 || d.Wait > DefaultMaxRetryAfter:
			t.Fatalf("waits %v", d.Wait)
		case d.Action.Fatal() && d.Hint == "":
			t.Fatal("fatal without a hint")
		case (d.Action == Fallback) != (d.Model != ""):
			t.Fatalf("%s with model %q", d.Action, d.Model)
		case (d.Action == Inject) != (d.Prompt != ""):
			t.Fatalf("%s with prompt %q", d.Action, d.Prompt)
		case f.Attempt > DefaultMaxAttempts && f.RateLimits > DefaultMaxRateLimits && len(f.Fallbacks) == 0 && !f.Recovering &&
			!d.Action.Fatal() && d.Action != None:
			t.Fatalf("goes on with %s for ever", d.Action)
		}
	})
}

// decide decides by the default policy.
func decide(f Failure) Decision { return Policy{}.Decide(f) }

// Issue "Plugin host", point 7: the usage limit of an agent from outside is waited for like a Retry-After, until it ends, for a day at most.
func TestPatience(t *testing.T) {
	for _, tt := range []struct {
		after   time.Duration
		patient bool
		want    Action
	}{{5 * time.Hour, true, Retry}, {5 * time.Hour, false, GiveUp}, {25 * time.Hour, true, GiveUp}} {
		d := Policy{}.Decide(Failure{Err: &centurion.Error{Kind: centurion.KindRateLimit, RetryAfter: tt.after}, Task: true, Patient: tt.patient})
		if d.Action != tt.want || tt.want == Retry && d.Wait != tt.after {
			t.Errorf("%v: %+v", tt, d)
		}
	}
}
