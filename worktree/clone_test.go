package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// copyDir stands in for a file system that clones: it copies a directory with its times, as [cloneDir] does on APFS.
func copyDir(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return os.ErrExist
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(at string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		at = to + strings.TrimPrefix(at, from)
		return errors.Join(os.Chmod(at, info.Mode()), os.Chtimes(at, info.ModTime(), info.ModTime()))
	})
}

// A checkout that is a clone is as one that git has written, also of a later commit, and git takes its files for known.
func TestClonedCheckouts(t *testing.T) {
	for _, test := range []struct {
		name  string
		clone func(from, to string) error
		how   string
		calls int
	}{
		{"cloned", copyDir, "checkout, cloned: ", 3},
		{"not to be had", func(string, string) error { return errors.ErrUnsupported }, "checkout: ", 1},
		{"fails later", failsLater(), "checkout, cloned: ", 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := newRigAt(t, filepath.Join(t.TempDir(), "top"), "sub", map[string]string{"a.txt": "a\n", "sub/b.sh": "b\n", "sub/.opencode/todo.md": "# G\n", "sub/gone": "g\n"})
			x.checkouts.cloner = newCloner(x.opts.Home, func(from, to string) error {
				test.calls--
				return test.clone(from, to)
			})
			if how := x.Workspaces(); !strings.HasPrefix(how, test.how) {
				t.Errorf("it says %q", how)
			}
			if err := x.Prepare(t.Context(), x.person("rev-parse", "HEAD")); err != nil {
				t.Fatal(err)
			}
			first := x.person("rev-parse", "HEAD^{tree}")[:12]
			for _, at := range []string{"first", "second"} {
				c := x.takeHead(at)
				if got, want := gitIn(t, c.dir, "ls-files", "-s")+gitIn(t, c.dir, "status", "--short"), x.person("ls-files", "-s"); got != want {
					t.Errorf("%s: git sees\n%s\nnot\n%s", at, got, want)
				}
				base := filepath.Join(x.layers.files("base-"+first), "sub", "b.sh")
				if is, err := os.Stat(filepath.Join(c.dir, "sub", "b.sh")); err != nil {
					t.Error(err)
				} else if was, err := os.Stat(base); test.name == "cloned" && (err != nil || !was.ModTime().Equal(is.ModTime())) {
					t.Errorf("%s: git has written the file again: %v", at, err)
				}
				put(t, filepath.Join(c.dir, "a.txt"), "changed\n")
				if got := changed(commit(t, c)); len(got) != 1 || got[0] != "modified a.txt" {
					t.Errorf("%s: the work is %v", at, got)
				}
				x.person("rm", "-q", "--ignore-unmatch", "sub/gone")
				x.person("commit", "-q", "--allow-empty", "-m", "next")
			}
			if test.calls != 0 {
				t.Errorf("%d calls to clone are missing", test.calls)
			}
			info, err := os.Stat(filepath.Join(x.layers.files("base-"+first), "sub", "b.sh"))
			if test.how == "checkout, cloned: " && (err != nil || info.Size() != 2) {
				t.Errorf("the base was changed: %v", err)
			}
		})
	}
}

// failsLater clones once.
func failsLater() func(from, to string) error {
	tries := 0
	return func(from, to string) error {
		if tries++; tries > 1 {
			return errors.Join(os.MkdirAll(filepath.Join(to, "half"), 0o700), errors.ErrUnsupported)
		}
		return copyDir(from, to)
	}
}
