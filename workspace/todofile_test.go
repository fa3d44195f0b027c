package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/workspace"
	"centurion/workspace/todo"
)

const smallPlan = "# Plan\r\n\r\n- [ ] T1 one\r\n- [ ] T2 two\r\n  - after: T1\r\n"

func planFile(w *workspace.Workspace) string { return filepath.Join(w.Dir(), ".opencode", "todo.md") }

func mark(id string, m todo.Mark) func(*todo.Doc) error {
	return func(d *todo.Doc) error { return d.SetMark(id, m) }
}

// ORCH-69
func TestTodoLoadAndEdit(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	f := w.Todo()
	if f.Path() != ".opencode/todo.md" {
		t.Errorf("path %s", f.Path())
	}
	if d, v, err := f.Load(); d != nil || v != "" || err != nil {
		t.Errorf("missing file: %v, %q, %v", d, v, err)
	}
	if _, err := f.Edit(t.Context(), mark("T1", todo.Done)); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("edit of an item that is not there: %v", err)
	}
	if d, err := f.Edit(t.Context(), func(*todo.Doc) error { return nil }); err != nil || len(d.Bytes()) != 0 {
		t.Errorf("edit without a change: %v", err)
	}
	if _, err := os.Stat(planFile(w)); err == nil {
		t.Error("an edit that changed nothing made a file")
	}
	d, err := f.Edit(t.Context(), func(d *todo.Doc) error { _, err := d.Add("M1", todo.Item{Title: "ä"}); return err })
	if err != nil {
		t.Fatal(err)
	}
	if got := get(t, w, f.Path()); got != "## M1\n- [ ] T1 ä\n" || got != string(d.Bytes()) {
		t.Errorf("file %q", got)
	}
	if err := os.Chmod(planFile(w), 0o660); err != nil {
		t.Fatal(err)
	}
	put(t, planFile(w), smallPlan+"- [ ] no id")
	if _, err = f.Edit(t.Context(), mark("T1", todo.Running)); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(smallPlan, "[ ] T1", "[~] T1", 1) + "- [ ] T3 no id"
	d, v, err := f.Load()
	if got := get(t, w, f.Path()); got != want || string(d.Bytes()) != want || v != workspace.VersionOf([]byte(want)) || err != nil {
		t.Errorf("file %q, want %q; %v", got, want, err)
	}
	if fi, _ := os.Stat(planFile(w)); runtime.GOOS != "windows" && fi.Mode().Perm() != 0o660 {
		t.Errorf("mode %v", fi.Mode())
	}
	mine := errors.New("mine")
	if _, err := f.Edit(t.Context(), func(d *todo.Doc) error { return errors.Join(d.SetMark("T2", todo.Done), mine) }); !errors.Is(err, mine) || get(t, w, f.Path()) != want {
		t.Errorf("refused edit: %v, file %q", err, get(t, w, f.Path()))
	}
	left, _ := os.ReadDir(filepath.Dir(planFile(w)))
	if len(left) != 2 { // the plan and its lock
		t.Errorf("left behind: %v", left)
	}
}

func TestTodoErrors(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{".opencode/todo.md": "- [ ] T1\n```\n"})
	f := w.Todo()
	_, _, err := f.Load()
	wantError(t, err, centurion.KindUsage, "line 2")
	_, err = f.Edit(t.Context(), mark("T1", todo.Done))
	wantError(t, err, centurion.KindUsage, ".opencode/todo.md: read todo: the code fence")
	_, err = f.Replace(t.Context(), "\xff", nil)
	wantError(t, err, centurion.KindUsage, "UTF-8")

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(centurion.ErrShutdown)
	busy := make(chan struct{})
	var g guard.Group
	started := make(chan struct{})
	g.Go("holder", func() error {
		_, err := f.Replace(t.Context(), "- [ ] T1 x\n", func(old, now *todo.Doc) error {
			close(started)
			<-busy
			return nil
		})
		return err
	})
	<-started
	_, err = f.Edit(ctx, mark("T1", todo.Done))
	wantError(t, err, centurion.KindInterrupted, "interrupted")
	// Another process is another file descriptor.
	w2, err := workspace.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer w2.Close()
	short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	_, err = w2.Todo().Edit(short, mark("T1", todo.Done))
	wantError(t, err, centurion.KindTimeout, "deadline")
	close(busy)
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func TestTodoReplace(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	f := w.Todo()
	var olds []string
	see := func(old, now *todo.Doc) error {
		s := "none"
		if old != nil {
			s = old.Title()
		}
		olds = append(olds, s+" > "+now.Title())
		return nil
	}
	for _, title := range []string{"A", "B"} {
		if _, err := f.Replace(t.Context(), "# "+title+"\n- [ ] x\n", see); err != nil {
			t.Fatal(err)
		}
	}
	put(t, planFile(w), "```\n")
	if _, err := f.Replace(t.Context(), "# C\n", see); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(olds, ", "); got != "none > A, A > B, none > C" {
		t.Error(got)
	}
	no := errors.New("no")
	if _, err := f.Replace(t.Context(), "# D\n", func(_, _ *todo.Doc) error { return no }); !errors.Is(err, no) || get(t, w, f.Path()) != "# C\n" {
		t.Errorf("%v, %q", err, get(t, w, f.Path()))
	}
}

func TestTodoArchive(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{".opencode/todo.md": smallPlan})
	f := w.Todo()
	for name, kind := range map[string]centurion.Kind{"": centurion.KindUsage, "..": centurion.KindUsage, "a/b": centurion.KindUsage, ".": centurion.KindUsage} {
		_, err := f.Archive(name)
		wantError(t, err, kind, "file name")
	}
	if path, err := f.Archive("todo-ü 1.md"); err != nil || path != ".opencode/archive/todo-ü 1.md" {
		t.Fatal(err)
	}
	if got := get(t, w, ".opencode/archive/todo-ü 1.md"); got != smallPlan {
		t.Errorf("archived %q", got)
	}
	_, err := f.Archive("x")
	wantError(t, err, centurion.KindNotFound, "todo.md")
	put(t, planFile(w), smallPlan)
	_, err = f.Archive("todo-ü 1.md")
	wantError(t, err, centurion.KindConflict, "exists")
}

// What a crash has left of a write is in nobody's way, and a refused lock is given back.
func TestLeftoversOfACrash(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{".opencode/todo.md": smallPlan, ".opencode/.todo.md.new": "half of"})
	if _, err := w.Todo().Edit(t.Context(), mark("T1", todo.Done)); err != nil {
		t.Error(err)
	}
	put(t, filepath.Join(w.Dir(), ".opencode", ".todo.md.new"), "half of")
	if _, err := w.Context().Replace(t.Context(), "# C\n", nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(w.Dir(), ".opencode", ".todo.md.new")); err == nil {
		t.Error("it is still there")
	}

	w = open(t, map[string]string{".opencode": "in the way"})
	_, err := w.Todo().Edit(t.Context(), mark("T1", todo.Done))
	wantError(t, err, centurion.KindUsage, ".opencode is not a directory")
	if err := os.Remove(filepath.Join(w.Dir(), ".opencode")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := w.Todo().Replace(ctx, smallPlan, nil); err != nil {
		t.Error(err)
	}
	put(t, planFile(w), "") // an empty file is a plan, and is there
	if _, err := w.Todo().Replace(ctx, smallPlan, nil); err != nil || get(t, w, w.Todo().Path()) == "" {
		t.Error(err)
	}
}

// A person's edit wins over a stale write: the edit starts over on what they wrote.
func TestTodoPersonWins(t *testing.T) {
	t.Parallel()
	for name, save := range map[string]func(file, text string) error{
		"in place": func(file, text string) error { return os.WriteFile(file, []byte(text), 0o644) },
		"renamed over": func(file, text string) error {
			return errors.Join(os.WriteFile(file+"~", []byte(text), 0o644), os.Rename(file+"~", file))
		},
		"directory too": func(file, text string) error {
			return errors.Join(os.RemoveAll(filepath.Dir(file)), os.Mkdir(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, map[string]string{".opencode/todo.md": smallPlan})
			calls := 0
			d, err := w.Todo().Edit(t.Context(), func(d *todo.Doc) error {
				if calls++; calls == 1 {
					if err := save(planFile(w), strings.Replace(smallPlan, "two", "of a person", 1)); err != nil {
						return err
					}
				}
				return d.SetMark("T1", todo.Done)
			})
			if err != nil {
				t.Fatal(err)
			}
			want := "# Plan\r\n\r\n- [x] T1 one\r\n- [ ] T2 of a person\r\n  - after: T1\r\n"
			if got := get(t, w, w.Todo().Path()); got != want || string(d.Bytes()) != want || calls != 2 {
				t.Errorf("after %d calls %q", calls, got)
			}
		})
	}
	t.Run("a file comes into being", func(t *testing.T) {
		w := open(t, nil)
		_, err := w.Todo().Edit(t.Context(), func(d *todo.Doc) error {
			if len(d.Items()) == 0 {
				put(t, planFile(w), smallPlan)
			}
			_, err := d.Add("", todo.Item{Title: "mine"})
			return err
		})
		if got := get(t, w, w.Todo().Path()); err != nil || got != smallPlan+"- [ ] T3 mine\r\n" {
			t.Errorf("%v, %q", err, got)
		}
	})
	t.Run("never at rest", func(t *testing.T) {
		w := open(t, map[string]string{".opencode/todo.md": smallPlan})
		calls := 0
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := w.Todo().Edit(ctx, func(d *todo.Doc) error {
			calls++
			put(t, planFile(w), fmt.Sprint(smallPlan, calls))
			return d.SetMark("T1", todo.Done)
		})
		wantError(t, err, centurion.KindTimeout, "")
	})
}

// Fifty callers at once, through two openings of the project as two processes would have them: no call fails, no edit
// is lost.
func TestTodoFiftyWriters(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 50 {
		fmt.Fprintf(&text, "- [ ] T%d item\n", i+1)
	}
	w := open(t, map[string]string{".opencode/todo.md": text.String()})
	w2, err := workspace.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer w2.Close()
	var g guard.Group
	for i := range 50 {
		f := []*workspace.TodoFile{w.Todo(), w2.Todo()}[i%2]
		id := fmt.Sprintf("T%d", i+1)
		g.Go(id, func() error {
			_, err := f.Edit(t.Context(), mark(id, todo.Running))
			if err == nil {
				_, err = f.Edit(t.Context(), func(d *todo.Doc) error { return errors.Join(d.AddNote(id, "by "+id), d.SetMark(id, todo.Done)) })
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	d, _, err := w.Todo().Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range d.Items() {
		if it.Mark != todo.Done || len(it.Notes) != 1 || it.Notes[0] != "by "+it.ID {
			t.Errorf("%+v", it)
		}
	}
	if d.Counts().Done != 50 {
		t.Errorf("counts %+v", d.Counts())
	}
}

// Twenty goroutines edit by id while an editor without any lock appends, empties and refills, and moves the file away
// and back. An edit that was acknowledged is in the file at the end, and so is every line of the editor that it saw
// arrive. The editor behaves as a careful one does: when the file became another one under its hands, it does it again.
func TestTodoAgainstAnEditor(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("files cannot be exchanged here; see TodoFile")
	}
	const writers, edits = 20, 5
	var text strings.Builder
	for i := range writers {
		fmt.Fprintf(&text, "- [ ] T%d item\n", i+1)
	}
	w := open(t, map[string]string{".opencode/todo.md": text.String()})
	file := planFile(w)
	var left atomic.Int64
	left.Store(writers)
	var mu sync.Mutex
	var acked []string
	var g guard.Group
	for i := range writers {
		g.Go("writer", func() error {
			defer left.Add(-1)
			id := fmt.Sprintf("T%d", i+1)
			for n := range edits {
				note := fmt.Sprintf("edit %d of %s.", n, id)
				for {
					_, err := w.Todo().Edit(t.Context(), func(d *todo.Doc) error { return d.AddNote(id, note) })
					if centurion.KindOf(err) == centurion.KindNotFound {
						continue // the editor had the file away for long: the caller is told, nothing is lost silently
					}
					if err != nil {
						return err
					}
					break
				}
				mu.Lock()
				acked = append(acked, note)
				mu.Unlock()
			}
			return nil
		})
	}
	e := editor{file: file}
	g.Go("editor", func() error {
		for n := 0; left.Load() > 0; n++ {
			line := fmt.Sprintf("<!-- person %d -->\n", n)
			if err := e.do(rand.IntN(3), line); err != nil {
				return err
			}
			time.Sleep(time.Duration(20+rand.IntN(80)) * time.Millisecond) // a random load, not a wait for something
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	final := get(t, w, ".opencode/todo.md")
	lost := 0
	for _, s := range append(acked, e.seen...) {
		if !strings.Contains(final, s) {
			lost++
			t.Errorf("lost: %s", strings.TrimSpace(s))
		}
	}
	if len(acked) != writers*edits || len(e.seen) == 0 {
		t.Errorf("%d edits acknowledged, %d lines of the editor", len(acked), len(e.seen))
	}
	if _, _, err := w.Todo().Load(); err != nil || lost > 0 {
		t.Errorf("%v\n%s", err, final)
	}
}

// editor is a person's editor: it knows no lock.
type editor struct {
	file string
	seen []string // lines that were in the file after they were written
}

func (e *editor) do(how int, line string) error {
	for range 1000 {
		ok, err := e.try(how, line)
		if ok || err != nil {
			e.seen = append(e.seen, line)
			return err
		}
	}
	return errors.New("the file is another one every time")
}

func (e *editor) try(how int, line string) (bool, error) {
	if how == 2 { // move away, change, move back
		away := e.file + ".away"
		if err := os.Rename(e.file, away); err != nil {
			return false, err
		}
		b, err := os.ReadFile(away)
		if err == nil {
			err = os.WriteFile(away, append(b, line...), 0o644)
		}
		return err == nil, errors.Join(err, os.Rename(away, e.file))
	}
	f, err := os.OpenFile(e.file, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if how == 1 { // empty it, then fill it
		b, err := os.ReadFile(e.file)
		if err != nil {
			return false, err
		}
		if !e.same(f) {
			return false, nil
		}
		if err := f.Truncate(0); err != nil {
			return false, err
		}
		line = string(b) + line
	}
	if _, err := f.WriteString(line); err != nil {
		return false, err
	}
	return e.same(f), nil
}

// same reports whether the open file is still the one that the name leads to.
func (e *editor) same(f *os.File) bool {
	a, aerr := f.Stat()
	b, berr := os.Stat(e.file)
	return aerr == nil && berr == nil && os.SameFile(a, b)
}

func BenchmarkTodoEdit(b *testing.B) {
	w := open(b, map[string]string{".opencode/todo.md": smallPlan})
	marks := []todo.Mark{todo.Done, todo.Open}
	for i := 0; b.Loop(); i++ {
		if _, err := w.Todo().Edit(b.Context(), mark("T1", marks[i%2])); err != nil {
			b.Fatal(err)
		}
	}
}

// Each mission has a plan of its own: the newest has todo.md, an older living one keeps its plan under its own name.
func TestSeveralPlans(t *testing.T) {
	w := open(t, nil)
	first := w.Todo()
	if _, err := first.Replace(t.Context(), "- [ ] T1 One\n", nil); err != nil {
		t.Fatal(err)
	}
	kept, err := first.Rename("todo-msn_1.md")
	if err != nil || kept != ".opencode/todo-msn_1.md" {
		t.Fatalf("Rename = %q, %v", kept, err)
	}
	if doc, _, err := w.Todo().Load(); doc != nil || err != nil {
		t.Fatalf("todo.md is still there: %v, %v", doc, err)
	}
	if again := w.TodoAt(kept); again != w.TodoAt(kept) || again == w.Todo() {
		t.Error("a path must lead to one and the same plan")
	}
	if _, err := w.Todo().Replace(t.Context(), "- [ ] T1 Another\n", nil); err != nil {
		t.Fatal(err)
	}
	doc, err := w.TodoAt(kept).Edit(t.Context(), func(d *todo.Doc) error { return d.SetMark("T1", todo.Done) })
	if err != nil {
		t.Fatal(err)
	}
	if it, _ := doc.Item("T1"); it.Title != "One" || it.Mark != todo.Done {
		t.Errorf("the kept plan has %+v", it)
	}
	if _, err := w.Todo().Rename("todo-msn_1.md"); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("renaming over another plan: %v", err)
	}
}
