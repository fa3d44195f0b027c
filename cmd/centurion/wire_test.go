package main

import (
	"testing"

	"centurion/cmd/centurion/config"
	"centurion/provider"
	"centurion/provider/anthropic"
)

// OPAL-25: a model is spoken to by the API that the configuration says, with its limit where that is known.
func TestWireOf(t *testing.T) {
	for name, tt := range map[string]struct {
		model config.Resolved
		want  provider.Wire
	}{
		"OpenAI's":         {config.Resolved{Limit: config.Limit{Output: 9}}, nil},
		"Anthropic's":      {config.Resolved{API: config.APIAnthropic, Limit: config.Limit{Output: 64000}}, anthropic.Wire{MaxTokens: 64000}},
		"an unknown model": {config.Resolved{API: config.APIAnthropic, Unknown: true, Limit: config.Limit{Output: 16384}}, anthropic.Wire{}},
	} {
		if got := wireOf(tt.model); got != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
