package todo

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"centurion"
)

const opEdit = "edit todo"

// SetMark changes only the mark of an item, one byte. Errors, here and in the other edits: KindNotFound with the nearest id,
// KindConflict if several items have the id, KindUsage if a value cannot be written.
func (d *Doc) SetMark(id string, m Mark) error {
	if m.String() == "unknown" {
		return usage("%q is no mark", string(rune(m)))
	}
	n, err := d.target(id)
	if err != nil {
		return err
	}
	if _, exact := markOf(string(d.src[n.markStart:n.markEnd])); exact && n.Mark == m {
		return nil // [X] stays [X]
	}
	return d.splice(n.markStart, n.markEnd, string(rune(m)))
}

// SetTitle changes the title of an item. Line breaks become spaces. The agent stays; if the item has none, an @name at the end of the
// title becomes its agent.
func (d *Doc) SetTitle(id, title string) error {
	n, err := d.target(id)
	if err != nil {
		return err
	}
	if title = oneLine(title); title == "" {
		return usage("the title of %s is empty", id)
	}
	text := title
	if n.idEnd == n.titleStart {
		text = " " + text
	}
	if n.titleStart == n.titleEnd && n.titleEnd < n.agentEnd {
		text += " "
	}
	return d.splice(n.titleStart, n.titleEnd, text)
}

// AddNote adds a `- note: …` line to an item, below its other attributes. Line breaks become spaces.
func (d *Doc) AddNote(id, note string) error {
	n, err := d.target(id)
	if err != nil {
		return err
	}
	if note = oneLine(note); note == "" {
		return usage("the note for %s is empty", id)
	}
	return d.insert(d.attrEnd(n), d.attrPrefix(n)+"note: "+note)
}

// AddAfter makes an item wait for others too, below its other attributes. It skips ids that it waits for already.
func (d *Doc) AddAfter(id string, ids ...string) error {
	n, err := d.target(id)
	if err != nil {
		return err
	}
	ids = slices.DeleteFunc(slices.Clone(ids), func(s string) bool { return slices.Contains(n.After, s) })
	if len(ids) == 0 {
		return nil
	}
	for _, s := range ids {
		if d.find(s) == nil || s == id {
			return &centurion.Error{Op: opEdit, Kind: centurion.KindUsage, Msg: fmt.Sprintf("%s cannot wait for %s: there is no such other item", id, s),
				Hint: "the items are " + d.someIDs()}
		}
	}
	return d.insert(d.attrEnd(n), d.attrPrefix(n)+"after: "+strings.Join(ids, ", "))
}

// ClearAfter removes the item's own predecessors; those of the groups around it stay.
func (d *Doc) ClearAfter(id string) error {
	n, err := d.target(id)
	if err != nil {
		return err
	}
	src := slices.Clone(d.src)
	for _, l := range slices.Backward(d.lines) {
		text := strings.TrimLeft(l.text, " \t")
		bullet, gap := bulletOf(text)
		if key, _, _ := attributeOf(text[len(bullet)+gap:]); l.kind == kindAttr && l.owner == n && key == "after" {
			src = slices.Delete(src, l.start, l.end)
		}
	}
	return d.reload(src)
}

// SetChecks replaces the verify and proof lines of an item; without an id, those of the plan itself, which has no proof.
func (d *Doc) SetChecks(id string, verify []string, proof string) error {
	var n *node
	prefix, at := "- ", 0
	if id != "" {
		var err error
		if n, err = d.target(id); err != nil {
			return err
		}
		prefix, at = d.attrPrefix(n), d.attrEnd(n)
	} else if i := slices.IndexFunc(d.lines, func(l line) bool { return strings.HasPrefix(l.text, "# ") }); i >= 0 {
		at = i + 1
	}
	src := slices.Clone(d.src)
	offset := len(src)
	if at < len(d.lines) {
		offset = d.lines[at].start
	}
	for _, l := range slices.Backward(d.lines) {
		text := strings.TrimLeft(l.text, " \t")
		bullet, gap := bulletOf(text)
		key, _, _ := attributeOf(text[len(bullet)+gap:])
		if l.kind != kindAttr || l.owner != n || key != "verify" && (key != "proof" || n == nil) {
			continue
		}
		if src = slices.Delete(src, l.start, l.end); l.start < offset {
			offset = l.start // the new lines stand where the first of the old ones stood
		}
	}
	var b strings.Builder
	if offset > 0 && src[offset-1] != '\n' {
		b.WriteString(d.eol())
	}
	for _, v := range verify {
		b.WriteString(prefix + "verify: " + quote(v) + d.eol())
	}
	if proof != "" && n != nil {
		b.WriteString(prefix + "proof: " + proof + d.eol())
	}
	return d.reload(slices.Insert(src, offset, []byte(b.String())...))
}

// Add appends an item, with its mark (Open if 0) and attributes, to the end of a section in the style of its other items, and returns
// its id, which is assigned if it.ID is empty. The section is found by its whole heading or, if it is unambiguous, by the heading's
// first word; a missing one is created at the end. "" means the last section. With it.Parent the item becomes the last sub-item of that
// item, in any section. Errors are those of [Doc.SetMark]; KindConflict if the id exists.
func (d *Doc) Add(section string, it Item) (string, error) {
	if err := d.writable(&it); err != nil {
		return "", err
	}
	if it.ID == "" {
		it.ID = "T" + strconv.Itoa(d.nextNumber())
	}
	var err error
	if it.Parent != "" {
		err = d.addUnder(it)
	} else {
		err = d.addTo(section, it)
	}
	if err != nil {
		return "", err
	}
	if n := d.find(it.ID); n == nil || n.Parent != it.Parent {
		return "", &centurion.Error{Op: opEdit, Kind: centurion.KindInternal, Msg: "item " + it.ID + " was not read back"}
	}
	return it.ID, nil
}

// Reserve prevents ids from being assigned that are not in the text: those of removed items with work. They can still be written by
// hand.
func (d *Doc) Reserve(ids ...string) { d.taken = append(d.taken, ids...) }

// AssignIDs writes an id (T1, T2, …, after the highest existing or reserved one) into every item without one, and reports whether there
// was one.
func (d *Doc) AssignIDs() bool {
	next, at := d.nextNumber(), 0
	var out []byte
	for _, n := range d.nodes {
		if n.ID != "" {
			continue
		}
		id := "T" + strconv.Itoa(next)
		switch {
		case n.titleStart < n.agentEnd:
			id += " "
		case d.src[n.rest-1] == ']':
			id = " " + id
		}
		out = append(append(out, d.src[at:n.rest]...), id...)
		next, at = next+1, n.rest
	}
	return at > 0 && d.reload(append(out, d.src[at:]...)) == nil
}

func usage(format string, args ...any) error {
	return &centurion.Error{Op: opEdit, Kind: centurion.KindUsage, Msg: fmt.Sprintf(format, args...)}
}

// target finds the only item with an id.
func (d *Doc) target(id string) (*node, error) {
	same := d.byID[id]
	switch len(same) {
	case 1:
		return same[0], nil
	case 0:
		e := &centurion.Error{Op: opEdit, Kind: centurion.KindNotFound, Msg: fmt.Sprintf("there is no item %q", id)}
		if near := d.Nearest(id); near != "" {
			e.Hint = "did you mean " + near + "?"
		} else if len(d.nodes) == 0 {
			e.Hint = "the plan has no items"
		} else {
			e.Hint = "the items are " + d.someIDs()
		}
		return nil, e
	}
	return nil, &centurion.Error{Op: opEdit, Kind: centurion.KindConflict,
		Msg:  fmt.Sprintf("id %s stands on lines %d and %d", id, same[0].Line, same[1].Line),
		Hint: "give one of them another id in the file"}
}

// someIDs names up to ten ids.
func (d *Doc) someIDs() string {
	var ids []string
	for _, n := range d.nodes {
		if n.ID != "" {
			ids = append(ids, n.ID)
		}
	}
	return centurion.Names(ids, 10)
}

// reload replaces the text or, if it cannot be parsed, keeps the old one.
func (d *Doc) reload(src []byte) error {
	next, err := Parse(src)
	if err != nil {
		return &centurion.Error{Op: opEdit, Kind: centurion.KindInternal, Msg: "an edit broke the text", Err: err}
	}
	next.taken = d.taken
	*d = *next
	return nil
}

func (d *Doc) splice(from, to int, text string) error {
	return d.reload(slices.Concat(d.src[:from], []byte(text), d.src[to:]))
}

// insert inserts lines before line i (from 0; len(d.lines) is the end), with the file's line ends. A file without a newline at its end
// stays without one.
func (d *Doc) insert(i int, lines ...string) error {
	eol := d.eol()
	text := strings.Join(lines, eol) + eol
	if i < len(d.lines) {
		return d.splice(d.lines[i].start, d.lines[i].start, text)
	}
	if open := len(d.lines) > 0 && !bytes.HasSuffix(d.src, []byte("\n")) && d.lines[len(d.lines)-1].text != ""; open {
		text = eol + strings.TrimSuffix(text, eol)
	}
	return d.splice(len(d.src), len(d.src), text)
}

// eol returns the line end of the first line.
func (d *Doc) eol() string {
	first, _, found := bytes.Cut(d.src, []byte("\n"))
	if found && bytes.HasSuffix(first, []byte("\r")) {
		return "\r\n"
	}
	return "\n"
}

// oneLine converts a value to a single line of UTF-8 text.
func oneLine(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	return strings.TrimSpace(strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(s))
}

// lead returns the leading white space of line i.
func (d *Doc) lead(i int) string {
	text := d.lines[i].text
	return text[:len(text)-len(strings.TrimLeft(text, " \t"))]
}

// attrPrefix returns the prefix of an attribute line of n: white space, bullet and a space, as in existing lines.
func (d *Doc) attrPrefix(n *node) string {
	for _, own := range []bool{true, false} {
		for i, l := range d.lines {
			if l.owner == nil || own && l.owner != n || l.owner.column != n.column || d.lead(l.owner.at) != d.lead(n.at) {
				continue
			}
			lead := d.lead(i)
			if bullet, gap := bulletOf(l.text[len(lead):]); bullet != "" && gap > 0 {
				return lead + l.text[len(lead):len(lead)+len(bullet)+gap]
			}
			return lead + "- "
		}
	}
	return d.inner(d.lead(n.at), n.bullet) + plainBullet(n.bullet) + " "
}

// inner returns the white space of lines inside an item.
func (d *Doc) inner(lead, bullet string) string {
	tabs := strings.Contains(lead, "\t") || slices.ContainsFunc(d.lines, func(l line) bool {
		return l.owner != nil && strings.HasPrefix(l.text, "\t")
	})
	if tabs {
		return lead + "\t"
	}
	return lead + strings.Repeat(" ", len(bullet)+1)
}

// plainBullet returns the bullet for lines inside an item with this bullet.
func plainBullet(bullet string) string {
	if len(bullet) > 1 {
		return "-" // numbers are for items
	}
	return bullet
}

// attrEnd returns the line before which an attribute of n is added: after its own lines, but before a plain bullet among them, under
// which it would belong to no item.
func (d *Doc) attrEnd(n *node) int {
	end := d.blockEnd(n)
	if i := slices.IndexFunc(d.lines[n.at+1:end], func(l line) bool { return l.plain }); i >= 0 {
		return n.at + 1 + i
	}
	return end
}

// blockEnd returns the line after n's own lines: attributes and text, without sub-items.
func (d *Doc) blockEnd(n *node) int {
	i := n.at + 1
	for i < len(d.lines) {
		l := d.lines[i]
		bullet, gap := bulletOf(strings.TrimLeft(l.text, " \t"))
		inside := l.indent > n.column
		switch {
		case l.kind == kindFence && inside:
			for i < len(d.lines) && d.lines[i].kind == kindFence {
				i++
			}
			continue
		case l.kind == kindAttr && inside, l.kind == kindText && inside:
		case l.kind == kindText && (bullet == "" || gap == 0): // a wrapped line
		default:
			return i
		}
		i++
	}
	return i
}

// subtreeEnd returns the line after n and its sub-items.
func (d *Doc) subtreeEnd(n *node) int {
	for len(n.children) > 0 {
		n = n.children[len(n.children)-1]
	}
	return d.blockEnd(n)
}
