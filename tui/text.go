package tui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// maxMarks is how many combining marks one letter keeps: real scripts need fewer than four, a column of fifty is an
// attempt to write over the lines above.
const maxMarks = 4

// tabWidth is how many spaces stand for a tab, whose own width would depend on the column it lands in.
const tabWidth = 4

// Clean returns s as one line that is safe to print: escape sequences of a terminal are taken out whole, line breaks and
// tabs become spaces, and control characters, overrides of the writing direction and characters without a width are
// dropped. It is idempotent.
func Clean(s string) string {
	return strings.Join(strings.Fields(strings.Join(CleanLines(s), " ")), " ")
}

// CleanLines returns s as lines that are safe to print, with the indentation kept and without empty lines at the end.
func CleanLines(s string) []string {
	lines := strings.Split(strip(s), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// EscapeWords is [Escape] for what is only to be read and not to be allowed, such as an agent's question: a run of white
// space is a space.
func EscapeWords(s string) string { return Escape(strings.Join(strings.Fields(s), " ")) }

// Escape returns s as one line in which everything that a terminal would obey or not show is visible: "\x1b" for an
// escape, "\n" for a line break, "\u202e" for an override of the writing direction. What a person is asked to allow is
// shown this way, so that nothing of it is hidden from them.
func Escape(s string) string {
	var b strings.Builder
	marks := 0
	for i, r := range s {
		if marks = countMarks(marks, r); marks > maxMarks {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		switch {
		case r == utf8.RuneError && isInvalid(s[i:]):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		case isControl(r) || isHidden(r) || r == zeroWidthJoiner:
			if r > 0xffff {
				fmt.Fprintf(&b, `\U%08x`, r)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// zeroWidthJoiner holds the emoji of a family together; harmless in prose, not in a command.
const zeroWidthJoiner = 0x200d

// strip takes out what Clean promises and leaves line feeds.
func strip(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 && r != '\n' || r >= 0x7f }) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	marks := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if n := sequence(s[i:]); n > 0 {
			i += n
			continue
		}
		next := s[i+size:]
		i += size
		switch {
		case r == '\r':
			if !strings.HasPrefix(next, "\n") {
				b.WriteByte('\n')
			}
		case r == '\n' || r == 0x2028 || r == 0x2029 || r == '\v' || r == '\f':
			b.WriteByte('\n')
		case r == '\t':
			b.WriteString(strings.Repeat(" ", tabWidth))
		case isControl(r) || isHidden(r):
		default:
			if marks = countMarks(marks, r); marks <= maxMarks {
				b.WriteRune(r) // an invalid byte becomes U+FFFD here
			}
		}
	}
	return b.String()
}

func countMarks(n int, r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return n + 1
	}
	return 0
}

func isInvalid(s string) bool {
	r, size := utf8.DecodeRuneInString(s)
	return r == utf8.RuneError && size == 1
}

func isControl(r rune) bool { return unicode.Is(unicode.Cc, r) || r == 0x2028 || r == 0x2029 }

// isHidden reports format characters that turn the writing direction around or are not seen at all.
func isHidden(r rune) bool {
	switch {
	case r == zeroWidthJoiner, r == 0x00ad:
		return false // a soft hyphen is drawn by most terminals
	case r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0: // fillers that look like nothing
		return true
	}
	return unicode.Is(unicode.Cf, r)
}

// sequence returns the length of the terminal's escape sequence that s begins with, and 0 if there is none. An operating
// system command without an end takes only its introducer, so that it cannot swallow the rest of the text.
func sequence(s string) int {
	r, size := utf8.DecodeRuneInString(s)
	kind, n := byte(0), size
	switch {
	case r == 0x1b && len(s) > 1:
		kind, n = s[1], 2
	case r >= 0x80 && r < 0xa0 && size == 2: // the same introducers in one character: U+009B is ESC [
		kind = byte(r - 0x40)
	case r == 0x1b:
		return 1
	default:
		return 0
	}
	switch kind {
	case '[':
		for n < len(s) && s[n] >= 0x20 && s[n] < 0x40 {
			n++
		}
		if n < len(s) && s[n] >= 0x40 && s[n] < 0x7f {
			n++
		}
		return n
	case ']', 'P', 'X', '^', '_':
		return stringSequence(s, n)
	}
	if r != 0x1b || kind >= 0x80 || kind < 0x20 {
		return size // a lone control character
	}
	if kind < 0x30 { // intermediates and a final byte
		for n < len(s) && s[n] >= 0x20 && s[n] < 0x30 {
			n++
		}
		if n < len(s) && s[n] >= 0x30 && s[n] < 0x7f {
			n++
		}
	}
	return n
}

// stringSequence finds the end of a command string whose text begins at n.
func stringSequence(s string, n int) int {
	for i := n; i < len(s); i++ {
		switch {
		case s[i] == '\a':
			return i + 1
		case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\':
			return i + 2
		case s[i] == 0xc2 && i+1 < len(s) && s[i+1] == 0x9c:
			return i + 2
		case s[i] == '\n':
			return n
		}
	}
	return n
}

// width returns how many cells s takes.
func width(s string) int { return ansi.StringWidth(s) }

// fit returns s in at most w cells, with an ellipsis if something had to go.
func fit(s string, w int) string {
	if w <= 0 {
		return ""
	}
	return ansi.Truncate(s, w, "…")
}

// pad returns s in exactly w cells.
func pad(s string, w int) string {
	s = fit(s, w)
	return s + strings.Repeat(" ", max(0, w-width(s)))
}

// padLeft is pad with the text at the right.
func padLeft(s string, w int) string {
	s = fit(s, w)
	return strings.Repeat(" ", max(0, w-width(s))) + s
}

// wrap breaks a cleaned line into lines of at most w cells.
func wrap(s string, w int) []string {
	if width(s) <= w {
		return []string{s}
	}
	return strings.Split(ansi.Wrap(s, max(1, w), ""), "\n")
}

// wrapExact breaks an escaped line without dropping the spaces at the breaks.
func wrapExact(s string, w int) []string {
	if width(s) <= w {
		return []string{s}
	}
	return strings.Split(ansi.Hardwrap(s, max(1, w), true), "\n")
}
