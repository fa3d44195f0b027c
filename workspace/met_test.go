package workspace_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"centurion/workspace"
	"centurion/workspace/todo"
)

// A text that an agent sends meets what a person has saved since the agent read the plan: both stay, and new items get their ids.
func TestSentTextMeetsASave(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{".opencode/todo.md": healPlan})
	f := w.Todo()
	edit(t, f, looked)
	put(t, planFile(w), healPlan+"\nA person's words.\n")
	sent := replaced(t, healPlan, "[ ] T1", "[x] T1") + "- [ ] another\n"
	d, err := f.Merge(t.Context(), sent, nil)
	want := replaced(t, healPlan, "[ ] T1", "[x] T1") + "\nA person's words.\n- [ ] T4 another\n"
	if got := get(t, w, f.Path()); err != nil || got != want || string(d.Bytes()) != want {
		t.Errorf("%v, file:\n%s\nwant:\n%s", err, got, want)
	}
	if _, err := f.Replace(t.Context(), "# New\n- [ ] one\n", nil); err != nil || get(t, w, f.Path()) != "# New\n- [ ] T1 one\n" {
		t.Errorf("%v, %q", err, get(t, w, f.Path()))
	}
	if got := f.Foreign(); len(got) != 1 || string(got[0].To.Bytes()) != healPlan+"\nA person's words.\n" {
		t.Errorf("foreign: %v", got)
	}
	// What was changed in a plan is nothing that the next one has to know.
	put(t, planFile(w), "# New\n- [ ] T1 uno\n")
	healed(t, f)
	if _, err := f.Archive("old.md"); err != nil || len(f.Foreign()) != 0 {
		t.Errorf("after it was archived: %v", err)
	}
}

// A directory that goes during an edit is a change like any other: the edit begins again.
func TestEditOfARemovedDirectory(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{".opencode/todo.md": healPlan})
	calls := 0
	_, err := w.Todo().Edit(t.Context(), func(d *todo.Doc) error {
		if calls++; calls == 1 {
			if err := os.RemoveAll(filepath.Dir(planFile(w))); err != nil {
				return err
			}
		}
		_, err := d.Add("", todo.Item{Title: "new"})
		return err
	})
	if got := get(t, w, w.Todo().Path()); err != nil || calls != 2 || got != "- [ ] T1 new\n" {
		t.Errorf("%v after %d calls, file:\n%s", err, calls, got)
	}
}

// An editor that emptied the file it had open has not written a plan; and what is no longer watched is closed.
func TestFilesWithoutAName(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("files without a name cannot be listed here")
	}
	w := open(t, map[string]string{".opencode/todo.md": healPlan})
	f := w.Todo()
	e := editorOf(t, w)
	edit(t, f, mark("T1", todo.Done))
	if err := e.Truncate(1); err != nil {
		t.Fatal(err)
	}
	if _, err := e.WriteAt([]byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	rest(t, e)
	if changed, err := f.Heal(t.Context()); changed || err != nil || get(t, w, f.Path()) != replaced(t, healPlan, "[ ] T1", "[x] T1") {
		t.Errorf("Heal = %v, %v, file:\n%s", changed, err, get(t, w, f.Path()))
	}
	for i := range 280 {
		edit(t, f, mark("T1", []todo.Mark{todo.Open, todo.Done}[i%2]))
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	unnamed := 0
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, w.Dir()) && strings.HasSuffix(to, " (deleted)") {
			unnamed++
		}
	}
	if n := workspace.HeldFiles(f); n > 256 || unnamed > n+1 { // and the editor's own
		t.Errorf("%d files are watched, and %d without a name are open", n, unnamed)
	}
}
