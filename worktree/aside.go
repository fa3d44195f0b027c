package worktree

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"centurion"
)

// asideDir is the directory, below the home, of files moved out of checkouts, by branch.
const asideDir = "aside"

// Ignored returns the files (relative to the project) that git ignores and no commit includes. Unlike the contents of ignored
// directories left by commands, these were written by a file tool and are someone's work. [Checkout.Release] moves them out, so that
// they are neither deleted nor seen by the checkout's next user.
func (c *Checkout) Ignored(ctx context.Context, files []string) ([]string, error) {
	if err := c.held(); err != nil {
		return nil, err
	}
	var names strings.Builder
	for _, f := range files {
		if p := path.Join(c.repo.prefix, filepath.ToSlash(f)); filepath.IsLocal(p) && p != c.repo.private() && !strings.HasPrefix(p, c.repo.private()+"/") {
			names.WriteString(p + "\x00")
		}
	}
	if names.Len() == 0 || c.rec.Branch == "" {
		return nil, nil
	}
	found, err := c.checkIgnore(ctx, names.String())
	if len(found) == 0 || err != nil {
		return nil, err
	}
	had := len(c.rec.Ignored)
	for _, p := range found {
		if !slices.Contains(c.rec.Ignored, p) {
			c.rec.Ignored = append(c.rec.Ignored, p)
		}
	}
	if len(c.rec.Ignored) > had {
		if err := c.save(); err != nil {
			return nil, err
		}
	}
	if prefix := c.repo.prefix; prefix != "" {
		for i, p := range found {
			found[i] = strings.TrimPrefix(p, prefix+"/")
		}
	}
	return found, nil
}

// checkIgnore returns the untracked paths that git ignores, each terminated by a zero byte.
func (c *Checkout) checkIgnore(ctx context.Context, paths string) ([]string, error) {
	if c.layered() {
		s, err := c.stack(ctx)
		if err != nil {
			return nil, err
		}
		names := fields([]byte(paths))
		ignored, err := c.ignores(ctx, s, nil, nil, names)
		return slices.DeleteFunc(names, func(p string) bool { return err != nil || !ignored(p) }), err
	}
	ask := c.view().call("check-ignore", "-z", "--stdin")
	ask.Stdin = strings.NewReader(paths)
	out, err := c.repo.git(ctx, ask)
	if err != nil && exitCode(err) != 1 { // 1: none is ignored
		return nil, err
	}
	return fields(out), nil
}

// setAside moves the git-ignored files written by tools to a directory for the branch. If a checkout loses files to this, its setup
// runs again. It can be repeated after a crash: a file is copied before it is removed.
func (c *Checkout) setAside(ctx context.Context) error {
	if len(c.rec.Ignored) == 0 {
		return nil
	}
	still, err := c.checkIgnore(ctx, strings.Join(c.rec.Ignored, "\x00")+"\x00") // it may have been committed since
	if err != nil {
		return err
	}
	const what = "keep what git ignores"
	from, err := os.OpenRoot(c.view().dir)
	if err != nil {
		return failed(what, "", err)
	}
	defer from.Close()
	var to *os.Root
	for _, p := range still {
		if info, err := from.Lstat(p); err != nil || !info.Mode().IsRegular() {
			continue // it was removed, or replaced
		}
		if to == nil {
			if to, err = c.repo.newAside(c.rec.Branch); err != nil {
				return failed(what, "", err)
			}
			defer to.Close()
		}
		if err := copyFile(from, to, p); err != nil {
			return failed(what, "cannot copy "+p, err)
		}
	}
	if to != nil {
		for _, p := range still {
			if _, err := to.Lstat(p); err != nil {
				continue
			}
			if err := from.Remove(p); err != nil && !os.IsNotExist(err) {
				return failed(what, "cannot remove "+p, err)
			}
		}
		c.rec.Done = ""
	}
	c.rec.Ignored = nil
	return nil
}

// newAside makes a directory for files of a branch. Files of a session's earlier checkouts stay.
func (cs *checkouts) newAside(branch string) (*os.Root, error) {
	base := cs.asideOf(branch)
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		dir := filepath.Join(base, strconv.Itoa(n))
		err := os.Mkdir(dir, 0o700)
		if err == nil {
			return os.OpenRoot(dir)
		}
		if !os.IsExist(err) {
			return nil, err
		}
	}
}

func (cs *checkouts) asideOf(branch string) string {
	return filepath.Join(cs.opts.Home, asideDir, filepath.FromSlash(branch))
}

// Aside lists the files moved out of the checkouts of a branch, oldest first: see [Checkout.Ignored]. They are relative to the
// repository's top. After a crash during the move, a file may be listed twice.
func (cs *checkouts) Aside(branch string) (all []centurion.Aside, err error) {
	if branch == "" {
		return nil, nil
	}
	for n := 1; ; n++ {
		dir := filepath.Join(cs.asideOf(branch), strconv.Itoa(n))
		if _, err := os.Stat(dir); err != nil {
			return all, nil
		}
		at := centurion.Aside{Dir: dir}
		err := fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				at.Files = append(at.Files, p)
			}
			return err
		})
		if err != nil {
			return all, failed("list what was kept", "", err)
		}
		if len(at.Files) > 0 {
			all = append(all, at)
		}
	}
}

// DropAside removes directories listed by [Repo.Aside] with their content, and returns those that existed. It ignores other
// directories.
func (cs *checkouts) DropAside(dirs ...string) (removed []string, err error) {
	home := filepath.Join(cs.opts.Home, asideDir)
	root, err := os.OpenRoot(home)
	if os.IsNotExist(err) {
		return nil, nil
	}
	const what = "remove what was kept"
	if err != nil {
		return nil, failed(what, "", err)
	}
	defer root.Close()
	for _, dir := range dirs {
		rel, err := filepath.Rel(home, dir)
		if _, nerr := strconv.Atoi(filepath.Base(dir)); err != nil || nerr != nil || !filepath.IsLocal(rel) {
			continue
		}
		if _, err := root.Lstat(rel); err != nil {
			continue
		}
		if err := root.RemoveAll(rel); err != nil {
			return removed, failed(what, "cannot remove "+dir, err)
		}
		removed = append(removed, dir)
		for up := filepath.Dir(rel); up != "." && root.Remove(up) == nil; up = filepath.Dir(up) { // remove empty parents
		}
	}
	return removed, nil
}
