package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion"
)

// shade is a directory without git, and the history of it.
func shade(t testing.TB, files map[string]string) (*rig, *Shadow) {
	t.Helper()
	x := &rig{t: t, top: filepath.Join(t.TempDir(), "no git ü")}
	for name, content := range files {
		x.write(name, content)
	}
	s, err := OpenShadow(t.Context(), Options{Dir: x.top, Home: filepath.Join(filepath.Dir(x.top), "home")})
	if err != nil {
		t.Fatal(err)
	}
	return x, s
}

func (x *rig) save(s *Shadow, label string) string {
	x.t.Helper()
	tree, err := s.Save(x.t.Context(), label)
	if err != nil {
		x.t.Fatal(err)
	}
	return tree
}

// A path is chosen by its own name, by that of a directory above it, and by the project's, however they are written.
func TestChosen(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		want  bool
		paths []string
	}{
		{true, nil}, {true, []string{"x", "a/b"}}, {true, []string{"a"}}, {true, []string{"a/"}}, {true, []string{"./a/b"}}, {true, []string{"a//b/"}}, {true, []string{"./"}},
		{false, []string{"b"}}, {false, []string{"a/b/c"}}, {false, []string{"a/bc"}},
	} {
		if got := chosen("a/b", test.paths); got != test.want {
			t.Errorf("%q: %v", test.paths, got)
		}
	}
}

func TestShadow(t *testing.T) {
	t.Parallel()
	x, s := shade(t, map[string]string{"a": "1\r\n", "d/b": "b\n", "run": "#!\n", ".gitignore": "*.log\n", "x.log": "l", ".opencode/o": "o",
		".gitattributes": "* text eol=lf ident\n", "odd\n\"name": "$Id$\n", "gone": "g\n"})
	if err := os.Symlink("a", filepath.Join(x.top, "link")); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	one := x.save(s, "one")
	before := x.files()
	if again := x.save(s, "again"); again != one {
		t.Errorf("nothing changed, and the tree is another: %s", again)
	}
	x.write("a", "2\n")
	x.write("new/n", "n\n")
	x.write("x.log", "more")
	os.Remove(filepath.Join(x.top, "gone"))
	x.write("gone/below", "a directory now\n")
	os.Remove(filepath.Join(x.top, "link"))
	os.RemoveAll(filepath.Join(x.top, "d"))
	x.write("link", "a file now\n")
	os.Chmod(filepath.Join(x.top, "run"), 0o755)
	s, err := OpenShadow(ctx, Options{Dir: x.top, Home: filepath.Join(filepath.Dir(x.top), "home")}) // the next process
	if err != nil {
		t.Fatal(err)
	}
	two := x.save(s, "two")
	stat, err := s.Stat(ctx, one, two)
	var names []string
	for _, f := range stat {
		names = append(names, f.Status+" "+f.Path)
	}
	want := []string{"modified a", "deleted d/b", "deleted gone", "added gone/below", "modified link", "added new/n", "modified run"}
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("%v, %v", names, err)
	}
	if p, err := s.Patch(ctx, one, two, false, "a"); err != nil || !strings.Contains(p, "-1\r\n+2\n") || strings.Contains(p, "new/n") {
		t.Errorf("%q, %v", p, err)
	}
	files, changed, err := s.Restore(ctx, one, two, false)
	if err != nil || len(changed) > 0 || len(files) != len(want) {
		t.Fatalf("%+v, %v, %v", files, changed, err)
	}
	before["x.log"] = "more" // not ours
	after := x.files()
	for name, content := range before {
		if after[name] != content {
			t.Errorf("%q is %q, not %q", name, after[name], content)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files, not %d: %v", len(after), len(before), after)
	}
	if info, err := os.Stat(filepath.Join(x.top, "run")); err != nil || info.Mode()&0o111 != 0 {
		t.Errorf("the mode: %v, %v", info, err)
	}
	if files, changed, err = s.Restore(ctx, one, two, false); err != nil || len(files)+len(changed) > 0 {
		t.Errorf("the second time: %v, %v, %v", files, changed, err)
	}
	if tree := x.save(s, "three"); tree != one {
		t.Errorf("not what it was: %s", tree)
	}
}

func TestShadowChangedMeanwhile(t *testing.T) {
	t.Parallel()
	x, s := shade(t, map[string]string{"a": "1\n", "b": "1\n", "c/d": "1\n", "c/e": "1\n"})
	ctx := t.Context()
	one := x.save(s, "one")
	for _, name := range []string{"a", "b", "c/d", "c/e", "n"} {
		x.write(name, "2\n")
	}
	two := x.save(s, "two")
	x.write("b", "mine\n")
	x.write("n", "mine\n")
	all := x.files()
	files, changed, err := s.Restore(ctx, one, two, false)
	if err != nil || len(files) > 0 || !slices.Equal(changed, []string{"b", "n"}) {
		t.Errorf("%v, %v, %v", files, changed, err)
	}
	for name, content := range x.files() {
		if all[name] != content {
			t.Errorf("%s was touched", name)
		}
	}
	if _, changed, err = s.Restore(ctx, one, two, false, "a", "c"); err != nil || len(changed) > 0 {
		t.Errorf("%v, %v", changed, err)
	}
	if f := x.files(); f["a"] != "1\n" || f["c/d"] != "1\n" || f["c/e"] != "1\n" || f["b"] != "mine\n" {
		t.Errorf("%v", f)
	}
	if files, _, err = s.Restore(ctx, one, two, true); err != nil || len(files) != 2 {
		t.Errorf("%v, %v", files, err)
	}
	if f := x.files(); f["b"] != "1\n" || f["n"] != "" {
		t.Errorf("%v", f)
	}
	// A directory with somebody's files is in the way, force or not.
	os.Remove(filepath.Join(x.top, "a"))
	three := x.save(s, "three")
	x.write("a/mine", "m\n")
	if files, changed, err = s.Restore(ctx, one, three, true, "a"); err != nil || len(files) > 0 || !slices.Equal(changed, []string{"a"}) {
		t.Errorf("%v, %v, %v", files, changed, err)
	}
}

// Repositories in the directory, and that it is one itself, make no difference.
func TestShadowWithRepositories(t *testing.T) {
	t.Parallel()
	x, s := shade(t, map[string]string{"a": "1\n", "sub/b": "1\n", "sub/.gitignore": "*.log\n", "sub/x.log": "l", "empty/c": "1\n", "sub/deep/d": "1\n"})
	gitIn(t, x.top, "init", "-q")
	gitIn(t, filepath.Join(x.top, "sub"), "init", "-q")
	gitIn(t, filepath.Join(x.top, "sub"), "add", "-A")
	gitIn(t, filepath.Join(x.top, "sub"), "commit", "-qm", "x")
	gitIn(t, filepath.Join(x.top, "sub/deep"), "init", "-q")
	gitIn(t, filepath.Join(x.top, "empty"), "init", "-q")
	one := x.save(s, "one")
	x.write("sub/b", "2\n")
	x.write("sub/new", "n\n")
	x.write("sub/deep/d", "2\n")
	x.write("empty/c", "2\n")
	two := x.save(s, "two")
	stat, err := s.Stat(t.Context(), one, two)
	if err != nil || len(stat) != 4 {
		t.Errorf("%+v, %v", stat, err)
	}
	if none, err := s.Stat(t.Context(), two, two); err != nil || none == nil || len(none) > 0 { // JSON says [], not null
		t.Errorf("of one tree: %#v, %v", none, err)
	}
	if _, changed, err := s.Restore(t.Context(), one, two, false); err != nil || len(changed) > 0 {
		t.Errorf("%v, %v", changed, err)
	}
	if f := x.files(); f["sub/b"] != "1\n" || f["sub/new"] != "" || f["sub/deep/d"] != "1\n" || f["empty/c"] != "1\n" || f["sub/x.log"] != "l" {
		t.Errorf("%v", f)
	}
}

func TestShadowLeavesOut(t *testing.T) {
	t.Parallel()
	x, s := shade(t, map[string]string{"a": "1\n", "big": ""})
	x.save(s, "one")
	if err := os.Truncate(filepath.Join(x.top, "big"), MaxShadow+1); err != nil {
		t.Fatal(err)
	}
	tree := x.save(s, "two")
	if got := s.LeftOut(); !slices.Equal(got, []string{"big"}) {
		t.Errorf("%v", got)
	}
	if _, err := s.repo.Read(t.Context(), tree, "big"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("%v", err)
	}
	if _, err := OpenShadow(t.Context(), Options{Dir: filepath.Join(x.top, "none"), Home: t.TempDir()}); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("%v", err)
	}
	if err := os.Remove(filepath.Join(x.top, "big")); err != nil {
		t.Fatal(err)
	}
	if x.save(s, "without it"); len(s.LeftOut()) > 0 {
		t.Errorf("still left out: %v", s.LeftOut())
	}
	x.write("b", "b\n")
	put(t, filepath.Join(s.repo.gitDir, "index.lock"), "") // a process died
	s, err := OpenShadow(t.Context(), Options{Dir: x.top, Home: s.repo.opts.Home})
	if err != nil {
		t.Fatal(err)
	}
	x.save(s, "three")
}
