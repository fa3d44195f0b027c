package orchestrator

import (
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"
)

// claims keeps those who may write the same files from working at the same time. Who holds files is an item of the plan,
// or a task that has none.
type claims struct {
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
	return slices.ContainsFunc(h.files, func(f string) bool { return claimed(f, p) }) || slices.Contains(h.wider, p)
}

// take claims the files for an item, or returns who holds some of them. An item without files claims nothing before it
// writes.
func (c *claims) take(item string, files []string) (holder string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.holds(item, files); other != "" {
		return other, false
	}
	c.put(item, claim{files: files, wider: c.held[item].wider})
	return "", true
}

// inTheWay returns who holds some of the files that an item is to write, or "": what take would say now, without claiming them.
func (c *claims) inTheWay(item string, files []string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holds(item, files)
}

// holds returns the first, by name, who holds some of the files beside the item itself; "" if nobody does. c.mu is held.
func (c *claims) holds(item string, files []string) string {
	for _, other := range slices.Sorted(maps.Keys(c.held)) {
		if other != item && overlap(files, c.held[other].all()) {
			return other
		}
	}
	return ""
}

// put sets what somebody holds. c.mu is held.
func (c *claims) put(holder string, h claim) {
	if c.held == nil {
		c.held = map[string]claim{}
	}
	c.held[holder] = h
}

// restore gives back what somebody held beyond its item's files before the host died.
func (c *claims) restore(holder string, wider []string) {
	if len(wider) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.held[holder]
	h.wider = slices.Clone(wider)
	c.put(holder, h)
}

// heldFile is a file that somebody else holds.
type heldFile struct{ path, holder string }

func (h heldFile) String() string { return h.path + " belongs to " + holderWord(h.holder) }

// settle claims, beyond what the holder has, the files that it has written or is about to write. Those that somebody else
// holds are returned, and nothing is claimed then. "" is the Commander: it holds nothing.
// With landed the files are written already: those whose holder's own work is on its way to be merged are in nobody's way.
func (c *claims) settle(holder string, files []string, landed bool) (wider []string, conflicting []heldFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.held[holder]
	for _, p := range files {
		other := c.holderOf(p, holder, landed)
		switch {
		case other != "":
			conflicting = append(conflicting, heldFile{p, other})
		case !own.takes(p) && !slices.Contains(wider, p):
			wider = append(wider, p)
		}
	}
	if len(conflicting) > 0 || len(wider) == 0 || holder == "" {
		return nil, conflicting
	}
	own.wider = append(slices.Clone(own.wider), wider...)
	c.put(holder, own)
	return wider, nil
}

// holderOf returns who holds a path, but for one holder; "" if nobody does. Those whose work is being merged may be left out.
// c.mu is held.
func (c *claims) holderOf(p, but string, working bool) string {
	for _, other := range slices.Sorted(maps.Keys(c.held)) {
		if h := c.held[other]; other != but && !(working && h.landing) && h.takes(p) {
			return other
		}
	}
	return ""
}

// claimed reports whether a pattern of a claim takes in a path; the name of a directory takes in everything below it.
func claimed(pattern, p string) bool {
	pattern = path.Clean(strings.ReplaceAll(pattern, `\`, "/"))
	match, err := doublestar.Match(pattern, p)
	return err == nil && match || pattern == p || strings.HasPrefix(p, pattern+"/")
}

// setLanding says whether a holder's work is on its way to be merged.
func (c *claims) setLanding(holder string, landing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h, ok := c.held[holder]; ok {
		h.landing = landing
		c.held[holder] = h
	}
}

func (c *claims) drop(holder string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, holder)
}

// of lists what a holder holds.
func (c *claims) of(holder string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[holder].all()
}

// others lists what all others hold, for what a worker is told.
func (c *claims) others(holder string) map[string][]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string][]string{}
	for other, h := range c.held {
		if files := h.all(); other != holder && len(files) > 0 {
			out[other] = files
		}
	}
	return out
}

// overlap reports whether some path could match a pattern of both lists. It may say yes without need (a*/x and b*/x are
// told apart, a/*x and a/*y are not), never no.
func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool {
		return slices.ContainsFunc(b, func(y string) bool { return within(fixed(x), fixed(y)) })
	})
}

// fixed returns a pattern's part before the first wildcard.
func fixed(pattern string) string {
	p := path.Clean(strings.ReplaceAll(pattern, `\`, "/"))
	if i := strings.IndexAny(p, "*?[{"); i >= 0 {
		return p[:i]
	}
	return p + "\x00" // a whole path: it is a prefix of nothing but itself and of what lies below it
}

// within reports whether one of two fixed parts can be the beginning of the other's paths.
func within(a, b string) bool {
	if a == "." || b == "." || a == ".\x00" || b == ".\x00" {
		return true
	}
	wholeA, wholeB := strings.HasSuffix(a, "\x00"), strings.HasSuffix(b, "\x00")
	a, b = strings.TrimSuffix(a, "\x00"), strings.TrimSuffix(b, "\x00")
	switch {
	case wholeA && wholeB:
		return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
	case wholeA:
		return strings.HasPrefix(a, b) || strings.HasPrefix(b, a+"/")
	case wholeB:
		return strings.HasPrefix(b, a) || strings.HasPrefix(a, b+"/")
	}
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}
