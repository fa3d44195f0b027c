package verify

import (
	"slices"
	"strings"

	"centurion"
)

// touched is the lines of a new file that a change has touched.
type touched struct {
	added   []int // new or changed lines, from 1
	removed []int // lines were removed between this one and the previous one
}

// touchedBy reads which lines a hunk touches.
func touchedBy(hunks ...centurion.Hunk) touched {
	var t touched
	for _, h := range hunks {
		at := h.NewStart
		if h.NewLines == 0 {
			at++ // git names the previous line if nothing is left
		}
		for l := range strings.Lines(h.Text) {
			switch l[0] {
			case '+':
				t.added = append(t.added, at)
				at++
			case '-':
				t.removed = append(t.removed, at)
			case '\\':
			default:
				at++
			}
		}
	}
	return t
}

// in reports whether one of the lines from first to last was touched.
func (t touched) in(first, last int) bool {
	return slices.ContainsFunc(t.added, func(n int) bool { return first <= n && n <= last }) ||
		slices.ContainsFunc(t.removed, func(n int) bool { return first < n && n <= last })
}

// outside reports whether anything outside of a range was touched. Blank lines next to the range do not count.
func (t touched) outside(in lines) bool {
	return slices.ContainsFunc(t.added, func(n int) bool { return n < in.first-1 || n > in.last }) ||
		slices.ContainsFunc(t.removed, func(n int) bool { return n < in.first || n > in.last+1 })
}
