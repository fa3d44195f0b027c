package provider

import (
	"net/http"
	"time"
)

// untilReset reads from Anthropic's headers when the limits that are used up are filled again; the latest counts. It stands
// in for a Retry-After, which such answers have, too, unless something in between has taken it out.
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
