package worktree

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"centurion"
)

// take takes a checkout on a branch at a commit.
func (x *rig) take(branch, commit string, setup ...string) *Checkout {
	x.t.Helper()
	c, err := x.Take(x.t.Context(), Want{Branch: branch, Commit: commit, Setup: setup})
	if err != nil {
		x.t.Fatal(err)
	}
	return c
}

func (x *rig) head() string { x.t.Helper(); return x.person("rev-parse", "HEAD") }

func commit(t testing.TB, c *Checkout) Commit {
	t.Helper()
	done, err := c.Commit(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func release(t testing.TB, c *Checkout, into string) string {
	t.Helper()
	kept, err := c.Release(t.Context(), into)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// names of the files that a commit changed.
func changed(done Commit) []string {
	var all []string
	for _, f := range done.Files {
		all = append(all, f.Status+" "+f.Path)
	}
	return all
}

// What an agent may do with git in its checkout; the work is one commit all the same, and its own commits are kept.
func TestCommitWhateverTheAgentDid(t *testing.T) {
	t.Parallel()
	edit := func(t *testing.T, x *rig, dir string) {
		put(t, filepath.Join(dir, "a"), "changed\n")
		put(t, filepath.Join(dir, "neu \"ü\"\n"), "new\n")
		if err := os.Remove(filepath.Join(dir, "b")); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"modified a", "deleted b", "added neu \"ü\"\n"}
	for name, test := range map[string]struct {
		do   func(t *testing.T, x *rig, dir string)
		want []string
		kept int // commits below refs/centurion/kept/
	}{
		"nothing": {func(*testing.T, *rig, string) {}, nil, 0},
		"files":   {edit, want, 0},
		"git add": {func(t *testing.T, x *rig, dir string) { edit(t, x, dir); gitIn(t, dir, "add", "-A") }, want, 0},
		"committed": {func(t *testing.T, x *rig, dir string) {
			edit(t, x, dir)
			gitIn(t, dir, "add", "-A")
			gitIn(t, dir, "commit", "-qm", "own")
		}, want, 1},
		"committed in part": {func(t *testing.T, x *rig, dir string) {
			put(t, filepath.Join(dir, "a"), "half\n")
			gitIn(t, dir, "commit", "-qam", "own")
			edit(t, x, dir)
		}, want, 1},
		"committed and went back": {func(t *testing.T, x *rig, dir string) {
			edit(t, x, dir)
			gitIn(t, dir, "add", "-A")
			gitIn(t, dir, "commit", "-qm", "own")
			gitIn(t, dir, "checkout", "-q", "--detach", "HEAD~1")
		}, nil, 1},
		"another branch": {func(t *testing.T, x *rig, dir string) {
			gitIn(t, dir, "checkout", "-qb", "other")
			edit(t, x, dir)
			gitIn(t, dir, "add", "-A")
			gitIn(t, dir, "commit", "-qm", "own")
		}, want, 1},
		"amended": {func(t *testing.T, x *rig, dir string) {
			edit(t, x, dir)
			gitIn(t, dir, "add", "-A")
			gitIn(t, dir, "commit", "-q", "--amend", "-m", "own")
		}, want, 1},
		"reset": {func(t *testing.T, x *rig, dir string) {
			edit(t, x, dir)
			gitIn(t, dir, "add", "-A")
			gitIn(t, dir, "reset", "-q", "--hard")
		}, nil, 0},
		"stashed": {func(t *testing.T, x *rig, dir string) {
			edit(t, x, dir)
			gitIn(t, dir, "stash", "-u")
			gitIn(t, dir, "stash", "pop")
		}, want, 0},
		"git moved": {func(t *testing.T, x *rig, dir string) {
			edit(t, x, dir)
			os.Remove(filepath.Join(dir, ".git"))
			gitIn(t, dir, "init", "-q")
		}, want, 0},
		"no branch": {func(t *testing.T, x *rig, dir string) {
			edit(t, x, dir)
			gitIn(t, dir, "checkout", "-q", "--detach")
			gitIn(t, dir, "branch", "-D", "work/T1")
		}, want, 0},
		"in a merge": {func(t *testing.T, x *rig, dir string) {
			gitIn(t, dir, "checkout", "-qb", "other")
			put(t, filepath.Join(dir, "a"), "theirs\n")
			gitIn(t, dir, "commit", "-qam", "theirs")
			gitIn(t, dir, "checkout", "-q", "work/T1")
			put(t, filepath.Join(dir, "a"), "ours\n")
			gitIn(t, dir, "commit", "-qam", "ours")
			tryGit(t.Context(), dir, "merge", "other")
			edit(t, x, dir)
		}, want, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newRig(t, map[string]string{"a": "1\n", "b": "2\n", ".opencode/agent.md": "theirs\n"})
			c := x.take("work/T1", x.head())
			dir := c.Where().Dir
			if got := gitIn(t, dir, "status", "--porcelain"); got != "" {
				t.Errorf("status at the start: %q", got)
			}
			test.do(t, x, dir)
			done := commit(t, c)
			if got := changed(done); !slices.Equal(got, test.want) {
				t.Fatalf("changed %q, want %q", got, test.want)
			}
			if got := strings.Fields(x.person("for-each-ref", "--format=%(refname)", KeptRefs)); len(got) != test.kept {
				t.Errorf("kept %q, want %d", got, test.kept)
			}
			if test.want == nil {
				if done.ID != "" || x.person("rev-parse", "work/T1") != x.head() {
					t.Errorf("commit %q of nothing", done.ID)
				}
			} else if got := x.person("log", "-1", "--format=%H %P %an %ae %cn %s", "work/T1"); got != done.ID+" "+x.head()+" Centurion centurion@localhost Centurion work" {
				t.Errorf("log: %s", got)
			}
			if name != "git moved" {
				if got := gitIn(t, dir, "status", "--porcelain", "--branch"); got != "## work/T1" {
					t.Errorf("status afterwards: %q", got)
				}
			}
			if again := commit(t, c); again.ID != done.ID {
				t.Errorf("a second commit %q of the same work", again.ID)
			}
			if got := get(t, filepath.Join(dir, ".opencode/agent.md")); got != "theirs\n" {
				t.Errorf(".opencode: %q", got)
			}
			if got := x.person("status", "--porcelain"); got != "" {
				t.Errorf("the person's status: %q", got)
			}
		})
	}
}

// .opencode is one directory for all and belongs to no commit, whether it is tracked or not.
func TestPrivateDirectoryIsShared(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"tracked":   {"a": "1", "sub/p/a": "1", "sub/p/.opencode/x/agent.md": "old"},
		"untracked": {"a": "1", "sub/p/a": "1"},
		"alone":     {"sub/p/.opencode/x/agent.md": "old"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newRigAt(t, filepath.Join(t.TempDir(), "r [x]"), "sub/p", files)
			c := x.take("work/T1", x.head())
			dir := c.Where().Dir
			if !strings.HasSuffix(filepath.ToSlash(dir), "/w1/r [x]/sub/p") {
				t.Errorf("the project is at %s", dir)
			}
			if target, err := os.Readlink(filepath.Join(dir, ".opencode")); err != nil || !strings.HasSuffix(target, "sub/p/.opencode") {
				t.Errorf("link %q, %v", target, err)
			}
			x.write("sub/p/.opencode/x/agent.md", "new")
			put(t, filepath.Join(dir, "b"), "2")
			gitIn(t, dir, "add", "-A")
			gitIn(t, dir, "commit", "-qm", "own")
			gitIn(t, dir, "reset", "-q", "--hard", "HEAD")
			if got := changed(commit(t, c)); !slices.Equal(got, []string{"added sub/p/b"}) {
				t.Errorf("changed %q", got)
			}
			if got := gitIn(t, dir, "status", "--porcelain"); got != "" {
				t.Errorf("status %q", got)
			}
			if got := get(t, filepath.Join(dir, ".opencode/x/agent.md")); got != "new" {
				t.Errorf("agent.md: %q", got)
			}
			if out := x.person("log", "--format=", "--name-only", x.head()+"..work/T1"); strings.Contains(out, ".opencode") {
				t.Errorf("committed: %s", out)
			}
			// Another commit, in which the private files are others, moves none of it.
			x.person("add", "-f", "-A", "sub/p/.opencode")
			x.person("commit", "-qm", "second")
			if err := c.Move(t.Context(), x.head()); err != nil {
				t.Fatal(err)
			}
			if got := gitIn(t, dir, "status", "--porcelain"); got != "" {
				t.Errorf("status after the move %q", got)
			}
			if target, err := os.Readlink(filepath.Join(dir, ".opencode")); err != nil {
				t.Errorf("link %q, %v", target, err)
			}
			if got := get(t, filepath.Join(x.dir, ".opencode/x/agent.md")); got != "new" {
				t.Errorf("the person's agent.md: %q", got)
			}
		})
	}
}

func TestPoolIsUsedAgain(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n", "dir/b": "2\n", ".gitignore": "node_modules\n"})
	first := x.head()
	c := x.take("work/T1", first)
	dir := c.Where().Dir
	put(t, filepath.Join(dir, "a"), "changed\n")
	put(t, filepath.Join(dir, "junk/file"), "junk")
	put(t, filepath.Join(dir, "node_modules/m.js"), "dependency")
	if kept := release(t, c, first); kept != "work/T1" {
		t.Errorf("kept %q: its work is not in the other commit", kept)
	}
	if got := x.person("show", "work/T1:a"); got != "changed" {
		t.Errorf("unfinished work is lost: %q", got)
	}
	if _, err := c.Commit(t.Context(), ""); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("commit after the release: %v", err)
	}
	x.write("c", "3\n")
	x.person("add", "-A")
	x.person("commit", "-qm", "second")
	c = x.take("work/T2", x.head())
	if c.Where().Dir != dir {
		t.Errorf("a new directory %s", c.Where().Dir)
	}
	for name, want := range map[string]string{"a": "1\n", "c": "3\n", "node_modules/m.js": "dependency"} {
		if got := get(t, filepath.Join(dir, name)); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "junk")); err == nil {
		t.Error("junk of another task is still there")
	}
	if kept := release(t, c, x.head()); kept != "" {
		t.Errorf("kept %q without any work", kept)
	}
	if got := x.person("branch", "--list", "--format=%(refname:short)"); got != "main\nwork/T1" {
		t.Errorf("branches %q", got)
	}
	// The name of a branch that was kept: what is on it stays alive.
	old := x.person("rev-parse", "work/T1")
	x.take("work/T1", x.head())
	if got := x.person("for-each-ref", "--format=%(objectname)", KeptRefs); got != old {
		t.Errorf("kept %q, want %q", got, old)
	}
}

func TestMoveAndLay(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n", "b": "1\n"})
	first := x.head()
	c := x.take("work/T1", first)
	dir := c.Where().Dir
	put(t, filepath.Join(dir, "a"), "mine\n")
	if err := c.Move(t.Context(), first); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("moved with uncommitted work: %v", err)
	}
	mine := commit(t, c)
	x.write("a", "theirs\n")
	x.person("commit", "-qam", "second")
	second := x.head()
	rebased, err := x.Rebase(t.Context(), mine.ID, second)
	if err != nil || rebased.Tree == "" || len(rebased.Conflicts) == 0 {
		t.Fatalf("%+v, %v", rebased, err)
	}
	if err := c.Lay(t.Context(), rebased.Tree, second); err != nil {
		t.Fatal(err)
	}
	if got := get(t, filepath.Join(dir, "a")); !strings.Contains(got, "<<<<<<<") {
		t.Errorf("no markers: %q", got)
	}
	if got := gitIn(t, dir, "status", "--porcelain"); got != "M a" {
		t.Errorf("status %q", got)
	}
	if c.Where().Start != second {
		t.Errorf("it stands on %s", c.Where().Start)
	}
	put(t, filepath.Join(dir, "a"), "both\n")
	both := commit(t, c)
	if both.Parent != second || x.person("show", both.ID+":a") != "both" {
		t.Errorf("%+v", both)
	}
	if got := x.person("for-each-ref", "--format=%(objectname)", KeptRefs); got != mine.ID {
		t.Errorf("kept %q, want the first commit", got)
	}
	x.person("update-ref", "refs/heads/main2", both.ID)
	if err := c.Move(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if got := x.person("for-each-ref", "--format=%(objectname)", KeptRefs+"work/T1/"+both.ID[:12]); got != both.ID {
		t.Errorf("a commit that was not landed is lost: %q", got)
	}
	if kept := release(t, c, second); kept != "" {
		t.Errorf("kept %q", kept)
	}
}

func TestCleanForAChange(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n", ".gitignore": "out\n"})
	c := x.take("", x.head())
	dir := c.Where().Dir
	tree, err := x.With(t.Context(), x.head(), map[string][]byte{"a": []byte("2\n"), "n": []byte("n\n")})
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{tree, x.head(), tree} {
		put(t, filepath.Join(dir, "untracked"), "x")
		put(t, filepath.Join(dir, "out"), "kept")
		if err := c.Clean(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		if changed, err := c.Changed(t.Context()); err != nil || len(changed) != 0 {
			t.Errorf("changed %q, %v", changed, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "untracked")); err == nil {
			t.Error("an untracked file is still there")
		}
		if get(t, filepath.Join(dir, "out")) != "kept" {
			t.Error("an ignored file is gone")
		}
		put(t, filepath.Join(dir, "a"), "9\n")
		put(t, filepath.Join(dir, "other"), "x")
		if changed, err := c.Changed(t.Context()); err != nil || !slices.Equal(changed, []string{"a"}) {
			t.Errorf("changed %q, %v", changed, err)
		}
	}
	if _, err := c.Commit(t.Context(), ""); centurion.KindOf(err) != centurion.KindUsage {
		t.Errorf("commit without a branch: %v", err)
	}
}

// What was changed since the last commit: tracked, new and deleted files, and neither what is ignored, what the setup has left, nor
// .opencode/.
func TestUncommitted(t *testing.T) {
	x := newRig(t, map[string]string{"a.txt": "a\n", "b ü.txt": "b\n", "gone.txt": "g\n", "same.txt": "s\n", ".gitignore": "*.log\n", ".opencode/todo.md": "# G\n"})
	c := x.take("work", x.head())
	uncommitted := func(want ...string) {
		t.Helper()
		got, err := c.Uncommitted(t.Context())
		if slices.Sort(got); err != nil || !slices.Equal(got, want) {
			t.Errorf("uncommitted are %q, %v; want %q", got, err, want)
		}
	}
	uncommitted()
	put(t, filepath.Join(c.dir, "b ü.txt"), "changed\n")
	put(t, filepath.Join(c.dir, "dir", "new.txt"), "new\n")
	put(t, filepath.Join(c.dir, "x.log"), "ignored\n")
	put(t, filepath.Join(c.dir, "same.txt"), "s\n") // written, and the same
	if err := os.Remove(filepath.Join(c.dir, "gone.txt")); err != nil {
		t.Fatal(err)
	}
	uncommitted("b ü.txt", "dir/new.txt", "gone.txt")
	c.rec.Outputs = []string{"dir"}
	uncommitted("b ü.txt", "gone.txt")
	c.rec.Outputs = nil
	commit(t, c)
	uncommitted()
	put(t, filepath.Join(c.dir, "a.txt"), "later\n")
	uncommitted("a.txt")
}

// A person who deletes the directory of the checkouts leaves them in git's list of worktrees.
func TestDeletedCheckouts(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	c := x.take("work/T1", x.head())
	dir := c.Where().Dir
	release(t, c, "")
	for _, path := range []string{dir, x.recordOf("w1"), x.indexOf("w1")} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	c = x.take("work/T2", x.head())
	put(t, filepath.Join(c.Where().Dir, "new"), "1\n")
	if got := changed(commit(t, c)); c.Where().Dir != dir || !slices.Equal(got, []string{"added new"}) {
		t.Errorf("changed %q in %s", got, c.Where().Dir)
	}
}

// Commits that a session has made itself and taken back again are kept when its checkout is brought elsewhere: its branch goes along.
func TestMoveKeepsWhatTheSessionCommitted(t *testing.T) {
	t.Parallel()
	for name, bring := range map[string]func(t *testing.T, c *Checkout, to string) error{
		"move":  func(t *testing.T, c *Checkout, to string) error { return c.Move(t.Context(), to) },
		"lay":   func(t *testing.T, c *Checkout, to string) error { return c.Lay(t.Context(), to, to) },
		"clean": func(t *testing.T, c *Checkout, to string) error { return c.Clean(t.Context(), to) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newRig(t, map[string]string{"a": "1\n"})
			c := x.take("work/T1", x.head())
			dir := c.Where().Dir
			put(t, filepath.Join(dir, "a"), "tried\n")
			gitIn(t, dir, "commit", "-qam", "own")
			own := gitIn(t, dir, "rev-parse", "HEAD")
			gitIn(t, dir, "revert", "--no-edit", "HEAD")
			back := gitIn(t, dir, "rev-parse", "HEAD")
			if err := bring(t, c, x.commitOf(x.head(), map[string][]byte{"b": []byte("b\n")})); err != nil {
				t.Fatal(err)
			}
			if got := x.person("for-each-ref", "--format=%(objectname)", KeptRefs); got != back || x.person("show", own+":a") != "tried" {
				t.Errorf("kept %q, want %q", got, back)
			}
		})
	}
}

// What comes to a branch between the look at it and its end keeps it.
func TestBranchIsDroppedAsItWasLookedAt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it needs a shell")
	}
	x := newRig(t, map[string]string{"a": "1\n"})
	base := x.begin()
	into := x.commitOf(base.Commit, map[string][]byte{"a": []byte("2\n")}, "b")
	late := x.commitOf(base.Commit, map[string][]byte{"a": []byte("3\n")}, "b")
	x.person("update-ref", "refs/heads/centurion/m/t", base.Commit)
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *--is-ancestor*) '%s' -C '%s' update-ref refs/heads/centurion/m/t %s;; esac\nexec '%s' \"$@\"\n", real, x.top, late, real)
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	again := x.open()
	if _, err := again.drop(t.Context(), "centurion/m/t", "", into); err == nil {
		t.Error("it was dropped")
	}
	if at := x.person("rev-parse", "refs/heads/centurion/m/t"); at != late {
		t.Errorf("the branch is at %s", at)
	}
}

// A checkout without a branch, as checks have it, stands at the commit that it was cleaned to, and says so for git.
func TestCleanMovesTheHead(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	c := x.take("", x.head())
	x.write("a", "2\n")
	x.person("commit", "-qam", "second")
	put(t, filepath.Join(c.dir, "left"), "x")
	if err := c.Clean(t.Context(), x.head()); err != nil {
		t.Fatal(err)
	}
	if got := gitIn(t, c.dir, "rev-parse", "HEAD"); got != x.head() || get(t, filepath.Join(c.dir, "a")) != "2\n" || gitIn(t, c.dir, "status", "--porcelain") != "" {
		t.Errorf("it stands at %s, not at %s", got, x.head())
	}
}
