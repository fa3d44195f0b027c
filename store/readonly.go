package store

import (
	"context"
	"os"
	"path/filepath"

	sqlite3 "modernc.org/sqlite/lib"

	"centurion"
)

// Unwritable reports whether [Open] failed because the state cannot be written, as on a read-only file system.
func Unwritable(err error) bool {
	code, ok := sqliteCode(err)
	switch code & 0xff {
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return ok
	}
	return false
}

// OpenReadOnly opens a state file that cannot be written, for reading. It creates and changes nothing, and refuses updates with
// KindState. No process may write to the file meanwhile.
//
// Errors: those of [Open], and KindState if the file has an older schema, since migrating it would be a write.
func OpenReadOnly(ctx context.Context, path string) (_ *Store, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	plan, err := newestPlan()
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fail("open state", path, err)
	}
	// Without a log the file is complete and is opened as immutable: otherwise SQLite would create files next to it.
	mode := "ro"
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		mode = "ro&immutable=1"
	}
	s := &Store{path: path, closing: make(chan struct{}), free: make(chan *conn, readers), ended: true, refusal: errReadOnly(path)}
	s.wake.L = &s.mu
	defer func() {
		if err != nil {
			s.closeFiles()
		}
	}()
	if s.readDB, err = openDB(path, mode, readers); err != nil {
		return nil, err
	}
	c, err := connect(context.WithoutCancel(ctx), s.readDB, path)
	if err != nil {
		return nil, err
	}
	defer c.close()
	known := readHead(path)
	var now mark
	err = c.snapshot(func() error {
		version, err := checkSchema(c, plan)
		if err == nil && version < len(plan) {
			err = errReadOnly(path)
		}
		if err == nil {
			err = checkFile(c, version, known, smallFile)
		}
		if err == nil {
			now, err = c.mark()
		}
		return err
	})
	if err != nil {
		return nil, c.fail("open state", err)
	}
	s.lastSeq.Store(now.seq)
	for range readers {
		s.free <- nil
	}
	return s, nil
}

func errReadOnly(path string) error {
	return &centurion.Error{Op: "write state", Kind: centurion.KindState, Msg: filepath.Dir(path) + " cannot be written",
		Hint: "make it writable, or set CENTURION_HOME to another directory"}
}
