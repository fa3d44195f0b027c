package centurion

import (
	"strings"
	"unicode/utf8"
)

// Nearest returns the name most similar to s, ignoring case, or "" if none is similar enough for a suggestion: the edit distance must
// be at most a third of the longer word's letters, or 1, and at least one letter must be the same.
func Nearest(s string, names []string) string {
	best, bestDistance := "", -1
	low := strings.ToLower(s)
	for _, n := range names {
		d := editDistance(low, strings.ToLower(n))
		longer := max(utf8.RuneCountInString(s), utf8.RuneCountInString(n))
		if d <= max(1, longer/3) && d < max(1, longer) && (bestDistance < 0 || d < bestDistance) {
			best, bestDistance = n, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions, substitutions and swaps of adjacent letters that turn a into b.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, prev, cur := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range x {
		cur[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			cur[j+1] = min(prev[j]+cost, prev[j+1]+1, cur[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				cur[j+1] = min(cur[j+1], before[j-1]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(y)]
}
