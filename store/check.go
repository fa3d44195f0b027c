package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"centurion"
)

// smallFile is the size in bytes up to which each Open checks the whole structure of the file: a damaged page can make rows vanish
// unnoticed by their checksums. Larger files are checked by [Check]; their rows are still checked at every read. Measured: 13 ms per MB
// on a busy machine.
const smallFile = 4 << 20

// Exists reports whether there is a state file at path, or was one: then the head file remains.
func Exists(path string) bool { return !isMissing(path) || readHead(path) != mark{} }

// Check checks the whole state file at path, even a large one: its structure, its indexes, every row's checksum, and the presence of
// its newest commits. It changes nothing. Another process may have the state open meanwhile, but not this one.
//
// Errors: KindState if anything is wrong or the file is newer or foreign, KindNotFound if there is none.
func Check(ctx context.Context, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fail("check state", path, err)
	}
	known := readHead(path)
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err) && known.seq > 0, err == nil && info.Size() == 0 && known.seq > 0 && isMissing(path+"-wal"):
		return errMissing(path, known, mark{})
	case os.IsNotExist(err):
		return &centurion.Error{Op: "check state", Kind: centurion.KindNotFound, Msg: "no state at " + path,
			Hint: "a project has none before its first mission"}
	}
	plan, err := newestPlan()
	if err != nil {
		return err
	}
	db, err := openDB(path, "ro", 1)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	c, err := connect(context.WithoutCancel(ctx), db, path)
	if err != nil {
		return err
	}
	defer c.close()
	var version int
	err = c.snapshot(func() error {
		if version, err = checkSchema(c, plan); err != nil {
			return err
		}
		return checkFile(c, version, known, 1<<62)
	})
	if err == nil && version >= sumsVersion {
		err = checkRows(ctx, c, version)
	}
	return c.fail("check state", err)
}

// newestPlan returns the migrations to the newest schema.
func newestPlan() ([]migration, error) {
	steps, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return nil, err
	}
	return readMigrations(steps)
}

// checkFile refuses a file of a known schema that is damaged, or that lacks commits known from the head file. It checks every page of
// files up to limit bytes only. It is read-only.
func checkFile(c *conn, version int, known mark, limit int64) error {
	err := checkFileOf(c, version, known, limit)
	if _, ok := errors.AsType[*centurion.Error](err); ok || err == nil {
		return err
	}
	err = c.fail("open state", err)
	if centurion.KindOf(err) == centurion.KindInternal { // a missing table or column
		err = errDamaged(c.path, "its schema", err)
	}
	return err
}

func checkFileOf(c *conn, version int, known mark, limit int64) error {
	if version == 0 {
		if known.seq > 0 {
			return errMissing(c.path, known, mark{})
		}
		return nil
	}
	if version >= sumsVersion {
		if err := checkHost(c); err != nil {
			return err
		}
	}
	size, err := c.number("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
	if err != nil {
		return err
	}
	if size <= limit {
		if err := checkStructure(c); err != nil {
			return err
		}
	}
	if version < sumsVersion {
		return nil
	}
	have, err := c.mark()
	if err == nil && (known.seq > have.seq || known.ticks > have.ticks) {
		err = errMissing(c.path, known, have)
	}
	return err
}

// checkHost compares the host row with the file.
func checkHost(c *conn) error {
	h, err := c.host()
	if err != nil {
		return err
	}
	shape, err := c.shape()
	if err != nil {
		return err
	}
	if shape != h.shape {
		return errDamaged(c.path, "the text of its schema", nil)
	}
	newest, err := c.number("SELECT coalesce(max(seq), 0) FROM journal")
	if err != nil {
		return err
	}
	next, err := c.number(journalSeq)
	if err != nil {
		return err
	}
	if next != max(newest, h.floor) {
		return errDamaged(c.path, fmt.Sprintf("the journal ends at %d and counts from %d", newest, next), nil)
	}
	return nil
}

// checkStructure makes SQLite check every page, and every row's place in every index.
func checkStructure(c *conn) error {
	var first string
	err := c.row("PRAGMA integrity_check(1)").Scan(&first)
	if err == nil && first != "ok" {
		err = errDamaged(c.path, first, nil)
	}
	if err == nil {
		err = checkPartial(c)
	}
	return err
}

// checkRows checks every row's checksum.
func checkRows(ctx context.Context, c *conn, version int) error {
	for _, t := range append(tablesOf(version), hostTable) {
		err := c.rows(t, "", func(*row) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// partialIndex is an index of some of a table's rows.
type partialIndex struct{ name, table, where string }

// checkPartial compares the size of each partial index with its table. SQLite's own check ensures that all required rows are in it, but
// does not notice others: an old or foreign page would bring back settled rows. Equal numbers exclude that.
func checkPartial(c *conn) error {
	var all []partialIndex
	err := c.each(func(scan func(...any) error) error {
		var p partialIndex
		err := scan(&p.name, &p.table, &p.where)
		all = append(all, p)
		return err
	}, `SELECT i.name, m.tbl_name, m.sql FROM sqlite_schema AS t, pragma_index_list(t.name) AS i, sqlite_schema AS m
		WHERE t.type = 'table' AND i.partial AND m.name = i.name ORDER BY i.name`)
	if err != nil {
		return err
	}
	for _, p := range all {
		_, where, _ := strings.Cut(p.where, " WHERE ")
		count := "SELECT count(*) FROM " + p.table
		is, err := c.number(count + " INDEXED BY " + p.name + " WHERE " + where)
		if err != nil {
			return err
		}
		must, err := c.number(count + " NOT INDEXED WHERE " + where)
		if err != nil {
			return err
		}
		if is != must {
			return errDamaged(c.path, fmt.Sprintf("the index %s has %d entries in the place of %d", p.name, is, must), nil)
		}
	}
	return nil
}
