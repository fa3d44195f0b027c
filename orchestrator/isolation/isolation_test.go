package isolation

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"centurion"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/worktree"
)

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	args = append([]string{"-C", dir, "-c", "user.name=Person", "-c", "user.email=person@localhost"}, args...)
	if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// A mission that ends right after its snapshot was taken has its branch all the same: it is recorded, and a resumed mission stands on it.
func TestFoundWhileItEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
	repo, err := worktree.Open(t.Context(), worktree.Options{Dir: dir, Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = repo.Close() })
	st := storetest.Open(t)
	base, err := repo.Snapshot(t.Context(), baseRef("msn_1"), true)
	if err != nil {
		t.Fatal(err)
	}
	rec := centurion.Mission{ID: "msn_1", Session: "ses_1", Status: centurion.MissionRunning, Isolation: centurion.IsolationWorktree}
	if err := st.Update(t.Context(), func(tx *store.Tx) error {
		return errors.Join(tx.PutSession(&centurion.Session{ID: rec.Session}), tx.PutMission(&rec))
	}); err != nil {
		t.Fatal(err)
	}
	rec.Base = &base
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	m := &Checkouts{st: &state.Mission{Store: st, ID: rec.ID}, Ground: &Ground{Repo: repo}}
	if err := m.found(ended, rec); err != nil {
		t.Fatal(err)
	}
	tip, err := repo.Tip(t.Context(), BranchOf(rec.ID))
	now, rerr := st.Mission(t.Context(), rec.ID)
	if err != nil || tip != base.Commit || rerr != nil || now.Branch != BranchOf(rec.ID) || now.Base == nil {
		t.Errorf("the branch is at %q, %v; recorded %q on %+v, %v", tip, err, now.Branch, now.Base, rerr)
	}
}

// Paths of a project below the top of its repository are told as the project knows them.
func TestInProject(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string][]string{".": {"sub/a", "sub/sub/b", "subway", "c"}, "sub": {"a", "sub/b", "subway", "c"}} {
		top := t.TempDir()
		dir = filepath.Join(top, dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		git(t, top, "init", "-q")
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
