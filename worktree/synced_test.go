package worktree

import (
	"path/filepath"
	"testing"

	"centurion/guard/synced"
)

// R2: the record of a landing, and the index that a landing installs, are on the disk before their names are, and so are the names.
func TestReplacedFilesAreSynced(t *testing.T) {
	calls := synced.Calls(t, func() {
		u := &userSide{objects: &objects{repository: &repository{gitDir: t.TempDir()}}}
		if err := u.writeJournal(journal{}); err != nil {
			t.Error(err)
		}
		if err := u.installIndex(filepath.Join(u.gitDir, journalName)); err != nil {
			t.Error(err)
		}
	})
	synced.Want(t, calls, `sync \.new-\d+`, `name \.new-\d+ centurion-merge\.json\nsync 001`, `sync \.new-\d+`, `name \.new-\d+ index\nsync 001`)
}
