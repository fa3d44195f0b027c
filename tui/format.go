package tui

import (
	"strings"

	"centurion/text"
)

// bar draws done of total in w cells. Anything short of all leaves at least one cell empty.
func bar(done, total, w int) (full, empty string) {
	if total <= 0 || w <= 0 {
		return "", ""
	}
	n := min(w, done*w/total)
	return strings.Repeat("█", n), strings.Repeat("░", w-n)
}

// words spells an error's kind for people: rate_limit is "rate limit".
func words(kind string) string {
	if kind == "gate" {
		return "a rate limit that another session met"
	}
	return strings.ReplaceAll(kind, "_", " ")
}

// withHint is a message with the next step.
func withHint(said, hint string) string {
	if hint == "" {
		return text.Clean(said)
	}
	return text.Clean(said) + " (" + text.Clean(hint) + ")"
}
