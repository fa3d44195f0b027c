package store

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	_ "modernc.org/sqlite" // the driver
	sqlite3 "modernc.org/sqlite/lib"
)

// busyTimeout is how long a statement waits for another process, in milliseconds. There is one host per project, so only a short-lived
// reader or a backup can be in the way.
const busyTimeout = 5000

// conn is one connection with its prepared statements: parsing SQL costs more than running most of it. It is used by one goroutine at a
// time.
//
// Statements run without the caller's context: each takes far less than a millisecond, and the driver would pay a
// goroutine for each to interrupt it.
type conn struct {
	path  string
	sql   *sql.Conn
	stmts map[string]*sql.Stmt
	keys  Redactor         // replaces keys in what is written; nil replaces nothing. Used by the writer
	next  map[*table]int64 // the next row numbers for inserts, as far as known; used by the writer
}

// openDB configures connections to path without opening one. mode is ro or rw.
func openDB(path, mode string, conns int) (*sql.DB, error) {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive letter
	}
	// A URI, so that a path may contain any character, even ? and #.
	uri := url.URL{Scheme: "file", Path: slashed, RawQuery: "mode=" + mode}
	db, err := sql.Open("sqlite", uri.String())
	if err != nil {
		return nil, fail("open state", path, err)
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

func connect(ctx context.Context, db *sql.DB, path string) (*conn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, fail("open state", path, err)
	}
	cn := &conn{path: path, sql: c, stmts: map[string]*sql.Stmt{}, next: map[*table]int64{}}
	if err := cn.script("PRAGMA busy_timeout=" + strconv.Itoa(busyTimeout)); err != nil {
		cn.close()
		return nil, cn.fail("open state", err)
	}
	return cn, nil
}

func (c *conn) close() {
	for _, st := range c.stmts {
		_ = st.Close()
	}
	_ = c.sql.Close()
}

// script runs SQL text without keeping it prepared; it may contain several statements.
func (c *conn) script(text string) error {
	_, err := c.sql.ExecContext(context.Background(), text)
	return err
}

func (c *conn) row(query string) *sql.Row { return c.sql.QueryRowContext(context.Background(), query) }

// number returns the one number that a query answers.
func (c *conn) number(query string) (n int64, err error) {
	err = c.row(query).Scan(&n)
	return n, err
}

// journalSeq is the query for the highest number that the journal has given.
const journalSeq = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'journal'"

func (c *conn) stmt(query string) (*sql.Stmt, error) {
	if st := c.stmts[query]; st != nil {
		return st, nil
	}
	st, err := c.sql.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	c.stmts[query] = st
	return st, nil
}

// exec runs one prepared statement and returns the row number of the last insert.
func (c *conn) exec(query string, args ...any) (int64, error) {
	st, err := c.stmt(query)
	if err != nil {
		return 0, err
	}
	res, err := st.Exec(args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// put runs a table's upsert with a row's values and their checksum.
func (c *conn) put(t *table, vals []any) (sql.Result, error) {
	st, err := c.stmt(t.upsert)
	if err != nil {
		return nil, err
	}
	sum := t.sumOf(vals)
	if !t.key {
		return st.Exec(append(vals, int64(sum))...)
	}
	args := append(make([]any, 0, len(vals)+2), nil)
	args = append(append(args, vals...), nil)
	for again := false; ; again = true {
		n := c.next[t]
		if n == 0 {
			if err := c.each(func(scan func(...any) error) error { return scan(&n) }, t.newest); err != nil {
				return nil, err
			}
			n++
		}
		args[0], args[len(args)-1] = n, sum.at(n)
		res, err := st.Exec(args...)
		if code, _ := sqliteCode(err); code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY && !again {
			delete(c.next, t) // another process has written
			continue
		}
		if err != nil {
			return nil, err
		}
		if last, err := res.LastInsertId(); err != nil {
			return nil, err
		} else if last == n { // an existing row keeps its own number
			n++
		}
		c.next[t] = n
		return res, nil
	}
}

// each calls f for every row of a prepared query.
func (c *conn) each(f func(scan func(...any) error) error, query string, args ...any) error {
	st, err := c.stmt(query)
	if err != nil {
		return err
	}
	rows, err := st.Query(args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// snapshot runs f so that all its queries see the same state.
func (c *conn) snapshot(f func() error) error {
	if _, err := c.exec("BEGIN"); err != nil {
		return err
	}
	err := f()
	if _, e := c.exec("ROLLBACK"); err == nil {
		err = e
	}
	return err
}

func (c *conn) fail(op string, err error) error { return fail(op, c.path, err) }

// create creates the file and its parent directories, durably, and returns its absolute path.
func create(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fail("create state", path, err)
	}
	dir := filepath.Dir(path)
	var parents []string // of the directories to create
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(d); err == nil || d == filepath.Dir(d) {
			break
		}
		parents = append(parents, filepath.Dir(d))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fail("create state", path, err)
	}
	// An existing file is not opened here: closing it would release SQLite's locks on it in this process.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case os.IsExist(err):
		return path, nil
	case err != nil:
		return "", fail("create state", path, err)
	}
	if err := f.Close(); err != nil {
		return "", fail("create state", path, err)
	}
	for _, d := range append(parents, dir) {
		syncDir(d)
	}
	return path, nil
}

// syncDir makes the names in a directory survive a power cut, if the system supports that. Errors are ignored: SQLite syncs the
// directory again with the log's first commit.
func syncDir(dir string) {
	if runtime.GOOS == "windows" {
		return
	}
	if f, err := os.Open(dir); err == nil {
		_ = f.Sync()
		_ = f.Close()
	}
}
