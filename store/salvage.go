package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"centurion"
)

// Report is the result of [Salvage].
type Report struct {
	Sound    bool          // nothing was wrong and nothing was done
	Accepted bool          // the file was intact but lacks its newest commits; it was kept
	Missing  int64         // lost events that are known to have been committed
	Aside    []string      // the damaged files, unchanged
	Tables   []TableReport // in a new file
}

// TableReport is one table of a [Report].
type TableReport struct {
	Name string
	Kept int
	Lost int // rows known to have existed; there may have been more
}

// Salvage makes the state at path usable again. It writes a new file with every readable and sound row, and keeps the damaged files
// under new names: path, ".damaged-" and the time in UTC. It deletes and overwrites nothing. An intact file that only lacks its newest
// commits stays; its journal continues above every published number. No process may have the state open.
//
// Errors: KindState if the file is newer or another program's (it is left untouched), KindNotFound if there is none, KindDisk if the
// new file does not fit.
func Salvage(ctx context.Context, path string) (Report, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Report{}, fail("repair state", path, err)
	}
	known := readHead(path)
	if isMissing(path) && known == (mark{}) {
		return Report{}, Check(ctx, path) // it reports the missing file
	}
	work, err := os.MkdirTemp(filepath.Dir(path), ".salvage-")
	if err != nil {
		return Report{}, fail("repair state", path, err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	sv := &salvage{path: path, copy: filepath.Join(work, "old.db"), fresh: filepath.Join(work, "new.db"), known: known}
	report, err := sv.run(ctx)
	return report, fail("repair state", path, err)
}

// salvage works on a copy of the damaged files, since SQLite would change them.
type salvage struct {
	path, copy, fresh string
	known             mark // from the head
	report            Report
}

func (sv *salvage) run(ctx context.Context) (Report, error) {
	for _, suffix := range []string{"", "-wal", headSuffix} {
		if err := copyFile(sv.path+suffix, sv.copy+suffix); err != nil {
			return Report{}, err
		}
	}
	if err := sv.refuse(); err != nil {
		return Report{}, err
	}
	if err := Check(ctx, sv.copy); err == nil {
		return Report{Sound: true}, nil
	}
	if ctx.Err() != nil {
		return Report{}, context.Cause(ctx)
	}
	// Without the head: are only the newest commits missing?
	if err := os.Remove(sv.copy + headSuffix); err != nil && !os.IsNotExist(err) {
		return Report{}, err
	}
	if info, err := os.Stat(sv.copy); err == nil && info.Size() > 0 && Check(ctx, sv.copy) == nil {
		return sv.accept(ctx)
	}
	if err := lengthen(sv.copy); err != nil {
		return Report{}, err
	}
	if err := sv.rebuild(ctx); err != nil {
		return Report{}, err
	}
	err := sv.exchange() // which adds to the report
	return sv.report, err
}

// refuse returns an error for a file that is recognisably not ours to repair.
func (sv *salvage) refuse() error {
	plan, err := newestPlan()
	if err != nil {
		return err
	}
	h, err := readHeader(sv.copy)
	if err != nil {
		return err
	}
	if h.ours && h.version > len(plan) || h.foreign {
		c, closeAll, err := openCopy(sv.copy)
		if err != nil {
			return err
		}
		defer closeAll()
		_, err = checkSchema(c, plan)
		if err != nil {
			err = &centurion.Error{Op: "repair state", Kind: centurion.KindState,
				Msg:  sv.path + " is newer than this program or another program's; it was left as it is",
				Hint: "use the newer centurion that wrote it, or move the file away"}
		}
		return err
	}
	return nil
}

// header is the content of a file's first bytes.
type header struct {
	ours, foreign bool
	version       int
}

func readHeader(path string) (header, error) {
	b := make([]byte, 100)
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return header{}, nil
	}
	if err != nil {
		return header{}, err
	}
	defer func() { _ = f.Close() }()
	if _, err := io.ReadFull(f, b); err != nil || string(b[:16]) != "SQLite format 3\x00" {
		return header{}, nil // nothing that SQLite could open
	}
	number := func(at int) int { return int(int32(binary.BigEndian.Uint32(b[at:]))) }
	h := header{version: number(60), ours: number(68) == applicationID}
	h.foreign = !h.ours
	return h, nil
}

// lengthen extends a cut-off file to the length in its header: SQLite reads nothing of a file that is too short.
func lengthen(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, 32)
	if _, err := io.ReadFull(f, b); err != nil || string(b[:16]) != "SQLite format 3\x00" {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := int64(binary.BigEndian.Uint16(b[16:])) * int64(binary.BigEndian.Uint32(b[28:]))
	if info.Size() < size && size-info.Size() < 1<<32 { // a damaged header may contain any length
		return f.Truncate(size)
	}
	return nil
}

// openCopy opens a file that no other process uses.
func openCopy(path string) (*conn, func(), error) {
	db, err := openDB(path, "rw", 1)
	if err != nil {
		return nil, nil, err
	}
	c, err := connect(context.Background(), db, path)
	if err != nil {
		_ = db.Close()
		return nil, nil, err
	}
	return c, func() { c.close(); _ = db.Close() }, nil
}

// accept keeps an intact file that lacks its newest commits.
func (sv *salvage) accept(ctx context.Context) (Report, error) {
	when := damagedSuffix()
	report := Report{Accepted: true}
	// Opening the file merges the readable part of its log and removes the log: keep both unchanged first.
	for _, suffix := range []string{"", "-wal"} {
		if err := sv.keep(&report, when, suffix); err != nil {
			return report, err
		}
	}
	if err := sv.aside(&report, when, headSuffix); err != nil {
		return report, err
	}
	s, err := Open(ctx, sv.path)
	if err != nil {
		return report, err
	}
	report.Missing = max(0, sv.known.seq-s.LastSeq())
	err = errors.Join(raiseFloor(s.w, sv.known.seq), s.Close())
	return report, err
}

// raiseFloor makes the journal continue above seq.
func raiseFloor(c *conn, seq int64) error {
	h, err := c.host()
	if err != nil {
		return err
	}
	now, err := c.number(journalSeq)
	if err != nil {
		return err
	}
	if h.floor = max(h.floor, seq); h.floor <= now && h.floor != seq {
		return nil
	}
	if err := c.script("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err = func() error {
		if err := c.script("DELETE FROM sqlite_sequence WHERE name = 'journal'"); err != nil {
			return err
		}
		if _, err := c.exec("INSERT INTO sqlite_sequence (name, seq) VALUES ('journal', ?)", max(now, seq)); err != nil {
			return err
		}
		h.floor = max(now, seq)
		return c.putHost(h)
	}()
	if err != nil {
		_ = c.script("ROLLBACK")
		return err
	}
	return c.script("COMMIT")
}

// exchange moves the damaged files aside and the new one into their place. The head is last, so that an incomplete exchange is
// detected.
func (sv *salvage) exchange() error {
	when := damagedSuffix()
	if err := syncFile(sv.fresh); err != nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := sv.aside(&sv.report, when, suffix); err != nil {
			return err
		}
	}
	if err := os.Rename(sv.fresh, sv.path); err != nil {
		return err
	}
	if err := sv.aside(&sv.report, when, headSuffix); err != nil {
		return err
	}
	syncDir(filepath.Dir(sv.path))
	return nil
}

// damagedSuffix is the suffix of files moved aside.
func damagedSuffix() string { return ".damaged-" + time.Now().UTC().Format("20060102T150405Z") }

// aside renames one of the state's files, if it exists, to an unused name.
func (sv *salvage) aside(r *Report, when, suffix string) error {
	return sv.away(r, when, suffix, os.Rename)
}

// keep copies it instead.
func (sv *salvage) keep(r *Report, when, suffix string) error {
	return sv.away(r, when, suffix, func(from, to string) error {
		return errors.Join(copyFile(from, to), syncFile(to))
	})
}

func (sv *salvage) away(r *Report, when, suffix string, put func(from, to string) error) error {
	if isMissing(sv.path + suffix) {
		return nil
	}
	to := sv.path + when + suffix
	for n := 2; !isMissing(to); n++ {
		to = fmt.Sprintf("%s%s.%d%s", sv.path, when, n, suffix)
	}
	if err := put(sv.path+suffix, to); err != nil {
		return err
	}
	r.Aside = append(r.Aside, to)
	return nil
}

// copyFile copies a file that may be missing.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
