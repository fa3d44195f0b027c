package provider

import (
	"bufio"
	"bytes"
	"context"
	"net/http"

	"centurion"
)

// Wire is an API that models are spoken to by in place of OpenAI's chat completions. It writes requests and reads events
// and nothing else: retries, gates, time limits and the meaning of errors are the [Client]'s. It is used by many requests
// at the same time.
type Wire interface {
	// Authorize puts the key, which may be empty, and whatever every request needs into its header.
	Authorize(h http.Header, key string)
	// Request returns the path below the base URL and the body of a request for an answer that streams. Extra are fields
	// for the body, as in [Endpoint].
	Request(model centurion.ModelRef, r Request, extra map[string]any) (path string, body []byte, err error)
	// Decoder returns what reads one answer and hands its pieces, but no wait, to emit.
	Decoder(emit func(Delta)) Decoder
}

// Decoder reads the events of one answer.
type Decoder interface {
	// Event takes the data of one event, which it must not keep. It returns whether the event was a piece of the answer and
	// no keep-alive. Errors are a [*centurion.Error] without its operation, those of the provider made by [Refusal].
	Event(data []byte) (piece bool, err error)
	// Over reports whether the answer is complete: Done was emitted, and nothing that follows counts.
	Over() bool
}

// Refusal makes an error from what a provider said in the middle of a stream, in whichever of the common shapes.
func Refusal(data []byte) *centurion.Error { return providerError(0, nil, data) }

// Excerpt shortens a provider's own words to one line of at most 300 bytes, for an error.
func Excerpt(b []byte) string { return excerpt(b) }

// authorize puts the key into a request's header.
func (c *Client) authorize(h http.Header) {
	if c.end.Wire != nil {
		c.end.Wire.Authorize(h, c.end.APIKey)
	} else if c.end.APIKey != "" {
		h.Set("Authorization", "Bearer "+c.end.APIKey)
	}
}

// onceOver is once over the endpoint's own wire.
func (c *Client) onceOver(ctx context.Context, req Request, yield func(Delta, error) bool) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	invalid := func(err error) error {
		return &centurion.Error{Op: c.op(), Kind: centurion.KindInvalidRequest, Err: err, Hint: "choose another model"}
	}
	path, body, err := c.end.Wire.Request(c.end.Model, req, c.end.Extra)
	if err != nil {
		return invalid(err)
	}
	r, err := http.NewRequestWithContext(inner, http.MethodPost, c.config.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return invalid(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	c.authorize(r.Header)
	x := c.exchange(inner, cancel, req)
	resp, err := x.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	// What is gone and told, and how errors inside a stream are completed, is the same on every wire.
	d := decoder{yield: yield}
	in := c.end.Wire.Decoder(d.emit)
	lines := bufio.NewReaderSize(resp.Body, readBlock)
	for !d.gone && !in.Over() {
		data, err := nextData(lines)
		if err != nil {
			return c.judge(x, &d, err)
		}
		d.chunks++
		piece, err := in.Event(data)
		if err != nil {
			return c.streamError(err, &d)
		}
		if piece {
			x.watch.heard()
		}
	}
	if d.gone {
		return errBroken
	}
	x.drain(func() { cancel(nil) })
	return nil
}

// nextData returns the payload of the next data line that a sieve lets through.
func nextData(r *bufio.Reader) ([]byte, error) {
	for {
		line, err := r.ReadBytes('\n')
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		data = bytes.TrimSpace(data)
		if ok && len(data) > 0 && string(data) != "[DONE]" {
			return data, nil // a last line without its end is complete if its JSON is
		}
		if err != nil {
			return nil, err
		}
	}
}
