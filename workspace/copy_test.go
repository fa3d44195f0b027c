package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"centurion"
)

func TestCopy(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	project, checkout := filepath.Join(top, "my project"), filepath.Join(top, "checkout")
	for _, f := range []string{project + "/a.go", project + "/.opencode/context.md", checkout + "/a.go", checkout + "/sub/b.go", checkout + "/.git"} {
		if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, []byte(f), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(project, ".opencode"), filepath.Join(checkout, ".opencode")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".opencode", filepath.Join(checkout, "notes")); err != nil {
		t.Fatal(err)
	}
	w, err := Open(project)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c, err := w.Copy(checkout)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, want := range map[string]string{
		"a.go": "a.go", project + "/a.go": "a.go", checkout + "/sub/b.go": "sub/b.go", project: ".", checkout: ".",
		project + "/.opencode/context.md": ".opencode/context.md", checkout + "/.opencode/context.md": ".opencode/context.md",
	} {
		if got, err := c.Rel(name); err != nil || got != want {
			t.Errorf("Rel(%q) = %q, %v; want %q", name, got, err, want)
		}
	}
	if _, err := c.Rel(filepath.Join(top, "elsewhere")); centurion.KindOf(err) != centurion.KindPermission {
		t.Errorf("a path outside: %v", err)
	}
	for rel, want := range map[string]*Workspace{"a.go": c, ".": c, ".opencode/context.md": w, ".opencode": w, ".OpenCode/x": w, ".opencodex": c} {
		if got := c.For(rel); got != want {
			t.Errorf("For(%q) is %s", rel, got.Dir())
		}
	}
	if w.For(".opencode/x") != w {
		t.Error("the project holds its own notes itself")
	}
	for name, want := range map[string]struct {
		in  *Workspace
		rel string
	}{
		filepath.Join(c.Dir(), "sub/b.go"):               {c, "sub/b.go"},
		filepath.Join(w.Dir(), ".opencode/context.md"):   {w, ".opencode/context.md"},
		filepath.Join(w.Dir(), "a.go"):                   {},
		FollowLinks(filepath.Join(c.Dir(), "notes/x.y")): {w, ".opencode/x.y"},
	} {
		in, rel, ok := c.Holds(name)
		if ok != (want.in != nil) || in != want.in || rel != want.rel {
			t.Errorf("Holds(%q) = %v, %q, %v", name, in, rel, ok)
		}
	}
	for _, p := range []string{".git", "sub/.git/x", ".opencode/context.md", "notes/context.md", project + "/.opencode/todo.md"} {
		if !c.Protected(p) {
			t.Errorf("%s is not protected", p)
		}
	}
	for _, p := range []string{"a.go", project + "/a.go", "new.go"} {
		if c.Protected(p) {
			t.Errorf("%s is protected", p)
		}
	}
}
