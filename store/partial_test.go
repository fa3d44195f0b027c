package store

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"centurion"
)

// TRIAL R5: SQLite's own check passes over what a partial index holds too much; a page of one that is from an earlier time,
// or another page in its place, is damage that opening, checking and repairing agree on.
func TestPartialIndexes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "centurion.db")
	s := openAt(t, path)
	put := func(taken centurion.Time) {
		mustUpdate(t, s, func(tx *Tx) error {
			return tx.PutDelivery(&Delivery{ID: "dlv_1", Mission: "msn_1", Session: "ses_1", Task: "tsk_1", Created: centurion.MillisTime(1), Taken: taken})
		})
	}
	roots := map[string]int64{}
	put(centurion.Time{})
	err := s.w.each(func(scan func(...any) error) error {
		var name string
		var root int64
		err := scan(&name, &root)
		roots[name] = root
		return err
	}, "SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0")
	if err != nil {
		t.Fatal(err)
	}
	read := func() []byte {
		if err := s.Close(); err != nil { // which moves the log into the file
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	before := read()
	s = openAt(t, path)
	put(centurion.MillisTime(2))
	after := read()
	page := func(b []byte, name string) []byte { return b[(roots[name]-1)*4096:][:4096] }
	for name, from := range map[string][]byte{
		"delivery_pending": page(before, "delivery_pending"), // the delivery is said to wait still
		"ask_open":         page(after, "receipt"),           // not even an index
	} {
		t.Run(name, func(t *testing.T) {
			damaged := slices.Clone(after)
			copy(page(damaged, name), from)
			at := filepath.Join(t.TempDir(), "centurion.db")
			if err := os.WriteFile(at, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if s, err := Open(t.Context(), at); centurion.KindOf(err) != centurion.KindState {
				t.Errorf("opened: %v", err)
				if s != nil {
					s.Close()
				}
			}
			if err := Check(t.Context(), at); centurion.KindOf(err) != centurion.KindState {
				t.Errorf("checked: %v", err)
			}
			report, err := Salvage(t.Context(), at)
			if err != nil || report.Sound || len(report.Aside) == 0 {
				t.Fatalf("repaired: %+v, %v", report, err)
			}
			if !slices.ContainsFunc(report.Aside, func(file string) bool {
				kept, err := os.ReadFile(file)
				return err == nil && slices.Equal(kept, damaged)
			}) {
				t.Errorf("the damaged file is not kept as it was; there are %q", report.Aside)
			}
			if err := Check(t.Context(), at); err != nil {
				t.Errorf("after the repair: %v", err)
			}
		})
	}
}

// What is put aside at the same moment as something else has a name of its own, and nothing is overwritten.
func TestAsideOverwritesNothing(t *testing.T) {
	sv := salvage{path: filepath.Join(t.TempDir(), "p.db")}
	var r Report
	for _, text := range []string{"one", "two", "three"} {
		if err := os.WriteFile(sv.path+"-wal", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := sv.aside(&r, ".damaged", "-wal"); err != nil {
			t.Fatal(err)
		}
	}
	if err := sv.aside(&r, ".damaged", "-wal"); err != nil { // it is gone
		t.Fatal(err)
	}
	var got []string
	for _, file := range r.Aside {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, filepath.Base(file)+" "+string(b))
	}
	if want := []string{"p.db.damaged-wal one", "p.db.damaged.2-wal two", "p.db.damaged.3-wal three"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
