package isolation

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"centurion/worktree"
)

// Paths of a project below the top of its repository are told as the project knows them.
func TestInProject(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string][]string{".": {"sub/a", "sub/sub/b", "subway", "c"}, "sub": {"a", "sub/b", "subway", "c"}} {
		top := t.TempDir()
		dir = filepath.Join(top, dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("git", "init", "-q", top).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		repo, err := worktree.Open(t.Context(), worktree.Options{Dir: dir, Home: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = repo.Close() })
		files := []string{"sub/a", "sub/sub/b", "subway", "c"}
		if got := (&Checkouts{Ground: &Ground{Repo: repo}}).InProject(files); !slices.Equal(got, want) || files[0] != "sub/a" {
			t.Errorf("in %s: %q", dir, got)
		}
	}
}
