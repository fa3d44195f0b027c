package worktree

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion"
)

// later makes a commit on another one, with some files changed and some gone.
func (x *rig) later(parent string, files map[string]string, gone ...string) string {
	x.t.Helper()
	content := map[string][]byte{}
	for name, text := range files {
		content[name] = []byte(text)
	}
	id, err := x.CommitTree(x.t.Context(), x.commitOf(parent, content, gone...), parent, "others")
	if err != nil {
		x.t.Fatal(err)
	}
	return id
}

// Only the person's own branches hold a commit for good: not tags, not branches of others. A branch goes neither while a checkout is on
// it nor before it is in another one.
func TestWhatHoldsACommit(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	alone := x.commitOf(x.head(), content("alone\n"))
	for _, ref := range []string{"refs/centurion/kept/x/1", "refs/tags/v1", "refs/remotes/origin/main"} {
		x.person("update-ref", ref, alone)
	}
	x.person("update-ref", "refs/centurion/kept/x/2", x.head())
	removed, err := x.GC(t.Context(), func(string) bool { return false })
	if err != nil || !slices.Equal(removed, []string{"refs/centurion/kept/x/2"}) || !x.hasRef("refs/centurion/kept/x/1") {
		t.Errorf("removed %q, %v", removed, err)
	}
	c := x.take("held", x.head())
	x.person("update-ref", "refs/heads/free", x.head())
	x.person("update-ref", "refs/heads/ahead", alone)
	dropped, err := x.DropMerged(t.Context(), x.head(), "held", "free", "ahead", "nowhere")
	if err != nil || !slices.Equal(dropped, []string{"free", "nowhere"}) || !x.hasRef("refs/heads/held") || !x.hasRef("refs/heads/ahead") || x.hasRef("refs/heads/free") {
		t.Errorf("dropped %q, %v", dropped, err)
	}
	release(t, c, x.head())
}

// A checkout that loses a file to its owner is set up again for the next one, and one that loses none is not.
func TestSetupAfterWhatWasSetAside(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n", ".gitignore": "*.env\n"})
	sh := x.withShell()
	for i, test := range []struct {
		aside bool
		times int
	}{{false, 1}, {true, 1}, {false, 2}, {false, 2}} {
		c := x.take("work/T1", x.head(), "echo > made.env")
		if sh.times() != test.times {
			t.Errorf("%d: it was set up %d times", i, sh.times())
		}
		if test.aside {
			put(t, filepath.Join(c.dir, "made.env"), "mine\n")
			if got, err := c.Ignored(t.Context(), []string{"made.env", "a"}); err != nil || !slices.Equal(got, []string{"made.env"}) {
				t.Errorf("ignored %q, %v", got, err)
			}
		}
		release(t, c, "")
	}
	all, err := x.Aside("work/T1")
	if err != nil || len(all) != 1 || !slices.Equal(all[0].Files, []string{"made.env"}) || get(t, filepath.Join(all[0].Dir, "made.env")) != "mine\n" {
		t.Errorf("set aside: %+v, %v", all, err)
	}
}

// A branch that was made for a checkout which could not be set up goes again; one with work on it does not.
func TestBranchOfAFailedSetup(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	x.withShell()
	if _, err := x.Take(t.Context(), Want{Branch: "work/T1", Commit: x.head(), Setup: []string{"exit 3"}}); err == nil || x.hasRef("refs/heads/work/T1") {
		t.Errorf("%v, the branch is there: %v", err, x.hasRef("refs/heads/work/T1"))
	}
	c := x.take("work/T2", x.head())
	put(t, filepath.Join(c.dir, "a"), "2\n")
	done := commit(t, c)
	release(t, c, "")
	if _, err := x.Take(t.Context(), Want{Branch: "work/T2", Commit: x.head(), Setup: []string{"exit 4"}}); err == nil {
		t.Error("it was set up")
	}
	if kept := x.person("for-each-ref", "--format=%(objectname)", "refs/centurion/kept/work/T2"); kept != done.ID {
		t.Errorf("kept %q, not %q", kept, done.ID)
	}
}

// A checkout whose record and host are lost gives its work back, whatever that host left locked; what is forgotten takes nothing along
// that is not the repository's.
func TestWorkOfALostRecord(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	c := x.take("work/T1", x.head())
	put(t, filepath.Join(c.dir, "b"), "b\n")
	for _, lock := range []string{x.indexOf(c.name) + ".lock", filepath.Join(c.rec.GitDir, "index.lock")} {
		put(t, lock, "")
	}
	if err := os.Remove(x.recordOf(c.name)); err != nil {
		t.Fatal(err)
	}
	x.Repo.Close()
	x.Repo = x.open()
	if _, err := x.GC(t.Context(), func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if kept := x.person("for-each-ref", "--format=%(refname)", "refs/centurion/kept"); strings.Count(kept, "\n") != 0 || x.person("show", kept+":b") != "b" || x.person("log", "-1", "--format=%s %P", kept) != "Work found in "+c.name+" "+x.head() {
		t.Errorf("kept %q", kept)
	}
	away := filepath.Join(t.TempDir(), "worktrees", "w1")
	put(t, filepath.Join(away, "HEAD"), "x\n")
	other := &Checkout{repo: x.checkouts, name: "w7", dir: x.dirOf("w7"), rec: record{GitDir: away}}
	if err := other.forget(t.Context()); err != nil || get(t, filepath.Join(away, "HEAD")) != "x\n" {
		t.Errorf("forgotten: %v", err)
	}
}

// A file that has come since is not replaced, and what was written before it goes again, with its directories.
func TestPlaceWhereSomethingCame(t *testing.T) {
	t.Parallel()
	p, dir := placer{top: t.TempDir()}, t.TempDir()
	put(t, filepath.Join(p.top, "z"), "theirs\n")
	var steps []step
	for _, name := range []string{"d/e/new", "z"} {
		put(t, filepath.Join(dir, "new", name), "ours\n")
		steps = append(steps, step{Path: name, New: entry{Mode: "100644", ID: "1"}})
	}
	err := p.place(dir, steps, map[string]fs.FileInfo{})
	left, _ := os.ReadDir(p.top)
	if centurion.KindOf(err) != centurion.KindConflict || len(left) != 1 || get(t, filepath.Join(p.top, "z")) != "theirs\n" {
		t.Errorf("%v, left %v", err, left)
	}
}

// Commits of the work that the person has taken already make no empty ones where the rest is applied to a branch that was rewritten.
func TestMergeOfWhatWasTakenAlready(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long})
	x.person("commit", "-q", "--allow-empty", "-m", "to be amended")
	base := x.begin()
	one := x.later(base.Commit, map[string]string{"one": "1\n"})
	two := x.later(one, map[string]string{"two": "2\n"})
	x.person("reset", "-q", "--hard", "HEAD^")
	x.person("cherry-pick", one)
	before := x.head()
	x.merged(MergeOptions{Base: base, Tip: two})
	if got := x.person("log", "--format=%s", "--name-only", before+".."); got != "others\n\ntwo" {
		t.Errorf("it brought %q", got)
	}
}
