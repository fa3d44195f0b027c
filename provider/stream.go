package provider

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"time"

	"centurion"
	"centurion/guard"
	words "centurion/text"
)

const (
	firstDelay = 2 * time.Second // before the first retry; it doubles with each
	jitter     = 0.2             // of the delay, at most, on top of it
	// maxWait is the longest wait for a provider. For a longer one the caller gets an error immediately.
	maxWait = time.Hour
	// maxCollective is the wait of all sessions if the provider named none: providers count requests by the minute.
	maxCollective = time.Minute
)

// Stream asks the model and yields its answer piece by piece, in the order documented at [DeltaType]. It ends after Done or after a
// single error, which comes with a zero Delta. The sequence can be ranged over once. Breaking out of it cancels the request; nothing
// keeps running after the loop.
//
// Answers 429 and 529 are retried, up to eight times, after the time in Retry-After or else after 2 s, 4 s, 8 s … plus up to 20 %, as
// long as nothing of the answer was yielded and ctx's deadline is not nearer. Instead of a wait of more than an hour, the answer is
// returned as an error with RetryAfter. A wait is announced by a delta of type Waiting. Nothing else is retried.
//
// Errors are a [*centurion.Error] of one of these kinds:
//
//   - KindAuth (401, 403), KindBudget (402, or an exhausted quota: no retry helps before it is paid), KindRateLimit (429), KindOverloaded (408, 5xx), KindModelNotFound, KindInvalidRequest,
//     KindRefusal, KindConfig (the base URL is not one of a provider)
//   - KindOverflow: the conversation does not fit the model's window, by status 413 or by what the provider says
//   - KindNetwork: not reached, or the connection broke before the answer began
//   - KindStreamCut: the answer ended without a finish reason, or cannot be read. No call that was begun may be run.
//   - KindStall: nothing was heard for the idle timeout
//   - what ctx's cause is, if ctx ended
//
// A call is complete only after its CallEnd. An answer that stopped at the token limit may leave its last call without one.
func (c *Client) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	used := false
	return func(yield func(Delta, error) bool) {
		if used {
			yield(Delta{}, &centurion.Error{Op: c.op(), Kind: centurion.KindInternal, Msg: "the answer was read already"})
			return
		}
		used = true
		c.stream(ctx, req, yield)
	}
}

func (c *Client) op() string { return "call " + c.end.Model.String() }

func (c *Client) stream(ctx context.Context, req Request, yield func(Delta, error) bool) {
	if c.err != nil {
		yield(Delta{}, c.err)
		return
	}
	var turn ticket // if this request has waited at the gate already
	for attempt := 1; ; attempt++ {
		if goOn, err := c.pass(ctx, turn, yield); !goOn || err != nil {
			if err != nil {
				yield(Delta{}, err)
			}
			return
		}
		err := c.once(ctx, req, yield)
		if err == nil || errors.Is(err, errBroken) {
			return
		}
		var wait *Wait
		if wait, turn = c.retry(ctx, attempt, err); wait == nil {
			yield(Delta{}, err)
			return
		}
		if !yield(Delta{Type: Waiting, Wait: wait}, nil) {
			return
		}
		if guard.Sleep(ctx, wait.For) != nil {
			yield(Delta{}, c.ended(ctx))
			return
		}
	}
}

// errBroken means that the reader of the answer stopped.
var errBroken = errors.New("the reader has gone")

// pass waits at the model's gate for turn or a later one and yields the reason. It returns false if the reader stopped.
func (c *Client) pass(ctx context.Context, turn ticket, yield func(Delta, error) bool) (bool, error) {
	if ctx.Err() != nil {
		return true, c.ended(ctx)
	}
	for {
		d, t := c.gate.turn(turn)
		if d <= 0 {
			return true, nil
		}
		turn = t
		if !affordable(ctx, d) {
			return true, &centurion.Error{Op: c.op(), Kind: centurion.KindRateLimit, RetryAfter: d,
				Msg:  "the provider said \"too many requests\" to another session; the wait of " + words.Took(d.Round(time.Second)) + " is too long",
				Hint: "resume later, or use another model"}
		}
		if !yield(Delta{Type: Waiting, Wait: &Wait{Reason: "gate", For: d}}, nil) {
			return false, nil
		}
		if guard.Sleep(ctx, d) != nil {
			return true, c.ended(ctx)
		}
	}
}

// retry decides whether and when attempt, which ended with err, is retried: nil if not. A 429 closes the gate for all sessions; one
// with a delay takes its own turn there.
func (c *Client) retry(ctx context.Context, attempt int, err error) (*Wait, ticket) {
	var turn ticket
	e, ok := errors.AsType[*centurion.Error](err)
	if !ok || e.Status != statusTooMany && e.Status != statusOverloaded || e.Kind == centurion.KindBudget {
		return nil, turn
	}
	w := &Wait{Reason: "retry", Attempt: attempt, For: e.RetryAfter, Err: err}
	if e.RetryAfter <= 0 {
		d := firstDelay << min(attempt-1, 16)
		w.For = d + time.Duration(rand.Float64()*jitter*float64(d))
	}
	if e.Status == statusTooMany {
		w.Reason = "rate limit"
		if e.RetryAfter > 0 {
			c.gate.Close(time.Now().Add(w.For))
			w.For, turn = c.gate.turn(turn)
		} else {
			c.gate.Close(time.Now().Add(min(w.For, maxCollective)))
		}
	}
	if attempt > c.end.MaxRetries || !affordable(ctx, w.For) {
		return nil, turn
	}
	return w, turn
}

func affordable(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return d <= maxWait && !(ok && time.Until(deadline) < d)
}

// ended is the error for an ended context.
func (c *Client) ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	return &centurion.Error{Op: c.op(), Kind: centurion.KindOf(cause), Err: cause}
}

// reader passes the pieces of one answer on.
type reader struct {
	yield  func(Delta, error) bool
	gone   bool // the reader has gone
	told   bool // a piece of the answer was yielded
	events int
}

func (r *reader) emit(d Delta) {
	if !r.gone {
		r.told = true
		r.gone = !r.yield(d, nil)
	}
}

// cut describes how far an interrupted answer came.
func (r *reader) cut() string {
	if r.events == 0 {
		return "the answer ended before it began"
	}
	return "the answer ended without a finish reason"
}

// once makes one request by chat completions. It returns nil when Done was yielded, and errBroken when the reader stopped. An error
// before the first piece of the answer may be retried; later ones never are, because their status is removed.
func (c *Client) once(ctx context.Context, req Request, yield func(Delta, error) bool) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	post, err := c.post(inner, req)
	if err != nil {
		return &centurion.Error{Op: c.op(), Kind: centurion.KindInvalidRequest, Err: err, Hint: "choose another model"}
	}
	x := c.exchange(inner, cancel, req)
	resp, err := x.send(post)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	r := &reader{yield: yield}
	in := c.end.Wire.Decoder(r.emit)
	chat, _ := in.(*decoder)
	complete := func() bool { return chat != nil && chat.finish != "" } // but for a count of its tokens, which may follow or not
	events := newFrames(&watched{resp.Body, x.watch}, resp.Header.Get("Content-Type"))
	for !r.gone && !in.Over() {
		piece := false
		data, err := events.next()
		if err != nil && !complete() {
			return c.judge(x, r, err)
		}
		if err == nil {
			r.events++
			piece, err = in.Event(data)
			if err != nil && !(complete() && centurion.KindOf(err) == centurion.KindStreamCut) {
				return c.streamError(err, r)
			}
		}
		switch {
		case err != nil:
			if err := chat.end(); err != nil {
				return c.streamError(err, r)
			}
		case complete():
			x.watch.finished()
		case piece:
			x.watch.heard()
		}
	}
	if !in.Over() {
		return errBroken
	}
	drain(resp.Body, cancel)
	return nil
}

func (c *Client) post(ctx context.Context, req Request) (*http.Request, error) {
	path, body, err := c.end.Wire.Request(c.end.Model, req, c.end.Extra)
	if err != nil {
		return nil, err
	}
	return http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
}

// judge returns why an answer is not complete.
func (c *Client) judge(x *exchange, r *reader, err error) error {
	if err == io.EOF {
		return &centurion.Error{Op: c.op(), Kind: centurion.KindStreamCut, Msg: r.cut()}
	}
	if e, ok := errors.AsType[*centurion.Error](err); ok && x.ctx.Err() == nil {
		return c.streamError(e, r)
	}
	err = c.transportError(x.ctx, c.op(), err)
	if r.events > 0 && centurion.KindOf(err) == centurion.KindNetwork {
		return &centurion.Error{Op: c.op(), Kind: centurion.KindStreamCut, Msg: r.cut(), Err: err}
	}
	return err
}

// streamError completes an error from inside a stream.
func (c *Client) streamError(err error, r *reader) error {
	e, ok := errors.AsType[*centurion.Error](err)
	if !ok {
		return err
	}
	e = c.complete(e, c.op())
	if r.told {
		e.Status = 0
	}
	return e
}
