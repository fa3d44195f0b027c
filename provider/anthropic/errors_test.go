package anthropic_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/provider"
	"centurion/provider/anthropic"
)

func complaint(kind, msg string) string {
	return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_1"}`, kind, msg)
}

// LOOP-32, ORCH-81: every error of the API has the kind that says what to do about it, by its status and by its type alone.
func TestErrors(t *testing.T) {
	tests := []struct {
		status    int
		word, msg string
		kind      centurion.Kind
	}{
		{400, "invalid_request_error", "messages: roles must alternate", centurion.KindInvalidRequest},
		{400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", centurion.KindOverflow},
		{400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", centurion.KindOverflow},
		{400, "invalid_request_error", "Your credit balance is too low to access the API.", centurion.KindBudget},
		{401, "authentication_error", "invalid x-api-key", centurion.KindAuth},
		{402, "billing_error", "pay first", centurion.KindBudget},
		{403, "permission_error", "not yours", centurion.KindAuth},
		{404, "not_found_error", "model: claude-nine", centurion.KindModelNotFound},
		{413, "request_too_large", "too many bytes", centurion.KindOverflow},
		{429, "rate_limit_error", "too many tokens a minute", centurion.KindRateLimit},
		{500, "api_error", "it broke", centurion.KindOverloaded},
		{504, "timeout_error", "it took too long", centurion.KindOverloaded},
		{529, "overloaded_error", "Overloaded", centurion.KindOverloaded},
	}
	for _, tt := range tests {
		t.Run(tt.word+" "+tt.msg, func(t *testing.T) {
			r := collect(t, refusing(tt.status, nil, complaint(tt.word, tt.msg)), provider.Request{})
			e, ok := errors.AsType[*centurion.Error](r.err)
			if !ok || e.Kind != tt.kind || e.Status != tt.status || !strings.Contains(e.Msg, tt.msg) {
				t.Errorf("by status: %+v", r.err)
			}
			// The same as an event, after a status of 200 and a piece of the answer.
			body := sse(events(begin, say(0, "a")[:2])...) + "event: error\ndata: " + complaint(tt.word, tt.msg) + "\n\n"
			r = collect(t, canned(strings.NewReader(body)), provider.Request{})
			e, ok = errors.AsType[*centurion.Error](r.err)
			if !ok || e.Kind != tt.kind || e.Status != 0 || r.dones > 0 || !strings.Contains(e.Msg, tt.msg) {
				t.Errorf("in the stream: %+v", r.err)
			}
		})
	}
}

// An error without a word is one all the same.
func TestBareError(t *testing.T) {
	r := collect(t, canned(strings.NewReader(sse(events(begin, say(0, "a"), `{"type":"error"}`, reason("end_turn"), stop)...))), provider.Request{})
	if r.err == nil || r.dones > 0 {
		t.Errorf("got %+v", r)
	}
}

// A refused key is named by where it came from and never shown.
func TestRefusedKey(t *testing.T) {
	r := collect(t, refusing(401, nil, complaint("authentication_error", "the key sk-ant-secret is wrong")), provider.Request{})
	if s := r.err.Error(); strings.Contains(s, "sk-ant-secret") || !strings.Contains(s, "ANTHROPIC_API_KEY") {
		t.Error(s)
	}
}

// LOOP-32: how long the provider asks to wait is read from Retry-After, or else from its limits.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
		tests := map[string]struct {
			header map[string]string
			want   time.Duration
		}{
			"nothing":       {nil, 0},
			"Retry-After":   {map[string]string{"Retry-After": "7", "Anthropic-Ratelimit-Tokens-Remaining": "0", "Anthropic-Ratelimit-Tokens-Reset": at(time.Minute)}, 7 * time.Second},
			"a used limit":  {map[string]string{"Anthropic-Ratelimit-Input-Tokens-Remaining": "0", "Anthropic-Ratelimit-Input-Tokens-Reset": at(30 * time.Second)}, 30 * time.Second},
			"the later one": {map[string]string{"Anthropic-Ratelimit-Requests-Remaining": "0", "Anthropic-Ratelimit-Requests-Reset": at(5 * time.Second), "Anthropic-Ratelimit-Output-Tokens-Remaining": "0", "Anthropic-Ratelimit-Output-Tokens-Reset": at(9 * time.Second)}, 9 * time.Second},
			"not used up":   {map[string]string{"Anthropic-Ratelimit-Tokens-Remaining": "12", "Anthropic-Ratelimit-Tokens-Reset": at(30 * time.Second)}, 0},
			"no time":       {map[string]string{"Anthropic-Ratelimit-Tokens-Remaining": "0", "Anthropic-Ratelimit-Tokens-Reset": "soon"}, 0},
			"past":          {map[string]string{"Anthropic-Ratelimit-Tokens-Remaining": "0", "Anthropic-Ratelimit-Tokens-Reset": at(-time.Minute)}, 0},
		}
		for name, tt := range tests {
			h := http.Header{}
			for k, v := range tt.header {
				h.Set(k, v)
			}
			r := collect(t, refusing(429, h, complaint("rate_limit_error", "slow down")), provider.Request{})
			if e, _ := errors.AsType[*centurion.Error](r.err); e == nil || e.RetryAfter != tt.want {
				t.Errorf("%s: %+v, want %s", name, r.err, tt.want)
			}
		}
	})
}

// LOOP-32: what is overloaded is asked again, also when it says so in the stream, as long as nothing of the answer was told.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		replies := []*http.Response{
			respond(529, "application/json", strings.NewReader(complaint("overloaded_error", "Overloaded"))),
			respond(200, "text/event-stream", strings.NewReader(sse(begin)+"event: error\ndata: "+complaint("overloaded_error", "Overloaded")+"\n\n")),
			respond(200, "text/event-stream", strings.NewReader(sse(events(begin, say(0, "a"), reason("end_turn"), stop)...))),
		}
		n := 0
		c := provider.New(provider.Endpoint{Model: ref, BaseURL: "http://model.test/v1", Wire: anthropic.Wire{}, HTTP: &http.Client{Transport: roundTrip(
			func(*http.Request) (*http.Response, error) { n++; return replies[n-1], nil })}})
		r := collect(t, c, provider.Request{})
		if r.err != nil || r.text != "a" || n != 3 || len(r.waits) != 2 || r.waits[0].For < 2*time.Second || r.waits[1].For < 4*time.Second {
			t.Errorf("%d requests, %+v", n, r)
		}
	})
}

// Pings are a sign of life, for ten minutes; silence is not.
func TestSilence(t *testing.T) {
	for name, tt := range map[string]struct {
		every time.Duration
		want  time.Duration
	}{"silence": {time.Hour, 2 * time.Minute}, "pings alone": {30 * time.Second, 10 * time.Minute}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				c := client(func(r *http.Request) (*http.Response, error) {
					return respond(200, "text/event-stream", &pinging{every: tt.every, done: r.Context().Done()}), nil
				})
				r := collect(t, c, provider.Request{})
				if took := time.Since(began); centurion.KindOf(r.err) != centurion.KindStall || took != tt.want {
					t.Errorf("%v after %s", r.err, took)
				}
			})
		})
	}
}

// pinging is a stream that begins, and then holds nothing but pings.
type pinging struct {
	begun bool
	every time.Duration
	done  <-chan struct{}
}

func (p *pinging) Read(b []byte) (int, error) {
	if !p.begun {
		p.begun = true
		return copy(b, sse(begin)), nil
	}
	select {
	case <-time.After(p.every):
		return copy(b, sse(ping)), nil
	case <-p.done:
		return 0, io.ErrUnexpectedEOF
	}
}

// What of an answer was not as the protocol has it is said; an event of a kind that is not known is only a sign of life.
func TestWhatWasCut(t *testing.T) {
	const (
		text  = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
		begin = `{"type":"message_start","message":{"id":"m"}}`
	)
	for want, events := range map[string][]string{
		"an event is not JSON: {no":                                                  {"{no"},
		"a block of the answer began twice":                                          {begin, text, text},
		"another answer began in the middle of this one":                             {begin, `{"type":"message_start","message":{"id":"n"}}`},
		"a call of a tool has no name":                                               {begin, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a"}}`},
		"a piece of a call came before it began or after it ended: events were lost": {begin, `{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{"}}`},
		"m": {`{"type":"error","error":{"message":"m"}}`},
		"n": {`{"type":"other","error":{"message":"n"}}`},
		"":  {begin, begin, `{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"lost"}}`},
	} {
		d := anthropic.Wire{}.Decoder(func(provider.Delta) {})
		var err error
		for _, e := range events {
			_, err = d.Event([]byte(e))
		}
		var got string
		if e, ok := errors.AsType[*centurion.Error](err); ok {
			got = e.Msg
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	d := anthropic.Wire{}.Decoder(func(provider.Delta) {})
	for _, e := range []string{`{"type":"ping"}`, `{"type":"newer"}`} {
		if piece, err := d.Event([]byte(e)); piece || err != nil || d.Over() {
			t.Errorf("%s: %v, %v", e, piece, err)
		}
	}
	whole := `{"type":"message","content":[],"stop_reason":"end_turn"}` // and each event of an answer is a piece of it: the provider works
	for _, e := range append(events(begin, say(0, "a"), call(1, "A", "read", "{}"), reason("end_turn"), stop), whole) {
		if piece, err := d.Event([]byte(e)); !piece || err != nil {
			t.Errorf("%s: %v, %v", e, piece, err)
		}
	}
}
