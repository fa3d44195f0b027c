package claims

import (
	"fmt"
	"slices"
)

// want is that somebody was refused a path.
type want struct{ holder, path string }

// want notes that a holder was refused a path. r.mu is held.
func (r *Registry) want(holder, path string) {
	if h, ok := r.held[holder]; ok && !slices.Contains(h.wants, path) { // who holds nothing is waited for by nobody
		h.wants = append(slices.Clone(h.wants), path)
		r.put(holder, h)
	}
}

// breakCircle looks whether a holder who was refused a file waits, over others, for itself. If so, whoever of them began last gives up
// the file that one of the others waits for, as it left it, and both are told. r.mu is held.
func (r *Registry) breakCircle(holder string) {
	circle := r.circle(holder, holder, map[string]bool{})
	if len(circle) == 0 {
		return
	}
	last := 0
	for i, w := range circle {
		if r.held[w.holder].since > r.held[circle[last].holder].since {
			last = i
		}
	}
	young, next := circle[last], circle[(last+1)%len(circle)].holder
	gets := circle[(last+len(circle)-1)%len(circle)]
	from, to := r.held[young.holder], r.held[gets.holder]
	from.wants = nil
	from.ceded = append(slices.Clone(from.ceded), gets.path)
	from.wider = slices.DeleteFunc(slices.Clone(from.wider), func(p string) bool { return p == gets.path })
	to.wants = slices.DeleteFunc(slices.Clone(to.wants), func(p string) bool { return p == gets.path })
	to.wider = append(slices.Clone(to.wider), gets.path)
	r.put(young.holder, from)
	r.put(gets.holder, to)
	r.words[young.holder] = append(r.words[young.holder], fmt.Sprintf("You need %s, which belongs to %s, while %s needs %s, which was yours: both would wait for ever. "+
		"You began later, so %s now belongs to %s, with what you have written there. Leave both files alone, finish with what you have, and say in your result what is still missing.",
		young.path, word(next), word(gets.holder), gets.path, gets.path, word(gets.holder)))
	r.words[gets.holder] = append(r.words[gets.holder], fmt.Sprintf("%s is yours now: %s has handed it over because each of you waited for the other. "+
		"It may be half done: read it before you change it.", gets.path, word(young.holder)))
}

// circle returns who waits for whom from at on, until somebody waits for to: each wants a file that the next one holds, and the last one
// wants one of to's. It is empty if nobody does. r.mu is held.
func (r *Registry) circle(to, at string, seen map[string]bool) []want {
	for _, p := range r.held[at].wants {
		next := r.holderOf(p, at, nil)
		if next == to {
			return []want{{at, p}}
		}
		if next == "" || seen[next] {
			continue
		}
		seen[next] = true
		if rest := r.circle(to, next, seen); len(rest) > 0 {
			return append([]want{{at, p}}, rest...)
		}
	}
	return nil
}

// Words returns, once, what a holder is to be told of files that went to it or were taken from it.
func (r *Registry) Words(holder string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	words := r.words[holder]
	delete(r.words, holder)
	return words
}
