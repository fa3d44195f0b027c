package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
)

var done = sse(chunk(`{}`, "stop"))

// served returns a client of a server in memory; n counts its requests from 1.
func served(t *testing.T, e Endpoint, h func(n int, w http.ResponseWriter, r *http.Request)) (*Client, *atomic.Int64) {
	t.Helper()
	var requests atomic.Int64
	e.HTTP = pipeServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h(int(requests.Add(1)), w, r)
	}))
	e.Model, e.BaseURL = centurion.ModelRef{Provider: "p", ID: "m"}, "http://model.test/v1"
	return New(e), &requests
}

func write(w http.ResponseWriter, s string) {
	_, _ = io.WriteString(w, s)
	_ = http.NewResponseController(w).Flush()
}

// LOOP-91, LOOP-92, LOOP-93: a 429 and a 529 are tried again 8 times, after 2, 4, 8 … 256 s, each longer by chance by up to a fifth.
func TestRetries(t *testing.T) {
	for _, status := range []int{429, 529} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, requests := served(t, Endpoint{}, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
				start := time.Now()
				r := collect(t, t.Context(), c, Request{})
				if n := requests.Load(); n != 9 || len(r.waits) != 8 {
					t.Errorf("%d requests, %d waits; want 9 and 8", n, len(r.waits))
				}
				var sum, spread time.Duration
				for i, w := range r.waits {
					d := 2 * time.Second << i
					if w.For < d || w.For > d*12/10 || w.Attempt != i+1 || w.Err == nil {
						t.Errorf("wait %d is %+v, want %s to %s", i, w, d, d*12/10)
					}
					sum += w.For
					spread += w.For - d
				}
				if spread == 0 {
					t.Error("nothing is left to chance: all who wait come back at once")
				}
				if took := time.Since(start); took != sum {
					t.Errorf("took %s, told %s", took, sum)
				}
				if e, ok := errors.AsType[*centurion.Error](r.err); !ok || e.Status != status {
					t.Errorf("got %v", r.err)
				}
			})
		})
	}
}

// LOOP-95: a request that gets its answer, at last, ends without an error and without another attempt.
func TestRetrySucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, requests := served(t, Endpoint{}, func(n int, w http.ResponseWriter, _ *http.Request) {
			switch n {
			case 1:
				w.WriteHeader(529)
			case 2: // an error inside a stream that has not begun is retried as well
				write(w, `data: {"error":{"type":"overloaded_error","message":"m"}}`+"\n\n")
			default:
				write(w, done)
			}
		})
		if r := collect(t, t.Context(), c, Request{}); r.err != nil || len(r.waits) != 2 || r.dones != 1 || requests.Load() != 3 {
			t.Errorf("got %+v", r)
		}
	})
}

// LOOP-94
func TestOtherErrorsReturnAtOnce(t *testing.T) {
	for _, status := range []int{400, 401, 404, 408, 500, 502, 503} {
		synctest.Test(t, func(t *testing.T) {
			c, requests := served(t, Endpoint{}, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(status)
			})
			if r := collect(t, t.Context(), c, Request{}); r.err == nil || len(r.waits) != 0 || requests.Load() != 1 {
				t.Errorf("%d: %d requests, %+v", status, requests.Load(), r)
			}
		})
	}
}

func TestNoRetryAfterText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, requests := served(t, Endpoint{}, func(_ int, w http.ResponseWriter, _ *http.Request) {
			write(w, cut(say("a"), `{"error":{"type":"overloaded_error","message":"m"}}`))
		})
		if r := collect(t, t.Context(), c, Request{}); centurion.KindOf(r.err) != centurion.KindOverloaded || requests.Load() != 1 || len(r.waits) != 0 {
			t.Errorf("%d requests, %+v", requests.Load(), r)
		}
	})
}

// Trap 5: Retry-After in all its forms.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", "0.5", 500 * time.Millisecond},
		{"Retry-After", "Fri, 20 Nov 2026 12:00:30 GMT", 30 * time.Second},
		{"Retry-After", "Fri, 20 Nov 2026 11:00:30 GMT", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After", "-3", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "1e300", 1000 * time.Hour},
		{"Retry-After-Ms", "1500", 1500 * time.Millisecond},
		{"X", "1", 0},
	}
	for _, tt := range tests {
		if got := retryAfter(http.Header{tt.name: {tt.value}}, now); got != tt.want {
			t.Errorf("%s: %s is %s, want %s", tt.name, tt.value, got, tt.want)
		}
	}
	used := func(limit string, at time.Duration, left string) http.Header {
		return http.Header{"Anthropic-Ratelimit-" + limit + "-Remaining": {left}, "Anthropic-Ratelimit-" + limit + "-Reset": {now.Add(at).Format(time.RFC3339)}}
	}
	for want, all := range map[time.Duration][]http.Header{ // of the limits that are used up, the last to be filled again counts
		time.Minute:     {used("Requests", time.Minute, "0"), used("Tokens", 20*time.Second, "0"), used("Output-Tokens", time.Hour, "12")},
		2 * time.Second: {used("Requests", time.Second, "0"), used("Input-Tokens", 2*time.Second, "0")},
		0:               {used("Tokens", time.Minute, "1"), used("Requests", -time.Minute, "0")},
	} {
		h := http.Header{}
		for _, one := range all {
			maps.Copy(h, one)
		}
		if got := retryAfter(h, now); got != want {
			t.Errorf("%v: %s, want %s", h, got, want)
		}
	}
}

func TestRetryAfterIsObeyed(t *testing.T) {
	for name, value := range map[string]func() string{
		"seconds": func() string { return "30" },
		"date":    func() string { return time.Now().Add(30 * time.Second).UTC().Format(http.TimeFormat) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := served(t, Endpoint{}, func(n int, w http.ResponseWriter, _ *http.Request) {
					if n == 1 {
						w.Header().Set("Retry-After", value())
						w.WriteHeader(429)
						return
					}
					write(w, done)
				})
				start := time.Now()
				r := collect(t, t.Context(), c, Request{})
				if took := time.Since(start); r.err != nil || len(r.waits) != 1 || took < 30*time.Second || took > 31*time.Second {
					t.Errorf("took %s, %+v", took, r)
				}
				if w := r.waits[0]; w.Reason != "rate limit" || w.For < 30*time.Second || centurion.KindOf(w.Err) != centurion.KindRateLimit {
					t.Errorf("waited for %+v", w)
				}
			})
		})
	}
}

// LOOP-93: a wait that the deadline forbids, or that nobody would sit through, is not begun.
func TestWaitTooLong(t *testing.T) {
	for after, deadline := range map[string]time.Duration{"30": 29 * time.Second, "3601": 24 * time.Hour, "": time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c, requests := served(t, Endpoint{}, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", after)
				w.WriteHeader(429)
			})
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			start := time.Now()
			r := collect(t, ctx, c, Request{})
			if time.Since(start) != 0 || centurion.KindOf(r.err) != centurion.KindRateLimit || requests.Load() != 1 {
				t.Errorf("took %s, %+v", time.Since(start), r)
			}
			// The next one is told at once, and does not bother the provider.
			if after != "" {
				r = collect(t, ctx, c, Request{})
				if e, _ := errors.AsType[*centurion.Error](r.err); e == nil || e.Kind != centurion.KindRateLimit || e.RetryAfter <= 0 || e.Hint == "" || requests.Load() != 1 {
					t.Errorf("second: %d requests, %+v", requests.Load(), r)
				}
			}
		})
	}
}

// While a session waits behind a 429, all others of its model do, also when nobody said for how long; a 529 is its own matter.
func TestWhoWaitsHoldsOthers(t *testing.T) {
	for status, held := range map[int]bool{429: true, 529: false} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := served(t, Endpoint{}, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
			if c.Closed() != 0 {
				t.Error("closed before anything happened")
			}
			for d := range c.Stream(t.Context(), Request{}) {
				if got := c.Closed(); d.Type != Waiting || got > 0 != held {
					t.Errorf("%d: closed for %s", status, got)
				}
				break
			}
		})
	}
}

// LOOP-93: an hour is the longest wait that is carried out.
func TestWaitOfAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := served(t, Endpoint{}, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n > 1 {
				write(w, done)
				return
			}
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(529)
		})
		start := time.Now()
		if r := collect(t, t.Context(), c, Request{}); r.err != nil || time.Since(start) != time.Hour {
			t.Errorf("took %s, %+v", time.Since(start), r)
		}
	})
}

// LOOP-94: a quota that is used up is no "too many requests", though its status says so.
func TestQuotaIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, requests := served(t, Endpoint{}, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(429)
			write(w, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`)
		})
		if r := collect(t, t.Context(), c, Request{}); centurion.KindOf(r.err) != centurion.KindBudget || requests.Load() != 1 {
			t.Errorf("%d requests, %+v", requests.Load(), r)
		}
	})
}

// All sessions of a model wait together, and come back spread out.
func TestGateHoldsEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var came []time.Duration
		start := time.Now()
		c, _ := served(t, Endpoint{}, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				w.Header().Set("Retry-After", "20")
				w.WriteHeader(429)
				return
			}
			mu.Lock()
			came = append(came, time.Since(start))
			mu.Unlock()
			write(w, done)
		})
		var wg sync.WaitGroup
		var gated atomic.Int64
		ask := func() {
			r := collect(t, t.Context(), c, Request{})
			if r.err != nil {
				t.Error(r.err)
			}
			if len(r.waits) == 1 && r.waits[0].Reason == "gate" && r.waits[0].Err == nil {
				gated.Add(1)
			}
		}
		wg.Go(ask)
		time.Sleep(time.Second)
		for range 19 {
			wg.Go(ask)
		}
		wg.Wait()
		if gated.Load() != 19 || len(came) != 20 {
			t.Fatalf("%d waited at the gate, %d came", gated.Load(), len(came))
		}
		slices.Sort(came)
		if came[0] < 20*time.Second || came[19] > 26*time.Second {
			t.Errorf("they came from %s to %s", came[0], came[19])
		}
		for i := range 18 {
			if gap := came[i+2] - came[i]; gap < 100*time.Millisecond {
				t.Errorf("three within %s", gap)
			}
		}
	})
}

// Without a Retry-After one session's delay grows beyond a minute, but the others wait no longer than that.
func TestGateHoldsNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const refusals = 6 // the delay after the last one is more than a minute
		last := make(chan time.Time, 1)
		c, _ := served(t, Endpoint{}, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n <= refusals {
				w.WriteHeader(429)
				if n == refusals {
					last <- time.Now()
				}
				return
			}
			write(w, done)
		})
		var wg sync.WaitGroup
		wg.Go(func() {
			if r := collect(t, t.Context(), c, Request{}); r.err != nil || r.waits[refusals-1].For <= time.Minute {
				t.Errorf("the first session: %v", r.err)
			}
		})
		start := <-last
		time.Sleep(time.Second)
		if r := collect(t, t.Context(), c, Request{}); r.err != nil || time.Since(start) > 62*time.Second {
			t.Errorf("another session waited %s, %v", time.Since(start), r.err)
		}
		wg.Wait()
	})
}

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gates Gates
		of := func(address, id string) *Gate { return gates.Of(address, centurion.ModelRef{Provider: "p", ID: id}) }
		a, b := of("u", "a"), of("u", "b")
		if a == b || a != of("u", "a") || a == of("other", "a") {
			t.Error("want one gate for each model at an address")
		}
		start := time.Now()
		pass := func(g *Gate) time.Duration {
			if err := g.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			return time.Since(start)
		}
		a.Close(start.Add(time.Minute))
		a.Close(start.Add(time.Second)) // changes nothing
		if pass(b) != 0 {
			t.Error("the other model's gate was closed")
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(centurion.ErrShutdown)
		if err := a.Wait(ctx); err != centurion.ErrShutdown {
			t.Errorf("got %v, want the cause", err)
		}
		// Closed again while somebody waits: the wait goes on.
		time.AfterFunc(30*time.Second, func() { a.Close(start.Add(2 * time.Minute)) })
		if at := pass(a); at < 2*time.Minute || at > 2*time.Minute+200*time.Millisecond {
			t.Errorf("passed after %s", at)
		}
		time.Sleep(time.Second)
		if was := time.Since(start); pass(a) != was {
			t.Error("an open gate held somebody")
		}
	})
}

func TestCancelWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := served(t, Endpoint{}, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(529) })
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(centurion.ErrShutdown) })
		r := collect(t, ctx, c, Request{})
		if !errors.Is(r.err, centurion.ErrShutdown) || centurion.KindOf(r.err) != centurion.KindInterrupted {
			t.Errorf("got %v", r.err)
		}
	})
}

func TestCancelWhileStreaming(t *testing.T) {
	for _, before := range []bool{true, false} { // the first byte
		synctest.Test(t, func(t *testing.T) {
			c, _ := served(t, Endpoint{}, func(_ int, w http.ResponseWriter, r *http.Request) {
				if !before {
					write(w, cut(say("a")))
				}
				<-r.Context().Done()
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(centurion.ErrCancelled) })
			if r := collect(t, ctx, c, Request{}); !errors.Is(r.err, centurion.ErrCancelled) {
				t.Errorf("got %v", r.err)
			}
			short, stop := context.WithTimeout(t.Context(), time.Second)
			defer stop()
			if r := collect(t, short, c, Request{}); centurion.KindOf(r.err) != centurion.KindTimeout {
				t.Errorf("got %v", r.err)
			}
		})
	}
}

func TestBreakEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		c, _ := served(t, Endpoint{}, func(_ int, w http.ResponseWriter, r *http.Request) {
			write(w, cut(say("a"), say("b")))
			<-r.Context().Done() // a handler that is never told would hang the test
			close(gone)
		})
		for d, err := range c.Stream(t.Context(), Request{}) {
			if err != nil || d.Text != "a" {
				t.Fatalf("got %+v, %v", d, err)
			}
			break
		}
		<-gone
	})
}

// An idle timeout above the limit for keep-alives counts, before the first byte and after every piece.
func TestLongIdleTimeout(t *testing.T) {
	for name, first := range map[string]string{"no answer": "", "in the middle": cut(say("a"))} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := served(t, Endpoint{IdleTimeout: 30 * time.Minute}, func(_ int, w http.ResponseWriter, r *http.Request) {
				write(w, first)
				<-r.Context().Done()
			})
			start := time.Now()
			if r := collect(t, t.Context(), c, Request{}); centurion.KindOf(r.err) != centurion.KindStall || time.Since(start) != 30*time.Minute {
				t.Errorf("%s: %v after %s", name, r.err, time.Since(start))
			}
		})
	}
}

// Over a wire of its own, too, pieces that come slowly are no silence, and a reader that goes ends the request.
func TestResponsesSlowAndLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		c, _ := served(t, Endpoint{Wire: Responses{}}, func(n int, w http.ResponseWriter, r *http.Request) {
			for range 30 {
				write(w, cut(piece("output_text", 0, "a")))
				if guard.Sleep(r.Context(), time.Minute) != nil {
					close(gone)
					return
				}
			}
			write(w, cut(over("")))
		})
		if r := collect(t, t.Context(), c, Request{}); r.err != nil || len(r.text) != 30 {
			t.Errorf("got %+v", r)
		}
		for d, err := range c.Stream(t.Context(), Request{}) {
			if err != nil || d.Text != "a" {
				t.Fatalf("got %+v, %v", d, err)
			}
			break
		}
		<-gone
	})
}

func TestStall(t *testing.T) {
	const idle = 2 * time.Minute
	tests := []struct {
		name   string
		handle func(w http.ResponseWriter, r *http.Request)
		after  time.Duration
		kind   centurion.Kind // "": Done
	}{
		{"no headers", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, idle, centurion.KindStall},
		{"no answer", func(w http.ResponseWriter, r *http.Request) { write(w, ":\n"); <-r.Context().Done() }, idle, centurion.KindStall},
		{"in the middle", func(w http.ResponseWriter, r *http.Request) { write(w, cut(say("a"))); <-r.Context().Done() }, idle, centurion.KindStall},
		{"in an error", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			write(w, "half an ")
			<-r.Context().Done()
		}, idle, centurion.KindOverloaded},
		{"keep-alives for ever", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				write(w, ": ping\n\n")
				time.Sleep(30 * time.Second)
			}
		}, 10 * time.Minute, centurion.KindStall},
		{"keep-alives, then the answer", func(w http.ResponseWriter, r *http.Request) {
			for range 18 {
				write(w, ": ping\n\n")
				time.Sleep(30 * time.Second)
			}
			write(w, done)
		}, 9 * time.Minute, ""},
		{"slow but alive", func(w http.ResponseWriter, r *http.Request) {
			for range 60 {
				write(w, cut(say("a")))
				time.Sleep(time.Minute)
			}
			write(w, done)
		}, time.Hour, ""},
		{"finished, but kept open", func(w http.ResponseWriter, r *http.Request) {
			write(w, cut(chunk(`{}`, "stop")))
			<-r.Context().Done()
		}, 5 * time.Second, ""},
		{"finished, and kept alive", func(w http.ResponseWriter, r *http.Request) {
			write(w, cut(chunk(`{}`, "stop")))
			for r.Context().Err() == nil {
				write(w, ": ping\n\n")
				time.Sleep(time.Second)
			}
		}, 5 * time.Second, ""},
		{"[DONE], but kept open", func(w http.ResponseWriter, r *http.Request) { write(w, done); <-r.Context().Done() }, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := served(t, Endpoint{}, func(_ int, w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					tt.handle(w, r)
				})
				start := time.Now()
				lived := start
				r := collect(t, t.Context(), c, Request{Alive: func() { lived = time.Now() }})
				if silent := time.Since(lived); tt.after > idle && silent > time.Minute {
					t.Errorf("of the last %s no sign of life was told", silent)
				}
				if took := time.Since(start); took < tt.after || took > tt.after+time.Second {
					t.Errorf("took %s, want %s", took, tt.after)
				}
				if centurion.KindOf(r.err) != tt.kind {
					t.Errorf("got %v", r.err)
				}
			})
		})
	}
}

// The clock does not run while the reader of the answer is busy.
func TestSlowReaderIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := served(t, Endpoint{IdleTimeout: time.Second}, func(_ int, w http.ResponseWriter, _ *http.Request) { write(w, sse(say("a"), chunk(`{}`, "stop"))) })
		for _, err := range c.Stream(t.Context(), Request{}) {
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
	})
}

func TestConnectionIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, requests := served(t, Endpoint{}, func(_ int, w http.ResponseWriter, _ *http.Request) { write(w, done) })
		dials := 0
		tr := c.end.HTTP.Transport.(*http.Transport)
		dial := tr.DialContext
		tr.DialContext = func(ctx context.Context, a, b string) (net.Conn, error) { dials++; return dial(ctx, a, b) }
		for range 5 {
			collect(t, t.Context(), c, Request{})
			synctest.Wait()
		}
		if requests.Load() != 5 || dials != 1 {
			t.Errorf("%d requests over %d connections", requests.Load(), dials)
		}
	})
}
