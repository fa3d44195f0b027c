package worktree

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/worktree/gitobj"
)

// begin takes a snapshot of what the person sees, as a mission does.
func (x *rig) begin() centurion.Base {
	x.t.Helper()
	b, err := x.Snapshot(x.t.Context(), "refs/centurion/base/m", true)
	if err != nil {
		x.t.Fatal(err)
	}
	return b
}

// files reads the person's working tree.
func (x *rig) files() map[string]string {
	x.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(x.top, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.Name() == ".git" {
			if err == nil && d.IsDir() {
				return filepath.SkipDir
			}
			return err
		}
		if rel, _ := filepath.Rel(x.top, p); !d.IsDir() {
			if d.Type()&os.ModeSymlink != 0 {
				to, _ := os.Readlink(p)
				all[filepath.ToSlash(rel)] = "-> " + to
			} else {
				all[filepath.ToSlash(rel)] = get(x.t, p)
			}
		}
		return nil
	})
	if err != nil {
		x.t.Fatal(err)
	}
	return all
}

// state is everything of the person's that a refused merge leaves alone.
func (x *rig) state() string {
	x.t.Helper()
	index, _ := os.ReadFile(filepath.Join(x.top, ".git", "index"))
	head, _ := tryGit(x.t.Context(), x.top, "rev-parse", "HEAD")
	var b strings.Builder
	all := x.files()
	for _, p := range slices.Sorted(maps.Keys(all)) {
		b.WriteString(p + "=" + all[p] + "\n")
	}
	for _, name := range []string{"index.lock", journalName} {
		if _, err := os.Lstat(filepath.Join(x.top, ".git", name)); err == nil {
			b.WriteString("left: " + name + "\n")
		}
	}
	return head + b.String() + string(index)
}

func (x *rig) status() string { x.t.Helper(); return x.person("status", "--porcelain") }

func (x *rig) merged(o MergeOptions) Merging {
	x.t.Helper()
	m, err := x.Merge(x.t.Context(), o)
	if err != nil || !m.Clear() || m.After != x.person("rev-parse", "HEAD") {
		x.t.Fatalf("%+v, %v", m, err)
	}
	return m
}

func (x *rig) want(files map[string]string, status string) {
	x.t.Helper()
	all := x.files()
	for name, want := range files {
		if got, ok := all[name]; got != want || !ok && want != "" {
			x.t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	if got := x.status(); got != status {
		x.t.Errorf("status\n%s\nnot\n%s", got, status)
	}
}

func five(s string) string { return strings.Replace(long, "5\n", s+"\n", 1) }
func nine(s string) string { return strings.Replace(s, "9\n", "nine\n", 1) }

func TestMergeFastForward(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long, "gone": "g\n", "d/e": "e\n", "other": "o\n"})
	base := x.begin()
	one := x.commitOf(base.Commit, map[string][]byte{"a": []byte(five("five")), "new/x": []byte("n\n")}, "gone")
	tip := x.modeOf(x.modeOf(x.commitOf(one, nil, "d/e"), "run", gitobj.ModeExec, "#!\n"), "link", gitobj.ModeLink, "a")
	before := x.state()
	o := MergeOptions{Base: base, Tip: tip}
	p, err := x.Preview(t.Context(), o)
	if err != nil || !p.Clear() || p.After != "" || p.Before != base.Head || p.Branch != "main" || len(p.Files) != 6 {
		t.Fatalf("%+v, %v", p, err)
	}
	if x.state() != before {
		t.Error("a preview has touched something")
	}
	m := x.merged(o)
	if m.After != tip || len(m.Files) != 6 {
		t.Errorf("%+v", m)
	}
	x.want(map[string]string{"a": five("five"), "new/x": "n\n", "gone": "", "d/e": "", "run": "#!\n", "link": "-> a", "other": "o\n"}, "")
	if info, err := os.Stat(filepath.Join(x.top, "run")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("the mode is %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(x.top, "d")); err == nil {
		t.Error("an empty directory stays")
	}
	if again := x.merged(o); again.Before != tip || again.After != tip {
		t.Errorf("the second time: %+v", again)
	}
	u, err := x.Undo(t.Context(), centurion.Merged{Branch: "main", Before: m.Before, Commit: m.After})
	if err != nil || u.After != base.Head || x.person("rev-parse", "HEAD") != base.Head {
		t.Fatalf("%+v, %v", u, err)
	}
	x.want(map[string]string{"a": long, "gone": "g\n", "d/e": "e\n", "new/x": "", "run": "", "link": ""}, "")
}

// What the mission began with uncommitted stays uncommitted, and is in no commit.
func TestMergeKeepsUncommitted(t *testing.T) {
	t.Parallel()
	for _, squash := range []bool{false, true} {
		x := newRig(t, map[string]string{"a": long, "b": "b\n", "staged": "s\n"})
		x.write("a", strings.Replace(long, "1\n", "mine\n", 1))
		x.write("b", "my b\n")
		x.write("untracked", "u\n")
		x.write("staged", "S\n")
		x.person("add", "staged")
		base := x.begin()
		one := x.commitOf(base.Commit, content(nine(strings.Replace(long, "1\n", "mine\n", 1))))
		tip := x.commitOf(one, map[string][]byte{"new": []byte("n\n")})
		m := x.merged(MergeOptions{Base: base, Tip: tip, Squash: squash, Message: "All of it"})
		x.want(map[string]string{"a": nine(strings.Replace(long, "1\n", "mine\n", 1)), "b": "my b\n", "new": "n\n", "untracked": "u\n", "staged": "S\n"},
			"M a\n M b\nM  staged\n?? untracked")
		if got := x.person("show", "HEAD:a"); got+"\n" != nine(long) {
			t.Errorf("the commit has %q", got)
		}
		if log := x.person("log", "--format=%s", base.Head+".."); log != map[bool]string{true: "All of it", false: "Change\nChange"}[squash] {
			t.Errorf("the commits are %q", log)
		}
		if x.person("rev-list", "--count", "HEAD") != map[bool]string{true: "2", false: "3"}[squash] {
			t.Error("the snapshot is in the history")
		}
		// The same file has uncommitted work of the person: it stays, as far as it comes apart from what is taken back.
		merged := centurion.Merged{Branch: "main", Before: m.Before, Commit: m.After}
		x.write("a", strings.Replace(nine(strings.Replace(long, "1\n", "mine\n", 1)), "nine", "NINE", 1))
		before := x.state()
		for _, undo := range []func(context.Context, centurion.Merged) (Merging, error){x.PreviewUndo, x.Undo} {
			if u, err := undo(t.Context(), merged); err != nil || !slices.Equal(u.Overlap, []string{"a"}) || x.state() != before {
				t.Errorf("%+v, %v", u, err)
			}
		}
		x.write("a", nine(strings.Replace(long, "1\n", "other\n", 1))) // not as the mission found it
		before = x.state()
		if u, err := x.PreviewUndo(t.Context(), merged); err != nil || !u.Clear() || u.After != "" || len(u.Files) != 2 || x.state() != before {
			t.Errorf("%+v, %v", u, err)
		}
		if u, err := x.Undo(t.Context(), merged); err != nil || !u.Clear() || u.After != base.Head {
			t.Errorf("%+v, %v", u, err)
		}
		x.want(map[string]string{"a": strings.Replace(long, "1\n", "other\n", 1), "b": "my b\n", "new": "", "untracked": "u\n", "staged": "S\n"},
			"M a\n M b\nM  staged\n?? untracked")
	}
}

func TestMergeMovedOn(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long, "b": "b\n"})
	base := x.begin()
	tip := x.commitOf(base.Commit, map[string][]byte{"a": []byte(nine(long)), "new": []byte("n\n")})
	x.write("a", five("person"))
	x.person("commit", "-qam", "mine")
	head := x.person("rev-parse", "HEAD")
	m := x.merged(MergeOptions{Base: base, Tip: tip, Message: "Merge it"})
	x.want(map[string]string{"a": nine(five("person")), "new": "n\n"}, "")
	if got := x.person("log", "-1", "--format=%P %s"); got != head+" "+tip+" Merge it" {
		t.Errorf("the merge is %q", got)
	}
	// A commit on top: the merge is reverted by one more; the person's own stays.
	x.write("b", "later\n")
	x.person("commit", "-qam", "later")
	x.write("b", "uncommitted\n")
	u, err := x.Undo(t.Context(), centurion.Merged{Branch: "main", Before: m.Before, Commit: m.After})
	if err != nil || !u.Clear() || u.After != x.person("rev-parse", "HEAD") || x.person("rev-list", "--count", "HEAD", "--first-parent") != "5" {
		t.Fatalf("%+v, %v", u, err)
	}
	x.want(map[string]string{"a": five("person"), "new": "", "b": "uncommitted\n"}, "M b")
}

func TestMergeOnly(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long})
	base := x.begin()
	one := x.commitOf(base.Commit, content(five("five")))
	two := x.commitOf(one, map[string][]byte{"two": []byte("2\n")})
	three := x.commitOf(two, content(nine(five("five"))))
	x.merged(MergeOptions{Base: base, Tip: three, Only: []string{two, three}})
	x.want(map[string]string{"a": nine(long), "two": "2\n"}, "")
	if n := x.person("rev-list", "--count", "HEAD"); n != "3" {
		t.Errorf("%s commits", n)
	}
	if m := x.merged(MergeOptions{Base: base, Tip: three, Only: []string{two}, Squash: true, Message: "Again"}); m.After != m.Before {
		t.Error("what is there already was committed once more")
	}
	m := x.merged(MergeOptions{Base: base, Tip: three})
	x.want(map[string]string{"a": nine(five("five")), "two": "2\n"}, "")
	if m.After == m.Before {
		t.Error("the rest was not merged")
	}
}

func TestMergeRefuses(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a": long, "b": "b\n", "gone": "g\n", ".gitignore": "ignored\n"}
	work := func(x *rig, base centurion.Base) string {
		return x.commitOf(base.Commit, map[string][]byte{"a": []byte(nine(long)), "new/file": []byte("n\n"), "ignored": []byte("i\n")}, "gone")
	}
	tests := map[string]struct {
		before, after func(x *rig) // of the snapshot
		work          func(x *rig, base centurion.Base) string
		overlap       []string
		conflicts     string
	}{
		"changed since":        {after: func(x *rig) { x.write("a", five("mine")) }, overlap: []string{"a"}},
		"staged":               {after: func(x *rig) { x.write("a", five("mine")); x.person("add", "a"); x.write("a", long) }, overlap: []string{"a"}},
		"deleted by person":    {after: func(x *rig) { os.Remove(filepath.Join(x.top, "a")) }, overlap: []string{"a"}},
		"deleted by mission":   {after: func(x *rig) { x.write("gone", "changed\n") }, overlap: []string{"gone"}},
		"untracked":            {after: func(x *rig) { x.write("new/file", "mine\n") }, overlap: []string{"new/file"}},
		"ignored":              {after: func(x *rig) { x.write("ignored", "mine\n") }, overlap: []string{"ignored"}},
		"directory in the way": {after: func(x *rig) { x.write("new/file/below", "mine\n") }, overlap: []string{"new/file"}},
		"file in the way":      {after: func(x *rig) { x.write("new", "mine\n") }, overlap: []string{"new/file"}},
		"link in the way":      {after: func(x *rig) { os.Symlink(x.t.TempDir(), filepath.Join(x.top, "new")) }, overlap: []string{"new/file"}},
		"mode":                 {after: func(x *rig) { os.Chmod(filepath.Join(x.top, "a"), 0o755) }, overlap: []string{"a"}},
		"snapshot then more": {before: func(x *rig) { x.write("a", five("mine")) }, after: func(x *rig) { x.write("a", five("more")) },
			work: func(x *rig, base centurion.Base) string { return x.commitOf(base.Commit, content(nine(five("mine")))) }, overlap: []string{"a"}},
		"same lines": {before: func(x *rig) { x.write("a", five("mine")) },
			work: func(x *rig, base centurion.Base) string { return x.commitOf(base.Commit, content(five("MINE"))) }, conflicts: "a"},
		"renamed, worked on": {before: func(x *rig) { os.Remove(filepath.Join(x.top, "a")); x.write("moved", five("mine")) },
			work: func(x *rig, base centurion.Base) string {
				return x.commitOf(base.Commit, map[string][]byte{"moved": []byte(five("MINE"))})
			}, conflicts: "a"},
		"untracked, worked on": {before: func(x *rig) { x.write("u", "u\n") },
			work: func(x *rig, base centurion.Base) string {
				return x.commitOf(base.Commit, map[string][]byte{"u": []byte("u\nmore\n")})
			}, conflicts: "u"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newRig(t, files)
			if tt.before != nil {
				tt.before(x)
			}
			base := x.begin()
			if tt.work == nil {
				tt.work = work
			}
			o := MergeOptions{Base: base, Tip: tt.work(x, base)}
			if tt.after != nil {
				tt.after(x)
			}
			before := x.state()
			for range 2 {
				m, err := x.Merge(t.Context(), o)
				if err != nil || m.After != "" || m.Clear() || !slices.Equal(m.Overlap, tt.overlap) {
					t.Fatalf("%+v, %v", m, err)
				}
				if tt.conflicts != "" && (len(m.Conflicts) != 1 || m.Conflicts[0].Path != tt.conflicts || !m.Conflicts[0].Uncommitted) {
					t.Errorf("%+v", m.Conflicts)
				}
				if x.state() != before {
					t.Error("something was touched")
				}
			}
			if tt.conflicts == "" {
				return
			}
			// As it says: they commit, and then it can be merged.
			x.person("add", "-A")
			x.person("commit", "-qm", "mine")
			x.merged(o)
			x.want(nil, "")
		})
	}
}

// What the person has committed since, in another way than the mission knew it, is not told as uncommitted.
func TestConflictWithWhatIsCommitted(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long})
	x.write("a", five("mine"))
	base := x.begin()
	o := MergeOptions{Base: base, Tip: x.commitOf(base.Commit, content(five("MINE")))}
	x.write("a", five("other"))
	x.person("commit", "-qam", "other")
	m, err := x.Merge(t.Context(), o)
	if err != nil || len(m.Conflicts) != 1 || m.Conflicts[0].Path != "a" || m.Conflicts[0].Uncommitted {
		t.Errorf("%+v, %v", m.Conflicts, err)
	}
}

// In the middle of something of their own, the person is left alone.
func TestMergeWhileBusy(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long})
	base := x.begin()
	o := MergeOptions{Base: base, Tip: x.commitOf(base.Commit, map[string][]byte{"n": []byte("1")})}
	refused := func(what string) {
		t.Helper()
		before := x.state()
		if _, err := x.Merge(t.Context(), o); centurion.KindOf(err) != centurion.KindConflict || centurion.HintOf(err) == "" {
			t.Errorf("%s: %v", what, err)
		}
		if x.state() != before {
			t.Errorf("%s: something was touched", what)
		}
	}
	lock := filepath.Join(x.top, ".git", "index.lock")
	put(t, lock, "")
	refused("a git at work")
	os.Remove(lock)
	x.person("checkout", "-qb", "side")
	x.write("a", five("side"))
	x.person("commit", "-qam", "side")
	x.person("checkout", "-q", "main")
	x.write("a", five("main"))
	x.person("commit", "-qam", "main")
	if _, err := tryGit(t.Context(), x.top, "merge", "side"); err == nil {
		t.Fatal("no conflict")
	}
	refused("a merge")
	os.Remove(filepath.Join(x.top, ".git", "MERGE_HEAD"))
	refused("an unmerged index")
}

func TestMergeDetachedAndUnborn(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long})
	x.person("checkout", "-q", "--detach")
	base := x.begin()
	m := x.merged(MergeOptions{Base: base, Tip: x.commitOf(base.Commit, content(nine(long)))})
	if m.Branch != "" || x.person("rev-parse", "main") != base.Head {
		t.Errorf("%+v", m)
	}
	x.want(map[string]string{"a": nine(long)}, "")

	x = newRig(t, nil)
	x.write("mine", "m\n")
	base = x.begin()
	m = x.merged(MergeOptions{Base: base, Tip: x.commitOf(base.Commit, map[string][]byte{"n": []byte("1\n")})})
	if m.Before != "" || m.Branch != "main" || x.person("rev-list", "--count", "HEAD") != "1" {
		t.Errorf("%+v", m)
	}
	x.want(map[string]string{"n": "1\n", "mine": "m\n"}, "?? mine")
	u, err := x.Undo(t.Context(), centurion.Merged{Branch: "main", Commit: m.After})
	if err != nil || u.After != "" || !u.Clear() {
		t.Fatalf("%+v, %v", u, err)
	}
	x.want(map[string]string{"n": "", "mine": "m\n"}, "?? mine")
	if h, err := x.Head(t.Context()); err != nil || h.Commit != "" {
		t.Errorf("%+v, %v", h, err)
	}
}

// A history that was rewritten does not come back with the mission's.
func TestMergeAfterAmend(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long})
	x.write("secret", "s\n")
	x.person("add", "-A")
	x.person("commit", "-qm", "with a secret")
	base := x.begin()
	tip := x.commitOf(base.Commit, content(nine(long)))
	x.person("reset", "-q", "--hard", "HEAD^")
	x.merged(MergeOptions{Base: base, Tip: tip})
	x.want(map[string]string{"a": nine(long), "secret": ""}, "")
	if log := x.person("log", "--format=%s"); strings.Contains(log, "secret") {
		t.Error(log)
	}
}

// Line ends and filters are the person's.
func TestMergeLineEnds(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{".gitattributes": "*.txt text eol=crlf\n", "a.txt": "1\n2\n"})
	base := x.begin()
	if base.Dirty != 0 {
		t.Fatal("dirty")
	}
	tip := x.commitOf(base.Commit, map[string][]byte{"a.txt": []byte("1\n2\n3\n"), "b.txt": []byte("b\n")})
	x.merged(MergeOptions{Base: base, Tip: tip})
	x.want(map[string]string{"a.txt": "1\r\n2\r\n3\r\n", "b.txt": "b\r\n"}, "")
}

// Files and directories change places.
func TestMergeFileAndDirectory(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"d": "file\n", "e/f": "below\n", "e/g/h": "deep\n"})
	base := x.begin()
	tip := x.commitOf(base.Commit, nil, "d", "e/f", "e/g/h")
	tip = x.commitOf(tip, map[string][]byte{"d/x": []byte("x\n"), "e": []byte("file\n")})
	m := x.merged(MergeOptions{Base: base, Tip: tip})
	x.want(map[string]string{"d/x": "x\n", "e": "file\n"}, "")
	if u, err := x.Undo(t.Context(), centurion.Merged{Branch: "main", Before: m.Before, Commit: m.After}); err != nil || !u.Clear() {
		t.Fatalf("%+v, %v", u, err)
	}
	x.want(map[string]string{"d": "file\n", "e/f": "below\n", "e/g/h": "deep\n"}, "")
}

// Killed at any file, the next merge completes it; what fails in the middle is taken back.
func TestMergeInterrupted(t *testing.T) {
	t.Parallel()
	for kept := range 4 {
		x := newRig(t, map[string]string{"a": long, "b": "b\n", "c": "c\n"})
		base := x.begin()
		tip := x.commitOf(base.Commit, map[string][]byte{"a": []byte(nine(long)), "n/n": []byte("n\n")}, "b")
		o := MergeOptions{Base: base, Tip: tip}
		ctx := t.Context()
		p, err := x.plan(ctx, base.Head, tip, mine{snapshot: base.Commit})
		if err != nil || len(p.steps) != 3 {
			t.Fatalf("%+v, %v", p, err)
		}
		if _, err := x.lockIndex(); err != nil { // and nobody unlocks it
			t.Fatal(err)
		}
		if err := x.writeJournal(journal{p.before, p.after, p.tree, p.steps, p.change}); err != nil {
			t.Fatal(err)
		}
		if kept > 0 {
			if err := x.moveHead(ctx, base.Head, tip); err != nil {
				t.Fatal(err)
			}
			if err := p.place.stage(ctx, p.dir, p.tree, p.steps); err != nil {
				t.Fatal(err)
			}
			if err := p.place.place(p.dir, p.steps[:kept-1], p.seen.infos); err != nil {
				t.Fatal(err)
			}
		}
		p.close()
		if _, err := x.Preview(ctx, o); centurion.KindOf(err) != centurion.KindConflict {
			t.Errorf("a preview: %v", err)
		}
		x.merged(o)
		x.want(map[string]string{"a": nine(long), "b": "", "c": "c\n", "n/n": "n\n"}, "")
	}
}

// What cannot be written in the middle is taken back: an empty directory is seen only when the file is to be put there.
func TestMergeFails(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long, "b": "b\n"})
	base := x.begin()
	tip := x.commitOf(base.Commit, map[string][]byte{"a": []byte(nine(long)), "n": []byte("n\n"), "new/n": []byte("n\n"), "z": []byte("z\n")}, "b")
	if err := os.MkdirAll(filepath.Join(x.top, "z", "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	before := x.state()
	if m, err := x.Merge(t.Context(), MergeOptions{Base: base, Tip: tip}); err == nil || m.After != "" {
		t.Errorf("%+v, %v", m, err)
	}
	if x.state() != before {
		t.Error("something was touched")
	}
}
