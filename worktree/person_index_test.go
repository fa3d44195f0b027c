package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"centurion"
)

// What the person has staged is what the work brings: nothing is in its way, and nothing of it is staged any more.
func TestMergeOfWhatIsStagedAlready(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long, "b": "b\n"})
	base := x.begin()
	tip := x.commitOf(base.Commit, map[string][]byte{"a": []byte(nine(long)), "b": []byte("B\n")})
	x.write("a", nine(long))
	x.person("add", "a")
	x.write("b", "B\n") // the same, and not staged
	m := x.merged(MergeOptions{Base: base, Tip: tip})
	if m.After != tip {
		t.Errorf("%+v", m)
	}
	x.want(map[string]string{"a": nine(long), "b": "B\n"}, "")
}

// A file that the person does not want in their working tree does not come into it, and is not told as deleted; its new content is in the index.
func TestMergeInASparseTree(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"in/a": "a\n", "out/b": "b\n", "out/gone": "g\n"})
	x.person("sparse-checkout", "set", "in")
	base := x.begin()
	tip := x.commitOf(base.Commit, map[string][]byte{"in/a": []byte("A\n"), "out/b": []byte("B\n")}, "out/gone")
	m := x.merged(MergeOptions{Base: base, Tip: tip})
	x.want(map[string]string{"in/a": "A\n", "out/b": ""}, "")
	if _, err := os.Lstat(filepath.Join(x.top, "out")); err == nil {
		t.Error("what is not wanted in the working tree is in it")
	}
	if got := x.person("show", ":out/b"); got != "B" {
		t.Errorf("the index has %q", got)
	}
	if got := x.person("ls-files", "-t", "out"); got != "S out/b" {
		t.Errorf("the index knows %q", got)
	}
	if u, err := x.Undo(t.Context(), centurion.Merged{Branch: "main", Before: m.Before, Commit: m.After}); err != nil || !u.Clear() {
		t.Fatalf("%+v, %v", u, err)
	}
	if got := x.person("ls-files", "-t", "in"); got != "H in/a" || x.person("show", ":out/b") != "b" {
		t.Errorf("afterwards the index knows %q", got)
	}
}

// The commit of a submodule is merged into the index alone: its files belong to its own repository.
func TestMergeMovesASubmodule(t *testing.T) {
	t.Parallel()
	sub := newRig(t, map[string]string{"s": "1\n"})
	first := sub.head()
	sub.write("s", "2\n")
	sub.person("commit", "-qam", "second")
	second := sub.head()
	x := newRig(t, map[string]string{"a": "a\n"})
	x.person("submodule", "--quiet", "add", sub.top, "sub")
	gitIn(t, filepath.Join(x.top, "sub"), "checkout", "-q", first)
	x.person("add", "-A")
	x.person("commit", "-qm", "with a submodule")
	base := x.begin()
	x.person("update-index", "--cacheinfo", "160000,"+second+",sub")
	tree := x.person("write-tree")
	x.person("reset", "-q")
	tip := x.person("commit-tree", "-p", base.Commit, "-m", "newer", tree)
	m := x.merged(MergeOptions{Base: base, Tip: tip})
	if got := x.person("ls-files", "-s", "sub"); !slices.Contains([]string{"160000 " + second + " 0\tsub"}, got) {
		t.Errorf("the index has %q", got)
	}
	if got := gitIn(t, filepath.Join(x.top, "sub"), "rev-parse", "HEAD"); got != first {
		t.Errorf("the submodule stands at %s", got)
	}
	x.want(map[string]string{"sub/s": "1\n"}, "M sub")
	if u, err := x.Undo(t.Context(), centurion.Merged{Branch: "main", Before: m.Before, Commit: m.After}); err != nil || !u.Clear() {
		t.Fatalf("%+v, %v", u, err)
	}
	x.want(map[string]string{"sub/s": "1\n"}, "")
}

// A copy of an index is as old as the index: git trusts what it knows of a file that is older. Of one that is missing the copy is missing, too.
func TestCopyIndex(t *testing.T) {
	t.Parallel()
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	put(t, from, "index")
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(from, old, old); err != nil {
		t.Fatal(err)
	}
	if err := copyIndex(from, to); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(to); err != nil || !info.ModTime().Equal(old) || get(t, to) != "index" {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.Remove(from); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := copyIndex(from, to); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(to); err == nil {
			t.Error("the copy of an index that is gone has stayed")
		}
	}
}
