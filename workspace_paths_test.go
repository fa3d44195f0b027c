package centurion_test

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// byPath are the functions that reach a file by its path on the host, by package.
var byPath = map[string][]string{
	"os": {"Chdir", "Chmod", "Chown", "Chtimes", "CopyFS", "Create", "CreateTemp", "DirFS", "Lchown", "Link", "Lstat", "Mkdir", "MkdirAll", "MkdirTemp", "Open", "OpenFile", "OpenInRoot",
		"OpenRoot", "ReadDir", "ReadFile", "Readlink", "Remove", "RemoveAll", "Rename", "Stat", "Symlink", "Truncate", "WriteFile"},
	"path/filepath":           {"EvalSymlinks", "Glob", "Walk", "WalkDir"},
	"io/ioutil":               {},
	"syscall":                 {"Open", "Openat", "Stat", "Lstat"},
	"golang.org/x/sys/unix":   {"Open", "Openat", "Stat", "Lstat"},
	"centurion/guard/durable": {"Replace"},
	"centurion/workspace":     {"FollowLinks", "Open"},
	"centurion/worktree":      {"Runs"},
}

// pathsOutside are the places that may, since their paths are in no workspace: "file: call", with the reason.
var pathsOutside = map[string]string{
	"tools/bash.go: worktree.Runs": "the repository of a project or of a copy that the host has at its path; ScriptPlace does not ask it about others",
}

// Issue "Fifty workspaces" 3 and 9: the files of a workspace may be in another mount namespace, on a host whose same path has other
// files, or on no path at all. Those above it reach them through workspace only.
func TestNoFileOfAWorkspaceByItsPath(t *testing.T) {
	found := map[string]bool{}
	for file, f := range sources(t) {
		if !slices.Contains([]string{"tools", "session", "verify"}, layerOf(path.Dir(file))) {
			continue
		}
		names := map[string]string{} // the path of a package by its name in this file
		for _, imp := range f.Imports {
			p := strings.Trim(imp.Path.Value, `"`)
			name := path.Base(p)
			if imp.Name != nil {
				name = imp.Name.Name
			}
			if calls, named := byPath[p]; named && (name == "." || len(calls) == 0) {
				t.Errorf("%s imports %s as %s, which hides calls by a path", file, p, name)
			}
			names[name] = p
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if id, ok := sel.X.(*ast.Ident); ok && slices.Contains(byPath[names[id.Name]], sel.Sel.Name) {
				what := file + ": " + id.Name + "." + sel.Sel.Name
				if found[what] = true; pathsOutside[what] == "" {
					t.Errorf("%s reaches a file by a path of the host; a workspace has it under that path only by chance", what)
				}
			}
			return true
		})
	}
	for what := range pathsOutside {
		if !found[what] {
			t.Errorf("%s is not there; remove it from the list", what)
		}
	}
}
