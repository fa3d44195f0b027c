package provider

import (
	"context"
	"io"
	"net/http"
	"time"

	"centurion"
)

// exchange is one request and its answer.
type exchange struct {
	c     *Client
	req   Request
	ctx   context.Context
	watch *watch
}

// exchange returns an exchange for req; cancel ends it.
func (c *Client) exchange(ctx context.Context, cancel context.CancelCauseFunc, req Request) *exchange {
	x := &exchange{c: c, req: req, ctx: ctx, watch: newWatch(c.end.IdleTimeout, cancel)}
	x.watch.alive = req.Alive
	return x
}

// send sends the request. An unsuccessful answer is returned as our error.
func (x *exchange) send(req *http.Request) (*http.Response, error) {
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	x.c.end.Wire.Authorize(req.Header, x.c.end.APIKey)
	if !x.c.end.NoSessionHeaders {
		if x.req.Session != "" {
			req.Header.Set("x-session-id", x.req.Session)
		}
		if x.req.Parent != "" {
			req.Header.Set("x-parent-session-id", x.req.Parent)
		}
	}
	x.c.setHeaders(req.Header)
	for k, v := range x.req.Header {
		req.Header.Set(k, v)
	}
	x.watch.listen()
	resp, err := x.c.end.HTTP.Do(req)
	x.watch.rest()
	if err != nil {
		return nil, x.c.transportError(x.ctx, x.c.op(), err)
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		x.watch.listen()
		defer x.watch.rest()
		return nil, x.c.statusError(x.c.op(), resp)
	}
	return resp, nil
}

// drain reads the rest of a complete answer, so that its connection can be reused. If the provider sends more, or does not end it, the
// connection is closed.
func drain(body io.Reader, cancel context.CancelCauseFunc) {
	t := time.AfterFunc(drainTime, func() { cancel(nil) })
	defer t.Stop()
	_, _ = io.CopyN(io.Discard, body, drainBytes)
}

const (
	drainTime  = 50 * time.Millisecond
	drainBytes = 4 << 10
)

// watch cancels a request whose provider falls silent. Its clock runs only while it waits for the provider, so that a slow reader of
// the answer does not count as a silent provider.
type watch struct {
	idle   time.Duration // for a single byte
	left   time.Duration // of silenceLimit, or of the time after a finished answer
	timer  *time.Timer
	since  time.Time
	cancel context.CancelCauseFunc
	alive  func() // called at every sign of life; may be nil
}

func newWatch(idle time.Duration, cancel context.CancelCauseFunc) *watch {
	w := &watch{idle: idle, left: max(silenceLimit, idle), cancel: cancel}
	w.timer = time.AfterFunc(idle, func() { cancel(errSilent) })
	w.timer.Stop()
	return w
}

// listen starts the clock.
func (w *watch) listen() {
	w.since = time.Now()
	w.timer.Reset(max(min(w.idle, w.left), 0))
}

// rest stops it.
func (w *watch) rest() {
	w.timer.Stop()
	w.left -= time.Since(w.since)
}

// heard resets the clock after a piece of the answer.
func (w *watch) heard() { w.left = max(silenceLimit, w.idle) }

// finished shortens the clock, since only a token count may follow the answer.
func (w *watch) finished() { w.left = trailingTime }

// trailingTime is how long to wait for the token count and the end of the stream after a finish reason. They come at once, or not at
// all.
const trailingTime = 5 * time.Second

// errSilent is the cause of a context cancelled by a watch.
var errSilent = &centurion.Error{Kind: centurion.KindStall, Msg: "nothing was heard from the provider",
	Hint: "the work can be retried; a slow local model needs a longer idle timeout"}

type watched struct {
	r io.Reader
	w *watch
}

func (r *watched) Read(p []byte) (int, error) {
	r.w.listen()
	n, err := r.r.Read(p)
	r.w.rest()
	if n > 0 && r.w.alive != nil {
		r.w.alive()
	}
	return n, err
}
