package store

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"centurion"
)

// unpack writes a state file of an older schema and returns its path.
func unpack(t *testing.T, version int, name string) string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", fmt.Sprintf("v%d", version), name+".db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "centurion.db")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// content reads the rows as they lie in a file, with the columns that schema 1 has.
func content(t *testing.T, path string) []string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var all []string
	for _, tab := range tablesOf(1) {
		rows, err := db.QueryContext(t.Context(), strings.Replace(tab.selectRow, "sum", "0", 1))
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			cols := make([]any, 2+len(tab.cols))
			to := make([]any, len(cols))
			for i := range cols {
				to[i] = &cols[i]
			}
			if err := rows.Scan(to...); err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprint(tab.name, cols))
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// olderVersions are the schemas of which there are files.
var olderVersions = []int{1, 2, 3}

// R19, OPAL-29: a state of every older schema is copied, brought up to date with every row it had, and opened again. Its messages
// form one line for each session.
func TestVersions(t *testing.T) {
	t.Parallel()
	for _, version := range olderVersions {
		for _, name := range []string{"whole", "killed"} {
			t.Run(fmt.Sprintf("v%d/%s", version, name), func(t *testing.T) {
				t.Parallel()
				testVersion(t, version, name)
			})
		}
	}
}

func testVersion(t *testing.T, version int, name string) {
	path := unpack(t, version, name)
	want := content(t, path)
	for range 2 {
		s, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.LatestMission(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if tasks, err := s.Tasks(t.Context(), m.ID); err != nil || len(tasks) != 9 {
			t.Errorf("%d tasks, %v", len(tasks), err)
		}
		oneLine(t, s, m.ID)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := Check(t.Context(), path); err != nil {
		t.Error(err)
	}
	if got := content(t, path); len(want) < 200 || !slices.Equal(withoutDecisions(got), want) {
		t.Errorf("%d rows became %d", len(want), len(got))
	}
	if got := content(t, fmt.Sprintf("%s.v%d", path, version)); !slices.Equal(got, want) {
		t.Errorf("the copy has %d rows of %d", len(got), len(want))
	}
	s := openAt(t, path)
	mustUpdate(t, s, func(tx *Tx) error { return fact(tx, "more") })
}

// decided matches what the rows of schema 4 say beside what those of schema 3 said.
var decided = regexp.MustCompile(`(,"landed":\[\{"commit":"a.*|,"rejections":.*|,"merging":"[^"]*")\}\]$`)

func withoutDecisions(rows []string) []string {
	var out []string
	for _, r := range rows {
		out = append(out, decided.ReplaceAllString(r, "}]"))
	}
	return out
}

// R19: why work was sent back, what the mission's own agent has merged and which merge nobody knows the end of is taken over from
// the journal, also by a repair.
func TestDecisionsAreTakenOver(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(path string) error{
		"opened":   func(string) error { return nil },
		"repaired": damageEvents,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := unpack(t, 3, "whole")
			if err := open(path); err != nil {
				t.Fatal(err)
			}
			if name == "repaired" {
				if _, err := Salvage(t.Context(), path); err != nil {
					t.Fatal(err)
				}
			}
			s := openAt(t, path)
			m, err := s.LatestMission(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tasks, err := s.Tasks(t.Context(), m.ID)
			if err != nil {
				t.Fatal(err)
			}
			hash := func(c string) string { return strings.Repeat(c, 40) }
			var own []string
			for _, l := range m.Landed {
				own = append(own, l.Before+" "+l.Commit)
			}
			if want := []string{" " + hash("a"), hash("b") + " " + hash("d")}; !slices.Equal(own, want) || m.Merging != "" {
				t.Errorf("its own agent merged %q, want %q", own, want)
			}
			if last, err := s.Events(t.Context(), EventQuery{Mission: m.ID, Types: []centurion.EventType{centurion.EventMergeDone}, Limit: 10}); err != nil ||
				len(last) < 4 || !m.OwnLanding().Equal(last[3].Time.Time) {
				t.Errorf("last at %v, as %v, %v", m.OwnLanding(), last, err)
			}
			want := []centurion.Rejection{{Cause: "check", Command: "go test ./..."}, {Cause: "conflict", Files: []string{"go.txt", "sub/b.txt"}}}
			if got := tasks[0]; !reflect.DeepEqual(got.Rejections, want) || got.Merging != "" {
				t.Errorf("the first task: %+v, merging %q", got.Rejections, got.Merging)
			}
			if got := tasks[1]; got.Merging != hash("e") || got.Rejections != nil {
				t.Errorf("the second task: %+v, merging %q", got.Rejections, got.Merging)
			}
			for _, rest := range tasks[2:] {
				if rest.Merging != "" || rest.Rejections != nil {
					t.Errorf("task %s: %+v, merging %q", rest.ID, rest.Rejections, rest.Merging)
				}
			}
		})
	}
}

// A merge is open only while nobody has told its end: of a task that was merging when its last commit was told, nothing is.
func TestToldMergeIsNotOpen(t *testing.T) {
	t.Parallel()
	for commit, want := range map[string]string{"told": "", "untold": `,"merging":"untold"`} {
		d := decisions{merged: map[string]bool{"told": true}}
		r := &row{cols: []sql.RawBytes{[]byte("tsk_1"), []byte(`{"status":"merging","landed":[{"commit":"` + commit + `"}]}`)}}
		if got := d.lacks(r); got != want {
			t.Errorf("%s: %q, want %q", commit, got, want)
		}
	}
}

// damageEvents changes an event that decides nothing.
func damageEvents(path string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	_, err = db.Exec("UPDATE journal SET data = '{}' WHERE seq = 1")
	return errors.Join(err, db.Close())
}

// oneLine looks that every message of a mission stands under the one that was stored before it in its session.
func oneLine(t *testing.T, s *Store, mission string) {
	t.Helper()
	sessions, err := s.Sessions(t.Context(), mission)
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, rec := range sessions {
		line, err := s.Messages(t.Context(), rec.ID)
		if err != nil {
			t.Fatal(err)
		}
		prev := ""
		for _, m := range line {
			if m.Prev != prev {
				t.Errorf("%s stands under %q instead of %q", m.ID, m.Prev, prev)
			}
			prev = m.ID
		}
		all += len(line)
	}
	if all < 20 {
		t.Errorf("only %d messages", all)
	}
}

// TRIAL R19: a damaged state of an older schema can be repaired too.
func TestSalvageVersions(t *testing.T) {
	t.Parallel()
	for _, version := range olderVersions {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			t.Parallel()
			testSalvageVersion(t, version)
		})
	}
}

func testSalvageVersion(t *testing.T, version int) {
	path := unpack(t, version, "whole")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[len(b)/2 : len(b)/2+4096])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path); centurion.KindOf(err) != centurion.KindState {
		t.Fatal(err)
	}
	report, err := Salvage(t.Context(), path)
	if err != nil || len(report.Aside) == 0 {
		t.Fatal(report, err)
	}
	kept, lost := 0, 0
	for _, r := range report.Tables {
		kept, lost = kept+r.Kept, lost+r.Lost
	}
	if kept < 400 || lost == 0 {
		t.Errorf("%d rows kept, %d lost: %+v", kept, lost, report)
	}
	if err := Check(t.Context(), path); err != nil {
		t.Error(err)
	}
}

// TRIAL R19: a newer file, and another program's, is refused by everybody and stays byte for byte.
func TestNewerUntouched(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"newer": "PRAGMA user_version = 99", "foreign": "PRAGMA application_id = 7"} {
		path := unpack(t, 1, "whole")
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), script); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, opened := Open(t.Context(), path)
		_, repaired := Salvage(t.Context(), path)
		checked := Check(t.Context(), path)
		for what, err := range map[string]error{"open": opened, "salvage": repaired, "check": checked} {
			if centurion.KindOf(err) != centurion.KindState || centurion.HintOf(err) == "" {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		after, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the file was changed (%v)", name, err)
		}
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(entries) > 1 && !strings.HasPrefix(entries[1].Name(), "centurion.db-") {
			t.Errorf("%s: left behind %v (%v)", name, entries, err)
		}
	}
}

// A log that is gone is missed, and its loss can be accepted: numbers that were told are not given again.
func TestMissingLog(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]func(tx *Tx) error{
		"events":  func(tx *Tx) error { return fact(tx, "late") },
		"changes": func(tx *Tx) error { return tx.PutMission(&centurion.Mission{ID: "msn_2"}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "state.db")
			s := openAt(t, path)
			mustUpdate(t, s, func(tx *Tx) error { return errors.Join(fact(tx, "early"), fact(tx, "early")) })
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s = openAt(t, path)
			mustUpdate(t, s, last)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, whole, 0o600); err != nil { // as if the log had never reached it
				t.Fatal(err)
			}
			_, err = Open(t.Context(), path)
			if centurion.KindOf(err) != centurion.KindState || !strings.Contains(err.Error(), "1 "+name) {
				if !strings.Contains(fmt.Sprint(err), "1 changes") {
					t.Fatal(err)
				}
			}
			report, err := Salvage(t.Context(), path)
			if err != nil || !report.Accepted || len(report.Aside) != 2 { // the file as it was, and its head
				t.Fatal(report, err)
			}
			s = openAt(t, path)
			var next int64
			mustUpdate(t, s, func(tx *Tx) (err error) {
				next, err = tx.Append(centurion.Event{Type: centurion.EventTaskQueued})
				return err
			})
			if want := map[string]int64{"events": 4, "changes": 3}[name]; next != want {
				t.Errorf("the next event has number %d, want %d", next, want)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := Check(t.Context(), path); err != nil {
				t.Error(err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(t.Context(), path); centurion.KindOf(err) != centurion.KindState {
				t.Errorf("a file that is gone: %v", err)
			}
		})
	}
}

// R16, R19: several that open a state of an older schema at the same moment all get it, and one copy of it is kept.
func TestMigrateTogether(t *testing.T) {
	t.Parallel()
	path := unpack(t, 1, "whole")
	before := content(t, path)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := content(t, path+".v1"); !slices.Equal(got, before) {
		t.Error("the copy is not what stood there")
	}
	if left, err := filepath.Glob(path + ".v1.tmp*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
