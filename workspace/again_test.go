package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"centurion/workspace/todo"
)

// A file that changes under every attempt is left to the other writer, and the error says so.
func TestRestlessFiles(t *testing.T) {
	t.Parallel()
	w := project(t, ".opencode/todo.md=- [ ] T1 a\n", ".opencode/context.md=old\n")
	n := 0
	disturb := func(name, text string) error {
		n++
		file := filepath.Join(w.dir, filepath.FromSlash(name))
		past := time.Now().Add(-time.Hour)
		return errors.Join(os.WriteFile(file, fmt.Appendf(nil, "%s%d\n", text, n), 0o644), os.Chtimes(file, past, past))
	}
	_, err := w.Todo().Edit(t.Context(), func(d *todo.Doc) error {
		return errors.Join(d.SetMark("T1", todo.Done), disturb(TodoPath, "- [ ] T1 a"))
	})
	wantSaid(t, w, "plan", err, "conflict: edit todo: .opencode/todo.md is being changed all the time | find out what writes to it, and stop it")
	if b, err := os.ReadFile(filepath.Join(w.dir, TodoPath)); string(b) != "- [ ] T1 a100\n" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	n = 0
	_, _, err = w.Context().Note(t.Context(), "x", func(string) error { return disturb(ContextPath, "") })
	wantSaid(t, w, "context", err, "conflict: edit shared text: .opencode/context.md is being changed all the time | find out what writes to it, and stop it")
	if b, err := os.ReadFile(filepath.Join(w.dir, ContextPath)); string(b) != "100\n" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

// A plan that this process has not seen yet is not healed, and not even locked.
func TestHealLeavesUnknownPlans(t *testing.T) {
	t.Parallel()
	w := project(t, ".opencode/todo.md=- [ ] a\n")
	if changed, err := w.Todo().Heal(t.Context()); changed || err != nil {
		t.Errorf("%t, %v", changed, err)
	}
	if left, err := os.ReadDir(filepath.Join(w.dir, Directory)); len(left) != 1 || err != nil {
		t.Errorf("made %v, %v", left, err)
	}
}

// What two writers made of the same plan, each from the same version.
func TestApply(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, base, ours, theirs, want string }{
		{"the same line", "- [ ] T1 a\n", "- [ ] T1 a\n  - note: x\n", "- [ ] T1 a\n  - note: x\n", "- [ ] T1 a\n  - note: x\n"},
		{"other lines", "- [ ] T1 a\r\n", "- [ ] T1 a\r\n  - note: x\n", "- [ ] T1 a\r\n  - note: y\r\n", "- [ ] T1 a\r\n  - note: y\r\n  - note: x\r\n"},
		{"an attribute, and its value", "- [ ] T1 a\n  - files: b\n", "- [ ] T1 a\n  - files: c\n", "- [ ] T1 a\n  - files: b\n  - agent: d\n", "- [ ] T1 a\n  - files: c\n  - agent: d\n"},
		{"an attribute, both", "- [ ] T1 a\n  - files: b\n", "- [ ] T1 a\n  - files: c\n", "- [ ] T1 a\n  - files: d\n", "- [ ] T1 a\n  - files: d\n"},
		{"mark and title", "- [ ] T1 a\n", "- [x] T1 a\n", "- [ ] T1 b\n", "- [x] T1 b\n"},
		{"both marks", "- [ ] T1 a\n", "- [x] T1 a\n", "- [~] T1 a\n", "- [~] T1 a\n"},
		{"both titles", "- [ ] T1 a\n", "- [ ] T1 b\n", "- [ ] T1 c\n", "- [ ] T1 c\n"},
		{"an item went", "- [ ] T1 a\n- [ ] T2 b\n", "- [ ] T2 b\n", "- [ ] T1 a\n- [x] T2 b\n", "- [x] T2 b\n"},
		{"an item went that was changed", "- [ ] T1 a\n- [ ] T2 b\n", "- [ ] T2 b\n", "- [x] T1 a\n- [ ] T2 b\n", "- [x] T1 a\n- [ ] T2 b\n"},
		{"an item came", "# A\n- [ ] T1 a\n# B\n", "# A\n- [ ] T1 a\n\n  - [ ] T2 b\n- [ ] T3 c\n# B\n", "# A\n- [x] T1 a\n- [ ] T4 d\n# B\n", "# A\n- [x] T1 a\n\n  - [ ] T2 b\n- [ ] T3 c\n- [ ] T4 d\n# B\n"},
		{"a part of what went", "- [ ] T1 a\n- [ ] T2 b\n", "- [ ] T1 a\n  - [ ] T3 c\n- [ ] T2 b\n", "- [ ] T2 b\n", "- [ ] T2 b\n"},
		{"the same item", "- [ ] T1 a\n", "- [ ] T1 a\n- [ ] T2 b\n", "- [ ] T1 a\n- [ ] T2 b\n", "- [ ] T1 a\n- [ ] T2 b\n"},
		{"the same id", "- [ ] T1 a\n", "- [ ] T1 a\n- [ ] T2 b\n", "- [ ] T1 a\n- [ ] T2 c\n", "- [ ] T1 a\n- [ ] T2 b\n- [ ] T2 c\n"},
		{"an id came", "- [ ] a\n", "- [ ] T1 a\n", "- [x] a\n", "- [x] T1 a\n"},
		{"one of two equal lines went", "- [ ] T1 a\n  - note: x\n  - note: x\n", "- [ ] T1 a\n  - note: x\n", "- [x] T1 a\n  - note: x\n  - note: x\n", "- [x] T1 a\n  - note: x\n"},
		{"a value that stands below the old one", "- [ ] T1 a\n  - files: b\n", "- [ ] T1 a\n  - files: c\n", "- [ ] T1 a\n  - files: b\n  - files: c\n", "- [ ] T1 a\n  - files: c\n"},
		{"an item came, other line ends", "- [ ] T1 a\n", "- [ ] T1 a\n\n- [ ] T2 b\n  - note: x\n\n- [ ] T3 c\n", "- [x] T1 a\r\n", "- [x] T1 a\r\n\r\n- [ ] T2 b\r\n  - note: x\r\n\r\n- [ ] T3 c\r\n"},
		{"first", "- [ ] T1 a\n", "# N\n- [ ] T1 a\n", "- [x] T1 a", "# N\n- [x] T1 a"},
	} {
		docs := make([]*blocks, 3)
		for i, text := range []string{tt.base, tt.ours, tt.theirs} {
			doc, err := todo.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			docs[i] = cut(doc)
		}
		docs[2].apply(docs[0], steps(docs[0], docs[1], true))
		if got := string(docs[2].text()); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
