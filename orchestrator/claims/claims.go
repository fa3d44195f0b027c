// Package claims is who may write which file: those who would write the same ones do not work at the same time.
//
// Who holds files has a name, which is the item of the plan that it works on, or its task's id where it has none ([Name]). It
// holds the patterns that the plan gives its item, from before it begins ([Registry.Take]), and what it writes beyond them
// ([Registry.Settle]), until it is done ([Registry.Drop]). Whether two lists of patterns can meet is decided by
// [Overlap] alone, without a look at any directory.
//
// The registry lives in memory and waits for nobody. Who was refused waits, and what was held when a process died is known,
// somewhere else ([Registry.Restore]).
package claims

import (
	"maps"
	"slices"
	"sync"

	"centurion"
)

// Registry knows who holds which files. The zero value is empty and ready. Its methods may be called from several goroutines.
type Registry struct {
	mu   sync.Mutex // protects held
	held map[string]claim
}

// claim is what somebody holds.
type claim struct {
	files []string // patterns, as the plan says them
	wider []string // paths beyond them that were written
	// landing says that its turn is over and its work waits to be merged. Nobody may write the files, but whose work has changed
	// them with a shell command waits in the same line, and the merge tells whether the two fit.
	landing bool
}

func (h claim) all() []string { return slices.Concat(h.files, h.wider) }

// takes reports whether a path belongs to the claim.
func (h claim) takes(p string) bool {
	return slices.ContainsFunc(h.files, func(f string) bool { return Matches(f, p) }) || slices.Contains(h.wider, p)
}

// Take claims files for an item, as patterns, or returns who else holds some of them; then nothing is claimed. An item
// without files claims nothing before it writes.
func (r *Registry) Take(item string, files []string) (holder string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.holds(item, files); other != "" {
		return other, false
	}
	r.put(item, claim{files: files, wider: r.held[item].wider})
	return "", true
}

// InTheWay returns who holds some of the files that an item is to write, or "": what Take would say now, without claiming them.
func (r *Registry) InTheWay(item string, files []string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holds(item, files)
}

// holds returns the first, by name, who holds some of the files beside the item itself; "" if nobody does. r.mu is held.
func (r *Registry) holds(item string, files []string) string {
	for _, other := range slices.Sorted(maps.Keys(r.held)) {
		if other != item && Overlap(files, r.held[other].all()) {
			return other
		}
	}
	return ""
}

// put sets what somebody holds. r.mu is held.
func (r *Registry) put(holder string, h claim) {
	if r.held == nil {
		r.held = map[string]claim{}
	}
	r.held[holder] = h
}

// Restore gives back what somebody held beyond its item's files before its process died.
func (r *Registry) Restore(holder string, wider []string) {
	if len(wider) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.held[holder]
	h.wider = slices.Clone(wider)
	r.put(holder, h)
}

// Held is a file that somebody holds.
type Held struct{ Path, Holder string }

func (h Held) String() string { return h.Path + " belongs to " + word(h.Holder) }

// Settle claims, beyond what the holder has, the files that it has written or is about to write. Those that somebody else
// holds are returned, and nothing is claimed then. "" is the Commander: it holds nothing.
// With landed the files are written already: those whose holder's own work is on its way to be merged are in nobody's way.
func (r *Registry) Settle(holder string, files []string, landed bool) (wider []string, conflicting []Held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.held[holder]
	for _, p := range files {
		other := r.holderOf(p, holder, landed)
		switch {
		case other != "":
			conflicting = append(conflicting, Held{p, other})
		case !own.takes(p) && !slices.Contains(wider, p):
			wider = append(wider, p)
		}
	}
	if len(conflicting) > 0 || len(wider) == 0 || holder == "" {
		return nil, conflicting
	}
	own.wider = append(slices.Clone(own.wider), wider...)
	r.put(holder, own)
	return wider, nil
}

// holderOf returns who holds a path, but for one holder; "" if nobody does. Those whose work is being merged may be left out.
// r.mu is held.
func (r *Registry) holderOf(p, but string, working bool) string {
	for _, other := range slices.Sorted(maps.Keys(r.held)) {
		if h := r.held[other]; other != but && !(working && h.landing) && h.takes(p) {
			return other
		}
	}
	return ""
}

// SetLanding says whether a holder's work is on its way to be merged.
func (r *Registry) SetLanding(holder string, landing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h, ok := r.held[holder]; ok {
		h.landing = landing
		r.held[holder] = h
	}
}

// Drop gives up everything that a holder has.
func (r *Registry) Drop(holder string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, holder)
}

// Of lists what a holder holds, patterns and paths.
func (r *Registry) Of(holder string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held[holder].all()
}

// Wider lists what a holder has written, or is about to, beyond its item's files.
func (r *Registry) Wider(holder string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.held[holder].wider)
}

// Others lists what everybody but a holder holds, by who holds it. "" leaves nobody out.
func (r *Registry) Others(holder string) map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string][]string{}
	for other, h := range r.held {
		if files := h.all(); other != holder && len(files) > 0 {
			out[other] = files
		}
	}
	return out
}

// Name is under which name a task holds files: its item's, or its own if it has none.
func Name(item, task string) string {
	if item != "" {
		return item
	}
	return task
}

// word is how a model is told of a holder.
func word(holder string) string {
	if centurion.CheckID(centurion.PrefixTask, holder) == nil {
		return "task " + holder
	}
	return "item " + holder
}
