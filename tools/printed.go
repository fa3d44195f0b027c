package tools

import (
	"strings"
	"unicode/utf8"
)

// printed makes what a command printed a text to be stored and shown: valid UTF-8, without the sequences that colour a
// terminal, move its cursor or name its window, and without control characters but line ends and tabs. A carriage return
// ends a line: progress bars leave a line for each state.
func printed(s string) string {
	s = valid(s)
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == 0x1b:
			i += sequence(s[i:])
			continue
		case c == '\n', c == '\t':
			b.WriteByte(c)
		case c == '\r':
			if i+1 == len(s) || s[i+1] != '\n' && s[i+1] != '\r' {
				b.WriteByte('\n')
			}
		case c < 0x20, c == 0x7f:
		case c < utf8.RuneSelf:
			b.WriteByte(c)
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			if r >= 0xa0 { // below are more control characters
				b.WriteRune(r)
			}
			i += n
			continue
		}
		i++
	}
	return b.String()
}

// maxSequence is how many bytes a sequence for a terminal may have. What is longer was none, or is never ended.
const maxSequence = 4096

// sequence is how many bytes a sequence for a terminal has that s, which begins with an escape character, begins with.
func sequence(s string) int {
	if len(s) < 2 {
		return 1
	}
	limit := min(len(s), maxSequence)
	switch s[1] {
	case '[': // up to a letter or its like
		for i := 2; i < limit; i++ {
			if c := s[i]; c >= 0x40 && c <= 0x7e {
				return i + 1
			} else if c < 0x20 || c > 0x7e {
				return i // broken off
			}
		}
		return limit
	case ']', 'P', 'X', '^', '_': // a text, up to a bell or ESC \
		for i := 2; i < limit; i++ {
			switch {
			case s[i] == 0x07:
				return i + 1
			case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\':
				return i + 2
			case s[i] == 0x1b, s[i] == '\n':
				return i
			}
		}
		return 2 // never ended: what follows was meant to be read
	}
	if s[1] >= 0x20 && s[1] <= 0x2f && len(s) > 2 && s[2] >= 0x30 && s[2] <= 0x7e { // a character set
		return 3
	}
	if s[1] >= 0x30 && s[1] <= 0x7e {
		return 2
	}
	return 1
}
