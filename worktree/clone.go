package worktree

import (
	"context"
	"os"
	"path/filepath"
	"sync"
)

// Where layers cannot be mounted, a new checkout is a clone of a base layer if the file system makes one whole directory share the data of
// another: APFS does. Elsewhere git writes the files.

// cloner clones directories.
type cloner struct {
	clone func(from, to string) error // to does not exist
	works func() bool                 // reports whether directories of the home can be cloned; the first call tries it
}

func newCloner(home string, clone func(from, to string) error) cloner {
	return cloner{clone, sync.OnceValue(func() bool {
		dir, err := os.MkdirTemp(home, "clone-")
		if err != nil {
			return false
		}
		defer os.RemoveAll(dir)
		from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
		if writeFile(filepath.Join(from, "below", "file"), []byte("cloned\n"), 0o600) != nil || clone(from, to) != nil {
			return false
		}
		b, err := os.ReadFile(filepath.Join(to, "below", "file"))
		return err == nil && string(b) == "cloned\n"
	})}
}

// cloned fills a new checkout, which has no files yet, with those of a base layer. Bringing a commit then writes what
// differs: all files, if the clone fails.
func (c *Checkout) cloned(ctx context.Context, commit string) error {
	if !c.repo.cloner.works() {
		return nil
	}
	tree, err := c.repo.tree(ctx, commit)
	if err != nil {
		return err
	}
	id, err := c.repo.layers.baseOf(ctx, tree)
	if err != nil {
		return err
	}
	if err := removeAll(c.dir); err != nil {
		return failed("clone a checkout", "", err)
	}
	if c.repo.cloner.clone(c.repo.layers.files(id), c.dir) != nil {
		if err := os.MkdirAll(c.dir, 0o755); err != nil {
			return failed("clone a checkout", "", err)
		}
		return nil
	}
	if err := copyIndex(filepath.Join(c.repo.layers.dir(id), "index"), c.repo.indexOf(c.name)); err != nil {
		return err
	}
	if _, err = c.git(ctx, "update-index", "-q", "--refresh"); exitCode(err) == 1 { // it knew the base's own files; 1: some differ
		return nil
	}
	return err
}
