package workspace_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"centurion/workspace"
)

// Issue "What real use showed", B.11: a listing names what fits, and says of the rest only how much there is, the same in whatever order the names come.
func TestListing(t *testing.T) {
	many := func(dir string, n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("%sf%05d.go", dir, i))
		}
		return out
	}
	for name, test := range map[string]struct {
		files []string
		limit int
		want  string
	}{
		"nothing":          {nil, 500, ""},
		"all fits":         {[]string{"b/y.go", "a.go", "b/c/z.go", "b/x.go"}, 500, "a.go\nb/: x.go y.go\nb/c/z.go"},
		"a large one":      {append(many("internal/foo/", 37), "go.mod", "internal/bar/bar.go"), 200, "go.mod\ninternal/bar/bar.go\ninternal/foo/ (37 files)"},
		"large with below": {append(many("lib/", 300), "lib/sub/one.go"), 120, "lib/* (300 files)\nlib/sub/one.go"},
		"flat":             {many("", 20_000), 200, "./ (20000 files)"},
		"flat beside":      {append(many("", 300), "cmd/main.go"), 120, "* (300 files)\ncmd/main.go"},
		"one file":         {append(many("a/", 1), many("b/", 99)...), 60, "a/f00000.go\nb/ (99 files)"},
		"high before deep": {slices.Concat(many("a/b/c/", 3), many("z/", 9)), 130,
			"a/b/c/ (3 files)\nz/: f00000.go f00001.go f00002.go f00003.go f00004.go f00005.go f00006.go f00007.go f00008.go"},
		"chain":         {many("src/main/java/com/", 99), 60, "src/main/java/com/ (99 files)"},
		"odd names":     {[]string{"a b", "c\n<x>", "d`\"", "\xff", "e\u202e/ü.go", "ü"}, 500, `"a b" "c\n\x3cx\x3e" "d\x60\"" ü "\xff"` + "\n" + `"e\u202e/\u00fc.go"`},
		"nothing fits":  {many("a/", 9), 5, ""},
		"just the line": {many("a/", 9), len("./ (9 files)\n"), "a/ (9 files)"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 {
				rand.Shuffle(len(test.files), func(i, j int) { test.files[i], test.files[j] = test.files[j], test.files[i] })
				if got := workspace.Listing(test.files, test.limit); got != test.want || len(got) > test.limit {
					t.Errorf("%d bytes of %d\n got %q\nwant %q", len(got), test.limit, got, test.want)
				}
			}
		})
	}
}

// A listing never exceeds its limit and accounts for every file: by name, or in a number.
func TestListingAccountsForAll(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var files []string
		for range r.IntN(400) {
			dirs := make([]string, r.IntN(5))
			for i := range dirs {
				dirs[i] = fmt.Sprintf("d%d", r.IntN(4))
			}
			files = append(files, strings.Join(append(dirs, fmt.Sprintf("f%d", r.IntN(1e6))), "/"))
		}
		limit := 20 + r.IntN(3000)
		got, n := workspace.Listing(files, limit), 0
		if len(got) > limit {
			t.Fatalf("%d bytes of %d", len(got), limit)
		}
		for line := range strings.SplitSeq(got, "\n") {
			var dir string
			var k int
			if _, err := fmt.Sscanf(line, "%s (%d file", &dir, &k); err == nil {
				n += k
				continue
			}
			if i := strings.Index(line, ": "); i >= 0 {
				line = line[i+2:]
			}
			n += len(strings.Fields(line))
		}
		if n != len(files) {
			t.Fatalf("%d of %d files are accounted for:\n%s", n, len(files), got)
		}
	}
}

// Without git the files are listed breadth first and not further than wanted: what stands high is there, ignored files and our own are not.
func TestFiles(t *testing.T) {
	files := map[string]string{".gitignore": "out\n*.log\n", "z.go": "", "out/x": "", ".opencode/todo.md": "", "a/.gitignore": "*.tmp\n", "a/b/c/deep.go": "", "a/x.tmp": "", "a/y.log": "", "a/z.go": "", ".github/ci.yml": ""}
	w := open(t, files)
	for max, want := range map[int]string{100: ".gitignore z.go .github/ci.yml a/.gitignore a/z.go a/b/c/deep.go", 3: ".gitignore z.go .github/ci.yml"} {
		got, whole, err := w.Files(t.Context(), max)
		if err != nil || strings.Join(got, " ") != want || whole != (max == 100) {
			t.Errorf("%d: %v, %v, %v; want %s", max, got, whole, err, want)
		}
	}
}

func BenchmarkFiles(b *testing.B) {
	files := map[string]string{}
	for i := range 20_000 {
		files[fmt.Sprintf("a%d/b%d/c%d/f%d.go", i%7, i%31, i%5, i)] = ""
	}
	w := open(b, files)
	for b.Loop() {
		got, _, err := w.Files(b.Context(), 20_000)
		if err != nil || len(workspace.Listing(got, 2048)) > 2048 {
			b.Fatal(err)
		}
	}
}
