package store_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"centurion"
	"centurion/store"
	"centurion/store/storetest"
)

// files reads every file of a directory.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if found[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// scratch makes a directory in memory where there is one: nothing here has to last, and hundreds of repairs sync a lot.
func scratch(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "store-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func write(t *testing.T, dir string, what map[string][]byte) {
	t.Helper()
	for name, b := range what {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// states makes a state that was closed and one whose process died, so that the newest commits are in the log.
func states(t *testing.T) (all []map[string][]byte, dumps []string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 5))
	for _, closed := range []bool{true, false} {
		dir := t.TempDir()
		path := filepath.Join(dir, "state.db")
		s := open(t, path)
		if err := storetest.Fill(t.Context(), s, rng, 8); err != nil {
			t.Fatal(err)
		}
		if !closed {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, path)
			if err := storetest.Fill(t.Context(), s, rng, 4); err != nil {
				t.Fatal(err)
			}
			// The last commit has no journal row.
			if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.PutMission(&centurion.Mission{ID: "msn_z", Goal: "last"}) }); err != nil {
				t.Fatal(err)
			}
		}
		dump, err := storetest.Dump(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		kept := files(t, dir)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if closed {
			kept = files(t, dir)
		}
		delete(kept, "state.db-shm")
		all, dumps = append(all, kept), append(dumps, dump)
	}
	return all, dumps
}

func open(t *testing.T, path string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TRIAL R5: damage is found or survived and never served, and a repair keeps what was there.
func TestDamage(t *testing.T) {
	t.Parallel()
	all, dumps := states(t)
	var found, survived, refused, lost atomic.Int64
	for worker := range 4 {
		t.Run(fmt.Sprint(worker), func(t *testing.T) {
			t.Parallel()
			for seed := worker; seed < mutations; seed += 4 {
				rng := rand.New(rand.NewPCG(uint64(seed), 1))
				which := seed / 4 % 2
				damage(t, rng, seed, all[which], dumps[which], &found, &survived, &refused, &lost)
			}
		})
	}
	t.Cleanup(func() {
		t.Logf("%d mutations: %d found, %d survived; %d not repaired for they look newer or foreign, %d repaired to nothing",
			mutations, found.Load(), survived.Load(), refused.Load(), lost.Load())
	})
}

func damage(t *testing.T, rng *rand.Rand, seed int, from map[string][]byte, want string, found, survived, refused, lost *atomic.Int64) {
	dir := scratch(t)
	path := filepath.Join(dir, "state.db")
	write(t, dir, from)
	did, err := storetest.Mutate(rng, path)
	if err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	var got string
	s, err := store.Open(t.Context(), path)
	if err == nil {
		got, err = storetest.Dump(t.Context(), s)
		_ = s.Close()
	}
	switch {
	case err == nil && got == want:
		survived.Add(1)
		return
	case err == nil:
		t.Errorf("seed %d: %s: served something else:\n%s", seed, did, difference(got, want))
		return
	case centurion.KindOf(err) != centurion.KindState:
		t.Errorf("seed %d: %s: %v of kind %s", seed, did, err, centurion.KindOf(err))
	}
	found.Add(1)

	// What the repair begins with, as nobody has opened it.
	write(t, dir, before)
	for name := range files(t, dir) {
		if _, was := before[name]; !was {
			_ = os.Remove(filepath.Join(dir, name))
		}
	}
	report, err := store.Salvage(t.Context(), path)
	if err != nil {
		if !maps.EqualFunc(before, files(t, dir), bytes.Equal) || centurion.KindOf(err) != centurion.KindState {
			t.Errorf("seed %d: %s: %v, and the files were changed", seed, did, err)
		}
		refused.Add(1)
		return
	}
	after := files(t, dir)
	if !report.Accepted && !report.Sound {
		for name, b := range before {
			if !slices.ContainsFunc(report.Aside, func(p string) bool { return bytes.Equal(after[filepath.Base(p)], b) }) {
				t.Errorf("seed %d: %s: %s is not kept aside: %v", seed, did, name, report)
			}
		}
	}
	s, err = store.Open(t.Context(), path)
	if err != nil {
		t.Errorf("seed %d: %s: after the repair: %v (%+v)", seed, did, err, report)
		return
	}
	defer func() { _ = s.Close() }()
	got, err = storetest.Dump(t.Context(), s)
	if err != nil {
		t.Errorf("seed %d: %s: after the repair: %v", seed, did, err)
	}
	if missions, _ := s.Missions(t.Context()); len(missions) == 0 {
		lost.Add(1)
	}
	if err := store.Check(t.Context(), path+"x"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Error(err)
	}
	// Each mission and event that is there is one that was there.
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, `{"mission":`) && !strings.Contains(want, line) {
			t.Errorf("seed %d: %s: the repair made up %.200s", seed, did, line)
		}
	}
}

func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d\n got %.600s\nwant %.600s", i, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}
