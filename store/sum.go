package store

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"unsafe"

	"centurion"
)

// table describes one table for writing, reading, checking and salvaging rows.
type table struct {
	name  string
	key   bool     // it has the column seq, its rowid; false for serial
	fixed int      // how many of cols keep their first value
	cols  []string // all meaningful columns, in the order of the checksum; all but the last few are short

	selectRow string // SELECT of seq, sum and cols
	upsert    string // its parameters are seq, if it has that, cols and the checksum
	newest    string // the query for the highest seq given so far
}

// The tables. They are not changed.
var (
	journalTable  = newTable("journal", 6, "time", "type", "mission", "session", "task", "data")
	missionTable  = newTable("mission", 1, "id", "status", "data")
	sessionTable  = newTable("session", 2, "id", "mission", "data")
	messageTable  = newTable("message", 3, "id", "session", "prev", "origin", "unpriced", "data")
	partTable     = newTable("part", 3, "id", "session", "message", "unpriced", "data")
	taskTable     = newTable("task", 4, "id", "mission", "parent", "call", "status", "data")
	receiptTable  = newTable("receipt", 3, "id", "mission", "task", "data")
	deliveryTable = newTable("delivery", 3, "id", "mission", "task", "session", "taken", "data")
	askTable      = newTable("ask", 2, "id", "mission", "answered", "data")
	serialTable   = newTable("serial", 2, "mission", "address", "next")
	hostTable     = newTable("host", 0, "epoch", "pid", "boot", "since", "ticks", "floor", "shape")
)

// dataTables returns the tables that already exist in schema 1, in their newest form.
func dataTables() []*table {
	return []*table{journalTable, missionTable, sessionTable, messageTable, partTable, taskTable, receiptTable,
		deliveryTable, askTable, serialTable}
}

func newTable(name string, fixed int, cols ...string) *table {
	t := &table{name: name, key: name != "serial", fixed: fixed, cols: cols}
	list, params := strings.Join(cols, ", "), strings.Repeat("?, ", len(cols))
	if !t.key {
		t.selectRow = "SELECT 0, sum, " + list + " FROM " + name
		t.upsert = "INSERT OR REPLACE INTO " + name + " (" + list + ", sum) VALUES (" + params + "?)"
		return t
	}
	t.selectRow = "SELECT seq, sum, " + list + " FROM " + name
	// The row number is part of the checksum, so it is chosen here and not by SQLite.
	t.upsert = "INSERT INTO " + name + " (seq, " + list + ", sum) VALUES (?, " + params + "?)"
	t.newest = "SELECT coalesce(max(seq), 0) FROM " + name
	if name == "journal" { // never reused, even after removals
		t.newest = journalSeq
	}
	if name == "journal" || name == "host" {
		return t
	}
	var set, same []string
	for i, c := range cols {
		switch {
		case i >= fixed:
			set = append(set, c+" = excluded."+c)
		case i > 0:
			same = append(same, c+" = excluded."+c)
		}
	}
	t.upsert += " ON CONFLICT (id) DO UPDATE SET " + strings.Join(set, ", ") + ", sum = (excluded.sum & 4294967295) + (seq << 32)"
	if len(same) > 0 {
		// A row with other fixed columns is skipped here: its checksum covers its own ones.
		t.upsert += " WHERE " + strings.Join(same, " AND ")
	}
	return t
}

// castagnoli is a polynomial with hardware support.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum covers a table's name and a row's columns, each with its length, so that rows of different tables or adjacent columns cannot
// be confused. It detects every change of up to 32 adjacent bits.
type checksum uint32

func (t *table) checksum() checksum { return checksum(0).add(t.name) }

func (c checksum) add(col string) checksum {
	return c.addBytes(unsafe.Slice(unsafe.StringData(col), len(col))) // only read
}

func (c checksum) addBytes(col []byte) checksum {
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(col)))
	c = checksum(crc32.Update(uint32(c), castagnoli, length[:]))
	return checksum(crc32.Update(uint32(c), castagnoli, col))
}

// at returns the stored form: the checksum in the lower half, the row number above it.
func (c checksum) at(seq int64) int64 { return seq<<32 + int64(c) }

// sumOf returns the checksum of a row's values, each a string, an int64 or a bool.
func (t *table) sumOf(vals []any) checksum {
	c := t.checksum()
	for _, v := range vals {
		switch v := v.(type) {
		case string:
			c = c.add(v)
		case int64:
			c = c.add(strconv.FormatInt(v, 10))
		case bool:
			if v {
				c = c.add("1")
			} else {
				c = c.add("0")
			}
		}
	}
	return c
}

// row is one row as read. Its columns are valid until the next row is read.
type row struct {
	seq  int64
	sum  int64
	cols []sql.RawBytes
}

// data returns the last column: the noun's JSON.
func (r *row) data() []byte { return r.cols[len(r.cols)-1] }

// sound reports whether the row is unchanged since it was written.
func (r *row) sound(t *table) bool {
	return t.sum(r.cols).at(r.seq) == r.sum
}

// sum returns the checksum of a row's columns.
func (t *table) sum(cols []sql.RawBytes) checksum {
	c := t.checksum()
	for _, col := range cols {
		c = c.addBytes(col)
	}
	return c
}

// name identifies the row in errors.
func (r *row) name(t *table) string {
	if len(r.cols) > 0 && t.cols[0] == "id" {
		return fmt.Sprintf("%s %.80q (row %d)", t.name, r.cols[0], r.seq)
	}
	return fmt.Sprintf("%s row %d", t.name, r.seq)
}

// rows calls f for every selected row of t, in order, after verifying its checksum. The columns are valid until f returns.
func (c *conn) rows(t *table, rest string, f func(r *row) error, args ...any) error {
	return c.rawRows(t, t.selectRow+rest, func(r *row) error {
		if !r.sound(t) {
			return errDamaged(c.path, r.name(t), nil)
		}
		return f(r)
	}, args...)
}

// rawRows is rows without the check.
func (c *conn) rawRows(t *table, query string, f func(r *row) error, args ...any) error {
	r := row{cols: make([]sql.RawBytes, len(t.cols))}
	to := make([]any, 0, 2+len(t.cols))
	to = append(to, &r.seq, &r.sum)
	for i := range r.cols {
		to = append(to, &r.cols[i])
	}
	return c.each(func(scan func(...any) error) error {
		if err := scan(to...); err != nil {
			if _, ok := sqliteCode(err); ok {
				return err
			}
			return errDamaged(c.path, "row of "+t.name, err) // a number that is none
		}
		return f(&r)
	}, query, args...)
}

// rewrite reads rows without the check, and then runs an update with what f returns for each; nil leaves a row as it is.
func (c *conn) rewrite(t *table, query, update string, f func(r *row) []any) error {
	var all [][]any
	err := c.rawRows(t, query, func(r *row) error {
		if args := f(r); args != nil {
			all = append(all, args)
		}
		return nil
	})
	for _, args := range all {
		if err == nil {
			_, err = c.exec(update, args...)
		}
	}
	return err
}

// hostRow is the one row of the table host.
type hostRow struct {
	epoch, pid, since, ticks, floor, shape int64
	boot                                   string
}

// host reads the host row.
func (c *conn) host() (h hostRow, err error) {
	found := 0
	err = c.rows(hostTable, "", func(r *row) error {
		found++
		for i, to := range []*int64{&h.epoch, &h.pid, nil, &h.since, &h.ticks, &h.floor, &h.shape} {
			if to == nil {
				h.boot = string(r.cols[i])
				continue
			}
			n, err := strconv.ParseInt(string(r.cols[i]), 10, 64)
			if err != nil {
				return errDamaged(c.path, r.name(hostTable), err)
			}
			*to = n
		}
		return nil
	})
	if err == nil && found != 1 {
		err = errDamaged(c.path, fmt.Sprintf("table host: it has %d rows instead of one", found), nil)
	}
	return h, err
}

// putHost writes the host row.
func (c *conn) putHost(h hostRow) error {
	vals := []any{h.epoch, h.pid, h.boot, h.since, h.ticks, h.floor, h.shape}
	_, err := c.exec(`INSERT INTO host (seq, epoch, pid, boot, since, ticks, floor, shape, sum) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (seq) DO UPDATE SET epoch = excluded.epoch, pid = excluded.pid, boot = excluded.boot, since = excluded.since,
		ticks = excluded.ticks, floor = excluded.floor, shape = excluded.shape, sum = excluded.sum`,
		append(vals, hostTable.sumOf(vals).at(1))...)
	return err
}

// shape returns a checksum of the schema's text: a bit error in a column's name or an index's condition changes results, but no row.
func (c *conn) shape() (int64, error) {
	sum := checksum(0)
	err := c.each(func(scan func(...any) error) error {
		var kind, name, of string
		var text sql.NullString
		if err := scan(&kind, &name, &of, &text); err != nil {
			return err
		}
		sum = sum.add(kind).add(name).add(of).add(text.String)
		return nil
	}, `SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY type, name`)
	return int64(sum), err
}

// addSums gives the rows of schema 1 their checksums.
func addSums(c *conn) error {
	for _, t := range tablesOf(sumsVersion) {
		update := `UPDATE ` + t.name + ` SET sum = ? WHERE seq = ?`
		if !t.key {
			update = `UPDATE serial SET sum = ? WHERE mission = ? AND address = ?`
		}
		err := c.rewrite(t, t.selectRow, update, func(r *row) []any {
			sum := t.sum(r.cols).at(r.seq)
			if t.key {
				return []any{sum, r.seq}
			}
			return []any{sum, string(r.cols[0]), string(r.cols[1])}
		})
		if err != nil {
			return fmt.Errorf("checksums of %s: %w", t.name, err)
		}
	}
	return c.putHost(hostRow{since: centurion.Now().Millis()})
}
