package worktree

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/guard"
)

// A host that died leaves everything on the disk; the next one finds it.
func TestReopen(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	c := x.take("work/T1", x.head())
	at := c.Where()
	if _, err := x.Reopen(t.Context(), at); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("somebody has it: %v", err)
	}
	put(t, filepath.Join(at.Dir, "a"), "half done\n")
	put(t, filepath.Join(c.rec.GitDir, "index.lock"), "")
	put(t, x.indexOf("w1")+".lock", "")

	next := x.open()
	other, err := next.Take(t.Context(), Want{Branch: "work/T2", Commit: x.head()})
	if err != nil || other.Where().Dir == at.Dir {
		t.Fatalf("another task got %v, %v", other, err)
	}
	found, err := next.Reopen(t.Context(), at)
	if err != nil || found.Where() != at {
		t.Fatalf("%v, %v", found, err)
	}
	if got := changed(commit(t, found)); !slices.Equal(got, []string{"modified a"}) {
		t.Errorf("changed %q", got)
	}
	// Without having been recorded anywhere, it is found by its branch.
	again, err := x.open().Take(t.Context(), Want{Branch: "work/T1", Commit: x.head()})
	if err != nil || again.Where() != at || get(t, filepath.Join(at.Dir, "a")) != "half done\n" {
		t.Errorf("%v, %v", again, err)
	}
	for _, gone := range []centurion.Checkout{{Dir: at.Dir, Branch: "work/T9"}, {Dir: filepath.Join(at.Dir, "x"), Branch: at.Branch}} {
		if _, err := x.open().Reopen(t.Context(), gone); centurion.KindOf(err) != centurion.KindNotFound {
			t.Errorf("%+v: %v", gone, err)
		}
	}
}

// What a Take that was killed, or a person who tidied up, may leave.
func TestTakeMendsWhatItFinds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		harm func(t *testing.T, x *rig, c *Checkout)
		kept bool // below refs/centurion/kept/
	}{
		"an empty directory": {func(t *testing.T, x *rig, c *Checkout) {
			os.RemoveAll(c.dir)
			os.RemoveAll(c.rec.GitDir)
			os.Remove(x.recordOf("w1"))
			os.Mkdir(c.dir, 0o755)
		}, false},
		"no record yet": {func(t *testing.T, x *rig, c *Checkout) {
			os.Remove(x.recordOf("w1"))
			os.Remove(filepath.Join(c.rec.GitDir, "index"))
		}, false},
		"half of the files": {func(t *testing.T, x *rig, c *Checkout) {
			c.rec.Made = false
			c.save()
			os.Remove(filepath.Join(c.dir, "a"))
			os.Remove(x.indexOf("w1"))
			put(t, x.indexOf("w1")+".lock", "")
		}, false},
		"the record is lost":       {func(t *testing.T, x *rig, c *Checkout) { put(t, x.recordOf("w1"), "") }, true},
		"the directory is deleted": {func(t *testing.T, x *rig, c *Checkout) { c.rec.Free = true; c.save(); os.RemoveAll(c.dir) }, false},
		"git has forgotten it": {func(t *testing.T, x *rig, c *Checkout) {
			c.rec.Free = true
			c.save()
			os.RemoveAll(c.rec.GitDir)
		}, false},
		"the index is damaged": {func(t *testing.T, x *rig, c *Checkout) {
			c.rec.Free = true
			c.save()
			put(t, x.indexOf("w1"), "DIRC no")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newRig(t, map[string]string{"a": "1\n", "b": "1\n"})
			c := x.take("work/T1", x.head())
			put(t, filepath.Join(c.dir, "b"), "work\n")
			test.harm(t, x, c)
			x.Repo = x.open()
			c = x.take("work/T2", x.head())
			dir := c.Where().Dir
			if slotIn(c.dir) != "w1" {
				t.Errorf("a second checkout at %s", c.dir)
			}
			if get(t, filepath.Join(dir, "a")) != "1\n" || get(t, filepath.Join(dir, "b")) != "1\n" || gitIn(t, dir, "status", "--porcelain") != "" {
				t.Error("the checkout is not clean")
			}
			kept := x.person("for-each-ref", "--format=%(refname)", KeptRefs)
			if (kept != "") != test.kept || test.kept && x.person("show", kept+":b") != "work" {
				t.Errorf("kept %q", kept)
			}
			put(t, filepath.Join(dir, "b"), "2\n")
			if got := changed(commit(t, c)); !slices.Equal(got, []string{"modified b"}) {
				t.Errorf("changed %q", got)
			}
		})
	}
}

// A person deletes a checkout somebody works in: a clear error, and what was committed stays.
func TestCheckoutDeletedByHand(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	c := x.take("work/T1", x.head())
	put(t, filepath.Join(c.dir, "a"), "2\n")
	done := commit(t, c)
	at := c.Where()
	os.RemoveAll(c.dir)
	if _, err := c.Commit(t.Context(), ""); centurion.KindOf(err) != centurion.KindNotFound || !strings.Contains(centurion.HintOf(err), "work/T1") {
		t.Errorf("%v", err)
	}
	if _, err := x.open().Reopen(t.Context(), at); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("%v", err)
	}
	if kept := release(t, c, x.head()); kept != "work/T1" || x.person("rev-parse", "work/T1") != done.ID {
		t.Errorf("kept %q", kept)
	}
}

// Many at once get a checkout each.
func TestTakeAtOnce(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	head := x.head()
	var g guard.Group
	for i := range 12 {
		g.Go("take", func() error {
			c, err := x.Take(t.Context(), Want{Branch: fmt.Sprint("work/T", i), Commit: head})
			if err != nil {
				return err
			}
			put(t, filepath.Join(c.Where().Dir, "a"), fmt.Sprint(i))
			if _, err := c.Commit(t.Context(), "work"); err != nil {
				return err
			}
			_, err = c.Release(t.Context(), head)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		if got := x.person("show", fmt.Sprint("work/T", i, ":a")); got != fmt.Sprint(i) {
			t.Errorf("T%d: %q", i, got)
		}
	}
}

func TestGC(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	x.opts.Keep = 1
	head := x.head()
	live, dead, merged := x.take("centurion/live/T1", head), x.take("centurion/dead/T1", head), x.take("centurion/dead/T2", head)
	for _, c := range []*Checkout{live, dead, merged} {
		put(t, filepath.Join(c.dir, "a"), c.rec.Branch)
	}
	x.person("merge", "-q", commit(t, merged).ID)
	next := x.open()
	next.opts.Keep = 1
	removed, err := next.GC(t.Context(), func(ref string) bool { return strings.Contains(ref, "live") })
	if want := []string{merged.dir, "refs/heads/centurion/dead/T2"}; err != nil || !slices.Equal(removed, want) {
		t.Errorf("removed %q, %v", removed, err)
	}
	if got := x.person("show", "centurion/dead/T1:a"); got != "centurion/dead/T1" {
		t.Errorf("dead work: %q", got)
	}
	if got := get(t, filepath.Join(live.dir, "a")); got != "centurion/live/T1" {
		t.Errorf("live work: %q", got)
	}
}

// A branch without a commit, as `git checkout --orphan` makes one, is no reason to collect nothing.
func TestGCWithoutACommit(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	x.person("branch", "centurion/dead/T1")
	x.person("checkout", "-q", "--orphan", "fresh")
	removed, err := x.GC(t.Context(), func(string) bool { return false })
	if want := []string{"refs/heads/centurion/dead/T1"}; err != nil || !slices.Equal(removed, want) {
		t.Errorf("removed %q, %v", removed, err)
	}
}

// A move that a crash has cut is ended by whoever opens the checkout: what others have done never passes for the work in it.
func TestReopenEndsAMove(t *testing.T) {
	t.Parallel()
	for _, half := range []bool{false, true} {
		x := newRig(t, map[string]string{"a": "1\n"})
		c := x.take("work/T1", x.head())
		put(t, filepath.Join(c.Where().Dir, "mine"), "mine\n")
		commit(t, c)
		others := x.commitOf(x.head(), map[string][]byte{"mine": []byte("mine\n"), "theirs": []byte("theirs\n")})
		c.rec.Next, c.rec.Onto = others, others
		if err := c.save(); err != nil {
			t.Fatal(err)
		}
		if half {
			if err := c.bring(t.Context(), others); err != nil {
				t.Fatal(err)
			}
		}
		found, err := x.open().Reopen(t.Context(), c.Where())
		if err != nil {
			t.Fatal(err)
		}
		if got := found.Where().Start; got != others || found.rec.Next != "" {
			t.Errorf("half %t: it stands on %s, not on %s", half, got, others)
		}
		if got := changed(commit(t, found)); len(got) > 0 {
			t.Errorf("half %t: the work of others passes for its own: %q", half, got)
		}
	}
}

// A directory of which nobody can tell whose it is stays with what is in it, whatever it is called.
func TestTakeLeavesWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	theirs := filepath.Join(x.dirOf("w1"), "notes")
	put(t, theirs, "theirs\n")
	c := x.take("work/T1", x.head())
	if c.dir == x.dirOf("w1") || get(t, theirs) != "theirs\n" {
		t.Errorf("the checkout is %s", c.dir)
	}
}
