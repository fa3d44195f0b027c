package worktree

import (
	"context"

	"centurion"
)

// Redo puts the person's branch and files back to where they stood before a merge was taken back, if nothing was committed since. exact
// is false, and nothing is touched, if something was, on another branch, or if nobody knows where they stood: then the
// work has to be merged once more.
// Uncommitted work stays in the way as it does for Merge: all but what is as the snapshot base has it. With look nothing is touched in any case.
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
