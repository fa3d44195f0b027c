package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"centurion"
)

// TRIAL R16: who has lost the state to another process writes nothing more; who never claimed it is not asked.
func TestOwn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	first, second, free := openAt(t, path), openAt(t, path), openAt(t, path)
	write := func(s *Store, session string) error {
		return s.Update(t.Context(), func(tx *Tx) error { return fact(tx, session) })
	}
	if err := errors.Join(first.Own(t.Context()), write(first, "1"), second.Own(t.Context()), write(second, "2"), write(free, "3")); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 5 { // some of them together
		wg.Go(func() {
			err := write(first, "lost")
			if centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(err.Error(), "another process has taken over") {
				t.Errorf("%v of kind %s", err, centurion.KindOf(err))
			}
		})
	}
	wg.Wait()
	if err := first.Probe(t.Context()); centurion.KindOf(err) != centurion.KindConflict {
		t.Error(err)
	}
	if n := count(t, second, `SELECT count(*) FROM journal WHERE session = 'lost'`); n != 0 {
		t.Errorf("%d facts of a process that has lost the state", n)
	}
	if err := errors.Join(write(second, "2"), first.Own(t.Context()), write(first, "1")); err != nil {
		t.Error(err)
	}
	if err := write(second, "lost"); centurion.KindOf(err) != centurion.KindConflict {
		t.Error(err)
	}
	if n := count(t, free, fmt.Sprintf(`SELECT count(*) FROM host WHERE pid = %d AND since > 0 AND boot = '%s'`, os.Getpid(), bootID())); n != 1 {
		t.Error("it is not written down who has claimed the state")
	}
	if b := bootID(); runtime.GOOS == "linux" && (len(b) != 36 || strings.TrimSpace(b) != b) {
		t.Errorf("the machine's start is known as %q", b)
	}
	if n := count(t, free, `SELECT epoch FROM host`); n != 3 {
		t.Errorf("epoch %d after three claims", n)
	}
}

// TRIAL R16: updates that are committed together look for a new owner as one alone does.
func TestOwnTogether(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	first, second := openAt(t, path), openAt(t, path)
	if err := first.Own(t.Context()); err != nil {
		t.Fatal(err)
	}
	busy, free := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // keeps the writer busy until the others wait behind it; meanwhile the state gets another owner
		err := first.submit(t.Context(), &update{solo: true, bare: func() error { close(busy); <-free; return second.Own(t.Context()) }})
		if err != nil {
			t.Error(err)
		}
	})
	<-busy
	for range 3 {
		wg.Go(func() {
			err := first.Update(t.Context(), func(tx *Tx) error { return fact(tx, "lost") })
			if centurion.KindOf(err) != centurion.KindConflict {
				t.Errorf("%v of kind %s", err, centurion.KindOf(err))
			}
		})
	}
	for waiting := 0; waiting < 3; {
		runtime.Gosched()
		first.mu.Lock()
		waiting = len(first.queue)
		first.mu.Unlock()
	}
	close(free)
	wg.Wait()
	if n := count(t, second, `SELECT count(*) FROM journal WHERE session = 'lost'`); n != 0 {
		t.Errorf("%d facts of a process that has lost the state", n)
	}
}

// A probe needs space, tells when there is none, and leaves nothing behind.
func TestProbe(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	if err := s.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.w.script("PRAGMA max_page_count = 1"); err != nil { // no more than there is
		t.Fatal(err)
	}
	// The pages that the first probe gave back are taken.
	if err := s.Update(t.Context(), func(tx *Tx) error {
		return tx.PutMission(&centurion.Mission{ID: "msn_1", Goal: strings.Repeat("x", ballast-4096)})
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Probe(t.Context()); centurion.KindOf(err) != centurion.KindDisk || centurion.HintOf(err) == "" {
		t.Errorf("on a full disk: %v", err)
	}
	if err := s.w.script("PRAGMA max_page_count = 1000000"); err != nil {
		t.Fatal(err)
	}
	if err := s.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	if n := count(t, s, `SELECT length(ballast) FROM host`); n != 0 || s.LastSeq() != 0 {
		t.Errorf("%d bytes are left", n)
	}
}
