package durable

import (
	"path/filepath"
	"testing"

	"centurion/guard/synced"
)

// A file is on the disk before it stands in the place of the old one, and so is its place.
func TestReplaceIsSynced(t *testing.T) {
	calls := synced.Calls(t, func() {
		if err := Replace(filepath.Join(t.TempDir(), "a"), []byte("new"), 0o600); err != nil {
			t.Error(err)
		}
	})
	synced.Want(t, calls, `sync \.new-\d+`, `name \.new-\d+ a`, `sync 001`)
}
