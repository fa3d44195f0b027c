package durable

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

const fullEnv = "CENTURION_DURABLE_FULL"

// A full disk, which a limit on files of another process pretends, is an error and leaves the old file.
func TestReplaceOnAFullDisk(t *testing.T) {
	if path := os.Getenv(fullEnv); path != "" {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1000, Max: 1000}); err != nil {
			t.Fatal(err)
		}
		if err := Replace(path, make([]byte, 2000), 0o600); err == nil {
			t.Error("a file that was not written replaces the old one")
		}
		return
	}
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestReplaceOnAFullDisk$")
	cmd.Env = append(os.Environ(), fullEnv+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, []byte("old")) {
		t.Errorf("the old file has %d bytes: %v", len(b), err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".new-*")); err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
}
