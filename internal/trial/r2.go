package trial

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // the driver, for the control

	"centurion"
	"centurion/event"
	"centurion/guard"
)

// The power cut: state and project are on an ext4 image in memory. Unsynced writes are in the kernel's page cache of that file system,
// not in the image, so a copy of the image is the state of a disk after a power cut. A stopped process cannot sync, and killing it
// afterwards does not change the copy.
const (
	cutImage   = 64 // megabytes: a mission's state and project take less than ten
	cutWorkers = 50
	cutQuick   = 25
	cutFull    = 500
	// controlCuts are cuts of a writer that does not sync each commit. It lost rows in two of three cuts when this was written.
	controlCuts = 12
)

// stopSignal is SIGSTOP on Linux, where the trials run. Not every system's package syscall has the name.
const stopSignal = syscall.Signal(19)

// cutter is the state of the trial.
type cutter struct {
	t    *T
	m    mounts
	ram  string // memory that holds the images
	live string // the mounted image
	disk string // its mount point
	crew crew
	p    *project
	told []centurion.Event // by all hosts of the mission so far

	cuts, lost, checked, lostFiles, resumed, finished int
}

func r2(ctx context.Context, t *T) {
	c := &cutter{t: t, ram: filepath.Join(t.Dir, "ram"), disk: filepath.Join(t.Dir, "disk"),
		crew: crew{workers: cutWorkers, pause: 15 * time.Millisecond, filler: 4000}}
	t.Cleanup(func() {
		if err := c.m.close(); err != nil {
			t.Failf("undo the mounts: %v", err)
		}
	})
	if err := c.possible(ctx); err != nil {
		t.NotPossible("%v; it takes root, mount, mkfs.ext4 and loop devices", err)
	}
	lostRows, lostFull, lostFiles, err := c.control(ctx)
	t.Must(err)
	quota := t.Scale(cutQuick, cutFull)
	for c.cuts < quota && ctx.Err() == nil {
		if err := c.mission(ctx, quota); err != nil {
			t.Failf("after %d cuts: %v", c.cuts, err)
			break
		}
	}
	t.Figure("cuts", c.cuts)
	t.Figure("checked", c.checked)
	t.Figure("lost", c.lost)
	t.Figure("files lost", c.lostFiles)
	t.Figure("resumed", c.resumed)
	t.Figure("missions ended", c.finished)
	t.Figure("control lost", lostRows)
	t.Figure("control lost with FULL", lostFull)
	t.Figure("control files lost", lostFiles)
	switch {
	case lostRows == 0 || lostFiles == 0:
		t.Failf("the control lost nothing, so that these cuts prove nothing")
	case lostFull > 0:
		t.Failf("the control lost %d rows that were synced: the cuts are not what they should be", lostFull)
	case c.finished == 0 && ctx.Err() == nil:
		t.Failf("no mission went on to its end")
	}
}

// possible mounts what the trial needs.
func (c *cutter) possible(ctx context.Context) error {
	if err := c.m.tmpfs(ctx, c.ram, 6*cutImage); err != nil {
		return err
	}
	return c.fresh(ctx)
}

// fresh mounts an empty image.
func (c *cutter) fresh(ctx context.Context) error {
	if c.live != "" {
		if err := c.m.unmount(c.disk); err != nil {
			return err
		}
		if err := os.Remove(c.live); err != nil {
			return err
		}
	}
	c.live = filepath.Join(c.ram, "live.img")
	if err := newImage(ctx, c.live, cutImage); err != nil {
		return err
	}
	return c.m.image(ctx, c.live, c.disk)
}

// swap replaces the mounted image with a copy, mounted at the same place.
func (c *cutter) swap(ctx context.Context, copied string) error {
	if err := c.m.unmount(c.disk); err != nil {
		return err
	}
	if err := errors.Join(os.Remove(c.live), os.Rename(copied, c.live)); err != nil {
		return err
	}
	return c.m.image(ctx, c.live, c.disk)
}

// mission runs a crew's mission and cuts it repeatedly until it has ended or the quota is used up. After each cut it continues from the
// copy.
func (c *cutter) mission(ctx context.Context, quota int) error {
	if err := c.fresh(ctx); err != nil {
		return err
	}
	c.p = c.t.Project(nil)
	c.p.Dir, c.p.State = filepath.Join(c.disk, "p"), filepath.Join(c.disk, "state")
	c.p.Serve(c.crew.config())
	if err := errors.Join(os.MkdirAll(c.p.Dir, 0o700), command(ctx, "sync", "-f", c.disk)); err != nil { // it existed before the cut
		return err
	}
	c.told = nil
	args := append([]string{"run"}, append(c.crew.args(), "write all files")...)
	for {
		host := c.p.Start(args...)
		if c.cuts < quota {
			select {
			case <-host.done:
			case <-time.After(time.Duration(30+c.t.Rand.IntN(900)) * time.Millisecond):
			}
		}
		if c.cuts >= quota || host.Ended() {
			return c.end(ctx, host)
		}
		begun, err := c.cut(ctx, host)
		switch {
		case errors.Is(err, os.ErrProcessDone): // it has ended at this very moment
			return c.end(ctx, host)
		case err != nil:
			return err
		}
		if begun {
			args = append([]string{"resume"}, c.crew.args()...)
			c.resumed++
		}
	}
}

// end waits for a host that ends by itself and checks how the mission ended.
func (c *cutter) end(ctx context.Context, host *process) error {
	code := host.Wait(c.t, waitLimit)
	if err := c.hear(host); err != nil {
		return err
	}
	if code != 0 {
		return fmt.Errorf("exit code %d: %s", code, lastLines(host.Stderr(), 5))
	}
	journal, err := readJournal(ctx, c.p.Database())
	if err != nil {
		return err
	}
	c.compare(journal)
	for _, wrong := range c.crew.finished(c.p, journal) {
		c.t.Failf("at the end of a mission with power cuts: %s", wrong)
	}
	c.finished++
	return nil
}

// hear adds what a host has acknowledged to what must be there.
func (c *cutter) hear(host *process) error {
	facts, err := told(host)
	c.told = append(c.told, facts...)
	return err
}

// cut makes one power cut and checks the result. It reports whether there is a mission to resume.
func (c *cutter) cut(ctx context.Context, host *process) (begun bool, err error) {
	copied := filepath.Join(c.ram, "copy.img")
	if err := host.Signal(stopSignal); err != nil {
		return false, err
	}
	err = freeze(c.live, copied)
	host.Kill() // it could not write to the copy any more, nor print anything
	if err = errors.Join(err, c.hear(host)); err != nil {
		return false, err
	}
	if err := c.swap(ctx, copied); err != nil {
		return false, err
	}
	c.cuts++
	path := c.p.Database()
	if path == "" {
		if len(c.told) > 0 {
			c.lost += len(c.told)
			c.t.Failf("cut %d: the state file is gone, with %d acknowledged lines", c.cuts, len(c.told))
		}
		return false, nil
	}
	journal, err := readJournal(ctx, path)
	if err != nil {
		return false, fmt.Errorf("cut %d: the state cannot be opened: %w", c.cuts, err)
	}
	c.compare(journal)
	if _, err := readPlan(c.p); err != nil {
		c.t.Failf("cut %d: todo.md is torn: %v", c.cuts, err)
	}
	for _, e := range journal {
		if e.Type == centurion.EventMissionStarted {
			return true, nil
		}
	}
	return false, nil
}

// compare looks up every acknowledged line in the journal, and the files whose writing was acknowledged.
func (c *cutter) compare(journal map[int64]centurion.Event) {
	lost := missing(c.told, journal)
	c.checked += len(c.told)
	c.lost += len(lost)
	if len(lost) > 0 {
		c.t.Failf("cut %d: %d of %d acknowledged lines are lost, the first is seq %d %s", c.cuts, len(lost), len(c.told), lost[0].Seq, lost[0].Type)
	}
	for _, e := range c.told {
		var d event.TaskData
		if e.Type != centurion.EventTaskCompleted || json.Unmarshal(e.Data, &d) != nil {
			continue
		}
		if b, err := os.ReadFile(filepath.Join(c.p.Dir, "out", d.Item+".txt")); err != nil || string(b) != c.crew.content(d.Item) {
			c.lostFiles++
			c.t.Failf("cut %d: the file of %s, whose task was completed, holds %d bytes (%v)", c.cuts, d.Item, len(b), err)
		}
	}
}

// control cuts two writers of the trial itself, which commit to SQLite with synchronous=NORMAL and FULL, and an unsynced file. It
// returns the lost rows of each and how often the file was missing.
func (c *cutter) control(ctx context.Context) (normal, full, files int, err error) {
	if normal, files, err = c.controlRun(ctx, "NORMAL"); err != nil {
		return 0, 0, 0, err
	}
	full, more, err := c.controlRun(ctx, "FULL")
	return normal, full, files + more, err
}

func (c *cutter) controlRun(ctx context.Context, sync string) (rows, files int, err error) {
	if err := c.fresh(ctx); err != nil {
		return 0, 0, err
	}
	w, err := newControlWriter(filepath.Join(c.disk, "control.db"), sync)
	if err != nil {
		return 0, 0, err
	}
	var group guard.Group
	group.Go("control writer", w.run)
	defer func() {
		w.end()
		err = errors.Join(err, group.Wait(), w.db.Close())
	}()
	ghost := filepath.Join(c.disk, "unsynced")
	copied, at := filepath.Join(c.ram, "copy.img"), filepath.Join(c.t.Dir, "copy")
	for range controlCuts {
		time.Sleep(time.Duration(20+c.t.Rand.IntN(60)) * time.Millisecond) // then the power fails
		if err := os.WriteFile(ghost, []byte("nobody synced this"), 0o600); err != nil {
			return rows, files, err
		}
		acknowledged, err := w.stopped(func() error { return freeze(c.live, copied) })
		if err != nil {
			return rows, files, err
		}
		if err := c.m.image(ctx, copied, at); err != nil {
			return rows, files, err
		}
		n, err := countRows(filepath.Join(at, "control.db"))
		b, _ := os.ReadFile(filepath.Join(at, "unsynced")) // it should not be there
		if err := errors.Join(err, c.m.unmount(at), os.Remove(copied), os.Remove(ghost)); err != nil {
			return rows, files, err
		}
		rows += max(0, acknowledged-n)
		if len(b) == 0 {
			files++
		}
	}
	return rows, files, nil
}

// controlWriter inserts one row after the other.
type controlWriter struct {
	db *sql.DB

	mu   sync.Mutex // held while a row is written
	rows int
	over bool
}

func newControlWriter(path, sync string) (*controlWriter, error) {
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	for _, q := range []string{"PRAGMA journal_mode=WAL", "PRAGMA synchronous=" + sync, "CREATE TABLE t (n INTEGER PRIMARY KEY, v TEXT)",
		"PRAGMA wal_checkpoint(TRUNCATE)"} {
		if _, err := db.Exec(q); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return &controlWriter{db: db}, nil
}

func (w *controlWriter) run() error {
	for {
		if over, err := w.insert(); over || err != nil {
			return err
		}
	}
}

func (w *controlWriter) insert() (over bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return true, nil
	}
	if _, err := w.db.Exec("INSERT INTO t (v) VALUES ('a row of the control')"); err != nil {
		return false, err
	}
	w.rows++
	return false, nil
}

// stopped runs f while nothing is written and returns how many rows were acknowledged by then.
func (w *controlWriter) stopped(f func() error) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rows, f()
}

func (w *controlWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
}

// countRows returns the number of rows in a copy. A copy without the table has none.
func countRows(path string) (n int, err error) {
	if _, err := os.Stat(path); err != nil {
		return 0, nil
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path}).String())
	if err != nil {
		return 0, err
	}
	if db.QueryRow("SELECT count(*) FROM t").Scan(&n) != nil {
		n = 0
	}
	return n, db.Close()
}
