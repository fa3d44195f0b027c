package store

import (
	"context"
	"os"
	"strings"

	"centurion"
)

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
