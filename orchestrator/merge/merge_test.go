package merge

import (
	"testing"

	"centurion"
	"centurion/worktree"
)

// Who waits together is merged together, a crowd at most: the mission's own checks run once for them. Who has left the line is not
// waited for.
func TestBatch(t *testing.T) {
	t.Parallel()
	q := NewQueue(nil)
	var all []*Work
	for range crowd {
		l := &Work{}
		all = append(all, l)
		q.waiting = append(q.waiting, l)
	}
	if got := (&Queue{waiting: all[2:3:3]}).batch(all[2]); len(got) != 1 || got[0] != all[2] {
		t.Errorf("of one: %d", len(got))
	}
	if got := (&Queue{waiting: []*Work{all[2], all[3]}}).batch(all[2]); len(got) != 2 {
		t.Errorf("of two: %d", len(got))
	}
	q.waiting = append(q.waiting, &Work{})
	if got := q.batch(all[2]); len(got) != crowd || got[0] != all[0] || !all[4].taken {
		t.Errorf("of %d: %d", crowd+1, len(got))
	}
	if !q.quit(all[0]) || q.quit(&Work{}) {
		t.Error("who is taken is known")
	}
	all[1].Done = true
	if got := q.batch(all[2]); len(got) != crowd-1 {
		t.Errorf("of those that are left: %d", len(got))
	}
}

func TestMarked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"+<<<<<<< a\n+x\n+=======\n+y\n+>>>>>>> b\n": true,
		" <<<<<<< a\n x\n =======\n y\n >>>>>>> b\n": false, // they were there before
		"+=======\n+>>>>>>> b\n+<<<<<<< a\n":         false,
		"+heading\n+=======\n":                       false,
	} {
		if got := marked(centurion.FileDiff{Hunks: []centurion.Hunk{{Text: text}}}); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// Work that was merged before its host died is done, whatever its agent's last text is; that an earlier task's work was proven says nothing of
// what this one has left half done.
func TestStuckOn(t *testing.T) {
	t.Parallel()
	some := worktree.Commit{ID: "c"}
	for name, c := range map[string]struct {
		l     Work
		proof centurion.Proof
		done  bool
	}{
		"proven":                         {Work{Commit: some}, centurion.ProofProven, true},
		"proven, merged before":          {Work{}, centurion.ProofProven, true},
		"regression, merged before":      {Work{}, centurion.ProofRegression, true},
		"regression, asked for":          {Work{Commit: some, Keeps: true}, centurion.ProofRegression, true},
		"regression, of earlier work":    {Work{Commit: some}, centurion.ProofRegression, false},
		"unproven":                       {Work{Commit: some}, centurion.ProofUnproven, false},
		"flaky":                          {Work{Commit: some, Keeps: true}, centurion.ProofFlaky, false},
		"nothing changed, proven before": {Work{Idle: true}, centurion.ProofProven, false},
	} {
		back := stuckOn(&c.l, centurion.Receipt{Command: "check", Passed: true, Proof: c.proof})
		if (back == nil) != c.done || back != nil && !back.Ends {
			t.Errorf("%s: %+v", name, back)
		}
	}
}
