// Package store keeps a project's state in one SQLite file: the journal of events, missions, sessions, messages, parts, tasks,
// receipts, deliveries and asks. When an [Store.Update] returns, its changes are on disk, or did not happen.
//
// It owns the file, its schema and its only writer. It makes no decisions: its callers decide about permitted transitions, their
// meaning and notifications, and hold the lock that keeps a second host out of the project.
package store

import (
	"context"
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	sqlite3 "modernc.org/sqlite/lib"

	"centurion"
	"centurion/guard"
)

// readers is the number of parallel read connections. Reads take well under a millisecond, so a few are enough for fifty sessions, and
// each connection may cache 2 MB of pages.
const readers = 4

// Store is an open state file. Its methods are safe for concurrent use.
type Store struct {
	path    string
	writeDB *sql.DB
	readDB  *sql.DB
	w       *conn         // owned by the writer goroutine
	head    *head         // owned by the writer goroutine
	epoch   int64         // owned by the writer goroutine: set by [Store.Own], 0 before
	seen    int64         // owned by the writer: SQLite's data version when the state was last ours
	free    chan *conn    // the read pool; nil stands for an unopened connection
	closing chan struct{} // closed by Close
	group   guard.Group
	once    sync.Once
	err     error // of Close

	lastSeq atomic.Int64

	mu      sync.Mutex
	wake    sync.Cond // the queue or ended has changed
	queue   []*update
	ended   bool          // no more updates are accepted
	refusal error         // the reason; nil if the store is closed
	changed chan struct{} // nil until it is requested
}

// Open opens the state file at path and migrates its schema. It creates missing directories with mode 0700 and a missing file with mode
// 0600. A file with a newer schema than this program's is left unchanged.
//
// Errors: KindState if the file is damaged, newer, foreign, busy or cannot be opened; KindDisk if the disk is full or
// failing.
func Open(ctx context.Context, path string) (*Store, error) {
	steps, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return nil, err
	}
	return open(ctx, path, steps)
}

func open(ctx context.Context, path string, steps fs.FS) (_ *Store, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, fail("open state", path, err)
	}
	known := readHead(path)
	if info, err := os.Stat(path); known.seq > 0 && (os.IsNotExist(err) || err == nil && info.Size() == 0 && isMissing(path+"-wal")) {
		return nil, errMissing(path, known, mark{})
	}
	path, err = create(path)
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, closing: make(chan struct{}), free: make(chan *conn, readers)}
	s.wake.L = &s.mu
	defer func() {
		if err != nil {
			s.closeFiles()
		}
	}()
	if s.writeDB, err = openDB(path, "rw", 1); err != nil {
		return nil, err
	}
	// A half-opened connection is useless, so ctx does not reach into SQLite.
	ctx = context.WithoutCancel(ctx)
	if s.w, err = connect(ctx, s.writeDB, path); err != nil {
		return nil, err
	}
	if err = s.prepare(steps, known); err != nil {
		return nil, err
	}
	if s.readDB, err = openDB(path, "ro", readers); err != nil {
		return nil, err
	}
	for range readers {
		s.free <- nil
	}
	s.group.Go("store writer", s.write)
	return s, nil
}

// prepare checks the file before anything is written to it, and prepares it for the writer. known is the position in the head file.
func (s *Store) prepare(steps fs.FS, known mark) error {
	plan, err := readMigrations(steps)
	if err != nil {
		return err
	}
	if err := s.w.script("PRAGMA cell_size_check=1"); err != nil {
		return s.w.fail("open state", err)
	}
	err = s.w.snapshot(func() error {
		version, err := checkSchema(s.w, plan)
		if err != nil {
			return err
		}
		return checkFile(s.w, version, known, smallFile)
	})
	if err != nil {
		return s.w.fail("open state", err)
	}
	var mode string
	if err := s.w.row("PRAGMA journal_mode=WAL").Scan(&mode); err != nil {
		return s.w.fail("open state", err)
	}
	if mode != "wal" {
		return &centurion.Error{Op: "open state", Kind: centurion.KindState,
			Msg:  "the file system of " + s.path + " cannot keep a write-ahead log",
			Hint: "set CENTURION_HOME to a directory on a local disk"}
	}
	// FULL syncs the log at every commit: with NORMAL a power cut loses acknowledged commits. On macOS only the full variants reach the
	// medium; elsewhere they change nothing.
	for _, pragma := range []string{"synchronous=FULL", "fullfsync=1", "checkpoint_fullfsync=1", "foreign_keys=0",
		"journal_size_limit=67108864"} {
		if err := s.w.script("PRAGMA " + pragma); err != nil {
			return s.w.fail("open state", err)
		}
	}
	if err := migrate(s.w, plan); err != nil {
		return err
	}
	now, err := s.w.mark()
	if err != nil {
		return s.w.fail("open state", err)
	}
	s.lastSeq.Store(now.seq)
	s.head = openHead(s.path)
	return nil
}

// Close commits the waiting updates, waits for running reads, and closes the file. Later calls are refused with KindState; waiters of
// [Store.Changed] are woken. Closing twice is harmless.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.end()
		s.err = s.group.Wait()
		close(s.closing)
		for range readers {
			if c := <-s.free; c != nil {
				c.close()
			}
		}
		if err := s.closeFiles(); s.err == nil {
			s.err = err
		}
		s.announce(0)
	})
	return s.err
}

func (s *Store) closeFiles() error {
	var first error
	s.head.close()
	if s.readDB != nil {
		first = s.readDB.Close()
	}
	if s.w != nil {
		s.w.close()
	}
	// The writer's connection is the last one: closing it moves the log into the file.
	if s.writeDB != nil {
		if err := s.writeDB.Close(); first == nil {
			first = err
		}
	}
	return fail("close state", s.path, first)
}

// Path returns the absolute path of the state file.
func (s *Store) Path() string { return s.path }

// LastSeq returns the sequence number of the newest committed journal row, 0 if there is none. It only covers this process's commits:
// there is one host per project.
func (s *Store) LastSeq() int64 { return s.lastSeq.Load() }

// Changed returns a channel that is closed at the next commit with journal rows. Fetch it first, then read, then wait: any commit after
// the fetch closes it. After Close it is closed at once.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
		if s.ended {
			close(s.changed)
		}
	}
	return s.changed
}

// announce publishes a commit with its newest journal row; seq 0 wakes the waiters without news.
func (s *Store) announce(seq int64) {
	if seq > 0 {
		s.lastSeq.Store(seq)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil && !guard.Closed(s.changed) {
		close(s.changed)
	}
	if !s.ended {
		s.changed = nil
	}
}

// end refuses further updates and lets the writer return when its queue is empty.
func (s *Store) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.wake.Broadcast()
}

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
