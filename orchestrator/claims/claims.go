// Package claims records which agent has which files, so that items with the same files are not worked on at the same time.
//
// A holder is named after its item of the plan, or its task if there is none. It has the patterns of its item from before it begins
// ([Registry.Take]), and the files it writes beyond them ([Registry.Settle]), until it is done ([Registry.Drop]). [Overlap] alone
// decides whether two lists of patterns can meet, without looking at any directory.
//
// Where all agents share a directory, the files of a holder cannot be written by others. Where each has its own ([Registry.Apart]), the
// registry only records who writes what.
//
// The registry lives in memory and never blocks. Waiting after a refusal, and remembering claims across a crash ([Registry.Restore]),
// are the caller's task.
package claims

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"centurion"
)

// Registry knows the holder of each file. The zero value is ready to use. Its methods are safe for concurrent use.
type Registry struct {
	// Apart means that each holder writes in a directory of its own; then only the plan's files prevent concurrent work. Set it before
	// the first call.
	Apart bool

	mu    sync.Mutex // protects the fields below
	held  map[string]claim
	began int                 // number of holders so far
	words map[string][]string // pending notices, see [Registry.Words]
}

// claim is one holder's files.
type claim struct {
	files []string // patterns from the plan
	wider []string // other paths that it wrote
	ceded []string // paths given up to others
	wants []string // paths it was refused since its last write
	since int      // order of the claims: smaller is older
}

func (h claim) all() []string { return slices.Concat(h.files, h.wider) }

// takes reports whether a path belongs to the claim.
func (h claim) takes(p string) bool {
	return slices.Contains(h.wider, p) ||
		!slices.Contains(h.ceded, p) && slices.ContainsFunc(h.files, func(f string) bool { return Matches(f, p) })
}

// Take claims all files of an item, given as patterns. If others hold some of them it claims nothing and returns the holder. Holders in
// but do not count. An item without files claims nothing before its first write.
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

// InTheWay returns the holder that Take would return, without claiming anything; "" if there is none.
func (r *Registry) InTheWay(item string, files []string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holds(item, files, nil)
}

// holds returns the first holder, by name, of some of the files, other than the item itself; "" if there is none. r.mu is held.
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

// put sets a holder's claim. r.mu is held.
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

// Restore restores the files that a holder had beyond its item's before its process died.
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

// Held is a file with its holder.
type Held struct{ Path, Holder string }

func (h Held) String() string { return h.Path + " belongs to " + word(h.Holder) }

// Settle claims files that the holder has written or is about to write, in addition to those it has. If others hold some (except those
// in but), it returns them and claims nothing; with [Registry.Apart] it refuses nothing. The Commander, "", holds nothing.
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
	own.wants = nil // it is not waiting any more
	own.wider = slices.Concat(own.wider, wider)
	if len(own.all()) > 0 {
		r.put(holder, own)
	}
	return wider, nil
}

// holderOf returns the holder that blocks writes to a path, ignoring those in but; "" if there is none. r.mu is held.
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

// Shared lists, by the other holder, the files that a holder shares with it because at least one of them wrote them.
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

// Drop releases all files of a holder.
func (r *Registry) Drop(holder string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, holder)
	delete(r.words, holder)
}

// Of lists the patterns and paths of a holder.
func (r *Registry) Of(holder string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held[holder].all()
}

// Wider lists the paths of a holder beyond its item's files.
func (r *Registry) Wider(holder string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.held[holder].wider)
}

// Others lists the files of all holders but one, by holder. With "" it lists all.
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

// word is the name of a holder for a model: its item, or a task such as w7.
func word(holder string) string {
	if number, ok := strings.CutPrefix(holder, "w"); ok && strings.Trim(number, "0123456789") == "" || centurion.CheckID(centurion.PrefixTask, holder) == nil {
		return "task " + holder
	}
	return "item " + holder
}
