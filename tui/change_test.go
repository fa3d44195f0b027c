package tui

import (
	"strings"
	"testing"

	"centurion"
)

// Nothing that a file is called, or that stands in it, moves the cursor of the terminal.
func TestStatAndPatch(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	err := Stat(&b, []centurion.FileChange{{Path: "a.go", Status: "modified", Added: 2, Deleted: 1}, {Path: "neu\x1b[2J.go", Old: "alt.go", Status: "renamed"},
		{Path: "x.png", Status: "added", Binary: true}}, ShowOptions{})
	want := " M a.go"
	if err != nil || !strings.HasPrefix(b.String(), want) || strings.Contains(b.String(), "\x1b") || !strings.Contains(b.String(), "alt.go → neu") ||
		!strings.HasSuffix(b.String(), " 3 files changed, +2 −1\n") || !strings.Contains(b.String(), "binary") {
		t.Errorf("%v: %q", err, b.String())
	}
	b.Reset()
	if err := Patch(&b, "diff --git a/x b/x\n@@ -1 +1 @@\n-\told\n+\x1b[2Jnew\n", ShowOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.Contains(got, "\x1b") || !strings.Contains(got, "-    old\n") {
		t.Errorf("%q", got)
	}
	b.Reset()
	if err := Patch(&b, "diff --git a/x b/x\n--- a/x\n@@ -1 +1 @@\n--- a list\n+new\n", ShowOptions{Color: true}); err != nil {
		t.Fatal(err)
	}
	if red := (theme{true}).paint(bad, "--- a list"); !strings.Contains(b.String(), red) {
		t.Errorf("a removed line that begins with dashes is no header: %q", b.String())
	}
}
