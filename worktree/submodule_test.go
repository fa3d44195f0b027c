package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion"
)

// A submodule, with one inside, is there in a checkout without any network; what is changed inside is refused and kept.
func TestSubmodules(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	inner := newRigAt(t, filepath.Join(base, "inner"), "", map[string]string{"deep.txt": "deep\n"})
	lib := newRigAt(t, filepath.Join(base, "lib"), "", map[string]string{"lib.txt": "lib\n"})
	lib.person("submodule", "--quiet", "add", inner.top, "inner")
	lib.person("commit", "-qm", "inner")
	x := newRigAt(t, filepath.Join(base, "project"), "", map[string]string{"a": "1\n"})
	x.person("submodule", "--quiet", "add", lib.top, "vendor/lib ü")
	x.person("submodule", "--quiet", "update", "--init", "--recursive")
	x.person("submodule", "--quiet", "add", inner.top, "empty")
	x.person("commit", "-qm", "submodules")
	x.person("submodule", "--quiet", "deinit", "-f", "empty")
	// The places that they came from are gone.
	for _, r := range []*rig{inner, lib} {
		if err := os.Rename(r.top, r.top+" gone"); err != nil {
			t.Fatal(err)
		}
	}
	if b := x.snapshot(true); b.Commit != x.head() {
		t.Errorf("the snapshot of a clean tree: %+v", b)
	}
	c := x.take("work/T1", x.head())
	dir := c.Where().Dir
	if get(t, filepath.Join(dir, "vendor/lib ü/lib.txt")) != "lib\n" || get(t, filepath.Join(dir, "vendor/lib ü/inner/deep.txt")) != "deep\n" {
		t.Error("the submodule is not there")
	}
	if got := gitIn(t, dir, "status", "--porcelain"); got != "" {
		t.Errorf("status %q", got)
	}
	put(t, filepath.Join(dir, "b"), "2\n")
	if got := changed(commit(t, c)); !slices.Equal(got, []string{"added b"}) {
		t.Errorf("changed %q", got)
	}
	put(t, filepath.Join(dir, "vendor/lib ü/new.txt"), "inside\n")
	_, err := c.Commit(t.Context(), "work")
	if centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(err.Error(), "vendor/lib ü") || centurion.HintOf(err) == "" {
		t.Errorf("a change inside: %v", err)
	}
	module := filepath.Join(x.top, "vendor/lib ü")
	ref := gitIn(t, module, "for-each-ref", "--format=%(refname)", KeptRefs)
	if !strings.HasPrefix(ref, KeptRefs+"work/T1/") || gitIn(t, module, "show", ref+":new.txt") != "inside" {
		t.Errorf("kept %q", ref)
	}
	if kept := release(t, c, x.head()); kept != "work/T1" {
		t.Errorf("kept %q", kept)
	}
	c = x.take("work/T2", x.head())
	if got := gitIn(t, c.Where().Dir, "status", "--porcelain"); got != "" || c.Where().Dir != dir {
		t.Errorf("status %q in %s", got, c.Where().Dir)
	}
}

// What an agent commits inside a submodule is refused and kept as well, although nothing in it is uncommitted.
func TestCommitInsideASubmodule(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	lib := newRigAt(t, filepath.Join(base, "lib"), "", map[string]string{"lib.txt": "lib\n"})
	x := newRigAt(t, filepath.Join(base, "project"), "", map[string]string{"a": "1\n"})
	x.person("submodule", "--quiet", "add", lib.top, "lib")
	x.person("commit", "-qm", "submodule")
	c := x.take("work/T1", x.head())
	inside := filepath.Join(c.Where().Dir, "lib")
	put(t, filepath.Join(inside, "new.txt"), "inside\n")
	gitIn(t, inside, "add", "-A")
	gitIn(t, inside, "-c", "user.name=A", "-c", "user.email=a@localhost", "commit", "-qm", "inside")
	_, err := c.Commit(t.Context(), "work")
	if centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(err.Error(), "submodule lib") {
		t.Errorf("a commit inside: %v", err)
	}
	ref := gitIn(t, filepath.Join(x.top, "lib"), "for-each-ref", "--format=%(refname)", KeptRefs)
	if !strings.HasPrefix(ref, KeptRefs+"work/T1/") || gitIn(t, filepath.Join(x.top, "lib"), "show", ref+":new.txt") != "inside" {
		t.Errorf("kept %q", ref)
	}
	put(t, filepath.Join(c.Where().Dir, "b"), "2\n") // it is kept without what is inside
	if kept := release(t, c, x.head()); kept == "" || x.person("diff", "--name-only", x.head(), kept) != "b" {
		t.Errorf("kept on %q", kept)
	}
}

// A submodule is there only where the person has it at the recorded commit, whatever kind its git directory is of; others stay empty
// directories. One that is removed is removed by the commit.
func TestSubmodulesThatAreThere(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	lib := newRigAt(t, filepath.Join(base, "lib"), "", map[string]string{"lib.txt": "lib\n"})
	x := newRigAt(t, filepath.Join(base, "project"), "", map[string]string{"a": "1\n"})
	x.person("clone", "-q", lib.top, "within") // its git directory stands in it
	for _, name := range []string{"within", "apart", "unfetched", "lost"} {
		x.person("submodule", "--quiet", "add", lib.top, name)
	}
	x.person("update-index", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",unfetched")
	x.person("commit", "-qm", "submodules")
	head := x.head()
	if err := os.RemoveAll(filepath.Join(x.top, ".git", "modules", "lost")); err != nil {
		t.Fatal(err)
	}
	c := x.take("work/T1", head)
	for name, want := range map[string]bool{"within": true, "apart": true, "unfetched": false, "lost": false} {
		all, err := os.ReadDir(filepath.Join(c.Where().Dir, name))
		if err != nil || (len(all) > 0) != want {
			t.Errorf("%s: %v, %v", name, all, err)
		}
		if got := c.Submodule(name + "/lib.txt"); (got == name) != want {
			t.Errorf("the submodule of a file in %s: %q", name, got)
		}
	}
	if err := os.RemoveAll(filepath.Join(c.Where().Dir, "apart")); err != nil {
		t.Fatal(err)
	}
	if got := changed(commit(t, c)); !slices.Equal(got, []string{"deleted apart"}) {
		t.Errorf("changed %q", got)
	}
}
