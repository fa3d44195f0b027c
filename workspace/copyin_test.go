package workspace_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/workspace"
)

// elsewhere is a project, and a copy of it at the same absolute path whose files are in another directory, as in another mount
// namespace: at every path that both have, the project's directory on the host has other content.
func elsewhere(t testing.TB) (project, c *workspace.Workspace, files string) {
	t.Helper()
	project = open(t, map[string]string{
		"a.txt": "host", "sub/b.txt": "host", "sub/deep/only-host.txt": "host", ".gitignore": "*.txt\n", ".opencode/context.md": "notes", "gone.txt": "host",
	})
	files, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"a.txt": "workspace", "sub/b.txt": "workspace", "sub/deep/c.txt": "workspace", ".gitignore": "*.log\n", "x.log": "ignored", ".opencode/context.md": "a copy",
	} {
		put(t, filepath.Join(files, name), content)
	}
	for name, to := range map[string]string{
		"rel": "sub/b.txt", "abs": filepath.Join(project.Dir(), "sub/deep"), "up": "sub/deep/../../a.txt", "around": filepath.Join(project.Dir(), "..", filepath.Base(project.Dir()), "a.txt"),
		"round": "round2", "round2": "round", "dangling": "nowhere", "notes": ".opencode", "key": filepath.Join(filepath.Dir(files), "key"), "parent": "..", "sub/dir": "deep",
	} {
		link(t, to, filepath.Join(files, name))
	}
	link(t, "a.txt", filepath.Join(project.Dir(), "rel")) // leads elsewhere on the host
	put(t, filepath.Join(filepath.Dir(files), "key"), "key")
	root, err := os.OpenRoot(files)
	if err != nil {
		t.Fatal(err)
	}
	c = project.CopyIn(root, centurion.Place{Dir: project.Dir()})
	t.Cleanup(func() { c.Close() })
	return project, c, files
}

// S1, issue "Fifty workspaces" 3: where a path of a workspace leads is said by its own links, wherever its files are, and not by those that
// the host has at the same place.
func TestFindInAnotherRoot(t *testing.T) {
	project, c, files := elsewhere(t)
	dir, out := project.Dir(), filepath.Dir(files)
	short := filepath.Join(t.TempDir(), "short")
	link(t, dir, short)
	for given, want := range map[string]workspace.Spot{
		"a.txt": {In: c, Rel: "a.txt", Name: "a.txt"}, "rel": {In: c, Rel: "sub/b.txt", Name: "rel"}, dir + "/rel": {In: c, Rel: "sub/b.txt", Name: "rel"},
		"abs/c.txt": {In: c, Rel: "sub/deep/c.txt", Name: "abs/c.txt"}, "up": {In: c, Rel: "a.txt", Name: "up"}, "around": {In: c, Rel: "a.txt", Name: "around"},
		short + "/rel": {In: c, Rel: "sub/b.txt", Name: "sub/b.txt"}, short + "/sub/dir/new": {In: c, Rel: "sub/deep/new", Name: "sub/deep/new"},
		"sub/../rel": {In: c, Rel: "sub/b.txt", Name: "rel"}, "../" + filepath.Base(dir) + "/rel": {In: c, Rel: "sub/b.txt", Name: "sub/b.txt"},
		"round": {In: c, Rel: "round", Name: "round"}, "dangling": {In: c, Rel: "dangling", Name: "dangling"}, "sub/deep/only-host.txt": {In: c, Rel: "sub/deep/only-host.txt", Name: "sub/deep/only-host.txt"},
		".opencode/context.md": {In: project, Rel: ".opencode/context.md", Name: ".opencode/context.md"}, "notes/new": {In: project, Rel: ".opencode/new", Name: "notes/new"}, dir: {In: c, Rel: ".", Name: "."},
		"key": {Name: filepath.ToSlash(out) + "/key", Outside: true}, "parent/x": {Name: filepath.ToSlash(filepath.Dir(dir)) + "/x", Outside: true}, "../x": {Name: filepath.ToSlash(filepath.Dir(dir)) + "/x", Outside: true},
		files + "/a.txt": {Name: filepath.ToSlash(files) + "/a.txt", Outside: true},
	} {
		got, err := c.Find(given)
		if abs := got.Abs(); err != nil || filepath.ToSlash(abs) != got.Name && got.Outside || !got.Outside && abs != filepath.Join(dir, got.Rel) {
			t.Errorf("%s: %v, %s", given, err, abs)
		}
		if got.Outside {
			got.In, got.Rel = nil, ""
		}
		if got != want {
			t.Errorf("%s leads to %+v, want %+v", given, got, want)
		}
	}
	for _, protected := range []string{".opencode/new", "notes/context.md", dir + "/.opencode", ".git/x", "sub/.git"} {
		if s, err := c.Find(protected); err != nil || !s.Protected() {
			t.Errorf("%s is not protected: %+v, %v", protected, s, err)
		}
	}
	for _, bad := range []string{"", "a\x00"} {
		if _, err := c.Find(bad); centurion.KindOf(err) != centurion.KindUsage {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A chain of so many links is followed, and no longer one; a link that the host has in the way of an absolute path is followed, too.
func TestLinksAreBounded(t *testing.T) {
	_, c, files := elsewhere(t)
	link(t, "a.txt", filepath.Join(files, "l1"))
	for i := 2; i <= 41; i++ {
		link(t, fmt.Sprint("l", i-1), filepath.Join(files, fmt.Sprint("l", i)))
	}
	if s, _ := c.Find("l40"); s.Rel != "a.txt" {
		t.Errorf("40 links lead to %s", s.Rel)
	}
	if s, _ := c.Find("l41"); s.Rel != "l41" {
		t.Errorf("41 links lead to %s", s.Rel)
	}
	if got, ok := c.Follow(filepath.Join(c.Dir(), "l41"), false, false); len(got) > 0 || !ok {
		t.Errorf("41 links of a script lead to %v", got)
	}
}

// Issue "Fifty workspaces" 3 and 9: every operation goes through the root, and those on .opencode/ to the project.
func TestFilesInAnotherRoot(t *testing.T) {
	project, c, files := elsewhere(t)
	host := func(name string) string {
		b, err := os.ReadFile(filepath.Join(project.Dir(), name))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	f, err := c.Read("sub/b.txt", 0)
	if err != nil || string(f.Data) != "workspace" || f.Version != workspace.VersionOf(f.Data) || !f.Mode.IsRegular() {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := c.Read("gone.txt", 0); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("what only the host has: %v", err)
	}
	if f, err := c.Read("sub", 0); centurion.KindOf(err) != centurion.KindUsage || !f.Mode.IsDir() {
		t.Errorf("a directory: %+v, %v", f, err)
	}
	if s, f, err := c.FindFile("rel", 100); err != nil || s.Rel != "sub/b.txt" || string(f.Data) != "workspace" {
		t.Errorf("%+v %+v, %v", s, f, err)
	}
	if s, f, err := c.FindFile("key", 100); err != nil || !s.Outside || f.Data != nil {
		t.Errorf("what is outside is not read unasked: %+v %+v, %v", s, f, err)
	}
	r, _, err := c.Open(".opencode/context.md")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); string(b) != "notes" || r.Close() != nil {
		t.Errorf("the notes are %q, %v", b, err)
	}
	version := workspace.VersionOf([]byte("workspace"))
	for _, stale := range []string{"", workspace.VersionOf([]byte("host"))} {
		wantError(t, c.Replace("a.txt", stale, []byte("new")), centurion.KindConflict, "a.txt has changed")
	}
	wantError(t, c.Replace("new.txt", version, []byte("new")), centurion.KindConflict, "new.txt has changed")
	for name, version := range map[string]string{"a.txt": version, "made/new.txt": ""} {
		if err := c.Replace(name, version, []byte("new")); err != nil {
			t.Error(err)
		}
		if b, err := os.ReadFile(filepath.Join(files, name)); string(b) != "new" {
			t.Errorf("%s is %q, %v", name, b, err)
		}
	}
	if err := c.Remove("sub/b.txt"); err != nil {
		t.Error(err)
	}
	if host("a.txt") != "host" || host("sub/b.txt") != "host" {
		t.Error("the host's files were changed")
	}
	if _, err := os.Stat(filepath.Join(project.Dir(), "made")); err == nil {
		t.Error("a directory was made on the host")
	}
	if names, err := c.Names("sub/deep", ""); err != nil || !slices.Equal(names, []string{"c.txt"}) {
		t.Errorf("names %v, %v", names, err)
	}
	put(t, filepath.Join(project.Dir(), ".opencode", "todo.md"), "")
	if got := walk(t, c, workspace.WalkOptions{Hidden: true}); !strings.Contains(got, "sub/deep/c.txt") || strings.Contains(got, "only-host") || strings.Contains(got, "x.log") ||
		!strings.Contains(got, ".opencode/todo.md") {
		t.Errorf("walked %s", got)
	}
}

// Whether a workspace lies in a larger repository is said by its own files, too.
func TestIgnoredInAnotherRoot(t *testing.T) {
	project, c, files := elsewhere(t)
	above := filepath.Dir(project.Dir())
	put(t, filepath.Join(above, ".git", "HEAD"), "")
	put(t, filepath.Join(above, ".gitignore"), "c.txt\n")
	put(t, filepath.Join(project.Dir(), ".git", "info", "exclude"), "b.txt\n")
	for _, want := range []string{"a.txt", "a.txt sub/deep/c.txt"} { // git info/exclude is the project's
		got := slices.DeleteFunc(strings.Fields(walk(t, c, workspace.WalkOptions{})), func(s string) bool { return !strings.HasSuffix(s, ".txt") })
		if strings.Join(got, " ") != want {
			t.Errorf("walked %v, want %s", got, want)
		}
		put(t, filepath.Join(files, ".git", "HEAD"), "")
	}
}

// S1, S2: what a script of such a workspace reads is what its own links lead to, also behind patterns, in directories, and behind a
// link and a "..".
func TestFollowInAnotherRoot(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such names there")
	}
	project, c, files := elsewhere(t)
	key := filepath.ToSlash(filepath.Join(filepath.Dir(files), "key"))
	link(t, filepath.Join("..", "..", "key"), filepath.Join(project.Dir(), "sub", "only-host"))
	link(t, key, filepath.Join(files, "sub", "deep", "out"))
	put(t, filepath.Join(files, `a*b`), "")
	put(t, filepath.Join(files, `a\*b`), "")
	put(t, filepath.Join(files, `ab`), "")
	short := filepath.Join(t.TempDir(), "short")
	link(t, project.Dir(), short)
	for _, tt := range []struct {
		name       string
		glob, deep bool
		want       string
	}{
		{"rel", false, false, "sub/b.txt"}, {"abs/c.txt", false, false, "sub/deep/c.txt"}, {"gone.txt", false, false, ""}, {"key", false, false, key}, {"round", false, false, ""},
		{"sub/dir/../b.txt", false, false, "sub/b.txt"}, {"abs/../b.txt", false, false, "sub/b.txt"}, {"abs/../../key", false, false, key}, {"notes/context.md", false, false, ".opencode/context.md"},
		{"g*.txt", true, false, ""}, {"k*", true, false, key}, {"*/only-*", true, false, ""}, {"s?b/d*/c*", true, false, "sub/deep/c.txt"}, {"abs/../*.txt", true, false, "sub/b.txt"},
		{`a\*b`, true, false, `a*b a\*b`}, {`[s]ub/b.txt`, true, false, "sub/b.txt"}, {"sub", false, true, "sub sub/deep " + key}, {"abs", false, true, "sub/deep " + key}, {short + "/rel", false, false, "sub/b.txt"},
		{key, false, false, key}, {"/", false, true, "/"},
	} {
		name := tt.name
		if !filepath.IsAbs(name) {
			name = c.Dir() + "/" + name
		}
		got, ok := c.Follow(name, tt.glob, tt.deep)
		slices.Sort(got)
		want := strings.Fields(tt.want)
		slices.Sort(want)
		if strings.Contains(tt.name, "[") { // a looser pattern matches more
			got = slices.DeleteFunc(got, func(s string) bool { return !slices.Contains(want, s) })
		}
		if !ok || !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", tt.name, got, want)
		}
	}
	if _, ok := c.Follow(c.Dir()+`/a\`, true, false); ok {
		t.Error("what is no pattern is answered")
	}
}
