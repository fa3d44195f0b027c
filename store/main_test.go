package store

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(victimEnv); path != "" {
		victim(path)
		return
	}
	goleak.VerifyTestMain(m)
}

func openTemp(tb testing.TB) *Store {
	tb.Helper()
	return openAt(tb, filepath.Join(tb.TempDir(), "state.db"))
}

func openAt(tb testing.TB, path string) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func mustUpdate(tb testing.TB, s *Store, f func(tx *Tx) error) {
	tb.Helper()
	if err := s.Update(tb.Context(), f); err != nil {
		tb.Fatal(err)
	}
}
