package worktree

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// includeFile lists ignored files that a checkout needs, such as local settings or keys for tests, in the syntax of .gitignore.
const includeFile = ".worktreeinclude"

// include copies ignored files that match .worktreeinclude from the person's tree. Missing and tracked files are skipped.
func (c *Checkout) include(ctx context.Context) error {
	r := c.repo
	if _, err := os.Stat(filepath.Join(r.top, filepath.FromSlash(r.prefix), includeFile)); err != nil {
		return nil
	}
	spec := ":(top)"
	if r.prefix != "" {
		spec = ":(top,literal)" + r.prefix
	}
	out, err := r.git(ctx, call{Args: []string{"ls-files", "-o", "-i", "-z", "--exclude-per-directory=" + includeFile, "--", spec, exclude(r.private())}})
	if err != nil || len(out) == 0 {
		return err
	}
	ignored, err := r.git(ctx, call{Args: []string{"check-ignore", "-z", "--stdin"}, Stdin: strings.NewReader(string(out))})
	if err != nil && exitCode(err) != 1 {
		return err
	}
	have, err := c.tracked(ctx)
	if err != nil {
		return err
	}
	from, err := os.OpenRoot(r.top)
	if err != nil {
		return failed("copy what "+includeFile+" names", "", err)
	}
	defer from.Close()
	to, err := c.root(ctx)
	if err != nil {
		return err
	}
	defer to.Close()
	for _, p := range fields(ignored) {
		if have(p) || strings.HasSuffix(p, "/") {
			continue
		}
		if err := copyFile(from, to, p); err != nil {
			return failed("copy what "+includeFile+" names", p, err)
		}
	}
	return nil
}

// tracked reports which files are in the tree that the checkout was last set to.
func (c *Checkout) tracked(ctx context.Context) (func(path string) bool, error) {
	if c.layered() {
		s, err := c.stack(ctx)
		return func(p string) bool { return s.at(p) != (entry{}) }, err
	}
	out, err := c.git(ctx, "ls-files", "-z")
	have := map[string]bool{}
	for _, p := range fields(out) {
		have[p] = true
	}
	return func(p string) bool { return have[p] }, err
}

// copyFile copies a file with its mode and time, unless it exists. A link is copied as a link if it stays inside.
func copyFile(from, to *os.Root, name string) error {
	info, err := from.Lstat(name)
	if err != nil {
		return nil // it has disappeared
	}
	if dir := path.Dir(name); dir != "." {
		if err := to.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	old, missing := to.Lstat(name)
	target := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if _, err := from.Stat(name); err != nil {
			return nil // it leads outside, or nowhere
		}
		if target, err = from.Readlink(name); err != nil || filepath.IsAbs(target) {
			return nil
		}
	case !info.Mode().IsRegular():
		return nil
	case missing == nil && old.Mode() == info.Mode() && old.Size() == info.Size() && old.ModTime().Equal(info.ModTime()):
		return nil
	}
	if missing == nil {
		if err := to.RemoveAll(name); err != nil {
			return err
		}
	}
	if target != "" {
		return to.Symlink(target, name)
	}
	in, err := from.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := to.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return errors.Join(to.Chmod(name, info.Mode().Perm()), to.Chtimes(name, info.ModTime(), info.ModTime()))
}

// walkDirs calls f for each directory of a root before reading it.
func walkDirs(root *os.Root, f func(path string)) error {
	return fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && err == nil {
			f(p)
		}
		return nil
	})
}

// hide excludes .opencode/ from every `git status` of the repository and its checkouts (info/exclude), once.
func (r *repository) hide(ctx context.Context) error {
	r.admin.Lock()
	defer r.admin.Unlock()
	path := filepath.Join(r.common, "info", "exclude")
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed("hide .opencode", "cannot read "+path, err)
	}
	// Without a trailing slash the pattern also hides a link.
	want := "/" + escapePattern(r.private())
	if slices.ContainsFunc(strings.Split(string(old), "\n"), func(l string) bool { return strings.TrimRight(l, "\r") == want }) {
		return nil
	}
	text := string(old)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if err := writeFile(path, []byte(text+want+"\n"), 0o644); err != nil {
		return failed("hide .opencode", "cannot write "+path, err)
	}
	return nil
}

// escapePattern escapes a path for .gitignore, so that the pattern matches nothing else.
func escapePattern(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if strings.IndexByte(`\*?[ `, path[i]) >= 0 || i == 0 && (path[i] == '!' || path[i] == '#') {
			b.WriteByte('\\')
		}
		b.WriteByte(path[i])
	}
	return b.String()
}
