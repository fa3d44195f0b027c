package worktree

import (
	"os"
	"path/filepath"
	"testing"

	"centurion"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	x := newRigAt(t, filepath.Join(t.TempDir(), "with space ü"), "sub/project", map[string]string{"sub/project/a": "1"})
	if got := x.Prefix(); got != "sub/project" {
		t.Errorf("prefix %q", got)
	}
	h, err := x.Head(t.Context())
	if err != nil || h.Branch != "main" || h.Commit != x.person("rev-parse", "HEAD") {
		t.Errorf("head %+v, %v", h, err)
	}
	x.person("checkout", "-q", "--detach")
	if h, err = x.Head(t.Context()); err != nil || h.Branch != "" || h.Commit == "" {
		t.Errorf("detached head %+v, %v", h, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	gitIn(t, base, "init", "-q", "--bare", "bare.git")
	os.Mkdir(filepath.Join(base, "plain"), 0o755)
	x := newRig(t, nil)
	for _, dir := range []string{filepath.Join(base, "bare.git"), filepath.Join(base, "plain"), filepath.Join(base, "missing"), filepath.Join(x.top, ".git")} {
		_, err := Open(t.Context(), Options{Dir: dir, Home: filepath.Join(base, "home")})
		if centurion.KindOf(err) != centurion.KindNotFound {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if h, err := x.Head(t.Context()); err != nil || h != (Head{Branch: "main"}) {
		t.Errorf("empty repository: %+v, %v", h, err)
	}
}
