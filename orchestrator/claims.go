package orchestrator

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"centurion"
)

// claims keeps items that may write the same files from running at the same time.
type claims struct {
	mu   sync.Mutex // protects held
	held map[string][]string
}

// take claims the files for an item, or returns the item that holds some of them. An item without files claims nothing.
func (c *claims) take(item string, files []string) (holder string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		c.held = map[string][]string{}
	}
	for other, theirs := range c.held {
		if other != item && overlap(files, theirs) {
			return other, false
		}
	}
	c.held[item] = files
	return "", true
}

// check refuses to write a file that another item has claimed. The error names the item, so that the model knows whom it
// is in the way of.
func (c *claims) check(item string, paths []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, files := range c.held {
		for _, p := range paths {
			if other != item && slices.ContainsFunc(files, func(f string) bool { return claimed(f, p) }) {
				return &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("%s belongs to item %s, which somebody else is working on", p, other),
					Hint: "leave it alone; if your work needs a change there, say so in your result"}
			}
		}
	}
	return nil
}

// claimed reports whether a pattern of a claim takes in a path; the name of a directory takes in everything below it.
func claimed(pattern, p string) bool {
	pattern = path.Clean(strings.ReplaceAll(pattern, `\`, "/"))
	match, err := doublestar.Match(pattern, p)
	return err == nil && match || pattern == p || strings.HasPrefix(p, pattern+"/")
}

func (c *claims) drop(item string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, item)
}

// others lists what the other items hold, for what a worker is told.
func (c *claims) others(item string) map[string][]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string][]string{}
	for other, files := range c.held {
		if other != item && len(files) > 0 {
			out[other] = slices.Clone(files)
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
