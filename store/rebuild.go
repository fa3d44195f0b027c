package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"slices"
	"strings"
)

// rebuild writes a new state with the readable rows of the old one's copy.
func (sv *salvage) rebuild(ctx context.Context) error {
	s, err := Open(ctx, sv.fresh)
	if err != nil {
		return err
	}
	err = sv.fill(ctx, s.w)
	if e := s.Close(); err == nil {
		err = e
	}
	if e := os.Remove(sv.fresh + headSuffix); err == nil && !os.IsNotExist(e) {
		err = e
	}
	return err
}

func (sv *salvage) fill(ctx context.Context, to *conn) error {
	from, closeAll, err := openCopy(sv.copy)
	if err != nil { // nothing of it can be read
		from = nil
	} else {
		defer closeAll()
	}
	version, host := sv.identity(from)
	newest := max(sv.known.seq, host.floor)
	for _, t := range dataTables() {
		r := TableReport{Name: t.name}
		if from != nil {
			if err := copyTable(ctx, from, to, t, version, &r); err != nil {
				return err
			}
			r.Lost = max(r.Lost, indexed(from, t)-r.Kept)
		}
		if t == journalTable {
			newest = sv.journalEnd(from, to, newest, &r)
		}
		sv.report.Tables = append(sv.report.Tables, r)
	}
	if err := addDecisions(to); err != nil { // a repaired file has the newest schema
		return err
	}
	mine, err := to.host()
	if err != nil {
		return err
	}
	host.epoch, host.shape, host.floor = host.epoch+1, mine.shape, mine.floor
	if err := to.putHost(host); err != nil {
		return err
	}
	return raiseFloor(to, newest)
}

// identity reads the old file's data about itself, as far as it is plausible.
func (sv *salvage) identity(from *conn) (version int, host hostRow) {
	version = lineVersion
	if from == nil {
		return version, host
	}
	// Without the column the file has no checksums, whatever a damaged header says.
	var sums int
	if err := from.row("SELECT count(*) FROM pragma_table_info('journal') WHERE name = 'sum'").Scan(&sums); err == nil && sums == 0 {
		version = sumsVersion - 1
	} else if err := from.row("SELECT count(*) FROM pragma_table_info('message') WHERE name = 'prev'").Scan(&sums); err == nil && sums == 0 {
		version = lineVersion - 1
	}
	if h, err := from.host(); err == nil {
		host = h
	}
	return version, host
}

// journalEnd returns the highest known journal number, and counts the missing ones below it.
func (sv *salvage) journalEnd(from, to *conn, newest int64, r *TableReport) int64 {
	var n int64
	for c, query := range map[*conn]string{to: "SELECT coalesce(max(seq), 0) FROM journal", from: "SELECT max(seq) FROM sqlite_sequence WHERE name = 'journal'"} {
		if c == nil || c.row(query).Scan(&n) != nil {
			continue
		}
		// A damaged counter may have any value. It is accepted if it is close enough.
		if c == to || n <= newest+1<<20 {
			newest = max(newest, n)
		}
	}
	r.Lost = max(r.Lost, int(newest)-r.Kept)
	sv.report.Missing = max(0, newest-int64(r.Kept))
	return newest
}

// indexed counts a table's rows by an index, which may be intact although the table is not.
func indexed(c *conn, t *table) int {
	index := "sqlite_autoindex_" + t.name + "_1"
	if t == journalTable {
		index = "journal_mission"
	}
	var n int
	if !t.key || c.row("SELECT count(*) FROM "+t.name+" INDEXED BY "+index).Scan(&n) != nil {
		return 0
	}
	return n
}

// copyTable copies the sound rows of a table. After an unreadable row it looks for the next readable one.
func copyTable(ctx context.Context, from, to *conn, t *table, version int, r *TableReport) error {
	sums, old := version >= sumsVersion, tableOf(t, version)
	into := newest(old)
	if err := to.script("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	var failed error // of writing, which ends the salvage; errors of reading do not
	take := func(row *row) {
		if failed == nil {
			failed = keep(to, old, row, sums, into, r)
		}
		if failed == nil && ctx.Err() != nil {
			failed = context.Cause(ctx)
		}
	}
	query := old.selectRow
	if !sums {
		query = strings.Replace(query, "sum", "0", 1)
	}
	if t.key {
		scanRanges(from, old, query, take)
	} else {
		_ = from.rawRows(old, query, func(row *row) error { take(row); return failed })
	}
	if failed != nil {
		_ = to.script("ROLLBACK")
		return failed
	}
	return to.script("COMMIT")
}

// scanRanges calls take for every row that can be reached by its number.
func scanRanges(c *conn, t *table, query string, take func(*row)) {
	const last = 1 << 40 // no table comes near
	next := int64(0)
	for next < last {
		err := c.rawRows(t, query+" NOT INDEXED WHERE seq >= ? ORDER BY seq", func(row *row) error {
			take(row)
			next = max(next, row.seq+1) // in a page with a lost end a row may have number 0: going back would never end
			return nil
		}, next)
		if err == nil {
			return
		}
		next = readable(c, t, next+1, last)
	}
}

// readable returns the number of the next reachable row from at on, as far as seeking can find it, or last. Unreadable parts are whole
// pages, so the steps may double and then halve. The row itself may still be unreadable; then the next call begins after it.
func readable(c *conn, t *table, at, last int64) int64 {
	query := "SELECT seq FROM " + t.name + " NOT INDEXED WHERE seq >= ? ORDER BY seq LIMIT 1"
	seek := func(from int64) (n int64, ok bool) {
		err := c.each(func(scan func(...any) error) error {
			ok = true
			return scan(&n)
		}, query, from)
		return n, ok && err == nil && n >= from
	}
	found, ok := seek(at)
	low, step := at, int64(1)
	for ; !ok; found, ok = seek(at) {
		if low, at, step = at, at+step, step*2; at >= last {
			return last
		}
	}
	for low+1 < at {
		mid := low + (at-low)/2
		if n, ok := seek(mid); ok {
			at, found = mid, n
		} else {
			low = mid
		}
	}
	return min(found, last)
}

// keep writes one row unchanged, if it is sound.
func keep(to *conn, t *table, row *row, sums bool, into func(*row) (*table, *row), r *TableReport) error {
	whole := row.seq > 0 || !t.key
	if sums {
		whole = whole && row.sound(t)
	} else if t.name != "serial" {
		whole = whole && json.Valid(row.data()) && !slices.ContainsFunc(row.cols, func(c sql.RawBytes) bool { return c == nil })
	}
	if !whole {
		r.Lost++
		return nil
	}
	t, row = into(row)
	cols, vals := []string{"sum"}, []any{t.sum(row.cols).at(row.seq)}
	if t.key {
		cols, vals = append(cols, "seq"), append(vals, row.seq)
	}
	for i, c := range row.cols {
		cols, vals = append(cols, t.cols[i]), append(vals, string(c))
	}
	query := "INSERT OR IGNORE INTO " + t.name + " (" + strings.Join(cols, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(cols)-1) + ")"
	st, err := to.stmt(query)
	if err != nil {
		return err
	}
	res, err := st.Exec(vals...)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	r.Kept += int(n)
	return err
}
