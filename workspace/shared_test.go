package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/guard"
	"centurion/workspace"
)

// ORCH-66, ORCH-67, ORCH-68, ORCH-69, ORCH-70, ORCH-71: where the program keeps what, by name, and that its methods go there.
func TestPaths(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	for _, p := range []struct{ name, got, want string }{
		{"directory", workspace.Directory, ".opencode"},
		{"docs", workspace.DocsPath, ".opencode/docs"},
		{"archive", workspace.ArchivePath, ".opencode/archive"},
		{"todo", workspace.TodoPath, ".opencode/todo.md"},
		{"context", workspace.ContextPath, ".opencode/context.md"},
		{"summary", workspace.SummaryPath, ".opencode/summary.md"},
		{"index of docs", workspace.DocsMetadataPath, ".opencode/docs/_metadata.json"},
		{"todo file", w.Todo().Path(), ".opencode/todo.md"},
		{"context file", w.Context().Path(), ".opencode/context.md"},
		{"summary file", w.Summary().Path(), ".opencode/summary.md"},
	} {
		if p.got != p.want {
			t.Errorf("%s: %s, want %s", p.name, p.got, p.want)
		}
		if !w.Protected(p.got) {
			t.Errorf("%s is not protected from file tools", p.got)
		}
	}
}

// ORCH-63, ORCH-64, ORCH-65: the detail at the borders of 30 and 70 percent, and what each level allows and asks for.
func TestLevel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		done, total int
		want        workspace.Detail
	}{
		{0, 100, workspace.Early}, {29, 100, workspace.Early}, {30, 100, workspace.Building}, {69, 100, workspace.Building},
		{70, 100, workspace.Finishing}, {100, 100, workspace.Finishing},
		{0, 0, workspace.Early}, {0, 1, workspace.Early}, {1, 1, workspace.Finishing}, {-1, 3, workspace.Early}, {3, -1, workspace.Early},
		{1, 3, workspace.Building}, {2, 3, workspace.Building}, {299, 1000, workspace.Early}, {699, 1000, workspace.Building},
	} {
		if got := workspace.Level(tt.done, tt.total); got != tt.want {
			t.Errorf("%d of %d: %s, want %s", tt.done, tt.total, got, tt.want)
		}
	}
	for d, want := range map[workspace.Detail]struct {
		name, wants      string
		context, summary int
	}{
		workspace.Early:     {"early", "detailed explanations and research", 16 << 10, 2 << 10},
		workspace.Building:  {"building", "key decisions and references to files", 8 << 10, 1 << 10},
		workspace.Finishing: {"finishing", "a brief status and what blocks, nothing else", 3 << 10, 500},
	} {
		if d.String() != want.name || d.Wants() != want.wants || d.Budget(workspace.ContextPath) != want.context ||
			d.Budget(workspace.SummaryPath) != want.summary || d.Budget("README.md") != 0 {
			t.Errorf("%s: %q, %d, %d", d, d.Wants(), d.Budget(workspace.ContextPath), d.Budget(workspace.SummaryPath))
		}
	}
}

func archived(t testing.TB, w *workspace.Workspace) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(w.Dir(), ".opencode", "archive", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range all {
		all[i] = filepath.Base(p)
	}
	slices.SortFunc(all, func(a, b string) int { return len(a) - len(b) })
	return all
}

// ORCH-59, ORCH-60, ORCH-62: a new text replaces the old one as a whole, and every old one is in the archive, byte for byte.
func TestSharedReplace(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	for _, f := range []workspace.SharedFile{w.Context(), w.Summary()} {
		if text, v, err := f.Load(); text != "" || v != "" || err != nil {
			t.Errorf("missing: %q, %q, %v", text, v, err)
		}
		stem := strings.TrimSuffix(filepath.Base(f.Path()), ".md") + "-2"
		var kept []string
		for i := range 4 {
			old, v, _ := f.Load()
			at, err := f.Replace(t.Context(), fmt.Sprintf("text %d\n\n\n", i), func(version string) error {
				if version != v {
					return fmt.Errorf("version %q, want %q", version, v)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 != (at == "") {
				t.Errorf("text %d: archived at %q", i, at)
			} else if at != "" {
				if !strings.HasPrefix(at, ".opencode/archive/"+stem) || slices.Contains(kept, at) || get(t, w, at) != old {
					t.Errorf("archived at %s: %q, want %q", at, get(t, w, at), old)
				}
				kept = append(kept, at)
			}
			if got := get(t, w, f.Path()); got != fmt.Sprintf("text %d\n", i) {
				t.Errorf("file %q", got)
			}
		}
		if at, err := f.Replace(t.Context(), "text 3", func(string) error { return errors.New("not asked") }); at != "" || err != nil {
			t.Errorf("the same text: %q, %v", at, err)
		}
	}
	if n := len(archived(t, w)); n != 6 {
		t.Errorf("%d files in the archive", n)
	}
}

// ORCH-7, ORCH-59: what somebody writes while a new text is on its way is not lost: the check is asked again, and where it
// refuses, their text stays and no copy is left behind.
func TestSharedReplaceSeesAnEditor(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{".opencode/context.md": "old\n"})
	f := w.Context()
	if err := os.Chmod(filepath.Join(w.Dir(), ".opencode", "context.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	mine := errors.New("changed since you read it")
	_, read, _ := f.Load()
	asked := 0
	check := func(version string) error {
		if asked++; asked == 1 {
			put(t, filepath.Join(w.Dir(), ".opencode", "context.md"), "a person's\n")
		}
		if version != read {
			return mine
		}
		return nil
	}
	if at, err := f.Replace(t.Context(), "new", check); !errors.Is(err, mine) || at != "" || asked != 2 {
		t.Errorf("%q, %v, asked %d times", at, err, asked)
	}
	if got := get(t, w, f.Path()); got != "a person's\n" || len(archived(t, w)) > 0 {
		t.Errorf("file %q, archive %v", got, archived(t, w))
	}
	asked = 1
	_, read, _ = f.Load()
	if at, err := f.Replace(t.Context(), "new", check); err != nil || get(t, w, at) != "a person's\n" || get(t, w, f.Path()) != "new\n" {
		t.Errorf("%q, %v", at, err)
	}
	if fi, _ := os.Stat(filepath.Join(w.Dir(), ".opencode", "context.md")); runtime.GOOS != "windows" && fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", fi.Mode())
	}
	if left, _ := os.ReadDir(filepath.Join(w.Dir(), ".opencode")); len(left) != 3 { // the lock, the archive and the file
		t.Errorf("left behind: %v", left)
	}
}

// ORCH-7: ten workers that note at the same time, and others that replace the same text meanwhile, lose no note.
func TestSharedNotesConcurrently(t *testing.T) {
	t.Parallel()
	const workers, each = 10, 8
	w := open(t, map[string]string{".opencode/context.md": "# What we know\n"})
	f := w.Context()
	var g guard.Group
	for i := range workers {
		g.Go("worker", func() error {
			for n := range each {
				if _, _, err := f.Note(t.Context(), fmt.Sprintf("worker %d found %d", i, n), nil); err != nil {
					return err
				}
			}
			return nil
		})
	}
	g.Go("reviewer", func() error {
		for n := range each {
			changed := errors.New("changed")
			for {
				text, read, err := f.Load()
				if err != nil {
					return err
				}
				_, err = f.Replace(t.Context(), fmt.Sprintf("round %d\n", n)+text, func(v string) error {
					if v != read {
						return changed
					}
					return nil
				})
				if err == nil {
					break
				}
				if !errors.Is(err, changed) {
					return err
				}
			}
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	text := get(t, w, f.Path())
	for i := range workers {
		at := -1
		for n := range each {
			line := fmt.Sprintf("\n- worker %d found %d\n", i, n)
			if strings.Count(text, line) != 1 || strings.Index(text, line) < at {
				t.Errorf("%q stands there %d times, or not in its order", line, strings.Count(text, line))
			}
			at = strings.Index(text, line)
		}
	}
	if strings.Count(text, "## Notes") != 1 || strings.Count(text, "round ") != each || !strings.Contains(text, "# What we know\n") {
		t.Errorf("what the others wrote:\n%s", text)
	}
}

// ORCH-7: where a note goes, whatever a person has made of the file; the same line is not noted twice.
func TestSharedNote(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ old, want string }{
		"no file":        {"", "## Notes\n\n- new one\n"},
		"no section":     {"# A\n\ntext", "# A\n\ntext\n\n## Notes\n\n- new one\n"},
		"at the end":     {"# A\n\n## Notes\n\n- b\n\n\n", "# A\n\n## Notes\n\n- b\n- new one\n"},
		"no line end":    {"## Notes\n- b", "## Notes\n- b\n- new one\n"},
		"empty section":  {"## Notes\n\n## C\n", "## Notes\n\n- new one\n\n## C\n"},
		"in the middle":  {"## Notes\n\n- b\n\n## C\ntext\n", "## Notes\n\n- b\n- new one\n\n## C\ntext\n"},
		"sub-heading":    {"## Notes\n\n### D\n- b\n# E\n", "## Notes\n\n### D\n- b\n- new one\n# E\n"},
		"other notes":    {"### Notes\n- b\n", "### Notes\n- b\n\n## Notes\n\n- new one\n"},
		"line ends":      {"## Notes\r\n- b\r\n", "## Notes\r\n- b\r\n- new one\n"},
		"there already":  {"## Notes\n\n- new one\n- b\n", "## Notes\n\n- new one\n- b\n"},
		"said elsewhere": {"- new one\n", "- new one\n\n## Notes\n\n- new one\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{".opencode/context.md": tt.old}
			if tt.old == "" {
				files = nil
			}
			w := open(t, files)
			f := w.Context()
			_, was, _ := f.Load()
			before, after, err := f.Note(t.Context(), " new\n  one ", nil)
			if got := get(t, w, f.Path()); err != nil || got != tt.want || before != was || after != workspace.VersionOf([]byte(got)) {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
			if _, _, err := f.Note(t.Context(), "new one", nil); err != nil || get(t, w, f.Path()) != tt.want {
				t.Errorf("once more: %v, %q", err, get(t, w, f.Path()))
			}
			mine := errors.New("mine")
			if _, _, err := f.Note(t.Context(), "x", func(text string) error {
				if !strings.Contains(text, "- x\n") {
					t.Errorf("asked about %q", text)
				}
				return mine
			}); err != mine || get(t, w, f.Path()) != tt.want {
				t.Errorf("refused: %v, %q", err, get(t, w, f.Path()))
			}
			rest, had := workspace.WithoutNotes(tt.want)
			if !had || strings.Contains(rest, "\n## Notes") || strings.Contains(tt.want, "## C") != strings.Contains(rest, "## C") {
				t.Errorf("without notes: %q, %t", rest, had)
			}
		})
	}
	for text, want := range map[string]string{"# A\n": "# A\n", "## Notes\n- a\n## Notes\n- b\n": "## Notes\n- b\n"} {
		if rest, had := workspace.WithoutNotes(text); had != (rest != text) || rest != want {
			t.Errorf("%q without notes: %q, %t", text, rest, had)
		}
	}
}

func TestSharedErrors(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{"away/x": "x"})
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(centurion.ErrCancelled)
	_, err := w.Context().Replace(ended, "x", nil)
	wantError(t, err, centurion.KindCancelled, "")
	put(t, filepath.Join(w.Dir(), ".opencode", "summary.md"), strings.Repeat("x", 1<<20+1))
	_, err = w.Summary().Replace(t.Context(), "x", nil)
	wantError(t, err, centurion.KindUsage, "more than the 1048576")
	if err := os.Mkdir(filepath.Join(w.Dir(), ".opencode", "context.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, _, err = w.Context().Note(t.Context(), "x", nil)
	wantError(t, err, centurion.KindUsage, ".opencode/context.md is a directory")
	if runtime.GOOS == "windows" {
		return
	}
	away := t.TempDir()
	v := open(t, nil)
	link(t, away, filepath.Join(v.Dir(), ".opencode"))
	_, err = v.Context().Replace(t.Context(), "x", nil)
	if left, _ := os.ReadDir(away); err == nil || len(left) > 0 {
		t.Errorf("a link that leads out: %v, %v", err, left)
	}
}
