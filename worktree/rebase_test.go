package worktree

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
	"centurion/worktree/gitobj"
)

// commitOf makes a commit without a checkout.
func (x *rig) commitOf(parent string, files map[string][]byte, gone ...string) string {
	x.t.Helper()
	files = maps.Clone(files)
	if files == nil {
		files = map[string][]byte{}
	}
	for _, p := range gone {
		files[p] = nil
	}
	ctx := x.t.Context()
	tree, err := x.With(ctx, parent, files)
	if err != nil {
		x.t.Fatal(err)
	}
	var parents []string
	if parent != "" {
		parents = []string{parent}
	}
	id, err := x.commitTree(ctx, tree, "Change\n\nbody\n", []string{"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@localhost"}, parents...)
	if err != nil {
		x.t.Fatal(err)
	}
	return id
}

// modeOf makes a commit in which one path has another mode or is a link.
func (x *rig) modeOf(parent, path, mode, content string) string {
	x.t.Helper()
	ids, err := x.newBlobs(x.t.Context(), [][]byte{[]byte(content)})
	if err != nil {
		x.t.Fatal(err)
	}
	tree, err := x.tree(x.t.Context(), parent)
	if err != nil {
		x.t.Fatal(err)
	}
	if tree, err = x.edit(x.t.Context(), tree, map[string]entry{path: {Mode: mode, ID: ids[0]}}); err != nil {
		x.t.Fatal(err)
	}
	id, err := x.commitTree(x.t.Context(), tree, "mode\n", nil, parent)
	if err != nil {
		x.t.Fatal(err)
	}
	return id
}

func content(s string) map[string][]byte { return map[string][]byte{"a": []byte(s)} }

var long = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"

func TestRebase(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": long, "other": "x\n"})
	ctx := t.Context()
	base := x.person("rev-parse", "HEAD")
	onto := x.commitOf(base, content(strings.Replace(long, "1\n2\n", "one\n2\n", 1)))
	work := x.commitOf(base, map[string][]byte{"a": []byte(strings.Replace(long, "9\n", "nine\n", 1)), "new": []byte("n")})
	got, err := x.Rebase(ctx, work, onto)
	if err != nil || got.Commit == "" || len(got.Conflicts) > 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if b, err := x.Read(ctx, got.Commit, "a"); err != nil || string(b) != "one\n2\n3\n4\n5\n6\n7\n8\nnine\n10\n" {
		t.Errorf("%q, %v", b, err)
	}
	if s := x.person("log", "-1", "--format=%P %an <%ae> %cn %B", got.Commit); s != onto+" Ada <ada@localhost> Centurion Change\n\nbody" {
		t.Errorf("the commit is %q", s)
	}
	if again, err := x.Rebase(ctx, got.Commit, onto); err != nil || again.Commit != got.Commit {
		t.Errorf("a commit that stands there already became %+v, %v", again, err)
	}
	// A file that one side renamed and the other one edited.
	moved := x.commitOf(base, map[string][]byte{"dir/b": []byte(long)}, "a")
	got, err = x.Rebase(ctx, work, moved)
	if err != nil || len(got.Conflicts) > 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if b, err := x.Read(ctx, got.Commit, "dir/b"); err != nil || !strings.Contains(string(b), "nine") {
		t.Errorf("the edit did not follow: %q, %v", b, err)
	}
	if _, err := x.Read(ctx, got.Commit, "a"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("the old name is still there: %v", err)
	}
	if _, err := x.Rebase(ctx, strings.Repeat("1", 40), onto); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("a commit that is none: %v", err)
	}
	// A first commit, and one laid onto nothing.
	if got, err = x.Rebase(ctx, work, ""); err != nil || len(got.Conflicts) == 0 {
		t.Errorf("an edit of a file that is not there: %+v, %v", got, err)
	}
}

func TestRebaseConflicts(t *testing.T) {
	t.Parallel()
	binary := func(s string) map[string][]byte { return map[string][]byte{"bin": []byte("\x00\x01" + s)} }
	edit := func(s string) func(x *rig, base string) string {
		return func(x *rig, base string) string { return x.commitOf(base, content(strings.Replace(long, "5", s, 1))) }
	}
	rename := func(to string) func(x *rig, base string) string {
		return func(x *rig, base string) string {
			return x.commitOf(base, map[string][]byte{to: []byte(long)}, "a")
		}
	}
	del := func(x *rig, base string) string { return x.commitOf(base, nil, "a") }
	tests := map[string]struct {
		onto, work  func(x *rig, base string) string
		path, kind  string
		text, other string
	}{
		"content":       {edit("five"), edit("cinque"), "a", "content", "4\n<<<<<<< the branch so far\nfive\n=======\ncinque\n>>>>>>> this work\n6", ""},
		"modify/delete": {edit("five"), del, "a", "modify/delete", "five", ""},
		"delete/modify": {del, edit("five"), "a", "modify/delete", "five", ""},
		"rename/rename": {rename("b"), rename("c"), "a", "rename/rename", "a renamed to b in the branch so far and to c in this work", "b"},
		"rename/delete": {rename("b"), del, "b", "rename/delete", "", ""},
		"add/add": {func(x *rig, base string) string { return x.commitOf(base, map[string][]byte{"n": []byte("1\n")}) },
			func(x *rig, base string) string { return x.commitOf(base, map[string][]byte{"n": []byte("2\n")}) }, "n", "add/add", "<<<<<<< the branch so far\n1\n=======\n2\n>>>>>>> this work\n", ""},
		"binary": {func(x *rig, base string) string { return x.commitOf(base, binary("x")) },
			func(x *rig, base string) string { return x.commitOf(base, binary("y")) }, "bin", "binary", "", ""},
		"symlink": {func(x *rig, base string) string { return x.modeOf(base, "link", gitobj.ModeLink, "there") },
			func(x *rig, base string) string { return x.modeOf(base, "link", gitobj.ModeLink, "elsewhere") }, "link", "content", "link", ""},
		"mode": {func(x *rig, base string) string {
			return x.modeOf(base, "a", gitobj.ModeExec, strings.Replace(long, "5", "V", 1))
		},
			edit("five"), "a", "content", "V\n=======\nfive", ""},
		"file and link": {func(x *rig, base string) string { return x.modeOf(base, "a", gitobj.ModeLink, "there") }, edit("five"), "a", "distinct types", "", ""},
		"directory/file": {func(x *rig, base string) string { return x.commitOf(base, map[string][]byte{"d/f": []byte("1")}) },
			func(x *rig, base string) string { return x.commitOf(base, map[string][]byte{"d": []byte("2")}) }, "d", "file/directory", "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newRig(t, map[string]string{"a": long, "bin": "\x00\x01\x02", "other": "1"})
			x.person("config", "merge.conflictStyle", "diff3") // changes nothing
			base := x.modeOf(x.person("rev-parse", "HEAD"), "link", gitobj.ModeLink, "a")
			got, err := x.Rebase(t.Context(), tt.work(x, base), tt.onto(x, base))
			if err != nil || got.Commit != "" || len(got.Conflicts) == 0 || got.Tree == "" {
				t.Fatalf("%+v, %v", got, err)
			}
			found := map[string]Conflict{}
			for _, c := range got.Conflicts {
				found[c.Path] = c
				if strings.Contains(c.Text, "0000") || tt.kind != "binary" && c.Text == "" {
					t.Errorf("the text of %s is %q", c.Path, c.Text)
				}
			}
			var c Conflict
			for p, f := range found {
				if p == tt.path || strings.HasPrefix(p, tt.path+"~") {
					c = f
				}
			}
			if c.Kind != tt.kind || !strings.Contains(c.Text, tt.text) {
				t.Errorf("got %+v", got.Conflicts)
			}
			if tt.other != "" && found[tt.other].Path == "" {
				t.Errorf("%s is not named: %+v", tt.other, got.Conflicts)
			}
			if tt.kind == "content" && strings.HasPrefix(tt.text, "4") {
				if b, err := x.Read(t.Context(), got.Tree, "a"); err != nil || string(b) != c.Text {
					t.Errorf("the tree has %q, %v", b, err)
				}
			}
		})
	}
}

func TestRefs(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	ctx := t.Context()
	one := x.person("rev-parse", "HEAD")
	two := x.commitOf(one, content("2\n"))
	three := x.commitOf(two, content("3\n"))
	if _, err := x.Tip(ctx, "mission/x"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("a branch that is none: %v", err)
	}
	for _, s := range []struct {
		branch, from, to string
		ok               bool
	}{{"mission/x", "", one, true}, {"mission/x", "", two, false}, {"mission/x", one, two, true}, {"mission/x", one, three, false},
		{"mission/x", two, three, true}, {"gone", one, two, false}, {"refs/centurion/base/m", "", one, true}} {
		err := x.Advance(ctx, s.branch, s.from, s.to)
		if s.ok && err != nil || !s.ok && centurion.KindOf(err) != centurion.KindConflict {
			t.Errorf("%s from %s to %s: %v", s.branch, s.from, s.to, err)
		}
		if tip, err := x.Tip(ctx, s.branch); s.ok && (err != nil || tip != s.to) {
			t.Errorf("%s is at %s, %v", s.branch, tip, err)
		}
	}
	for _, s := range []struct {
		commit, of string
		want       bool
	}{{one, three, true}, {three, one, false}, {two, two, true}} {
		if got, err := x.IsAncestor(ctx, s.commit, s.of); err != nil || got != s.want {
			t.Errorf("%s of %s: %v, %v", s.commit, s.of, got, err)
		}
	}
	if _, err := x.IsAncestor(ctx, "nothing", one); err == nil {
		t.Error("no error for what is no commit")
	}
}

// A branch that another program moved, deleted or made a link is put back where this process left it, and no commit is lost.
func TestHeld(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	ctx := t.Context()
	one := x.person("rev-parse", "HEAD")
	two := x.commitOf(one, content("2\n"))
	other := x.commitOf(one, content("3\n"))
	const branch = "mission/x"
	if _, _, err := x.Held(ctx, branch); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("no branch: %v", err)
	}
	x.person("branch", branch, other)
	for range 2 {
		if tip, was, err := x.Held(ctx, branch); tip != other || err != nil {
			t.Errorf("seen: %s, %s, %v", tip, was, err)
		}
		x.person("branch", "-f", branch, one)
	}
	x.Held(ctx, branch)
	if err := x.Advance(ctx, branch, other, two); err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		does []string
		was  string
	}{
		{[]string{"rev-parse", branch}, two},
		{[]string{"branch", "-f", branch, other}, other},
		{[]string{"update-ref", "refs/heads/" + branch, one}, one},
		{[]string{"branch", "-D", branch}, ""},
		{[]string{"symbolic-ref", "refs/heads/" + branch, "refs/heads/main"}, one},
	} {
		x.person(s.does...)
		if tip, was, err := x.Held(ctx, branch); tip != two || was != s.was || err != nil {
			t.Errorf("%q: %s, %s, %v", s.does, tip, was, err)
		}
		if got := x.person("rev-parse", branch); got != two {
			t.Errorf("%q: it is at %s", s.does, got)
		}
	}
	if got := x.person("for-each-ref", "--format=%(objectname)", KeptRefs); got != other {
		t.Errorf("kept %s", got)
	}
	if got := x.person("rev-parse", "main"); got != one {
		t.Errorf("main is at %s", got)
	}
}

// What lies below .opencode/ makes no difference.
func TestTreeOf(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "p/q"} {
		x := newRigAt(t, filepath.Join(t.TempDir(), "r"), prefix, map[string]string{"top": "1", filepath.Join(prefix, "a"): "1", "z/.opencode/kept": "1"})
		ctx := t.Context()
		base := x.person("rev-parse", "HEAD")
		plain, err := x.TreeOf(ctx, base)
		if err != nil || plain != x.person("rev-parse", "HEAD^{tree}") {
			t.Fatalf("%s, %v", plain, err)
		}
		with := x.commitOf(base, map[string][]byte{filepath.ToSlash(filepath.Join(prefix, ".opencode/x/y")): []byte("1")})
		if got, err := x.TreeOf(ctx, with); err != nil || got != plain {
			t.Errorf("prefix %q: %s, not %s: %v", prefix, got, plain, err)
		}
		if d, err := x.Diff(ctx, base, with); err != nil || len(d) != 0 {
			t.Errorf("a difference in .opencode: %+v, %v", d, err)
		}
		// The project has nothing else: its directory goes, too.
		only := x.commitOf("", map[string][]byte{filepath.ToSlash(filepath.Join(prefix, ".opencode/x")): []byte("1"), "top": []byte("1")})
		want := x.commitOf("", map[string][]byte{"top": []byte("1")})
		a, err1 := x.TreeOf(ctx, only)
		b, err2 := x.TreeOf(ctx, want)
		if a != b || err1 != nil || err2 != nil {
			t.Errorf("prefix %q: %s and %s, %v, %v", prefix, a, b, err1, err2)
		}
	}
}

func TestReadAndWith(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n", "d/run": "#!\n"})
	ctx := t.Context()
	if err := os.Chmod(filepath.Join(x.top, "d/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	x.person("commit", "-qam", "mode")
	odd := "ö \"q\"\n\tx"
	tree, err := x.With(ctx, "HEAD", map[string][]byte{"a": nil, "d/run": []byte("2"), odd: {}, "new/x": []byte("n\r\n")})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"d/run": "2", odd: "", "new/x": "n\r\n"} {
		if b, err := x.Read(ctx, tree, name); err != nil || string(b) != want {
			t.Errorf("%q: %q, %v", name, b, err)
		}
	}
	for _, name := range []string{"a", "d", "nothing", "a/b"} {
		if _, err := x.Read(ctx, tree, name); centurion.KindOf(err) != centurion.KindNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := x.person("ls-tree", tree, "d/run"); !strings.HasPrefix(s, "100755") {
		t.Errorf("the mode went: %s", s)
	}
	if same, err := x.With(ctx, tree, nil); err != nil || same != tree {
		t.Errorf("no files: %s, %v", same, err)
	}
	for _, p := range []string{"/etc/x", "../x", "."} {
		if _, err := x.With(ctx, tree, map[string][]byte{p: []byte("x")}); centurion.KindOf(err) != centurion.KindUsage {
			t.Errorf("%s: %v", p, err)
		}
	}
}

// The author and the message of a commit in another encoding are read as git reads them, and those in UTF-8 as git would.
func TestRebaseKeepsEncodings(t *testing.T) {
	text := map[string]string{"UTF-8": "Größe\n\nÜber: alles <x> y", "ISO-8859-1": "Gr\xf6\xdfe\n\n\xdcber: alles <x> y"}
	for encoding := range text {
		x := newRig(t, map[string]string{"a": "a\n"})
		base := x.person("rev-parse", "HEAD")
		tree, err := x.With(t.Context(), base, map[string][]byte{"b": []byte("b\n")})
		if err != nil {
			t.Fatal(err)
		}
		commit := x.person("-c", "i18n.commitEncoding="+encoding, "commit-tree", "-p", base, "-m", text[encoding], tree)
		onto, err := x.CommitTree(t.Context(), base, base, "other")
		if err != nil {
			t.Fatal(err)
		}
		laid, err := x.Rebase(t.Context(), commit, onto)
		if err != nil {
			t.Fatal(err)
		}
		const format = "--format=%an <%ae> %ad%n%B"
		if got, want := x.person("log", "-1", format, laid.Commit), x.person("log", "-1", format, commit); got != want {
			t.Errorf("%s: %q, not %q", encoding, got, want)
		}
	}
}
