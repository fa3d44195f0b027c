//go:build unix

package instructions

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file that is exchanged for something else after it was looked at is not read: what was opened is what counts.
func TestExchangedWhileLookedAt(t *testing.T) {
	cfg := tmp(t, map[string]string{"repo/project/AGENTS.md": "be kind"})
	name := filepath.Join(cfg.Dir, "AGENTS.md")
	exchange := func(string) bool {
		if err := errors.Join(os.Remove(name), syscall.Mkfifo(name, 0o644)); err != nil {
			t.Fatal(err)
		}
		return false
	}
	f := find(t, cfg, Want{Withheld: exchange})
	if len(f.Files) > 0 || len(f.Problems) != 1 || !strings.Contains(f.Problems[0], "no regular file") {
		t.Errorf("found %+v", f)
	}
}

// A link that leads out and takes the place of a file that was looked at is not followed.
func TestExchangedForLinkOut(t *testing.T) {
	cfg := tmp(t, map[string]string{"repo/project/AGENTS.md": "be kind", "home/id_rsa": "KEY"})
	name := filepath.Join(cfg.Dir, "AGENTS.md")
	exchange := func(string) bool {
		if err := errors.Join(os.Remove(name), os.Symlink(filepath.Join(cfg.Home, "id_rsa"), name)); err != nil {
			t.Fatal(err)
		}
		return false
	}
	if f := find(t, cfg, Want{Withheld: exchange}); len(f.Files) > 0 || len(f.Problems) != 1 || !strings.Contains(f.Problems[0], "outside") {
		t.Errorf("found %+v", f)
	}
}

// A named pipe, which nobody writes to, is not waited for.
func TestPipe(t *testing.T) {
	cfg := tmp(t, nil)
	if err := syscall.Mkfifo(filepath.Join(cfg.Dir, "AGENTS.md"), 0o644); err != nil {
		t.Fatal(err)
	}
	if f := find(t, cfg, Want{}); len(f.Files) > 0 || len(f.Problems) != 1 {
		t.Errorf("found %+v", f)
	}
}
