package provider

import (
	"context"
	"io"
	"net/http"
	"time"

	"centurion"
)

// exchange is one request and its answer. It is what go-openai has in place of an HTTP client, because much of what an
// answer says never reaches go-openai's caller: the headers of a refusal, the text of an error, the difference between a
// stream that ended and one that was cut.
type exchange struct {
	c      *Client
	req    Request
	fields []field
	ctx    context.Context
	watch  *watch
	body   io.ReadCloser
}

// exchange returns an exchange for req, which cancel ends.
func (c *Client) exchange(ctx context.Context, cancel context.CancelCauseFunc, req Request) *exchange {
	x := &exchange{c: c, req: req, ctx: ctx, watch: newWatch(c.end.IdleTimeout, cancel)}
	x.watch.alive = req.Alive
	return x
}

// Do sends the request. An answer that is not a success is an error of ours.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	splice(req, x.fields)
	if !x.c.end.NoSessionHeaders {
		if x.req.Session != "" {
			req.Header.Set("x-session-id", x.req.Session)
		}
		if x.req.Parent != "" {
			req.Header.Set("x-parent-session-id", x.req.Parent)
		}
	}
	x.c.setHeaders(req.Header)
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
	x.body = resp.Body
	resp.Body = struct {
		io.Reader
		io.Closer
	}{newSieve(&watched{resp.Body, x.watch}, resp.Header.Get("Content-Type")), resp.Body}
	return resp, nil
}

// drain reads the end of an answer that is complete, so that its connection can be used again. A provider that sends
// more, or does not end it, has its connection closed instead.
func (x *exchange) drain(cancel func()) {
	if x.body == nil {
		return
	}
	t := time.AfterFunc(drainTime, cancel)
	defer t.Stop()
	_, _ = io.CopyN(io.Discard, x.body, drainBytes)
}

const (
	drainTime  = 50 * time.Millisecond
	drainBytes = 4 << 10
)

// watch cancels a request whose provider falls silent. Its clock runs only while something is awaited from the provider,
// so that a slow reader of the answer is never taken for a silent provider.
type watch struct {
	idle   time.Duration // for a single byte
	left   time.Duration // of silenceLimit, or of what may follow a finished answer
	timer  *time.Timer
	since  time.Time
	cancel context.CancelCauseFunc
	alive  func() // is told of every sign of life; may be nil
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

// heard says that a piece of the answer came; the next one may take as long again.
func (w *watch) heard() { w.left = max(silenceLimit, w.idle) }

// finished says that the answer is complete and that only a count of its tokens may follow.
func (w *watch) finished() { w.left = trailingTime }

// trailingTime is how long the token count and the end of the stream are awaited after a finish reason. They come with
// it, or not at all.
const trailingTime = 5 * time.Second

// errSilent is the cause of a context that a watch cancelled.
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
