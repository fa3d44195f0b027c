package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// A text that was written from an older plan keeps what was changed since, changes what it changes, and a text that is the older plan
// itself takes nothing back.
func TestTodoMerge(t *testing.T) {
	const first = "# P\n- [ ] T1 One\n- [ ] T2 Two\n"
	for name, tt := range map[string]struct{ text, want string }{
		"a new item":       {first + "- [ ] T3 Three\n", "# P\n- [x] T1 One\n- [ ] T2 Two\n- [ ] T3 Three\n"},
		"another title":    {strings.Replace(first, "Two", "2", 1), "# P\n- [x] T1 One\n- [ ] T2 2\n"},
		"the same mark":    {strings.Replace(first, "[ ] T1", "[-] T1", 1), "# P\n- [-] T1 One\n- [ ] T2 Two\n"},
		"the older text":   {first, "# P\n- [x] T1 One\n- [ ] T2 Two\n"},
		"an entirely new":  {"# Q\n- [ ] A1 a\n- [ ] A2 b\n- [ ] A3 c\n", "# Q\n- [ ] A1 a\n- [ ] A2 b\n- [ ] A3 c\n"},
		"without its item": {"# P\n- [ ] T1 One\n", "# P\n- [x] T1 One\n"},
	} {
		w := open(t, map[string]string{workspace.TodoPath: first})
		if _, err := w.Todo().Edit(t.Context(), func(d *todo.Doc) error { return d.SetMark("T1", todo.Done) }); err != nil {
			t.Fatal(err)
		}
		checked := ""
		doc, err := w.Todo().Merge(t.Context(), tt.text, func(old, new *todo.Doc) error {
			checked = string(old.Bytes()) + "|" + string(new.Bytes())
			return nil
		})
		if err != nil || string(doc.Bytes()) != tt.want || get(t, w, workspace.TodoPath) != tt.want {
			t.Errorf("%s: %v, got\n%swant\n%s", name, err, get(t, w, workspace.TodoPath), tt.want)
		}
		if want := strings.Replace(first, "[ ] T1", "[x] T1", 1) + "|" + tt.want; checked != want {
			t.Errorf("%s: checked %q, want %q", name, checked, want)
		}
	}
	w := open(t, map[string]string{workspace.TodoPath: first})
	no := errors.New("no")
	if _, err := w.Todo().Merge(t.Context(), first+"- [ ] T3 Three\n", func(_, _ *todo.Doc) error { return no }); !errors.Is(err, no) || get(t, w, workspace.TodoPath) != first {
		t.Errorf("refused: %v, %q", err, get(t, w, workspace.TodoPath))
	}
}

// A shared text is marked in its place: nothing is archived, and where there is none nothing is made.
func TestSharedMark(t *testing.T) {
	w := open(t, map[string]string{workspace.ContextPath: "a\n"})
	mark := func(text string) string { return text + "marked\n" }
	if err := w.Context().Mark(t.Context(), mark); err != nil || get(t, w, workspace.ContextPath) != "a\nmarked\n" {
		t.Errorf("%q, %v", get(t, w, workspace.ContextPath), err)
	}
	if names, err := w.Names(workspace.ArchivePath, ""); len(names) > 0 {
		t.Errorf("archived %q, %v", names, err)
	}
	none := open(t, nil)
	if err := none.Context().Mark(t.Context(), mark); err != nil {
		t.Error(err)
	}
	if _, err := none.Stat(workspace.ContextPath); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("there is one now: %v", err)
	}
}

// Commands run where the files of a workspace are for them, under the name of that place.
func TestPlaceOfWorkspaces(t *testing.T) {
	project, c, files := elsewhere(t)
	if got := project.Place(); got != (centurion.Place{Dir: project.Dir(), Workspace: project.Dir()}) || project.Elsewhere() {
		t.Errorf("the project is at %+v", got)
	}
	if got := c.Place(); got.Dir != project.Dir() || !c.Elsewhere() {
		t.Errorf("the copy is at %+v", got)
	}
	root, err := os.OpenRoot(files)
	if err != nil {
		t.Fatal(err)
	}
	named := project.CopyIn(root, centurion.Place{Dir: project.Dir(), Workspace: "w1"})
	defer named.Close()
	if got := named.Place(); got != (centurion.Place{Dir: project.Dir(), Workspace: "w1"}) {
		t.Errorf("the named copy is at %+v", got)
	}
}

// What could not be written is an error, of the kind that says what to do.
func TestWriteThatFails(t *testing.T) {
	w := open(t, nil)
	wantError(t, w.WriteFile(strings.Repeat("n", 255), []byte("x")), centurion.KindUsage, "name too long")
	if c, err := w.Copy(filepath.Join(w.Dir(), "none")); err == nil || c != nil {
		t.Errorf("a copy that is not there: %v", err)
	}
}
