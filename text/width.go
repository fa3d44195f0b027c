package text

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Width returns the width of s in terminal cells.
func Width(s string) int { return ansi.StringWidth(s) }

// Fit returns s in at most w cells, ending in an ellipsis if it was cut.
func Fit(s string, w int) string {
	return ansi.Truncate(s, w, "…")
}

// Pad returns s in exactly w cells.
func Pad(s string, w int) string {
	s = Fit(s, w)
	return s + strings.Repeat(" ", max(0, w-Width(s)))
}

// PadLeft is [Pad] with the text on the right.
func PadLeft(s string, w int) string {
	s = Fit(s, w)
	return strings.Repeat(" ", max(0, w-Width(s))) + s
}

// Wrap breaks a cleaned line into lines of at most w cells.
func Wrap(s string, w int) []string {
	if Width(s) <= w {
		return []string{s}
	}
	return strings.Split(ansi.Wrap(s, max(1, w), ""), "\n")
}

// WrapLines returns s as cleaned lines of at most w cells.
func WrapLines(s string, w int) (out []string) {
	for _, l := range CleanLines(s) {
		out = append(out, Wrap(l, w)...)
	}
	return out
}

// WrapExact breaks an escaped line without dropping the spaces at the breaks.
func WrapExact(s string, w int) []string {
	if Width(s) <= w {
		return []string{s}
	}
	return strings.Split(ansi.Hardwrap(s, max(1, w), true), "\n")
}

// Cut returns the first n characters of s, the last an ellipsis if it was cut.
func Cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
