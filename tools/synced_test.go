package tools

import (
	"os"
	"path/filepath"
	"testing"

	"centurion/guard/synced"
	"centurion/permission"
)

// R2: a file outside the project is on the disk before it stands in the place of the old one, and so is its place. It keeps its mode.
func TestFileOutsideIsSynced(t *testing.T) {
	calls := synced.Calls(t, func() {
		b, name := newBench(t), filepath.Join(t.TempDir(), "d", "a.sh")
		b.gate.rules = []permission.Rule{{Permission: "external_directory", Pattern: "*", Action: permission.Allow}}
		b.must("write", args{"filePath": name, "content": "old\n"})
		if err := os.Chmod(name, 0o750); err != nil {
			t.Error(err)
		}
		b.must("write", args{"filePath": name, "content": "new\n"})
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o750 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
	synced.Want(t, calls, `sync \.a\.sh\d+`, `name \.a\.sh\d+ a\.sh\nsync d`, `sync \.a\.sh\d+`, `name \.a\.sh\d+ a\.sh\nsync d`)
}
