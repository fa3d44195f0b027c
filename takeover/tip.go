package takeover

import (
	"context"
	"slices"

	"centurion"
)

// tip is the tip of the mission's branch. If the branch is gone the error has centurion.KindNotFound and says how to restore it.
func (w *workDone) tip(ctx context.Context) (string, error) {
	m := w.mission
	tip, err := w.repo.Tip(ctx, m.Branch)
	if centurion.KindOf(err) != centurion.KindNotFound {
		return tip, err
	}
	gone := &centurion.Error{Kind: centurion.KindNotFound, Msg: "the branch of mission " + m.ID + " is gone: " + m.Branch}
	newest := newestCommit(m, w.tasks)
	if _, lost := w.repo.Log(ctx, m.Base.Commit, newest); lost != nil {
		newest = ""
	}
	switch {
	case newest != "":
		gone.Hint = "make it again, at the newest commit that is recorded of its tasks: git branch " + m.Branch + " " + newest
	case w.merged():
		gone.Hint = "what was merged stands on your branch; see: centurion show " + m.ID
	default:
		gone.Hint = "git keeps commits without a branch for some time: find them with git fsck --lost-found, and make the branch again with git branch " + m.Branch + " COMMIT"
	}
	return "", gone
}

// merged reports whether work of the mission is on the person's branch.
func (w *workDone) merged() bool { return w.mission.Merged != nil && w.mission.Merged.Commit != "" }

// newestCommit is the newest commit of a mission's tasks or merges; "" without any.
func newestCommit(m centurion.Mission, tasks []centurion.Task) string {
	var all []centurion.Landed
	for _, t := range tasks {
		all = append(all, t.Landed...)
	}
	slices.SortStableFunc(all, func(a, b centurion.Landed) int { return a.Time.Compare(b.Time.Time) })
	for _, l := range slices.Backward(all) {
		if l.Commit != "" && !slices.ContainsFunc(all, func(o centurion.Landed) bool { return o.Before == l.Commit }) {
			return l.Commit
		}
	}
	if m.Merged != nil {
		return m.Merged.From
	}
	return ""
}
