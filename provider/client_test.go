package provider

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
)

// Each kind of refusal comes with its own next step, unless what failed has a better one.
func TestHintsOfRefusals(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"code":401,"message":"m"}`:                           "check OPENAI_API_KEY, or run `centurion auth login`",
		`{"code":402,"message":"m"}`:                           "add credit at openai",
		`{"code":404,"message":"no such model"}`:               "run `centurion models` to see what openai offers",
		`{"code":405,"message":"m"}`:                           "check the base URL http://model.test/v1; it usually ends in /v1",
		`{"code":429,"message":"m"}`:                           "wait, or use fewer workers (--max-workers)",
		`{"code":400,"message":"m"}`:                           "",
		`{"code":500,"message":"m","type":"a"}`:                "",
		`{"type":"rate_limit_error","message":"m"}`:            "wait, or use fewer workers (--max-workers)",
		`{"status":"RESOURCE_EXHAUSTED"}`:                      "wait, or use fewer workers (--max-workers)",
		`{"error":{"message":"m"},"type":"too_many_requests"}`: "wait, or use fewer workers (--max-workers)",
	} {
		c := refusing(500, nil, "")
		if e := c.complete(Refusal([]byte(body)), "op"); e.Hint != want && !(want != "" && strings.HasPrefix(e.Hint, want)) || e.Op != "op" {
			t.Errorf("%s: %q, hint %q, want %q", body, e.Op, e.Hint, want)
		}
	}
	own := refusing(500, nil, "").complete(&centurion.Error{Kind: centurion.KindConfig, Hint: "own"}, "op")
	unnamed := New(Endpoint{BaseURL: "http://model.test", APIKey: "secret"}).complete(&centurion.Error{Kind: centurion.KindAuth, Msg: "secret is bad"}, "op")
	if own.Hint != "own" || own.Msg != "" || !strings.HasSuffix(unnamed.Msg, " refused the request with the key from the configuration: [key] is bad") {
		t.Errorf("hint %q, %q", own.Hint, unnamed.Msg)
	}
}

// Who is told to wait at the gate may go: nothing is asked for it. What is said of the wait is why.
func TestLeftAtTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, requests := served(t, Endpoint{}, func(_ int, w http.ResponseWriter, _ *http.Request) { write(w, done) })
		c.gate.Close(time.Now().Add(time.Minute))
		n := 0
		for d, err := range c.Stream(t.Context(), Request{}) {
			if n++; err != nil || d.Type != Waiting || d.Wait.Reason != "gate" || d.Wait.For < time.Minute {
				t.Errorf("%+v, %v", d, err)
			}
			break
		}
		c.gate.Close(time.Now().Add(2 * time.Hour))
		r := collect(t, t.Context(), c, Request{})
		const want = `call p/m: the provider said "too many requests" to another session; the wait of 2h is too long`
		if n != 1 || requests.Load() != 0 || r.err == nil || r.err.Error() != want || len(r.waits) != 0 {
			t.Errorf("%d requests, %d waits: %v", requests.Load(), len(r.waits), r.err)
		}
	})
}

// A deadline that is far enough away forbids no wait, and a wait says what it is for.
func TestWaitBeforeDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for status, reason := range map[int]string{429: "rate limit", 529: "retry"} {
			c, requests := served(t, Endpoint{}, func(n int, w http.ResponseWriter, _ *http.Request) {
				if n == 1 {
					w.Header().Set("Retry-After", "30")
					w.WriteHeader(status)
					return
				}
				write(w, done)
			})
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			r := collect(t, ctx, c, Request{})
			cancel()
			if r.err != nil || len(r.waits) != 1 || r.waits[0].Reason != reason || requests.Load() != 2 {
				t.Errorf("%d: %d requests, %+v", status, requests.Load(), r)
			}
		}
	})
}

// A provider that falls silent is told as such, with what may help.
func TestWordsOfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := served(t, Endpoint{}, func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		r := collect(t, t.Context(), c, Request{})
		if r.err == nil || r.err.Error() != "call p/m: nothing was heard from the provider in time" || !strings.Contains(centurion.HintOf(r.err), "idle timeout") {
			t.Errorf("%v, hint %q", r.err, centurion.HintOf(r.err))
		}
		start := time.Now()
		_, err := c.Models(t.Context())
		if took := time.Since(start); centurion.KindOf(err) != centurion.KindNetwork || took != 30*time.Second || !strings.HasPrefix(err.Error(), "list models of p: no answer for 30s") {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// closing counts how often it is closed, and fails behind its text if it is to.
type closing struct {
	io.Reader
	closed int
}

func (c *closing) Close() error { c.closed++; return nil }

// Whatever an answer is, its connection is given back.
func TestBodiesAreClosed(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		status int
		body   io.Reader
		models bool
	}{
		"an answer":        {200, strings.NewReader(done), false},
		"cut":              {200, strings.NewReader(cut(say("a"))), false},
		"broken":           {200, io.MultiReader(strings.NewReader("data:"), &failing{broken}), false},
		"a refusal":        {400, strings.NewReader("{}"), false},
		"models":           {200, strings.NewReader(`{"data":[]}`), true},
		"no models":        {404, strings.NewReader(`{}`), true},
		"models, broken":   {200, io.MultiReader(strings.NewReader(`{"data":`), &failing{broken}), true},
		"models, not JSON": {200, strings.NewReader(`x`), true},
	} {
		body := &closing{Reader: tt.body}
		c := New(Endpoint{Model: centurion.ModelRef{Provider: "p", ID: "m"}, BaseURL: "http://model.test/v1", MaxRetries: -1, HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: tt.status, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
		})}})
		if tt.models {
			_, err := c.Models(t.Context())
			if want := map[string]centurion.Kind{"models": "", "no models": centurion.KindConfig, "models, broken": centurion.KindNetwork, "models, not JSON": centurion.KindConfig}[name]; centurion.KindOf(err) != want {
				t.Errorf("%s: %v", name, err)
			}
			if name == "models, not JSON" && err.Error() != "list models of p: the answer is not a list of models: x" {
				t.Errorf("%s: %v", name, err)
			}
		} else {
			collect(t, t.Context(), c, Request{})
		}
		if body.closed != 1 {
			t.Errorf("%s: closed %d times", name, body.closed)
		}
	}
	// Of an error no more is read than can say what is wrong.
	long := strings.NewReader(strings.Repeat("x", 2*errorMaxBytes))
	c := New(Endpoint{BaseURL: "http://model.test/v1", HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 400, Body: io.NopCloser(long)}, nil
	})}})
	if r := collect(t, t.Context(), c, Request{}); r.err == nil || long.Len() != errorMaxBytes {
		t.Errorf("%d bytes of an error are left: %v", long.Len(), r.err)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// The phases of a request that have to be short are limited, and many sessions keep their connections.
func TestTransport(t *testing.T) {
	t.Parallel()
	c := newHTTPClient()
	tr, ok := c.Transport.(*http.Transport)
	if !ok || c.Timeout != 0 || tr.TLSHandshakeTimeout != 15*time.Second || tr.IdleConnTimeout != 90*time.Second || tr.MaxIdleConns != 256 || tr.MaxIdleConnsPerHost != 64 ||
		!tr.ForceAttemptHTTP2 || !tr.DisableCompression || tr.DialContext == nil || tr.Proxy == nil {
		t.Errorf("%+v", tr)
	}
}
