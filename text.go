package centurion

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Clip returns s if it has at most n bytes, and otherwise its first n bytes (up to three fewer, to avoid splitting a character) with an
// ellipsis.
func Clip(s string, n int) string {
	n = max(n, 0)
	if len(s) <= n {
		return s
	}
	end := n
	for end > 0 && n-end < utf8.UTFMax-1 && !utf8.RuneStart(s[end]) {
		end--
	}
	if !utf8.RuneStart(s[end]) {
		end = n // not UTF-8: any position is fine
	}
	return s[:end] + "…"
}

// Count formats "1 line", "3 lines", "2 matches", "0 entries": noun is the singular of a noun with a regular plural.
func Count(n int, noun string) string {
	if n != 1 {
		switch {
		case strings.HasSuffix(noun, "ch"):
			noun += "es"
		case strings.HasSuffix(noun, "y"):
			noun = strings.TrimSuffix(noun, "y") + "ies"
		default:
			noun += "s"
		}
	}
	return strconv.Itoa(n) + " " + noun
}

// Names joins the first n of the names with commas and says how many more there are.
func Names(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:n], ", ") + " and " + strconv.Itoa(len(names)-n) + " more"
}
