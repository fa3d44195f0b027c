package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"centurion"
)

func remote(url string) Server {
	return Server{Name: "r", URL: url, Headers: map[string]string{"Authorization": "Bearer secret", "Accept": "text/html"}}
}

func handler(t *testing.T) http.Handler {
	s := newServer()
	t.Cleanup(func() {
		for session := range s.Sessions() {
			session.Close()
		}
	})
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
}

// serve starts an HTTP server that ends its open requests with the test.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestHTTP(t *testing.T) {
	inner, bad := handler(t), atomic.Int32{}
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" || strings.Contains(r.Header.Get("Accept"), "html") && r.Method != http.MethodDelete {
			bad.Add(1)
		}
		inner.ServeHTTP(w, r)
	}))
	cs := settled(t, Options{}, remote(url))
	for name, want := range map[string]string{"echo": `{"a":1}`, "roots": "file:///srv/project", "wants": "true true"} {
		if r, err := cs.Call(t.Context(), cs.tool(t, "r_"+name), "", raw(`{"a":1}`)); err != nil || r.Text != want {
			t.Error(name, r, err)
		}
	}
	if r, err := cs.Call(t.Context(), cs.tool(t, "r_large"), "", nil); err != nil || !strings.Contains(r.Text, "[cut here: the answer has 50 MB") {
		t.Error(len(r.Text), err)
	}
	if bad.Load() != 0 {
		t.Errorf("%d requests without the header, or with the wrong one", bad.Load())
	}
}

// A server that was started anew does not know its sessions: the call has not begun, and the client connects again.
func TestSessionLost(t *testing.T) {
	var mu sync.Mutex
	inner := handler(t)
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := inner
		mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	cs := settled(t, Options{}, remote(url))
	mu.Lock()
	inner = handler(t)
	mu.Unlock()
	look := cs.tool(t, "r_look")
	if r, err := cs.Call(t.Context(), look, "", nil); err != nil || r.Text != "seen" {
		t.Fatal(r, err)
	}
}

// The end of the connection, which comes with such an answer, may be seen before it.
func TestSessionLostEndsTheLink(t *testing.T) {
	url := serve(t, http.NotFoundHandler())
	for session, want := range map[string]bool{"S": true, "": false} {
		life, end := context.WithCancelCause(t.Context())
		w := &wire{base: http.DefaultTransport, life: life, limit: time.Minute}
		err := (&link{life: life, http: true}).do(t.Context(), time.Minute, func(ctx context.Context, _ *sdk.ClientSession) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"method":"tools/call"}`))
			if err != nil {
				return err
			}
			req.Header.Set("Mcp-Session-Id", session)
			res, err := w.RoundTrip(req)
			if err != nil {
				return err
			}
			res.Body.Close()
			end(context.Canceled)
			<-ctx.Done()
			return ctx.Err()
		})
		if err == nil || errors.Is(err, sdk.ErrSessionMissing) != want {
			t.Errorf("with the session %q: %v", session, err)
		}
	}
}

// What a server over HTTP does wrong, and what is told of it.
func TestHostileHTTP(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other host got %s with %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	status := func(n int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(n) }
	}
	body := func(kind, s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			io.WriteString(w, s)
		}
	}
	for name, row := range map[string]struct {
		h    http.HandlerFunc
		kind centurion.Kind
		text string
	}{
		"wants a login":  {status(401), centurion.KindAuth, "it needs a login, which Centurion does not do"},
		"refuses":        {status(403), centurion.KindAuth, "403"},
		"is busy":        {status(429), centurion.KindRateLimit, "429"},
		"is not there":   {status(404), centurion.KindNetwork, "Not Found"},
		"is broken":      {status(500), centurion.KindNetwork, "Internal Server Error"},
		"redirects":      {http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect).ServeHTTP, centurion.KindConfig, "it redirects to " + elsewhere.URL},
		"redirects, 302": {http.RedirectHandler(elsewhere.URL+"/x", http.StatusFound).ServeHTTP, centurion.KindConfig, "it redirects to " + elsewhere.URL},
		"redirects to self": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
		}, centurion.KindConfig, "it redirects to http://127.0.0.1"},
		"is a page":       {body("text/html", "<html>"), centurion.KindNetwork, "text/html"},
		"writes nonsense": {body("application/json", "}{"), centurion.KindNetwork, ""},
		"writes no end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for _, err := io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":"`); err == nil; _, err = w.Write(make([]byte, 1<<20)) {
			}
		}, centurion.KindNetwork, "more than 64 MB"},
		"streams nonsense": {body("text/event-stream", "data: }{\n\n"), centurion.KindNetwork, ""},
		"ends the stream":  {body("text/event-stream", ": nothing\n\n"), centurion.KindNetwork, "request terminated without response"},
		"floods": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 200 * maxRate {
				if _, err := io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"no/such\"}\n\n"); err != nil {
					return
				}
			}
			t.Error("the flood was read to its end")
		}, centurion.KindNetwork, ""},
		"never answers": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then it sees that the client is gone
			<-r.Context().Done()
		}, centurion.KindTimeout, "did not answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			s := remote(serve(t, row.h))
			if row.kind == centurion.KindTimeout {
				s.Timeout = 500 * time.Millisecond
			}
			cs := open(t, Options{}, s)
			began := time.Now()
			for cs.Tools().Servers[0].Err == nil {
				if time.Since(began) > 20*time.Second {
					t.Fatal("no error")
				}
				time.Sleep(10 * time.Millisecond)
			}
			st := cs.Tools().Servers[0]
			if centurion.KindOf(st.Err) != row.kind || !strings.Contains(st.Err.Error(), row.text) {
				t.Errorf("%v (%s)", st.Err, centurion.KindOf(st.Err))
			}
			if want := row.kind == centurion.KindAuth || row.kind == centurion.KindConfig; want != (st.State == Failed) || want && centurion.HintOf(st.Err) == "" {
				t.Errorf("%s, hint %q", st.State, centurion.HintOf(st.Err))
			}
		})
	}
}

// A refusal in the middle: the call has not begun, and the connection stays.
func TestRefusedCall(t *testing.T) {
	inner, refuse := handler(t), atomic.Bool{}
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse.Load() && r.Method == http.MethodPost {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	cs := settled(t, Options{}, remote(url))
	look := cs.tool(t, "r_look")
	refuse.Store(true)
	if _, err := cs.Call(t.Context(), look, "", nil); !errors.Is(err, ErrNotBegun) || errors.Is(err, ErrMayHaveRun) || centurion.KindOf(err) != centurion.KindRateLimit {
		t.Error(err)
	}
	refuse.Store(false)
	if _, err := cs.Call(t.Context(), look, "", nil); err != nil {
		t.Error(err)
	}
}

// A server that never opens the stream for its own messages is usable, and ends a session in time.
func TestNoStream(t *testing.T) {
	inner := handler(t)
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			<-r.Context().Done()
			return
		}
		inner.ServeHTTP(w, r)
	}))
	s := remote(url)
	s.Timeout = time.Second
	cs := Open([]Server{s}, Options{Root: "/"})
	if err := cs.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err := cs.Call(t.Context(), cs.tool(t, "r_look"), "", nil); err != nil || r.Text != "seen" {
		t.Error(r, err)
	}
	began := time.Now()
	if err := cs.Close(); err != nil || time.Since(began) > 2*endLimit {
		t.Error(time.Since(began), err)
	}
}

// A port without a server: the call has not begun.
func TestUnreachable(t *testing.T) {
	srv := httptest.NewServer(nil)
	srv.Close()
	s := remote(srv.URL)
	s.Timeout = 300 * time.Millisecond
	cs := open(t, Options{}, s)
	_, err := cs.Call(t.Context(), Tool{Name: "r_x", Server: "r", Remote: "x"}, "", nil)
	if !errors.Is(err, ErrNotBegun) || !strings.Contains(fmt.Sprint(err), "connection refused") {
		t.Error(err)
	}
}

// Close ends a call that its server never answers: the call may have run.
func TestCloseUnderCall(t *testing.T) {
	inner, got := handler(t), make(chan struct{})
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && strings.Contains(string(body), "tools/call") {
			close(got)
			<-r.Context().Done()
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		inner.ServeHTTP(w, r)
	}))
	cs := settled(t, Options{}, remote(url))
	look, ended := cs.tool(t, "r_look"), make(chan error)
	go func() {
		_, err := cs.Call(t.Context(), look, "", nil)
		ended <- err
	}()
	<-got
	began := time.Now()
	if err := cs.Close(); err != nil || time.Since(began) > endLimit/2 {
		t.Error(time.Since(began), err)
	}
	if err := <-ended; !errors.Is(err, ErrMayHaveRun) || centurion.KindOf(err) != centurion.KindInterrupted {
		t.Error(err)
	}
}

// A server that asks and never takes the answer loses its connection: what it sends meanwhile would be queued.
func TestAnswerNotTaken(t *testing.T) {
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var p player
		err := json.NewDecoder(r.Body).Decode(&p)
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case err != nil:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case p.Method == "":
			<-r.Context().Done()
		case p.Method == "tools/call":
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case len(p.ID) == 0:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Content-Type", "application/json")
			p.out = w
			p.result(ordinary[p.Method])
		}
	}))
	s := remote(url)
	s.Timeout = time.Second
	cs := settled(t, Options{}, s)
	if _, err := cs.Call(t.Context(), cs.tool(t, "r_do"), "", nil); !errors.Is(err, ErrMayHaveRun) || !strings.Contains(err.Error(), "does not take what it is sent") {
		t.Error(err)
	}
}

// inMemory is a server without a network.
type inMemory func(*http.Request) (*http.Response, error)

func (f inMemory) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An answer that breaks off is fetched again, also from a server that is slow to take that up; and a server is told when nobody needs its session
// any more.
func TestAnswerIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reply := func(status int, kind, body string) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}, "Mcp-Session-Id": {"S"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
		}
		const stream = "text/event-stream"
		var call player
		resumed, ended := 0, ""
		cs := settled(t, Options{HTTP: inMemory(func(r *http.Request) (*http.Response, error) {
			switch {
			case r.Method == http.MethodDelete:
				select {
				case <-r.Context().Done():
					return nil, r.Context().Err()
				case <-time.After(endLimit / 2):
				}
				ended += r.Header.Get("Mcp-Session-Id")
				return reply(http.StatusNoContent, "", "")
			case r.Method == http.MethodGet && r.Header.Get("Last-Event-Id") != "7":
				return reply(http.StatusMethodNotAllowed, "", "")
			case r.Method == http.MethodGet:
				if resumed++; resumed == 1 {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				return reply(http.StatusOK, stream, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", call.ID, ordinary["tools/call"]))
			}
			var out strings.Builder
			p := player{out: &out}
			if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
				return nil, err
			}
			switch {
			case p.Method == "tools/call":
				call = p
				return reply(http.StatusOK, stream, "id: 7\ndata:\n\n")
			case len(p.ID) == 0:
				return reply(http.StatusAccepted, "", "")
			}
			p.result(ordinary[p.Method])
			return reply(http.StatusOK, "application/json", out.String())
		})}, remote("http://server.test"))
		if r, err := cs.Call(t.Context(), cs.tool(t, "r_do"), "", nil); err != nil || r.Text != "done" || resumed != 2 {
			t.Errorf("%+v, %v, fetched again %d times", r, err, resumed)
		}
		if err := cs.Close(); err != nil || ended != "S" {
			t.Errorf("%v, the sessions that have ended: %q", err, ended)
		}
	})
}
