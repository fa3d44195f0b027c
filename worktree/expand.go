package worktree

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Expand turns a checkout of layers into one with all files, at [Checkout.Where], where a person and every program can reach them. What
// runs in it is ended. Afterwards its files have to be opened again. A crash meanwhile leaves it as it was.
func (c *Checkout) Expand(ctx context.Context) error {
	if !c.layered() {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if err := errors.Join(c.Still(), c.keepOwn(ctx)); err != nil {
		return err
	}
	was := c.rec
	err := c.expand(ctx)
	if err != nil {
		c.rec = was
		return err
	}
	slot := c.repo.slotOf(c.name)
	for _, name := range []string{"upper", "work", "git", "caches"} {
		err = errors.Join(err, removeAll(filepath.Join(slot, name)))
	}
	return err
}

func (c *Checkout) expand(ctx context.Context) error {
	ground, setup := c.rec.Ground, setupID(c.rec.Done)
	hasSetup := c.rec.Done != "" && c.repo.layers.present([]string{setup}) == nil
	if err := removeAll(c.dir); err != nil {
		return failed("expand a checkout", "", err)
	}
	gitDir, err := c.addWorktree(ctx, c.rec.Last)
	if err != nil {
		return err
	}
	os.Remove(c.repo.indexOf(c.name)) // of another kind of files
	upper := c.upperDir()
	c.rec.GitDir, c.rec.Ground, c.rec.Layers, c.rec.Redone, c.scanned = gitDir, "", nil, "", scanned{}
	if err := c.bring(ctx, ground); err != nil {
		return err
	}
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return failed("expand a checkout", "", err)
	}
	defer root.Close()
	if hasSetup {
		err = layOnto(root, c.repo.layers.files(setup))
	}
	if err = errors.Join(err, layOnto(root, upper)); err != nil {
		return failed("expand a checkout", "", err)
	}
	tree, err := c.repo.tree(ctx, c.rec.Last)
	if err != nil {
		return err
	}
	if _, err := c.git(ctx, "read-tree", "--reset", cmp.Or(c.rec.Behind, tree)); err != nil {
		return err
	}
	if c.rec.Behind != "" { // what was changed meanwhile stays, or git says what is in the way
		if _, err := c.git(ctx, "update-index", "-q", "--refresh"); err != nil && exitCode(err) != 1 { // 1: there are changes
			return err
		}
		if _, err := c.git(ctx, "read-tree", "-u", "-m", c.rec.Behind, tree); err != nil {
			return err
		}
		c.rec.Behind = ""
	}
	c.rec.Tree = tree
	if hasSetup {
		if c.rec.Done, err = setupState(c.project(), c.rec.Setup); err != nil {
			return err
		}
	}
	return c.finish(ctx)
}

// layOnto carries out what an upper layer says on the files below a root.
func layOnto(root *os.Root, upper string) error {
	return filepath.WalkDir(upper, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == upper {
			return err
		}
		rel, err := filepath.Rel(upper, at)
		if err != nil || rel == ".git" {
			return err
		}
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case isWhiteout(info):
			return root.RemoveAll(rel)
		case d.IsDir():
			if old, err := root.Lstat(rel); isOpaque(at) || err == nil && !old.IsDir() {
				if err := root.RemoveAll(rel); err != nil {
					return err
				}
			}
			return root.MkdirAll(rel, info.Mode().Perm())
		}
		if err := root.RemoveAll(rel); err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(at)
			return errors.Join(err, root.Symlink(target, rel))
		}
		if !info.Mode().IsRegular() {
			return nil
		}
		in, err := os.Open(at)
		if err != nil {
			return err
		}
		defer in.Close()
		out, err := root.OpenFile(rel, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		return errors.Join(err, out.Close(), root.Chtimes(rel, info.ModTime(), info.ModTime()))
	})
}
