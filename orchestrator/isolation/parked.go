package isolation

import (
	"context"
	"slices"
	"strings"

	"centurion"
	"centurion/store"
	"centurion/worktree"
)

// park keeps the checkout of a stopped mission until it is resumed or over.
func (p *Project) park(c *worktree.Checkout) {
	p.opening.Lock()
	defer p.opening.Unlock()
	if p.parked == nil {
		p.parked = map[centurion.Checkout]*worktree.Checkout{}
	}
	at := c.Where()
	at.Start, at.Overlay = "", false // it may have been moved or expanded since it was recorded
	p.parked[at] = c
}

// reopen finds a checkout again, from this host or from one that died.
func (p *Project) reopen(ctx context.Context, repo *worktree.Repo, at centurion.Checkout) (*worktree.Checkout, error) {
	key := at
	key.Start, key.Overlay = "", false
	p.opening.Lock()
	c := p.parked[key]
	delete(p.parked, key)
	p.opening.Unlock()
	if c != nil {
		return c, nil
	}
	return repo.Reopen(ctx, at)
}

// Expand gives a task of a mission that does not run, or with "" the mission's own agent, a checkout with all files at the place that is
// recorded, if it has none.
func (p *Project) Expand(ctx context.Context, mission, task string) error {
	m, err := p.store.Mission(ctx, mission)
	at := m.Checkout
	if err == nil && task != "" {
		var t centurion.Task
		t, err = p.store.Task(ctx, task)
		at = t.Checkout
	}
	if err != nil || at == nil || !at.Overlay {
		return err
	}
	repo, err := p.Repository(ctx)
	if err != nil {
		return err
	}
	c, err := p.reopen(ctx, repo, *at)
	if err != nil {
		return err
	}
	defer p.park(c)
	if err := c.Expand(ctx); err != nil {
		return err
	}
	now := c.Where()
	return p.store.Update(ctx, func(tx *store.Tx) error { return putCheckout(tx, mission, task, &now) })
}

// SweepBranches removes branches left by a host that died: those of ended tasks whose commits are all on the mission's branch. A
// session's branches are removed together or not at all, since the later ones are found by counting. Branches that cannot be removed
// stay and do no harm. Nothing of the mission may be running.
func (m *Checkouts) SweepBranches(ctx context.Context) {
	rec, err := m.st.Store.Mission(ctx, m.st.ID)
	if err != nil || rec.Runs < 2 { // no other host has worked on it
		return
	}
	repo := m.Ground.Repo
	tip, err := repo.Tip(ctx, m.Branch())
	if err != nil {
		return
	}
	merged, other, err := repo.Branches(ctx, BranchPrefix(m.st.ID), tip)
	if err != nil {
		return
	}
	tasks, err := m.st.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return
	}
	of := map[string]centurion.Task{}
	stays := map[string]bool{"": true} // by session; "" for branches without a task
	for _, t := range tasks {
		of[t.ID] = t
		stays[t.Session] = stays[t.Session] || !t.Status.Ended()
	}
	session := func(branch string) string {
		name, _, _ := strings.Cut(strings.TrimPrefix(branch, BranchPrefix(m.st.ID)), "-")
		return of[name].Session
	}
	for _, b := range other {
		stays[session(b)] = true
	}
	merged = slices.DeleteFunc(merged, func(b string) bool { return stays[session(b)] })
	_, _ = repo.DropMerged(ctx, tip, merged...)
}

// giveBack releases the checkout of a task, or with "" that of the mission's own agent.
func (p *Project) giveBack(ctx context.Context, m centurion.Mission, at centurion.Checkout, task string) error {
	c, err := p.reopen(ctx, p.repo, at)
	switch {
	case centurion.KindOf(err) == centurion.KindNotFound: // it was deleted by hand
	case err != nil:
		return err
	default:
		tip, err := p.repo.Tip(ctx, BranchOf(m.ID))
		if err != nil {
			return err
		}
		if _, err := c.Release(ctx, tip); err != nil {
			return err
		}
	}
	aside, err := p.repo.Aside(at.Branch)
	if err != nil {
		return err
	}
	return p.store.Update(ctx, func(tx *store.Tx) error { return putLeft(tx, m.ID, task, aside) })
}

// LeftBehind releases the checkouts of tasks that ended while no host worked on the mission. Uncommitted changes are committed to their
// branches first.
func (p *Project) LeftBehind(ctx context.Context, m centurion.Mission) error {
	tasks, err := p.store.Tasks(ctx, m.ID)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if t.Checkout == nil || !t.Status.Ended() {
			continue
		}
		if err := p.giveBack(ctx, m, *t.Checkout, t.ID); err != nil {
			return err
		}
	}
	if m.Checkout == nil || !m.Status.Ended() {
		return nil
	}
	return p.giveBack(ctx, m, *m.Checkout, "")
}

// Close closes the project's repository. No mission may be running.
func (p *Project) Close() error {
	p.opening.Lock()
	defer p.opening.Unlock()
	if p.repo == nil {
		return nil
	}
	repo := p.repo
	p.repo = nil
	return repo.Close()
}

// Save stores what was changed since the last commit, and lists those files, relative to the repository's top.
func (w *Workplace) Save(ctx context.Context) ([]string, error) {
	if err := w.lock(ctx); err != nil {
		return nil, err
	}
	defer w.unlock()
	if w.checkout == nil {
		return nil, nil
	}
	return w.checkout.Save(ctx)
}

// Keep stores what a file tool has changed, if that takes little time: only an overlay's changes can be told without looking at all files.
func (w *Workplace) Keep(ctx context.Context) error {
	if err := w.lock(ctx); err != nil {
		return err
	}
	defer w.unlock()
	if w.checkout == nil || !w.checkout.Layered() {
		return nil
	}
	_, err := w.checkout.Save(ctx)
	return err
}

// restore is reopen for a session that continues: if its checkout was deleted, it gets another one with its work, which would otherwise be
// merged only after its next write.
func (w *Workplace) restore(ctx context.Context) error {
	if err := w.reopen(ctx); err != nil {
		return err
	}
	if err := w.lock(ctx); err != nil {
		return err
	}
	defer w.unlock()
	if w.checkout != nil || !w.lost {
		return nil
	}
	w.lost = false
	tip, err := w.m.Tip(ctx)
	if err != nil {
		return err
	}
	if _, kept, err := w.freeBranch(ctx, tip); err != nil || kept == "" {
		return err
	}
	return w.begin(ctx)
}
