package tui

import (
	"strings"

	"centurion/text"
)

// bar draws done of total in w cells. Unless all is done, at least one cell stays empty.
func bar(done, total, w int) (full, empty string) {
	if total <= 0 || w <= 0 {
		return "", ""
	}
	n := min(w, done*w/total)
	return strings.Repeat("█", n), strings.Repeat("░", w-n)
}

// withHint is a message with its hint.
func withHint(said, hint string) string {
	return text.Clean(said) + text.When(hint != "", " ("+text.Clean(hint)+")")
}

// why is the reason why a task waits or how it ended.
func why(t *Task) string {
	if t.Reason == "" && t.Error != nil {
		return withHint(t.Error.Message, t.Error.Hint)
	}
	return t.Reason
}
