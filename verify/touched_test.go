package verify

import (
	"slices"
	"testing"

	"centurion"
)

// A hunk that only deletes touches the line behind what it took away: git names the line before it.
func TestTouchedByADeletion(t *testing.T) {
	for _, test := range []struct {
		name           string
		hunk           centurion.Hunk
		added, removed []int
	}{
		{"only deleted", centurion.Hunk{NewStart: 4, Text: "-five\n-six\n"}, nil, []int{5, 5}},
		{"deleted at the start", centurion.Hunk{Text: "-one\n"}, nil, []int{1}},
		{"changed", centurion.Hunk{NewStart: 4, NewLines: 1, Text: "-four\n+Four\n"}, []int{4}, []int{4}},
	} {
		got := touchedBy(test.hunk)
		if !slices.Equal(got.added, test.added) || !slices.Equal(got.removed, test.removed) {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}
