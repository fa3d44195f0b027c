//go:build unix

package instructions

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A named pipe, which nobody writes to, is not waited for.
func TestPipe(t *testing.T) {
	cfg := tmp(t, nil)
	if err := syscall.Mkfifo(filepath.Join(cfg.Dir, "AGENTS.md"), 0o644); err != nil {
		t.Skip(err)
	}
	if f := find(t, cfg, Want{}); len(f.Files) > 0 || len(f.Problems) != 1 {
		t.Errorf("found %+v", f)
	}
}
