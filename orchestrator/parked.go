package orchestrator

import (
	"context"

	"centurion"
	"centurion/worktree"
)

// park keeps the checkout of a mission that has stopped, until it goes on or is over.
func (h *Host) park(c *worktree.Checkout) {
	h.opening.Lock()
	defer h.opening.Unlock()
	if h.parked == nil {
		h.parked = map[centurion.Checkout]*worktree.Checkout{}
	}
	at := c.Where()
	at.Start = "" // it may have been moved since it was recorded
	h.parked[at] = c
}

// reopen finds a checkout again, of this host or of one that died.
func (h *Host) reopen(ctx context.Context, repo *worktree.Repo, at centurion.Checkout) (*worktree.Checkout, error) {
	key := at
	key.Start = ""
	h.opening.Lock()
	c := h.parked[key]
	delete(h.parked, key)
	h.opening.Unlock()
	if c != nil {
		return c, nil
	}
	return repo.Reopen(ctx, at)
}
