package orchestrator

import (
	"context"
	"errors"
	"slices"
	"strings"

	"centurion"
	"centurion/store"
)

// tidyWorktrees gives back the checkouts that ended tasks and missions have left, and removes what of the repository nobody
// needs: pooled checkouts beyond those that are kept, or all of them, and branches whose work is on the person's own.
func (h *Host) tidyWorktrees(ctx context.Context, all bool) ([]string, error) {
	missions, err := h.cfg.Store.Missions(ctx)
	if err != nil {
		return nil, err
	}
	needed, isolated := map[string]bool{}, false
	for _, m := range missions {
		isolated = isolated || m.Isolation == centurion.IsolationWorktree
		needed[m.ID] = !m.Status.Ended() || h.running(m.ID) != nil
	}
	if !isolated {
		return nil, nil
	}
	repo, err := h.Repository(ctx)
	if centurion.KindOf(err) == centurion.KindNotFound {
		return nil, nil // the project is in no repository any more
	}
	if err != nil {
		return nil, err
	}
	for _, m := range missions {
		if m.Isolation == centurion.IsolationWorktree && h.running(m.ID) == nil {
			err = errors.Join(err, h.leftBehind(ctx, m))
		}
	}
	if err != nil {
		return nil, err
	}
	removed, err := repo.GC(ctx, func(ref string) bool {
		for part := range strings.SplitSeq(ref, "/") {
			if needed[part] {
				return true
			}
		}
		return false
	})
	if err != nil || !all {
		return removed, err
	}
	more, err := repo.DropPool(ctx)
	return append(more, removed...), err
}

// pooled lists the checkouts that nobody uses, if they were asked for.
func (h *Host) pooled(ctx context.Context, o TidyOptions) ([]string, error) {
	if !o.Checkouts {
		return nil, nil
	}
	missions, err := h.cfg.Store.Missions(ctx)
	isolated := func(m centurion.Mission) bool { return m.Isolation == centurion.IsolationWorktree }
	if err != nil || !slices.ContainsFunc(missions, isolated) {
		return nil, err
	}
	repo, err := h.Repository(ctx)
	if centurion.KindOf(err) == centurion.KindNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return repo.Pooled(), nil
}

// leftBehind gives back the checkouts of what has ended while nobody worked on its mission. What is not committed is
// committed to their branches first.
func (h *Host) leftBehind(ctx context.Context, m centurion.Mission) error {
	tasks, err := h.cfg.Store.Tasks(ctx, m.ID)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if t.Checkout == nil || !t.Status.Ended() {
			continue
		}
		if err := h.giveBack(ctx, m, *t.Checkout, t.ID); err != nil {
			return err
		}
	}
	if m.Checkout == nil || !m.Status.Ended() {
		return nil
	}
	return h.giveBack(ctx, m, *m.Checkout, "")
}

// sweepBranches removes branches that a host which died has left: of tasks that have ended, with all that they hold on the mission's
// branch. A session's branches go together or not at all, since the later ones are found by counting. What cannot be removed stays;
// it is in nobody's way. Nothing of the mission runs.
func (m *mission) sweepBranches(ctx context.Context) {
	rec, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	if err != nil || rec.Runs < 2 { // no other host has worked on it
		return
	}
	repo := m.ground.repo
	tip, err := repo.Tip(ctx, m.branch())
	if err != nil {
		return
	}
	merged, other, err := repo.Branches(ctx, branchPrefix(m.st.ID), tip)
	if err != nil {
		return
	}
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return
	}
	of := map[string]centurion.Task{}
	stays := map[string]bool{"": true} // sessions; "" is of those that are no task's
	for _, t := range tasks {
		of[t.ID] = t
		stays[t.Session] = stays[t.Session] || !t.Status.Ended()
	}
	session := func(branch string) string {
		name, _, _ := strings.Cut(strings.TrimPrefix(branch, branchPrefix(m.st.ID)), "-")
		return of[name].Session
	}
	for _, b := range other {
		stays[session(b)] = true
	}
	merged = slices.DeleteFunc(merged, func(b string) bool { return stays[session(b)] })
	_, _ = repo.DropMerged(ctx, tip, merged...)
}

// giveBack gives back the checkout of a task, or of the mission's own agent for "".
func (h *Host) giveBack(ctx context.Context, m centurion.Mission, at centurion.Checkout, task string) error {
	c, err := h.reopen(ctx, h.repo, at)
	switch {
	case centurion.KindOf(err) == centurion.KindNotFound: // somebody has removed it
	case err != nil:
		return err
	default:
		tip, err := h.repo.Tip(ctx, branchOf(m.ID))
		if err != nil {
			return err
		}
		if _, err := c.Release(ctx, tip); err != nil {
			return err
		}
	}
	aside, err := h.repo.Aside(at.Branch)
	if err != nil {
		return err
	}
	return h.cfg.Store.Update(ctx, func(tx *store.Tx) error { return putLeft(tx, m.ID, task, aside) })
}

// Close ends the use of the project's repository. No mission runs any more.
func (h *Host) Close() error {
	h.opening.Lock()
	defer h.opening.Unlock()
	if h.repo == nil {
		return nil
	}
	repo := h.repo
	h.repo = nil
	return repo.Close()
}
