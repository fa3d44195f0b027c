package worktree

import (
	"path/filepath"
	"strings"
	"testing"
)

// Issue "What real use showed", B.11: what git tracks is listed without looking at a file, in a commit and as the person's index has it, relative to the project.
func TestFiles(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string][2]string{
		"":  {"a.go p/staged.go p/ü b.go", "a.go p/ü b.go"},
		"p": {"staged.go ü b.go", "ü b.go"},
	} {
		x := newRigAt(t, filepath.Join(t.TempDir(), "top"), prefix, map[string]string{"a.go": "", "p/ü b.go": "", filepath.Join(prefix, ".opencode/x.md"): ""})
		x.write("p/untracked.go", "")
		x.write("p/staged.go", "")
		x.person("add", "p/staged.go")
		for i, commit := range []string{"", "HEAD"} {
			got, err := x.Files(t.Context(), commit)
			if err != nil || strings.Join(got, " ") != want[i] {
				t.Errorf("%q in %q: %q, %v; want %q", commit, prefix, got, err, want[i])
			}
		}
	}
}
