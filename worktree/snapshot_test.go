package worktree

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"centurion"
)

const baseRef = "refs/centurion/base/msn_1"

func (x *rig) snapshot(dirty bool) centurion.Base {
	x.t.Helper()
	b, err := x.Snapshot(x.t.Context(), baseRef, dirty)
	if err != nil {
		x.t.Fatal(err)
	}
	if got := x.person("rev-parse", baseRef); got != b.Commit {
		x.t.Errorf("the ref is at %s, not at %s", got, b.Commit)
	}
	return b
}

// snapshotOnly asks the person's git nothing.
func (x *rig) snapshotOnly() centurion.Base {
	x.t.Helper()
	b, err := x.Snapshot(x.t.Context(), baseRef, true)
	if err != nil {
		x.t.Fatal(err)
	}
	return b
}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n", "b": "1\n", "gone": "1\n", "staged": "1\n", ".gitignore": "ignored\n", ".opencode/agent.md": "1\n"})
	head := x.head()
	if b := x.snapshot(true); !reflect.DeepEqual(b, centurion.Base{Commit: head, Head: head, Branch: "main"}) {
		t.Errorf("a clean tree: %+v", b)
	}
	x.write("a", "2\n")
	x.write("new/ü \"x\"\n", "new\n")
	x.write("ignored", "x")
	x.write("staged", "2\n")
	x.write(".opencode/agent.md", "2\n")
	x.write(".opencode/todo.md", "2\n")
	x.write("nested/file", "its own")
	gitIn(t, filepath.Join(x.top, "nested"), "init", "-q")
	os.Remove(filepath.Join(x.top, "gone"))
	os.Chmod(filepath.Join(x.top, "b"), 0o755)
	os.Symlink("a", filepath.Join(x.top, "link"))
	x.person("add", "-f", "staged", ".opencode/agent.md")
	x.write("staged", "3\n")
	status := x.person("status", "--porcelain")
	before := get(t, filepath.Join(x.top, ".git/index"))
	b := x.snapshot(true)
	if b.Head != head || b.Branch != "main" || b.Dirty != 6 || x.person("rev-parse", b.Commit+"^") != head {
		t.Errorf("%+v", b)
	}
	got := x.person("diff-tree", "-r", "--no-renames", "--name-status", "-z", head, b.Commit)
	if want := "M\x00a\x00M\x00b\x00D\x00gone\x00A\x00link\x00A\x00new/ü \"x\"\n\x00M\x00staged\x00"; got != want {
		t.Errorf("changed %q", got)
	}
	if got := x.person("show", b.Commit+":staged"); got != "3" {
		t.Errorf("staged: %q", got)
	}
	if get(t, filepath.Join(x.top, ".git/index")) != before {
		t.Error("the index was touched")
	}
	if got := x.person("status", "--porcelain"); got != status {
		t.Errorf("status %q, before %q", got, status)
	}
	if b := x.snapshot(false); b.Commit != head || b.Dirty != 0 {
		t.Errorf("without uncommitted work: %+v", b)
	}
}

func TestSnapshotOfAnEmptyRepository(t *testing.T) {
	t.Parallel()
	x := newRig(t, nil)
	if b := x.snapshot(false); b.Head != "" || b.Branch != "main" || b.Dirty != 0 || x.person("ls-tree", "-r", b.Commit) != "" {
		t.Errorf("%+v", b)
	}
	if b := x.snapshot(true); b.Head != "" || b.Dirty != 0 || x.person("ls-tree", "-r", b.Commit) != "" {
		t.Errorf("nothing in it: %+v", b)
	}
	x.write(".opencode/x", "1")
	if b := x.snapshot(true); b.Dirty != 0 || x.person("ls-tree", "-r", b.Commit) != "" {
		t.Errorf("only .opencode: %+v", b)
	}
	c := x.take("work/T0", x.snapshot(true).Commit)
	if done := commit(t, c); done.ID != "" {
		t.Errorf("nothing was written: %+v", done)
	}
	put(t, filepath.Join(c.Where().Dir, "b"), "2")
	if done := commit(t, c); len(done.Files) != 1 {
		t.Errorf("the first file: %+v", done)
	}
	x.write("a", "1")
	b := x.snapshot(true)
	if b.Head != "" || b.Dirty != 1 || x.person("ls-tree", "-r", "--name-only", b.Commit) != "a" || x.person("log", "--format=%P", b.Commit) != "" {
		t.Errorf("%+v", b)
	}
	c = x.take("work/T1", b.Commit)
	put(t, filepath.Join(c.Where().Dir, "b"), "2")
	if done := commit(t, c); done.Parent != b.Commit {
		t.Errorf("%+v", done)
	}
	if _, err := os.Stat(filepath.Join(x.top, ".git/index")); err == nil {
		t.Error("the person has an index now")
	}
}

func TestSnapshotInTheMiddleOfAMerge(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n", "b": "1\n"})
	x.person("checkout", "-qb", "other")
	x.write("a", "2\n")
	x.write("b", "2\n")
	x.person("commit", "-qam", "2")
	x.person("checkout", "-q", "main")
	x.write("a", "3\n")
	x.write("b", "3\n")
	x.person("commit", "-qam", "3")
	tryGit(t.Context(), x.top, "merge", "other")
	if _, err := x.Snapshot(t.Context(), baseRef, true); centurion.KindOf(err) != centurion.KindConflict || centurion.HintOf(err) == "" ||
		!strings.HasSuffix(err.Error(), "a merge is not finished: 2 unmerged files, the first is a") {
		t.Errorf("%v", err)
	}
	if b := x.snapshot(false); b.Commit != x.head() {
		t.Errorf("%+v", b)
	}
}

// Big untracked files are left out, the biggest first, until the others are within the limit; what is tracked or staged comes along.
func TestSnapshotLeavesBigFilesOut(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n", ".gitignore": "ignored\n"})
	sparse := func(name string, size int64) {
		x.write(name, "")
		if err := os.Truncate(filepath.Join(x.top, name), size); err != nil {
			t.Fatal(err)
		}
	}
	sparse("ignored", 2*MaxUntracked)
	sparse("data/ü big.bin", MaxUntracked)
	sparse("data/bigger.bin", MaxUntracked+1)
	sparse("small", 1)
	sparse("staged.bin", MaxUntracked+7)
	x.person("add", "staged.bin")
	b := x.snapshot(true)
	if want := []string{"data/bigger.bin", "data/ü big.bin"}; !slices.Equal(b.LeftOut, want) || b.LeftOutBytes != 2*MaxUntracked+1 || b.Dirty != 2 {
		t.Errorf("left out %q, %d bytes; %d files came along", b.LeftOut, b.LeftOutBytes, b.Dirty)
	}
	if got, want := b.Uncommitted(), " with 2 uncommitted files, without data/bigger.bin and 1 more (100 MB untracked; git add them to include them)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := x.person("ls-tree", "-r", "--name-only", "-z", b.Commit); got != ".gitignore\x00a\x00small\x00staged.bin\x00" {
		t.Errorf("the snapshot has %q", got)
	}
	os.Remove(filepath.Join(x.top, "data/bigger.bin"))
	os.Remove(filepath.Join(x.top, "small"))
	if b := x.snapshot(true); b.LeftOut != nil || b.Dirty != 2 {
		t.Errorf("at the limit: %+v", b)
	}
}
