package store

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"centurion"
)

// migrationFiles holds one script for each version of the schema, NNNN_name.sql. A released one never changes.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

// applicationID marks a file as ours in SQLite's header: "CENT". The first migration writes it.
const applicationID = 0x43454e54

// readMigrations returns the scripts in order: the one at index i leads from version i to i+1.
func readMigrations(files fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(files, ".") // sorted by name
	if err != nil {
		return nil, err
	}
	var plan []string
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "_")
		if n, err := strconv.Atoi(number); err != nil || n != len(plan)+1 {
			return nil, fmt.Errorf("migration %s should have the number %04d", e.Name(), len(plan)+1)
		}
		b, err := fs.ReadFile(files, e.Name())
		if err != nil {
			return nil, err
		}
		plan = append(plan, string(b))
	}
	return plan, nil
}

// checkSchema refuses a file that is damaged, newer than the plan or somebody else's. It only reads.
func checkSchema(c *conn, plan []string) error {
	var app, version, objects int
	for query, to := range map[string]*int{
		"PRAGMA application_id":              &app,
		"PRAGMA user_version":                &version,
		"SELECT count(*) FROM sqlite_schema": &objects,
	} {
		if err := c.row(query).Scan(to); err != nil {
			return c.fail("open state", err)
		}
	}
	switch {
	case app != applicationID && (app != 0 || version != 0 || objects != 0):
		return &centurion.Error{Op: "open state", Kind: centurion.KindState,
			Msg:  c.path + " is a database of another program",
			Hint: "move it away, or set CENTURION_HOME to another directory"}
	case version > len(plan):
		return &centurion.Error{Op: "open state", Kind: centurion.KindState,
			Msg:  fmt.Sprintf("%s has schema %d, this program knows up to %d; it was left as it is", c.path, version, len(plan)),
			Hint: "use the newer centurion that wrote it"}
	}
	return nil
}

// migrate brings the schema to the plan's newest version, each step in a transaction of its own.
func migrate(c *conn, plan []string) error {
	for {
		var version int
		if err := c.row("PRAGMA user_version").Scan(&version); err != nil {
			return c.fail("migrate state", err)
		}
		if version >= len(plan) {
			return nil
		}
		if err := step(c, plan); err != nil {
			_ = c.script("ROLLBACK")
			return c.fail("migrate state", err)
		}
	}
}

// step applies the next script. The version is read again under the write lock: another process may have been faster.
func step(c *conn, plan []string) error {
	if err := c.script("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	var version int
	if err := c.row("PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version < len(plan) {
		if err := c.script(plan[version]); err != nil {
			return fmt.Errorf("step %d: %w", version+1, err)
		}
		if err := c.script("PRAGMA user_version = " + strconv.Itoa(version+1)); err != nil {
			return err
		}
	}
	return c.script("COMMIT")
}
