package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"centurion"
	"centurion/guard/synced"
)

// R2: before a state is migrated its copy is on the disk under its own name.
func TestCopyBeforeMigrationIsSynced(t *testing.T) {
	calls := synced.Calls(t, func() {
		s, err := Open(t.Context(), unpack(t, olderVersions[0], "whole"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	synced.Want(t, calls, `sync \S+\.v\d+\.tmp\d+`, `name \S+\.tmp\d+ \S+\.v\d+\nsync 001`)
}

// R2: a salvaged state is on the disk before it stands in the place of the damaged one, which is kept aside.
func TestSalvageIsSynced(t *testing.T) {
	calls := synced.Calls(t, func() {
		path := filepath.Join(t.TempDir(), "deep", "state.db")
		s := openAt(t, path)
		mustUpdate(t, s, func(tx *Tx) error { return tx.PutSession(&centurion.Session{ID: "ses_1"}) })
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, bytes.Replace(b, []byte(`{"id":"ses_1"`), []byte(`{"id":"ses_X"`), 1), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if report, err := Salvage(t.Context(), path); err != nil || len(report.Aside) == 0 {
			t.Error(report, err)
		}
	})
	synced.Want(t, calls, `sync new\.db`, `name state\.db state\.db\.damaged-\S+`, `name new\.db state\.db`, `name state\.db-head \S+\nsync deep`)
}

// R2: the directories that a new state makes are on the disk.
func TestNewStateIsSynced(t *testing.T) {
	calls := synced.Calls(t, func() {
		if err := openAt(t, filepath.Join(t.TempDir(), "upper", "lower", "state.db")).Close(); err != nil {
			t.Error(err)
		}
	})
	synced.Want(t, calls, `sync upper`, `sync lower`, `sync state\.db-wal`)
}
