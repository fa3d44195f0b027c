package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"centurion/guard/synced"
)

// R2: an edit of the plan is on the disk before it stands in the plan's place, and so is the place before the edit returns.
func TestPlanIsSynced(t *testing.T) {
	calls := synced.Calls(t, func() {
		w := open(t, map[string]string{".opencode/todo.md": "- [ ] T1 One\n"})
		if _, err := w.Todo().Replace(t.Context(), "# P\n- [ ] T1 Two\n", nil); err != nil {
			t.Error(err)
		}
	})
	synced.Want(t, calls, `sync \.todo\.md\.new`, `name \.todo\.md\.new todo\.md`, `sync \.opencode`)
}

// R2: an archived plan has its place for good before the archiving returns: in the archive, and no longer where it was.
func TestArchivedPlanIsSynced(t *testing.T) {
	calls := synced.Calls(t, func() {
		w := open(t, map[string]string{".opencode/todo.md": "- [ ] T1 One\n"})
		if _, err := w.Todo().Archive("todo-1.md"); err != nil {
			t.Error(err)
		}
	})
	synced.Want(t, calls, `name todo\.md todo-1\.md`, `sync archive`, `sync \.opencode`)
}

// R2: a file is on the disk before it stands in the old one's place, and so is the place before the write returns.
func TestWrittenFileIsSynced(t *testing.T) {
	calls := synced.Calls(t, func() {
		w := open(t, map[string]string{"d/a.txt": "old"})
		if err := w.WriteFile("d/a.txt", []byte("new")); err != nil {
			t.Error(err)
		}
	})
	synced.Want(t, calls, `sync \S+`, `name \S+ a\.txt`, `sync d`)
}

// R2: lines of a record are on the disk, with the name of their file, when they count as written.
func TestLinesAreSynced(t *testing.T) {
	calls := synced.Calls(t, func() {
		w := open(t, nil)
		if err := os.MkdirAll(filepath.Join(w.Dir(), ".opencode"), 0o777); err != nil {
			t.Error(err)
		}
		if err := w.AppendJSON(".opencode/archive/tasks.jsonl", []byte(`{"n":1}`)); err != nil {
			t.Error(err)
		}
	})
	synced.Want(t, calls, `sync tasks\.jsonl`, `sync archive`)
}

// R2: a text that is about to be replaced is kept for good before that.
func TestKeptTextIsSynced(t *testing.T) {
	calls := synced.Calls(t, func() {
		w := open(t, map[string]string{".opencode/context.md": "old\n"})
		f := w.Context()
		if _, err := f.Replace(t.Context(), "new\n", func(string) error { return nil }); err != nil {
			t.Error(err)
		}
	})
	synced.Want(t, calls, `sync context-\S+\.md`, `sync archive`, `sync \S+`, `name \S+ context\.md`, `sync \.opencode`)
}
