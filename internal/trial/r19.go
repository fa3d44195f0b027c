package trial

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"centurion"
	"centurion/config"
	"centurion/demo"
	"centurion/provider/scripted"
)

// newerSchema is a version unknown to every program of this repository.
const newerSchema = 99

// oldState is a state file written by a released program.
type oldState struct {
	name    string // v1/demo.db
	content []byte
	rows    []centurion.Event // its journal, read with plain SQL
	status  map[string]string // of its missions, by id
	whole   string            // all its rows
}

func r19(ctx context.Context, t *T) {
	all, err := oldStates(ctx, t)
	t.Must(err)
	if len(all) == 0 {
		t.Fatalf("there is no state file of an earlier version in store/testdata")
	}
	events, opened, refused, resumed, newer := 0, 0, 0, 0, 0
	for _, old := range all {
		if ctx.Err() != nil {
			return
		}
		p, path := old.place(t)
		before := hashes(path)
		code, out := p.Run("ps", "--format", "json")
		if code != 0 {
			refused++
			if after := hashes(path); !maps.Equal(before, after) {
				t.Failf("%s was refused and changed all the same", old.name)
			}
			continue
		}
		opened++
		for _, wrong := range old.compare(p, out) {
			t.Failf("%s: %s", old.name, wrong)
		}
		events += len(old.rows)
		if !old.kept(ctx, t, path) {
			t.Failf("%s: no file beside it has the content from before the migration", old.name)
		}
		n, err := old.resume(t, p)
		if err != nil {
			t.Failf("%s: %v", old.name, err)
		}
		resumed += n
		if err := old.refuseNewer(t); err != nil {
			t.Failf("%s with schema %d: %v", old.name, newerSchema, err)
		} else {
			newer++
		}
	}
	t.Figure("state files", len(all))
	t.Figure("opened", opened)
	t.Figure("refused", refused)
	t.Figure("events compared", events)
	t.Figure("missions resumed", resumed)
	t.Figure("newer ones refused", newer)
	if resumed == 0 {
		t.Failf("no mission of an earlier version was gone on with")
	}
}

// oldStates reads the state files of store/testdata, which are compressed if they are large.
func oldStates(ctx context.Context, t *T) ([]oldState, error) {
	files, err := filepath.Glob(filepath.Join(t.Root(), "store", "testdata", "v*", "*.db*"))
	if err != nil {
		return nil, err
	}
	var all []oldState
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(file, ".gz") {
			r, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if b, err = io.ReadAll(r); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
		old := oldState{name: filepath.Base(filepath.Dir(file)) + "/" + strings.TrimSuffix(filepath.Base(file), ".gz"), content: b}
		if err := old.read(ctx, t); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, old)
	}
	return all, nil
}

// read reads the journal and the missions without the program's own code, and all rows of all tables as one text.
func (o *oldState) read(ctx context.Context, t *T) (err error) {
	path := filepath.Join(t.Dir, "plain.db")
	if err := os.WriteFile(path, o.content, 0o600); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path}).String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(), os.Remove(path)) }()
	tables, err := query(ctx, db, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
	if err != nil {
		return err
	}
	for _, table := range tables {
		rows, err := query(ctx, db, fmt.Sprintf(`SELECT * FROM "%s" ORDER BY 1, 2`, table[0]))
		if err != nil {
			return err
		}
		o.whole += fmt.Sprintf("%s %q\n", table[0], rows)
	}
	rows, err := query(ctx, db, "SELECT seq, type, mission, session, task, data FROM journal ORDER BY seq")
	if err != nil {
		return err
	}
	for _, r := range rows {
		seq, err := strconv.ParseInt(r[0], 10, 64)
		if err != nil {
			return err
		}
		o.rows = append(o.rows, centurion.Event{Seq: seq, Type: centurion.EventType(r[1]), Mission: r[2], Session: r[3], Task: r[4], Data: json.RawMessage(r[5])})
	}
	missions, err := query(ctx, db, "SELECT id, status FROM mission")
	o.status = map[string]string{}
	for _, r := range missions {
		o.status[r[0]] = r[1]
	}
	return err
}

// query returns the rows of a query as texts.
func query(ctx context.Context, db *sql.DB, text string) (all [][]string, err error) {
	rows, err := db.QueryContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Err(), rows.Close()) }()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		row, to := make([]string, len(names)), make([]any, len(names))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, nil
}

// place creates a project with the demonstration's files and the old state.
func (o *oldState) place(t *T) (*project, string) {
	p := t.Project(nil)
	t.Must(demo.Unpack(p.Dir))
	path := filepath.Join(config.ProjectDir(p.State, p.Dir), "centurion.db")
	t.Must(os.MkdirAll(filepath.Dir(path), 0o700))
	t.Must(os.WriteFile(path, o.content, 0o600))
	return p, path
}

// compare checks everything the program shows of an old file.
func (o *oldState) compare(p *project, ps string) []string {
	var wrong []string
	var listed []struct{ ID, Status string }
	if err := json.Unmarshal([]byte(ps), &listed); err != nil || len(listed) != len(o.status) {
		wrong = append(wrong, fmt.Sprintf("ps lists %d missions of %d (%v)", len(listed), len(o.status), err))
	}
	found := map[int64]centurion.Event{}
	for _, m := range listed {
		was := centurion.MissionStatus(o.status[m.ID])
		if shown := centurion.MissionStatus(m.Status); shown != was && (shown != centurion.MissionPaused || !was.Alive()) { // no process works on it
			wrong = append(wrong, fmt.Sprintf("mission %s is shown as %s and was %s", m.ID, m.Status, o.status[m.ID]))
		}
		if code, out := p.Run("show", m.ID, "--format", "json"); code != 0 || !json.Valid([]byte(out)) {
			wrong = append(wrong, fmt.Sprintf("show %s ends with %d", m.ID, code))
		}
		code, out := p.Run("logs", m.ID, "--format", "json")
		events, err := parseEvents(out)
		if code != 0 || err != nil {
			wrong = append(wrong, fmt.Sprintf("logs %s ends with %d (%v)", m.ID, code, err))
		}
		for _, e := range events {
			found[e.Seq] = e
		}
	}
	if lost := missing(o.rows, found); len(lost) > 0 {
		wrong = append(wrong, fmt.Sprintf("%d of %d events are lost or changed, the first is seq %d %s", len(lost), len(o.rows), lost[0].Seq, lost[0].Type))
	}
	return wrong
}

// kept reports whether a file next to the migrated one has the old content, in the old schema. The order may differ.
func (o *oldState) kept(ctx context.Context, t *T, path string) bool {
	beside, _ := filepath.Glob(path + ".*") // the pattern is a good one
	return slices.ContainsFunc(beside, func(file string) bool {
		b, err := os.ReadFile(file)
		copied := oldState{content: b}
		return err == nil && copied.read(ctx, t) == nil && copied.whole == o.whole
	})
}

// resume resumes the missions that have not ended and returns how many there were.
func (o *oldState) resume(t *T, p *project) (int, error) {
	n := 0
	for id, status := range o.status {
		if s := centurion.MissionStatus(status); s == centurion.MissionCompleted || s == centurion.MissionCancelled {
			continue
		}
		p.Serve(scripted.Config{Func: finisher, Pace: -1, Chunk: -1})
		host := p.Start("resume", id, "--format", "json", "--model", "custom/m", "--ask", "allow", "--max-tokens", "1000000000")
		if code := host.Wait(t, waitLimit); code != 0 {
			return n, fmt.Errorf("the resumed mission %s ended with %d: %s", id, code, lastLines(host.Stderr(), 5))
		}
		events, err := host.Events()
		if err != nil {
			return n, err
		}
		last := centurion.Event{}
		if len(events) > 0 {
			last = events[len(events)-1]
		}
		if last.Type != centurion.EventMissionCompleted {
			return n, fmt.Errorf("the resumed mission %s ended with the event %q", id, last.Type)
		}
		n++
	}
	return n, nil
}

// refuseNewer puts a newer schema into the file, which must then stay untouched.
func (o *oldState) refuseNewer(t *T) error {
	p, path := o.place(t)
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path}).String())
	if err != nil {
		return err
	}
	_, err = db.Exec(fmt.Sprintf("PRAGMA user_version = %d", newerSchema))
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	p.Serve(scripted.Config{Func: finisher, Pace: -1, Chunk: -1})
	before := hashes(path)
	for _, args := range [][]string{{"ps"}, {"logs"}, {"resume", "--model", "custom/m"}, {"run", "--model", "custom/m", "a goal"}, {"doctor", "--repair"}} {
		c := p.Start(args...)
		code := c.Wait(t, waitLimit)
		said := c.Stdout() + c.Stderr()
		if (code == 0 && args[0] != "doctor") || !strings.Contains(said, fmt.Sprintf("schema %d", newerSchema)) && !strings.Contains(said, "newer") {
			return fmt.Errorf("%s ends with %d and says: %s", args[0], code, lastLines(said, 5))
		}
		if !maps.Equal(before, hashes(path)) {
			return fmt.Errorf("%s has touched it", args[0])
		}
	}
	return nil
}
