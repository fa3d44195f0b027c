package worktree

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"centurion/sandbox"
)

// TestMain keeps the machine's own git configuration out of every test.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.HelperCommand {
		os.Exit(sandbox.Helper())
	}
	if servesDesk() {
		return
	}
	home, err := os.MkdirTemp("", "worktree-home")
	if err != nil {
		panic(err)
	}
	for k, v := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_GLOBAL": filepath.Join(home, "gitconfig"), "GIT_CONFIG_NOSYSTEM": "1"} {
		os.Setenv(k, v)
	}
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

// rig is a project in a real repository.
type rig struct {
	t   testing.TB
	top string // of the person's working tree
	dir string // the project in it
	*Repo
}

// newRig makes a repository with one commit of files, the project at its top.
func newRig(t testing.TB, files map[string]string) *rig {
	t.Helper()
	return newRigAt(t, filepath.Join(t.TempDir(), "ein Prüf stand"), "", files)
}

func newRigAt(t testing.TB, top, prefix string, files map[string]string) *rig {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(top, filepath.FromSlash(prefix)), 0o755); err != nil {
		t.Fatal(err)
	}
	x := &rig{t: t, top: top, dir: filepath.Join(top, filepath.FromSlash(prefix))}
	x.person("init", "-q", "-b", "main")
	for name, content := range files {
		x.write(name, content)
	}
	if files != nil {
		x.person("add", "-A")
		x.person("commit", "-q", "--allow-empty", "-m", "first")
	}
	x.Repo = x.open()
	t.Cleanup(func() {
		if left, _ := os.ReadDir(filepath.Join(filepath.Dir(top), "home", "tmp")); len(left) > 0 && !t.Failed() {
			t.Errorf("%d temporary directories are left", len(left))
		}
	})
	return x
}

// takeHead takes a checkout of HEAD on a branch.
func (x *rig) takeHead(branch string) *Checkout {
	x.t.Helper()
	c, err := x.Take(x.t.Context(), Want{Branch: branch, Commit: x.person("rev-parse", "HEAD")})
	if err != nil {
		x.t.Fatal(err)
	}
	return c
}

func (x *rig) open() *Repo { return x.openWith(Options{}) }

// openWith opens the repository with more options.
func (x *rig) openWith(o Options) *Repo {
	x.t.Helper()
	o.Dir, o.Home = x.dir, filepath.Join(filepath.Dir(x.top), "home")
	r, err := Open(x.t.Context(), o)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { r.Close() })
	return r
}

// person runs git as the person would, in the top of the working tree.
func (x *rig) person(args ...string) string {
	x.t.Helper()
	return gitIn(x.t, x.top, args...)
}

func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := tryGit(t.Context(), dir, args...)
	if err != nil {
		t.Fatalf("git %v in %s: %v\n%s", args, dir, err, out)
	}
	return strings.TrimSpace(out)
}

func tryGit(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "user.name=Person", "-c", "user.email=person@localhost", "-c", "protocol.file.allow=always", "-c", "gc.auto=0"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// write writes a file of the person's working tree.
func (x *rig) write(name, content string) {
	x.t.Helper()
	put(x.t, filepath.Join(x.top, filepath.FromSlash(name)), content)
}

// slotIn is the slot of the pool that a checkout at dir has, whose project is the repository's top.
func slotIn(dir string) string { return filepath.Base(filepath.Dir(dir)) }

func put(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	syscall.ForkLock.RLock() // a child that begins meanwhile would hold the file open, and a script that is could not be run
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
