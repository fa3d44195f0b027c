package centurion_test

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// shared are the variables of a package that change: the clock that keeps two identifiers of a process apart.
var shared = []string{"id.go idClock"}

// What changes belongs to a value that somebody owns: no function changes a variable of its package, and none of these
// variables is a lock, a channel or a counter. Sessions and missions share what they are given, and nothing else. What a
// build for trials counts is not looked at.
//
// OPAL-15, OPAL-28, OPAL-84
func TestNoPackageState(t *testing.T) {
	files := sources(t)
	vars := map[string]map[string]bool{} // by directory and name
	for file, f := range files {
		dir := path.Dir(file)
		if vars[dir] == nil {
			vars[dir] = map[string]bool{}
		}
		for spec := range packageVars(f) {
			for _, name := range spec.Names {
				vars[dir][name.Name] = name.Name != "_"
			}
			if what := stateful(spec); what != "" && layerOf(dir) != "failpoint" && !slices.Contains(shared, file+" "+spec.Names[0].Name) {
				t.Errorf("%s: the package variable %s is a %s", file, spec.Names[0].Name, what)
			}
		}
	}
	for file, f := range files {
		if layerOf(path.Dir(file)) == "failpoint" {
			continue
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				own := within(fn, vars[path.Dir(file)])
				ast.Inspect(fn.Body, func(n ast.Node) bool {
					for _, name := range own.changedBy(n) {
						if !slices.Contains(shared, file+" "+name) {
							t.Errorf("%s: %s changes the package variable %s", file, fn.Name.Name, name)
						}
					}
					return true
				})
			}
		}
	}
}

func packageVars(f *ast.File) func(yield func(*ast.ValueSpec) bool) {
	return func(yield func(*ast.ValueSpec) bool) {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				if !yield(s.(*ast.ValueSpec)) {
					return
				}
			}
		}
	}
}

// stateful says what a variable is that is made to be changed, or "".
func stateful(spec *ast.ValueSpec) (what string) {
	look := func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncLit, *ast.BlockStmt:
			return false
		case *ast.ChanType:
			what = "channel"
		case *ast.SelectorExpr:
			pkg, _ := x.X.(*ast.Ident)
			if pkg == nil {
				return true
			}
			switch name := pkg.Name + "." + x.Sel.Name; {
			case pkg.Name == "atomic", name == "sync.Mutex", name == "sync.RWMutex", name == "sync.Map", name == "sync.Pool", name == "sync.WaitGroup":
				what = name
			}
		}
		return true
	}
	if spec.Type != nil {
		ast.Inspect(spec.Type, look)
	}
	for _, v := range spec.Values {
		ast.Inspect(v, look)
	}
	return what
}

// packageLevel are the names that mean a variable of the package inside one function: those that the function declares
// itself do not.
type packageLevel map[string]bool

func within(fn *ast.FuncDecl, vars map[string]bool) packageLevel {
	p := maps.Clone(vars)
	own := func(names ...*ast.Ident) {
		for _, n := range names {
			delete(p, n.Name)
		}
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			own(n.Names...)
		case *ast.ValueSpec:
			own(n.Names...)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					own(e.(*ast.Ident))
				}
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					own(id)
				}
			}
		}
		return true
	})
	return p
}

// changedBy returns the package's variables that a statement assigns to, also to a field, an element or what is pointed at.
func (p packageLevel) changedBy(n ast.Node) (names []string) {
	add := func(e ast.Expr) {
		if id := base(e); id != nil && p[id.Name] {
			names = append(names, id.Name)
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			for _, e := range n.Lhs {
				add(e)
			}
		}
	case *ast.IncDecStmt:
		add(n.X)
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			add(n.X)
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && strings.Contains(" delete clear copy ", " "+f.Name+" ") {
			add(n.Args[0])
		}
	}
	return names
}

// base is the variable that an expression belongs to, or nil.
func base(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}
