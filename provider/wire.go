package provider

import (
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
