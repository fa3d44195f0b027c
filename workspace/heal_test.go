package workspace_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/workspace"
	"centurion/workspace/todo"
)

const healPlan = `# Plan

Some words.

## M1 Core
- [ ] T1 one @worker
  - files: a/**
- [ ] T2 two
  - after: T1
- [ ] T3 three
`

// replaced does text replacements, each of which must find something.
func replaced(t *testing.T, s string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(s, pairs[i]) {
			t.Fatalf("%q is not in %q", pairs[i], s)
		}
		s = strings.Replace(s, pairs[i], pairs[i+1], 1)
	}
	return s
}

// A person saves a text that was read before the agents' edits (stale), or after them (fresh): the edits that the person
// could not know come back, and what the person changed stays.
// TRIAL R17
func TestHeal(t *testing.T) {
	t.Parallel()
	setTitle := func(id, title string) func(*todo.Doc) error {
		return func(d *todo.Doc) error { return d.SetTitle(id, title) }
	}
	note := func(id, note string) func(*todo.Doc) error {
		return func(d *todo.Doc) error { return d.AddNote(id, note) }
	}
	add := func(section string, it todo.Item) func(*todo.Doc) error {
		return func(d *todo.Doc) error { _, err := d.Add(section, it); return err }
	}
	after := func(id, on string) func(*todo.Doc) error {
		return func(d *todo.Doc) error { return d.AddAfter(id, on) }
	}
	type edits []any // func(*todo.Doc) error for Edit, rewriting for Replace
	type rewriting []string
	rewrite := func(pairs ...string) rewriting { return pairs }
	for name, tt := range map[string]struct {
		start string // healPlan if empty
		edits edits
		fresh bool     // the person has read the newest text
		saves []string // replacements in what was read
		want  []string // replacements in what the person saved; none if it stays as it is
	}{
		"a mark":                                 {"", edits{mark("T1", todo.Done)}, false, []string{"three", "3"}, []string{"[ ] T1", "[x] T1"}},
		"several marks":                          {"", edits{mark("T1", todo.Running), mark("T2", todo.Running), mark("T1", todo.Done)}, false, []string{"three", "3"}, []string{"[ ] T1", "[x] T1", "[ ] T2", "[~] T2"}},
		"there and back":                         {"", edits{mark("T1", todo.Done), note("T1", "n."), mark("T1", todo.Open)}, false, []string{"three", "3"}, []string{"a/**\n", "a/**\n  - note: n.\n"}},
		"mark and title of one item":             {"", edits{mark("T1", todo.Done)}, false, []string{"one", "uno"}, []string{"[ ] T1", "[x] T1"}},
		"mark against mark":                      {"", edits{mark("T1", todo.Done)}, false, []string{"[ ] T1", "[-] T1", "three", "3"}, nil},
		"title":                                  {"", edits{setTitle("T2", "zwei")}, false, []string{"three", "3"}, []string{"two", "zwei"}},
		"title against title":                    {"", edits{setTitle("T2", "zwei"), mark("T2", todo.Done)}, false, []string{"two", "deux"}, []string{"[ ] T2", "[x] T2"}},
		"notes of both":                          {"", edits{note("T1", "agent.")}, false, []string{"a/**\n", "a/**\n  - note: person.\n"}, []string{"person.\n", "person.\n  - note: agent.\n"}},
		"attribute":                              {"", edits{after("T3", "T2")}, false, []string{"one", "uno"}, []string{"three\n", "three\n  - after: T2\n"}},
		"attribute replaced":                     {"", edits{rewrite("after: T1", "after: T1, T3")}, false, []string{"one", "uno"}, []string{"after: T1", "after: T1, T3"}},
		"attribute against attribute":            {"", edits{rewrite("after: T1", "after: T1, T3")}, false, []string{"after: T1", "after: T9"}, nil},
		"attribute that the person took out":     {"", edits{rewrite("after: T1", "after: T1, T3")}, false, []string{"  - after: T1\n", "", "one", "uno"}, nil},
		"attribute taken out":                    {"", edits{rewrite("  - after: T1\n", "")}, false, []string{"one", "uno"}, []string{"  - after: T1\n", ""}},
		"attribute changed alike by both":        {"", edits{rewrite("after: T1", "after: T1, T3")}, false, []string{"after: T1", "after: T1, T3", "one", "uno"}, nil},
		"one of two equal notes taken out":       {replacedAll(healPlan, "a/**\n", "a/**\n  - note: n.\n  - note: n.\n"), edits{rewrite("  - note: n.\n  - note: n.\n", "  - note: n.\n")}, false, []string{"one", "uno"}, []string{"  - note: n.\n  - note: n.\n", "  - note: n.\n"}},
		"words":                                  {"", edits{rewrite("Some words.", "Other words.")}, false, []string{"one", "uno"}, []string{"Some words.", "Other words."}},
		"the title":                              {"", edits{rewrite("# Plan\n", "# The plan\n")}, false, []string{"one", "uno"}, []string{"# Plan\n", "# The plan\n"}},
		"item without an id taken out":           {replacedAll(healPlan, "T3 ", ""), edits{rewrite("- [ ] three\n", "")}, false, []string{"one", "uno"}, []string{"- [ ] three\n", ""}},
		"sub-item beside one that was removed":   {replacedAll(healPlan, "a/**\n", "a/**\n  - [ ] T5 five\n"), edits{add("", todo.Item{ID: "T6", Title: "six", Parent: "T1"})}, false, []string{"  - [ ] T5 five\n", ""}, []string{"a/**\n", "a/**\n  - [ ] T6 six\n"}},
		"item taken out":                         {"", edits{rewrite("- [ ] T3 three\n", "")}, false, []string{"one", "uno"}, []string{"- [ ] T3 three\n", ""}},
		"item taken out that the person changed": {"", edits{rewrite("- [ ] T3 three\n", "")}, false, []string{"three", "3"}, nil},
		"item":                                   {"", edits{add("M1", todo.Item{ID: "T4", Title: "four", After: []string{"T3"}}), mark("T4", todo.Running)}, false, []string{"one", "uno"}, []string{"three\n", "three\n- [~] T4 four\n  - after: T3\n"}},
		"sub-item":                               {"", edits{add("", todo.Item{ID: "T1.1", Title: "sub", Parent: "T1"})}, false, []string{"three", "3"}, []string{"a/**\n", "a/**\n  - [ ] T1.1 sub\n"}},
		"items of both":                          {"", edits{add("M1", todo.Item{ID: "T4", Title: "four"})}, false, []string{"three\n", "three\n- [ ] T5 five\n"}, []string{"three\n", "three\n- [ ] T4 four\n"}},
		"one id, two items":                      {"", edits{mark("T1", todo.Done), add("M1", todo.Item{ID: "T4", Title: "four"})}, false, []string{"three\n", "three\n- [ ] T4 vier\n"}, []string{"[ ] T1", "[x] T1", "three\n", "three\n- [ ] T4 four\n"}},
		"new section":                            {"", edits{add("M2 More", todo.Item{ID: "T4", Title: "four"})}, false, []string{"one", "uno"}, []string{"three\n", "three\n\n## M2 More\n- [ ] T4 four\n"}},
		"item that the person moved":             {"", edits{mark("T1", todo.Done), note("T1", "n.")}, false, []string{"- [ ] T1 one @worker\n  - files: a/**\n", "", "three\n", "three\n- [ ] T1 one @worker\n  - files: a/**\n"}, []string{"[ ] T1", "[x] T1", "a/**\n", "a/**\n  - note: n.\n"}},
		"item that the person removed":           {"", edits{mark("T1", todo.Done), note("T1", "n."), add("", todo.Item{ID: "T1.1", Title: "sub", Parent: "T1"}), mark("T3", todo.Done)}, false, []string{"- [ ] T1 one @worker\n  - files: a/**\n", ""}, []string{"[ ] T3", "[x] T3"}},
		"an id was given":                        {replacedAll(healPlan, "T3 ", ""), edits{mark("T1", todo.Done)}, false, []string{"one", "uno", "[ ] three", "[x] three"}, []string{"[ ] T1", "[x] T1", "[x] three", "[x] T3 three"}},
		"CRLF":                                   {replacedAll(healPlan, "\n", "\r\n"), edits{note("T1", "n.")}, false, []string{"three", "3"}, []string{"a/**\r\n", "a/**\r\n  - note: n.\r\n"}},
		"end without a newline":                  {strings.TrimSuffix(healPlan, "\n"), edits{add("M2", todo.Item{ID: "T4", Title: "four"})}, false, []string{"two", "2"}, []string{"three", "three\n\n## M2\n- [ ] T4 four\n"}},

		"two attributes of one kind": {replacedAll(healPlan, "a/**\n", "a/**\n  - verify: a\n  - verify: b\n"), edits{rewrite("verify: a", "verify: c", "verify: b", "verify: d")}, false, []string{"one", "uno"}, []string{"verify: a", "verify: c", "verify: b", "verify: d"}},
		"item behind new sub-items":  {"", edits{add("M1", todo.Item{ID: "T4", Title: "four"})}, false, []string{"three\n", "three\n  - [ ] T9 nine\n"}, []string{"nine\n", "nine\n- [ ] T4 four\n"}},

		"fresh":                      {"", edits{mark("T1", todo.Done)}, true, []string{"three", "3"}, nil},
		"deliberate untick":          {"", edits{mark("T3", todo.Done)}, true, []string{"[x] T3", "[ ] T3"}, nil},
		"deliberate untick of older": {"", edits{mark("T3", todo.Done), mark("T1", todo.Done)}, true, []string{"[x] T3", "[ ] T3"}, nil},
		"untick of older and more":   {"", edits{mark("T3", todo.Done), note("T1", "n."), mark("T2", todo.Done)}, true, []string{"[x] T3", "[ ] T3", "one", "uno"}, nil},
		"removal of what was added":  {"", edits{add("M1", todo.Item{ID: "T4", Title: "four"})}, true, []string{"- [ ] T4 four\n", ""}, nil},
		// The ambiguity of the rule: these bytes are also those of somebody who never saw the tick.
		"untick of the last and more": {"", edits{mark("T1", todo.Done), mark("T3", todo.Done)}, true, []string{"[x] T3", "[ ] T3", "one", "uno"}, []string{"[ ] T3", "[x] T3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.start == "" {
				tt.start = healPlan
			}
			w := open(t, map[string]string{".opencode/todo.md": tt.start})
			f := w.Todo()
			for _, edit := range tt.edits {
				var err error
				switch edit := edit.(type) {
				case rewriting:
					_, err = f.Replace(t.Context(), replaced(t, get(t, w, f.Path()), edit...), nil)
				case func(*todo.Doc) error:
					_, err = f.Edit(t.Context(), edit)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			read := tt.start
			if tt.fresh {
				read = get(t, w, f.Path())
			}
			saved := replaced(t, read, tt.saves...)
			want := replaced(t, saved, tt.want...)
			put(t, planFile(w), saved)
			changed, err := f.Heal(t.Context())
			if got := get(t, w, f.Path()); err != nil || got != want || changed != (want != saved) {
				t.Errorf("Heal = %v, %v, file:\n%s\nwant:\n%s", changed, err, got, want)
			}
			if changed, err := f.Heal(t.Context()); changed || err != nil {
				t.Errorf("Heal again = %v, %v", changed, err)
			}
			// The editor's buffer holds what it saved, and the person goes on from there.
			more := saved + "\nMore words.\n"
			put(t, planFile(w), more)
			if _, err := f.Heal(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.SplitAfter(want, "\n") {
				if got := get(t, w, f.Path()); !strings.Contains(got, line) || !strings.Contains(got, "More words.") {
					t.Errorf("after the second save %q is lacking:\n%s", line, got)
				}
			}
		})
	}
}

func replacedAll(s, old, new string) string { return strings.ReplaceAll(s, old, new) }

// An edit puts together what it finds, and its function sees the whole.
// TRIAL R17
func TestEditHeals(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{".opencode/todo.md": healPlan})
	f := w.Todo()
	if _, err := f.Edit(t.Context(), mark("T1", todo.Done)); err != nil {
		t.Fatal(err)
	}
	put(t, planFile(w), replaced(t, healPlan, "three", "3"))
	refuse := &centurion.Error{Op: "test", Kind: centurion.KindUsage}
	if _, err := f.Edit(t.Context(), func(*todo.Doc) error { return refuse }); err != refuse {
		t.Fatal(err)
	}
	if got := get(t, w, f.Path()); got != replaced(t, healPlan, "three", "3") {
		t.Errorf("a refused edit wrote\n%s", got)
	}
	d, err := f.Edit(t.Context(), func(d *todo.Doc) error {
		if it, _ := d.Item("T1"); it.Mark != todo.Done {
			t.Error("the edit does not see what was done before")
		}
		return d.SetMark("T2", todo.Running)
	})
	want := replaced(t, healPlan, "three", "3", "[ ] T1", "[x] T1", "[ ] T2", "[~] T2")
	if got := get(t, w, f.Path()); err != nil || got != want || !bytes.Equal(d.Bytes(), []byte(want)) {
		t.Errorf("%v, file:\n%s", err, got)
	}
}

// An editor that stood still in the middle of a save wrote half a plan, which nobody can tell from a whole one. When it saves the whole
// text, what agents had done to items that the half lacked comes back: marks, notes and items.
// TRIAL R17
func TestHealAfterHalfASave(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{".opencode/todo.md": healPlan})
	f := w.Todo()
	for _, edit := range []func(*todo.Doc) error{mark("T3", todo.Done), func(d *todo.Doc) error { return d.AddNote("T2", "n.") },
		func(d *todo.Doc) error { _, err := d.Add("M1", todo.Item{ID: "T4", Title: "four"}); return err }} {
		if _, err := f.Edit(t.Context(), edit); err != nil {
			t.Fatal(err)
		}
	}
	half, _, _ := strings.Cut(healPlan, "- [ ] T2")
	put(t, planFile(w), half)
	if _, err := f.Edit(t.Context(), mark("T1", todo.Done)); err != nil {
		t.Fatal(err)
	}
	put(t, planFile(w), replaced(t, healPlan, "one", "uno"))
	if _, err := f.Heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"- [x] T1 uno", "- [ ] T2 two\n  - after: T1\n  - note: n.\n", "- [x] T3 three\n", "- [ ] T4 four\n"} {
		if got := get(t, w, f.Path()); !strings.Contains(got, line) {
			t.Errorf("%q is lacking:\n%s", line, got)
		}
	}
}

// Heal makes nothing, and leaves alone what it knows nothing of.
func TestHealWithoutCause(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	if changed, err := w.Todo().Heal(t.Context()); changed || err != nil {
		t.Errorf("without a plan: %v, %v", changed, err)
	}
	if _, err := os.Stat(filepath.Dir(planFile(w))); err == nil {
		t.Error("a place for a plan was made")
	}
	put(t, planFile(w), "- [ ] T1 one\n- [ ] no id\n")
	if changed, err := w.Todo().Heal(t.Context()); changed || err != nil || get(t, w, w.Todo().Path()) != "- [ ] T1 one\n- [ ] no id\n" {
		t.Errorf("a plan that was never edited: %v, %v", changed, err)
	}
	if _, err := w.Todo().Edit(t.Context(), mark("T1", todo.Done)); err != nil {
		t.Fatal(err)
	}
	// Another plan altogether, and a file that somebody deleted, are meant.
	put(t, planFile(w), "# Other\n- [ ] S1 other\n")
	if changed, err := w.Todo().Heal(t.Context()); changed || err != nil {
		t.Errorf("another plan: %v, %v", changed, err)
	}
	if err := os.Remove(planFile(w)); err != nil {
		t.Fatal(err)
	}
	if changed, err := w.Todo().Heal(t.Context()); changed || err != nil {
		t.Errorf("no plan: %v, %v", changed, err)
	}
	put(t, planFile(w), "```\n")
	_, err := w.Todo().Heal(t.Context())
	wantError(t, err, centurion.KindUsage, "code fence")
}

// editorOf is an editor that has opened the plan.
func editorOf(t *testing.T, w *workspace.Workspace) *os.File {
	t.Helper()
	e, err := os.OpenFile(planFile(w), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// rest makes an editor's last write old enough to be complete.
func rest(t *testing.T, e *os.File) {
	t.Helper()
	old := time.Now().Add(-time.Second)
	if err := os.Chtimes(fmt.Sprintf("/dev/fd/%d", e.Fd()), old, old); err != nil {
		if runtime.GOOS == "linux" {
			t.Fatal(err)
		}
		t.Skip("the time of a file without a name cannot be set here")
	}
}

// An editor that opened the file before an edit writes into a file that has no name any more.
// TRIAL R17
func TestHealFindsWhatHasNoName(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("files cannot be exchanged here; see TodoFile")
	}
	for name, write := range map[string]func(e *os.File) (saved string, err error){
		"in place": func(e *os.File) (string, error) {
			saved := strings.Replace(healPlan, "three", "3", 1)
			if err := e.Truncate(0); err != nil {
				return "", err
			}
			_, err := e.WriteAt([]byte(saved), 0)
			return saved, err
		},
		"appended": func(e *os.File) (string, error) {
			_, err := e.WriteAt([]byte("- [ ] T9 nine\n"), int64(len(healPlan)))
			return healPlan + "- [ ] T9 nine\n", err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, map[string]string{".opencode/todo.md": healPlan})
			f := w.Todo()
			e := editorOf(t, w)
			for _, id := range []string{"T1", "T2"} {
				if _, err := f.Edit(t.Context(), mark(id, todo.Done)); err != nil {
					t.Fatal(err)
				}
			}
			saved, err := write(e)
			if err != nil {
				t.Fatal(err)
			}
			rest(t, e)
			changed, err := f.Heal(t.Context())
			want := replaced(t, saved, "[ ] T1", "[x] T1", "[ ] T2", "[x] T2")
			if got := get(t, w, f.Path()); !changed || err != nil || got != want {
				t.Errorf("Heal = %v, %v, file:\n%s\nwant:\n%s", changed, err, got, want)
			}
			if changed, err := f.Heal(t.Context()); changed || err != nil {
				t.Errorf("Heal again = %v, %v", changed, err)
			}
			if n := workspace.HeldFiles(f); n == 0 || n > 3 {
				t.Errorf("%d files held", n)
			}
			workspace.AgeHeld(f, 3*time.Second)
			if _, err := f.Heal(t.Context()); err != nil || workspace.HeldFiles(f) != 0 {
				t.Errorf("%d files held after their time, %v", workspace.HeldFiles(f), err)
			}
		})
	}
}

// Watch tells of it, so that Heal is called.
func TestWatchTellsOfWhatHasNoName(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("files cannot be exchanged here; see TodoFile")
	}
	w := open(t, map[string]string{".opencode/todo.md": healPlan})
	f := w.Todo()
	e, err := os.OpenFile(planFile(w), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := f.Edit(t.Context(), mark("T1", todo.Done)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.WriteString("- [ ] T9 nine\n"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	err = f.Watch(ctx, func() {
		if changed, err := f.Heal(ctx); err != nil || !changed {
			t.Errorf("Heal = %v, %v", changed, err)
		}
		cancel()
	})
	if got := get(t, w, f.Path()); err != nil || !strings.Contains(got, "[x] T1") || !strings.Contains(got, "T9 nine") {
		t.Errorf("%v, file:\n%s", err, got)
	}
}

// editOften makes this many edits one after the other.
func editOften(t *testing.T, f *workspace.TodoFile, n int) {
	t.Helper()
	for i := range n {
		if _, err := f.Edit(t.Context(), mark("T1", []todo.Mark{todo.Done, todo.Open}[i%2])); err != nil {
			t.Fatal(err)
		}
	}
}

// A save into a file without a name is found, though many agents have edited the plan before it began.
// TRIAL R17
func TestHealFindsALateSave(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("files cannot be exchanged here; see TodoFile")
	}
	w := open(t, map[string]string{".opencode/todo.md": healPlan})
	f := w.Todo()
	e := editorOf(t, w)
	editOften(t, f, 1)
	workspace.AgeHeld(f, -time.Minute) // the time is not what is tried here
	editOften(t, f, 200)
	if _, err := e.WriteString(replaced(t, healPlan, "three", "3three")); err != nil {
		t.Fatal(err)
	}
	rest(t, e)
	if _, err := f.Heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := get(t, w, f.Path()); !strings.Contains(got, "T3 3three\n") {
		t.Errorf("the save was lost:\n%s", got)
	}
}

// TRIAL I5: what is kept open for a look is bounded, and closed with the project.
func TestHeldFilesAreBounded(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{".opencode/todo.md": healPlan})
	f := w.Todo()
	editOften(t, f, 300)
	if n := workspace.HeldFiles(f); n > 256 {
		t.Errorf("%d files held", n)
	}
	if err := w.Close(); err != nil || workspace.HeldFiles(f) != 0 {
		t.Errorf("%d files held after the end, %v", workspace.HeldFiles(f), err)
	}
}
