package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"centurion"
)

// TRIAL R5: a row whose number is far away and which cannot be read is passed over in one step, not number by number.
func TestSalvageFarRow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := openAt(t, path)
	if err := s.Own(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := s.Update(t.Context(), func(tx *Tx) error {
		for range 5 {
			if _, err := tx.Append(centurion.Event{Type: centurion.EventTodoUpdated}); err != nil {
				return err
			}
		}
		_, err := tx.c.exec(`INSERT INTO journal (seq, time, type, mission, session, task, data, sum) VALUES (1 << 35, 0, 'x', '', '', '', ?, 0)`,
			strings.Repeat("far away ", 4000))
		return err
	})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	// The pages that the row goes on in stand last.
	if err := os.Truncate(path, fi.Size()-3*4096); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	r, err := Salvage(t.Context(), path)
	if err != nil || r.Sound || r.Accepted {
		t.Fatalf("%+v, %v", r, err)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	for _, table := range r.Tables {
		if table.Name == "journal" && table.Kept != 5 {
			t.Errorf("%d of 5 rows kept", table.Kept)
		}
	}
	// A host that had the damaged file writes nothing into the new one.
	if n := count(t, openAt(t, path), `SELECT epoch FROM host`); n != 2 {
		t.Errorf("epoch %d after a claim and a repair", n)
	}
}

// TRIAL R5: a file that was cut in the middle of a page is repaired wherever the cut is. In what is left of such a page a row may say
// that it is number 0, and looking on from there would never end.
func TestSalvageCutPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := openAt(t, path)
	err := s.Update(t.Context(), func(tx *Tx) error {
		for range 400 {
			if _, err := tx.Append(centurion.Event{Type: centurion.EventTodoUpdated, Data: []byte(`{"x":"` + strings.Repeat("y", 300) + `"}`)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = s.Close()
	}
	whole, rerr := os.ReadFile(path)
	if err != nil || rerr != nil {
		t.Fatal(err, rerr)
	}
	for cut := 4096 * 4; cut < len(whole); cut += 997 {
		at := filepath.Join(t.TempDir(), "state.db")
		if err := os.WriteFile(at, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Salvage(t.Context(), at); err != nil {
			t.Errorf("cut after %d bytes: %v", cut, err)
		}
	}
}

// The journal's own counter says which numbers were given. A damaged one is not believed, and where it is lost the numbers still go on
// above those that an earlier repair has set.
func TestSalvageCounter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		floor         int64
		damage        string
		next, missing int64
	}{
		"a number that cannot be": {0, `UPDATE sqlite_sequence SET seq = 1 << 50 WHERE name = 'journal'`, 4, 0},
		"lost above the events":   {10, `DELETE FROM sqlite_sequence WHERE name = 'journal'`, 11, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "state.db")
			s := openAt(t, path)
			mustUpdate(t, s, func(tx *Tx) error { return errors.Join(fact(tx, "a"), fact(tx, "b"), fact(tx, "c")) })
			if tt.floor > 0 {
				if err := raiseFloor(s.w, tt.floor); err != nil {
					t.Fatal(err)
				}
			}
			mustUpdate(t, s, func(tx *Tx) error { _, err := tx.c.exec(tt.damage); return err })
			if err := errors.Join(s.Close(), os.Remove(path+headSuffix)); err != nil {
				t.Fatal(err)
			}
			report, err := Salvage(t.Context(), path)
			if err != nil || report.Sound || report.Missing != tt.missing {
				t.Errorf("%+v, %v, want %d missing", report, err, tt.missing)
			}
			mustUpdate(t, openAt(t, path), func(tx *Tx) error {
				n, err := tx.Append(centurion.Event{Type: centurion.EventTaskQueued})
				if n != tt.next {
					t.Errorf("the next event has number %d, want %d", n, tt.next)
				}
				return err
			})
		})
	}
}

// Where there is nothing to repair nothing is made.
func TestSalvageNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	if _, err := Salvage(t.Context(), path); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("repaired a file that is not there: %v", err)
	}
	if names := fileNames(t, filepath.Dir(path)); names != "" {
		t.Errorf("it left %s", names)
	}
}
