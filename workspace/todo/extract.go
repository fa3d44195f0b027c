package todo

import (
	"slices"
	"strings"
)

// FromText extracts the plan from a text, such as an agent's answer, without surrounding prose, or returns nil if no line is an open
// item. A plan in a code fence precedes one in the text around it; of several, the one with the most items is used.
func FromText(text string) *Doc {
	lines := strings.Split(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n"), "\n")
	outside, inside := apart(lines)
	var best *Doc
	for _, block := range inside {
		if d := planOf(block); d != nil && (best == nil || len(d.nodes) > len(best.nodes)) {
			best = d
		}
	}
	if best != nil {
		return best
	}
	return planOf(outside)
}

// apart separates the lines of code fences from the others. An unclosed one ends with the text.
func apart(lines []string) (outside []string, inside [][]string) {
	fence := ""
	for _, l := range lines {
		switch {
		case fence == "":
			if fence = opens(l); fence != "" {
				inside = append(inside, nil)
				continue
			}
			outside = append(outside, l)
		case closes(l, fence):
			fence = ""
		default:
			inside[len(inside)-1] = append(inside[len(inside)-1], l)
		}
	}
	return outside, inside
}

// planOf removes the prose around a plan, or returns nil if no line of it is an open item.
func planOf(lines []string) *Doc {
	d, err := Parse([]byte(strings.Join(lines, "\n")))
	if err != nil || !d.hasOpen() {
		return nil
	}
	from := d.nodes[0].at
	for from > 0 && d.lines[from-1].kind != kindText { // headings and the mission's own checks
		from--
	}
	for d.lines[from].kind == kindBlank {
		from++
	}
	to := len(d.lines)
	for to > 0 && d.lines[to-1].isProse() {
		to--
	}
	var b strings.Builder
	for _, l := range d.lines[from:to] {
		b.WriteString(l.text + "\n")
	}
	plan, err := Parse([]byte(b.String()))
	if err != nil || !plan.hasOpen() {
		return nil
	}
	return plan
}

// hasOpen reports whether an item is marked as open, even if a problem blocks it.
func (d *Doc) hasOpen() bool {
	return slices.ContainsFunc(d.nodes, func(n *node) bool { return n.Mark == Open })
}

// isProse reports whether a line after a plan is not part of it.
func (l line) isProse() bool {
	if l.kind == kindText {
		key, _, ok := attributeOf(strings.TrimLeft(l.text, " \t-*+"))
		return l.indent == 0 && !(ok && governs(key))
	}
	return l.kind == kindBlank || l.kind == kindHeading
}
