package todo

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"centurion"
)

// Doc is a parsed plan. It is not safe for concurrent use.
type Doc struct {
	src      []byte
	lines    []line
	title    string
	checks   []string
	nodes    []*node
	headings []heading
	problems []Problem
	byID     map[string][]*node
	bad      map[*node]bool // items with a problem
	taken    []string       // ids that are not assigned; see Reserve
}

// line is one line of the text, without byte order mark, carriage return and newline.
type line struct {
	start, end int // in src, complete
	text       string
	offset     int // of text in src
	indent     int // columns of white space before the text, with tab stops at multiples of four
	kind       lineKind
	owner      *node // of an attribute; nil for the mission's own checks
	plain      bool  // see scanner.plain
}

type lineKind uint8

const (
	kindText lineKind = iota
	kindBlank
	kindHeading
	kindItem
	kindAttr
	kindFence // a fence or a line inside one
)

type heading struct {
	line, level int // line from 0
	text        string
}

// node is an item with the positions of its parts, as offsets into src.
type node struct {
	Item
	at                   int // line, from 0
	column               int // of its bullet
	bullet               string
	markStart, markEnd   int // between the brackets
	rest                 int // after the brackets and the white space
	idEnd                int // after the id and its colon
	titleStart, titleEnd int
	agentEnd             int
	parent               *node
	children             []*node
	afterLine, raceLine  int  // of the last after and race attributes, from 0
	plain                bool // a bullet without a box, not an item: see scanner.plain
	told                 bool // the stray attributes under it were reported
	imposed              Mark // by a group around it on open items; 0 if none
	state                Mark // see Doc.Status
}

var byteOrderMark = []byte("\ufeff")

// Parse parses a plan. The text must be UTF-8 with all code fences closed; otherwise the error is KindUsage and names the line, since
// an unreadable plan must not look empty. Everything else is accepted; problems of single items are in [Doc.Problems].
func Parse(b []byte) (*Doc, error) {
	d := &Doc{src: bytes.Clone(b), byID: map[string][]*node{}, bad: map[*node]bool{}}
	if err := d.split(); err != nil {
		return nil, err
	}
	if err := d.markFences(); err != nil {
		return nil, err
	}
	d.scan()
	d.check()
	return d, nil
}

// split splits the text into lines and checks that it is UTF-8.
func (d *Doc) split() error {
	at := 0
	for raw := range bytes.Lines(d.src) {
		if !utf8.Valid(raw) {
			return &centurion.Error{Op: "read todo", Kind: centurion.KindUsage,
				Msg:  fmt.Sprintf("line %d is not UTF-8 text", len(d.lines)+1),
				Hint: "save the file as UTF-8"}
		}
		l := line{start: at, end: at + len(raw), offset: at}
		text := raw
		if at == 0 {
			text = bytes.TrimPrefix(text, byteOrderMark)
			l.offset = len(raw) - len(text)
		}
		text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
		l.text = string(text)
		l.indent, _ = Indent(l.text)
		d.lines = append(d.lines, l)
		at = l.end
	}
	return nil
}

// Indent returns the column and the offset of the first non-space character of s, with tab stops at multiples of four.
func Indent(s string) (column, offset int) {
	for i := range len(s) {
		switch s[i] {
		case ' ':
			column++
		case '\t':
			column += 4 - column%4
		default:
			return column, i
		}
	}
	return column, len(s)
}

// markFences finds the lines of code fences.
func (d *Doc) markFences() error {
	open, fence := -1, ""
	for i := range d.lines {
		l := &d.lines[i]
		if open >= 0 {
			l.kind = kindFence
			if closes(l.text, fence) {
				open = -1
			}
			continue
		}
		if fence = opens(l.text); fence != "" {
			l.kind, open = kindFence, i
		}
	}
	if open >= 0 {
		return &centurion.Error{Op: "read todo", Kind: centurion.KindUsage,
			Msg:  fmt.Sprintf("the code fence that line %d opens is never closed", open+1),
			Hint: "close it with a line of " + fence}
	}
	return nil
}

// opens returns the fence that opens a code block in a line, after white space and bullets, or "".
func opens(text string) string {
	s := strings.TrimLeft(text, " \t")
	for {
		bullet, gap := bulletOf(s)
		if bullet == "" || gap == 0 {
			break
		}
		s = s[len(bullet)+gap:]
	}
	if !strings.HasPrefix(s, "```") && !strings.HasPrefix(s, "~~~") {
		return ""
	}
	rest := strings.TrimLeft(s, s[:1])
	if s[0] == '`' && strings.Contains(rest, "`") {
		return "" // code within a line
	}
	return s[:len(s)-len(rest)]
}

// closes reports whether a line closes the code block opened by fence.
func closes(text, fence string) bool {
	s := strings.TrimSpace(text)
	return len(s) >= len(fence) && strings.Trim(s, fence[:1]) == ""
}

// bulletOf returns the bullet at the start of s, or "", and the number of spaces and tabs after it.
func bulletOf(s string) (bullet string, gap int) {
	switch {
	case s == "":
		return "", 0
	case strings.IndexByte("-*+", s[0]) >= 0:
		bullet = s[:1]
	default:
		digits := 0
		for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
			digits++
		}
		if digits == 0 || digits > 9 || digits == len(s) || s[digits] != '.' && s[digits] != ')' {
			return "", 0
		}
		bullet = s[:digits+1]
	}
	rest := s[len(bullet):]
	return bullet, len(rest) - len(strings.TrimLeft(rest, " \t"))
}

// scan finds headings, items and attributes, and how they belong together.
func (d *Doc) scan() {
	s := scanner{d: d}
	for i := range d.lines {
		l := &d.lines[i]
		body := strings.TrimSpace(l.text)
		switch {
		case l.kind == kindFence:
			s.blank = false
		case body == "":
			l.kind, s.blank = kindBlank, true
		default:
			s.line(i, body)
			s.blank = false
		}
	}
}

// scanner is the context that determines the meaning of a line.
type scanner struct {
	d          *Doc
	stack      []*node // the items that may contain the current line, outermost first
	section    string  // the heading above the line; "" below a first-level one
	underTitle bool    // there is no item or other heading between the title and the line
	blank      bool    // the previous line is blank
}

// line processes a line that is neither blank nor code.
func (s *scanner) line(i int, body string) {
	if level, text := headingOf(s.d.lines[i].text); level > 0 {
		s.heading(i, level, text)
	} else if n, ok := s.d.item(i); ok {
		s.item(i, n)
	} else {
		s.text(i, body)
	}
}

func (s *scanner) heading(i, level int, text string) {
	d := s.d
	d.lines[i].kind, s.stack = kindHeading, nil
	s.underTitle = level == 1 && !slices.ContainsFunc(d.headings, func(h heading) bool { return h.level == 1 })
	d.headings = append(d.headings, heading{i, level, text})
	if s.underTitle {
		d.title = text
	}
	s.section = text
	if level == 1 {
		s.section = ""
	}
}

// item adds an item below the nearest previous one with less indentation.
func (s *scanner) item(i int, n *node) {
	s.d.lines[i].kind, s.underTitle = kindItem, false
	s.leave(n.column)
	around := len(s.stack)
	for around > 0 && s.stack[around-1].plain {
		around--
	}
	if around > 0 {
		n.parent = s.stack[around-1]
		n.parent.children = append(n.parent.children, n)
		n.Parent, n.parent.Group = n.parent.ID, true
	}
	n.Section = s.section
	s.d.nodes = append(s.d.nodes, n)
	s.stack = append(s.stack, n)
}

// leave removes from the stack the items that do not contain a bullet in that column.
func (s *scanner) leave(column int) {
	for len(s.stack) > 0 && s.stack[len(s.stack)-1].column >= column {
		s.stack = s.stack[:len(s.stack)-1]
	}
}

// plain processes a bullet that is neither an item nor an attribute, and reports whether the lines under it belong to it: if it is
// beside an item, or begins like an item without its box. Otherwise they would be attributed to the item above. Any other bullet inside
// an item belongs to the item.
func (s *scanner) plain(i int, bullet, value string) bool {
	l := &s.d.lines[i]
	beside := s.underTitle
	if n := len(s.stack); n > 0 {
		beside = l.indent <= s.stack[n-1].column
	}
	if bullet == "" || !beside && idOf(afterBox(value)) == "" {
		return false
	}
	s.leave(l.indent)
	l.plain = true
	s.stack = append(s.stack, &node{at: i, column: l.indent, plain: true})
	return true
}

// afterBox returns the text after an attempt at a box, closed or not.
func afterBox(s string) string {
	box, ok := strings.CutPrefix(s, "[")
	if !ok {
		return s
	}
	if inside, rest, ok := strings.Cut(box, "]"); ok && len(inside) <= 3 {
		return strings.TrimLeft(rest, " \t")
	}
	return strings.TrimLeft(box, " ~xX-!\t")
}

// idOf returns the id at the start of s, or "".
func idOf(s string) string {
	if id := strings.TrimSuffix(firstWord(s), ":"); isID(id) {
		return id
	}
	return ""
}

// slip reports whether a line that is not an item begins with a complete box, like an item without its bullet or a space.
func slip(body string) bool {
	bullet, gap := bulletOf(body)
	box, ok := strings.CutPrefix(body[len(bullet)+gap:], "[")
	if !ok {
		return false
	}
	inside, rest, ok := strings.Cut(box, "]")
	_, exact := markOf(inside)
	return ok && exact && rest != "" && !strings.ContainsRune("([:", rune(rest[0])) // a link does not count
}

// lost reports that an attribute belongs to no item, once for each bullet above it.
func (s *scanner) lost(n *node, key string) {
	if !n.told {
		n.told = true
		s.d.problem(n.at, fmt.Sprintf("this is not an item, so the %s: under it has no owner: write it as an item, such as `- [ ] T1 title`, or delete both", key))
	}
}

// text processes any other line: an attribute of the current item, or prose.
func (s *scanner) text(i int, body string) {
	l := &s.d.lines[i]
	if slip(body) {
		s.d.problem(i, "this is not read as an item: write it with a bullet and spaces, as `- [ ] T1 title`")
	}
	bullet, gap := bulletOf(body)
	if l.indent == 0 && s.blank && bullet == "" {
		s.stack = nil // a paragraph of its own ends the list
	}
	value := body
	if bullet != "" && gap > 0 {
		value = body[len(bullet)+gap:]
	} else {
		bullet = ""
	}
	text := value
	key, value, ok := attributeOf(value)
	if !known(key) && s.plain(i, bullet, text) || !ok {
		return
	}
	owner := len(s.stack)
	for owner > 0 && s.stack[owner-1].column >= l.indent {
		owner--
	}
	switch {
	case owner > 0 && s.stack[owner-1].plain:
		if governs(key) {
			s.lost(s.stack[owner-1], key)
		}
	case owner > 0:
		l.kind, l.owner = kindAttr, s.stack[owner-1]
		l.owner.set(s.d, i, key, value)
	case s.underTitle && key == "verify":
		l.kind = kindAttr
		if c, ok := command(value); ok {
			s.d.checks = append(s.d.checks, c)
		} else {
			s.d.problem(i, "verify: needs one command, all of it in one pair of backticks")
		}
	case len(s.stack) > 0 && governs(key):
		n := s.stack[len(s.stack)-1]
		if n.plain {
			s.lost(n, key)
			return
		}
		s.d.problem(i, fmt.Sprintf("%s: stands beside %s and not under it: indent the line", key, n.name()), n)
	}
}

// known reports whether a key is part of the grammar.
func known(key string) bool { return governs(key) || key == "proof" || key == "note" }

// governs reports whether losing an attribute of this key could make an item run or count wrongly.
func governs(key string) bool {
	return slices.Contains([]string{"after", "files", "race", "verify"}, key)
}

func headingOf(text string) (level int, title string) {
	s := strings.TrimLeft(text, " ")
	if len(text)-len(s) > 3 {
		return 0, ""
	}
	rest := strings.TrimLeft(s, "#")
	level = len(s) - len(rest)
	if level == 0 || level > 6 || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return 0, ""
	}
	title = strings.TrimSpace(rest)
	if closed := strings.TrimRight(title, "#"); closed == "" || strings.HasSuffix(closed, " ") || strings.HasSuffix(closed, "\t") {
		title = strings.TrimSpace(closed)
	}
	return level, title
}

func (d *Doc) problem(at int, msg string, nodes ...*node) {
	p := Problem{Line: at + 1, Msg: msg}
	for _, n := range nodes {
		d.bad[n] = true
		if n.ID != "" && !slices.Contains(p.IDs, n.ID) {
			p.IDs = append(p.IDs, n.ID)
		}
	}
	d.problems = append(d.problems, p)
}
