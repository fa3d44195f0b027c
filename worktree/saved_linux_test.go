package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion"
)

// saved is what is kept of a branch's checkout, "" for nothing.
func (x *rig) saved(branch string) string {
	x.t.Helper()
	return strings.TrimSpace(x.person("for-each-ref", "--format=%(objectname)", savedRef(branch)))
}

// saves saves a checkout's work, and returns the changed files.
func (x *rig) saves(c *Checkout) string {
	x.t.Helper()
	changed, err := c.Save(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	slices.Sort(changed)
	return strings.Join(changed, " ")
}

// What was not committed outlives the directory of an overlay.
func TestSavedWorkOutlivesItsDirectory(t *testing.T) {
	for _, lostBy := range []string{"the next host", "the host itself"} {
		t.Run(lostBy, func(t *testing.T) {
			x := layeredRig(t, map[string]string{"a.txt": "a\n", "dir/b.txt": "b\n", "c.txt": "c\n"})
			ctx := t.Context()
			c := x.takeHead("work")
			x.sh(c, "echo first >> a.txt")
			if _, err := c.Commit(ctx, "first"); err != nil {
				t.Fatal(err)
			}
			x.sh(c, "echo more >> a.txt; rm dir/b.txt; echo new > 'ü n.txt'")
			if got := x.saves(c); got != "a.txt dir/b.txt ü n.txt" {
				t.Errorf("changed: %q", got)
			}
			at := c.Where()
			if err := c.Still(); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Dir(c.dir)); err != nil {
				t.Fatal(err)
			}
			if lostBy == "the host itself" {
				if kept, err := c.Release(ctx, ""); err != nil || kept != "work" {
					t.Errorf("released: %q, %v", kept, err)
				}
			} else {
				x.reopenLayered()
				if _, err := x.Reopen(ctx, at); centurion.KindOf(err) != centurion.KindNotFound || !strings.Contains(centurion.HintOf(err), "work") {
					t.Errorf("reopened: %v", err)
				}
			}
			if got, want := x.person("show", "work:a.txt"), "a\nfirst\nmore"; got != want {
				t.Errorf("a.txt is %q, not %q", got, want)
			}
			if got := x.person("-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", "work"); got != "a.txt\nc.txt\nü n.txt" {
				t.Errorf("the branch has %q", got)
			}
			if got := x.person("rev-parse", "work^"); got != x.person("rev-parse", "HEAD") {
				t.Errorf("it stands on %q", got)
			}
			if got := x.saved("work"); got != "" {
				t.Errorf("still saved: %s", got)
			}
		})
	}
}

// What is saved is what is in no commit: nothing else is left in the person's repository.
func TestSavedUntilCommitted(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n"})
	ctx := t.Context()
	c := x.takeHead("work")
	steps := []struct {
		what  string
		do    func()
		files string
		kept  bool
	}{
		{"nothing changed", func() {}, "", false},
		{"a change", func() { x.sh(c, "echo b > a.txt") }, "a.txt", true},
		{"undone", func() { x.sh(c, "echo a > a.txt") }, "", false},
		{"changed again", func() { x.sh(c, "echo b > a.txt") }, "a.txt", true},
		{"committed", func() {
			if _, err := c.Commit(ctx, "b"); err != nil {
				t.Fatal(err)
			}
			if got := x.saved("work"); got != "" {
				t.Errorf("saved beside its commit: %s", got)
			}
		}, "", false},
		{"laid again", func() {
			tree := strings.TrimSpace(x.person("rev-parse", "work^{tree}"))
			if err := c.Lay(ctx, tree, x.person("rev-parse", "HEAD")); err != nil {
				t.Fatal(err)
			}
		}, "a.txt", true},
		{"released", func() {
			if _, err := c.Release(ctx, ""); err != nil {
				t.Fatal(err)
			}
		}, "", false},
	}
	for _, s := range steps {
		s.do()
		if s.what != "released" {
			if got := x.saves(c); got != s.files {
				t.Errorf("%s: changed %q, not %q", s.what, got, s.files)
			}
		}
		if got := x.saved("work") != ""; got != s.kept {
			t.Errorf("%s: saved %v, not %v", s.what, got, s.kept)
		}
	}
}
