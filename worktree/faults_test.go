package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"centurion"
)

func (x *rig) hasRef(name string) bool {
	x.t.Helper()
	out, err := tryGit(x.t.Context(), x.top, "rev-parse", "-q", "--verify", name)
	return err == nil && strings.TrimSpace(out) != ""
}

// A branch on which nothing was done goes with its checkout, one with work stays, also where it is to be measured by a commit that
// nobody has; and each checkout is free for the next one.
func TestReleaseKeepsWork(t *testing.T) {
	t.Parallel()
	const branch = "centurion/m/t"
	nobody := strings.Repeat("1", 40)
	for name, tt := range map[string]struct {
		do   func(c *Checkout) error
		into string
		kept bool
	}{
		"nothing was done":                {func(*Checkout) error { return nil }, "", false},
		"nothing was done, into a commit": {func(*Checkout) error { return nil }, "HEAD", false},
		"uncommitted work":                {func(c *Checkout) error { return os.WriteFile(filepath.Join(c.dir, "b"), []byte("b\n"), 0o644) }, "", true},
		"work that is in no other branch": {func(c *Checkout) error {
			return os.WriteFile(filepath.Join(c.dir, "b"), []byte("b\n"), 0o644)
		}, "HEAD", true},
		"a commit that nobody has": {func(c *Checkout) error { return os.WriteFile(filepath.Join(c.dir, "b"), []byte("b\n"), 0o644) }, nobody, true},
		"taken back":               {func(c *Checkout) error { return os.WriteFile(filepath.Join(c.dir, "a"), []byte("1\n"), 0o644) }, "", false},
		"its directory is gone":    {func(c *Checkout) error { return os.RemoveAll(c.repo.slotOf(c.name)) }, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newRig(t, map[string]string{"a": "1\n"})
			c := x.take(branch, x.head())
			if err := tt.do(c); err != nil {
				t.Fatal(err)
			}
			into := tt.into
			if into == "HEAD" {
				into = x.person("rev-parse", "HEAD")
			}
			kept, err := c.Release(t.Context(), into)
			if err != nil || (kept == branch) != tt.kept || x.hasRef("refs/heads/"+branch) != tt.kept {
				t.Errorf("kept %q, %v; the branch is there: %v", kept, err, x.hasRef("refs/heads/"+branch))
			}
			if again, err := c.Release(t.Context(), into); again != "" || err != nil {
				t.Errorf("a second time: %q, %v", again, err)
			}
			if next := x.take("centurion/m/next", x.head()); next.name != c.name {
				t.Errorf("the next one is %s, and %s is free", next.name, c.name)
			}
		})
	}
}

// A checkout whose way to another commit broke off stays where its holder works: a later visit does not write over that.
func TestBrokenMoveIsNotGoneOnWith(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	c := x.take("centurion/m/t", x.head())
	to := x.commitOf(c.rec.Start, map[string][]byte{"a": []byte("2\n")}, "b")
	info := filepath.Join(c.rec.GitDir, "info")
	if err := errors.Join(os.RemoveAll(info), os.WriteFile(info, nil, 0o600)); err != nil { // where its patterns go
		t.Fatal(err)
	}
	if err := c.Move(t.Context(), to); err == nil {
		t.Fatal("it moved")
	}
	if rec, ok := x.readRecord(c.name); !ok || rec.Next != "" || rec.Onto != "" || rec.Start == to {
		t.Errorf("recorded %+v", rec)
	}
	if err := os.Remove(info); err != nil {
		t.Fatal(err)
	}
	if err := c.Move(t.Context(), to); err != nil || get(t, filepath.Join(c.dir, "a")) != "2\n" {
		t.Errorf("a second time: %v", err)
	}
}

// Something that stands where a checkout was is not taken for it: it says what is wrong and where the work is.
func TestCheckoutThatIsNone(t *testing.T) {
	t.Parallel()
	for words, spoil := range map[string]func(c *Checkout) error{
		"was removed":                   func(c *Checkout) error { return os.RemoveAll(c.dir) },
		"belongs to another repository": func(c *Checkout) error { c.rec.GitDir = filepath.Join(t.TempDir(), "worktrees", "w1"); return nil },
		"git does not know":             func(c *Checkout) error { return os.Remove(filepath.Join(c.rec.GitDir, "HEAD")) },
		"was given back":                func(c *Checkout) error { c.rec.Free = true; return nil },
	} {
		x := newRig(t, map[string]string{"a": "1\n"})
		c := x.take("centurion/m/t", x.head())
		if err := spoil(c); err != nil {
			t.Fatal(err)
		}
		for name, f := range map[string]func() error{
			"changed": func() error { _, err := c.Changed(t.Context()); return err },
			"commit":  func() error { _, err := c.Commit(t.Context(), "x"); return err },
			"move":    func() error { return c.Move(t.Context(), c.rec.Start) },
			"ignored": func() error { _, err := c.Ignored(t.Context(), []string{"a"}); return err },
		} {
			err := f()
			if centurion.KindOf(err) != centurion.KindNotFound || !strings.Contains(err.Error(), words) || !c.rec.Free && !strings.Contains(centurion.HintOf(err), "centurion/m/t") {
				t.Errorf("%s, %s: %v (%s)", words, name, err, centurion.HintOf(err))
			}
		}
	}
}

// The kind of a fault of git is read from what it says, whichever of its lines says it.
func TestFaultsOfGit(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]struct {
		kind centurion.Kind
		msg  string
	}{
		"fatal: not a git repository: x\n":                                         {centurion.KindNotFound, "not a git repository: x"},
		"fatal: Unable to create '/x/index.lock': File exists.\n\nAnother git …\n": {centurion.KindConflict, "Unable to create '/x/index.lock': File exists."},
		"error: cannot lock ref 'refs/heads/x': is at 1 but expected 2\n":          {centurion.KindConflict, "cannot lock ref 'refs/heads/x': is at 1 but expected 2"},
		"error: unable to write file a: Read-only file system\nhint: try\n":        {centurion.KindDisk, "unable to write file a: Read-only file system"},
		"error: unable to write file a\nfatal: unable to checkout working tree\n":  {centurion.KindDisk, "unable to checkout working tree"},
		"error: unable to write file a: Permission denied\n":                       {centurion.KindPermission, "unable to write file a: Permission denied"},
		"error: file write error: No space left on device\n":                       {centurion.KindDisk, "file write error: No space left on device"},
		"error: write: Disk quota exceeded\n":                                      {centurion.KindDisk, "write: Disk quota exceeded"},
		"fatal: detected dubious ownership in repository at '/x'\n":                {centurion.KindPermission, "the repository at /dir belongs to another user"},
		"error: open(\"a\"): Permission denied\n":                                  {centurion.KindPermission, "open(\"a\"): Permission denied"},
		"git-lfs: not found\nfatal: the remote end hung up unexpectedly\n":         {centurion.KindConfig, "a filter of this repository has failed: git-lfs: not found"},
		"fatal: something else\n":                                                  {centurion.KindInternal, "something else"},
		"no prefix\nlast line\n":                                                   {centurion.KindInternal, "last line"},
		"error: the first\nfatal: the second\nhint: none\n":                        {centurion.KindInternal, "the second"},
	} {
		err := failure(call{Dir: "/dir", Args: []string{"-c", "x=y", "read-tree"}}, said, errors.New("exit status 128"))
		var e *centurion.Error
		if !errors.As(err, &e) || e.Kind != want.kind || e.Msg != want.msg {
			t.Errorf("%q: %v, %q", said, centurion.KindOf(err), err)
		}
	}
	for err, want := range map[error]centurion.Kind{syscall.ENOSPC: centurion.KindDisk, syscall.EDQUOT: centurion.KindDisk, syscall.EIO: centurion.KindDisk, syscall.EROFS: centurion.KindDisk,
		os.ErrPermission: centurion.KindPermission, os.ErrNotExist: centurion.KindNotFound, errors.New("odd"): centurion.KindInternal} {
		if got := kindOf(&os.PathError{Op: "open", Err: err}); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
}

// What git is started with: the mark of its host, nothing that runs programs of the repository, and the cause of who ends it.
func TestGitIsStartedWithCare(t *testing.T) {
	t.Parallel()
	f := found{}
	env := environment(call{GitDir: "/g", Env: []string{"X=1"}, Config: []string{"a.b=c"}}, f)
	for _, want := range []string{"GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C", "GIT_DIR=/g", "X=1"} {
		if !slices.Contains(env, want) {
			t.Errorf("it lacks %s", want)
		}
	}
	settings := map[string]string{}
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "GIT_CONFIG_KEY_") {
			i := slices.IndexFunc(env, func(s string) bool {
				return strings.HasPrefix(s, "GIT_CONFIG_VALUE_"+strings.TrimPrefix(name, "GIT_CONFIG_KEY_")+"=")
			})
			_, settings[value], _ = strings.Cut(env[i], "=")
		}
	}
	for key, want := range map[string]string{"core.hooksPath": os.DevNull, "core.fsmonitor": "false", "protocol.allow": "never", "core.sshCommand": "false", "credential.helper": "",
		"gc.auto": "0", "commit.gpgSign": "false", "submodule.recurse": "false", "a.b": "c"} {
		if got, ok := settings[key]; !ok || got != want {
			t.Errorf("%s is %q", key, got)
		}
	}
	x := newRig(t, map[string]string{"a": "1\n"})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(centurion.ErrShutdown)
	if _, err := x.git(ctx, call{Args: []string{"version"}}); err == nil {
		t.Error("it runs for who has ended")
	}
}

// What hides the host's directory from git is added once, to a file as it is.
func TestHideIsWrittenOnce(t *testing.T) {
	t.Parallel()
	for before, after := range map[string]string{
		"":                  "/.opencode\n",
		"*.o\n":             "*.o\n/.opencode\n",
		"*.o":               "*.o\n/.opencode\n",
		"/.opencode\r\n":    "/.opencode\r\n",
		"*.o\n/.opencode\n": "*.o\n/.opencode\n",
		"/.opencode2\n":     "/.opencode2\n/.opencode\n",
	} {
		x := newRig(t, map[string]string{"a": "1\n"})
		at := filepath.Join(x.top, ".git", "info", "exclude")
		put(t, at, before)
		for range 2 {
			if err := x.hide(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := get(t, at); got != after {
			t.Errorf("%q became %q, want %q", before, got, after)
		}
	}
}
