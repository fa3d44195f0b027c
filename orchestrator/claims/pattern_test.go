package claims

import (
	"testing"

	"pgregory.net/rapid"
)

func TestOverlap(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		a, b   string
		want   bool
		common string // of both, "" if they do not overlap
	}{
		{"a.go", "a.go", true, "a.go"},
		{"a.go", "b.go", false, ""},
		{"a", "a/b.go", true, "a/b.go"},
		{"a", "ab", false, ""},
		{"a/**", "a/b/*.go", true, "a/b/*.go"},
		{"a*/x", "b*/x", false, ""},
		{"a/*x", "a/*y", true, "a/*x"}, // without need
		{"**", "z/y", true, "z/y"},
		{".", "z/y", true, "z/y"},
		{".*", "z/y", false, ""},
		{"a", "ab*", false, ""},
		{"a", "a/b*", true, "a/b*"},
		{"./a/", `a\b`, true, `a\b`},
		{"src/{a,b}.go", "src/a.go", true, "src/a.go"},
		{"src/[ab].go", "src/a.go", true, "src/a.go"},
		{"src/a?.go", "src/ab.go", true, "src/ab.go"},
		{"{a,b}/x", "b/x", true, "b/x"},
	} {
		for _, pair := range [][2]string{{test.a, test.b}, {test.b, test.a}} {
			if got := Overlap(pair[:1], pair[1:]); got != test.want {
				t.Errorf("%q and %q overlap: %v", pair[0], pair[1], got)
			}
		}
		if got := Common([]string{test.a}, []string{test.b}); got != test.common {
			t.Errorf("%q and %q have %q in common, want %q", test.a, test.b, got, test.common)
		}
	}
	if Overlap(nil, []string{"**"}) {
		t.Error("nothing overlaps with nothing")
	}
}

// What a claim takes in: what its pattern matches, a file of that very name, and everything below a directory.
func TestMatches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, path string
		want          bool
	}{
		{"a", "a", true}, {"a", "a/b/c", true}, {"a", "ab", false}, {"./a/", "a/b", true}, {`a\b`, "a/b", true}, {"a/*.go", "a/x.go", true},
		{"a/*.go", "a/b/x.go", false}, {"a/**", "a/b/x.go", true}, {"[x", "[x", true}, {"[x", "x", false}, {"a/*", "a/b/c", false},
	} {
		if got := Matches(test.pattern, test.path); got != test.want {
			t.Errorf("%q takes in %q: %v", test.pattern, test.path, got)
		}
	}
}

// Two patterns that take in the same path always overlap: else two would write one file.
func TestOverlapIsNeverMissed(t *testing.T) {
	t.Parallel()
	pattern := rapid.StringMatching(`(\./)?(a|b|\*|\*\*|\?|\{a,b\}|[ab]\*|\[ab\])(/(a|b|\*|\*\*|\?|\{a,b\}|[ab]\*|\[ab\])){0,3}/?`)
	rapid.Check(t, func(t *rapid.T) {
		x, y := pattern.Draw(t, "x"), pattern.Draw(t, "y")
		p := rapid.StringMatching(`[ab]{1,2}(/[ab]{1,2}){0,3}`).Draw(t, "path")
		if Matches(x, p) && Matches(y, p) && !Overlap([]string{x}, []string{y}) {
			t.Fatalf("%q and %q both take in %q", x, y, p)
		}
	})
}
