package workspace

import (
	"slices"
	"strings"
)

// step is one difference between two versions of a plan, expressed by ids, so that it can be applied to a third.
type step struct {
	kind     stepKind
	key      string   // of the block
	from, to string   // of a mark, a first line or a line of an item
	block    *block   // that was added or removed, or got its id
	before   []string // keys of the blocks before an added one, in order
	parent   string   // key of the parent item of an added one
}

type stepKind uint8

const (
	stepCame stepKind = iota
	stepWent
	stepID     // an item got an id
	stepMark   // an item got another mark
	stepHead   // title or agent of an item changed
	stepAdd    // a line was added to an item
	stepDrop   // a line was removed from an item
	stepChange // a line of an item was replaced
)

// steps returns the differences between a and b. Removals are included only with own: a foreign text that lacks lines may be
// unfinished, and must not cause their removal again and again.
func steps(a, b *blocks, own bool) []step {
	inA, inB := a.byKey(), b.byKey()
	var out []step
	for _, was := range a.list {
		now := inB[was.key]
		if now == nil && was.item && was.id == "" {
			if now = named(was, b, inA); now != nil {
				out = append(out, step{kind: stepID, key: was.key, to: now.rest(), block: now})
				inA[now.key] = was
			}
		}
		switch {
		case now == nil && own:
			out = append(out, step{kind: stepWent, key: was.key, block: was})
		case now != nil && was.item:
			out = append(out, was.steps(now, own)...)
		}
	}
	keys := make([]string, len(b.list))
	for i, now := range b.list {
		keys[i] = now.key
		if inA[now.key] == nil {
			out = append(out, step{kind: stepCame, key: now.key, block: now, before: keys[:i:i], parent: b.parent(i)})
		}
	}
	return out
}

func (p *blocks) byKey() map[string]*block {
	m := make(map[string]*block, len(p.list))
	for _, b := range p.list {
		m[b.key] = b
	}
	return m
}

// named finds the item that was formerly without an id.
func named(was *block, b *blocks, known map[string]*block) *block {
	i := slices.IndexFunc(b.list, func(now *block) bool {
		return now.id != "" && known[now.key] == nil && withID(now.id, was.rest()) == now.rest()
	})
	if i < 0 {
		return nil
	}
	return b.list[i]
}

func withID(id, rest string) string { return strings.TrimSpace(id + " " + rest) }

// parent returns the key of the parent item of the block at i, or "".
func (p *blocks) parent(i int) string {
	if !p.list[i].item {
		return ""
	}
	for j := i - 1; j >= 0; j-- {
		switch b := p.list[j]; {
		case b.item && b.depth < p.list[i].depth:
			return b.key
		case !b.item && b.depth == 0:
			return ""
		}
	}
	return ""
}

// steps returns the differences between two states of an item.
func (b *block) steps(now *block, own bool) []step {
	var out []step
	if from, to := b.mark(), now.mark(); from != to {
		out = append(out, step{kind: stepMark, key: now.key, from: from, to: to})
	}
	if from, to := b.rest(), now.rest(); b.key == now.key && from != to {
		out = append(out, step{kind: stepHead, key: now.key, from: from, to: to})
	}
	gone := lacking(b.lines, now.lines)
	for _, line := range lacking(now.lines, b.lines) {
		i := slices.IndexFunc(gone, func(l string) bool { return attribute(l) != "" && attribute(l) == attribute(line) })
		if i < 0 {
			out = append(out, step{kind: stepAdd, key: now.key, to: line})
			continue
		}
		out = append(out, step{kind: stepChange, key: now.key, from: gone[i], to: line})
		gone = slices.Delete(gone, i, i+1)
	}
	for _, line := range gone {
		if own {
			out = append(out, step{kind: stepDrop, key: now.key, from: line})
		}
	}
	return out
}

// lacking returns the lines of a that are not in b.
func lacking(a, b []string) []string {
	have := map[string]int{}
	for _, l := range b {
		have[strings.TrimSpace(l)]++
	}
	var out []string
	for _, l := range a {
		if l = strings.TrimSpace(l); have[l] == 0 {
			out = append(out, l)
		} else {
			have[l]--
		}
	}
	// The caller needs the original text: the indentation makes the lines attributes.
	for i, l := range out {
		out[i] = a[slices.IndexFunc(a, func(s string) bool { return same(s, l) })]
	}
	return out
}

// attribute returns the key of an attribute line, "" if it is none. Notes have no key here: each stands for itself.
func attribute(line string) string {
	key, _, ok := strings.Cut(strings.TrimLeft(line, " \t-*+"), ":")
	if key = strings.ToLower(key); !ok || strings.ContainsAny(key, " \t`") || key == "note" {
		return ""
	}
	return key
}

// apply applies the steps to p, a foreign change of base. Where both changed the same thing p wins.
func (p *blocks) apply(base *blocks, all []step) {
	kept := map[string]bool{} // marks set by p's writer
	for _, was := range base.list {
		if now, _ := p.find(was.key); now != nil && now.mark() != was.mark() {
			kept[was.key] = true
		}
	}
	for _, s := range all {
		if s.kind == stepCame {
			p.insert(base, s)
			continue
		}
		b, i := p.find(s.key)
		if b == nil {
			continue
		}
		switch s.kind {
		case stepWent:
			if b.equal(s.block) {
				p.list = slices.Delete(p.list, i, i+1)
			}
		case stepID:
			b.setRest(s.to)
			if kept[b.key] {
				kept[s.block.key] = true
			}
			b.key, b.id = s.block.key, s.block.id
		case stepMark:
			if !kept[s.key] && b.mark() == s.from {
				b.setMark(s.to)
			}
		case stepHead:
			if b.rest() == s.from {
				b.setRest(s.to)
			}
		default:
			b.edit(p, s)
		}
	}
}

// edit applies a step about a line of an item.
func (b *block) edit(p *blocks, s step) {
	if s.kind == stepAdd {
		if b.line(s.to) < 0 {
			b.lines = append(b.lines, p.ending(s.to))
		}
		return
	}
	switch i := b.line(s.from); {
	case i < 0: // p's writer changed it, too, or the step was applied already
	case s.kind == stepDrop, b.line(s.to) >= 0:
		b.lines = slices.Delete(b.lines, i, i+1)
	default:
		b.lines[i] = p.ending(s.to)
	}
}

// insert inserts a block after its former predecessors. A sub-item of an item that p's writer removed is dropped. Two items with the
// same id are both kept, and reported as a problem.
func (p *blocks) insert(base *blocks, s step) {
	known, _ := base.find(s.key)
	for _, b := range p.list {
		if sameItem := b.id == s.block.id && b.item && s.block.item && b.id != ""; b.key == s.key || sameItem {
			if !sameItem || known != nil || b.rest() == s.block.rest() {
				return
			}
		}
	}
	if s.parent != "" {
		if b, _ := p.find(s.parent); b == nil {
			return
		}
	}
	at := 0
	if len(s.before) > 0 {
		at = len(p.list)
	}
	for _, key := range slices.Backward(s.before) {
		if _, i := p.find(key); i >= 0 {
			at = i + 1
			break
		}
	}
	c := s.block.copied()
	for at < len(p.list) && c.item && p.list[at].item && p.list[at].depth > c.depth {
		at++
	}
	c.head = p.ending(c.head)
	for i, l := range c.lines {
		c.lines[i] = p.ending(l)
	}
	for i, l := range c.gap {
		c.gap[i] = p.ending(l)
	}
	p.list = slices.Insert(p.list, at, c)
}
