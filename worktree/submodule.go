package worktree

import (
	"bytes"
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"centurion"
)

// sub is a submodule of a checkout. It uses the objects of the person's own repository of it; nothing is fetched.
type sub struct {
	Path   string `json:"path"`   // relative to the checkout's top, with slashes
	Commit string `json:"commit"` // as recorded
	From   string `json:"from"`   // the person's git directory of it
}

// subView is the submodule's files with its own index.
func (c *Checkout) subView(s sub) view {
	dir := filepath.Join(c.dir, filepath.FromSlash(s.Path))
	return view{gitDir: filepath.Join(dir, ".git"), dir: dir}
}

// submodules sets up the submodules that the person has initialised, at the recorded commits. Others stay empty directories.
func (c *Checkout) submodules(ctx context.Context) error {
	c.rec.Subs = nil
	return c.mount(ctx, c.view(), "")
}

// mount sets up the submodules of the repository at v, which is at below in the checkout.
func (c *Checkout) mount(ctx context.Context, v view, below string) error {
	if _, err := os.Lstat(filepath.Join(v.dir, ".gitmodules")); err != nil {
		return nil
	}
	out, err := c.repo.git(ctx, v.call("ls-files", "-s", "-z"))
	if err != nil {
		return err
	}
	for _, f := range fields(out) {
		// "160000 <id> 0\t<path>"
		about, name, _ := strings.Cut(f, "\t")
		words := strings.Fields(about)
		if len(words) != 3 || words[0] != "160000" {
			continue
		}
		s := sub{Path: path.Join(below, name), Commit: words[1]}
		if s.From = gitDirOf(filepath.Join(c.repo.top, filepath.FromSlash(s.Path))); s.From == "" {
			continue
		}
		if _, err := c.repo.git(ctx, call{GitDir: s.From, Args: []string{"cat-file", "-e", s.Commit + "^{commit}"}}); err != nil {
			if exitCode(err) != 0 {
				continue // the person has not fetched it either
			}
			return err
		}
		if err := c.mountOne(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// mountOne sets up one submodule and those in it.
func (c *Checkout) mountOne(ctx context.Context, s sub) error {
	v := c.subView(s)
	if info, err := os.Lstat(v.gitDir); err != nil || !info.IsDir() || !borrows(v.gitDir, s.From) {
		if err := os.RemoveAll(v.dir); err != nil {
			return failed("make a submodule", s.Path, err)
		}
		clone := call{Dir: c.repo.opts.Home, Seek: true, Config: []string{"protocol.file.allow=always"},
			Args: []string{"clone", "-q", "--no-checkout", "--shared", "--no-tags", "--template=", s.From, v.dir}}
		if _, err := c.repo.git(ctx, clone); err != nil {
			return err
		}
	}
	os.Remove(filepath.Join(v.gitDir, "index.lock"))
	for _, args := range [][]string{{"update-ref", "--no-deref", "HEAD", s.Commit}, {"read-tree", "--reset", "-u", s.Commit}, {"clean", "-ffdq"}} {
		if _, err := c.repo.git(ctx, v.call(args...)); err != nil {
			return err
		}
	}
	c.rec.Subs = append(c.rec.Subs, s)
	return c.mount(ctx, v, s.Path)
}

// borrows reports whether a repository uses the objects of the person's.
func borrows(gitDir, from string) bool {
	b, err := os.ReadFile(filepath.Join(gitDir, "objects", "info", "alternates"))
	return err == nil && strings.TrimSpace(string(b)) == filepath.ToSlash(filepath.Join(from, "objects"))
}

// gitDirOf is the git directory of a submodule in the person's tree, or "" if it is not initialised.
func gitDirOf(dir string) string {
	at := filepath.Join(dir, ".git")
	info, err := os.Stat(at)
	if err != nil {
		return ""
	}
	if info.IsDir() {
		return at
	}
	target, err := linkTarget(dir)
	if err != nil {
		return ""
	}
	if info, err := os.Stat(target); err != nil || !info.IsDir() {
		return ""
	}
	return target
}

// populated lists the existing submodules of the repository itself.
func (c *Checkout) populated() []string {
	var paths []string
	for _, s := range c.rec.Subs {
		if slices.ContainsFunc(c.rec.Subs, func(o sub) bool { return strings.HasPrefix(s.Path, o.Path+"/") }) {
			continue // inside another one
		}
		if info, err := os.Lstat(c.subView(s).gitDir); err == nil && info.IsDir() {
			paths = append(paths, s.Path)
		}
	}
	return paths
}

// Submodule returns the submodule of a file, or "" for the repository itself. Both paths are relative to the project, with slashes.
func (c *Checkout) Submodule(file string) string {
	for _, s := range c.rec.Subs {
		dir, err := filepath.Rel(filepath.FromSlash("/"+c.repo.prefix), filepath.FromSlash("/"+s.Path))
		if err == nil && strings.HasPrefix(path.Clean(file)+"/", filepath.ToSlash(dir)+"/") {
			return filepath.ToSlash(dir)
		}
	}
	return ""
}

// inside keeps changes made inside submodules and reports them as an error.
func (c *Checkout) inside(ctx context.Context) error {
	var changed []string
	var first sub
	for _, s := range slices.Backward(c.rec.Subs) { // inner ones first
		if info, err := os.Lstat(c.subView(s).gitDir); err != nil || !info.IsDir() {
			continue
		}
		is, err := c.keepInside(ctx, s)
		if err != nil {
			return err
		}
		if is {
			changed, first = append(changed, s.Path), s
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	return &centurion.Error{Op: "commit", Kind: centurion.KindConflict,
		Msg: "changes inside the submodule " + strings.Join(changed, ", ") + " cannot be merged; a copy is kept in its own repository under " + KeptRefs,
		Hint: "revert them, then find a way outside the submodule: git -C " + first.Path + " reset --hard " + first.Commit + " && git -C " +
			first.Path + " clean -fd"}
}

// keepInside reports whether a submodule was changed, and keeps its content in the person's repository of it.
func (c *Checkout) keepInside(ctx context.Context, s sub) (bool, error) {
	v := c.subView(s)
	out, err := c.repo.git(ctx, v.call("rev-parse", "-q", "--verify", "HEAD^{commit}"))
	if err != nil && exitCode(err) == 0 {
		return false, err
	}
	head := line(out)
	if head == "" {
		head = s.Commit
	}
	out, err = c.repo.git(ctx, v.call("status", "--porcelain", "-z", "-uall", "--ignore-submodules=dirty"))
	if err != nil {
		return false, err
	}
	if len(out) == 0 && head == s.Commit {
		return false, nil
	}
	if len(out) > 0 {
		if head, err = c.commitInside(ctx, v, head); err != nil {
			return true, err
		}
	}
	pack, err := c.repo.git(ctx, call{GitDir: v.gitDir, Dir: v.dir, Stdin: strings.NewReader(head + "\n^" + s.Commit + "\n"), Args: []string{"pack-objects", "--revs", "--stdout", "-q"}})
	if err == nil {
		_, err = c.repo.git(ctx, call{GitDir: s.From, Stdin: bytes.NewReader(pack), Args: []string{"unpack-objects", "-q"}})
	}
	if err == nil {
		_, err = c.repo.git(ctx, call{GitDir: s.From, Args: []string{"update-ref", KeptRefs + c.rec.Branch + "/" + head[:12], head}})
	}
	return true, err
}

// commitInside commits the current files of a submodule without changing its index.
func (c *Checkout) commitInside(ctx context.Context, v view, head string) (string, error) {
	temp, remove, err := c.repo.temp()
	if err != nil {
		return "", err
	}
	defer remove()
	if err := copyIndex(filepath.Join(v.gitDir, "index"), temp); err != nil {
		return "", err
	}
	v.index = temp
	if err := c.repo.addAll(ctx, v, nil); err != nil {
		return "", err
	}
	tree, err := c.repo.git(ctx, v.call("write-tree"))
	if err != nil {
		return "", err
	}
	out, err := c.repo.git(ctx, v.call("commit-tree", line(tree), "-p", head, "-m", "Work inside a submodule, of "+c.rec.Branch))
	return line(out), err
}
