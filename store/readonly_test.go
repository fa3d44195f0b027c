package store

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"centurion"
)

// A state that cannot be written is looked at, with and without a log that was not moved into it, and nothing is made beside it.
func TestOpenReadOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "p.db")
	s := openAt(t, path)
	mustUpdate(t, s, func(tx *Tx) error { return tx.PutMission(&centurion.Mission{ID: "msn_1"}) })
	killed := t.TempDir() // the files as a killed host leaves them
	for _, name := range []string{"p.db", "p.db-wal", "p.db-shm", "p.db-head"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(killed, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, killed} {
		before := fileNames(t, d)
		s, err := OpenReadOnly(t.Context(), filepath.Join(d, "p.db"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Mission(t.Context(), "msn_1"); err != nil {
			t.Error(err)
		}
		err = s.Update(t.Context(), func(*Tx) error { return nil })
		if centurion.KindOf(err) != centurion.KindState || !strings.Contains(err.Error(), "cannot be written") || centurion.HintOf(err) == "" {
			t.Errorf("an update: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if after := fileNames(t, d); after != before {
			t.Errorf("there is %s, and was %s", after, before)
		}
	}
	if _, err := OpenReadOnly(t.Context(), filepath.Join(dir, "none.db")); !Unwritable(err) {
		t.Errorf("without a file: %v", err)
	}
	if _, err := OpenReadOnly(t.Context(), unpack(t, 2, "whole")); err == nil || !strings.Contains(err.Error(), "cannot be written") { // its rows cannot be converted
		t.Errorf("a file of an earlier version: %v", err)
	}
}

func fileNames(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// Nothing but that a state cannot be written is taken for it.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "p.db")
	if err := openAt(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "windows" {
		t.Skip("on Windows a symbolic link takes a privilege")
	}
	if err := os.Symlink(filepath.Join(path, "nowhere"), path+"-shm"); err != nil { // the log's index cannot be made, as on a disk that is mounted read-only
		t.Fatal(err)
	}
	_, err := Open(t.Context(), path)
	if !Unwritable(err) {
		t.Errorf("without room for a log: %v", err)
	}
	s, err := OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte("no database at all, but long enough to be looked at as one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + "-shm"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path); err == nil || Unwritable(err) {
		t.Errorf("what is no database: %v", err)
	}
	s = openTemp(t)
	err = s.read(t.Context(), func(c *conn) error { return c.script("DELETE FROM mission") }) // as on a file that only its owner may write
	if !Unwritable(err) {
		t.Errorf("a write to what may only be read: %v", err)
	}
	if Unwritable(nil) {
		t.Error("no error is one")
	}
}
