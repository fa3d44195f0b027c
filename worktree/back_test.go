package worktree

import (
	"slices"
	"strings"
	"testing"

	"centurion"
)

// A merge is taken back on the branch that it was made on, and nowhere else, also where another branch has it.
func TestUndoOnAnotherBranch(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long})
	base := x.begin()
	m := x.merged(MergeOptions{Base: base, Tip: x.commitOf(base.Commit, content(nine(long)))})
	back := centurion.Merged{Branch: "main", Before: m.Before, Commit: m.After}
	for _, elsewhere := range [][]string{{"switch", "-q", "-c", "other"}, {"checkout", "-q", "--detach"}} {
		x.person(elsewhere...)
		before := x.state()
		if u, err := x.Undo(t.Context(), back); centurion.KindOf(err) != centurion.KindConflict || centurion.HintOf(err) != "git switch main" || u.After != "" {
			t.Errorf("%q: %+v, %v", elsewhere, u, err)
		}
		if x.state() != before {
			t.Errorf("%q: something was touched", elsewhere)
		}
	}
	// A branch that was set back to something else has no merge to take back, whatever it is called.
	x.person("switch", "-q", "main")
	x.person("reset", "-q", "--hard", base.Head)
	x.person("commit", "-q", "--allow-empty", "-m", "another way")
	before := x.state()
	if u, err := x.Undo(t.Context(), back); centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(err.Error(), "no longer has the commit") || u.After != "" {
		t.Errorf("%+v, %v", u, err)
	}
	if x.state() != before {
		t.Error("something was touched")
	}
}

// What was taken back comes back as it was only where the person's branch stands exactly where the undo has left it; anywhere else the work has
// to be merged once more, and nothing is touched.
func TestRedo(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long, "b": "b\n"})
	base := x.begin()
	m := x.merged(MergeOptions{Base: base, Tip: x.commitOf(base.Commit, content(nine(long)))})
	merge := centurion.Merged{Branch: "main", Before: m.Before, Commit: m.After}
	if u, err := x.Undo(t.Context(), merge); err != nil || u.After != base.Head {
		t.Fatalf("%+v, %v", u, err)
	}
	back := centurion.TakenBack{Merge: merge, Before: m.After, After: base.Head}
	redo := func(what string, taken centurion.TakenBack, look, exact bool, overlap ...string) {
		t.Helper()
		before := x.state()
		got, is, err := x.Redo(t.Context(), taken, base, look)
		if err != nil || is != exact || !slices.Equal(got.Overlap, overlap) {
			t.Errorf("%s: %+v, exact %t, %v", what, got, is, err)
		}
		if touched := x.state() != before; touched != (exact && !look && len(overlap) == 0) {
			t.Errorf("%s: touched %t", what, touched)
		}
	}
	unknown := back
	unknown.Before = ""
	redo("nobody knows where it stood", unknown, false, false)
	x.person("switch", "-q", "-c", "other")
	redo("on another branch", back, false, false)
	x.person("switch", "-q", "main")
	x.person("commit", "-q", "--allow-empty", "-m", "mine")
	redo("after a commit", back, false, false)
	x.person("reset", "-q", "--hard", base.Head)
	x.write("a", five("mine")) // would come apart from it, but nobody has seen it
	redo("over uncommitted work", back, false, true, "a")
	x.write("a", long)
	x.write("b", "mine\n")
	redo("a look", back, true, true)
	redo("at last", back, false, true)
	x.want(map[string]string{"a": nine(long), "b": "mine\n"}, "M b")
	if got := x.head(); got != m.After {
		t.Errorf("the branch stands at %s, not at %s", got, m.After)
	}
}
