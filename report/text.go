package report

import (
	"strconv"
	"strings"

	"centurion"
	"centurion/text"
)

// short is a clean text as one line of at most n bytes.
func short(s string, n int) string { return centurion.Clip(text.Clean(s), n) }

// inline makes a text one line of Markdown that reads as it stands: nothing of it is markup, a link or an address.
func inline(s string) string {
	s = text.Clean(s)
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
	s = text.Clean(s)
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
	s = strings.TrimRight(text.CleanText(s), "\n ")
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

// span writes how many milliseconds something took; "" for none.
func span(ms int64) string {
	if ms <= 0 {
		return ""
	}
	return text.Took(text.Millis(ms))
}

// money says what something has cost, and that nobody knows where a model has no price.
func money(u centurion.Usage) string {
	switch {
	case u.Unpriced && u.USD > 0:
		return text.USD(u.USD) + " and what has no known price"
	case u.Unpriced:
		return "no known price"
	}
	return text.USD(u.USD)
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
	if h := text.Clean(s); len(h) > n {
		return h[:n]
	}
	return text.Clean(s)
}

func itoa(n int) string { return strconv.Itoa(n) }
