package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"centurion"
)

func TestRemove(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	w, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, name := range []string{filepath.Join(dir, "a"), filepath.Join(dir, "full", "b"), filepath.Join(outside, "c")} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // what is gone already is no error
		if err := w.Remove("a"); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
		t.Error("a is still there")
	}
	if err := w.Remove("full"); err == nil {
		t.Error("a directory with a file in it was removed")
	}
	for _, name := range []string{"../c", filepath.Join(outside, "c")} {
		if err := w.Remove(name); centurion.KindOf(err) != centurion.KindPermission {
			t.Errorf("%s: %v", name, err)
		}
	}
	if os.Symlink(outside, filepath.Join(dir, "link")) == nil { // not everywhere
		if err := w.Remove("link/c"); centurion.KindOf(err) != centurion.KindPermission {
			t.Errorf("through a link: %v", err)
		}
		if err := w.Remove("link"); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(outside, "c")); err != nil {
		t.Error(err)
	}
}
