package worktree

import (
	"context"

	"centurion"
)

// Still ends what commands have left running in the checkout, which can still be used: one of layers is mounted again then.
func (c *Checkout) Still() error {
	if r, ok := c.repo.opts.Runner.(centurion.Releaser); ok {
		return r.Release(c.dir)
	}
	return nil
}

// Release returns the checkout to the pool. It first commits uncommitted work to the branch, and deletes the branch if it is an
// ancestor of into, or if into is empty and nothing was committed. kept is the branch if it stays. Git-ignored files written by tools
// are moved out: see [Repo.Aside]. The checkout must not be used afterwards.
func (c *Checkout) Release(ctx context.Context, into string) (kept string, err error) {
	if c.rec.Free {
		return "", nil
	}
	if err := c.Still(); err != nil {
		return "", err
	}
	branch := c.rec.Branch
	if err := c.present(); err != nil {
		if err := c.repo.recover(ctx, branch); err != nil {
			return "", err
		}
		kept, drop := c.repo.drop(ctx, branch, "", into)
		if drop == nil {
			drop = c.forget(ctx)
		}
		c.rec.Free = true
		c.repo.pool.leave(c.seat)
		return kept, drop
	}
	if branch != "" {
		if _, err := c.commit(ctx, "Unfinished work of "+branch, true); err != nil {
			return "", err
		}
		if into == "" && c.rec.Last == c.rec.Start {
			into = c.rec.Start
		}
	}
	if err := c.setAside(ctx); err != nil {
		return "", err
	}
	if kept, err = c.repo.drop(ctx, branch, c.rec.GitDir, into); err != nil {
		return "", err
	}
	c.rec.Branch, c.rec.Free = "", true
	if c.layered() {
		err = c.forget(ctx) // an empty one is made as fast
	} else {
		err = c.save()
	}
	if err != nil {
		return kept, err
	}
	c.repo.pool.leave(c.seat)
	return kept, nil
}

// drop deletes a branch if it is an ancestor of into, and returns it if it stays. It detaches the worktree at gitDir from it.
func (cs *checkouts) drop(ctx context.Context, branch, gitDir, into string) (kept string, err error) {
	if branch == "" {
		return "", nil
	}
	ref := "refs/heads/" + branch
	tip, err := cs.commitOf(ctx, ref)
	if centurion.KindOf(err) == centurion.KindNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if gitDir != "" {
		if _, err := cs.git(ctx, call{GitDir: gitDir, Args: []string{"update-ref", "--no-deref", "HEAD", tip}}); err != nil {
			return branch, err
		}
	}
	if into == "" {
		return branch, nil
	}
	if in, err := cs.reached(ctx, tip, into); err != nil || !in {
		return branch, err
	}
	cs.admin.Lock()
	defer cs.admin.Unlock()
	// Only if it is unchanged: later commits are not in into.
	if err := cs.db.MoveRef(ctx, ref, "", tip); err != nil {
		return branch, err
	}
	return "", nil
}
