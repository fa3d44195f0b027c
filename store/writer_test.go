package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"centurion"
)

// hold keeps the writer busy until release is called, so that what comes meanwhile is committed together.
func hold(t *testing.T, s *Store) (release func()) {
	t.Helper()
	entered, leave := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Update(t.Context(), func(*Tx) error { close(entered); <-leave; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-entered
	return sync.OnceFunc(func() { close(leave); wg.Wait() })
}

// inQueue waits until n updates wait for the writer.
func inQueue(s *Store, n int) {
	for {
		s.mu.Lock()
		got := len(s.queue)
		s.mu.Unlock()
		if got >= n {
			return
		}
		runtime.Gosched()
	}
}

func fact(tx *Tx, session string) error {
	return second(tx.Append(centurion.Event{Type: centurion.EventTaskQueued, Session: session}))
}

// Updates that are committed together fail alone, and a panic is one more way to fail.
func TestUpdateTogether(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	failed := errors.New("no")
	var wg sync.WaitGroup
	release := hold(t, s)
	const n = 30
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			errs[i] = s.Update(t.Context(), func(tx *Tx) error {
				if err := fact(tx, fmt.Sprint(i%3)); err != nil {
					return err
				}
				switch i % 3 {
				case 1:
					return failed
				case 2:
					panic("boom")
				}
				return nil
			})
		})
	}
	inQueue(s, n)
	changed := s.Changed()
	release()
	wg.Wait()
	<-changed
	for i, err := range errs {
		switch {
		case i%3 == 0 && err != nil, i%3 == 1 && err != failed, i%3 == 2 && centurion.KindOf(err) != centurion.KindCrashed:
			t.Errorf("update %d: %v", i, err)
		}
	}
	found, err := s.Events(t.Context(), EventQuery{})
	if err != nil || len(found) != n/3 {
		t.Fatalf("%d events, %v", len(found), err)
	}
	for i, e := range found {
		if e.Session != "0" || e.Seq != int64(i+1) {
			t.Errorf("event %d is %+v", i, e)
		}
	}
	if s.LastSeq() != n/3 {
		t.Errorf("last seq %d", s.LastSeq())
	}
}

func TestUpdateContext(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error)
	release := hold(t, s)
	var wg sync.WaitGroup
	wg.Go(func() {
		ended <- s.Update(ctx, func(*Tx) error { t.Error("it was begun after its context had ended"); return nil })
	})
	inQueue(s, 1)
	cancel(centurion.ErrBudget)
	if err := <-ended; err != centurion.ErrBudget { // while the writer is still busy
		t.Error(err)
	}
	release()
	wg.Wait()
	if err := s.Update(ctx, func(*Tx) error { t.Error("begun"); return nil }); err != centurion.ErrBudget {
		t.Error(err)
	}
	if _, err := s.Missions(ctx); err != centurion.ErrBudget {
		t.Error(err)
	}

	// What was begun is waited for and counts.
	ctx, cancel = context.WithCancelCause(t.Context())
	if err := s.Update(ctx, func(tx *Tx) error { cancel(centurion.ErrShutdown); return fact(tx, "kept") }); err != nil {
		t.Error(err)
	}
	if s.LastSeq() != 1 {
		t.Error("it did not happen")
	}
}

// A read waits for a free connection no longer than its context.
func TestReadContext(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	for range readers {
		c := <-s.free
		defer func() { s.free <- c }()
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := s.Missions(ctx); err != centurion.ErrCancelled {
			t.Error(err)
		}
	})
	cancel(centurion.ErrCancelled)
	wg.Wait()
}

// A full disk refuses what does not fit and nothing else, and the store goes on when there is space again.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	mustUpdate(t, s, func(tx *Tx) error { return fact(tx, "before") })
	var pages int
	if err := s.w.row("PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	limit := func(n int) {
		t.Helper()
		if err := s.w.script(fmt.Sprint("PRAGMA max_page_count = ", n)); err != nil {
			t.Fatal(err)
		}
	}
	limit(pages + 2)
	big := func(tx *Tx) error {
		if err := fact(tx, "big"); err != nil {
			return err
		}
		return tx.PutTask(&centurion.Task{ID: "tsk_1", Prompt: strings.Repeat("x", 1<<17)})
	}
	var wg sync.WaitGroup
	release := hold(t, s)
	for i := range 20 {
		wg.Go(func() {
			f, want := func(tx *Tx) error { return fact(tx, "small") }, centurion.Kind("")
			if i%5 == 0 {
				f, want = big, centurion.KindDisk
			}
			if err := s.Update(t.Context(), f); centurion.KindOf(err) != want || err != nil && centurion.HintOf(err) == "" {
				t.Errorf("update %d: %v", i, err)
			}
		})
	}
	inQueue(s, 20)
	release()
	wg.Wait()
	if small, big := count(t, s, `SELECT count(*) FROM journal WHERE session = 'small'`), count(t, s, `SELECT count(*) FROM journal WHERE session = 'big'`); small != 16 || big != 0 {
		t.Errorf("%d small facts, %d of updates that failed", small, big)
	}
	limit(1 << 30)
	mustUpdate(t, s, big)
	if got, err := s.Events(t.Context(), EventQuery{After: s.LastSeq() - 1}); err != nil || len(got) != 1 || got[0].Session != "big" {
		t.Errorf("%v, %v", got, err)
	}
}

// A commit that fails for one reason or another makes each update run again by itself, and each is answered truly.
func TestRunAgain(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	var wg sync.WaitGroup
	release := hold(t, s)
	runs := make([]int, 4)
	for i := range runs {
		wg.Go(func() {
			err := s.Update(t.Context(), func(tx *Tx) error {
				runs[i]++
				if i == 0 {
					_, _ = tx.c.exec("ROLLBACK") // as SQLite does by itself when a disk fails
					return errors.New("broken")
				}
				return fact(tx, fmt.Sprint(i))
			})
			if (err != nil) != (i == 0) {
				t.Errorf("update %d: %v", i, err)
			}
		})
	}
	inQueue(s, len(runs))
	release()
	wg.Wait()
	if runs[0] != 2 {
		t.Errorf("the one that broke it ran %d times", runs[0])
	}
	if n := count(t, s, `SELECT count(DISTINCT session) FROM journal`); n != 3 || s.LastSeq() != 3 {
		t.Errorf("%d facts, last %d", n, s.LastSeq())
	}
}

// An update cannot succeed past a failed statement, nor act after its end.
func TestTxFailed(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	err := s.Update(t.Context(), func(tx *Tx) error {
		_, _ = tx.exec("INSERT INTO nowhere VALUES (1)")
		_ = fact(tx, "after")
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Error(err)
	}
	if err := s.Update(t.Context(), func(tx *Tx) error { return tx.PutMission(&centurion.Mission{}) }); centurion.KindOf(err) != centurion.KindInternal {
		t.Errorf("a mission without an id: %v", err)
	}
	if err := s.Update(t.Context(), func(tx *Tx) error { return tx.PutPart(&centurion.Part{ID: "prt_1", Type: "odd"}) }); centurion.KindOf(err) != centurion.KindInternal {
		t.Errorf("a part of an unknown type: %v", err)
	}
	var kept *Tx
	mustUpdate(t, s, func(tx *Tx) error { kept = tx; return nil })
	if err := fact(kept, "late"); err == nil {
		t.Error("a transaction can be used after its end")
	}
	if _, err := kept.PendingDeliveries("ses_1"); err == nil {
		t.Error("a transaction can be read after its end")
	}
	if s.LastSeq() != 0 {
		t.Errorf("last seq %d", s.LastSeq())
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	release := hold(t, s)
	var waits, closing sync.WaitGroup
	waits.Go(func() {
		if err := s.Update(t.Context(), func(tx *Tx) error { return fact(tx, "waits") }); err != nil {
			t.Error("what waited when the store was closed was not committed:", err)
		}
	})
	inQueue(s, 1)
	closing.Go(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	release()
	waits.Wait()
	closing.Wait()
	<-s.Changed()
	<-s.Changed()
	if err := s.Update(t.Context(), func(*Tx) error { t.Error("begun"); return nil }); centurion.KindOf(err) != centurion.KindState {
		t.Error(err)
	}
	if _, err := s.Missions(t.Context()); centurion.KindOf(err) != centurion.KindState {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.Path() + "-wal"); !os.IsNotExist(err) {
		t.Error("the log is left behind:", err)
	}
	s = openAt(t, s.Path())
	if s.LastSeq() != 1 {
		t.Errorf("last seq %d after a restart", s.LastSeq())
	}
}

// A goroutine that waits for facts is woken by Close.
func TestCloseWakes(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	changed := s.Changed()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-changed
}

// An f that ends its goroutine (as t.Fatal does) takes the writer with it, but lets nobody wait for ever.
func TestGoexit(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	began, queued, second := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Update(t.Context(), func(*Tx) error { close(began); <-queued; runtime.Goexit(); return nil }); centurion.KindOf(err) != centurion.KindState {
			t.Error(err)
		}
	})
	<-began
	wg.Go(func() { second <- s.Update(t.Context(), func(*Tx) error { return nil }) })
	for n := 0; n == 0; runtime.Gosched() {
		s.mu.Lock()
		n = len(s.queue)
		s.mu.Unlock()
	}
	close(queued)
	select {
	case err := <-second:
		if centurion.KindOf(err) != centurion.KindState {
			t.Errorf("the update that was queued: %v", err)
		}
		wg.Wait()
	case <-time.After(60 * time.Second):
		t.Error("the update that was queued waits for ever")
	}
	if err := s.Update(t.Context(), func(*Tx) error { return nil }); centurion.KindOf(err) != centurion.KindState {
		t.Error(err)
	}
	if err := s.Close(); centurion.KindOf(err) != centurion.KindCrashed {
		t.Errorf("the end of the writer goes unsaid: %v", err)
	}
}

// A reader that fetches the channel first, then reads, then waits, sees every fact.
func TestChanged(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	const writers, each = 8, 20
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range each {
				var seq int64
				if err := s.Update(t.Context(), func(tx *Tx) (err error) {
					if err := onePart(tx, benchPart(fmt.Sprint("ses_", w), "msg_1")); err != nil {
						return err
					}
					seq, err = tx.Append(centurion.Event{Type: centurion.EventTaskQueued})
					return err
				}); err != nil {
					t.Error(err)
				}
				// An answer comes after the commit, so everybody can read what was acknowledged.
				if n := count(t, s, fmt.Sprint("SELECT count(*) FROM journal WHERE seq = ", seq)); n != 1 || s.LastSeq() < seq {
					t.Errorf("%d is acknowledged and not there; the last is %d", seq, s.LastSeq())
				}
			}
		})
	}
	for range 3 {
		wg.Go(func() {
			var after int64
			for after < 2*writers*each {
				changed := s.Changed()
				last := s.LastSeq()
				found, err := s.Events(t.Context(), EventQuery{After: after, Limit: 50})
				if err != nil {
					t.Error(err)
					return
				}
				if len(found) == 0 {
					if last > after {
						t.Errorf("%d is committed and cannot be read after %d", last, after)
						return
					}
					<-changed
				}
				for _, e := range found {
					if after++; e.Seq != after {
						t.Errorf("%d follows %d", e.Seq, after-1)
						return
					}
				}
			}
		})
	}
	wg.Wait()

	quiet := s.Changed()
	mustUpdate(t, s, func(tx *Tx) error { return tx.PutMission(&centurion.Mission{ID: "msn_1"}) })
	select {
	case <-quiet:
		t.Error("a commit without facts wakes the readers")
	default:
	}
}

func TestFail(t *testing.T) {
	t.Parallel()
	own := &centurion.Error{Kind: centurion.KindBudget}
	for _, c := range []struct {
		err  error
		want centurion.Kind
	}{
		{nil, ""},
		{own, centurion.KindBudget},
		{&os.PathError{Err: syscall.ENOSPC}, centurion.KindDisk},
		{&os.PathError{Err: syscall.EIO}, centurion.KindDisk},
		{&os.PathError{Err: syscall.EACCES}, centurion.KindState},
		{errors.New("odd"), centurion.KindInternal},
	} {
		if got := centurion.KindOf(fail("write state", "/x", c.err)); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}

// An update that fails leaves no gap in the numbers of the journal: a missing number means a lost event.
func TestNumbersAfterAFailure(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	broken := errors.New("broken")
	for want := range int64(3) {
		if err := s.Update(t.Context(), func(tx *Tx) error { return fact(tx, "1") }); err != nil || s.LastSeq() != want+1 {
			t.Fatalf("the newest is %d, want %d: %v", s.LastSeq(), want+1, err)
		}
		if err := s.Update(t.Context(), func(tx *Tx) error { return errors.Join(fact(tx, "2"), broken) }); !errors.Is(err, broken) {
			t.Fatal(err)
		}
	}
}
