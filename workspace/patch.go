package workspace

import (
	"maps"
	"slices"
	"strings"
)

// past is what one version of a plan did that its text alone does not say.
type past struct {
	ids  map[string]*block // items that it gave an id, by the key that they had
	came []*block
	gone map[string]bool // what an edit of ours took out: keys of blocks, and their lines behind the key
}

// since returns what b has done to the version a before it. What went is noted of our own edits only: a text of somebody else that lacks
// something may be half of what they are writing, and nothing must be taken away again and again because of it.
func since(a, b *blocks, own bool) past {
	p := past{ids: map[string]*block{}, gone: map[string]bool{}}
	inA, inB := a.byKey(), b.byKey()
	for _, was := range a.list {
		now := inB[was.key]
		if now == nil && was.item && was.id == "" {
			if now = named(was, b, inA); now != nil {
				p.ids[was.key], inA[now.key] = now, was
			}
		}
		switch {
		case now == nil:
			p.gone[was.key] = own
		case own:
			for _, line := range lacking(was.lines, now.lines) {
				p.gone[now.key+"\n"+strings.TrimSpace(line)] = true
			}
		}
	}
	for _, now := range b.list {
		if inA[now.key] == nil {
			p.came = append(p.came, now)
		}
	}
	return p
}

func (p *blocks) byKey() map[string]*block {
	m := make(map[string]*block, len(p.list))
	for _, b := range p.list {
		m[b.key] = b
	}
	return m
}

// named finds the item that was once without an id.
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

// parent returns the key of the item that the block at i is a sub-item of, or "".
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

// lacking returns the lines of a that b does not have.
func lacking(a, b []string) []string {
	have := map[string]int{}
	for _, l := range b {
		have[strings.TrimSpace(l)]++
	}
	var out []string
	for _, l := range a {
		if have[strings.TrimSpace(l)]--; have[strings.TrimSpace(l)] < 0 {
			out = append(out, l)
		}
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

// merge does to p, which somebody made out of base, what was done to base since: all is what the versions between it and now did. Where
// both changed the same thing p stays as it is.
func (p *blocks) merge(base, now *blocks, all []past) {
	was, gone := base.byKey(), map[string]bool{}
	known := maps.Clone(was)
	for _, v := range all {
		for key, n := range v.ids {
			if b, _ := p.find(key); b != nil {
				b.key, b.id = n.key, n.id
				b.setRest(withID(n.id, b.rest()))
			}
			if b := was[key]; b != nil {
				c := b.copied()
				c.setRest(withID(n.id, b.rest()))
				was[n.key], known[n.key] = c, c
			}
		}
		for _, b := range v.came {
			if was[b.key] == nil {
				was[b.key] = b
			}
		}
		maps.Copy(gone, v.gone)
	}
	for i, n := range now.list {
		b, _ := p.find(n.key)
		w := was[n.key]
		switch {
		case known[n.key] == nil && (b == nil || n.item && w != nil && b.rest() != w.rest()): // it came, or p's writer has another one with its id
			p.insert(now, i)
		case b != nil && n.item && w != nil:
			b.merge(p, w, n, gone)
		}
	}
	inNow := now.byKey()
	p.list = slices.DeleteFunc(p.list, func(b *block) bool {
		return inNow[b.key] == nil && gone[b.key] && was[b.key] != nil && b.equal(was[b.key])
	})
}

// merge does to an item what was done to it since it was was.
func (b *block) merge(p *blocks, was, now *block, gone map[string]bool) {
	if b.mark() == was.mark() && now.mark() != was.mark() {
		b.setMark(now.mark())
	}
	if b.rest() == was.rest() && now.rest() != was.rest() {
		b.setRest(now.rest())
	}
	went := lacking(was.lines, now.lines)
	for _, line := range lacking(now.lines, was.lines) {
		i := slices.IndexFunc(went, func(l string) bool { return attribute(l) != "" && attribute(l) == attribute(line) })
		at, has := -1, b.line(line) >= 0
		if i >= 0 {
			at = b.line(went[i])
			went = slices.Delete(went, i, i+1)
		}
		switch {
		case i < 0 && !has:
			b.lines = append(b.lines, p.ending(line))
		case at >= 0 && has:
			b.lines = slices.Delete(b.lines, at, at+1)
		case at >= 0:
			b.lines[at] = p.ending(line)
		}
	}
	for _, line := range went {
		if at := b.line(line); at >= 0 && gone[now.key+"\n"+strings.TrimSpace(line)] {
			b.lines = slices.Delete(b.lines, at, at+1)
		}
	}
}

// insert puts block i of now behind what stands before it there. A sub-item of an item that p's writer removed goes with that. Two items
// with one id stand side by side, and the plan tells of it.
func (p *blocks) insert(now *blocks, i int) {
	c := now.list[i].copied()
	if parent := now.parent(i); parent != "" {
		if b, _ := p.find(parent); b == nil {
			return
		}
	}
	at := 0
	if i > 0 {
		at = len(p.list)
	}
	for _, before := range slices.Backward(now.list[:i]) {
		if _, j := p.find(before.key); j >= 0 {
			at = j + 1
			break
		}
	}
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
