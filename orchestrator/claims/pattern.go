package claims

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Matches reports whether a pattern of a claim matches a path. The name of a directory matches everything below it.
func Matches(pattern, p string) bool {
	pattern = path.Clean(strings.ReplaceAll(pattern, `\`, "/"))
	match, err := doublestar.Match(pattern, p)
	return err == nil && match || pattern == p || strings.HasPrefix(p, pattern+"/")
}

// Overlap reports whether some path could match a pattern of both lists. It may report a false overlap (a/*x and a/*y; but a*/x and
// b*/x are told apart), and never misses one.
func Overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool {
		return slices.ContainsFunc(b, func(y string) bool { return within(fixed(x), fixed(y)) })
	})
}

// Common returns the overlap of two lists of patterns: the narrower pattern of the first overlapping pair, or "".
func Common(a, b []string) string {
	for _, x := range a {
		for _, y := range b {
			if Overlap([]string{x}, []string{y}) {
				if len(fixed(y)) > len(fixed(x)) {
					return y
				}
				return x
			}
		}
	}
	return ""
}

// fixed returns a pattern's part before the first wildcard.
func fixed(pattern string) string {
	p := path.Clean(strings.ReplaceAll(pattern, `\`, "/"))
	if i := strings.IndexAny(p, "*?[{"); i >= 0 {
		return p[:i]
	}
	return p + "\x00" // a whole path: a prefix only of itself and of paths below it
}

// within reports whether one fixed part can be a prefix of the other's paths.
func within(a, b string) bool {
	if a == ".\x00" || b == ".\x00" {
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
