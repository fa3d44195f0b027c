package tools

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"centurion"
	"centurion/permission"
)

// inAnotherRoot is a session in a workspace whose files are not at the path of its directory: there the host has the project's own, with
// other content at the same names. files is where they are.
func inAnotherRoot(t *testing.T) (b *bench, files string) {
	t.Helper()
	b = newBench(t)
	host := map[string]string{"a.txt": "host\n", "sub/b.txt": "host needle\n", "only-host.txt": "host needle\n", ".opencode/context.md": "notes\n", ".gitignore": "*.txt\n", "dir-or-file": "host\n"}
	for name, content := range host {
		b.put(name, content)
	}
	project, dir := b.Workspace, b.dir
	b.dir = newBench(t).dir
	files = b.dir
	for name, content := range map[string]string{"a.txt": "mine\n", "sub/b.txt": "my needle\n", "sub/new.txt": "needle, too\n", ".opencode/context.md": "a copy\n", "dir-or-file/x": "x\n"} {
		b.put(name, content)
	}
	other := newBench(t)
	other.put("key", "")
	for link, to := range map[string]string{"rel": "sub/b.txt", "abs": filepath.Join(dir, "sub"), "round": "round", "key": filepath.Join(other.dir, "key"), "notes": ".opencode"} {
		if err := os.Symlink(to, filepath.Join(files, link)); err != nil {
			if runtime.GOOS != "windows" { // there links need a right of their own
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	if err := os.Symlink("only-host.txt", filepath.Join(dir, "rel")); err != nil {
		if runtime.GOOS != "windows" { // there links need a right of their own
			t.Fatal(err)
		}
		t.Skip(err)
	}
	root, err := os.OpenRoot(files)
	if err != nil {
		t.Fatal(err)
	}
	b.Workspace = project.CopyIn(root, centurion.Place{Dir: dir})
	t.Cleanup(func() {
		b.Workspace.Close()
		for name, content := range host {
			if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != content {
				t.Errorf("on the host, %s is %q now, %v", name, data, err)
			}
		}
		entries, err := os.ReadDir(dir)
		want(t, "the host's files", len(entries), 7)
		if err != nil {
			t.Error(err)
		}
	})
	return b, files
}

// S1, issue "Fifty workspaces" 3: file tools see the files of the workspace, never those that the host has at the same path.
func TestToolsInAnotherRoot(t *testing.T) {
	b, _ := inAnotherRoot(t)
	dir := b.Workspace.Dir()
	short := filepath.Join(newBench(t).dir, "short")
	if err := os.Symlink(dir, short); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{"a.txt": "mine", dir + "/a.txt": "mine", short + "/a.txt": "mine", "rel": "my needle", dir + "/rel": "my needle", short + "/rel": "my needle",
		"abs/new.txt": "needle, too", "sub/../rel": "my needle", "../" + filepath.Base(dir) + "/a.txt": "mine", ".opencode/context.md": "notes", "notes/context.md": "notes"} {
		want(t, name, b.must("read", args{"filePath": name}).Output, "     1| "+says+"\n")
	}
	b.refused("read", args{"filePath": "only-host.txt"}, centurion.KindNotFound, "only-host.txt does not exist", "look with glob")
	b.refused("read", args{"filePath": "sub/bb.txt"}, centurion.KindNotFound, "did you mean sub/b.txt?")
	b.refused("read", args{"filePath": "dir-or-file"}, centurion.KindUsage, "is a directory")
	b.refused("read", args{"filePath": "round"}, centurion.KindUsage, "round")
	for _, outside := range []string{"key", "../x", filepath.Join(b.dir, "a.txt")} { // where its files are is no path of the workspace
		b.refused("read", args{"filePath": outside}, centurion.KindPermission, "external_directory")
	}

	b.must("edit", args{"filePath": "rel", "oldString": "my", "newString": "our"})
	want(t, "edited", b.get("sub/b.txt"), "our needle\n")
	wantList(t, "files", b.must("write", args{"filePath": dir + "/a.txt", "content": "mine now\n"}).Files, "a.txt")
	want(t, "written", b.get("a.txt"), "mine now\n")
	b.must("write", args{"filePath": "only-host.txt", "content": "unseen\n"}) // that the host has one does not matter
	want(t, "created", b.get("only-host.txt"), "unseen\n")
	b.must("write", args{"filePath": "abs/made/c.txt", "content": "c\n"})
	want(t, "created below a link", b.get("sub/made/c.txt"), "c\n")
	b.refused("write", args{"filePath": "notes/context.md", "content": "x"}, centurion.KindPermission, "update_context")
	b.refused("edit", args{"filePath": ".opencode/context.md", "oldString": "notes", "newString": "x"}, centurion.KindPermission, "update_context")
	b.gate.then = func(Access) { b.put("a.txt", "theirs\n") }
	b.refused("write", args{"filePath": "a.txt", "content": "x\n"}, centurion.KindConflict, "a.txt has changed since you read it")
	b.gate.then = nil
}

// The same for what lists and searches.
func TestSearchesInAnotherRoot(t *testing.T) {
	b, _ := inAnotherRoot(t)
	out := b.must("grep", args{"pattern": "needle"}).Output
	says(t, out, "sub/b.txt\n     1| my needle", "sub/new.txt\n     1| needle, too", "2 matches in 2 files")
	silent(t, out, "host")
	says(t, b.must("grep", args{"pattern": "my", "path": "rel"}).Output, "rel\n     1| my needle")
	says(t, b.must("grep", args{"pattern": "notes|copy", "path": ".opencode"}).Output, ".opencode/context.md\n     1| notes", "(1 match in 1 file)")
	says(t, b.must("grep", args{"pattern": "notes|copy", "path": "notes"}).Output, "notes/context.md\n     1| notes")
	out = b.must("glob", args{"pattern": "**/*.txt"}).Output
	says(t, out, "a.txt\n", "sub/b.txt\n", "sub/new.txt\n")
	silent(t, out, "host")
	want(t, "below a link", strings.Count(b.must("glob", args{"pattern": "*.txt", "path": filepath.Join(b.Workspace.Dir(), "abs")}).Output, "abs/"), 2)
	out = b.must("ls", args{}).Output
	says(t, out, "a.txt  5 B", "new.txt", "dir-or-file/\n", "context.md  6 B")
	silent(t, out, "host")
	b.refused("ls", args{"path": "a.txt"}, centurion.KindUsage, "a.txt is not a directory")
	b.refused("ls", args{"path": "key"}, centurion.KindPermission, "external_directory")
	b.refused("glob", args{"pattern": "*", "path": "only-host"}, centurion.KindNotFound, "only-host does not exist")
}

// The same for a script: where it runs, and what it plainly only reads.
func TestScriptsInAnotherRoot(t *testing.T) {
	b, _ := inAnotherRoot(t)
	run := &runner{}
	b.Runner = run
	b.must("bash", args{"command": "ls", "workdir": "dir-or-file"})
	want(t, "directory", run.given.Cwd(), filepath.Join(b.Workspace.Dir(), "dir-or-file"))
	b.must("bash", args{"command": "ls", "workdir": "abs"})
	want(t, "directory", run.given.Cwd(), filepath.Join(b.Workspace.Dir(), "sub"))
	b.refused("bash", args{"command": "ls", "workdir": "nowhere"}, centurion.KindNotFound, "nowhere does not exist")
	b.refused("bash", args{"command": "ls", "workdir": "a.txt"}, centurion.KindUsage, "not a directory")
	b.refused("bash", args{"command": "ls", "workdir": "key"}, centurion.KindPermission, "outside")
	for script, reads := range map[string]bool{"cat a.txt rel abs/new.txt": true, "cat sub/*": true, "cat key": false, "cat k*": false, "grep -R x .": false, "grep -r x .": true, "cat abs/../key": false, "git status": true} {
		s := ScriptPlace(b.Workspace, "").Parse(script)
		if s.ReadOnly != reads {
			t.Errorf("%s: only reads %v, %s", script, s.ReadOnly, s.Why)
		}
	}
	levels := []permission.Level{{Name: "test", Rules: []permission.Rule{{Permission: "*", Pattern: "*", Action: permission.Allow}, {Permission: "read", Pattern: "sub/b.txt", Action: permission.Deny},
		{Permission: "read", Pattern: "only-host.txt", Action: permission.Deny}}}}
	for script, want := range map[string]permission.Action{"cat rel": permission.Deny, "cat abs/b.txt": permission.Deny, "cat abs/new.txt": permission.Allow} {
		if d := ScriptPlace(b.Workspace, "").Decide(levels, script, true); d.Action != want {
			t.Errorf("%s: %s (%s)", script, d.Action, d.Reason)
		}
	}
}
