package worktree

import (
	"context"

	"centurion"
)

// savedRef keeps what was changed in the checkout of a branch and is in no commit yet.
func savedRef(branch string) string { return "refs/centurion/saved/" + branch }

// Save lists what Uncommitted does, and stores those files if the checkout is an overlay: when its directory is lost, [Repo.Reopen] puts
// them on the branch. It takes at most one git process, cheap enough to run after each call that writes.
func (c *Checkout) Save(ctx context.Context) ([]string, error) {
	if !c.layered() || c.rec.Branch == "" {
		return c.Uncommitted(ctx)
	}
	if err := c.held(); err != nil {
		return nil, err
	}
	tree, err := c.scanLayers(ctx)
	if err != nil {
		return nil, err
	}
	changed, err := c.between(ctx, c.rec.Last, tree, false)
	if err != nil || tree == c.saved {
		return changed, err
	}
	if len(changed) == 0 {
		err = c.repo.dropSaved(ctx, c.rec.Branch)
	} else if id, cerr := c.write(ctx, tree, "Unfinished work of "+c.rec.Branch); cerr != nil {
		err = cerr
	} else {
		err = c.repo.db.MoveRef(ctx, savedRef(c.rec.Branch), id, "")
	}
	if err == nil {
		c.saved = tree
	}
	return changed, err
}

// savedOf is the commit that keeps what was saved of a branch, "" if nothing was.
func (cs *checkouts) savedOf(ctx context.Context, branch string) (string, error) {
	if branch == "" {
		return "", nil
	}
	saved, err := cs.commitOf(ctx, savedRef(branch))
	if centurion.KindOf(err) == centurion.KindNotFound {
		return "", nil
	}
	return saved, err
}

// dropSaved forgets what was saved of a branch: it is in a commit now, or undone.
func (cs *checkouts) dropSaved(ctx context.Context, branch string) error {
	saved, err := cs.savedOf(ctx, branch)
	if saved == "" {
		return err
	}
	return cs.db.MoveRef(ctx, savedRef(branch), "", saved)
}

// recover moves a branch to what was saved of it. Its checkout is lost.
func (cs *checkouts) recover(ctx context.Context, branch string) error {
	saved, err := cs.savedOf(ctx, branch)
	if saved == "" {
		return err
	}
	if err := cs.startBranch(ctx, branch, saved); err != nil {
		return err
	}
	return cs.dropSaved(ctx, branch)
}
