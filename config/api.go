package config

import (
	"net/http"

	"centurion/provider"
	"centurion/provider/anthropic"
)

// API is how a model is spoken to.
type API string

// The APIs that there are.
const (
	APIChat      API = "chat"      // OpenAI's chat completions, which nearly every provider has
	APIResponses API = "responses" // OpenAI's responses
	APIAnthropic API = "anthropic" // Anthropic's own Messages API
)

// apiField is the option api of a provider or a model.
func apiField[T any](at func(*T) *API) field[T] {
	return choice("api", func(v *T) *string { return (*string)(at(v)) }, string(APIChat), string(APIResponses), string(APIAnthropic))
}

// apiOf says which API the models of a provider are spoken to by: the one that its option says; else the one of the package
// that OpenCode would use, where a file names one; else its own at OpenAI and Anthropic, and chat completions everywhere else,
// which is what a gateway under another URL can be expected to have.
func apiOf(n connection, p Provider) API {
	own := func(provider, npm string) bool {
		return p.NPM == npm || p.NPM == "" && n.provider == provider && !n.custom
	}
	switch {
	case p.API != "":
		return p.API
	case own("anthropic", "@ai-sdk/anthropic"):
		return APIAnthropic
	case own("openai", "@ai-sdk/openai"):
		return APIResponses
	}
	return APIChat
}

// Wire returns what speaks the model's API, as an endpoint takes it: nil for chat completions.
func (r Resolved) Wire() provider.Wire {
	switch {
	case r.API == APIResponses:
		return provider.Responses{}
	case r.API != APIAnthropic:
		return nil
	case r.Unknown:
		return anthropic.Wire{} // its limit is a guess, and one that is too high is refused
	}
	return anthropic.Wire{MaxTokens: r.Limit.Output}
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
func listQuery(api API) string {
	if api == APIAnthropic {
		return "?limit=1000"
	}
	return ""
}
