package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a file tool has written and git ignores is neither deleted nor found by the next who works in the checkout. What commands
// have left there stays, and so does what was committed meanwhile.
func TestIgnoredIsSetAside(t *testing.T) {
	for _, prefix := range []string{"", "sub"} {
		x := newRigAt(t, filepath.Join(t.TempDir(), "top"), prefix, map[string]string{".gitignore": "out/\n*.log\n", "a.txt": "a\n"})
		ctx := t.Context()
		base, err := x.Tip(ctx, "main")
		if err != nil {
			t.Fatal(err)
		}
		c, err := x.Take(ctx, Want{Branch: "centurion/m/t", Commit: base})
		if err != nil {
			t.Fatal(err)
		}
		dir := c.Where().Dir
		put(t, filepath.Join(dir, "out", "result.txt"), "worth\n")
		put(t, filepath.Join(dir, "out", "build.o"), "made by a command\n")
		put(t, filepath.Join(dir, "b.txt"), "b\n")
		put(t, filepath.Join(dir, "now.log"), "log\n")
		ignored, err := c.Ignored(ctx, []string{"out/result.txt", "b.txt", "now.log", "gone.log", ".opencode", ".opencode/x.log", "../../x.log"})
		if want := []string{"out/result.txt", "now.log", "gone.log"}; err != nil || !slices.Equal(ignored, want) {
			t.Fatalf("ignored: %q, %v, want %q", ignored, err, want)
		}
		put(t, filepath.Join(c.dir, ".gitignore"), "out/\n") // the log is part of the work now
		// A host dies; another one goes on.
		c.repo.pool.leave(c.seat)
		x.Repo = x.open()
		if c, err = x.Reopen(ctx, c.Where()); err != nil {
			t.Fatal(err)
		}
		kept, err := c.Release(ctx, base)
		if err != nil || kept == "" {
			t.Fatalf("release: %q, %v", kept, err)
		}
		aside, err := x.Aside("centurion/m/t")
		name := filepath.ToSlash(filepath.Join(prefix, "out/result.txt"))
		if err != nil || len(aside) != 1 || !slices.Equal(aside[0].Files, []string{name}) {
			t.Fatalf("aside: %+v, %v", aside, err)
		}
		if b, err := os.ReadFile(filepath.Join(aside[0].Dir, filepath.FromSlash(name))); err != nil || string(b) != "worth\n" {
			t.Errorf("kept as %q, %v", b, err)
		}
		if log := x.person("ls-tree", "-r", "--name-only", kept); !strings.Contains(log, "now.log") {
			t.Errorf("the branch lacks now.log: %s", log)
		}
		next, err := x.Take(ctx, Want{Branch: "centurion/n/t", Commit: base})
		if err != nil || next.Where().Dir != dir {
			t.Fatalf("the next checkout: %+v, %v", next, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "out", "result.txt")); err == nil {
			t.Error("the next who works there finds it")
		}
		if _, err := os.Stat(filepath.Join(dir, "out", "build.o")); err != nil {
			t.Errorf("what a command has made: %v", err)
		}
		put(t, filepath.Join(dir, "out", "result.txt"), "of another\n")
		if _, err := next.Release(ctx, base); err != nil {
			t.Fatal(err)
		}
		if aside, err := x.Aside("centurion/n/t"); err != nil || len(aside) > 0 {
			t.Errorf("what no tool has written was set aside: %+v, %v", aside, err)
		}
		if removed, err := x.DropPool(ctx); err != nil || len(removed) != 1 {
			t.Fatalf("drop: %v, %v", removed, err)
		}
		if _, err := os.Stat(filepath.Join(aside[0].Dir, filepath.FromSlash(name))); err != nil {
			t.Errorf("after the pool was emptied: %v", err)
		}
	}
}

// What is set aside of a later checkout of a branch does not replace what an earlier one left, and stands behind it.
func TestAsideTwice(t *testing.T) {
	x := newRig(t, map[string]string{".gitignore": "out/\n", "a.txt": "a\n"})
	for _, text := range []string{"first\n", "second\n"} {
		c := x.take("centurion/m/t", x.head())
		put(t, filepath.Join(c.Where().Dir, "out", "x.txt"), text)
		if _, err := c.Ignored(t.Context(), []string{"out/x.txt"}); err != nil {
			t.Fatal(err)
		}
		release(t, c, x.head())
	}
	aside, err := x.Aside("centurion/m/t")
	if err != nil || len(aside) != 2 || aside[0].Dir == aside[1].Dir {
		t.Fatalf("%+v, %v", aside, err)
	}
	for i, want := range []string{"first\n", "second\n"} {
		if got := get(t, filepath.Join(aside[i].Dir, "out", "x.txt")); got != want {
			t.Errorf("%d: %q, want %q", i, got, want)
		}
	}
}

// Only directories that Aside lists are removed, and above them what is empty then.
func TestDropAside(t *testing.T) {
	x := newRigAt(t, filepath.Join(t.TempDir(), "top"), "", map[string]string{"a.txt": "a\n"})
	if got, err := x.DropAside(filepath.Join(x.asideOf("centurion/m/t"), "1")); err != nil || len(got) > 0 {
		t.Errorf("where nothing was ever kept: %q, %v", got, err)
	}
	of := func(branch, n string) string { return filepath.Join(x.asideOf(branch), n) }
	one, two, other := of("centurion/m/t", "1"), of("centurion/m/t", "2"), of("centurion/m/u", "1")
	for _, d := range []string{one, two, other} {
		put(t, filepath.Join(d, "out", "x.txt"), "x\n")
	}
	outside := filepath.Join(t.TempDir(), "1")
	put(t, filepath.Join(outside, "x.txt"), "x\n")
	got, err := x.DropAside(one, other, outside, x.asideOf("centurion/m/t"), filepath.Join(one, "..", "..", "..", "..", ".."), "1")
	if want := []string{one, other}; err != nil || !slices.Equal(got, want) {
		t.Errorf("removed %q, %v, want %q", got, err, want)
	}
	for path, want := range map[string]bool{one: false, x.asideOf("centurion/m/u"): false, two: true, outside: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, want there: %v", path, err, want)
		}
	}
}
