package workspace_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion/guard"
	"centurion/workspace/todo"
)

// An editor that empties the file first and fills it later does not make items vanish.
func TestTodoHalfWritten(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]func(whole string) string{
		"emptied":           func(string) string { return "" },
		"cut within a line": func(whole string) string { return whole[:strings.Index(whole, "T2")] },
		"cut between lines": func(whole string) string { return whole[:strings.Index(whole, "- [ ] T2")] },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := open(t, map[string]string{".opencode/todo.md": smallPlan})
			if _, err := w.Todo().Edit(t.Context(), mark("T1", todo.Running)); err != nil {
				t.Fatal(err)
			}
			whole, written := get(t, w, w.Todo().Path()), time.Now()
			if err := errors.Join(os.WriteFile(planFile(w), []byte(part(whole)), 0o644), os.Chtimes(planFile(w), written, written)); err != nil {
				t.Fatal(err)
			}
			var g guard.Group
			g.Go("editor", func() error {
				time.Sleep(190 * time.Millisecond) // a slow editor, of which the file's rest is nearly over
				return os.WriteFile(planFile(w), []byte(whole), 0o644)
			})
			_, err := w.Todo().Edit(t.Context(), mark("T2", todo.Cancelled))
			if werr := g.Wait(); err != nil || werr != nil {
				t.Fatal(name, err, werr)
			}
			if got := get(t, w, w.Todo().Path()); !strings.Contains(got, "[-] T2") || !strings.Contains(got, "[~] T1") {
				t.Errorf("%s: file %q", name, got)
			}
		})
	}
}
