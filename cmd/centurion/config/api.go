package config

import (
	"net/http"

	"centurion/provider/anthropic"
)

// APIAnthropic is Anthropic's own Messages API.
const APIAnthropic = "anthropic"

const (
	anthropicID  = "anthropic"
	anthropicNPM = "@ai-sdk/anthropic"
)

// apiOf says which API a provider is spoken to by: the one of its npm package where a file names one; else Anthropic's own at
// Anthropic, and OpenAI's everywhere else, which is what a gateway under another URL can be expected to have.
func apiOf(n connection, npm string) string {
	if npm == anthropicNPM || npm == "" && n.provider == anthropicID && !n.custom {
		return APIAnthropic
	}
	return ""
}

// authorize puts the key of a connection into the header of a request for its list of models.
func authorize(h http.Header, n connection) {
	switch {
	case n.api == APIAnthropic:
		anthropic.Wire{}.Authorize(h, n.key.Reveal())
	case n.key != "":
		h.Set("Authorization", "Bearer "+n.key.Reveal())
	}
}

// listQuery asks for a whole list of models where it comes in pages; the API's largest page has 1000.
func listQuery(api string) string {
	if api == APIAnthropic {
		return "?limit=1000"
	}
	return ""
}
