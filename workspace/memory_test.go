package workspace_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// process opens a project as another process does, with a memory.
func process(t testing.TB, project, memory string) *workspace.Workspace {
	t.Helper()
	w, err := workspace.Open(project)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	if err := w.Remember(memory); err != nil {
		t.Fatal(err)
	}
	return w
}

func edit(t testing.TB, f *workspace.TodoFile, do ...func(*todo.Doc) error) {
	t.Helper()
	for _, f1 := range do {
		if _, err := f.Edit(t.Context(), f1); err != nil {
			t.Fatal(err)
		}
	}
}

func healed(t testing.TB, f *workspace.TodoFile) {
	t.Helper()
	if _, err := f.Heal(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func looked(*todo.Doc) error { return nil }

// A process that has seen some versions only takes a wrong one for what a person's text was made from, does half of what
// is lacking to it, and what it writes then misleads the one that knows the rest.
// TRIAL R17
func TestTwoProcessesKnowTheSame(t *testing.T) {
	t.Parallel()
	dir, memory := open(t, map[string]string{".opencode/todo.md": healPlan}).Dir(), t.TempDir()
	one, two := process(t, dir, memory), process(t, dir, memory)
	a, b := one.Todo(), two.Todo()
	edit(t, a, looked)
	edit(t, b, looked)
	edit(t, a, mark("T1", todo.Running))
	read := get(t, one, a.Path())
	edit(t, a, mark("T2", todo.Running))
	edit(t, b, looked)
	edit(t, a, mark("T3", todo.Running), func(d *todo.Doc) error { return d.AddNote("T1", "n.") })
	edit(t, b, looked)
	put(t, planFile(one), replaced(t, read, "Some words", "Other words"))
	healed(t, b)
	healed(t, a)
	want := replaced(t, read, "Some words", "Other words", "[ ] T2", "[~] T2", "[ ] T3", "[~] T3", "a/**\n", "a/**\n  - note: n.\n")
	if got := get(t, one, a.Path()); got != want {
		t.Errorf("file:\n%s\nwant:\n%s", got, want)
	}
	// What one set back is no text of a person who read an old one.
	edit(t, b, mark("T2", todo.Open))
	edit(t, a, mark("T3", todo.Open))
	healed(t, b)
	healed(t, a)
	if got := get(t, one, a.Path()); got != replaced(t, want, "[~] T2", "[ ] T2", "[~] T3", "[ ] T3") {
		t.Errorf("set back:\n%s", got)
	}
	// What one took out stays out.
	read = get(t, one, a.Path())
	if _, err := a.Replace(t.Context(), replaced(t, read, "- [ ] T3 three\n", ""), nil); err != nil {
		t.Fatal(err)
	}
	put(t, planFile(one), replaced(t, read, "one", "uno"))
	healed(t, b)
	if got := get(t, one, a.Path()); got != replaced(t, read, "one", "uno", "- [ ] T3 three\n", "") {
		t.Errorf("taken out:\n%s", got)
	}
}

// A process knows what was there before it started, and whatever became of its memory it goes on.
// TRIAL R17
func TestMemoryAfterRestart(t *testing.T) {
	t.Parallel()
	whole := []string{"[ ] T1", "[x] T1", "[ ] T2", "[x] T2"}
	for name, tt := range map[string]struct {
		damage func(file string) error
		back   []string
	}{
		"whole":       {func(string) error { return nil }, whole},
		"killed":      {func(f string) error { return appendTo(f, "12 own 00ff 400\nhalf of") }, whole},
		"garbage":     {func(f string) error { return appendTo(f, strings.Repeat("\x00", 5000)) }, whole},
		"huge":        {func(f string) error { return appendTo(f, "12 own 00ff 9223372036854775807\n") }, whole},
		"cut off":     {func(f string) error { return cutOff(f, 1) }, whole[:2]},
		"overwritten": {func(f string) error { return os.WriteFile(f, []byte("1 own - 5\nno\n"), 0o600) }, nil},
		"all of it":   {func(f string) error { return os.WriteFile(f, []byte(strings.Repeat("no\n", 99)), 0o600) }, nil},
		"other bytes": {func(f string) error { return spoil(f, "[x] T2", "[-] T2") }, whole[:2]},
		"emptied":     {func(f string) error { return os.Truncate(f, 0) }, nil},
		"removed":     {os.Remove, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, memory := open(t, map[string]string{".opencode/todo.md": healPlan}).Dir(), filepath.Join(t.TempDir(), "a", "b")
			first := process(t, dir, memory)
			edit(t, first.Todo(), mark("T1", todo.Done), mark("T2", todo.Done))
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			if err := tt.damage(memoryFile(t, memory)); err != nil {
				t.Fatal(err)
			}
			saved := replaced(t, healPlan, "three", "3")
			put(t, filepath.Join(dir, ".opencode", "todo.md"), saved)
			second := process(t, dir, memory)
			f := second.Todo()
			if _, _, err := f.Load(); err != nil {
				t.Fatal(err)
			}
			healed(t, f)
			want := replaced(t, saved, tt.back...)
			if got := get(t, second, f.Path()); got != want {
				t.Errorf("file:\n%s\nwant:\n%s", got, want)
			}
			// From here on the memory is whole again.
			edit(t, f, mark("T3", todo.Blocked), func(d *todo.Doc) error { return d.AddNote("T1", "n.") })
			put(t, planFile(second), replaced(t, want, "Some words", "Other words"))
			third := process(t, dir, memory)
			edit(t, third.Todo(), looked)
			if got := get(t, third, f.Path()); got != replaced(t, want, "Some words", "Other words", "[ ] T3", "[!] T3", "a/**\n", "a/**\n  - note: n.\n") {
				t.Errorf("later:\n%s", got)
			}
		})
	}
}

// memoryFile returns the only file in a directory.
func memoryFile(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	return filepath.Join(dir, entries[0].Name())
}

func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

func spoil(file, old, by string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, bytes.Replace(b, []byte(old), []byte(by), 1), 0o600)
}

func cutOff(file string, n int64) error {
	fi, err := os.Stat(file)
	if err != nil {
		return err
	}
	return os.Truncate(file, fi.Size()-n)
}

// TRIAL I5: the file does not grow for ever, and who followed it goes on when it is written anew or taken away.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	long := healPlan + strings.Repeat("<!-- "+strings.Repeat("long ", 2000)+"-->\n", 20)
	dir, memory := open(t, map[string]string{".opencode/todo.md": long}).Dir(), t.TempDir()
	one, two, three := process(t, dir, memory), process(t, dir, memory), process(t, dir, memory)
	a, b := one.Todo(), two.Todo()
	edit(t, b, looked)
	anew := 0
	var last, seen int64
	for i := range 40 {
		edit(t, a, func(d *todo.Doc) error { return d.AddNote("T1", fmt.Sprintf("a%d.", i)) })
		if i == 30 {
			if err := os.Remove(memoryFile(t, memory)); err != nil {
				t.Fatal(err)
			}
		}
		if i%5 == 0 {
			edit(t, b, func(d *todo.Doc) error { return d.AddNote("T2", fmt.Sprintf("b%d.", i)) })
		}
		fi, err := os.Stat(memoryFile(t, memory))
		if err != nil || fi.Size() > 5<<20 {
			t.Fatal(fi.Size(), err)
		}
		if fi.Size() < last {
			if anew++; anew == 1 {
				edit(t, three.Todo(), looked)
				seen = fi.Size()
			}
		}
		last = fi.Size()
	}
	if anew < 3 || last <= seen { // a file that is shorter than what a process has seen is another one in any case
		t.Errorf("written anew %d times, and %d bytes, once %d", anew, last, seen)
	}
	read := get(t, one, a.Path())
	edit(t, a, mark("T1", todo.Done), mark("T2", todo.Done))
	put(t, planFile(one), replaced(t, read, "three", "3"))
	healed(t, three.Todo())
	if got := get(t, one, a.Path()); got != replaced(t, read, "three", "3", "[ ] T1", "[x] T1", "[ ] T2", "[x] T2") {
		t.Errorf("file:\n%.600s", got)
	}
}

// When somebody takes the file away, those who knew what was in it put it back, and learn what one wrote who did not.
func TestMemoryTakenAway(t *testing.T) {
	t.Parallel()
	dir, memory := open(t, map[string]string{".opencode/todo.md": healPlan}).Dir(), t.TempDir()
	one := process(t, dir, memory)
	a := one.Todo()
	edit(t, a, mark("T1", todo.Running), mark("T1", todo.Open), mark("T1", todo.Running), mark("T1", todo.Done))
	if err := os.Remove(memoryFile(t, memory)); err != nil {
		t.Fatal(err)
	}
	edit(t, a, mark("T2", todo.Running))
	two := process(t, dir, memory)
	put(t, planFile(one), replaced(t, healPlan, "three", "3"))
	edit(t, two.Todo(), looked)
	want := replaced(t, healPlan, "three", "3", "[ ] T1", "[x] T1", "[ ] T2", "[~] T2")
	if got := get(t, one, a.Path()); got != want {
		t.Errorf("file:\n%s\nwant:\n%s", got, want)
	}
	edit(t, a, looked)

	if err := os.Remove(memoryFile(t, memory)); err != nil {
		t.Fatal(err)
	}
	three := process(t, dir, memory)
	edit(t, three.Todo(), mark("T2", todo.Done), mark("T3", todo.Done))
	put(t, planFile(one), replaced(t, want, "one", "uno"))
	healed(t, a)
	if got := get(t, one, a.Path()); got != replaced(t, want, "one", "uno", "[~] T2", "[x] T2", "[ ] T3", "[x] T3") {
		t.Errorf("after it was begun anew:\n%s", got)
	}
}

// What is known begins with a plan that is not there yet, also after a restart.
func TestMemoryBeforeThePlan(t *testing.T) {
	t.Parallel()
	dir, memory := open(t, nil).Dir(), t.TempDir()
	first := process(t, dir, memory)
	edit(t, first.Todo(), func(d *todo.Doc) error { _, err := d.Add("", todo.Item{Title: "one"}); return err })
	if _, err := first.Todo().Replace(t.Context(), healPlan, nil); err != nil {
		t.Fatal(err)
	}
	edit(t, first.Todo(), mark("T1", todo.Done), mark("T2", todo.Done))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, ".opencode", "todo.md"), replaced(t, healPlan, "three", "3"))
	second := process(t, dir, memory)
	edit(t, second.Todo(), looked)
	if got, want := get(t, second, second.Todo().Path()), replaced(t, healPlan, "three", "3", "[ ] T1", "[x] T1", "[ ] T2", "[x] T2"); got != want {
		t.Errorf("file:\n%s\nwant:\n%s", got, want)
	}
}

// A plan takes its memory along when it gets another name, and one that is over leaves none.
func TestMemoryOfAPlanThatMoves(t *testing.T) {
	t.Parallel()
	memory := t.TempDir()
	w := process(t, open(t, map[string]string{".opencode/todo.md": healPlan}).Dir(), memory)
	edit(t, w.Todo(), mark("T1", todo.Done))
	to, err := w.Todo().Rename("todo-1.md")
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(w.Dir(), to), replaced(t, healPlan, "three", "3"))
	f := w.TodoAt(to)
	edit(t, f, looked)
	if got := get(t, w, to); got != replaced(t, healPlan, "three", "3", "[ ] T1", "[x] T1") {
		t.Errorf("file:\n%s", got)
	}
	if _, err := f.Archive("1.md"); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(memory); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRememberErrors(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{"file": "x", ".opencode/todo.md": healPlan})
	wantError(t, w.Remember(filepath.Join(w.Dir(), "file")), centurion.KindUsage, "file")
	// A memory that cannot be kept costs no edit.
	memory := filepath.Join(t.TempDir(), "gone")
	if err := w.Remember(memory); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(memory); err != nil {
		t.Skip("a directory that is open cannot be removed here")
	}
	edit(t, w.Todo(), mark("T1", todo.Done), mark("T2", todo.Done))
	put(t, planFile(w), replaced(t, healPlan, "three", "3"))
	healed(t, w.Todo())
	if got := get(t, w, w.Todo().Path()); got != replaced(t, healPlan, "three", "3", "[ ] T1", "[x] T1", "[ ] T2", "[x] T2") {
		t.Errorf("file:\n%s", got)
	}
}
