package takeover

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"centurion"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// What was taken back is forgotten once all of it is merged again, not while a part is missing or nobody knows.
func TestForgetMerged(t *testing.T) {
	t.Parallel()
	back := []centurion.TakenBack{{Merge: centurion.Merged{Before: "a", Commit: "b", Commits: []string{"1", "2"}}}}
	for _, c := range []struct {
		name   string
		merged *centurion.Merged
		left   int
	}{
		{"nothing is merged", nil, 1},
		{"a part", &centurion.Merged{Commit: "c", Commits: []string{"1"}}, 1},
		{"all, with an earlier one", &centurion.Merged{Commit: "d", Commits: []string{"2"}, Earlier: &centurion.Merged{Commit: "c", Commits: []string{"1"}}}, 0},
		{"about to be", &centurion.Merged{Commits: []string{"1", "2"}}, 1},
	} {
		m := centurion.Mission{Merged: c.merged, TakenBack: back}
		if forgetMerged(&m); len(m.TakenBack) != c.left || len(back) != 1 || len(back[0].Merge.Commits) != 2 {
			t.Errorf("%s: %d are left, want %d", c.name, len(m.TakenBack), c.left)
		}
	}
}

func TestAddFiles(t *testing.T) {
	t.Parallel()
	f := func(path, old, status string) centurion.FileChange {
		return centurion.FileChange{Path: path, Old: old, Status: status, Added: 1}
	}
	for _, c := range []struct {
		name       string
		have, more centurion.FileChange
		want       []string // path, old, status of each
	}{
		{"two files", f("b", "", "added"), f("a", "", "modified"), []string{"a", "", "modified", "b", "", "added"}},
		{"added and changed", f("a", "", "added"), f("a", "", "modified"), []string{"a", "", "added"}},
		{"added and gone", f("a", "", "added"), f("a", "", "deleted"), nil},
		{"gone and back", f("a", "", "deleted"), f("a", "", "added"), []string{"a", "", "modified"}},
		{"changed and gone", f("a", "", "modified"), f("a", "", "deleted"), []string{"a", "", "deleted"}},
		{"changed and moved", f("a", "", "modified"), f("b", "a", "renamed"), []string{"b", "a", "renamed"}},
		{"added and moved", f("a", "", "added"), f("b", "a", "renamed"), []string{"b", "", "added"}},
	} {
		var got []string
		for _, f := range addFiles([]centurion.FileChange{c.have}, []centurion.FileChange{c.more}) {
			got = append(got, f.Path, f.Old, f.Status)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Each file goes back to before the first write of it, from after the last.
func TestSpans(t *testing.T) {
	t.Parallel()
	at := func(s int) centurion.Time { return centurion.Time{Time: time.Unix(int64(s), 0)} }
	files := func(names ...string) (out []centurion.FileChange) {
		for _, n := range names {
			out = append(out, centurion.FileChange{Path: n})
		}
		return out
	}
	// The second one began first, and ended last but one.
	got := spans([]centurion.Landed{
		{Before: "2", Commit: "3", Time: at(2), Files: files("a", "b")},
		{Before: "1", Commit: "4", Time: at(1), Files: files("b", "c")},
		{Before: "5", Time: at(5), Files: files("d")},
	}, "now")
	want := []span{{"2", "3", []string{"a"}}, {"1", "4", []string{"b", "c"}}, {"5", "now", []string{"d"}}}
	if !slices.EqualFunc(got, want, func(a, b span) bool { return a.from == b.from && a.to == b.to && slices.Equal(a.paths, b.paths) }) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The weakest of a task's newest checks says what its proof is worth.
func TestProofOf(t *testing.T) {
	t.Parallel()
	task := centurion.Task{ID: "tsk_1", Item: "T1"}
	r := func(item, command string, p centurion.Proof, why string) centurion.Receipt {
		return centurion.Receipt{Item: item, Command: command, Proof: p, Why: why}
	}
	for _, c := range []struct {
		name     string
		receipts []centurion.Receipt
		want     centurion.Proof
		why      string
	}{
		{"none", nil, "", ""},
		{"another item's", []centurion.Receipt{r("T2", "a", centurion.ProofProven, "")}, "", ""},
		{"the weakest", []centurion.Receipt{r("T1", "a", centurion.ProofUnproven, "x"), r("T1", "b", centurion.ProofProven, "")}, centurion.ProofUnproven, "x"},
		{"the newest of a command", []centurion.Receipt{r("T1", "a", centurion.ProofFlaky, "x"), r("T1", "a", centurion.ProofProven, "")}, centurion.ProofProven, ""},
		{"not that of a task which mended it later", []centurion.Receipt{
			{Task: "tsk_1", Item: "T1", Command: "a", Proof: centurion.ProofUnproven, Why: "x"},
			{Task: "tsk_2", Item: "T1", Command: "a", Proof: centurion.ProofProven}}, centurion.ProofUnproven, "x"},
	} {
		if p, why, _ := proofOf(c.receipts, task); p != c.want || why != c.why {
			t.Errorf("%s: %s %q, want %s %q", c.name, p, why, c.want, c.why)
		}
	}
}
