package todo

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// item parses line i as an item.
func (d *Doc) item(i int) (*node, bool) {
	l := &d.lines[i]
	_, lead := Indent(l.text)
	bullet, gap := bulletOf(l.text[lead:])
	if bullet == "" || gap == 0 {
		return nil, false
	}
	at := lead + len(bullet) + gap
	box, ok := strings.CutPrefix(l.text[at:], "[")
	if !ok {
		return nil, false
	}
	inside, rest, ok := strings.Cut(box, "]")
	if !ok || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return nil, false
	}
	mark, exact := markOf(inside)
	if mark == 0 {
		return nil, false
	}
	n := &node{at: i, column: l.indent, bullet: bullet}
	n.Line, n.Mark = i+1, mark
	n.markStart = l.offset + at + 1
	n.markEnd = n.markStart + len(inside)
	n.readTitle(rest, n.markEnd+1)
	if n.ID != "" {
		d.byID[n.ID] = append(d.byID[n.ID], n)
	}
	if !exact {
		d.problem(i, fmt.Sprintf("[%s] is no mark: write [ ], [~], [x], [-] or [!]", inside), n)
	}
	return n, true
}

// markOf parses the text between brackets. A likely mistyped mark is returned as Blocked and not exact, so that the item is not lost; 0
// means text, as in a footnote or a link.
func markOf(s string) (m Mark, exact bool) {
	switch s {
	case " ", "~", "x", "-", "!":
		return Mark(s[0]), true
	case "X":
		return Done, true
	}
	trimmed := strings.TrimSpace(s)
	r, size := utf8.DecodeRuneInString(trimmed)
	if size == len(trimmed) && (r < '0' || r > '9') && r != '[' && r != '^' {
		return Blocked, false
	}
	return 0, false
}

// readTitle parses id, title and agent from the text after the brackets; at is its offset in the text.
func (n *node) readTitle(rest string, at int) {
	end := at + len(strings.TrimRight(rest, " \t"))
	body := strings.TrimLeft(rest, " \t")
	n.rest = at + len(rest) - len(body)
	body = strings.TrimRight(body, " \t")
	end = max(end, n.rest)
	n.idEnd = n.rest
	if n.ID = idOf(body); n.ID != "" {
		word := firstWord(body)
		n.idEnd += len(word)
		body = strings.TrimLeft(body[len(word):], " \t")
	}
	n.titleStart = end - len(body)
	n.titleEnd, n.agentEnd = end, end
	word := body[strings.LastIndexAny(body, " \t")+1:]
	if name, ok := strings.CutPrefix(word, "@"); ok && isAgent(name) {
		n.Agent = name
		body = strings.TrimRight(body[:len(body)-len(word)], " \t")
		n.titleEnd = n.titleStart + len(body)
	}
	n.Title = body
}

func firstWord(s string) string {
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i]
	}
	return s
}

// isID reports whether s can be an id: letters, digits, dots, dashes and underscores; a letter first, a digit somewhere, a letter or
// digit last.
func isID(s string) bool {
	digit := false
	for i := range len(s) {
		c := s[i]
		switch {
		case isLetter(c):
		case c >= '0' && c <= '9':
			if i == 0 {
				return false
			}
			digit = true
		case c == '.' || c == '-' || c == '_':
			if i == 0 || i == len(s)-1 {
				return false
			}
		default:
			return false
		}
	}
	return digit
}

func isAgent(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isLetter(c) && (i == 0 || (c < '0' || c > '9') && c != '-' && c != '_' && c != '.') {
			return false
		}
	}
	return s != ""
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// name is the name of an item in messages.
func (n *node) name() string {
	if n.ID != "" {
		return n.ID
	}
	return fmt.Sprintf("the item of line %d", n.Line)
}
