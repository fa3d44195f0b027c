package worktree

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"centurion"
)

// What an object is asked for is asked once; what a branch stands at is asked every time.
func TestObjectsAreAskedOnce(t *testing.T) {
	x := newRig(t, map[string]string{"a.txt": "a\n", ".opencode/todo.md": "# Plan\n"})
	ctx := t.Context()
	tip, err := x.Tip(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	public, err := x.TreeOf(ctx, tip)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.TreeOf(ctx, "main"); err != nil {
		t.Fatal(err)
	}
	x.db.Close() // a git that is there would go on to answer
	path := x.prog.path
	x.prog.path = filepath.Join(t.TempDir(), "no git")
	if c, err := x.Repo.commitOf(ctx, tip); c != tip || err != nil {
		t.Errorf("the commit is asked for again: %q, %v", c, err)
	}
	if again, err := x.TreeOf(ctx, tip); again != public || err != nil {
		t.Errorf("its tree is asked for again: %q, %v", again, err)
	}
	for _, name := range []string{"main", strings.ToUpper(tip), tip[:39]} {
		if _, err := x.TreeOf(ctx, name); err == nil {
			t.Errorf("%s is answered without git", name)
		}
		if _, err := x.Repo.commitOf(ctx, name); err == nil {
			t.Errorf("%s is a commit without git", name)
		}
	}
	x.prog.path = path
	if _, err := x.Repo.commitOf(ctx, public); err == nil { // known as a tree
		t.Error("a tree is a commit")
	}
}

// What an agent has done to HEAD is seen.
func TestStandsAt(t *testing.T) {
	x := newRig(t, map[string]string{"a.txt": "a\n"})
	ctx := context.WithoutCancel(t.Context())
	tip, err := x.Tip(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	c, err := x.Take(ctx, Want{Branch: "work", Commit: tip})
	if err != nil {
		t.Fatal(err)
	}
	on := func(want bool, why string) {
		t.Helper()
		if got := standsAt(c.rec.GitDir, c.onBranch()); got != want {
			t.Errorf("%s: it stands on its branch: %t", why, got)
		}
	}
	on(true, "taken")
	if config := filepath.Join(x.top, ".git", "config"); !slices.Contains(configFiles(c.rec.GitDir), config) {
		t.Errorf("%s is not looked at", config)
	}
	gitIn(t, c.dir, "checkout", "-q", "--detach")
	on(false, "detached")
	if !standsAt(c.rec.GitDir, tip) {
		t.Error("it does not stand at the commit")
	}
	if err := c.stand(ctx); err != nil {
		t.Fatal(err)
	}
	on(true, "brought back")
	gitIn(t, c.dir, "checkout", "-q", "-b", "work-2")
	on(false, "on a branch of the agent's own")
	head := filepath.Join(c.rec.GitDir, "HEAD")
	if err := os.Remove(head); err != nil {
		t.Fatal(err)
	}
	on(false, "gone")
	if err := os.WriteFile(filepath.Join(c.rec.GitDir, "other"), []byte(c.onBranch()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("other", head); err != nil {
		if runtime.GOOS != "windows" {
			t.Fatal(err)
		}
		t.Skip("links need a right on Windows:", err)
	}
	on(false, "a link")
}

// A tree has no file at a path that leads out of it, or at none.
func TestTreesHaveNoPathsOut(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	for _, name := range []string{"..", "../x", "a/../../x", ".", "", "/etc/x"} {
		if tree, err := x.With(t.Context(), x.head(), map[string][]byte{name: []byte("x")}); centurion.KindOf(err) != centurion.KindUsage || !strings.Contains(err.Error(), strconv.Quote(name)) {
			t.Errorf("%q: %s, %v", name, tree, err)
		}
	}
	if tree, err := x.With(t.Context(), x.head(), map[string][]byte{"..x": []byte("x"), "b/../c": []byte("y")}); err != nil || x.person("ls-tree", "--name-only", tree) != "..x\na\nc" {
		t.Errorf("%s, %v", tree, err)
	}
}
