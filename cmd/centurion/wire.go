package main

import (
	"centurion/cmd/centurion/config"
	"centurion/provider"
	"centurion/provider/anthropic"
)

// wireOf returns the API that a model is spoken to by; nil is OpenAI's chat completions.
func wireOf(r config.Resolved) provider.Wire {
	if r.API != config.APIAnthropic {
		return nil
	}
	if r.Unknown {
		return anthropic.Wire{} // its limit is a guess, and one that is too high is refused
	}
	return anthropic.Wire{MaxTokens: r.Limit.Output}
}
