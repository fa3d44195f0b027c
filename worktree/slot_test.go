package worktree

import (
	"os"
	"path/filepath"
	"testing"
)

// A checkout carries the name of the project's directory: tools such as npm init write it into files.
func TestCheckoutHasTheProjectsName(t *testing.T) {
	t.Parallel()
	x := newRigAt(t, filepath.Join(t.TempDir(), "Mein Projekt ü"), "", map[string]string{"a": "1\n"})
	for i, branch := range []string{"work/T1", "work/T2"} {
		c := x.take(branch, x.head())
		if dir := c.Where().Dir; filepath.Base(dir) != "Mein Projekt ü" || slotIn(dir) != []string{"w1", "w2"}[i] {
			t.Errorf("the checkout is at %s", dir)
		}
	}
}

// Only the names that the pool gives are names of a checkout.
func TestNumber(t *testing.T) {
	for name, want := range map[string]int{"w1": 1, "w12": 12, "12": 0, "w": 0, "w0": 0, "w01": 0, "w-1": 0, "w+1": 0, "x1": 0, "w1x": 0} {
		if got := number(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// A checkout that an earlier version made, whose files stand in the slot itself, is found, used and removed.
func TestCheckoutOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	c := x.take("work/T1", x.head())
	put(t, filepath.Join(c.dir, "a"), "2\n")
	// As it was: the files in the slot, the record and git's own link saying so.
	tmp := filepath.Join(x.opts.Home, "moving")
	for _, m := range [][2]string{{c.dir, tmp}, {tmp, x.slotOf("w1")}} {
		os.Remove(m[1])
		if err := os.Rename(m[0], m[1]); err != nil {
			t.Fatal(err)
		}
		os.Remove(x.slotOf("w1"))
	}
	put(t, filepath.Join(c.rec.GitDir, "gitdir"), filepath.Join(x.slotOf("w1"), ".git")+"\n")
	again := x.open()
	found, err := again.Take(t.Context(), Want{Branch: "work/T1", Commit: x.head()})
	if err != nil || found.dir != x.slotOf("w1") || get(t, filepath.Join(found.dir, "a")) != "2\n" {
		t.Fatalf("%+v, %v", found, err)
	}
	done := commit(t, found)
	if got := changed(done); len(got) != 1 || got[0] != "modified a" {
		t.Errorf("committed %q", got)
	}
	release(t, found, done.ID)
	if _, err := again.DropPool(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(x.slotOf("w1")); !os.IsNotExist(err) {
		t.Errorf("the slot is still there: %v", err)
	}
}
