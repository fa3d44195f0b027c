package store

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"centurion"
)

const (
	hintDoctor = "run `centurion doctor --repair`; it keeps what is readable and puts the damaged file aside"
	hintDisk   = "look at this disk: it is full or failing; then run `centurion resume`"
	hintSpace  = "free some space on this disk, then run `centurion resume`"
)

// fail gives an error of SQLite or of the file system its kind and hint. Errors with a kind, and nil, are returned unchanged.
func fail(op, path string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*centurion.Error](err); ok {
		return err
	}
	e := &centurion.Error{Op: op, Kind: centurion.KindState, Msg: path, Err: err}
	writable := fmt.Sprintf("make sure that %s can be written, or set CENTURION_HOME to another directory", filepath.Dir(path))
	code, ok := sqliteCode(err)
	if !ok {
		switch {
		case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EFBIG), errors.Is(err, syscall.EDQUOT):
			e.Kind, e.Hint = centurion.KindDisk, hintSpace
		case errors.Is(err, syscall.EIO):
			e.Kind, e.Hint = centurion.KindDisk, hintDisk
		case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrNotExist):
			e.Hint = writable
		case errors.Is(err, sql.ErrConnDone):
			return errClosed(op)
		default:
			e.Kind = centurion.KindInternal
		}
		return e
	}
	switch code & 0xff { // the rest of an extended code says where it happened
	case sqlite3.SQLITE_FULL:
		e.Kind, e.Hint = centurion.KindDisk, hintSpace
	case sqlite3.SQLITE_IOERR:
		e.Kind, e.Hint = centurion.KindDisk, hintDisk
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT,
		sqlite3.SQLITE_TOOBIG: // no row of ours comes near the limit
		e.Hint = hintDoctor
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		e.Hint = "another program holds the file; close it and try again"
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		e.Hint = writable
	default:
		e.Kind = centurion.KindInternal
	}
	return e
}

// sqliteCode returns the code of an error of SQLite, and whether it is one.
func sqliteCode(err error) (int, bool) {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code(), true
	}
	return 0, false
}

func errClosed(op string) error {
	return &centurion.Error{Op: op, Kind: centurion.KindState, Msg: "the state is closed: the program is ending"}
}

// errDamaged is the error for data that SQLite returned successfully but that differs from what was written.
func errDamaged(path, what string, err error) error {
	return &centurion.Error{Op: "read state", Kind: centurion.KindState, Msg: path + ": damaged: " + what, Hint: hintDoctor, Err: err}
}

func errNotFound(what, id string) error {
	return &centurion.Error{Op: "read state", Kind: centurion.KindNotFound, Msg: "no " + what + " " + id, Hint: listHint(what)}
}

// listHint names the command that lists the existing ones.
func listHint(what string) string {
	switch what {
	case "task":
		return "`centurion tasks` lists the tasks of the latest mission"
	case "ask":
		return "`centurion asks` lists what waits for a person"
	}
	return "`centurion ps` lists the missions of this project"
}
