package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/guard/peer"
)

// takeLimit is how long a server may take to open the stream for its own messages, which is optional, and to take our answer to one. The
// SDK does both without a limit: it opens the stream before a session is usable, and queues what comes while an answer is on its way.
const takeLimit = 5 * time.Second

// sending says how far the first HTTP request of a call came. It is in the context under sendingKey.
type sending struct{ atomic.Int32 }

type sendingKey struct{}

const (
	unsent  = iota
	sent    // perhaps
	unknown // the server does not know its session, so that the call has not begun
)

// wire sends the requests of one session. The SDK's transport has no limit for a body, and does not end with its caller.
type wire struct {
	base    http.RoundTripper
	headers map[string]string
	life    context.Context
	limit   time.Duration // instead of takeLimit
	deaf    func()        // ends the session
	rate    peer.Rate
}

// client returns a client that follows no redirect to another host: the headers may have a token.
func (w *wire) client() *http.Client {
	return &http.Client{Transport: w, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if to, from := req.URL, via[0].URL; to.Scheme != from.Scheme || to.Host != from.Host || len(via) > 5 {
			return refusal(centurion.KindConfig, fmt.Sprintf("it redirects to %s://%s", to.Scheme, to.Host), "write the new address into url")
		}
		return nil
	}}
}

// refusal is the error of a request that was not carried out.
func refusal(kind centurion.Kind, msg, hint string) error {
	return &centurion.Error{Kind: kind, Msg: msg, Hint: hint, Err: ErrNotBegun}
}

// RoundTrip sends one request.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	state, _ := req.Context().Value(sendingKey{}).(*sending)
	first := state != nil && state.CompareAndSwap(unsent, sent)
	ctx, cancel := context.WithCancel(req.Context())
	unlink := guard.After(w.life, "end an MCP request", cancel)
	free := func() { unlink(); cancel() }
	req = req.Clone(ctx)
	for k, v := range w.headers {
		if req.Header.Get(k) == "" { // what the protocol needs stays
			req.Header.Set(k, v)
		}
	}
	var late *time.Timer
	if req.Method == http.MethodGet {
		late = time.AfterFunc(w.limit, cancel)
	} else if isAnswer(req) {
		defer time.AfterFunc(w.limit, w.deaf).Stop()
	}
	res, err := w.base.RoundTrip(req)
	switch {
	case late != nil && !late.Stop() && req.Header.Get("Last-Event-Id") == "": // one that is resumed is tried again
		err = nil
		if res != nil {
			_ = res.Body.Close()
		}
		res = &http.Response{StatusCode: http.StatusMethodNotAllowed, Request: req, Body: http.NoBody, Header: http.Header{}}
	case err != nil:
	case req.Method != http.MethodPost: // the SDK knows what is missing then
	case res.StatusCode == http.StatusUnauthorized:
		err = refusal(centurion.KindAuth, "it needs a login, which Centurion does not do", "put a token into headers")
	case res.StatusCode == http.StatusForbidden:
		err = refusal(centurion.KindAuth, "it refuses access (403)", "check the token in headers")
	case res.StatusCode == http.StatusTooManyRequests:
		err = refusal(centurion.KindRateLimit, "it received too many requests (429)", "try again later")
	case first && res.StatusCode == http.StatusNotFound && req.Header.Get("Mcp-Session-Id") != "":
		state.Store(unknown)
	}
	if err != nil {
		if res != nil {
			_ = res.Body.Close()
		}
		free()
		return nil, err
	}
	res.Body = &body{ReadCloser: res.Body, free: free, wire: w, stream: strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")}
	return res, nil
}

// isAnswer reports whether req answers a request of the server.
func isAnswer(req *http.Request) bool {
	if req.GetBody == nil {
		return false
	}
	b, err := req.GetBody()
	if err != nil {
		return false
	}
	head := make([]byte, 100)
	n, _ := io.ReadFull(b, head) // it is in memory
	return !bytes.Contains(head[:n], []byte(`"method":`))
}

// body limits an answer: the size of one message, and the rate of those in a stream, whose size the SDK limits.
type body struct {
	io.ReadCloser
	free   func()
	wire   *wire
	stream bool
	n      int64
}

// Read returns an error when the server sends too much.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.stream {
		if over := b.wire.rate.Hit(bytes.Count(p[:n], []byte("\ndata:"))); over != nil {
			return 0, over
		}
	} else if b.n += int64(n); b.n > peer.MaxMessage {
		return 0, peer.ErrTooLong
	}
	return n, err
}

// Close closes the body.
func (b *body) Close() error {
	defer b.free()
	return b.ReadCloser.Close()
}
