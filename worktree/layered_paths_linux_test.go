package worktree

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"centurion"
)

// A workspace that nobody uses while others land follows to the last of their commits, with the files of all of them, and not at all
// when it comes back to where it was. A later host knows the layers that it stands on.
func TestMovesBeforeTheNextUse(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n", "d/b.txt": "b\n", "file": "f\n", ".opencode/agents/a.md": "one\n"})
	ctx := t.Context()
	c := x.takeHead("task")
	x.sh(c, "ln -s nowhere new; true")
	x.sh(c, "rm new")
	first := x.later(x.head(), map[string]string{"a.txt": "A\n", "file/in": "in\n", ".opencode/agents/a.md": "two\n"}, "file")
	second := x.later(first, map[string]string{"d": "now a file\n", "deep/er/new": "n\n"}, "d/b.txt")
	for _, tip := range []string{first, second} {
		if err := c.Move(ctx, tip); err != nil {
			t.Fatal(err)
		}
		if files, err := c.Uncommitted(ctx); len(files) > 0 || err != nil {
			t.Errorf("uncommitted: %v, %v", files, err)
		}
	}
	const look = "cat a.txt d file/in deep/er/new; git status --short; git log -1 --format=%H; git branch --show-current; git rev-parse task"
	want := "A\nnow a file\nin\nn\n" + second + "\ntask\n" + second + "\n"
	if got := x.sh(c, look); got != want {
		t.Errorf("it has %q, not %q", got, want)
	}
	if _, err := os.Lstat(filepath.Join(c.upperDir(), ".opencode", "agents", "a.md")); err == nil {
		t.Error("a file of the project's own directory was written")
	}
	if err := c.Move(ctx, x.head()); err != nil {
		t.Fatal(err)
	}
	if err := c.Move(ctx, second); err != nil || c.rec.Behind != "" {
		t.Errorf("back where its files are, it is behind %q, %v", c.rec.Behind, err)
	}
	if got := x.sh(c, look); got != want {
		t.Errorf("there and back, it has %q, not %q", got, want)
	}
	at := c.Where()
	x.reopenLayered()
	c, err := x.Reopen(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Move(ctx, x.head()); err != nil {
		t.Fatal(err)
	}
	if got := x.sh(c, "cat a.txt d/b.txt file; ls; git status --short"); got != "a\nb\nf\na.txt\nd\nfile\n" {
		t.Errorf("back at the beginning: %q", got)
	}
	x.takeHead("another")
	if bases := x.layers.ids("base-"); len(bases) != 1 {
		t.Errorf("the bases are %v", bases)
	}
}

// A check begins with the files of its tree, whatever the one before left, and at the commit if it is given one. A branch's work is not
// cleaned away.
func TestCleanOfLayers(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n", ".gitignore": "*.log\n"})
	ctx := t.Context()
	bench, err := x.Take(ctx, Want{Commit: x.head(), Check: true})
	if err != nil {
		t.Fatal(err)
	}
	next := x.later(x.head(), map[string]string{"a.txt": "A\n"})
	for _, to := range []string{x.head(), x.head(), next, next} {
		if err := bench.Clean(ctx, to); err != nil {
			t.Fatal(err)
		}
		if got, want := x.sh(bench, "ls -A; cat a.txt; git status --short; git log -1 --format=%H; git branch --show-current; ls .git | grep -c HEAD"),
			".git\n.gitignore\n.opencode\na.txt\n"+x.person("show", to+":a.txt")+"\n"+to+"\n1\n"; got != want {
			t.Errorf("a check sees %q, not %q", got, want)
		}
		if at := bench.Where(); at.Start != to || at.Branch != "" || !at.Overlay {
			t.Errorf("it is at %+v", at)
		}
		x.sh(bench, "echo x >> a.txt; echo n > new; echo l > x.log; echo "+next+" > .git/MERGE_HEAD; mkdir .git/rebase-merge; cp .git/HEAD .git/REVERT_HEAD")
		if files, err := bench.Changed(ctx); err != nil || !slices.Equal(files, []string{"a.txt"}) {
			t.Errorf("changed %q, %v", files, err)
		}
	}
	c := x.takeHead("task")
	for _, step := range []struct {
		script string
		kind   centurion.Kind
	}{{"true", centurion.KindUsage}, {"echo b > b.txt", centurion.KindConflict}} {
		x.sh(c, step.script)
		if err := c.Clean(ctx, next); centurion.KindOf(err) != step.kind {
			t.Errorf("a workspace with a branch after %q: %v", step.script, err)
		}
	}
	if err := c.Move(ctx, next); centurion.KindOf(err) != centurion.KindConflict || c.Where().Start != x.head() {
		t.Errorf("moved with uncommitted work: %v", err)
	}
	if got := x.sh(c, "cat a.txt b.txt"); got != "a\nb\n" {
		t.Errorf("it has %q", got)
	}
}

// A workspace whose setup fails leaves nothing behind: no branch, no slot, and its name is the next one's.
func TestLayeredTakeFails(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n"})
	ctx := t.Context()
	want := Want{Branch: "task", Commit: x.head(), Setup: []string{"echo ran >> .opencode/ran; echo no such package; exit 3"}}
	put(t, filepath.Join(x.top, ".opencode", "todo.md"), "# plan\n")
	for i := range 3 {
		_, err := x.Take(ctx, want)
		if centurion.KindOf(err) != centurion.KindConfig || !strings.Contains(err.Error(), "no such package") || (i > 1) != strings.Contains(err.Error(), "failed 2 times") {
			t.Fatalf("the %d. time: %v", i+1, err)
		}
		if left := x.names(); len(left) > 0 || x.hasRef("refs/heads/task") {
			t.Errorf("left: %v, the branch: %v", left, x.hasRef("refs/heads/task"))
		}
	}
	want.Setup = nil
	c, err := x.Take(ctx, want)
	if err != nil || c.name != "w1" {
		t.Fatalf("the next one: %+v, %v", c, err)
	}
	if _, err := x.Take(ctx, Want{Branch: "other", Commit: strings.Repeat("1", 40)}); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("a commit that nobody has: %v", err)
	}
	if got := x.names(); !slices.Equal(got, []string{"w1"}) {
		t.Errorf("slots %v", got)
	}
}

// A workspace that was stilled, expanded in vain or given back: it goes on, or says what is wrong.
func TestLayeredCheckoutGoesOn(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n"})
	ctx := t.Context()
	c := x.takeHead("task")
	x.sh(c, "echo b > b.txt")
	if err := c.Still(); err != nil {
		t.Fatal(err)
	}
	if got := x.sh(c, "cat a.txt b.txt"); got != "a\nb\n" {
		t.Errorf("after it was stilled: %q", got)
	}
	late := x.takeHead("late")
	dir, _, err := late.Files(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := late.Move(ctx, x.later(x.head(), map[string]string{"a.txt": "A\n"})); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "a.txt"), "of a process that goes on\n") // is in git's way
	was := late.rec
	if err := late.Expand(ctx); err == nil || !late.Layered() || !late.Where().Overlay || !reflect.DeepEqual(late.rec, was) {
		t.Errorf("expanded: %v, %+v", err, late.rec)
	}
	if got := get(t, filepath.Join(late.upperDir(), "a.txt")); got != "of a process that goes on\n" {
		t.Errorf("after it could not be expanded: %q", got)
	}
	gone := x.takeHead("gone")
	if err := os.RemoveAll(gone.upperDir()); err != nil {
		t.Fatal(err)
	}
	release(t, c, "")
	for c, words := range map[*Checkout]string{gone: "was removed", c: "was given back"} {
		_, saved := c.Save(ctx)
		_, uncommitted := c.Uncommitted(ctx)
		for what, err := range map[string]error{"saved": saved, "uncommitted": uncommitted, "cleaned": c.Clean(ctx, x.head()), "moved": c.Move(ctx, x.head()), "laid": c.Lay(ctx, x.head(), x.head())} {
			if centurion.KindOf(err) != centurion.KindNotFound || !strings.Contains(err.Error(), words) || c == gone && centurion.HintOf(err) != "what was committed in it is on the branch gone" {
				t.Errorf("%s: %v (%s)", what, err, centurion.HintOf(err))
			}
		}
	}
	if err := gone.Still(); err != nil { // before the rig ends
		t.Error(err)
	}
}

// What could not be saved is saved by the next call; what has not changed since is not saved again.
func TestSavedByTheNextCall(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n"})
	ctx := t.Context()
	c := x.takeHead("task")
	x.sh(c, "echo b > b.txt")
	lock := filepath.Join(x.top, ".git", "refs", "centurion", "saved", "task.lock")
	put(t, lock, "")
	if _, err := c.Save(ctx); err == nil || x.saved("task") != "" {
		t.Errorf("saved %q, %v", x.saved("task"), err)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if got := x.saves(c); got != "b.txt" || x.person("show", x.saved("task")+":b.txt") != "b" || x.person("log", "-1", "--format=%s %P", x.saved("task")) != "Unfinished work of task "+x.head() {
		t.Errorf("changed %q, saved %q", got, x.saved("task"))
	}
	x.person("update-ref", "-d", savedRef("task"))
	if got := x.saves(c); got != "b.txt" || x.saved("task") != "" {
		t.Errorf("it was saved again: %q, %q", got, x.saved("task"))
	}
	bench, err := x.Take(ctx, Want{Commit: x.head(), Check: true})
	if err != nil {
		t.Fatal(err)
	}
	x.sh(bench, "echo b > b.txt")
	if got := x.saves(bench); got != "b.txt" || x.person("for-each-ref", "refs/centurion/saved") != "" {
		t.Errorf("without a branch: %q, %q", got, x.person("for-each-ref", "refs/centurion/saved"))
	}
}

// Where layers cannot be mounted, a checkout has all files, and it is said why.
func TestWhyThereAreNoLayers(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n"})
	x.cloner.works = func() bool { return false }
	runner := x.opts.Runner
	for name, test := range map[string]struct {
		runner centurion.Runner
		way    string
		want   string
	}{
		"overlay":  {runner, WorkspacesOverlay, "overlay"},
		"unset":    {runner, "", "overlay"},
		"checkout": {runner, WorkspacesCheckout, `checkout: worktree.workspaces is "checkout"`},
		"nothing":  {nil, "", "checkout: nothing runs commands"},
		"no way":   {&shell{}, "", "checkout: nothing runs commands"},
	} {
		x.opts.Runner, x.opts.Workspaces = test.runner, test.way
		if got := x.Workspaces(); got != test.want {
			t.Errorf("%s: %q, not %q", name, got, test.want)
		}
		if err := x.Prepare(t.Context(), x.head()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if made := len(x.layers.ids("")) > 0; made != (test.want == WorkspacesOverlay) {
			t.Errorf("%s: layers were made: %v", name, made)
		}
		if err := os.RemoveAll(filepath.Join(x.opts.Home, layersDir)); err != nil {
			t.Fatal(err)
		}
		x.layers.base, x.layers.stacks, x.layers.seen = nil, nil, nil
	}
	x.opts.Runner, x.opts.Workspaces = runner, ""
	if err := x.Prepare(t.Context(), strings.Repeat("1", 40)); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("a commit that nobody has: %v", err)
	}
}

// What a setup takes out of a tracked directory is there for everybody, a lock file of another directory is not the project's, and a
// setup that was run again is not run for the next commit. Layers that somebody works on stay.
func TestSetupsOfLayers(t *testing.T) {
	x := layeredRigAt(t, "p", map[string]string{"p/d/a": "a\n", "p/package-lock.json": "1\n", "other/package-lock.json": "1\n", ".gitignore": "stamp\n"})
	ctx := t.Context()
	want := Want{Branch: "task", Commit: x.head(), Setup: []string{"rm -rf d; mkdir d; echo b > d/b; date +%N > stamp"}}
	const look = "ls d; cat d/a stamp"
	c, err := x.Take(ctx, want)
	if err != nil {
		t.Fatal(err)
	}
	first := x.sh(c, look)
	if files, err := c.Uncommitted(ctx); len(files) > 0 || err != nil || !strings.HasPrefix(first, "a\na\n") {
		t.Errorf("it has %q; uncommitted are %q, %v", first, files, err)
	}
	tip := x.later(x.head(), map[string]string{"other/package-lock.json": "2\n"})
	var seen []string
	for _, files := range []map[string]string{{}, {"p/package-lock.json": "2\n"}, {"p/new": "n\n"}} {
		tip = x.later(tip, files)
		if err := c.Move(ctx, tip); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, x.sh(c, "cat d/a stamp; git status --short"))
	}
	if seen[0] != strings.TrimPrefix(first, "a\n") || seen[1] == seen[0] || seen[2] != seen[1] || !strings.HasPrefix(seen[1], "a\n") {
		t.Errorf("first %q, then %q", first, seen)
	}
	other, err := x.Take(ctx, Want{Branch: "other", Commit: tip})
	if err != nil {
		t.Fatal(err)
	}
	at, deltas := other.Where(), x.layers.ids("delta-")
	if removed, err := x.GC(ctx, func(string) bool { return true }); err != nil || len(deltas) == 0 {
		t.Errorf("of %q, removed %q, %v", deltas, removed, err)
	}
	for _, id := range other.rec.Layers {
		if _, err := os.Stat(x.layers.files(id)); err != nil {
			t.Error(err)
		}
	}
	x.reopenLayered()
	if other, err = x.Reopen(ctx, at); err != nil {
		t.Fatal(err)
	}
	if got := x.sh(other, "cat new d/a"); got != "n\na\n" {
		t.Errorf("the other one has %q", got)
	}
}

// An agent's git knows the branches and tags of the person, and nothing that was put aside: neither their stash nor the work that is kept.
func TestRefsOfAnAgentsGit(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n"})
	x.person("tag", "-a", "-m", "first", "v1")
	x.person("update-ref", KeptRefs+"other/1", x.head())
	x.write("a.txt", "mine\n")
	x.person("stash", "-q")
	for _, branch := range []string{"loose", "packed"} {
		if branch == "packed" {
			x.person("pack-refs", "--all")
		}
		c := x.takeHead(branch)
		got := x.sh(c, "git for-each-ref --format='%(refname)' | sort; git stash pop 2>&1; cat a.txt")
		if want := fmt.Sprintf("refs/heads/%s\nrefs/heads/%s\nrefs/tags/v1\nNo stash entries found.\na\n", min(branch, "main"), max(branch, "main")); got != want {
			t.Errorf("%s: an agent has %q, want %q", branch, got, want)
		}
		release(t, c, x.head())
	}
}

// A repository whose refs are not in files has no overlays, in which an agent's git would know none of its branches: it gets a whole checkout.
func TestNoOverlayForOtherRefs(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n"})
	x.opts.Workspaces = WorkspacesAuto
	put(t, filepath.Join(x.top, ".git", "more"), "[extensions]\n\trefStorage = reftable\n")
	x.person("config", "include.path", "more") // where this git, which may not know them, does not look for itself
	c := x.takeHead("work")
	if got := x.sh(c, "git branch --show-current; git for-each-ref --format='%(refname)' refs/heads/main; cat a.txt"); c.Layered() || got != "work\nrefs/heads/main\na\n" {
		t.Errorf("an overlay: %v; an agent sees %q", c.Layered(), got)
	}
	release(t, c, x.head())
}
