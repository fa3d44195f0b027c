package store

import (
	"context"
	"os"

	"centurion"
)

// TaskCount returns the number of tasks in all missions of the project.
func (s *Store) TaskCount(ctx context.Context) (n int, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.each(func(scan func(...any) error) error { return scan(&n) }, `SELECT count(*) FROM task`)
	})
	return n, err
}

// RemoveTask deletes a task and its deliveries, and with session its session, messages and parts, too. Its journal rows and its
// receipts stay. A missing task is no error.
func (tx *Tx) RemoveTask(id string, session bool) error {
	found, err := txList[centurion.Task](tx, taskTable, ` WHERE id = ?`, id)
	if err != nil || len(found) == 0 {
		return err
	}
	tx.wrote = true
	remove := func(arg string, queries ...string) error {
		for _, q := range queries {
			if _, err := tx.exec(q, arg); err != nil {
				return err
			}
		}
		return nil
	}
	err = remove(id, `DELETE FROM delivery WHERE mission = (SELECT mission FROM task WHERE id = ?1) AND task = ?1`,
		`DELETE FROM task WHERE id = ?`)
	if err == nil && session {
		err = remove(found[0].Session, `DELETE FROM part WHERE session = ?`, `DELETE FROM message WHERE session = ?`,
			`DELETE FROM session WHERE id = ?`)
	}
	return err
}

// Deliveries returns the deliveries of a mission, taken and pending, oldest first.
func (tx *Tx) Deliveries(mission string) ([]Delivery, error) {
	return txList[Delivery](tx, deliveryTable, ` WHERE mission = ? ORDER BY seq`, mission)
}

// TakenDeliveries returns the deliveries that a session of a mission has taken, oldest first.
func (tx *Tx) TakenDeliveries(mission, session string) ([]Delivery, error) {
	return txList[Delivery](tx, deliveryTable, ` WHERE mission = ? AND session = ? AND taken <> 0 ORDER BY seq`, mission, session)
}

// Compact releases the space of removed rows to the file system, and returns the size of the file before and after, in bytes. It takes
// as long and as much free space as copying the file; other updates wait meanwhile. Errors are those of [Store.Update].
func (s *Store) Compact(ctx context.Context) (before, after int64, err error) {
	err = s.submit(ctx, &update{solo: true, bare: func() (err error) {
		if s.epoch > 0 {
			if err := s.owned(); err != nil {
				return err
			}
		}
		const tidy = "PRAGMA wal_checkpoint(TRUNCATE)"
		if err = s.w.script(tidy); err == nil {
			before, err = s.size()
		}
		if err == nil {
			err = s.w.script("VACUUM")
		}
		if err == nil {
			err = s.w.script(tidy)
		}
		if err == nil {
			after, err = s.size()
		}
		return s.w.fail("compact state", err)
	}})
	return before, after, err
}

// size returns the bytes of the file and its log, which is there as long as the store is open.
func (s *Store) size() (n int64, err error) {
	for _, path := range []string{s.path, s.path + "-wal"} {
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		n += info.Size()
	}
	return n, nil
}
