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

// withHint is a message with the next step.
func withHint(said, hint string) string {
	if hint == "" {
		return text.Clean(said)
	}
	return text.Clean(said) + " (" + text.Clean(hint) + ")"
}

// why is what a task waits for, or why it ended as it did.
func why(t *Task) string {
	if t.Reason == "" && t.Error != nil {
		return withHint(t.Error.Message, t.Error.Hint)
	}
	return t.Reason
}
