package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"centurion"
)

// Directories and file are the owner's alone, every path works, and the pragmas that durability rests on are in force.
func TestOpen(t *testing.T) {
	t.Parallel()
	names := []string{"plain", "a #b; ümläut 100%25&amp=1"}
	if runtime.GOOS != "windows" {
		names = append(names, "what?mode=memory")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			path := filepath.Join(root, name, "deeper", name+".db")
			s := openAt(t, path)
			if s.Path() != path {
				t.Errorf("path %s", s.Path())
			}
			for p, want := range map[string]os.FileMode{filepath.Join(root, name): 0o700, filepath.Dir(path): 0o700, path: 0o600, path + "-wal": 0o600} {
				info, err := os.Stat(p)
				if err != nil {
					t.Fatal(err)
				}
				if runtime.GOOS != "windows" && info.Mode().Perm() != want {
					t.Errorf("%s has mode %v, want %v", p, info.Mode().Perm(), want)
				}
			}
			for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "fullfsync": "1", "checkpoint_fullfsync": "1", "foreign_keys": "0",
				"journal_size_limit": "67108864", "cell_size_check": "1"} {
				var got string
				if err := s.w.row("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
					t.Errorf("%s is %s, want %s (%v)", pragma, got, want, err)
				}
			}
			mustUpdate(t, s, func(tx *Tx) error { return tx.PutMission(&centurion.Mission{ID: "msn_1"}) })
			if err := s.read(t.Context(), func(c *conn) error { return c.script("DELETE FROM mission") }); err == nil {
				t.Error("the read pool can write")
			}
			if _, err := s.Mission(t.Context(), "msn_1"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	write := func(t *testing.T, path string, b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sqlFile := func(script string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			s := openAt(t, path)
			if err := s.w.script(script); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		hint string
	}{
		{"a newer schema", sqlFile("PRAGMA user_version = 99"), "newer centurion"},
		{"another program's", sqlFile("PRAGMA application_id = 7"), "move it away"},
		{"another program's without a mark", sqlFile("PRAGMA application_id = 0; PRAGMA user_version = 0"), "move it away"},
		{"a schema that was never written", sqlFile("PRAGMA user_version = 0"), "centurion doctor"},
		{"a schema below all", sqlFile("PRAGMA user_version = -1"), "centurion doctor"},
		{"no database", func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("todo "), 1000)) }, "centurion doctor"},
		{"a damaged one", func(t *testing.T, path string) {
			sqlFile("")(t, path)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, append(b[:100:100], bytes.Repeat([]byte{0xaa}, len(b)-100)...))
		}, "centurion doctor"},
		{"a directory", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "CENTURION_HOME"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "state.db")
			c.make(t, path)
			before, _ := os.ReadFile(path)
			_, err := Open(t.Context(), path)
			if centurion.KindOf(err) != centurion.KindState || !strings.Contains(centurion.HintOf(err), c.hint) {
				t.Errorf("error %v of kind %s, hint %q", err, centurion.KindOf(err), centurion.HintOf(err))
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
	t.Run("a file in the way", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "f")
		write(t, path, nil)
		_, err := Open(t.Context(), filepath.Join(path, "state.db"))
		if centurion.KindOf(err) != centurion.KindState || centurion.HintOf(err) == "" {
			t.Errorf("%v of kind %s", err, centurion.KindOf(err))
		}
	})
}

// Damage behind the schema is found by whoever reads it, and told as such.
func TestDamagedRow(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	mustUpdate(t, s, func(tx *Tx) error {
		return errors.Join(tx.PutMission(&centurion.Mission{ID: "msn_1", Goal: "ten"}),
			second(tx.exec(`UPDATE mission SET data = replace(data, 'ten', 'two')`)))
	})
	_, err := s.Missions(t.Context())
	if centurion.KindOf(err) != centurion.KindState || !strings.Contains(centurion.HintOf(err), "doctor --repair") ||
		!strings.Contains(err.Error(), `mission "msn_1"`) {
		t.Errorf("%v of kind %s", err, centurion.KindOf(err))
	}
}

// Every earlier version, from none on, leads to the newest; a step that fails leaves the version before it.
func TestMigrate(t *testing.T) {
	t.Parallel()
	steps := fstest.MapFS{
		"0003_more.sql": {Data: []byte(`CREATE TABLE extra (n INTEGER); INSERT INTO extra SELECT count(*) FROM mission;`)},
		"0004_last.sql": {Data: []byte(`ALTER TABLE extra ADD COLUMN m INTEGER DEFAULT 7;`)},
	}
	for _, name := range []string{"0001_init.sql", "0002_sums.sql"} {
		b, err := migrationFiles.ReadFile("migrations/" + name)
		if err != nil {
			t.Fatal(err)
		}
		steps[name] = &fstest.MapFile{Data: b}
	}
	upTo := func(n int) fstest.MapFS {
		some := fstest.MapFS{}
		for name, f := range steps {
			if name < fmt.Sprintf("%04d", n+1) {
				some[name] = f
			}
		}
		return some
	}
	for _, from := range []int{0, 2, 3, 4} {
		path := filepath.Join(t.TempDir(), "state.db")
		if from > 0 {
			s, err := open(t.Context(), path, upTo(from))
			if err != nil {
				t.Fatal(err)
			}
			mustUpdate(t, s, func(tx *Tx) error { return tx.PutMission(&centurion.Mission{ID: "msn_1", Goal: "kept"}) })
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s, err := open(t.Context(), path, steps)
		if err != nil {
			t.Fatalf("from %d: %v", from, err)
		}
		if got := count(t, s, "SELECT m FROM extra"); got != 7 {
			t.Errorf("from %d: %d", from, got)
		}
		if got := count(t, s, "PRAGMA user_version"); got != 4 {
			t.Errorf("from %d to version %d", from, got)
		}
		if m, err := s.Missions(t.Context()); err != nil || from > 0 && (len(m) != 1 || m[0].Goal != "kept") {
			t.Errorf("from %d: %v, %v", from, m, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}

	path := filepath.Join(t.TempDir(), "state.db")
	s, err := open(t.Context(), path, upTo(3))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	steps["0004_last.sql"].Data = []byte(`CREATE TABLE half (n INTEGER); INSERT INTO nowhere VALUES (1);`)
	if _, err := open(t.Context(), path, steps); err == nil || !strings.Contains(err.Error(), "step 4") || !strings.Contains(err.Error(), path+".v3") {
		t.Errorf("a failing step: %v", err)
	}
	s, err = open(t.Context(), path, upTo(3))
	if err != nil {
		t.Fatal(err)
	}
	if got := count(t, s, "SELECT count(*) FROM sqlite_schema WHERE name = 'half'"); got != 0 {
		t.Error("a failed step left something behind")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := readMigrations(fstest.MapFS{"0001_a.sql": {}, "0003_b.sql": {}}); err == nil {
		t.Error("a hole between migrations is accepted")
	}
}

func TestOpenTogether(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Update(t.Context(), func(tx *Tx) error { return tx.PutMission(&centurion.Mission{ID: fmt.Sprint("msn_", i)}) }); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if m, err := openAt(t, path).Missions(t.Context()); err != nil || len(m) != 4 {
		t.Errorf("%d missions, %v", len(m), err)
	}
}

func TestOpenCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(centurion.ErrShutdown)
	if _, err := Open(ctx, filepath.Join(t.TempDir(), "state.db")); !errors.Is(err, centurion.ErrShutdown) {
		t.Error(err)
	}
}
