package worktree

import (
	"context"

	"centurion"
)

// Redo returns the person's branch and files to their state before a merge was undone, if nothing was committed since. exact is false,
// with nothing changed, if something was committed, on another branch, or if the state is unknown: then the work must be merged again.
// Uncommitted changes are obstacles as for Merge, except those contained in the snapshot base. With look nothing is changed in any
// case.
func (u *userSide) Redo(ctx context.Context, t centurion.TakenBack, base centurion.Base, look bool) (m Merging, exact bool, err error) {
	u.landing.Lock()
	defer u.landing.Unlock()
	if look {
		err = u.undisturbed(true)
	} else {
		err = u.settle(ctx)
	}
	if err != nil {
		return m, false, err
	}
	h, err := u.Head(ctx)
	if err != nil {
		return m, false, err
	}
	m = Merging{Before: h.Commit, Branch: h.Branch}
	if t.Before == "" || h.Commit != t.After || h.Branch != t.Merge.Branch {
		return m, false, nil
	}
	m, err = u.land(ctx, m, t.Before, mine{snapshot: base.Commit}, look)
	return m, true, err
}
