package worktree

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"centurion"
	"centurion/worktree/gitobj"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	odd := "wéird \"name\"\n\there"
	x := newRig(t, map[string]string{"a": long, "gone": "1\n2\n", "moved": long + "11\n", "bin": "\x00a", "crlf": "1\r\n2\r\n", "noeol": "1\n2",
		odd: "x\n", "mode": "m\n", "tolink": "t\n"})
	ctx := t.Context()
	base := x.person("rev-parse", "HEAD")
	to := x.commitOf(base, map[string][]byte{"a": []byte("0\n" + strings.Replace(long, "9\n", "nine\n", 1)), "new": []byte("n\n"), "dir/moved": []byte(long + "eleven\n"),
		"bin": []byte("\x00b"), "crlf": []byte("1\r\n2\n"), "noeol": []byte("1\n2\n"), odd: []byte("y\n"), "empty": {}}, "gone", "moved")
	to = x.modeOf(to, "mode", gitobj.ModeExec, "m\n")
	to = x.modeOf(to, "tolink", gitobj.ModeLink, "a")
	tree, err := x.edit(ctx, to, map[string]entry{"sub": {Mode: gitobj.ModeSubmodule, ID: base}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := x.Diff(ctx, base, tree)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"modified a +2 -1 hunks 2", "modified bin binary hunks 0", "modified crlf +1 -1 hunks 1", "renamed dir/moved from moved +1 -1 hunks 1",
		"added empty +0 -0 hunks 0", "deleted gone +0 -2 hunks 1", "modified mode +0 -0 hunks 0", "added new +1 -0 hunks 1",
		"modified noeol +1 -1 hunks 1", "added sub +1 -0 hunks 0", "modified tolink +1 -1 hunks 0", "modified " + odd + " +1 -1 hunks 1",
	}
	var have []string
	for _, f := range got {
		s := f.Status + " " + f.Path
		if f.Old != "" {
			s += " from " + f.Old
		}
		if f.Binary {
			s += " binary"
		} else {
			s += fmt.Sprintf(" +%d -%d", f.Added, f.Deleted)
		}
		have = append(have, fmt.Sprintf("%s hunks %d", s, len(f.Hunks)))
	}
	if !slices.Equal(have, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
	h := got[0].Hunks[1]
	if h.NewStart != 7 || h.NewLines != 5 || h.Header != "@@ -6,5 +7,5 @@" || h.Text != " 6\n 7\n 8\n-9\n+nine\n 10\n" {
		t.Errorf("the hunk is %+v", h)
	}
	if s := got[8].Hunks[0].Text; s != " 1\n-2\n\\ No newline at end of file\n+2\n" {
		t.Errorf("the end without a line feed is %q", s)
	}
	if s := got[2].Hunks[0].Text; s != " 1\r\n-2\r\n+2\n" {
		t.Errorf("the CRLF is %q", s)
	}
	stat, err := x.Stat(ctx, base, tree)
	if err != nil || len(stat) != len(got) {
		t.Fatalf("%+v, %v", stat, err)
	}
	for i, f := range stat {
		if f != got[i].FileChange {
			t.Errorf("%+v is not %+v", f, got[i].FileChange)
		}
	}
	if p, err := x.Patch(ctx, base, tree, false, "dir", odd); err != nil || strings.Count(p, "diff --git") != 2 {
		t.Errorf("%s, %v", p, err)
	}
	if p, err := x.Patch(ctx, base, tree, true); err != nil || !strings.Contains(p, "\x1b[3") {
		t.Errorf("no colours: %q, %v", p, err)
	}
	if _, err := x.Diff(ctx, base, "nothing"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("a tree that is none: %v", err)
	}
}

// What a person or a repository configures for diffs changes nothing.
func TestDiffIgnoresConfiguration(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long, "b": "1\n", ".gitattributes": "* diff=evil\n"})
	base := x.person("rev-parse", "HEAD")
	to := x.commitOf(base, map[string][]byte{"c": []byte(long), "b": []byte("2\n")}, "a")
	want, err := x.Diff(t.Context(), base, to)
	if err != nil {
		t.Fatal(err)
	}
	trap := filepath.Join(t.TempDir(), "ran")
	for k, v := range map[string]string{"diff.noprefix": "true", "diff.renames": "false", "diff.context": "0", "diff.external": "touch " + trap,
		"diff.evil.textconv": "touch " + trap + "; cat", "diff.evil.command": "touch " + trap, "color.ui": "always", "diff.algorithm": "patience",
		"core.quotePath": "false", "diff.orderFile": filepath.Join(x.top, "b"), "diff.suppressBlankEmpty": "true", "diff.interHunkContext": "9"} {
		x.person("config", k, v)
	}
	got, err := x.Diff(t.Context(), base, to)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("a command of the repository has run")
	}
}

func TestWithout(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long, "moved": long + "11\n", "gone": "g\n", "bin": "\x00a"})
	ctx := t.Context()
	base := x.person("rev-parse", "HEAD")
	to := x.commitOf(base, map[string][]byte{"a": []byte("0\n" + strings.Replace(long, "9\n", "nine\n", 1)), "dir/moved": []byte(long + "eleven\n"),
		"bin": []byte("\x00b"), "new": []byte("n\n")}, "gone", "moved")
	tree, removed, err := x.Without(ctx, base, to, func(f centurion.FileDiff, h *centurion.Hunk) bool {
		return f.Path == "a" && h.NewStart > 1 || f.Path == "dir/moved" || f.Path == "gone" || f.Path == "bin" && h == nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "0\n" + long, "moved": long + "11\n", "gone": "g\n", "bin": "\x00a", "new": "n\n"} {
		if b, err := x.Read(ctx, tree, name); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if _, err := x.Read(ctx, tree, "dir/moved"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("the new name stays: %v", err)
	}
	if !strings.Contains(removed, "-9\n+nine\n") || strings.Contains(removed, "+0\n") || !strings.Contains(removed, "rename from moved") {
		t.Errorf("what was removed is\n%s", removed)
	}
}

// A deleted file whose name is needed as a directory does not come back while that stays.
func TestWithoutInTheWay(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"d": "file\n", "e/f": "below\n", "k": "1\n"})
	base := x.person("rev-parse", "HEAD")
	to := x.commitOf(base, map[string][]byte{"d": nil, "e/f": nil})
	to = x.commitOf(to, map[string][]byte{"d/x": []byte("new\n"), "e": []byte("now a file\n")})
	tree, _, err := x.Without(t.Context(), base, to, func(f centurion.FileDiff, h *centurion.Hunk) bool { return f.Status == "deleted" })
	if want := x.person("rev-parse", to+"^{tree}"); err != nil || tree != want {
		t.Errorf("got %s, %v:\n%s", tree, err, x.person("ls-tree", "-r", tree))
	}
	tree, _, err = x.Without(t.Context(), base, to, func(f centurion.FileDiff, h *centurion.Hunk) bool { return true })
	if want := x.person("rev-parse", base+"^{tree}"); err != nil || tree != want {
		t.Errorf("got %s, %v", tree, err)
	}
}

func TestRevert(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long})
	ctx := t.Context()
	base := x.person("rev-parse", "HEAD")
	one := x.commitOf(base, map[string][]byte{"a": []byte(strings.Replace(long, "2\n", "two\n", 1)), "new": []byte("n\n")})
	two := x.commitOf(one, content(strings.Replace(strings.Replace(long, "2\n", "two\n", 1), "9\n", "nine\n", 1)))
	tree, removed, ok, err := x.Revert(ctx, two, base, one, nil)
	if err != nil || !ok || !strings.Contains(removed, "+two") || strings.Contains(removed, "nine") {
		t.Fatalf("%v, %v:\n%s", ok, err, removed)
	}
	if b, err := x.Read(ctx, tree, "a"); err != nil || string(b) != strings.Replace(long, "9\n", "nine\n", 1) {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := x.Read(ctx, tree, "new"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("what was added stays: %v", err)
	}
	tree, _, ok, err = x.Revert(ctx, two, base, one, func(f centurion.FileDiff, _ *centurion.Hunk) bool { return f.Path == "new" })
	if b, rerr := x.Read(ctx, tree, "a"); err != nil || !ok || rerr != nil || !strings.Contains(string(b), "two") {
		t.Errorf("only one file: %v, %v, %q", ok, err, b)
	}
	three := x.commitOf(two, content(strings.Replace(long, "2\n", "zwei\n", 1)))
	if tree, _, ok, err = x.Revert(ctx, three, base, one, nil); err != nil || ok || tree != "" {
		t.Errorf("work that was built on came apart: %s, %v, %v", tree, ok, err)
	}
}

// Any choice of hunks can be taken out; all of them leave the one tree, none the other, and what was taken out makes the
// rest whole again.
func TestWithoutAnyChoice(t *testing.T) {
	x := newRig(t, map[string]string{"seed": "1\n"})
	ctx := t.Context()
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "d\r\n", "\\ x\n", "@@ -1 +1 @@\n", "diff --git a b\n", "-- x\n"}), 0, 30)
	file := rapid.Custom(func(t *rapid.T) []byte {
		s := []byte(strings.Join(lines.Draw(t, "lines"), ""))
		if rapid.Bool().Draw(t, "open end") {
			s = append(s, "end"...)
		}
		if rapid.IntRange(0, 9).Draw(t, "binary") == 0 {
			s = append(s, 0)
		}
		return s
	})
	names := rapid.SampledFrom([]string{"a", "b", "c d", "e/f", "ü\"\n"})
	check := func(t *rapid.T) {
		fromFiles := rapid.MapOfN(names, file, 0, 5).Draw(t, "from")
		toFiles := rapid.MapOfN(names, file, 0, 5).Draw(t, "to")
		from, to := x.treeOfFiles(fromFiles), x.treeOfFiles(toFiles)
		seed := rapid.Uint64().Draw(t, "choice")
		for part, want := range map[int]string{0: to, 50: "", 100: from} {
			rng := rand.New(rand.NewPCG(seed, 1))
			tree, removed, err := x.Without(ctx, from, to, func(centurion.FileDiff, *centurion.Hunk) bool { return rng.IntN(100) < part })
			if err != nil {
				t.Fatal(err)
			}
			if want != "" && tree != want {
				t.Fatalf("with %d%% taken out the tree is %s, not %s", part, tree, want)
			}
			if again := x.applied(tree, removed); again != to {
				t.Fatalf("what was taken out makes %s, not %s:\n%s", again, to, removed)
			}
		}
	}
	// Each choice takes some thirty runs of git.
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := flag.Set("rapid.checks", "10"); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, check)
}

func (x *rig) treeOfFiles(files map[string][]byte) string {
	x.t.Helper()
	for p, b := range files {
		if b == nil {
			files[p] = []byte{}
		}
	}
	tree, err := x.With(x.t.Context(), "", files)
	if err != nil {
		x.t.Fatal(err)
	}
	return tree
}

// applied applies a patch to a tree, with git.
func (x *rig) applied(tree, patch string) string {
	x.t.Helper()
	var out []byte
	index, remove, err := x.temp()
	if err != nil {
		x.t.Fatal(err)
	}
	defer remove()
	err = func() error {
		for _, c := range []*exec.Cmd{exec.Command("git", "read-tree", tree), exec.Command("git", "apply", "--cached", "--allow-empty", "--whitespace=nowarn", "-"), exec.Command("git", "write-tree")} {
			c.Dir, c.Env = x.top, append(os.Environ(), "GIT_INDEX_FILE="+index)
			c.Stdin = strings.NewReader(patch)
			var err error
			if out, err = c.CombinedOutput(); err != nil {
				return fmt.Errorf("%v: %w\n%s\n%s", c.Args, err, out, patch)
			}
		}
		return nil
	}()
	if err != nil {
		x.t.Fatal(err)
	}
	return string(bytes.TrimSpace(out))
}

// A hunk may be long: it is exact all the same.
func TestLongHunk(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("a line of the new file that is somewhat long\n", 5000)
	x := newRig(t, map[string]string{"a": "first\n" + long})
	base := x.person("rev-parse", "HEAD")
	to := x.commitOf(base, content("FIRST\n"+long+big))
	d, err := x.Diff(t.Context(), base, to)
	if err != nil || len(d) != 1 || len(d[0].Hunks) != 2 || len(d[0].Hunks[1].Text) < len(big) {
		t.Fatal(err)
	}
	tree, _, err := x.Without(t.Context(), base, to, func(_ centurion.FileDiff, h *centurion.Hunk) bool { return h.NewStart == 1 })
	if b, rerr := x.Read(t.Context(), tree, "a"); err != nil || rerr != nil || string(b) != "first\n"+long+big {
		t.Errorf("%d bytes, %v, %v", len(b), err, rerr)
	}
}

func FuzzParseChanges(f *testing.F) {
	f.Add([]byte(":100644 100644 1 2 M\x00a\x001\t1\ta\x00\x00diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@ x\n 1\n-2\n+3\n\\ No newline at end of file\n"))
	f.Add([]byte(":000000 100644 0 2 A\x00a\x00:100644 100644 1 2 R100\x00b\x00c\x00-\t-\ta\x000\t0\t\x00b\x00c\x00"))
	f.Add([]byte(":100644 120000 1 2 T\x00a\x00\x00diff --git a/a b/a\n@@ -1 +0,0 @@\n-x\ndiff --git a/a b/a\n@@ -0,0 +1 @@\n+x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := parseChanges(b)
		if err != nil {
			return
		}
		for _, c := range all {
			if c.Path == "" {
				t.Error("a change without a path")
			}
			for _, h := range c.Hunks {
				old, _, add, err := ranges(h.Header)
				before, after := sides(h.Text)
				if err != nil || count(before) > old || count(after) > add {
					t.Errorf("%v: %+v has %d and %d lines", err, h, count(before), count(after))
				}
				// A hunk can be taken out of what it made.
				at := append(bytes.Repeat([]byte("x\n"), max(0, min(h.NewStart, 1000)-1)), after...)
				if h.NewLines > 0 && h.NewStart > 0 && h.NewStart < 1000 {
					if got, err := undoHunks(at, []centurion.Hunk{h}); err != nil || !bytes.HasSuffix(got, before) {
						t.Errorf("%+v out of %q: %q, %v", h, at, got, err)
					}
				}
			}
		}
	})
}

func count(b []byte) int { return len(slices.Collect(bytes.Lines(b))) }

// refused is what git says of a merge with a conflict.
const refused = "1234\x00100644 12 1\ta\x00100644 13 3\tb\x00\x002\x00a\x00b\x00CONFLICT (contents)\x00in a\n\x000\x00Auto-merging\x00c\x00"

// The sides and the messages of a merge are read as git writes them; another form is refused.
func TestParseMerge(t *testing.T) {
	t.Parallel()
	m, err := parseMerge([]byte(refused))
	if want := "{1234 [{a 1 {100644 12}} {b 3 {100644 13}}] [{[a b] CONFLICT (contents) in a\n} {[] Auto-merging c}]}"; err != nil || fmt.Sprint(m) != want {
		t.Errorf("%v, %v\nwant %s", m, err, want)
	}
	for _, out := range []string{"", "\x00", "1234\x00100644 12 0\ta\x00\x00", "1234\x00100644 12 4\ta\x00\x00", "1234\x00100644 12 1 a\x00\x00", "1234\x00100644 12 11\ta\x00\x00", "1234\x00100644 1\ta\x00\x00",
		"1234\x00\x00-1\x00a\x00b\x00c\x00", "1234\x00\x00x\x00a\x00b\x00c\x00", "1234\x00\x002\x00a\x00b\x00c\x00"} {
		if m, err := parseMerge([]byte(out)); err == nil {
			t.Errorf("%q is %+v", out, m)
		}
	}
}

func FuzzParseMerge(f *testing.F) {
	f.Add([]byte("1234\x00\x000\x00x\x00y\x00"))
	for i := range refused { // what git says may be cut off
		f.Add([]byte(refused[:i]))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := parseMerge(b); err == nil && m.tree == "" {
			t.Error("a merge without a tree")
		}
	})
}
