package orchestrator

import (
	"context"
	"errors"
	"slices"
	"strings"

	"centurion"
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
	repo, err := h.project.Repository(ctx)
	if centurion.KindOf(err) == centurion.KindNotFound {
		return nil, nil // the project is in no repository any more
	}
	if err != nil {
		return nil, err
	}
	for _, m := range missions {
		if m.Isolation == centurion.IsolationWorktree && h.running(m.ID) == nil {
			err = errors.Join(err, h.project.LeftBehind(ctx, m))
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
	repo, err := h.project.Repository(ctx)
	if centurion.KindOf(err) == centurion.KindNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return repo.Pooled(), nil
}
