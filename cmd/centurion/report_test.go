package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"centurion"
)

// A file is replaced whole: through a link, with the mode that it had, and nothing else is left behind.
func TestReplaceFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "r.md"), filepath.Join(dir, "link.md")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		if runtime.GOOS != "windows" {
			t.Fatal(err)
		}
		t.Skip("links need a right on Windows:", err)
	}
	if err := replaceFile(link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	info, serr := os.Stat(file)
	if err != nil || serr != nil || string(got) != "new" || info.Mode().Perm() != 0o600 {
		t.Errorf("got %q, %v, %v", got, info.Mode(), err)
	}
	if to, err := os.Readlink(link); err != nil || to != file {
		t.Errorf("the link is %q, %v", to, err)
	}
	if all, _ := os.ReadDir(dir); len(all) != 2 {
		t.Errorf("left behind: %v", all)
	}
	if err := replaceFile(dir, nil); centurion.KindOf(err) != centurion.KindUsage {
		t.Errorf("a directory: %v", err)
	}
}
