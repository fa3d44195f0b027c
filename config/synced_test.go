package config

import (
	"path/filepath"
	"testing"

	"centurion/guard/synced"
)

// R2: a key file is on the disk before it stands in the place of the old one, and so is its place.
func TestKeyFileIsSynced(t *testing.T) {
	calls := synced.Calls(t, func() {
		if err := writePrivate(filepath.Join(t.TempDir(), "home", "auth.json"), []byte("{}\n")); err != nil {
			t.Error(err)
		}
	})
	synced.Want(t, calls, `sync \.new-\d+`, `name \.new-\d+ auth\.json`, `sync home`)
}
