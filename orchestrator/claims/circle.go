package claims

import (
	"fmt"
	"slices"
)

// want records that a holder was refused a path.
type want struct{ holder, path string }

// want notes that a holder was refused a path. r.mu is held.
func (r *Registry) want(holder, path string) {
	if h, ok := r.held[holder]; ok && !slices.Contains(h.wants, path) { // no one waits for an agent without files
		h.wants = append(slices.Clone(h.wants), path)
		r.put(holder, h)
	}
}

// breakCircle resolves a deadlock of a holder that was refused a file and, through others, waits for itself. The holder in the circle
// that began last gives up the file, in its current state, that another one waits for; both are notified. r.mu is held.
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

// circle returns the chain of waits from at to to: each holder wants a file of the next one, and the last one a file of to. It is empty
// if there is no such chain. r.mu is held.
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

// Words returns, once, the notices for a holder about files that it gained or lost.
func (r *Registry) Words(holder string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	words := r.words[holder]
	delete(r.words, holder)
	return words
}
