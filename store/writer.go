package store

import (
	"cmp"
	"context"
	"os"
	"strings"
	"sync/atomic"

	sqlite3 "modernc.org/sqlite/lib"

	"centurion"
	"centurion/failpoint"
	"centurion/guard"
)

// update is one call of Update. Its state changes once, from waiting to begun by the writer or to given up by the caller, whichever
// comes first.
type update struct {
	f     func(*Tx) error
	solo  bool         // it has its own transaction
	bare  func() error // runs without a transaction, instead of f; solo
	claim bool         // it makes this process the owner, regardless of the previous one; solo
	epoch int64        // of the claim
	state atomic.Int32
	done  chan error // buffered by one, so that the writer never waits for a caller
}

const (
	waiting int32 = iota
	begun
	givenUp
)

// Update runs f in a write transaction and returns when the commit that contains it is on disk. Simultaneous updates are committed
// together, each in its own savepoint: an error of one, which is returned unchanged, undoes only that one. A panic in f is an error of
// KindCrashed. A failed statement makes the update fail, even if f ignores the error.
//
// f must be quick and must not call Update. It may be run twice, if the joint commit failed because of another update, so it must act
// only on tx and on variables that it sets itself. Sequence numbers are valid once Update has returned nil.
//
// If ctx ends before f has begun, its cause is returned and nothing happens; once begun, f is waited for. Other errors: KindDisk if the
// disk is full or failing, KindState if the file is damaged, busy or closed; KindConflict, with nothing written, if another process has
// called [Store.Own] since this one did.
func (s *Store) Update(ctx context.Context, f func(tx *Tx) error) error {
	return s.submit(ctx, &update{f: f})
}

// submit passes an update to the writer and returns its result.
func (s *Store) submit(ctx context.Context, u *update) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	u.done = make(chan error, 1)
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return cmp.Or(s.refusal, errClosed("write state"))
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

// write is the writer goroutine: it commits all waiting updates and reports their results, until the store ends.
func (s *Store) write() error {
	var batch []*update
	defer func() {
		// Reached with a batch only if an f ended the goroutine (runtime.Goexit): its callers must not wait forever.
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

// commit runs the updates that were not given up and reports the result of each.
func (s *Store) commit(batch []*update) {
	live := make([]*update, 0, len(batch))
	for _, u := range batch {
		if !u.state.CompareAndSwap(waiting, begun) {
			continue
		}
		if u.bare != nil {
			u.done <- u.bare()
		} else if u.solo {
			s.alone(u)
		} else {
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

// together commits several updates in one transaction. It returns false, with nothing done and reported, if the transaction broke: a
// full disk makes SQLite roll back all of it, and then each update has to be tried alone.
func (s *Store) together(live []*update) bool {
	if err := s.begin(false); err != nil {
		for _, u := range live {
			u.done <- err
		}
		return true
	}
	errs := make([]error, len(live))
	var newest int64
	var wrote bool
	for i, u := range live {
		if _, err := s.w.exec("SAVEPOINT u"); err != nil {
			s.rollback()
			return false
		}
		seq, w, err := s.run(u)
		if err != nil {
			errs[i], seq, w = err, 0, false
			clear(s.w.next)
			if _, err := s.w.exec("ROLLBACK TO u"); err != nil {
				s.rollback()
				return false
			}
		}
		if _, err := s.w.exec("RELEASE u"); err != nil {
			s.rollback()
			return false
		}
		newest, wrote = max(newest, seq), wrote || w
	}
	if err := s.finish(newest, wrote); err != nil {
		s.rollback()
		return false
	}
	for i, u := range live {
		u.done <- errs[i]
	}
	return true
}

// alone commits one update and reports its result.
func (s *Store) alone(u *update) {
	err := s.begin(u.claim)
	if err == nil {
		var seq int64
		var wrote bool
		if seq, wrote, err = s.run(u); err == nil {
			err = s.finish(seq, wrote)
		}
		if err != nil {
			s.rollback()
		} else if u.claim {
			s.epoch, s.seen = u.epoch, 0
		}
	}
	u.done <- err
}

// finish commits the transaction and publishes its newest journal row, or that it wrote something else.
func (s *Store) finish(newest int64, wrote bool) error {
	var ticks int64
	if wrote && newest == 0 {
		h, err := s.w.host()
		if err == nil {
			h.ticks++
			ticks, err = h.ticks, s.w.putHost(h)
		}
		if err != nil {
			return s.w.fail("write state", err)
		}
	}
	failpoint.Hit(failpoint.CommitBefore)
	if _, err := s.w.exec("COMMIT"); err != nil {
		return s.w.fail("write state", err)
	}
	failpoint.Hit(failpoint.CommitAfter)
	s.head.advance(newest, ticks)
	if newest > 0 {
		s.announce(newest)
	}
	return nil
}

// run calls f and returns the newest journal row that it wrote, and whether it wrote anything.
func (s *Store) run(u *update) (int64, bool, error) {
	tx := &Tx{c: s.w}
	err := guard.Call("write state", func() error { return u.f(tx) })
	if err == nil {
		err = tx.err
	}
	seq, wrote := tx.seq, tx.wrote
	*tx = Tx{err: &centurion.Error{Op: "write state", Kind: centurion.KindInternal, Msg: "the transaction was used after its end"}}
	return seq, wrote, err
}

// begin takes the write lock at once, so that a transaction never fails half way because another process was faster. If this process
// owns the state it checks that it still does, unless the transaction is a claim.
func (s *Store) begin(claim bool) error {
	_, err := s.w.exec("BEGIN IMMEDIATE")
	if code, ok := sqliteCode(err); ok && code == sqlite3.SQLITE_ERROR {
		// A transaction is still open: its rollback failed, on a failing disk.
		s.rollback()
		_, err = s.w.exec("BEGIN IMMEDIATE")
	}
	if err == nil && s.epoch > 0 && !claim {
		if err = s.owned(); err != nil {
			s.rollback()
		}
	}
	return s.w.fail("write state", err)
}

// rollback ends a transaction. It ignores the error of one that SQLite has already ended.
func (s *Store) rollback() {
	_, _ = s.w.exec("ROLLBACK")
	clear(s.w.next)
}

// ballast is the number of bytes written by [Store.Probe]: more than a commit of a long answer.
const ballast = 64 << 10

// Own makes this process the owner of the state: from now on each update of this Store checks in its transaction whether another
// process has claimed the state since, and is refused with KindConflict if so. Without Own a Store does not check. Calling it again
// claims the state again.
//
// Errors are those of [Store.Update].
func (s *Store) Own(ctx context.Context) error {
	u := &update{solo: true, claim: true}
	u.f = func(tx *Tx) error {
		h, err := tx.c.host()
		if err != nil {
			return tx.failed(err)
		}
		h.epoch++
		h.pid, h.boot, h.since = int64(os.Getpid()), bootID(), centurion.Now().Millis()
		if err := tx.c.putHost(h); err != nil {
			return tx.failed(err)
		}
		tx.wrote, u.epoch = true, h.epoch
		return nil
	}
	return s.submit(ctx, u)
}

// owned refuses a transaction if another process has claimed the state. No other process can have done so while no other connection has
// written, which SQLite reports for a tenth of the cost of reading the row.
func (s *Store) owned() error {
	var version int64
	if err := s.w.each(func(scan func(...any) error) error { return scan(&version) }, "PRAGMA data_version"); err != nil {
		return err
	}
	if version == s.seen {
		return nil
	}
	h, err := s.w.host()
	if err == nil && h.epoch == s.epoch {
		s.seen = version
		return nil
	}
	if err != nil {
		return err
	}
	return &centurion.Error{Op: "write state", Kind: centurion.KindConflict,
		Msg:  "another process has taken over this project's state",
		Hint: "nothing was written here; `centurion ps` shows who works on this project now"}
}

// bootID identifies one boot of the machine; it is empty if the system has no such id.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Probe writes 64 KiB durably and removes them again without a trace. It returns an error of KindDisk while the disk is full or
// failing, and nil once there is space again; the Store then works as before. Other errors are those of [Store.Update].
func (s *Store) Probe(ctx context.Context) error {
	for _, size := range []int{ballast, 0} { // two commits: data written and removed in one never reaches the disk
		err := s.submit(ctx, &update{solo: true, f: func(tx *Tx) error {
			_, err := tx.c.exec(`UPDATE host SET ballast = zeroblob(?)`, size)
			return tx.failed(err)
		}})
		if err != nil {
			return err
		}
	}
	return nil
}
