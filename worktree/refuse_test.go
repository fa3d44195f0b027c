package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion"
)

// What the person did between the plan of a landing and its carrying out is seen, and nothing is touched.
func TestLandingMeetsThePerson(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(x *rig)
		says      string
	}{
		"staged":     {func(x *rig) { x.write("c", "mine\n"); x.person("add", "c") }, "the index was changed meanwhile"},
		"committed":  {func(x *rig) { x.person("commit", "-q", "--allow-empty", "-m", "mine") }, "no longer stands at"},
		"git's lock": {func(x *rig) { put(x.t, filepath.Join(x.top, ".git", "index.lock"), "") }, "another git is at work in this repository"},
	} {
		x := newRig(t, map[string]string{"a": long, "b": "b\n"})
		base := x.begin()
		tip := x.commitOf(base.Commit, map[string][]byte{"a": []byte(nine(long)), "n": []byte("n\n")}, "b")
		p, err := x.plan(t.Context(), base.Head, tip, mine{snapshot: base.Commit})
		if err != nil {
			t.Fatal(err)
		}
		c.meanwhile(x)
		before := x.state()
		if err := p.carryOut(t.Context()); centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if x.state() != before {
			t.Errorf("%s: something was touched", name)
		}
		p.close()
	}
}

// A merge of the person's own whose conflicts are resolved is still theirs to finish.
func TestMergeWhileTheirsIsUnfinished(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long})
	base := x.begin()
	o := MergeOptions{Base: base, Tip: x.commitOf(base.Commit, map[string][]byte{"n": []byte("1")})}
	x.person("checkout", "-qb", "side")
	x.write("s", "side\n")
	x.person("add", "s")
	x.person("commit", "-qm", "side")
	x.person("checkout", "-q", "main")
	x.person("merge", "-q", "--no-commit", "--no-ff", "side")
	before := x.state()
	if _, err := x.Merge(t.Context(), o); centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(err.Error(), "a merge is in progress in "+x.top) {
		t.Errorf("a merge: %v", err)
	}
	if _, err := x.Preview(t.Context(), o); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("a look: %v", err)
	}
	if x.state() != before {
		t.Error("something was touched")
	}
}

// A landing that was killed is completed around what somebody has written since.
func TestInterruptedMergeKeepsWhatCameSince(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long, "b": "b\n"})
	base := x.begin()
	tip := x.commitOf(base.Commit, map[string][]byte{"a": []byte(nine(long)), "n": []byte("n\n")}, "b")
	p, err := x.plan(t.Context(), base.Head, tip, mine{snapshot: base.Commit})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := x.writeJournal(journal{p.before, p.after, p.tree, p.steps, p.change}); err != nil {
		t.Fatal(err)
	}
	if err := x.moveHead(t.Context(), base.Head, tip); err != nil {
		t.Fatal(err)
	}
	x.write("a", "mine\n")
	x.merged(MergeOptions{Base: base, Tip: tip})
	x.want(map[string]string{"a": "mine\n", "b": "", "n": "n\n"}, "M a")
}

// What was committed on top of a merge and builds on it is named, and the merge stays.
func TestUndoUnderLaterWork(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long})
	base := x.begin()
	m := x.merged(MergeOptions{Base: base, Tip: x.commitOf(base.Commit, map[string][]byte{"a": []byte(nine(long)), "n": []byte("n\n")})})
	x.write("a", nine(long)+"ten\n")
	x.write("n", "n, and mine\n")
	x.person("commit", "-qam", "mine")
	before := x.state()
	u, err := x.Undo(t.Context(), centurion.Merged{Branch: "main", Before: m.Before, Commit: m.After})
	if err != nil || u.After != "" || u.Clear() || !slices.ContainsFunc(u.Conflicts, func(c Conflict) bool { return c.Path == "n" }) {
		t.Errorf("%+v, %v", u, err)
	}
	if x.state() != before {
		t.Error("something was touched")
	}
}

// What a living mission has, and what somebody works on, stays, also where its commits are on the person's branch.
func TestGCKeepsWhatLives(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	head := x.head()
	refs := []string{"refs/centurion/base/m1", "refs/heads/centurion/m1/mission", "refs/centurion/base/m2", "refs/heads/centurion/m2/mission"}
	for _, ref := range refs {
		x.person("update-ref", ref, head)
	}
	c := x.take("centurion/m2/T1", head)
	removed, err := x.GC(t.Context(), func(ref string) bool { return ref == refs[0] || ref == refs[1] })
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(removed)
	if want := []string{refs[2], refs[3]}; !slices.Equal(removed, want) {
		t.Errorf("removed %q, want %q", removed, want)
	}
	if _, err := x.Tip(t.Context(), "centurion/m2/T1"); err != nil {
		t.Errorf("the branch of a checkout: %v", err)
	}
	release(t, c, head)
}

// A checkout without a branch that was given back is nobody's.
func TestReopenWhatWasGivenBack(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	c, err := x.Take(t.Context(), Want{Commit: x.head()})
	if err != nil {
		t.Fatal(err)
	}
	at := c.Where()
	if _, err := c.Release(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Reopen(t.Context(), at); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(at.Dir); err != nil {
		t.Errorf("the pool lost it: %v", err)
	}
}
