package provider

import (
	"net/http"
	"time"
)

// untilReset reads from Anthropic's headers when the exhausted limits reset; the latest counts. It replaces a missing Retry-After,
// which only intermediaries remove.
func untilReset(h http.Header, now time.Time) (wait time.Duration) {
	for _, limit := range []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"} {
		if h.Get("Anthropic-Ratelimit-"+limit+"-Remaining") != "0" {
			continue
		}
		if at, err := time.Parse(time.RFC3339, h.Get("Anthropic-Ratelimit-"+limit+"-Reset")); err == nil {
			wait = max(wait, at.Sub(now))
		}
	}
	return wait
}
