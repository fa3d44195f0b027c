package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"centurion"
)

// maxMarks is how many combining marks one letter keeps: no script needs more, a tower of them hides the lines above.
const maxMarks = 4

// Clean takes out of a text what a reader would not see or what would make them see something else: control characters,
// escape sequences of a terminal, overrides of the writing direction, characters without width and bytes that are not UTF-8.
// Line feeds stay, a tab is four spaces. It is idempotent.
func Clean(s string) string {
	var b strings.Builder
	marks := 0
	s = strings.ReplaceAll(s, "\r\n", "\n")
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == 0x1b {
			i += escape(s[i:])
			continue
		}
		i += size
		switch {
		case r == '\n':
			b.WriteByte('\n')
		case r == '\r' || r == 0x2028 || r == 0x2029:
			b.WriteByte('\n')
		case r == '\t':
			b.WriteString("    ")
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs) && r != 0x200d:
		case r >= 0xe0000 && r <= 0xe0fff: // tags and variants that no font shows
		case unicode.In(r, unicode.Mn, unicode.Me):
			if marks++; marks <= maxMarks {
				b.WriteRune(r)
			}
			continue
		default:
			b.WriteRune(r) // a byte that is not UTF-8 becomes U+FFFD
		}
		marks = 0
	}
	return b.String()
}

// escape is the length of the escape sequence at the beginning of s.
func escape(s string) int {
	if len(s) < 2 {
		return 1
	}
	switch s[1] {
	case '[':
		for i := 2; i < len(s) && i < 64; i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
		}
	case ']':
		for i := 2; i < len(s) && i < 1024; i++ {
			if s[i] == 7 {
				return i + 1
			}
			if s[i] == 0x1b {
				return i // its terminator is a sequence of its own
			}
		}
	}
	return 1
}

// oneLine is a clean text as one line.
func oneLine(s string) string { return strings.Join(strings.Fields(Clean(s)), " ") }

// short is a clean text as one line of at most n bytes.
func short(s string, n int) string { return centurion.Clip(oneLine(s), n) }

// inline makes a text one line of Markdown that reads as it stands: nothing of it is markup, a link or an address.
func inline(s string) string {
	s = oneLine(s)
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '@': // a word joiner after it keeps it from being an address, or from calling somebody
			b.WriteString("@\u2060")
			continue
		case r == '<':
			b.WriteString("&lt;")
			continue
		case r == '>':
			b.WriteString("&gt;")
			continue
		case r == '&':
			b.WriteString("&amp;")
			continue
		case strings.ContainsRune("\\`*_[]|~$", r), begins(s[:i], r), links(s, i, r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// begins reports whether a character with this before it on its line would begin a heading, a list or a rule.
func begins(before string, r rune) bool {
	if strings.ContainsRune("#-+=", r) {
		return strings.Trim(before, "#-+=") == ""
	}
	return (r == '.' || r == ')') && before != "" && strings.Trim(before, "0123456789") == ""
}

// links reports whether the character at i makes an address of what stands around it, as "://" and "www." do.
func links(s string, i int, r rune) bool {
	return r == ':' && strings.HasPrefix(s[i+1:], "/") || r == '.' && i >= 3 && strings.EqualFold(s[i-3:i], "www")
}

// code makes a text a code span of Markdown on one line.
func code(s string) string {
	s = oneLine(s)
	if s == "" {
		return ""
	}
	ticks := strings.Repeat("`", longest(s, '`')+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return ticks + s + ticks
}

// fenced makes a text a fenced block of Markdown, ended by a line feed. Its fence is longer than any in the text.
func fenced(lang, s string) string {
	s = strings.TrimRight(Clean(s), "\n ")
	fence := strings.Repeat("`", max(3, longest(s, '`')+1))
	return fence + lang + "\n" + s + "\n" + fence + "\n"
}

// longest is the length of the longest run of c in s.
func longest(s string, c byte) int {
	most, n := 0, 0
	for i := range len(s) {
		if s[i] != c {
			n = 0
			continue
		}
		n++
		most = max(most, n)
	}
	return most
}

// span says a duration in milliseconds: "340 ms", "4.2 s", "3m 20s", "5h 12m", "2d 3h"; "" for none.
func span(ms int64) string {
	switch d := time.Duration(ms) * time.Millisecond; {
	case ms <= 0:
		return ""
	case d < time.Second:
		return fmt.Sprintf("%d ms", ms)
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh %dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd %dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// tokens says a number of tokens: 950, 12.3 k, 4.5 M.
func tokens(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 999_950:
		return strconv.FormatFloat(float64(n)/1e3, 'f', 1, 64) + " k"
	}
	return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + " M"
}

// money says what something has cost, and that nobody knows where a model has no price.
func money(u centurion.Usage) string {
	switch {
	case u.Unpriced && u.USD > 0:
		return dollars(u.USD) + " and what has no known price"
	case u.Unpriced:
		return "no known price"
	}
	return dollars(u.USD)
}

func dollars(usd float64) string {
	if usd > 0 && usd < 0.1 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// clock says a moment in UTC, to the second.
func clock(t centurion.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// hash is the short form of a tree or commit.
func hash(s string) string {
	const n = 10
	if h := oneLine(s); len(h) > n {
		return h[:n]
	}
	return oneLine(s)
}

func itoa(n int) string { return strconv.Itoa(n) }
