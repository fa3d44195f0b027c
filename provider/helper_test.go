package provider

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"centurion"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// roundTrip is a transport without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, contentType, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body))}
}

// canned returns a client whose every request is answered 200 with body.
func canned(body io.Reader) *Client {
	return New(Endpoint{Model: centurion.ModelRef{Provider: "openai", ID: "gpt-4.1"}, BaseURL: "http://model.test/v1",
		HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(body)}, nil
		})}})
}

// refusing returns a client whose every request is answered with an error.
func refusing(status int, header http.Header, body string) *Client {
	return New(Endpoint{Model: centurion.ModelRef{Provider: "openai", ID: "gpt-4.1"}, BaseURL: "http://model.test/v1", APIKey: "sk-secret-key",
		KeySource: "OPENAI_API_KEY", MaxRetries: -1, HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			r := answer(status, "application/json", body)
			maps.Copy(r.Header, header)
			return r, nil
		})}})
}

// sse makes a stream of events, ended by [DONE].
func sse(events ...string) string { return cut(events...) + "data: [DONE]\n\n" }

// cut makes a stream of events that just ends.
func cut(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

func chunk(delta, finish string) string {
	f := "null"
	if finish != "" {
		f = `"` + finish + `"`
	}
	return `{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + f + `}]}`
}

func say(text string) string { return chunk(`{"content":"`+text+`"}`, "") }

func tool(call string) string { return chunk(`{"tool_calls":[`+call+`]}`, "") }

// result is a whole answer.
type result struct {
	text, reasoning, finish string
	calls                   []Call
	ended                   map[int]bool
	waits                   []*Wait
	tokens                  centurion.Tokens
	dones                   int
	err                     error
}

// collect reads an answer and checks what must hold for every one.
func collect(t testing.TB, ctx context.Context, c *Client, req Request) result {
	t.Helper()
	r := result{ended: map[int]bool{}}
	over := false
	for d, err := range c.Stream(ctx, req) {
		if over {
			t.Fatalf("a delta after the end: %+v, %v", d, err)
		}
		if err != nil {
			r.err, over = err, true
			continue
		}
		switch d.Type {
		case Waiting:
			r.waits = append(r.waits, d.Wait)
		case Text:
			if d.Text == "" {
				t.Fatal("a piece of text is empty")
			}
			r.text += d.Text
		case Reasoning:
			if d.Text == "" {
				t.Fatal("a piece of reasoning is empty")
			}
			r.reasoning += d.Text
		case CallStart:
			if d.Index != len(r.calls) || d.CallID == "" {
				t.Fatalf("call %d starts with index %d and id %q", len(r.calls), d.Index, d.CallID)
			}
			r.calls = append(r.calls, Call{ID: d.CallID, Name: d.Name})
		case CallInput:
			if r.ended[d.Index] {
				t.Fatalf("input for call %d, which has ended", d.Index)
			}
			r.calls[d.Index].Arguments += d.Text
		case CallEnd:
			r.ended[d.Index] = true
		case Done:
			r.finish, r.tokens, over = d.Finish, d.Tokens, true
			r.dones++
		}
	}
	if r.dones == 0 && r.err == nil {
		t.Fatal("the answer ended without Done and without an error")
	}
	return r
}

// pipeServer serves h over connections in memory, which work in a synctest bubble, and returns a client for it.
func pipeServer(t testing.TB, h http.Handler) *http.Client {
	t.Helper()
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	var wg sync.WaitGroup
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wg.Add(1)
		defer wg.Done()
		h.ServeHTTP(w, r)
	})}
	wg.Go(func() { _ = srv.Serve(l) })
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case l.conns <- theirs:
			return ours, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		_ = srv.Close()
		wg.Wait()
	})
	return &http.Client{Transport: tr}
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
