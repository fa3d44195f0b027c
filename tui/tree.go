package tui

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strings"

	"centurion"
	"centurion/text"
)

// Branches is all messages of a session, to be drawn as a tree.
type Branches struct {
	Session  centurion.Session
	Messages []centurion.Message // with their parts, in the order they were stored
	Leaf     string              // the newest message of the current line
}

// Tree prints the messages of a session, one per line: the speaker, the text, and its marks. It branches where a conversation was
// rewound and continued differently; the current line is the last branch and ends with "◀ here".
//
//	msg_01… you        build it
//	├─ msg_02… commander  I do it this way  [before-rewind-1]
//	└─ msg_03… commander  I do it that way  ◀ here
func Tree(w io.Writer, b Branches, o ShowOptions) error {
	o = o.defaults()
	p := page{theme: theme{o.Color}, w: o.Width}
	p.line(p.theme.paint(strong, text.Fit(text.Clean(b.Session.Title), o.Width)))
	p.field("session", text.Dots(b.Session.ID, text.Clean(b.Session.Agent), text.Clean(b.Session.Metadata.Address)))
	if f := b.Session.Metadata.ForkedFrom; f != nil {
		p.field("copy of", text.Dots(f.Session, "up to "+f.Message))
	}
	p.line("")
	t := newTree(b)
	t.draw(&p, t.under[""], "")
	return p.flush(w)
}

// tree has the successors of each message.
type tree struct {
	b     Branches
	under map[string][]*centurion.Message // by id; "" for those without a predecessor
	marks map[string][]string
	line  map[string]bool // the messages of the current line
	who   int             // cells of the longest name
}

func newTree(b Branches) tree {
	t := tree{b: b, under: map[string][]*centurion.Message{}, marks: map[string][]string{}, line: map[string]bool{}}
	known := map[string]bool{"": true}
	before := ""
	for i := range b.Messages {
		m := &b.Messages[i]
		prev := m.Prev
		if !known[prev] { // it was lost
			prev = before
		}
		known[m.ID], before = true, m.ID
		t.under[prev] = append(t.under[prev], m)
		t.who = max(t.who, text.Width(speaker(m)))
	}
	for _, m := range centurion.Line(b.Messages, b.Leaf) {
		t.line[m.ID] = true
	}
	for _, name := range slices.Sorted(maps.Keys(b.Session.Metadata.Marks)) {
		id := b.Session.Metadata.Marks[name]
		t.marks[id] = append(t.marks[id], text.Clean(name))
	}
	for _, found := range t.under {
		slices.SortStableFunc(found, func(x, y *centurion.Message) int {
			switch {
			case t.line[x.ID] == t.line[y.ID]:
				return 0
			case t.line[x.ID]:
				return 1
			}
			return -1
		})
	}
	return t
}

// draw prints messages with the same predecessor, and their successors. A line without branches goes straight down, so that only
// branches move to the right.
func (t tree) draw(p *page, found []*centurion.Message, lead string) {
	for len(found) == 1 {
		t.message(p, found[0], lead)
		found = t.under[found[0].ID]
	}
	for i, m := range found {
		sign, below := "├─ ", "│  "
		if i == len(found)-1 {
			sign, below = "└─ ", "   "
		}
		t.message(p, m, lead+sign)
		t.draw(p, t.under[m.ID], lead+below)
	}
}

func (t tree) message(p *page, m *centurion.Message, lead string) {
	names := t.marks[m.ID]
	tail := text.When(len(names) > 0, "  ["+strings.Join(names, ", ")+"]") + text.When(m.ID == t.b.Leaf, "  ◀ here")
	left := lead + m.ID + " " + text.Pad(speaker(m), t.who) + "  "
	room := max(10, p.w-text.Width(left)-text.Width(tail))
	words := text.Fit(MessageWords(*m, room), room)
	if !t.line[m.ID] {
		words = p.theme.paint(dim, words)
	}
	p.line(p.theme.paint(dim, lead) + m.ID + " " + text.Pad(speaker(m), t.who) + "  " + words + p.theme.paint(strong, tail))
}

// speaker names the author of a message in one word.
func speaker(m *centurion.Message) string {
	if m.Role == centurion.RoleAssistant {
		return cmp.Or(text.Clean(m.Agent), string(m.Role))
	}
	switch m.Origin {
	case centurion.OriginParent:
		return "task"
	case centurion.OriginHost:
		return "host"
	}
	return "you"
}

// MessageWords returns the first words of a message, or its calls if it has no text, in at most that many cells.
func MessageWords(m centurion.Message, cells int) string {
	var calls []string
	for _, p := range m.Parts {
		switch {
		case p.Type == centurion.PartCompaction:
			return text.Fit(compactionLine(p.Compaction), cells)
		case p.Type == centurion.PartTool:
			calls = append(calls, text.Clean(p.Tool))
		}
	}
	said := strings.Join(strings.Fields(text.Clean(centurion.Clip(m.Text(), 4000))), " ")
	if m.Summary {
		said = "summary: " + said
	}
	if len(calls) > 0 {
		did := "→ " + strings.Join(calls, ", ")
		said = strings.TrimSpace(text.Fit(said, max(10, cells-text.Width(did)-1)) + " " + did)
	}
	if m.Role == centurion.RoleAssistant && (m.Finish == "" || m.Finish == centurion.FinishError) {
		said = strings.TrimSpace("(broke off) " + said)
	}
	return text.Fit(said, cells)
}
