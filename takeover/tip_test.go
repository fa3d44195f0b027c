package takeover

import (
	"strings"
	"testing"

	"centurion"
	"centurion/store"
)

// A mission whose branch was deleted by hand is refused with the command that makes it again, which then works; where the commit is gone,
// too, with how to look for it.
func TestBranchGone(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	tip := r.task.Landed[0].Commit
	r.git("branch", "-D", r.mission.Branch)
	for name, do := range map[string]func() error{
		"merge": func() error { _, err := r.Merge(ctx, r.mission.ID, MergeRequest{}); return err },
		"diff":  func() error { _, err := r.Diff(ctx, r.mission.ID, DiffOptions{}); return err },
		"undo":  func() error { _, err := r.Undo(ctx, r.mission.ID, UndoRequest{}); return err },
	} {
		err := do()
		if centurion.KindOf(err) != centurion.KindNotFound || strings.Contains(err.Error(), "rev-parse") ||
			!strings.HasSuffix(centurion.HintOf(err), "git branch "+r.mission.Branch+" "+tip) {
			t.Errorf("%s: %v, next: %s", name, err, centurion.HintOf(err))
		}
	}
	r.git("branch", r.mission.Branch, tip)
	if _, err := r.Merge(ctx, r.mission.ID, MergeRequest{DryRun: true}); err != nil {
		t.Error(err)
	}

	r.git("branch", "-D", r.mission.Branch)
	err := r.store.Update(ctx, func(tx *store.Tx) error {
		r.task.Landed[0].Commit = strings.Repeat("1", 40)
		return tx.PutTask(&r.task)
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Merge(ctx, r.mission.ID, MergeRequest{})
	if hint := centurion.HintOf(err); !strings.Contains(hint, "git fsck --lost-found") || strings.Contains(hint, "1111") {
		t.Errorf("%v, next: %s", err, hint)
	}
}

// The commit to go back to is the newest of all tasks, in whatever order they were recorded.
func TestNewestCommit(t *testing.T) {
	t.Parallel()
	tasks := []centurion.Task{{Landed: []centurion.Landed{{Commit: "c", Before: "b"}, {Commit: "d", Before: "c", Reverts: true}}}, {Landed: []centurion.Landed{{Commit: "b", Before: "a"}}}}
	if got := newestCommit(centurion.Mission{}, tasks); got != "d" {
		t.Errorf("got %q", got)
	}
	if got := newestCommit(centurion.Mission{Merged: &centurion.Merged{From: "m"}}, nil); got != "m" {
		t.Errorf("got %q", got)
	}
}
