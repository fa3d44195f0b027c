package provider

import (
	"bufio"
	"bytes"
	"context"
	"net/http"

	"centurion"
)

// Wire is an API used instead of OpenAI's chat completions. It only writes requests and reads events: the [Client] handles retries,
// gates, time limits and errors. It is safe for concurrent use.
type Wire interface {
	// Authorize sets the key, which may be empty, and other required headers.
	Authorize(h http.Header, key string)
	// Request returns the path below the base URL and the body of a streaming request. extra are fields for the body, as in [Endpoint].
	Request(model centurion.ModelRef, r Request, extra map[string]any) (path string, body []byte, err error)
	// Decoder returns the decoder for one answer, which passes its pieces, but no waits, to emit.
	Decoder(emit func(Delta)) Decoder
}

// Decoder reads the events of one answer.
type Decoder interface {
	// Event handles the data of one event, without retaining it. It returns whether the event was a piece of the answer instead of a
	// keep-alive. Errors are a [*centurion.Error] without its operation, those of the provider made by [Refusal].
	Event(data []byte) (piece bool, err error)
	// Over reports whether the answer is complete: Done was emitted, and later events do not count.
	Over() bool
}

// Refusal makes an error from a provider's message within a stream, in any of the common formats.
func Refusal(data []byte) *centurion.Error { return providerError(0, nil, data) }

// Excerpt shortens a provider's message to one line of at most 300 bytes, for an error.
func Excerpt(b []byte) string { return excerpt(b) }

// authorize puts the key into a request's header.
func (c *Client) authorize(h http.Header) {
	if c.end.Wire != nil {
		c.end.Wire.Authorize(h, c.end.APIKey)
	} else if c.end.APIKey != "" {
		h.Set("Authorization", "Bearer "+c.end.APIKey)
	}
}

// onceOver is once for the endpoint's own wire.
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
	// Readers that stop, and errors inside a stream, are handled alike on every wire.
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

// nextData returns the payload of the next data line from a sieve.
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
