package workspace

import (
	"slices"
	"strconv"
	"strings"

	"centurion/workspace/todo"
)

// blocks is a plan divided into items and other lines, so that changes from one version can be applied to another. Reassembled, it is
// the same text, byte for byte.
type blocks struct {
	list []*block
	tail []string // blank lines at the end
	eol  string
}

// block is an item with its lines, or one other line. Lines are raw, including their ends.
type block struct {
	key   string   // the item's id, or the text; made unique within the plan
	id    string   // empty for text, and for an item without one
	item  bool     //
	depth int      // column of the first character
	gap   []string // blank lines before it
	head  string
	lines []string // attributes and text of an item, without its sub-items
}

// cut divides a plan into blocks.
func cut(doc *todo.Doc) *blocks {
	p := &blocks{eol: "\n"}
	items := doc.Items()
	seen := map[string]int{}
	var gap []string
	var in *block // item that the line may belong to
	n := 0
	for line := range strings.Lines(string(doc.Bytes())) {
		n++
		if n == 1 && strings.HasSuffix(line, "\r\n") {
			p.eol = "\r\n"
		}
		isItem := len(items) > 0 && items[0].Line == n
		depth, _ := todo.Indent(strings.TrimPrefix(line, "\ufeff"))
		switch {
		case isItem:
			in = &block{id: items[0].ID, item: true, depth: depth, gap: gap, head: line}
			in.key = "item " + in.id
			if in.id == "" {
				in.key = "task " + in.rest()
			}
			items, gap = items[1:], nil
		case strings.TrimSpace(line) == "":
			gap = append(gap, line)
			continue
		case in != nil && gap == nil && depth > in.depth:
			in.lines = append(in.lines, line)
			continue
		default:
			in = nil
		}
		b := in
		if b == nil {
			b = &block{key: "text " + strings.TrimSpace(line), depth: depth, gap: gap, head: line}
			gap = nil
		}
		seen[b.key]++
		if again := seen[b.key]; again > 1 {
			b.key += "\n" + strconv.Itoa(again)
		}
		p.list = append(p.list, b)
	}
	p.tail = gap
	return p
}

// text assembles the plan.
func (p *blocks) text() []byte {
	var out []byte
	add := func(line string) {
		if len(out) > 0 && out[len(out)-1] != '\n' {
			out = append(out, p.eol...)
		}
		out = append(out, line...)
	}
	for _, b := range p.list {
		for _, line := range b.gap {
			add(line)
		}
		add(b.head)
		for _, line := range b.lines {
			add(line)
		}
	}
	for _, line := range p.tail {
		add(line)
	}
	return out
}

// find returns the block with that key, and its index.
func (p *blocks) find(key string) (*block, int) {
	i := slices.IndexFunc(p.list, func(b *block) bool { return b.key == key })
	if i < 0 {
		return nil, -1
	}
	return p.list[i], i
}

// ending gives a line the line end of this plan.
func (p *blocks) ending(line string) string { return strings.TrimRight(line, "\r\n") + p.eol }

// parts splits an item's first line into the text before the mark, the mark as written, and the rest.
func (b *block) parts() (lead, mark, rest string) {
	lead, after, _ := strings.Cut(b.head, "[")
	mark, rest, _ = strings.Cut(after, "]")
	return lead + "[", mark, "]" + rest
}

// mark returns the text between the brackets, "" for text. [X] and [x] are the same mark.
func (b *block) mark() string {
	if !b.item {
		return ""
	}
	_, mark, _ := b.parts()
	return strings.ToLower(mark)
}

// rest returns the first line without its mark and the text before it.
func (b *block) rest() string {
	if !b.item {
		return strings.TrimSpace(b.head)
	}
	_, _, rest := b.parts()
	return strings.TrimSpace(rest[1:])
}

func (b *block) setMark(mark string) {
	lead, _, rest := b.parts()
	b.head = lead + mark + rest
}

func (b *block) setRest(text string) {
	lead, mark, rest := b.parts()
	b.head = lead + mark + "] " + text + rest[len(strings.TrimRight(rest, "\r\n")):]
}

// line returns the index of an equal line, or -1.
func (b *block) line(text string) int {
	return slices.IndexFunc(b.lines, func(l string) bool { return same(l, text) })
}

// same reports whether two lines are equal except for surrounding white space.
func same(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }

// equal reports whether two blocks have the same content.
func (b *block) equal(o *block) bool {
	return b.mark() == o.mark() && b.rest() == o.rest() && slices.EqualFunc(b.lines, o.lines, same)
}

// copied returns a modifiable copy.
func (b *block) copied() *block {
	c := *b
	c.gap, c.lines = slices.Clone(b.gap), slices.Clone(b.lines)
	return &c
}
