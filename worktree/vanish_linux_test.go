package worktree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A tool or command may be writing while the changes are looked at: what disappears meanwhile is left out, and is no error.
func TestFilesDisappearFromAnUpperLayer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"a/x", "b.txt", "c/y", "d.txt"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(at(name)), 0o755), os.WriteFile(at(name), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	var u upper
	err := u.walk(dir, "", func(p string) bool {
		if p == "a" { // its entries and those of the top have been listed, or are next
			if err := errors.Join(os.RemoveAll(at("a")), os.Remove(at("b.txt"))); err != nil {
				t.Error(err)
			}
		}
		if p == "c" {
			if err := os.RemoveAll(at("c")); err != nil {
				t.Error(err)
			}
		}
		return false
	})
	var files []string
	for _, f := range u.files {
		files = append(files, f.path)
	}
	if err != nil || !slices.Equal(files, []string{"d.txt"}) {
		t.Errorf("%v, %v", files, err)
	}
	var none upper
	if err := none.walk(dir, "c", nil); err != nil || len(none.files) > 0 {
		t.Errorf("below a directory that has gone: %v, %v", none, err)
	}
}

// The same between the look and the storing, by ourselves and by git.
func TestFilesDisappearBeforeTheyAreStored(t *testing.T) {
	for name, attributes := range map[string]string{"as they are": "", "by git": "* text=auto\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := layeredRig(t, map[string]string{".gitattributes": attributes, "kept.txt": "a\n", "gone.txt": "a\n"})
			c := x.takeHead("work")
			x.sh(c, "echo b > kept.txt; echo b > gone.txt; echo x > .half; echo x > new.txt")
			s, err := c.stack(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			u, err := c.look(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			x.sh(c, "rm .half gone.txt")
			tree, err := c.upperTree(t.Context(), s, u, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := x.person("ls-tree", "-r", "--name-only", tree), ".gitattributes\nkept.txt\nnew.txt"; got != want {
				t.Errorf("stored is %q, want %q", got, want)
			}
			if got := x.person("show", fmt.Sprint(tree, ":kept.txt")); got != "b" {
				t.Errorf("kept.txt is %q", got)
			}
		})
	}
}
