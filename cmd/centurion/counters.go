package main

import (
	"slices"

	"centurion"
	"centurion/server"
)

// counters are, for scripts, what a session came to so far. They are made of what is stored with each answer, so that they
// are never behind it.
type counters struct {
	Messages         int   `json:"messages"`
	PromptTokens     int64 `json:"prompt_tokens"`     // what came from the provider's cache and went there among them
	CompletionTokens int64 `json:"completion_tokens"` // reasoning among them
	// SummaryMessage is the id of the message that stands for what the newest compaction of the line has replaced.
	SummaryMessage string `json:"summary_message,omitempty"`
}

func countersOf(r centurion.Session, messages []server.Message) counters {
	t := r.Tokens
	c := counters{Messages: len(messages), PromptTokens: t.Input + t.Cache.Read + t.Cache.Write, CompletionTokens: t.Output + t.Reasoning}
	for _, m := range slices.Backward(messages) {
		if m.Info.Summary {
			c.SummaryMessage = m.Info.ID
			break
		}
	}
	return c
}
