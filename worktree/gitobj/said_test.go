package gitobj

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
)

// What errors say of a repository that lacks something, or whose directory for temporary files cannot be written.
func TestWhatErrorsSay(t *testing.T) {
	t.Parallel()
	x := newRig(t)
	ctx := t.Context()
	none := strings.Repeat("0", 39) + "1"
	blob, err := x.Put(ctx, "blob", []byte("b"))
	if err != nil || blob != x.git("b", "hash-object", "--stdin") {
		t.Fatal(blob, err)
	}
	head := x.git("", "rev-parse", "HEAD")
	temp := x.Temp
	for _, tt := range []struct {
		do   func() error
		want string
	}{
		{func() error { _, _, err := x.Resolve(ctx, "none"); return err }, `not_found: find an object: the repository has no "none"`},
		{func() error { _, _, err := x.Resolve(ctx, "HEAD\nHEAD"); return err }, `not_found: find an object: the repository has no "HEAD\nHEAD"`},
		{func() error { _, _, err := x.Resolve(ctx, "HEAD\x00"); return err }, `not_found: find an object: the repository has no "HEAD\x00"`},
		{func() error { _, err := x.Object(ctx, none, "blob"); return err }, "not_found: read an object: the repository has no blob " + none},
		{func() error { _, err := x.Object(ctx, blob, "tree"); return err }, "not_found: read an object: the repository has no tree " + blob},
		{func() error { _, err := x.ReadTree(ctx, blob); return err }, "not_found: read an object: the repository has no tree " + blob},
		{func() error { return x.MoveRef(ctx, "a b", head, "") }, `usage: move a ref: "a b" is no name of a ref`},
		{func() error { return x.MoveRef(ctx, "a\nb", head, "") }, `usage: move a ref: "a\nb" is no name of a ref`},
		{func() error { return x.MoveRef(ctx, "a\x00", head, "") }, `usage: move a ref: "a\x00" is no name of a ref`},
		{func() error {
			_, err := x.Edit(ctx, "", map[string]Entry{"a/.git/b": {"100644", blob}})
			return err
		}, "usage: write tree: a/.git/b is no path that a commit may have"},
		{func() error {
			x.Temp = filepath.Join(temp, "none", "\x00")
			defer func() { x.Temp = temp }()
			_, err := x.Put(ctx, "blob", nil)
			return err
		}, "disk: write a temporary file"},
	} {
		if got := fmt.Sprintf("%s: %v", centurion.KindOf(tt.do()), tt.do()); got != tt.want && !strings.HasPrefix(got, tt.want+": ") {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
	if fi, err := os.Stat(x.Temp); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("temporary files are for everyone: %v, %v", fi.Mode(), err)
	}
}

// A process that cannot be begun leaves nothing behind.
func TestNoGit(t *testing.T) {
	t.Parallel()
	x := newRig(t)
	x.Command = func(_ context.Context, _ []string) (*exec.Cmd, func() bool, error) {
		return exec.Command(filepath.Join(x.dir, "none")), func() bool { return true }, nil
	}
	_, _, err := x.Resolve(t.Context(), "HEAD")
	if err == nil || !strings.HasPrefix(err.Error(), "cat-file: : ") || !strings.Contains(err.Error(), "none") {
		t.Error(err)
	}
}

// A directory keeps what it holds, with the kind of each entry, and goes with its last one.
func TestTreesOfAllKinds(t *testing.T) {
	t.Parallel()
	x := newRig(t)
	ctx := t.Context()
	f := x.file("f")
	module := Entry{ModeSubmodule, strings.Repeat("1", 40)}
	tree, err := x.Edit(ctx, "", map[string]Entry{"a/b/c": f, "a/m": module, "x": {"100755", f.ID}, "l": {"120000", f.ID}})
	if err != nil {
		t.Fatal(err)
	}
	want := "120000 blob " + f.ID + "\tl\n100755 blob " + f.ID + "\tx\n" + "100644 blob " + f.ID + "\ta/b/c\n160000 commit " + module.ID + "\ta/m"
	lines := strings.Split(x.git("", "ls-tree", "-r", tree), "\n")
	if len(lines) != 4 {
		t.Errorf("%q", lines)
	}
	for _, l := range lines {
		if !strings.Contains("\n"+want+"\n", "\n"+l+"\n") {
			t.Errorf("%q is none of %q", l, want)
		}
	}
	for range 2 { // from git, and from what is known
		var fresh Repo
		fresh.Command, fresh.Failed, fresh.Temp = x.Command, x.Failed, x.Temp
		top, err := fresh.ReadTree(ctx, tree)
		if err != nil || len(top) != 3 || top["a"].Mode != ModeTree || top["x"] != (Entry{"100755", f.ID}) || top["l"] != (Entry{"120000", f.ID}) {
			t.Errorf("%v, %v", top, err)
		}
		again, err := fresh.ReadTree(ctx, tree)
		if err != nil || !maps.Equal(again, top) {
			t.Errorf("%v, %v", again, err)
		}
		fresh.Close()
	}
	for _, tt := range []struct {
		changes map[string]Entry
		want    string
	}{
		{map[string]Entry{"none": {}, "none/x": {}, "x/y": {}, "a/b/none": {}}, "a/b/c a/m l x"},
		{map[string]Entry{"a": {}}, "a/b/c a/m l x"}, // a directory is no file
		{map[string]Entry{"a": Nothing}, "l x"},
		{map[string]Entry{"a/b/c": {}}, "a/m l x"},
		{map[string]Entry{"a/b/c": {}, "a/m": {}}, "l x"},
		{map[string]Entry{"a/b": f}, "a/b a/m l x"},
		{map[string]Entry{"x/y/z": f}, "a/b/c a/m l x/y/z"},
		{map[string]Entry{"a/b/c": {}, "a/m": {}, "x": {}, "l": {}}, ""},
	} {
		id, err := x.Edit(ctx, tree, tt.changes)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := strings.Join(strings.Fields(x.git("", "ls-tree", "-r", "--name-only", id)), " "); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.changes, got, tt.want)
		}
	}
}

func TestReadsTreesOfBothHashes(t *testing.T) {
	t.Parallel()
	for _, oid := range []int{20, 32} {
		one, two := strings.Repeat("\x01", oid), strings.Repeat("\xab", oid)
		content := "40000 a\x00" + one + "100644 b c\x00" + two
		dir, err := parseTree([]byte(content), oid)
		if err != nil || len(dir) != 2 || dir["a"] != (Entry{"040000", strings.Repeat("01", oid)}) || dir["b c"] != (Entry{"100644", strings.Repeat("ab", oid)}) {
			t.Errorf("%v, %v", dir, err)
		}
		for cut := range len(content) {
			if dir, err := parseTree([]byte(content[:cut]), oid); (err == nil) != (cut == 0 || cut == len("40000 a\x00")+oid) {
				t.Errorf("%d of %d bytes: %v, %v", cut, len(content), dir, err)
			}
		}
	}
	for name, want := range map[string]bool{
		strings.Repeat("0a", 20): true, strings.Repeat("f9", 32): true, strings.Repeat("0", 39): false, strings.Repeat("0", 41): false, strings.Repeat("0", 63): false,
		strings.Repeat("0", 65): false, strings.Repeat("A", 40): false, strings.Repeat("g", 40): false, "": false, " " + strings.Repeat("0", 39): false,
	} {
		if IsID(name) != want {
			t.Errorf("%q is an id: %t", name, !want)
		}
	}
}

// The characters that macOS ignores in names, and their neighbours, which it does not.
func TestIgnoredCharacters(t *testing.T) {
	t.Parallel()
	for r := rune(0x2000); r <= 0x2070; r++ {
		ignored := r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f
		if storable(".gi"+string(r)+"t/x") == ignored {
			t.Errorf("%U is ignored: %t", r, !ignored)
		}
	}
	for name, want := range map[string]bool{".git\ufeff": false, ".git\ufefe": true, "a/..": false, "..a": true, ".GIT. .": false, "git~1 ": false, "git~2": true, ":x": true} {
		if storable(name) != want {
			t.Errorf("%q is storable: %t", name, !want)
		}
	}
}
