// The layer law of this repository. Do not loosen this data to make a build pass: when an import is refused here, the
// code is in the wrong package, or the interface belongs to its consumer.
package centurion_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "centurion"

// floor is what every package may import beside the root.
var floor = []string{"guard", "failpoint", "text"}

// mayImport says which packages of this module each package may import. Every package may import the root and the floor; a package may import its own sub-packages, and a sub-package stands where its parent stands.
var mayImport = map[string][]string{
	".":         {},
	"guard":     {},
	"failpoint": {},
	"text":      {},

	// Leaves: they know the nouns and nothing of each other.
	"agents": {}, "event": {}, "provider": {}, "store": {}, "recovery": {}, "loop": {}, "workspace": {}, "worktree": {},
	"verify": {}, "permission": {}, "redact": {}, "sandbox": {}, "trust": {}, "plugin": {}, "mcp": {}, "acp": {},

	// Watchers read the journal as event/view tells it; cmd alone wires them.
	"notify": {"event"}, "report": {"event"},

	// The spine imports downwards.
	"tools":        {leaf},
	"session":      {leaf, "tools"},
	"orchestrator": {leaf, "tools", "session"},
	"takeover":     {leaf, "orchestrator"},

	// What a person has configured is read beside the spine, which gets structs of its own. doctor and demo stand at the edge.
	"config": {leaf},
	"doctor": {leaf, "config"},
	"demo":   {leaf, "config", "host"},

	// The edge imports the spine; nobody but cmd and the trials import the edge.
	"server": {leaf, "tools", "session", "orchestrator", "takeover"},
	"tui":    {leaf, "tools", "session", "orchestrator"},
	"host":   {leaf, "tools", "session", "orchestrator", "takeover", "server", "config"},
	"cli":    {leaf, "tools", "session", "orchestrator", "takeover", "server", "tui", "config", "host"},
	"cmd":    {leaf, "tools", "session", "orchestrator", "takeover", "server", "tui", "config", "host", "cli", "doctor", "demo", "internal", "notify", "report"},

	// The trials drive the built program, and look at what it stored.
	"internal": {leaf, "tools", "session", "server", "config", "demo"},
}

// machines are parts of the orchestrator that know of no mission: they import the root and the floor, and nothing else.
var machines = []string{"orchestrator/budget", "orchestrator/claims", "orchestrator/race", "orchestrator/slots", "orchestrator/speculation"}

// rooms are the parts of the orchestrator that know of a mission, the lowest first: each imports those before it and the machines, and
// none imports the orchestrator itself.
var rooms = []string{"orchestrator/state", "orchestrator/isolation", "orchestrator/plan", "orchestrator/frozen", "orchestrator/notes", "orchestrator/review", "orchestrator/revert", "orchestrator/approval", "orchestrator/brief", "orchestrator/merge", "orchestrator/agent", "orchestrator/mail", "orchestrator/roots", "orchestrator/shells", "orchestrator/start", "orchestrator/ownership", "orchestrator/commander", "orchestrator/space", "orchestrator/background", "orchestrator/task", "orchestrator/control", "orchestrator/branches", "orchestrator/retention", "orchestrator/toolset", "orchestrator/opener"}

// leaf stands for every leaf.
const leaf = "a leaf"

// IKI-20: terminal, conversation, model, storage and tools are packages of their own, and each imports only what lies below it.
func TestLayers(t *testing.T) {
	for file, f := range sources(t) {
		here := layerOf(path.Dir(file))
		allowed, known := mayImport[here]
		if !known {
			t.Errorf("%s: package %s has no place in the layout; give it one in docs/ARCHITECTURE.md and in this test", file, here)
			continue
		}
		for _, imp := range f.Imports {
			to, ours := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), module)
			if !ours || to != "" && to[0] != '/' {
				if here == "." && strings.Contains(strings.Trim(imp.Path.Value, `"`), ".") {
					t.Errorf("%s: the root package imports the standard library only, not %s", file, imp.Path.Value)
				}
				continue
			}
			there := layerOf(strings.TrimPrefix(to, "/"))
			alone := slices.Contains(machines, path.Dir(file))
			if above, below := slices.Index(rooms, path.Dir(file)), slices.Index(rooms, to[min(len(to), 1):]); above >= 0 && there == here &&
				(below >= above || below < 0 && to == "/"+here) {
				t.Errorf("%s: the room %s may not import %s", file, path.Dir(file), imp.Path.Value)
				continue
			}
			if there == here && !alone || slices.Contains(floor, there) || there == "." {
				continue
			}
			if here == "." {
				t.Errorf("%s: the root package imports nothing of this module, not %s", file, imp.Path.Value)
				continue
			}
			if alone {
				t.Errorf("%s: %s knows of no mission and may not import %s", file, path.Dir(file), imp.Path.Value)
				continue
			}
			if !slices.Contains(allowed, there) && !(isLeaf(there) && slices.Contains(allowed, leaf)) {
				t.Errorf("%s: %s may not import %s", file, here, there)
			}
		}
	}
}

// A goroutine without an owner and a recover can end the process, so only guard starts them.
func TestNoBareGoStatement(t *testing.T) {
	for file, f := range sources(t) {
		if layerOf(path.Dir(file)) == "guard" {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s has a go statement; use guard.Group", file)
			}
			return true
		})
	}
}

func TestOnePackageComment(t *testing.T) {
	comments := map[string]int{}
	for file, f := range sources(t) {
		dir := path.Dir(file)
		comments[dir] += 0
		if f.Doc != nil {
			comments[dir]++
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(comments)) {
		if n := comments[dir]; n != 1 {
			t.Errorf("package %s has %d package comments, want exactly one", dir, n)
		}
	}
}

func isLeaf(layer string) bool {
	allowed, ok := mayImport[layer]
	return ok && len(allowed) == 0 && layer != "." && !slices.Contains(floor, layer)
}

// layerOf returns the top directory of a package's path, and "." for the root.
func layerOf(dir string) string {
	top, _, _ := strings.Cut(dir, "/")
	if top == "" {
		return "."
	}
	return top
}

// sources parses every Go file that is not a test. It reads them itself instead of asking the go command, whose answer
// the test cache would keep after a file has changed.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	_, files := parsed(t)
	return files
}

// parsed returns the same with the positions in the files.
func parsed(t *testing.T) (*token.FileSet, map[string]*ast.File) {
	t.Helper()
	fset, files := token.NewFileSet(), map[string]*ast.File{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != "." && (strings.HasPrefix(name, ".") || name == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(p)] = f
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("only %d files found: the test looks in the wrong place", len(files))
	}
	return fset, files
}
