package report

import (
	"fmt"
	"strconv"
	"strings"

	"centurion"
	"centurion/text"
)

// short is a clean text in one line of at most n bytes.
func short(s string, n int) string { return centurion.Clip(text.Clean(s), n) }

// inline turns a text into one literal line of Markdown: without markup, links and addresses.
func inline(s string) string {
	s = text.Clean(s)
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '@': // a word joiner keeps it from becoming an address or a mention
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

// begins reports whether a character, after before on its line, would begin a heading, a list or a rule.
func begins(before string, r rune) bool {
	if strings.ContainsRune("#-+=", r) {
		return strings.Trim(before, "#-+=") == ""
	}
	return (r == '.' || r == ')') && before != "" && strings.Trim(before, "0123456789") == ""
}

// links reports whether the character at i makes its surroundings an address, as in "://" and "www.".
func links(s string, i int, r rune) bool {
	return r == ':' && strings.HasPrefix(s[i+1:], "/") || r == '.' && i >= 3 && strings.EqualFold(s[i-3:i], "www")
}

// code turns a text into a code span of Markdown in one line.
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

// fenced turns a text into a fenced block of Markdown, ended by a line feed. Its fence is longer than any in the text.
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

// span formats a duration in milliseconds; "" for none.
func span(ms int64) string { return text.When(ms > 0, text.Took(text.Millis(ms))) }

// money formats a cost, which may be unknown if a model has no price.
func money(u centurion.Usage) string {
	switch {
	case u.Unpriced && u.USD > 0:
		return text.USD(u.USD) + " and what has no known price"
	case u.Unpriced:
		return "no known price"
	}
	return text.USD(u.USD)
}

// clock formats a moment in UTC, to the second.
func clock(t centurion.Time) string {
	return text.When(!t.IsZero(), t.UTC().Format("2006-01-02 15:04:05 UTC"))
}

// hash is the short form of a tree or commit.
func hash(s string) string { return fmt.Sprintf("%.10s", text.Clean(s)) }

func itoa(n int) string { return strconv.Itoa(n) }
