package worktree

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/sandbox"
	"centurion/sandbox/confine"
)

// layeredRig is a rig whose checkouts are made of layers.
func layeredRig(t testing.TB, files map[string]string) *rig {
	t.Helper()
	return layeredRigAt(t, "", files)
}

func layeredRigAt(t testing.TB, prefix string, files map[string]string) *rig {
	t.Helper()
	x := newRigAt(t, filepath.Join(t.TempDir(), "ein Prüf stand"), prefix, files)
	x.reopenLayered()
	return x
}

// reopenLayered opens the repository as a new host does.
func (x *rig) reopenLayered() {
	x.t.Helper()
	home, cache := filepath.Join(filepath.Dir(x.top), "home"), filepath.Join(filepath.Dir(x.top), "cache")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		x.t.Fatal(err)
	}
	r := &sandbox.Runner{Grace: 50 * time.Millisecond, Env: []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"},
		Confine: &sandbox.Confinement{Way: confine.Full, Read: []string{x.top}, Hide: []string{home}, Empty: []string{"/dev/shm"}, Caches: []string{cache}, Dir: filepath.Join(filepath.Dir(x.top), "places")}}
	x.t.Cleanup(func() {
		if err := r.Close(); err != nil {
			x.t.Error(err)
		}
		if err := sandbox.RemovePlaces(filepath.Join(filepath.Dir(x.top), "home")); err != nil { // the kernel's directories have no rights
			x.t.Error(err)
		}
	})
	x.Repo = x.openWith(Options{Runner: r, Workspaces: WorkspacesOverlay})
}

// sh runs a script in the project's directory of a checkout, as an agent does.
func (x *rig) sh(c *Checkout, script string) string {
	x.t.Helper()
	_, at, err := c.Files(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	run := x.opts.Runner
	if !c.layered() {
		run = &sandbox.Runner{Env: []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"}}
	}
	res, err := run.Run(x.t.Context(), centurion.Command{Script: script, Dir: at.Dir, Workspace: at.Workspace})
	if err != nil || res.ExitCode != 0 {
		x.t.Fatalf("%s: %d, %v\n%s", script, res.ExitCode, err, res.Output)
	}
	return res.Output
}

// An agent works at the project's own path, and what it changes is its work; the person's files and the repository stay as they are.
func TestLayeredCheckout(t *testing.T) {
	for _, prefix := range []string{"", "sub/project"} {
		t.Run(prefix, func(t *testing.T) {
			p := ""
			if prefix != "" {
				p = prefix + "/"
			}
			x := layeredRigAt(t, prefix, map[string]string{p + "a.txt": "a\n", p + "d/b.txt": "b\n", p + "d/c.txt": "c\n", p + ".gitignore": "*.log\nout/\n", "top.txt": "top\n"})
			put(t, filepath.Join(x.dir, ".opencode", "todo.md"), "# plan\n")
			refs := x.person("for-each-ref", "refs/heads/main", "refs/tags")
			c := x.takeHead("centurion/m/t1")
			if got := x.sh(c, "pwd; ls -A; cat a.txt .opencode/todo.md; git status --short; git log --oneline | wc -l; git branch --show-current"); got !=
				x.dir+"\n"+map[string]string{"": ".git\n.gitignore\n.opencode\na.txt\nd\ntop.txt\n", "sub/project": ".gitignore\n.opencode\na.txt\nd\n"}[prefix]+"a\n# plan\n1\ncenturion/m/t1\n" {
				t.Errorf("an agent sees %q", got)
			}
			if files, err := c.Uncommitted(t.Context()); len(files) > 0 || err != nil {
				t.Errorf("uncommitted before any work: %v, %v", files, err)
			}
			x.sh(c, "echo new > new.txt && echo A >> a.txt && rm d/b.txt && mkdir out && echo o > out/o && echo l > x.log && mkdir -p pkg/deep && echo p > pkg/deep/p && git stash list && git -c user.name=A -c user.email=a@localhost commit -qam own && git tag mine")
			want := []string{p + "a.txt", p + "d/b.txt", p + "new.txt", p + "pkg/deep/p"}
			files, err := c.Uncommitted(t.Context())
			if slices.Sort(files); !slices.Equal(files, want) || err != nil {
				t.Errorf("uncommitted %v, %v, want %v", files, err, want)
			}
			done, err := c.Commit(t.Context(), "Work")
			if err != nil {
				t.Fatal(err)
			}
			if got := x.person("show", "--name-status", "--format=%P", done.ID); got != x.person("rev-parse", "HEAD")+"\n\nM\t"+p+"a.txt\nD\t"+p+"d/b.txt\nA\t"+p+"new.txt\nA\t"+p+"pkg/deep/p" {
				t.Errorf("the commit is %q", got)
			}
			if kept := x.person("log", "--format=%s", "--glob=refs/centurion/kept"); !strings.HasPrefix(kept, "own\n") {
				t.Errorf("the agent's own commit is not kept: %q", kept)
			}
			if got := x.sh(c, "git status --short; git log -1 --format=%s"); got != "Work\n" {
				t.Errorf("after the commit the agent sees %q", got)
			}
			if now := x.person("for-each-ref", "refs/heads/main", "refs/tags"); now != refs {
				t.Errorf("the person's refs are %q, were %q", now, refs)
			}
			if got := x.person("status", "--short"); got != "" {
				t.Errorf("the person's files have changed: %s", got)
			}
			kept, err := c.Release(t.Context(), "")
			if err != nil || kept != "centurion/m/t1" {
				t.Errorf("released: %q, %v", kept, err)
			}
			if left := x.names(); len(left) > 0 {
				t.Errorf("slots are left: %v", left)
			}
		})
	}
}

// R3: a host that dies loses nothing: the next one mounts the same upper layer.
func TestLayeredCheckoutOutlivesHost(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n"})
	c := x.takeHead("centurion/m/t1")
	x.sh(c, "echo more >> a.txt; echo n > n.txt")
	at := c.Where()
	x.reopenLayered()
	if err := os.Remove(filepath.Join(x.layers.files(x.layers.ids("base-")[0]), "a.txt")); err != nil { // even if somebody has broken the base
		t.Fatal(err)
	}
	again, err := x.Reopen(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if got := x.sh(again, "cat a.txt n.txt; git status --short"); got != "a\nmore\nn\n M a.txt\n?? n.txt\n" {
		t.Errorf("after a restart: %q", got)
	}
	if done, err := again.Commit(t.Context(), "Work"); err != nil || len(done.Files) != 2 {
		t.Errorf("committed %+v, %v", done, err)
	}
}

// A checkout moves to a later commit with what git ignores left in place; the next ones start there, on a delta.
func TestLayeredMove(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n", "d/b.txt": "b\n", "e/f/g.txt": "g\n", ".gitignore": "*.log\n"})
	c := x.takeHead("centurion/m/t1")
	x.sh(c, "echo 1 > build.log")
	x.person("mv", "d/b.txt", "moved.txt")
	x.person("rm", "-rq", "e")
	put(t, filepath.Join(x.top, "a.txt"), "changed\n")
	if err := os.Remove(filepath.Join(x.top, "d")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	put(t, filepath.Join(x.top, "d"), "now a file\n")
	put(t, filepath.Join(x.top, "run.sh"), "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(x.top, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	x.person("add", "-A")
	x.person("commit", "-qm", "second")
	head := x.person("rev-parse", "HEAD")
	if err := c.Move(t.Context(), head); err != nil {
		t.Fatal(err)
	}
	const look = "cat a.txt moved.txt d; ./run.sh; test ! -e e; git status --short"
	if got := x.sh(c, look+"; cat build.log"); got != "changed\nb\nnow a file\n1\n" {
		t.Errorf("after the move: %q", got)
	}
	if files, err := c.Uncommitted(t.Context()); len(files) > 0 || err != nil {
		t.Errorf("uncommitted after the move: %v, %v", files, err)
	}
	x.sh(c, "rm moved.txt; echo g > d2")
	files, err := c.Uncommitted(t.Context())
	if slices.Sort(files); !slices.Equal(files, []string{"d2", "moved.txt"}) || err != nil {
		t.Errorf("uncommitted: %v, %v", files, err)
	}
	next := x.takeHead("centurion/m/t2")
	if got := x.sh(next, look); got != "changed\nb\nnow a file\n" {
		t.Errorf("a later checkout: %q", got)
	}
	if n := len(x.layers.ids("base-")) + len(x.layers.ids("delta-")); n != 2 {
		t.Errorf("%d layers, want a base and a delta", n)
	}
}

// A checkout of layers becomes one with all files, and its work goes on there.
func TestExpand(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n", "d/b.txt": "b\n", "d/c.txt": "c\n", "e/f.txt": "f\n", "package-lock.json": "1\n", ".gitignore": "*.log\nnode_modules/\n"})
	put(t, filepath.Join(x.top, ".opencode", "todo.md"), "# plan\n")
	c, err := x.Take(t.Context(), Want{Branch: "centurion/m/t1", Commit: x.head(), Setup: []string{"mkdir node_modules && echo dep > node_modules/dep"}})
	if err != nil {
		t.Fatal(err)
	}
	x.sh(c, "echo 1 >> a.txt")
	first := commit(t, c)
	x.sh(c, "rm d/b.txt; rm -r e && mkdir e && echo new > e/g.txt; echo l > x.log; ln -s nowhere link; mkdir empty; echo u > u.txt")
	before, err := c.Uncommitted(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := c.Where()
	if err := c.Expand(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := c.Where(); now.Dir != at.Dir || now.Start != at.Start || now.Overlay || !at.Overlay {
		t.Errorf("it is at %v, was at %v", now, at)
	}
	if got := gitIn(t, at.Dir, "status", "--short"); got != "D d/b.txt\n D e/f.txt\n?? e/g.txt\n?? link\n?? u.txt" {
		t.Errorf("git status: %q", got)
	}
	for name, want := range map[string]string{"a.txt": "a\n1\n", "d/c.txt": "c\n", "e/g.txt": "new\n", "x.log": "l\n", "node_modules/dep": "dep\n", ".opencode/todo.md": "# plan\n"} {
		if got := get(t, filepath.Join(at.Dir, name)); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	after, err := c.Uncommitted(t.Context())
	slices.Sort(before)
	slices.Sort(after)
	if err != nil || !slices.Equal(before, after) || len(before) != 5 {
		t.Errorf("uncommitted %v, %v; before %v", after, err, before)
	}
	done := commit(t, c)
	if got := x.person("show", "--name-status", "--format=", done.ID); done.Parent != first.Parent || got != "M\ta.txt\nD\td/b.txt\nR100\te/f.txt\te/g.txt\nA\tlink\nA\tu.txt" && !strings.Contains(got, "D\te/f.txt") {
		t.Errorf("the commit has %q", got)
	}
	if again, err := x.Reopen(t.Context(), at); err == nil {
		t.Errorf("reopened while in use: %v", again)
	}
	release(t, c, "")
}

// A setup runs once for all workspaces, and again only when a lock file changes; what it leaves is nobody's work.
func TestSetupLayer(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n", "package-lock.json": "1\n", ".gitignore": "node_modules/\n"})
	setup := []string{"mkdir -p node_modules/x gen; date +%N > node_modules/x/stamp; echo g > gen/g; echo touched >> a.txt"}
	head := x.person("rev-parse", "HEAD")
	var stamps []string
	for i := range 3 {
		c, err := x.Take(t.Context(), Want{Branch: fmt.Sprintf("centurion/m/t%d", i), Commit: head, Setup: setup})
		if err != nil {
			t.Fatal(err)
		}
		stamps = append(stamps, x.sh(c, "cat a.txt gen/g node_modules/x/stamp"))
		if files, err := c.Uncommitted(t.Context()); len(files) > 0 || err != nil {
			t.Errorf("the setup counts as work: %v, %v", files, err)
		}
		if i == 2 {
			x.write("package-lock.json", "2\n")
			x.person("commit", "-qam", "more")
			if err := c.Move(t.Context(), x.person("rev-parse", "HEAD")); err != nil {
				t.Fatal(err)
			}
			if got := x.sh(c, "cat a.txt gen/g node_modules/x/stamp"); got == stamps[0] || !strings.HasPrefix(got, "a\ng\n") {
				t.Errorf("after a lock file has changed: %q, before %q", got, stamps[0])
			}
			if files, err := c.Uncommitted(t.Context()); len(files) > 0 || err != nil {
				t.Errorf("the second setup counts as work: %v, %v", files, err)
			}
		}
	}
	if !strings.HasPrefix(stamps[0], "a\ng\n") || stamps[0] != stamps[1] || stamps[1] != stamps[2] {
		t.Errorf("the setup did not run once: %q", stamps)
	}
}

// Issue "Fifty workspaces" 5 and 9: what the setup has put into caches is there for all workspaces, what a check has built for the next check in
// its place, and the person's caches stay as they are.
func TestCachesOfLayers(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n"})
	ctx := t.Context()
	cache := filepath.Join(filepath.Dir(x.top), "cache")
	put(t, filepath.Join(cache, "old"), "old\n")
	in := "cd '" + cache + "'; "
	setup := []string{in + "echo module > module; echo changed > old"}
	take := func(w Want) *Checkout {
		t.Helper()
		w.Commit, w.Setup = x.head(), setup
		c, err := x.Take(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	one, two, check := take(Want{Branch: "one"}), take(Want{Branch: "two"}), take(Want{Check: true})
	for i, c := range []*Checkout{one, two, check} {
		if got := x.sh(c, in+"cat *"); got != "module\nchanged\n" {
			t.Errorf("%d: %q", i, got)
		}
		x.sh(c, fmt.Sprintf("%srm module; echo %d > built", in, i))
	}
	tree, err := x.With(ctx, "HEAD", map[string][]byte{"b.txt": []byte("b\n")})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := check.Clean(ctx, tree); err != nil {
			t.Fatal(err)
		}
		if got := x.sh(check, in+"cat *"); got != "2\nchanged\n" {
			t.Errorf("the next check: %q", got)
		}
		tree = "HEAD"
	}
	if got := x.sh(one, in+"cat *"); got != "0\nchanged\n" {
		t.Errorf("another workspace: %q", got)
	}
	if got := x.sh(take(Want{Branch: "three"}), in+"cat *"); got != "module\nchanged\n" {
		t.Errorf("a new workspace: %q", got)
	}
	if left, err := os.ReadDir(cache); len(left) != 1 || err != nil {
		t.Errorf("the person's cache has %d files, %v", len(left), err)
	}
	if b, err := os.ReadFile(filepath.Join(cache, "old")); string(b) != "old\n" || err != nil {
		t.Errorf("the person's cache has %q, %v", b, err)
	}
}

// Checks get a fresh upper layer for each tree, and a check that changes a tracked file is noticed.
func TestLayeredCheckRuns(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n", ".gitignore": "*.log\n"})
	bench, err := x.Take(t.Context(), Want{Commit: x.person("rev-parse", "HEAD"), Check: true})
	if err != nil {
		t.Fatal(err)
	}
	x.sh(bench, "echo 1 > a.txt; echo 2 > run.log; echo 3 > new.txt")
	if changed, err := bench.Changed(t.Context()); !slices.Equal(changed, []string{"a.txt"}) || err != nil {
		t.Errorf("changed %v, %v", changed, err)
	}
	tree, err := x.With(t.Context(), "HEAD", map[string][]byte{"b.txt": []byte("b\n")})
	if err != nil {
		t.Fatal(err)
	}
	if err := bench.Clean(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	if got := x.sh(bench, "ls; cat a.txt b.txt; git status --short"); got != "a.txt\nb.txt\na\nb\n" && !strings.HasPrefix(got, "a.txt\nb.txt\na\nb\n") {
		t.Errorf("the next check sees %q", got)
	}
	if changed, err := bench.Changed(t.Context()); len(changed) > 0 || err != nil {
		t.Errorf("changed %v, %v", changed, err)
	}
}

// An overlay over the home directory would hide caches and settings that commands need.
func TestNoOverlayOverTheHome(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n", "home/x": "x\n"})
	if how := x.Workspaces(); how != WorkspacesOverlay {
		t.Errorf("worktrees: %s", how)
	}
	t.Setenv("HOME", filepath.Join(x.top, "home"))
	if how := x.Workspaces(); how != "checkout: your home directory lies in the project" {
		t.Errorf("worktrees: %s", how)
	}
}

// Unused layers are collected, but not the newest base.
func TestLayersAreCollected(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n"})
	c := x.takeHead("centurion/m/t1")
	x.write("a.txt", "b\n")
	x.person("commit", "-qam", "second")
	next := x.takeHead("centurion/m/t2")
	if _, err := next.Release(t.Context(), x.person("rev-parse", "HEAD")); err != nil {
		t.Fatal(err)
	}
	if _, err := x.GC(t.Context(), func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if bases, deltas := x.layers.ids("base-"), x.layers.ids("delta-"); len(bases) != 1 || len(deltas) != 0 {
		t.Errorf("left: %v, %v", bases, deltas)
	}
	if got := x.sh(c, "cat a.txt"); got != "a\n" {
		t.Errorf("the other checkout has %q", got)
	}
}

// The same edits give the same trees and the same lists of changes, whichever way a checkout is made.
func TestLayersDifferential(t *testing.T) {
	files := map[string]string{".gitignore": "*.log\nbuild/\n!keep.log\n", "sub/.gitignore": "gen*\n", ".gitattributes": "*.crlf text eol=crlf\n", "x.crlf": "one\n"}
	for i := range 60 {
		files[fmt.Sprintf("d%d/e%d/f%d.txt", i%5, i%3, i)] = fmt.Sprintf("content %d\n", i)
	}
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	plain, layered := newRig(t, files), layeredRig(t, files)
	a, b := plain.takeHead("centurion/m/t"), layered.takeHead("centurion/m/t")
	for round := range 40 {
		var script strings.Builder
		for range 50 {
			script.WriteString(randomEdit(rng) + " 2>/dev/null\n")
		}
		script.WriteString("true\n")
		plain.sh(a, script.String())
		layered.sh(b, script.String())
		one, err := a.Uncommitted(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		two, err := b.Uncommitted(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(one)
		slices.Sort(two)
		ca, err := a.Commit(t.Context(), "round")
		if err != nil {
			t.Fatal(err)
		}
		cb, err := b.Commit(t.Context(), "round")
		if err != nil {
			t.Fatal(err)
		}
		if ca.Tree != cb.Tree {
			t.Fatalf("round %d of seed %d: trees differ\n%s\n%s\n%s", round, seed, script.String(), plain.person("ls-tree", "-r", ca.Tree), layered.person("ls-tree", "-r", cb.Tree))
		}
		if len(one) > 0 && !slices.Equal(one, two) {
			t.Fatalf("round %d of seed %d: uncommitted differ\n%v\n%v", round, seed, one, two)
		}
	}
}

// randomEdit is a shell command that changes something.
func randomEdit(rng *rand.Rand) string {
	dir := func() string {
		return []string{fmt.Sprintf("d%d", rng.IntN(6)), fmt.Sprintf("d%d/e%d", rng.IntN(6), rng.IntN(4)), "sub", "build", fmt.Sprintf("n%d", rng.IntN(4)), fmt.Sprintf("n%d/m%d", rng.IntN(4), rng.IntN(2))}[rng.IntN(6)]
	}
	file := func() string {
		return dir() + "/" + []string{fmt.Sprintf("f%d.txt", rng.IntN(60)), "x.log", "keep.log", "gen.txt", "y.crlf", "a b ü.txt"}[rng.IntN(6)]
	}
	f, g, d, e := file(), file(), dir(), dir()
	switch rng.IntN(14) {
	case 0, 1, 2:
		return fmt.Sprintf("mkdir -p '%s'; echo %d > '%s'", filepath.Dir(f), rng.IntN(5), f)
	case 3:
		return fmt.Sprintf("test -f '%s' && echo more >> '%s'", f, f)
	case 4, 5:
		return fmt.Sprintf("rm -f '%s'", f)
	case 6:
		return fmt.Sprintf("rm -rf '%s'", d)
	case 7:
		return fmt.Sprintf("test -f '%s' && mkdir -p '%s' && mv '%s' '%s'", f, filepath.Dir(g), f, g)
	case 8:
		return fmt.Sprintf("test -d '%s' && test ! -e '%s' && mkdir -p \"$(dirname '%s')\" && mv '%s' '%s'", d, e, e, d, e)
	case 9:
		return fmt.Sprintf("rm -rf '%s' && mkdir -p \"$(dirname '%s')\" && echo file > '%s'", d, d, d)
	case 10:
		return fmt.Sprintf("rm -rf '%s' && mkdir -p '%s' && echo in > '%s/in.txt'", f, f, f)
	case 11:
		return fmt.Sprintf("test -f '%s' && chmod %s '%s'", f, []string{"+x", "-x"}[rng.IntN(2)], f)
	case 12:
		return fmt.Sprintf("mkdir -p '%s'; ln -sfn ../%s '%s'", filepath.Dir(f), g, f)
	}
	return fmt.Sprintf("touch '%s'; rm -rf d%d && mkdir d%d && echo again > d%d/again.txt", f, rng.IntN(6), rng.IntN(6), rng.IntN(6))
}

// Issue "Fifty workspaces" 4: a worker in a workspace of layers takes at most ten processes of git from its start to its end, if another
// has landed meanwhile. Those that answer one question after the other are started once for all.
func TestProcessesOfLayeredTask(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n", "b.txt": "b\n", ".gitignore": "*.log\n"})
	ctx := t.Context()
	base, err := x.Tip(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Advance(ctx, "mission", "", base); err != nil {
		t.Fatal(err)
	}
	task := func(branch, script string) {
		t.Helper()
		tip, err := x.Tip(ctx, "mission")
		if err != nil {
			t.Fatal(err)
		}
		c, err := x.Take(ctx, Want{Branch: branch, Commit: base})
		if err != nil {
			t.Fatal(err)
		}
		x.sh(c, script)
		if _, err := c.Uncommitted(ctx); err != nil {
			t.Fatal(err)
		}
		done, err := c.Commit(ctx, branch)
		if err != nil {
			t.Fatal(err)
		}
		laid, err := x.Rebase(ctx, done.ID, tip)
		if err != nil || len(laid.Conflicts) > 0 {
			t.Fatal(laid, err)
		}
		if _, err := x.Diff(ctx, tip, laid.Commit); err != nil {
			t.Fatal(err)
		}
		if err := x.Advance(ctx, "mission", tip, laid.Commit); err != nil {
			t.Fatal(err)
		}
		if err := c.Move(ctx, laid.Commit); err != nil {
			t.Fatal(err)
		}
		if kept, err := c.Release(ctx, laid.Commit); kept != "" || err != nil {
			t.Fatal(kept, err)
		}
	}
	task("first", "echo 1 > one.txt")
	spent := counted(t, x.Repo)
	task("second", "echo 2 > two.txt; echo more >> b.txt; mkdir dir; echo 3 > dir/three.txt; echo x > dir/x.log")
	if n := spent(); n > 10 {
		t.Errorf("a task takes %d processes of git", n)
	}
	if got := x.person("ls-tree", "-r", "--name-only", "mission"); got != ".gitignore\na.txt\nb.txt\ndir/three.txt\none.txt\ntwo.txt" {
		t.Error(got)
	}
}

// The files of a workspace that was moved follow when it is used next: until then nobody takes those of others for removed, and what is
// changed meanwhile is kept.
func TestFilesFollow(t *testing.T) {
	for name, test := range map[string]struct{ before, after, want string }{
		"unused":               {"true", "cat a.txt b.txt new.txt", "A\nb\nnew\n"},
		"changed behind":       {"echo B > b.txt", "cat a.txt b.txt new.txt", "A\nB\nnew\n"},
		"agent's own git":      {"true", "git status --short; git log --format=%s -1", "others\n"},
		"its index, committed": {"true", "echo x > x; git add x; git -c user.name=a -c user.email=a@b commit -qm own; git status --short", ""},
	} {
		t.Run(name, func(t *testing.T) {
			x := layeredRig(t, map[string]string{"a.txt": "a\n", "b.txt": "b\n"})
			ctx := t.Context()
			c := x.takeHead("task")
			x.sh(c, "true")
			dir, _, err := c.Files(ctx)
			if err != nil {
				t.Fatal(err)
			}
			tip := x.commitOf(x.head(), map[string][]byte{"a.txt": []byte("A\n"), "new.txt": []byte("new\n")})
			tip, err = x.CommitTree(ctx, tip, x.head(), "others")
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Move(ctx, tip); err != nil {
				t.Fatal(err)
			}
			if c.Where().Start != tip {
				t.Error("it does not stand at the commit")
			}
			if test.before != "true" { // a process of an earlier command goes on to write
				if err := os.WriteFile(filepath.Join(dir, "b.txt"), []byte("B\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, look := range []func(context.Context) ([]string, error){c.Uncommitted, c.Changed} {
				want := []string(nil)
				if test.before != "true" {
					want = []string{"b.txt"}
				}
				if got, err := look(ctx); err != nil || !slices.Equal(got, want) {
					t.Errorf("changed: %q, not %q, %v", got, want, err)
				}
			}
			if test.before == "true" {
				if _, err := os.Stat(filepath.Join(dir, "new.txt")); err == nil && c.rec.Behind != "" {
					t.Error("the files were brought before they were used")
				}
				tree, err := x.Look(ctx, c.Where())
				if want, _ := x.tree(ctx, tip); err != nil || tree != want {
					t.Errorf("somebody who looks sees %s, %v", x.person("ls-tree", "-r", tree), err)
				}
			}
			x.reopenLayered() // a host that dies meanwhile loses nothing
			c, err = x.Reopen(ctx, c.Where())
			if err != nil {
				t.Fatal(err)
			}
			if got := x.sh(c, test.after); got != test.want {
				t.Errorf("%q, not %q", got, test.want)
			}
		})
	}
}

// A command of a person that runs nothing, such as gc, gives a workspace of layers back without losing what was written there.
func TestLayeredWithoutRunner(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n", "gone.txt": "g\n"})
	ctx := t.Context()
	c := x.takeHead("task")
	x.sh(c, "echo b > b.txt; rm gone.txt")
	at := c.Where()
	x.reopenLayered() // the first host is gone
	x.Repo = x.openWith(Options{})
	c, err := x.Reopen(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := c.Release(ctx, x.head()); kept != "task" || err != nil {
		t.Errorf("%q, %v", kept, err)
	}
	if got := x.person("ls-tree", "-r", "--name-only", "task"); got != "a.txt\nb.txt" {
		t.Error(got)
	}
}

// A change that leaves a file's size, and whose time is set back to what it was, is seen.
func TestChangeWithOldTime(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n"})
	c := x.takeHead("task")
	x.sh(c, "echo 1 > a.txt; touch -d '2020-01-01' a.txt; sleep 0.1")
	var trees []string
	for _, script := range []string{"true", "sleep 0.1; echo 2 > a.txt; touch -d '2020-01-01' a.txt; sleep 0.1", "true"} {
		x.sh(c, script)
		tree, err := c.scan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		trees = append(trees, tree)
	}
	if trees[0] == trees[1] || trees[1] != trees[2] {
		t.Errorf("trees %q", trees)
	}
}

// A workspace whose files are behind becomes one with all files, also where nothing can be mounted.
func TestExpandBehind(t *testing.T) {
	for name, changed := range map[string]string{"nothing": "true", "another file": "echo B > b.txt", "a new file": "echo n > mine.txt"} {
		t.Run(name, func(t *testing.T) {
			x := layeredRig(t, map[string]string{"a.txt": "a\n", "b.txt": "b\n", "gone.txt": "g\n"})
			ctx := t.Context()
			c := x.takeHead("task")
			dir, _, err := c.Files(ctx)
			if err != nil {
				t.Fatal(err)
			}
			tree := x.commitOf(x.head(), map[string][]byte{"a.txt": []byte("A\n"), "new.txt": []byte("new\n")}, "gone.txt")
			tip, err := x.CommitTree(ctx, tree, x.head(), "others")
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Move(ctx, tip); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("sh", "-c", "cd '"+dir+"' && "+changed).CombinedOutput(); err != nil { // a process of an earlier command
				t.Fatalf("%s, %v", out, err)
			}
			at := c.Where()
			x.reopenLayered()
			x.Repo = x.openWith(Options{})
			if c, err = x.Reopen(ctx, at); err != nil {
				t.Fatal(err)
			}
			if err := c.Expand(ctx); err != nil {
				t.Fatal(err)
			}
			at = c.Where()
			out, err := exec.Command("sh", "-c", "cd '"+at.Dir+"' && cat a.txt b.txt new.txt; ls gone.txt mine.txt 2>/dev/null; true").CombinedOutput()
			want := map[string]string{"nothing": "A\nb\nnew\n", "another file": "A\nB\nnew\n", "a new file": "A\nb\nnew\nmine.txt\n"}[name]
			if string(out) != want || err != nil {
				t.Errorf("%q, not %q, %v", out, want, err)
			}
			files, err := c.Uncommitted(ctx)
			if (len(files) > 0) != (changed != "true") || err != nil {
				t.Errorf("uncommitted: %q, %v", files, err)
			}
		})
	}
}
