package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"centurion"
	"centurion/failpoint"
)

// migrationFiles has one script for each version of the schema, NNNN_name.sql. A released one never changes.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

// applicationID marks a file as ours in SQLite's header: "CENT". The first migration writes it.
const applicationID = 0x43454e54

// sumsVersion is the first schema with checksums.
const sumsVersion = 2

// migration is a step from one version of the schema to the next.
type migration struct {
	name   string
	script string
	after  func(c *conn) error // runs after the script, in the same transaction; may be nil
}

// readMigrations returns the steps in order: the one at index i migrates from version i to i+1.
func readMigrations(files fs.FS) ([]migration, error) {
	entries, err := fs.ReadDir(files, ".") // sorted by name
	if err != nil {
		return nil, err
	}
	var plan []migration
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "_")
		if n, err := strconv.Atoi(number); err != nil || n != len(plan)+1 {
			return nil, fmt.Errorf("migration %s should have the number %04d", e.Name(), len(plan)+1)
		}
		b, err := fs.ReadFile(files, e.Name())
		if err != nil {
			return nil, err
		}
		m := migration{name: e.Name(), script: string(b)}
		switch len(plan) + 1 {
		case sumsVersion:
			m.after = addSums
		case lineVersion:
			m.after = addLines
		case decisionsVersion:
			m.after = addDecisions
		}
		plan = append(plan, m)
	}
	return plan, nil
}

// version reads the version of the schema.
func (c *conn) version() (int, error) {
	n, err := c.number("PRAGMA user_version")
	return int(n), err
}

// checkSchema refuses a file that is damaged, foreign or newer than the plan, and returns its version, 0 for an empty file. It is
// read-only.
func checkSchema(c *conn, plan []migration) (int, error) {
	var app, version, objects int
	for query, to := range map[string]*int{
		"PRAGMA application_id":              &app,
		"PRAGMA user_version":                &version,
		"SELECT count(*) FROM sqlite_schema": &objects,
	} {
		if err := c.row(query).Scan(to); err != nil {
			return 0, c.fail("open state", err)
		}
	}
	switch {
	case app != applicationID && (app != 0 || version != 0 || objects != 0):
		return 0, &centurion.Error{Op: "open state", Kind: centurion.KindState,
			Msg:  c.path + " is a database of another program",
			Hint: "move it away, or set CENTURION_HOME to another directory"}
	case version > len(plan):
		return 0, &centurion.Error{Op: "open state", Kind: centurion.KindState,
			Msg:  fmt.Sprintf("%s has schema %d, this program knows up to %d; it was left as it is", c.path, version, len(plan)),
			Hint: "use the newer centurion that wrote it"}
	case version < 0 || version == 0 && objects != 0:
		return 0, errDamaged(c.path, fmt.Sprintf("the file's header says schema %d", version), nil)
	}
	return version, nil
}

// migrate migrates the schema to the plan's newest version, each step in its own transaction. A file of an older version is copied
// first, to the same name with ".v" and its version appended.
func migrate(c *conn, plan []migration) error {
	from, err := c.version()
	if err != nil {
		return c.fail("migrate state", err)
	}
	kept := ""
	if 0 < from && from < len(plan) {
		if kept, err = backup(c, from); err != nil {
			return err
		}
	}
	for {
		version, err := c.version()
		if err != nil {
			return c.fail("migrate state", err)
		}
		if version >= len(plan) {
			return nil
		}
		if err := step(c, plan); err != nil {
			_ = c.script("ROLLBACK")
			if kept == "" {
				return c.fail("migrate state", err)
			}
			return c.fail("migrate state", fmt.Errorf("%w; the state is as it was, and there is a copy of it: %s", err, kept))
		}
	}
}

// step applies the next script, to an empty file all of them. It reads the version again under the write lock, since another process
// may have been faster.
func step(c *conn, plan []migration) error {
	if err := c.script("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	version, err := c.version()
	if err != nil {
		return err
	}
	to := min(version+1, len(plan))
	if version == 0 {
		to = len(plan)
	}
	for ; version < to; version++ {
		if err := apply(c, plan[version], version+1); err != nil {
			return fmt.Errorf("step %d: %w", version+1, err)
		}
		failpoint.Hit(failpoint.Migration)
	}
	return c.script("COMMIT")
}

func apply(c *conn, m migration, to int) error {
	if err := c.script(m.script); err != nil {
		return err
	}
	if m.after != nil {
		if err := m.after(c); err != nil {
			return err
		}
	}
	if to >= sumsVersion {
		h, err := c.host()
		if err != nil {
			return err
		}
		if h.shape, err = c.shape(); err != nil {
			return err
		}
		if err := c.putHost(h); err != nil {
			return err
		}
	}
	return c.script("PRAGMA user_version = " + strconv.Itoa(to))
}

// backup copies the state including its log, and returns the copy's path. An existing copy stays: it is from before an earlier attempt.
func backup(c *conn, version int) (string, error) {
	kept := fmt.Sprintf("%s.v%d", c.path, version)
	if _, err := os.Lstat(kept); err == nil {
		return kept, nil
	}
	f, err := os.CreateTemp(filepath.Dir(kept), filepath.Base(kept)+".tmp*") // others may open the state at the same time
	if err != nil {
		return "", c.fail("copy state before its migration", err)
	}
	half := f.Name()
	// SQLite makes the copy into the empty file: if we opened the state ourselves, closing it would release SQLite's locks on it in this
	// process.
	if err = f.Close(); err == nil {
		_, err = c.sql.ExecContext(context.Background(), "VACUUM INTO ?", half)
	}
	if err == nil {
		err = syncFile(half)
	}
	if err == nil {
		err = os.Rename(half, kept)
	}
	if err != nil {
		_ = os.Remove(half)
		if _, there := os.Lstat(kept); there == nil { // another process was faster, and removed ours as a leftover
			return kept, nil
		}
		return "", c.fail("copy state before its migration", err)
	}
	syncDir(filepath.Dir(kept))
	leftovers, _ := filepath.Glob(kept + ".tmp*") // of interrupted attempts; the pattern is well-formed
	for _, l := range leftovers {
		_ = os.Remove(l)
	}
	return kept, nil
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
