package worktree

import (
	"os"
	"path/filepath"
	"testing"

	"centurion"
)

func TestInit(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Init(t.Context(), dir, "First"); err != nil {
		t.Fatal(err)
	}
	r, err := Open(t.Context(), Options{Dir: dir, Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	h, err := r.Head(t.Context())
	if err != nil || h.Branch != "main" || h.Commit == "" {
		t.Fatalf("%+v, %v", h, err)
	}
	if b, err := r.Read(t.Context(), h.Commit+"^{tree}", "a.txt"); err != nil || string(b) != "a\n" {
		t.Errorf("%q, %v", b, err)
	}
	if err := Init(t.Context(), dir, "Again"); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("again: %v", err)
	}
	if err := Init(t.Context(), filepath.Join(dir, "none"), "x"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("no directory: %v", err)
	}
}
