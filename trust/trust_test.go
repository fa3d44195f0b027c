package trust

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"centurion"
)

// S4: trust holds for one name and one content, survives in a file that only its owner reads, and ends with a revocation.
func TestBook(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	open := func() *Book {
		t.Helper()
		b, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	f := File{Name: "opencode.json", Sum: Sum("a"), Items: []Item{{1, Permission, "x"}, {2, Verify, "gone"}}}
	if err := open().Trust(f); err != nil {
		t.Fatal(err)
	}
	b := open()
	for _, c := range []struct {
		name, content string
		want          bool
	}{{"opencode.json", "a", true}, {"opencode.json", "b", false}, {"other.json", "a", false}} {
		if got := b.Trusts(c.name, Sum(c.content)); got != c.want {
			t.Errorf("%s with %q is trusted: %v", c.name, c.content, got)
		}
	}
	if !b.Holds(Sum("a")) || b.Holds(Sum("b")) {
		t.Error("content counts under any name, and no other content does")
	}
	info, err := os.Stat(filepath.Join(dir, "trust.json"))
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	names, err := b.Revoke()
	if err != nil || strings.Join(names, " ") != "opencode.json" || open().Holds(Sum("a")) {
		t.Errorf("%v, %v", names, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "trust.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := Open(dir); centurion.KindOf(err) != centurion.KindConfig || b.Holds(Sum("a")) || centurion.HintOf(err) == "" {
		t.Errorf("a broken book: %v", err)
	}
}

// What changed since a person's yes is shown; a line number is no change.
func TestCompare(t *testing.T) {
	b, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state := func(content string, items ...Item) string {
		s := b.Compare(File{"f", Sum(content), items})
		out := s.Why()
		if s.Trusted {
			out = "trusted"
		}
		for _, i := range s.Items {
			out += "|" + i.Op + i.Text
		}
		return out
	}
	if got := state("a", Item{1, Verify, "x"}); got != "came with the project and is not trusted|+x" {
		t.Error(got)
	}
	if err := b.Trust(File{"f", Sum("a"), []Item{{1, Verify, "x"}, {2, Setup, "y"}}}); err != nil {
		t.Fatal(err)
	}
	if got := state("a"); got != "trusted|=x|=y" {
		t.Error(got)
	}
	if got := state("b", Item{7, Verify, "x"}, Item{8, Verify, "y"}); got != "has changed since you trusted it|=x|+y|-y" {
		t.Error(got)
	}
	long := b.Compare(File{"f", Sum("c"), []Item{{1, Verify, "x"}, {1, Verify, "2"}, {1, Verify, "3"}, {1, Verify, "4"}}})
	if got, want := long.Notice(), "f has changed since you trusted it; not in force: verify x, verify 2, verify 3, and 1 more (see: centurion trust)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCovers(t *testing.T) {
	for name, want := range map[string]bool{
		"opencode.json": true, "sub/opencode.jsonc": true, ".opencode/opencode.json": true, ".opencode/centurion.jsonc": true, "sub/.opencode/centurion.json": true,
		".opencode/agents/a.md": true, "sub/.opencode/command/team/own.md": true, "OpenCode.json": true,
		"centurion.jsonc": false, "agents/a.md": false, ".opencode/summary.md": false, ".opencode/agents/a.txt": false, "my-opencode.json": false,
	} {
		if Covers(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
