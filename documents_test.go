package centurion_test

import (
	"context"
	"errors"
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"centurion/agents"
	"centurion/agents/instructions"
	"centurion/config"
)

// TestReferences holds the documents against the code: a file in backticks exists, and what `file.go: Name` names is declared there.
func TestReferences(t *testing.T) {
	declared := map[string]map[string]bool{}
	for file, f := range sources(t) {
		declared[file] = map[string]bool{}
		for _, d := range f.Decls {
			for _, name := range names(d) {
				declared[file][name] = true
			}
		}
	}
	reference, found := regexp.MustCompile("`([a-z][a-z0-9_/]*/[a-z0-9_]+\\.(?:go|txtar))(?:: ([A-Za-z.]+))?`"), 0
	for name, text := range documents(t) {
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			found++
			text, err := os.ReadFile(m[1])
			switch inFile, product := declared[m[1]]; {
			case strings.HasSuffix(m[1], "/x.go"), strings.HasSuffix(m[1], "/x_test.go"): // stands for any name
			case strings.HasSuffix(m[1], "_test.go") && strings.Contains(string(text), "\nfunc "+m[2]+"("):
			case !product && err != nil:
				t.Errorf("%s: %s: there is no such file", name, m[0])
			case m[2] != "" && !inFile[m[2]]:
				t.Errorf("%s: %s: the file declares no %s", name, m[0], m[2])
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d references were found", found)
	}
}

// names returns what a declaration declares: Name, or Type.Name for a method and a field.
func names(d ast.Decl) (out []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			typ := d.Recv.List[0].Type
			if star, ok := typ.(*ast.StarExpr); ok {
				typ = star.X
			}
			if generic, ok := typ.(*ast.IndexExpr); ok {
				typ = generic.X
			}
			name = typ.(*ast.Ident).Name + "." + name
		}
		return []string{name}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				out = append(out, s.Name.Name)
				var fields *ast.FieldList
				switch typ := s.Type.(type) {
				case *ast.StructType:
					fields = typ.Fields
				case *ast.InterfaceType:
					fields = typ.Methods
				default:
					continue
				}
				for _, f := range fields.List {
					for _, n := range f.Names {
						out = append(out, s.Name.Name+"."+n.Name)
					}
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					out = append(out, n.Name)
				}
			}
		}
	}
	return out
}

// TestOwnProject loads what this repository has in .opencode/ for its own missions, as a mission does.
func TestOwnProject(t *testing.T) {
	options := config.Options{Dir: ".", Home: t.TempDir(), Env: func(string) string { return "" }}
	cfg, err := config.Load(options)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range cfg.ProjectFiles() {
		err = errors.Join(err, cfg.Trust.Trust(s.File()))
	}
	cfg, again := config.Load(options)
	if err = errors.Join(err, again); err != nil {
		t.Fatal(err)
	}
	if len(cfg.Notices) > 0 {
		t.Errorf("notices: %q", cfg.Notices)
	}
	cast, err := cfg.Cast(agents.ProfileMission)
	if err != nil {
		t.Fatal(err)
	}
	reviewer, err := cast.Get(agents.Reviewer)
	if err != nil || !strings.Contains(reviewer.Prompt, "AGENTS.md") || len(cfg.AgentPermission[agents.Reviewer]) == 0 {
		t.Errorf("the reviewer is not this repository's: %v, %v", reviewer.Description, err)
	}
	for _, name := range []string{"trial", "release"} {
		if c := cfg.Commands[name]; c.Description == "" || !strings.Contains(c.Template, "$1") {
			t.Errorf("/%s: %+v", name, c)
		}
	}
	skills, problems, err := instructions.New(instructions.Config{Dir: "."}).Skills(context.Background(), nil)
	if err != nil || len(problems) > 0 || !slices.ContainsFunc(skills, func(s instructions.Skill) bool { return s.Name == "add-tool" }) {
		t.Errorf("skills: %v, %q, %v", skills, problems, err)
	}
	// What these texts name is there.
	var code strings.Builder
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if b, err := os.ReadFile(e.Name()); err == nil && strings.HasSuffix(e.Name(), "_test.go") {
			code.Write(b)
		}
	}
	transitions, err := os.ReadFile("orchestrator/state/transition.go")
	if err != nil {
		t.Fatal(err)
	}
	code.Write(transitions)
	files, names := regexp.MustCompile("`([a-wyz][a-z]*/[a-wyz][a-z0-9_]*\\.[a-z]+)`"), regexp.MustCompile(`Test[A-Z][A-Za-z]*|\b[Mm]ove[A-Z][a-z]+`)
	for name, text := range documents(t) {
		if !strings.HasPrefix(name, ".opencode/") {
			continue
		}
		for _, m := range files.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, function := range names.FindAllString(text, -1) {
			if !strings.Contains(code.String(), "func "+function+"(") {
				t.Errorf("%s names %s, which is not there", name, function)
			}
		}
	}
}
