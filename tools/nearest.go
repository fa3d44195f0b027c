package tools

import (
	"fmt"
	"slices"
	"strings"

	"centurion"
)

// didYouMean returns `; did you mean "x"?`, or "" if no candidate is similar.
func didYouMean(given string, candidates []string) string {
	if near := nearest(given, candidates, 1); len(near) > 0 {
		return fmt.Sprintf("; did you mean %q?", near[0])
	}
	return ""
}

// nearest returns up to n candidates similar to given, most similar first: those with few different letters, then those that contain it
// or are contained in it.
func nearest(given string, candidates []string, n int) []string {
	candidates = slices.Clone(candidates)
	var out []string
	for len(out) < n {
		near := centurion.Nearest(given, candidates)
		if near == "" {
			break
		}
		out = append(out, near)
		candidates = slices.DeleteFunc(candidates, func(c string) bool { return c == near })
	}
	g := strings.ToLower(given)
	for _, c := range candidates {
		l := strings.ToLower(c)
		if len(out) < n && min(len(g), len(l)) >= 3 && (strings.Contains(l, g) || strings.Contains(g, l)) {
			out = append(out, c)
		}
	}
	return out
}
