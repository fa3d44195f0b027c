package todo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"centurion"
)

// maxOffers limits the problems of a plan that offer the nearest id, since each compares with every item.
const maxOffers = 50

// maxLines limits the lines that a message names.
const maxLines = 10

// check finds problems between items: duplicate ids, and missing ids or cycles in after: lists.
func (d *Doc) check() {
	seen, offers := map[string]bool{}, 0
	for _, n := range d.nodes {
		if why := n.notRun(); why != "" {
			d.problem(n.raceLine, "race: of "+n.name()+" "+why, n)
		}
		if same := d.byID[n.ID]; len(same) > 1 && !seen[n.ID] {
			seen[n.ID] = true
			lines := make([]string, 0, maxLines+1)
			for _, s := range same[:min(len(same), maxLines)] {
				lines = append(lines, fmt.Sprint(s.Line))
			}
			if more := len(same) - maxLines; more > 0 {
				lines = append(lines, fmt.Sprintf("and %d more", more))
			}
			d.problem(same[1].at, fmt.Sprintf("id %s stands on lines %s: ids must be unique", n.ID, strings.Join(lines, ", ")), same...)
		}
		for _, id := range n.After {
			if d.byID[id] == nil {
				msg := fmt.Sprintf("%s comes after %s, which does not exist", n.name(), id)
				if offers < maxOffers {
					offers++
					if near := d.Nearest(id); near != "" && near != n.ID {
						msg += "; did you mean " + near + "?"
					}
				}
				d.problem(n.afterLine, msg, n)
			}
		}
	}
	d.checkCycles()
	d.settle()
	slices.SortStableFunc(d.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
}

// waitsFor returns the direct requirements of n: a group's sub-items, and the predecessors of n and of the groups around it.
func (d *Doc) waitsFor(n *node) []*node {
	out := slices.Clone(n.children)
	for p := n; p != nil; p = p.parent {
		for _, id := range p.After {
			if same := d.byID[id]; len(same) == 1 { // ambiguous ids are a problem anyway
				out = append(out, same[0])
			}
		}
	}
	return out
}

// Before returns the ids of the direct and indirect requirements of an item: predecessors of it and the groups around it, and their
// sub-items. They are in the order of the file; missing or ambiguous ids are omitted.
func (d *Doc) Before(id string) []string {
	n := d.find(id)
	if n == nil {
		return nil
	}
	seen := map[*node]bool{n: true}
	for next := []*node{n}; len(next) > 0; {
		at := next[0]
		next = next[1:]
		for _, m := range d.waitsFor(at) {
			if !seen[m] {
				seen[m] = true
				next = append(next, m)
			}
		}
	}
	var out []string
	for _, m := range d.nodes {
		if m != n && seen[m] && m.ID != "" {
			out = append(out, m.ID)
		}
	}
	return out
}

// NoneLost refuses a plan in which an item waits for a missing one, forever. was are the results of an earlier [Doc.Dangling].
func (d *Doc) NoneLost(was []string) error {
	lost := slices.DeleteFunc(d.Dangling(), func(s string) bool { return slices.Contains(was, s) })
	if len(lost) == 0 {
		return nil
	}
	return &centurion.Error{Kind: centurion.KindUsage, Msg: "an item comes after one that does not exist: " + strings.Join(lost, ", "),
		Hint: "the items are " + d.someIDs() + "; name one of them, or leave that `after` out"}
}

// Dangling lists references to missing ids, as "T2 after T9", in the order of the file. A nil plan has none.
func (d *Doc) Dangling() (out []string) {
	if d == nil {
		return nil
	}
	for _, n := range d.nodes {
		for _, id := range n.After {
			if d.byID[id] == nil {
				out = append(out, n.name()+" after "+id)
			}
		}
	}
	return out
}

// checkCycles finds the strongly connected components of the requirements, with Tarjan's algorithm.
func (d *Doc) checkCycles() {
	index := make(map[*node]int, len(d.nodes)) // order of discovery, from 1
	low := make(map[*node]int, len(d.nodes))
	onPath := map[*node]bool{}
	var path []*node
	var visit func(n *node)
	visit = func(n *node) {
		index[n] = len(index) + 1
		low[n] = index[n]
		path, onPath[n] = append(path, n), true
		self := false
		for _, m := range d.waitsFor(n) {
			self = self || m == n
			if index[m] == 0 {
				visit(m)
				low[n] = min(low[n], low[m])
			} else if onPath[m] {
				low[n] = min(low[n], index[m])
			}
		}
		if low[n] != index[n] {
			return
		}
		from := len(path) - 1
		for path[from] != n {
			from--
		}
		part := slices.Clone(path[from:])
		path = path[:from]
		for _, m := range part {
			onPath[m] = false
		}
		if self || len(part) > 1 {
			d.cycle(part)
		}
	}
	for _, n := range d.nodes {
		if index[n] == 0 {
			visit(n)
		}
	}
}

// cycle records that the items of part wait for each other. It includes groups around them whose after: they inherited.
func (d *Doc) cycle(part []*node) {
	for _, n := range slices.Clone(part) {
		for p := n.parent; p != nil; p = p.parent {
			leads := slices.ContainsFunc(part, func(m *node) bool { return m.ID != "" && slices.Contains(p.After, m.ID) })
			if leads && !slices.Contains(part, p) {
				part = append(part, p)
			}
		}
	}
	slices.SortFunc(part, func(a, b *node) int { return cmp.Compare(a.at, b.at) })
	names, at := make([]string, len(part)), part[0].at
	for i, n := range part {
		names[i] = n.name()
		if len(n.After) > 0 && at == part[0].at {
			at = n.afterLine
		}
	}
	msg := names[0] + " comes after itself"
	if len(part) > 1 {
		msg = strings.Join(names, ", ") + " wait for each other"
	}
	d.problem(at, msg+": remove one after:", part...)
}

// find returns the first item with an id, or nil. It does not find items without an id.
func (d *Doc) find(id string) *node {
	if same := d.byID[id]; len(same) > 0 {
		return same[0]
	}
	return nil
}

// Nearest returns the existing id most similar to id, or "".
func (d *Doc) Nearest(id string) string {
	var ids []string
	for _, n := range d.nodes {
		if n.ID == id || n.ID == "" {
			continue
		}
		if strings.EqualFold(n.ID, id) {
			return n.ID
		}
		ids = append(ids, n.ID)
	}
	return centurion.Nearest(id, ids)
}

// Status returns the effective status of an item, and 0 if there is no such item. An item with a problem is Blocked. A group is Done if
// its sub-items are done or cancelled (Cancelled if all are, or if its own mark says so), otherwise Running, Open or Blocked, the first
// of these that a sub-item has. Open items are cancelled inside a cancelled group, and blocked inside a blocked one.
func (d *Doc) Status(id string) Mark {
	if n := d.find(id); n != nil {
		return n.state
	}
	return 0
}

// settle computes the state of every item: first the effect of the groups around it, from the outside in, then the states of groups,
// from the inside out.
func (d *Doc) settle() {
	for _, n := range d.nodes {
		if p := n.parent; p != nil {
			n.imposed = p.imposed
			switch {
			case d.bad[p]:
				n.imposed = Blocked
			case p.Mark == Cancelled, p.Mark == Blocked:
				n.imposed = p.Mark
			}
		}
		n.state = n.Mark
		if n.Mark == Open && n.imposed != 0 {
			n.state = n.imposed
		}
	}
	for _, n := range slices.Backward(d.nodes) {
		if n.Group && n.Mark != Cancelled {
			n.state = groupState(n.children)
		}
		if d.bad[n] && n.Mark != Cancelled {
			n.state = Blocked
		}
	}
}

func groupState(children []*node) Mark {
	var has [256]bool
	for _, c := range children {
		has[c.state] = true
	}
	for _, m := range []Mark{Running, Open, Blocked, Done} {
		if has[m] {
			return m
		}
	}
	return Cancelled
}

func settled(m Mark) bool { return m == Done || m == Cancelled }

// Counts counts the items without sub-items by [Doc.Status].
func (d *Doc) Counts() Counts {
	var c Counts
	for _, n := range d.nodes {
		if n.Group {
			continue
		}
		switch n.state {
		case Open:
			c.Open++
		case Running:
			c.Running++
		case Done:
			c.Done++
		case Cancelled:
			c.Cancelled++
		default:
			c.Blocked++
		}
	}
	return c
}

// Runnable returns the items that can start now, in the order of the file: open, without sub-items and problems, and with all
// predecessors, including those of the groups around them, done or cancelled.
func (d *Doc) Runnable() []Item {
	var out []Item
	for _, n := range d.nodes {
		if !n.Group && n.state == Open && len(d.unmet(n)) == 0 {
			out = append(out, n.Item)
		}
	}
	return out
}

// Unmet returns the ids that hold an item back, first those of its own after:, then those of the groups around it.
func (d *Doc) Unmet(id string) []string {
	if n := d.find(id); n != nil {
		return d.unmet(n)
	}
	return nil
}

func (d *Doc) unmet(n *node) []string { return d.unmetOf(n, nil, map[*node]bool{}) }

// unmetOf adds the unmet predecessors of n to out. A done predecessor does not block, but a reopened predecessor of that one does.
func (d *Doc) unmetOf(n *node, out []string, seen map[*node]bool) []string {
	for p := n; p != nil && !seen[p]; p = p.parent {
		seen[p] = true
		for _, id := range p.After {
			same := d.byID[id]
			switch {
			case len(same) != 1 || !settled(same[0].state):
				if !slices.Contains(out, id) {
					out = append(out, id)
				}
			case same[0].state == Done:
				out = d.unmetOf(same[0], out, seen)
			}
		}
	}
	return out
}
