package text

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

const (
	// maxMarks is how many combining marks a letter keeps: no script needs more, and a stack of fifty would cover the lines above.
	maxMarks = 4
	// tabWidth is how many spaces replace a tab, whose own width would depend on its column.
	tabWidth = 4
	// maxSequence is the maximum length of a terminal's escape sequence, in bytes. Anything longer is not one, or never ends.
	maxSequence = 4096
	// zeroWidthJoiner joins the emoji of a family: harmless in prose, not in a command.
	zeroWidthJoiner = 0x200d
)

// Clean returns s as one line that is safe to show: terminal escape sequences are removed, line breaks and tabs become spaces, and
// control characters, text direction overrides and invisible characters are dropped. It is idempotent.
func Clean(s string) string { return strings.Join(strings.Fields(CleanText(s)), " ") }

// Printable is [Clean] for text shown by other programs: it also drops characters unknown to this one.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, Clean(s))
}

// CleanLines returns s as lines that are safe to show, keeping indentation and dropping empty lines at the end.
func CleanLines(s string) []string {
	lines := strings.Split(CleanText(s), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// CleanText is [Clean], but keeps line breaks as line feeds, and spaces as they are.
func CleanText(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 && r != '\n' || r >= 0x7f }) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	marks := 0
	for i := 0; i < len(s); {
		if n := sequence(s[i:]); n > 0 {
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch {
		case r == '\r':
			if !strings.HasPrefix(s[i:], "\n") {
				b.WriteByte('\n')
			}
		case r == '\n' || r == 0x2028 || r == 0x2029 || r == '\v' || r == '\f':
			b.WriteByte('\n')
		case r == '\t':
			b.WriteString(strings.Repeat(" ", tabWidth))
		case Unsafe(r):
		default:
			if marks = countMarks(marks, r); marks <= maxMarks {
				b.WriteRune(r) // an invalid byte becomes U+FFFD here
			}
		}
	}
	return b.String()
}

// CleanSchema applies [CleanText] to what is said in a decoded JSON schema, and reports whether that changed it.
func CleanSchema(v any) (changed bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			changed = CleanSchema(e) || changed
		}
	case map[string]any:
		for key, e := range v {
			said, isText := e.(string)
			if isText && (key == "description" || key == "title" || key == "$comment") {
				v[key] = CleanText(said)
				changed = changed || v[key] != said
			}
			changed = CleanSchema(e) || changed
		}
	}
	return changed
}

// Printed makes a command's output storable: valid UTF-8 without terminal escape sequences and without control characters except line
// ends and tabs. A carriage return ends a line, so that a progress bar leaves one line per state.
func Printed(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		if s[i] == ansi.ESC {
			i += sequence(s[i:])
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch {
		case r == '\r':
			if i == len(s) || s[i] != '\n' && s[i] != '\r' {
				b.WriteByte('\n')
			}
		case r == '\n' || r == '\t' || !unicode.IsControl(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

// EscapeWords is [Escape] for text that is only read, not allowed, such as an agent's question: it collapses white space.
func EscapeWords(s string) string { return Escape(strings.Join(strings.Fields(s), " ")) }

// Escape returns s as one line with everything visible that a terminal would obey or hide: "\x1b" for an escape, "\n" for a line break,
// "\u202e" for a text direction override. Text that a person is asked to allow is shown this way, so that nothing is hidden.
func Escape(s string) string {
	var b strings.Builder
	marks := 0
	for i, r := range s {
		marks = countMarks(marks, r)
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		case marks > maxMarks || Unsafe(r) || r == zeroWidthJoiner:
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

func countMarks(n int, r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return n + 1
	}
	return 0
}

// EscapeJSON writes characters that a terminal might interpret as \u escapes: the JSON has the same meaning and is safe to display.
func EscapeJSON(line []byte) []byte {
	bad := func(r rune) bool { return r >= 0x7f && Unsafe(r) }
	if !bytes.ContainsFunc(line, bad) {
		return line
	}
	out := make([]byte, 0, len(line)+16)
	for _, r := range string(line) {
		switch {
		case !bad(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// Whole returns s without an incomplete letter at its end.
func Whole(s string) string {
	for i := len(s) - 1; i >= max(0, len(s)-utf8.UTFMax); i-- {
		if utf8.RuneStart(s[i]) {
			if !utf8.FullRuneInString(s[i:]) {
				return s[:i]
			}
			break
		}
	}
	return s
}

// Tail returns s, of which at most the last n bytes are kept; an ellipsis stands for the others.
func Tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for i := range min(len(s), utf8.UTFMax) { // the rest of a letter without its start
		if utf8.RuneStart(s[i]) {
			return "…\n" + s[i:]
		}
	}
	return "…\n" + s
}

// Unsafe reports whether r is a control character, a line break that only some programs obey, or an invisible character: a text
// direction override, a filler, or one for private use.
func Unsafe(r rune) bool {
	switch {
	case r < 0x7f:
		return r < 0x20
	case r == zeroWidthJoiner:
		return false
	case r == 0x2028, r == 0x2029, r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0:
		return true
	}
	return r >= 0xe0000 && r <= 0xe0fff || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs)
}

// sequence returns the length of the terminal escape sequence at the start of s, or 0. An unterminated command string counts only as
// its introducer, so that it cannot swallow the rest of the text.
func sequence(s string) int {
	switch r, size := utf8.DecodeRuneInString(s); {
	case r == ansi.ESC:
	case size == 2 && r >= 0x80 && r < 0xa0: // the same introducers in one character: U+009B is ESC [
		s = "\x1b" + string(r-0x40) + s[2:min(len(s), maxSequence)]
	default:
		return 0
	}
	s = s[:min(len(s), maxSequence)]
	if len(s) > 1 && strings.IndexByte("]PX^_", s[1]) >= 0 {
		return commandString(s, 2)
	}
	_, _, n, _ := ansi.DecodeSequence(s, ansi.NormalState, nil)
	return n
}

// commandString returns the end of the command string whose text begins at n. It does not use the decoder, which takes any byte 0x9c
// for the end, and many letters contain such a byte.
func commandString(s string, n int) int {
	for i := n; i < len(s); i++ {
		switch rest := s[i:]; {
		case rest[0] == ansi.BEL:
			return i + 1
		case strings.HasPrefix(rest, "\x1b\\"), strings.HasPrefix(rest, "\u009c"):
			return i + 2
		case rest[0] == ansi.ESC, rest[0] == '\n':
			return n
		}
	}
	return n
}
