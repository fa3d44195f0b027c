package workspace

import (
	"bytes"
	"hash/maphash"
	"math"
	"slices"
	"strings"

	"centurion/workspace/todo"
)

const (
	// maxVersions and maxRemembered, in bytes, limit the history of a plan in memory. With fifty workers that each edit it twice a
	// minute, 1024 versions are ten minutes; a save based on an older version counts as a change of the oldest one left.
	maxVersions   = 1024
	maxRemembered = 8 << 20
)

// history is the versions of a plan that this process found on disk or wrote, oldest first, and the steps between them. A person's
// editor may save a text that is based on an older version: history determines that version, and applies the later changes to the
// person's text.
//
// The rule: the base of an unknown text is the remembered version with the fewest different lines, the newest if several are equal.
// Changes since that version are reapplied to the new text, by id; where both changed the same mark, title or attribute, the new text
// wins, and lines of the base that it lacks stay removed. If the base is the newest version, or the text equals an earlier one, the
// text is intended and nothing is reapplied; nor if it has at most half of the base's lines, because then it is another plan.
//
// The rule needs a complete history: a missing version leads to a wrong base, whose consequences mislead others. Processes that edit
// one plan therefore share a memory; see [Workspace.Remember].
//
// Only a version in which a line was not read as an item can be the base of a text in which it is one again.
//
// The rule has one ambiguity. Someone who reads the newest version, reverts exactly the last change by hand, and changes something else
// in the same save, produces the same bytes as someone who never saw that change: it is reapplied. Reverting it alone is recognised.
// Likewise, an item with the id of one that an agent added meanwhile, with no other change, is taken for that item with another title.
type history struct {
	list  []version
	bytes int
	cut   *blocks // of the newest version
	n     uint64  // number of the newest version, shared by all processes with the same memory

	foreign []Foreign // found, but not passed on to the file yet
}

type version struct {
	n     uint64 // 1 is the first; 0 if it is not in the memory
	own   bool   // see steps
	sum   string
	text  []byte
	lines []uint64 // hashes of its lines; see blocks.hashes
	steps []step   // from the previous version
}

var seed = maphash.MakeSeed()

// newest returns the last version on disk; nil if none is known.
func (h *history) newest() *version {
	if len(h.list) == 0 {
		return nil
	}
	return &h.list[len(h.list)-1]
}

// isNewest reports whether a text is the last one on disk.
func (h *history) isNewest(text []byte) bool {
	last := h.newest()
	return last != nil && bytes.Equal(last.text, text)
}

func (h *history) knows(sum string) bool {
	return slices.ContainsFunc(h.list, func(v version) bool { return v.sum == sum })
}

// clone returns a copy that can be extended without changing h. Only one of several clones may be kept: they share the capacity after
// the newest version.
func (h *history) clone() *history {
	c := *h
	return &c
}

// remember adds the current text on disk. A nil text is a missing file. It returns false for a text that is not a plan, which is not
// remembered. See steps for own.
func (h *history) remember(text []byte, own bool) bool {
	sum := versionOf(text)
	last := h.newest()
	if last != nil && last.sum == sum {
		return true
	}
	doc, err := todo.Parse(text)
	if err != nil {
		return false
	}
	p := cut(doc)
	h.n++
	v := version{n: h.n, own: own, sum: sum, text: text, lines: p.hashes()}
	if last != nil {
		v.steps = steps(h.cut, p, own)
	}
	h.list, h.bytes, h.cut = append(h.list, v), h.bytes+len(text), p
	for len(h.list) > maxVersions || h.bytes > maxRemembered && len(h.list) > 2 {
		h.bytes -= len(h.list[0].text)
		h.list = h.list[1:]
	}
	return true
}

// unnumber clears the numbers, before those of another process are adopted.
func (h *history) unnumber() {
	h.n = 0
	for i := range h.list {
		h.list[i].n = 0
	}
}

// meet takes in a foreign text and returns the resulting plan: the text itself, or the text with the changes it lacks. Both are
// remembered.
func (h *history) meet(text []byte) []byte {
	if last := h.newest(); last != nil && last.sum == versionOf(text) {
		return text
	}
	doc, err := todo.Parse(text)
	if err != nil {
		return text
	}
	p := cut(doc)
	base := h.base(text, doc, p)
	h.note(base, doc)
	if base == len(h.list)-1 {
		h.remember(text, false)
		return text
	}
	merged := h.redone(text, p, base)
	h.remember(text, false)
	h.remember(merged, true)
	return merged
}

// redone returns a text based on the version with that index, with the changes since.
func (h *history) redone(text []byte, p *blocks, base int) []byte {
	from, err := todo.Parse(h.list[base].text)
	if err != nil {
		return text // it was one before
	}
	var all []step
	for _, v := range h.list[base+1:] {
		all = append(all, v.steps...)
	}
	p.apply(cut(from), all)
	merged := p.text()
	if _, err := todo.Parse(merged); err != nil {
		return text
	}
	return merged
}

// renewed returns a text with the changes since its base. Unlike in [history.meet], a text equal to an earlier version is that version:
// its sender has not read the later ones.
func (h *history) renewed(text []byte) []byte {
	doc, err := todo.Parse(text)
	if err != nil || len(h.list) == 0 {
		return text
	}
	p := cut(doc)
	for i, v := range slices.Backward(h.list) {
		if v.sum == versionOf(text) {
			return h.redone(text, p, i)
		}
	}
	return h.redone(text, p, h.base(text, doc, p))
}

// note records a foreign change of the version with that index. A blank text does not count: it may be an editor's file during a save,
// and the next text is compared with the earlier one.
func (h *history) note(base int, to *todo.Doc) {
	if isBlank(to.Bytes()) {
		return
	}
	for base >= 0 && isBlank(h.list[base].text) {
		base--
	}
	if base < 0 {
		return
	}
	if from, err := todo.Parse(h.list[base].text); err == nil {
		h.foreign = append(h.foreign, Foreign{From: from, To: to})
	}
}

func isBlank(text []byte) bool { return len(bytes.TrimSpace(text)) == 0 }

// base returns the index of the version that a text is based on; -1 if none is known.
func (h *history) base(text []byte, doc *todo.Doc, p *blocks) int {
	last := len(h.list) - 1
	if last <= 0 || isBlank(text) || h.knows(versionOf(text)) {
		return last
	}
	lines := p.hashes()
	best, least := last, math.MaxInt
	first := h.slipped(doc)
	for i, v := range slices.Backward(h.list) {
		if i < first {
			break
		}
		if d := distance(lines, v.lines, least); d < least {
			best, least = i, d
		}
	}
	// If as many lines differ as there are, at most half of the base's lines are left: that is another plan.
	if least >= len(lines) {
		return last
	}
	return best
}

// slipped returns the index of the version since which a line was not read as an item that the text has again; 0 if there is none.
// Someone who corrected such a line has seen that version; otherwise the text would look based on an earlier one, and the wrong line
// would come back.
func (h *history) slipped(text *todo.Doc) (first int) {
	newest, err := todo.Parse(h.newest().text)
	if err != nil {
		return 0
	}
	for _, it := range text.Items() {
		if newest.Misread(it.ID) == 0 {
			continue
		}
		i := len(h.list) - 1
		for ; i > 0; i-- {
			if v, err := todo.Parse(h.list[i-1].text); err != nil || v.Misread(it.ID) == 0 {
				break
			}
		}
		first = max(first, i)
	}
	return first
}

// hashes returns the sorted hashes of a text's parts: its non-blank lines, and for an item its mark and the rest of its first line
// separately, because one may change without the other.
func (p *blocks) hashes() []uint64 {
	var out []uint64
	var h maphash.Hash
	h.SetSeed(seed)
	add := func(parts ...string) {
		h.Reset()
		for _, s := range parts {
			h.WriteString(s)
			h.WriteByte('\n')
		}
		out = append(out, h.Sum64())
	}
	for _, b := range p.list {
		add(b.rest())
		if b.item {
			add(b.key, b.mark())
		}
		for _, line := range b.lines {
			add(b.key, "", strings.TrimSpace(line))
		}
	}
	slices.Sort(out)
	return out
}

// distance returns how many lines are in only one of two texts, counting up to limit.
func distance(a, b []uint64, limit int) int {
	i, j, n := 0, 0, 0
	for i < len(a) && j < len(b) && n < limit {
		switch {
		case a[i] == b[j]:
			i, j = i+1, j+1
		case a[i] < b[j]:
			i, n = i+1, n+1
		default:
			j, n = j+1, n+1
		}
	}
	return n + len(a) - i + len(b) - j
}

// partial reports whether a text looks unfinished: shorter than the previous one, and cut off within a line, or at the end of a line
// that others follow in every version that has it.
func (h *history) partial(text []byte) bool {
	last := h.newest()
	if last == nil || len(text) >= len(last.text) || len(text) == 0 {
		return false
	}
	if !bytes.HasSuffix(text, []byte("\n")) && bytes.HasSuffix(last.text, []byte("\n")) {
		return true
	}
	if len(text) < len(last.text)*3/4 {
		return true
	}
	end := text[max(0, bytes.LastIndexByte(text[:len(text)-1], '\n')):]
	return slices.ContainsFunc(h.list, func(v version) bool { return len(v.text) > len(text) && bytes.HasPrefix(v.text, text) }) ||
		slices.ContainsFunc(h.list, func(v version) bool { return bytes.Contains(v.text, end) }) &&
			!slices.ContainsFunc(h.list, func(v version) bool { return bytes.HasSuffix(v.text, end) })
}
