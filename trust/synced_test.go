package trust

import (
	"path/filepath"
	"testing"

	"centurion/guard/synced"
)

// A yes or its revocation is on the disk before it stands in the book's place, and so is the place before it counts.
func TestBookIsSynced(t *testing.T) {
	calls := synced.Calls(t, func() {
		b, err := Open(filepath.Join(t.TempDir(), "state"))
		if err == nil {
			err = b.Trust(File{Name: "f"})
		}
		if err != nil {
			t.Error(err)
		}
	})
	synced.Want(t, calls, `sync \S+`, `name \S+ trust\.json`, `sync state`)
}
