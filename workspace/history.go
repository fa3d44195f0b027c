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
	// maxVersions and maxRemembered, in bytes, bound what is remembered of a plan in memory. With fifty workers that each
	// edit it twice a minute 1024 versions are ten minutes; a save that is based on an older one is taken for a change of the
	// oldest that is left.
	maxVersions   = 1024
	maxRemembered = 8 << 20
)

// history is the versions of a plan that this process met on disk or wrote, oldest first, and what led from each to the
// next. A person's editor saves a text that it may have read a while ago: history finds out which version that was, and
// does what was written since then to the person's text as well.
//
// The rule: the base of an unknown text is the remembered version that differs from it in the fewest lines, the newest
// of equals. What changed since that version is done again to the new text, by id; where both changed the same mark,
// title or attribute, the new text stays as it is, and what it lacks and the base had stays away. If the base is the
// newest version, or the text is exactly one that was there before, then somebody meant what they wrote, and nothing is
// done again; nor if the text has no more than half of the base's lines, because it is another plan then.
//
// It takes a whole history: who lacks some versions takes a wrong one for the base, and what comes of that misleads those
// who lack none. Processes that edit one plan therefore share a memory; see [Workspace.Remember].
//
// Only a version in which a line was not read as an item can be the base of a text in which it is one again.
//
// The rule has one ambiguity. Who reads the newest version, takes back by hand exactly what was written last, and
// changes something else in the same save, has written the same bytes as somebody who never saw what was written last:
// it comes back. Taking it back alone is understood. In the same way an item with the id of one that an agent added
// meanwhile, and nothing else did, is taken for that one with another title.
type history struct {
	list  []version
	bytes int
	cut   *blocks // of the newest
	n     uint64  // number of the newest, the same in all processes that share a memory

	foreign []Foreign // met and not yet given to the file
}

type version struct {
	n     uint64 // 1 is the first; 0 if it is not in the memory
	own   bool   // see steps
	sum   string
	text  []byte
	lines []uint64 // hashes of its lines; see blocks.hashes
	steps []step   // from the version before
}

var seed = maphash.MakeSeed()

// newest returns the version that was on disk last; nil if none is known.
func (h *history) newest() *version {
	if len(h.list) == 0 {
		return nil
	}
	return &h.list[len(h.list)-1]
}

// isNewest reports whether a text is the one that was on disk last.
func (h *history) isNewest(text []byte) bool {
	last := h.newest()
	return last != nil && bytes.Equal(last.text, text)
}

func (h *history) knows(sum string) bool {
	return slices.ContainsFunc(h.list, func(v version) bool { return v.sum == sum })
}

// clone returns a copy that can be added to without changing what h holds. Of several only one may be kept: they share
// the room behind the newest version.
func (h *history) clone() *history {
	c := *h
	return &c
}

// remember adds the text that is on disk now. A nil text is a missing file. It reports false for what is no plan, which
// is not remembered. See steps for own.
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

// unnumber makes room for the numbers of somebody else.
func (h *history) unnumber() {
	h.n = 0
	for i := range h.list {
		h.list[i].n = 0
	}
}

// meet takes in a text that somebody else wrote and returns what the plan should be now: the text itself, or that and
// what it lacks. Both are remembered.
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

// redone returns a text that was made from the version with that index, with what was written since then.
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

// renewed returns a text with what was written since the version that it was made from. Unlike in [history.meet] a text that was there before is
// that version: who sends it has not read what came since.
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

// note keeps what somebody else has made of the version with that index. A text without a word is none: it may be the file of an editor that
// is at work on it, and what comes next is compared with what was there before.
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

// base returns the index of the version that a text was made from; -1 if none is known.
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
	// No more than half of the base's lines are left if as many lines differ as there are: that is another plan.
	if least >= len(lines) {
		return last
	}
	return best
}

// slipped returns the index of the version since which a line was not read as an item that the text has again. Who has put such a line
// right has seen it: without that it would look as if it had been made from what was there before, and the wrong line would come back. It
// is 0 if there is none.
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

// hashes returns the hashes of what a text consists of, sorted: its lines that are not blank, and of an item its mark
// and the rest of its first line, because one may change without the other.
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

// distance returns how many lines stand in one of two texts only, and stops counting at limit.
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

// partial reports whether a text looks as if its writer had not come to its end: shorter than what was there, and cut
// off in a line, or at the end of a line that is followed by many others in the newest version.
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
	return slices.ContainsFunc(h.list, func(v version) bool { return len(v.text) > len(text) && bytes.HasPrefix(v.text, text) })
}
