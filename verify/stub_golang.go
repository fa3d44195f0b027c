package verify

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// goFunctions finds the functions of a Go file and the function literals outside of them.
func goFunctions(src []byte) ([]function, bool) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "", src, parser.SkipObjectResolution)
	if err != nil {
		return nil, false
	}
	tf := set.File(f.Pos())
	offset := func(p token.Pos) int { return tf.Offset(p) }
	var fs []function
	add := func(name string, start token.Pos, t *ast.FuncType, body *ast.BlockStmt) {
		fn := function{name: name, from: offset(body.Lbrace), to: offset(body.Rbrace) + 1, first: tf.Line(start), last: tf.Line(body.Rbrace)}
		fn.head = strings.Join(strings.Fields(string(src[offset(start):fn.from])), " ")
		fn.stub = append(nameResults(src, t, offset), edit{fn.from, fn.to, emptyBody(t)})
		fs = append(fs, fn)
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body != nil {
				add(goName(d), d.Pos(), d.Type, d.Body)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				v, ok := s.(*ast.ValueSpec)
				if !ok {
					continue
				}
				n := 0
				ast.Inspect(v, func(x ast.Node) bool {
					lit, ok := x.(*ast.FuncLit)
					if ok {
						n++
						add(v.Names[0].Name+"."+strconv.Itoa(n), lit.Pos(), lit.Type, lit.Body)
					}
					return !ok
				})
			}
		}
	}
	return fs, true
}

func goName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}

// nameResults names the results, so that a bare return gives their zero values.
func nameResults(src []byte, t *ast.FuncType, offset func(token.Pos) int) []edit {
	if t.Results == nil || len(t.Results.List) == 0 || len(t.Results.List[0].Names) > 0 {
		return nil
	}
	var types []string
	for _, r := range t.Results.List {
		types = append(types, "_ "+string(src[offset(r.Type.Pos()):offset(r.Type.End())]))
	}
	return []edit{{offset(t.Results.Pos()), offset(t.Results.End()), "(" + strings.Join(types, ", ") + ")"}}
}

func emptyBody(t *ast.FuncType) string {
	if t.Results == nil || len(t.Results.List) == 0 {
		return "{}"
	}
	return "{ return }"
}

// finishGo makes unused imports blank and adds the imports that old bodies need.
func finishGo(after, before, out []byte) []byte {
	used, was := selectors(after), selectors(out)
	if used == nil || was == nil {
		return out
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "", out, parser.ImportsOnly|parser.SkipObjectResolution)
	if err != nil {
		return out
	}
	tf := set.File(f.Pos())
	var edits []edit
	var have []string
	for _, s := range f.Imports {
		value, _ := strconv.Unquote(s.Path.Value)
		have = append(have, value)
		name := importName(s, used)
		if name == "" || name == "_" || name == "." || value == "C" || !used[name] || was[name] {
			continue
		}
		from := tf.Offset(s.Path.Pos())
		if s.Name != nil {
			from = tf.Offset(s.Name.Pos())
		}
		edits = append(edits, edit{from, tf.Offset(s.Path.Pos()), "_ "})
	}
	at := tf.Offset(f.Name.End())
	for _, s := range oldImports(before) {
		value, _ := strconv.Unquote(s.Path.Value)
		if name := importName(s, was); name != "" && was[name] && value != "C" && !slices.Contains(have, value) {
			line := "; import " + s.Path.Value
			if s.Name != nil {
				line = "; import " + s.Name.Name + " " + s.Path.Value
			}
			edits = append(edits, edit{at, at, line})
		}
	}
	return apply(out, edits)
}

func oldImports(src []byte) []*ast.ImportSpec {
	f, err := parser.ParseFile(token.NewFileSet(), "", src, parser.ImportsOnly|parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	return f.Imports
}

// selectors returns the names before a dot, or nil if the file does not parse.
func selectors(src []byte) map[string]bool {
	f, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	names := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				names[x.Name] = true
			}
		}
		return true
	})
	return names
}

// importName is the name of an imported package. Without an explicit name it is guessed from the path: "gopkg.in/yaml.v3" is yaml, "x/go-redis/v9" redis.
func importName(s *ast.ImportSpec, used map[string]bool) string {
	if s.Name != nil {
		return s.Name.Name
	}
	value, err := strconv.Unquote(s.Path.Value)
	if err != nil {
		return ""
	}
	parts := strings.Split(value, "/")
	last := parts[len(parts)-1]
	if len(parts) > 1 && len(last) > 1 && last[0] == 'v' && strings.Trim(last[1:], "0123456789") == "" {
		last = parts[len(parts)-2]
	}
	if used[last] {
		return last
	}
	first, _, _ := strings.Cut(last, ".")
	for _, name := range []string{first, strings.TrimPrefix(first, "go-"), strings.TrimSuffix(first, "-go"), strings.ReplaceAll(first, "-", ""), strings.ReplaceAll(first, "-", "_"),
		first[strings.LastIndexByte(first, '-')+1:]} {
		if used[name] {
			return name
		}
	}
	return last
}
