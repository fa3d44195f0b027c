package tools

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"centurion/guard/synced"
)

// R2: a file outside the project is on the disk before it stands in the place of the old one, and so is its place. It keeps its mode.
func TestFileOutsideIsSynced(t *testing.T) {
	calls := synced.Calls(t, func() {
		name := filepath.Join(t.TempDir(), "d", "a.sh")
		err := writeOutside(name, []byte("old\n"))
		err = errors.Join(err, os.Chmod(name, 0o750), writeOutside(name, []byte("new\n")))
		if err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o750 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
	synced.Want(t, calls, `sync \.new-\d+`, `name \.new-\d+ a\.sh\nsync d`, `sync \.new-\d+`, `name \.new-\d+ a\.sh\nsync d`)
}
