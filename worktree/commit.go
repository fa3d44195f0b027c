package worktree

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"

	"centurion"
)

// Commit makes one commit of all changes since Start, regardless of the session's own git commands, and moves the branch to it. ID is
// empty if nothing was changed. The working tree and Start do not change, so a second Commit replaces the first. The session's own
// commits are kept under refs/centurion/kept/.
//
// The error has centurion.KindConflict if something was changed inside a submodule, which cannot be merged. That change is kept in the
// submodule's own repository under refs/centurion/kept/.
func (c *Checkout) Commit(ctx context.Context, message string) (Commit, error) {
	if err := c.held(); err != nil {
		return Commit{}, err
	}
	if c.rec.Branch == "" {
		return Commit{}, &centurion.Error{Op: "commit", Kind: centurion.KindUsage, Msg: "the checkout at " + c.dir + " has no branch"}
	}
	return c.commit(ctx, message, false)
}

// commit is Commit; with anyway, it keeps changes inside submodules and commits the rest.
func (c *Checkout) commit(ctx context.Context, message string, anyway bool) (Commit, error) {
	if err := c.keepStray(ctx); err != nil {
		return Commit{}, err
	}
	if err := c.inside(ctx); err != nil && !(anyway && centurion.KindOf(err) == centurion.KindConflict) {
		return Commit{}, err
	}
	tree, err := c.scan(ctx)
	if err != nil {
		return Commit{}, err
	}
	done := Commit{Tree: tree, Parent: c.rec.Start}
	trees, err := c.repo.trees(ctx, c.rec.Start, c.rec.Last)
	if err != nil {
		return Commit{}, err
	}
	switch tree {
	case trees[0]:
		c.rec.Last = c.rec.Start
	case trees[1]: // no changes since
		done.ID = c.rec.Last
	default:
		if done.ID, err = c.write(ctx, tree, message); err != nil {
			return Commit{}, err
		}
		c.rec.Last = done.ID
	}
	// The record comes first: otherwise our own commit would be taken for the session's and kept.
	if err := c.save(); err != nil {
		return Commit{}, err
	}
	if err := c.repo.db.MoveRef(ctx, "refs/heads/"+c.rec.Branch, c.rec.Last, ""); err != nil {
		return Commit{}, err
	}
	if err := c.repo.dropSaved(ctx, c.rec.Branch); err != nil {
		return Commit{}, err
	}
	c.saved = tree
	if err := c.stand(ctx); err != nil {
		return Commit{}, err
	}
	if done.ID != "" {
		done.Files, err = c.repo.Stat(ctx, c.rec.Start, done.ID)
	}
	return done, err
}

// write makes a commit of a tree on top of Start.
func (c *Checkout) write(ctx context.Context, tree, message string) (string, error) {
	message = strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(message, "\x00", ""), "\uFFFD"))
	return c.repo.commitTree(ctx, tree, c.repo.attributed(cmp.Or(message, "Work")), nil, c.rec.Start)
}

// scan updates the host's index to the current files and writes their tree. The files of repositories that the session made inside are
// included individually: `cargo new` and other tools make such repositories.
func (c *Checkout) scan(ctx context.Context) (string, error) {
	if c.layered() {
		return c.scanLayers(ctx)
	}
	v := c.view()
	v.subs = c.populated()
	nested, err := c.repo.gather(ctx, v, c.rec.Start)
	if err != nil {
		return "", err
	}
	index := v.index
	if len(nested) > 0 {
		temp, remove, err := c.repo.temp()
		if err != nil {
			return "", err
		}
		defer remove()
		if err := copyIndex(index, temp); err != nil {
			return "", err
		}
		index = temp
		for _, dir := range nested {
			if err := c.embed(ctx, index, dir); err != nil {
				return "", err
			}
		}
	}
	v.index = index
	out, err := c.repo.git(ctx, v.call("write-tree"))
	return line(out), err
}

// embed adds the files of a nested repository to an index.
func (c *Checkout) embed(ctx context.Context, index, dir string) error {
	if dir == c.repo.private() || strings.HasPrefix(dir, c.repo.private()+"/") {
		return nil
	}
	for _, out := range c.rec.Outputs {
		if dir == out || strings.HasPrefix(dir, out+"/") {
			return nil
		}
	}
	temp, remove, err := c.repo.temp()
	if err != nil {
		return err
	}
	defer remove()
	outer := c.view()
	inner := view{gitDir: outer.gitDir, dir: filepath.Join(outer.dir, filepath.FromSlash(dir)), index: temp}
	deeper, _, err := c.repo.untracked(ctx, inner)
	if err != nil {
		return err
	}
	var specs []string
	for _, p := range deeper {
		specs = append(specs, exclude(p))
	}
	if err := c.repo.addAll(ctx, inner, specs); err != nil {
		return err
	}
	out, err := c.repo.git(ctx, inner.call("write-tree"))
	if err != nil {
		return err
	}
	v := c.view()
	v.index = index
	if _, err := c.repo.git(ctx, v.call("read-tree", "--prefix="+dir+"/", line(out))); err != nil {
		return err
	}
	for _, p := range deeper {
		if err := c.embed(ctx, index, dir+"/"+p); err != nil {
			return err
		}
	}
	return nil
}

// keepStray keeps commits that the session made itself, on its branch or elsewhere.
func (c *Checkout) keepStray(ctx context.Context) error {
	if c.layered() {
		return c.keepOwn(ctx)
	}
	places := []call{{Args: []string{"refs/heads/" + c.rec.Branch}}}
	if !standsAt(c.rec.GitDir, c.onBranch()) {
		places = append(places, call{GitDir: c.rec.GitDir, Args: []string{"HEAD"}})
	}
	for _, at := range places {
		at.Args = []string{"rev-parse", "-q", "--verify", at.Args[0] + "^{commit}"}
		out, err := c.repo.git(ctx, at)
		if err != nil {
			if exitCode(err) != 0 {
				continue // it was deleted
			}
			return err
		}
		if tip := line(out); tip != c.rec.Start && tip != c.rec.Last {
			if err := c.repo.keep(ctx, c.rec.Branch, tip, c.rec.Start, c.rec.Last); err != nil {
				return err
			}
		}
	}
	return nil
}

// rescue handles a directory in the home without a record: it removes an unfinished one, and keeps the work of one whose record was
// lost.
func (c *Checkout) rescue(ctx context.Context) error {
	gitDir, err := linkTarget(c.dir)
	if err == nil && strings.HasPrefix(gitDir, filepath.Join(c.repo.common, "worktrees")+string(filepath.Separator)) {
		c.rec.GitDir = gitDir
		if c.present() == nil {
			if err := c.salvage(ctx); err != nil {
				return err
			}
		}
	} else if c.foreign() {
		return nil
	}
	return c.forget(ctx)
}

// foreign reports whether a directory without a record contains files of others.
func (c *Checkout) foreign() bool {
	slot, _ := os.ReadDir(c.repo.slotOf(c.name))
	inside, _ := os.ReadDir(c.dir)
	return len(inside) > 0 || len(slot) > 1 || len(slot) == 1 && slot[0].Name() != filepath.Base(c.dir)
}

// salvage commits the content of an unknown checkout to a kept ref.
func (c *Checkout) salvage(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(c.rec.GitDir, "index")); err != nil {
		return nil // it never had files
	}
	out, err := c.repo.git(ctx, call{GitDir: c.rec.GitDir, Args: []string{"rev-parse", "-q", "--verify", "HEAD^{commit}"}})
	if err != nil {
		return nil
	}
	c.rec.Start = line(out)
	c.unlock()
	if err := copyIndex(filepath.Join(c.rec.GitDir, "index"), c.repo.indexOf(c.name)); err != nil {
		return err
	}
	tree, err := c.scan(ctx)
	if err != nil {
		return err
	}
	had, err := c.repo.tree(ctx, c.rec.Start)
	if err != nil {
		return err
	}
	commit := c.rec.Start
	if had != tree {
		if commit, err = c.write(ctx, tree, "Work found in "+c.name); err != nil {
			return err
		}
	}
	return c.repo.keep(ctx, c.name, commit)
}

// forget removes a checkout and its records. Its work must be safe.
func (c *Checkout) forget(ctx context.Context) error {
	r := c.repo
	r.admin.Lock()
	defer r.admin.Unlock()
	// Rename it first, in one step: half a directory must not be taken for a checkout with deleted files.
	grave := filepath.Join(r.opts.Home, "tmp", c.name+"-gone")
	if err := os.MkdirAll(filepath.Dir(grave), 0o700); err != nil {
		return failed("remove a checkout", "", err)
	}
	removeAll(grave)
	slot := r.slotOf(c.name)
	if err := os.Rename(slot, grave); err != nil && !os.IsNotExist(err) {
		return failed("remove a checkout", "cannot remove "+slot, err)
	}
	if c.rec.GitDir != "" && filepath.Dir(c.rec.GitDir) == filepath.Join(r.common, "worktrees") {
		if err := os.RemoveAll(c.rec.GitDir); err != nil {
			return failed("remove a checkout", "cannot remove "+c.rec.GitDir, err)
		}
	}
	for _, path := range []string{r.recordOf(c.name), r.indexOf(c.name)} {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return failed("remove a checkout", "", err)
		}
	}
	if err := removeAll(grave); err != nil {
		return failed("remove a checkout", "cannot remove "+grave, err)
	}
	return nil
}

// removeAll also removes directories with read-only content, such as Go's module cache.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	_ = walkDirs(root, func(path string) { _ = root.Chmod(path, 0o700) })
	return os.RemoveAll(dir)
}
