package store

import (
	"context"
	"errors"
	"sync/atomic"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"centurion"
	"centurion/guard"
)

// update is one call of Update. Its state moves once, from waiting to begun by the writer or to given up by the caller,
// whichever comes first.
type update struct {
	f     func(*Tx) error
	state atomic.Int32
	done  chan error // holds one, so that the writer never waits for a caller
}

const (
	waiting int32 = iota
	begun
	givenUp
)

// Update runs f in a write transaction and returns when the commit that contains it is on disk. Updates that wait at
// the same time are committed together, each in a savepoint of its own: an error of one, which is returned as it is,
// undoes only that one. A panic in f is an error of KindCrashed. A statement that fails makes the update fail, whether
// f passes the error on or not.
//
// f must be quick and must not call Update. It may be run a second time, when the joint commit failed for another's
// reason, so it acts on tx and on variables that it sets afresh and on nothing else. Sequence numbers count once Update
// has returned nil.
//
// If ctx ends before f was begun its cause is returned and nothing happens; what was begun is waited for. Other errors:
// KindDisk if the disk is full or failing, KindState if the file is damaged, busy or closed.
func (s *Store) Update(ctx context.Context, f func(tx *Tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	u := &update{f: f, done: make(chan error, 1)}
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return errClosed("write state")
	}
	s.queue = append(s.queue, u)
	s.wake.Signal()
	s.mu.Unlock()

	select {
	case err := <-u.done:
		return err
	case <-ctx.Done():
		if u.state.CompareAndSwap(waiting, givenUp) {
			return context.Cause(ctx)
		}
		return <-u.done
	}
}

// write is the writer goroutine: it takes everything that waits, commits it and answers, until the store ends.
func (s *Store) write() error {
	var batch []*update
	defer func() {
		// Reached with a batch only if an f ended the goroutine (runtime.Goexit): nobody may wait for ever for it.
		s.end()
		s.mu.Lock()
		batch = append(batch, s.queue...)
		s.mu.Unlock()
		for _, u := range batch {
			select {
			case u.done <- errClosed("write state"):
			default:
			}
		}
	}()
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && !s.ended {
			s.wake.Wait()
		}
		batch, s.queue = s.queue, nil
		s.mu.Unlock()
		if len(batch) == 0 {
			return nil
		}
		s.commit(batch)
		batch = nil
	}
}

// commit runs the updates that were not given up and answers each of them.
func (s *Store) commit(batch []*update) {
	live := make([]*update, 0, len(batch))
	for _, u := range batch {
		if u.state.CompareAndSwap(waiting, begun) {
			live = append(live, u)
		}
	}
	if len(live) > 1 && s.together(live) {
		return
	}
	for _, u := range live {
		s.alone(u)
	}
}

// together commits several updates in one transaction. It reports false, with nothing done and nobody answered, if the
// transaction broke: a full disk makes SQLite roll back all of it, and then each update has to be tried alone.
func (s *Store) together(live []*update) bool {
	if err := s.begin(); err != nil {
		for _, u := range live {
			u.done <- err
		}
		return true
	}
	errs := make([]error, len(live))
	var newest int64
	for i, u := range live {
		if _, err := s.w.exec("SAVEPOINT u"); err != nil {
			s.rollback()
			return false
		}
		seq, err := s.run(u)
		if err != nil {
			errs[i], seq = err, 0
			if _, err := s.w.exec("ROLLBACK TO u"); err != nil {
				s.rollback()
				return false
			}
		}
		if _, err := s.w.exec("RELEASE u"); err != nil {
			s.rollback()
			return false
		}
		newest = max(newest, seq)
	}
	if _, err := s.w.exec("COMMIT"); err != nil {
		s.rollback()
		return false
	}
	if newest > 0 {
		s.announce(newest)
	}
	for i, u := range live {
		u.done <- errs[i]
	}
	return true
}

// alone commits one update and answers it.
func (s *Store) alone(u *update) {
	err := s.begin()
	if err == nil {
		var seq int64
		seq, err = s.run(u)
		if err == nil {
			_, err = s.w.exec("COMMIT")
			err = s.w.fail("write state", err)
		}
		if err != nil {
			s.rollback()
		} else if seq > 0 {
			s.announce(seq)
		}
	}
	u.done <- err
}

// run calls f and returns the newest journal row that it wrote.
func (s *Store) run(u *update) (int64, error) {
	tx := &Tx{c: s.w}
	err := guard.Call("write state", func() error { return u.f(tx) })
	if err == nil {
		err = tx.err
	}
	seq := tx.seq
	*tx = Tx{err: &centurion.Error{Op: "write state", Kind: centurion.KindInternal, Msg: "the transaction was used after its end"}}
	return seq, err
}

// begin takes the write lock at once, so that a transaction never fails half way because another process was faster.
func (s *Store) begin() error {
	_, err := s.w.exec("BEGIN IMMEDIATE")
	if se, ok := errors.AsType[*sqlite.Error](err); ok && se.Code() == sqlite3.SQLITE_ERROR {
		// A transaction is still open: its rollback failed, on a failing disk.
		s.rollback()
		_, err = s.w.exec("BEGIN IMMEDIATE")
	}
	return s.w.fail("write state", err)
}

// rollback ends a transaction that SQLite may have ended already, which is the error that is passed over here.
func (s *Store) rollback() { _, _ = s.w.exec("ROLLBACK") }
