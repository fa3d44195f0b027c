package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion/workspace/todo"
)

func add(title string) func(*todo.Doc) error {
	return func(d *todo.Doc) error { _, err := d.Add("", todo.Item{Title: title}); return err }
}

// A plan that has been moved away is forgotten: the next one of its name is a new plan, not a change of the old one.
func TestMovedPlanIsForgotten(t *testing.T) {
	t.Parallel()
	for _, away := range []func(f *TodoFile) (string, error){
		func(f *TodoFile) (string, error) { return f.Archive("old.md") },
		func(f *TodoFile) (string, error) { return f.Rename("old.md") },
	} {
		w := project(t)
		f := w.Todo()
		var err error
		for _, title := range []string{"one", "two"} {
			if _, e := f.Edit(t.Context(), add(title)); e != nil {
				err = errors.Join(err, e)
			}
		}
		if len(f.held) == 0 {
			t.Error("no file is held")
		}
		if f.meet([]Foreign{{To: &todo.Doc{}}}); len(f.met) != 1 {
			t.Error("no foreign change is known")
		}
		held := slices.Clone(f.held)
		to, e := away(f)
		if err = errors.Join(err, e); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(w.dir, to)); string(b) != "- [ ] T1 one\n- [ ] T2 two\n" {
			t.Errorf("%s is %q, %v", to, b, err)
		}
		for _, h := range held {
			if err := h.f.Close(); err == nil {
				t.Error("a file is still open")
			}
		}
		if len(f.held) > 0 || len(f.hist.list) > 0 || f.last() != "" || len(f.met) > 0 {
			t.Errorf("still known: %d files, %d versions, %q, %d foreign changes", len(f.held), len(f.hist.list), f.last(), len(f.met))
		}
		if changed, err := f.Heal(t.Context()); changed || err != nil {
			t.Errorf("healed %t, %v", changed, err)
		}
		if err := os.WriteFile(filepath.Join(w.dir, TodoPath), []byte("- [ ] T1 other\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		doc, err := f.Edit(t.Context(), add("three"))
		if err != nil || string(doc.Bytes()) != "- [ ] T1 other\n- [ ] T2 three\n" || len(f.Foreign()) > 0 {
			t.Errorf("the next plan: %q, %v", doc.Bytes(), err)
		}
	}
}

// Without a plan there is nothing to heal, and nothing is made.
func TestHealMakesNothing(t *testing.T) {
	t.Parallel()
	w := project(t)
	if changed, err := w.Todo().Heal(t.Context()); changed || err != nil {
		t.Errorf("%t, %v", changed, err)
	}
	if left, err := os.ReadDir(w.dir); len(left) > 0 || err != nil {
		t.Errorf("made %v, %v", left, err)
	}
}

// What an editor writes into a file that has lost its name is found once it is complete, unless there is nothing in it.
func TestLookAtHeldFiles(t *testing.T) {
	t.Parallel()
	known := VersionOf([]byte("known\n"))
	for name, tt := range map[string]struct {
		text     string
		written  time.Duration // ago
		held     time.Duration // since
		found    bool
		released bool
	}{
		"as it was":               {"known\n", time.Minute, 0, false, false},
		"as it was, long":         {"known\n", time.Minute, hold + time.Second, false, true},
		"new":                     {"new\n", time.Minute, 0, true, false},
		"new, late":               {"new\n", time.Minute, hold + time.Second, true, false},
		"new, the clock is wrong": {"new\n", -time.Minute, 0, true, false},
		"not complete yet":        {"new\n", 0, 0, false, false},
		"not complete, long":      {"new\n", 0, hold + time.Second, false, false},
		"never complete":          {"new\n", 0, 2*hold + time.Second, false, true},
		"emptied":                 {"", time.Minute, 0, false, false},
		"only white space":        {" \n\t\n", time.Minute, 0, false, false},
		"only white space, long":  {" \n\t\n", time.Minute, hold + time.Second, false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := project(t)
			file := filepath.Join(w.dir, "f")
			if err := errors.Join(os.WriteFile(file, []byte(tt.text), 0o644), os.Chtimes(file, time.Now().Add(-tt.written), time.Now().Add(-tt.written))); err != nil {
				t.Fatal(err)
			}
			d, err := os.OpenRoot(w.dir)
			if err != nil {
				t.Fatal(err)
			}
			h := holdFile(d, "f", known)
			d.Close()
			h.at = time.Now().Add(-tt.held)
			f := w.Todo()
			f.keep(nil, h)
			if late := f.late(); late != tt.found {
				t.Errorf("%s: late is %t", name, late)
			}
			got := f.look()
			if written := tt.text != "known\n"; len(f.held) > 0 && f.held[0].written != written {
				t.Errorf("%s: being written to: %t", name, !written)
			}
			if found := len(got) == 1 && string(got[0].text) == tt.text && got[0].sum == VersionOf([]byte(tt.text)); found != tt.found || len(f.held) == 0 != tt.released {
				t.Errorf("%s: found %v, %d held", name, got, len(f.held))
			}
			if tt.found {
				got[0].taken()
				if f.held[0].written {
					t.Errorf("%s: being written to, though it was taken in", name)
				}
				if again := f.look(); len(again) > 0 || len(f.held) != 1 {
					t.Errorf("%s: found again", name)
				}
			}
		})
	}
}

// The history of a plan on disk: what one process records another reads, from where it has read before.
func TestRecordsOfAHistory(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	texts := func(h *history) string {
		var out []string
		for _, v := range h.list {
			out = append(out, fmt.Sprintf("%d:%s:%t", v.n, v.text, v.own))
		}
		return strings.Join(out, " ")
	}
	var one, two history
	a, b := newMemory(root, "/p", "todo"), newMemory(root, "/p", "todo")
	if other := newMemory(root, "/p", "todo2").name; other == a.name || newMemory(root, "/q", "todo").name == a.name || newMemory(root, "/ptodo", "").name == a.name {
		t.Error("plans share a history")
	}
	for i, step := range []struct {
		text string
		own  bool
	}{{"x", true}, {"x\ny\n", false}, {"z", true}} {
		a.load(&one)
		since := one.n
		one.remember([]byte(step.text), step.own)
		a.save(&one, since)
		b.load(&two)
		if texts(&two) != texts(&one) || two.n != one.n || len(two.list) != i+1 {
			t.Errorf("after %d records: %s, want %s", i+1, texts(&two), texts(&one))
		}
		if fi, err := root.Stat(a.name); err != nil || fi.Size() != a.at || b.at != a.at || a.id != b.id {
			t.Errorf("read up to %d and %d of %v, %v", a.at, b.at, fi, err)
		}
	}
	whole, err := root.ReadFile(a.name)
	if err != nil {
		t.Fatal(err)
	}
	ends := []int64{0}
	for since := range one.list {
		ends = append(ends, ends[since]+int64(len(recorded(one.list[since:since+1], 0))))
	}
	for cut := range len(whole) - idSize + 1 {
		records, n := parseRecords(whole[idSize : idSize+cut])
		if k := len(records); n != ends[k] || n > int64(cut) || k+1 < len(ends) && ends[k+1] <= int64(cut) || k > 0 && string(records[k-1].text) != string(one.list[k-1].text) {
			t.Errorf("cut off after %d bytes: %d records, %d bytes", cut, k, n)
		}
	}
	// What a killed process left behind its last record goes away.
	if err := root.WriteFile(a.name, append(whole, "4 own"...), 0o600); err != nil {
		t.Fatal(err)
	}
	b.load(&two)
	if now, err := root.ReadFile(a.name); err != nil || !bytes.Equal(now, whole) || texts(&two) != texts(&one) {
		t.Errorf("%q, %v", now, err)
	}
	// A file that lost its end is read anew: what is written behind its old end would leave a hole over which nobody reads.
	if err := root.WriteFile(a.name, whole[:idSize+ends[2]], 0o600); err != nil {
		t.Fatal(err)
	}
	if b.load(&two); b.at != idSize+ends[2] || two.n != 2 || len(two.list) != 5 {
		t.Errorf("without its end it is read up to %d, to number %d: %s", b.at, two.n, texts(&two))
	}
}

// Too many files without a name: the oldest is closed, but one that an editor is writing to only when all are.
func TestKeepHeldFiles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		written []int // indexes
		closed  []int
	}{
		"none is written to":   {nil, []int{0, 1}},
		"the oldest is":        {[]int{0}, []int{1, 2}},
		"the second oldest is": {[]int{1}, []int{0, 2}},
		"all are":              {indexes(maxHeld + 2), []int{0, 1}},
	} {
		f := project(t).Todo()
		var all []*heldFile
		for i := range maxHeld + 2 {
			file, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, &heldFile{f: file, written: slices.Contains(tt.written, i)})
		}
		f.keep(slices.Clone(all[:maxHeld])...)
		f.keep(all[maxHeld:]...)
		var closed []int
		for i, h := range all {
			if !slices.Contains(f.held, h) {
				closed = append(closed, i)
			}
			if err := h.f.Close(); (err != nil) == slices.Contains(f.held, h) {
				t.Errorf("%s: file %d: %v", name, i, err)
			}
		}
		if f.held = nil; !slices.Equal(closed, tt.closed) {
			t.Errorf("%s: closed %v, want %v", name, closed, tt.closed)
		}
	}
}

func indexes(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// Of very many foreign changes that nobody asks for, the newest are kept, each for one caller.
func TestForeignChangesAreBounded(t *testing.T) {
	t.Parallel()
	f := project(t).Todo()
	var all []Foreign
	for range maxForeign + 10 {
		all = append(all, Foreign{To: &todo.Doc{}})
	}
	f.meet(all[:5])
	f.meet(all[5:])
	if got := f.Foreign(); !slices.Equal(got, all[10:]) {
		t.Errorf("%d changes, not the newest %d", len(got), maxForeign)
	}
	if again := f.Foreign(); len(again) > 0 {
		t.Errorf("%d changes again", len(again))
	}
}

// An editor that takes the file away twice during one save is waited for each time, from when it is missing again: a plan that seems to be
// gone would be begun anew.
func TestFileThatIsMissingTwice(t *testing.T) {
	t.Parallel()
	const text = "- [ ] T1 a\n- [ ] T2 b\n"
	w := project(t, ".opencode/todo.md=- [ ] T1 a\n")
	file := filepath.Join(w.dir, TodoPath)
	synctest.Test(t, func(t *testing.T) {
		f := w.Todo()
		if _, _, err := f.Load(); err != nil {
			t.Fatal(err)
		}
		put := func(text string) {
			if err := errors.Join(os.WriteFile(file, []byte(text), 0o644), os.Chtimes(file, time.Now(), time.Now())); err != nil {
				t.Error(err)
			}
		}
		gone := func() {
			if err := os.Remove(file); err != nil {
				t.Error(err)
			}
		}
		gone()
		time.AfterFunc(emptyRest*3/4, func() { put("") })
		time.AfterFunc(emptyRest*7/8, gone)
		time.AfterFunc(emptyRest*3/2, func() { put(text) })
		if b, err := f.settled(t.Context()); string(b) != text || err != nil {
			t.Errorf("%q, %v", b, err)
		}
	})
}
