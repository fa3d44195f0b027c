// Package claims is who has which files: those to whom the plan gives the same ones do not work at the same time.
//
// Who holds files has a name, which is the item of the plan that it works on, or its task's name where it has none. It
// has the patterns that the plan gives its item, from before it begins ([Registry.Take]), and what it writes beyond them
// ([Registry.Settle]), until it is done ([Registry.Drop]). Whether two lists of patterns can meet is decided by
// [Overlap] alone, without a look at any directory.
//
// Where all write in one directory nobody else may write what somebody has. Where each holder writes in a place of its own
// ([Registry.Apart]) the registry only knows who writes what.
//
// The registry lives in memory and waits for nobody. Who was refused waits, and what was held when a process died is known,
// somewhere else ([Registry.Restore]).
package claims

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"centurion"
)

// Registry knows who holds which files. The zero value is empty and ready. Its methods may be called from several goroutines.
type Registry struct {
	// Apart says that each holder writes in a place of its own: only the plan's files keep two from working at the same time then.
	// It is set before the first call.
	Apart bool

	mu    sync.Mutex // protects what follows
	held  map[string]claim
	began int                 // how many have held something
	words map[string][]string // what holders are to be told, see [Registry.Words]
}

// claim is what somebody holds.
type claim struct {
	files []string // patterns, as the plan says them
	wider []string // paths beyond them that were written
	ceded []string // paths of files that went to somebody else
	wants []string // paths that it was refused since it last wrote
	since int      // the smaller, the longer it holds something
}

func (h claim) all() []string { return slices.Concat(h.files, h.wider) }

// takes reports whether a path belongs to the claim.
func (h claim) takes(p string) bool {
	return slices.Contains(h.wider, p) ||
		!slices.Contains(h.ceded, p) && slices.ContainsFunc(h.files, func(f string) bool { return Matches(f, p) })
}

// Take claims files for an item, as patterns, all of them, or returns who else holds some of them; then nothing is claimed. Those in
// but are in nobody's way. An item without files claims nothing before it writes.
func (r *Registry) Take(item string, files []string, but ...string) (holder string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.holds(item, files, but); other != "" {
		return other, false
	}
	h := r.held[item]
	h.files = files
	r.put(item, h)
	return "", true
}

// InTheWay returns who holds some of the files that an item is to write, or "": what Take would say now, without claiming them.
func (r *Registry) InTheWay(item string, files []string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holds(item, files, nil)
}

// holds returns the first, by name, who holds some of the files beside the item itself; "" if nobody does. r.mu is held.
func (r *Registry) holds(item string, files, but []string) string {
	for _, other := range slices.Sorted(maps.Keys(r.held)) {
		has := r.held[other].files
		if !r.Apart {
			has = r.held[other].all()
		}
		if other != item && !slices.Contains(but, other) && Overlap(files, has) {
			return other
		}
	}
	return ""
}

// put sets what somebody holds. r.mu is held.
func (r *Registry) put(holder string, h claim) {
	if r.held == nil {
		r.held, r.words = map[string]claim{}, map[string][]string{}
	}
	if _, again := r.held[holder]; !again {
		r.began++
		h.since = r.began
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
// holds, but for those in but, are returned, and nothing is claimed then; [Registry.Apart] nobody is refused. "" is the
// Commander: it holds nothing.
func (r *Registry) Settle(holder string, files []string, but ...string) (wider []string, conflicting []Held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range files {
		other := r.holderOf(p, holder, but)
		if other != "" && holder != "" {
			r.want(holder, p)
			r.breakCircle(holder)
			other = r.holderOf(p, holder, but)
		}
		switch own := r.held[holder]; {
		case other != "":
			conflicting = append(conflicting, Held{p, other})
		case !own.takes(p) && !slices.Contains(wider, p):
			wider = append(wider, p)
		}
	}
	if len(conflicting) > 0 || holder == "" {
		return nil, conflicting
	}
	own := r.held[holder]
	own.wants = nil // it goes on
	own.wider = slices.Concat(own.wider, wider)
	if len(own.all()) > 0 {
		r.put(holder, own)
	}
	return wider, nil
}

// holderOf returns who keeps others from writing a path, but for some; "" if nobody does. r.mu is held.
func (r *Registry) holderOf(p, holder string, but []string) string {
	if r.Apart {
		return ""
	}
	for _, other := range slices.Sorted(maps.Keys(r.held)) {
		if other != holder && !slices.Contains(but, other) && r.held[other].takes(p) {
			return other
		}
	}
	return ""
}

// Shared lists the files that a holder has and that somebody else has as well, at least one of the two because it wrote them,
// by who that is.
func (r *Registry) Shared(holder string) map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	own, out := r.held[holder], map[string][]string{}
	for other, h := range r.held {
		if other == holder {
			continue
		}
		for _, p := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(own.wider, h.wider)))) {
			if own.takes(p) && h.takes(p) {
				out[other] = append(out[other], p)
			}
		}
	}
	return out
}

// Drop gives up everything that a holder has.
func (r *Registry) Drop(holder string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, holder)
	delete(r.words, holder)
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

// word is how a model is told of a holder, which is a task's name: that of its item, or w7.
func word(holder string) string {
	if number, ok := strings.CutPrefix(holder, "w"); ok && strings.Trim(number, "0123456789") == "" || centurion.CheckID(centurion.PrefixTask, holder) == nil {
		return "task " + holder
	}
	return "item " + holder
}
