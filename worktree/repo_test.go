package worktree

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
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
	for dir, words := range map[string]string{filepath.Join(base, "bare.git"): "is a bare repository", filepath.Join(base, "plain"): "lies in no git repository",
		filepath.Join(base, "missing"): "no project at " + filepath.Join(base, "missing"), filepath.Join(x.top, ".git"): "lies inside a git directory"} {
		_, err := Open(t.Context(), Options{Dir: dir, Home: filepath.Join(base, "home")})
		if centurion.KindOf(err) != centurion.KindNotFound || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if h, err := x.Head(t.Context()); err != nil || h != (Head{Branch: "main"}) {
		t.Errorf("empty repository: %+v, %v", h, err)
	}
}

// A git that cannot do what is needed is refused at the start; one whose version says nothing is tried.
func TestVersionOfGit(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the git here is a shell script")
	}
	x := newRig(t, nil)
	x.prog.path = filepath.Join(t.TempDir(), "git")
	for version, ok := range map[string]bool{"2.37.9": false, "1.99.1": false, "2.38.0": true, "2.53.0.windows.1": true, "3.0.0": true, "2": true, "": true, "next.big": true} {
		put(t, x.prog.path, "#!/bin/sh\necho git version "+version+"\n")
		if err := os.Chmod(x.prog.path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := x.prog.check(t.Context()); (err == nil) != ok {
			t.Errorf("%q: %v", version, err)
		} else if !ok && (centurion.KindOf(err) != centurion.KindNotFound || !strings.Contains(err.Error(), "git "+version+" is too old; 2.38")) {
			t.Errorf("%q: %v", version, err)
		}
	}
}

// What is hidden from git is .opencode/ of the project and nothing else, and what the person has excluded before stays.
func TestHide(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{".opencode": ".opencode", "a b/[x]*?": `a\ b/\[x\*\?`, `a\b`: `a\\b`, "!a/b!": `\!a/b!`, "#a/#": `\#a/#`} {
		if got := escapePattern(path); strings.ReplaceAll(got, "]", "") != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	x := newRigAt(t, filepath.Join(t.TempDir(), "top"), "sub [1]", map[string]string{"sub [1]/a": "1"})
	exclude := filepath.Join(x.top, ".git", "info", "exclude")
	put(t, exclude, "mine")
	x.write("sub [1]/.opencode/x", "1")
	x.write("sub 1/.opencode/x", "1")
	for range 2 {
		if err := x.hide(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := get(t, exclude), "mine\n/sub\\ \\[1]/.opencode\n"; got != want {
		t.Errorf("excluded %q, want %q", got, want)
	}
	if got := x.person("status", "--porcelain"); got != `?? "sub 1/"` {
		t.Errorf("git says %q", got)
	}
}

// Only what the project itself names is copied from the person's tree, not what a directory above it does.
func TestIncludeOfTheProject(t *testing.T) {
	t.Parallel()
	x := newRigAt(t, filepath.Join(t.TempDir(), "top"), "sub", map[string]string{".gitignore": "*.env\n", ".worktreeinclude": "*.env\n", "sub/.worktreeinclude": "own.env\n", "sub/a": "1"})
	x.write("top.env", "t")
	x.write("sub/own.env", "o")
	c := x.take("work/T1", x.head())
	if got := get(t, filepath.Join(c.dir, "sub", "own.env")); got != "o" {
		t.Errorf("own.env is %q", got)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "top.env")); err == nil {
		t.Error("a file outside of the project was copied")
	}
}
