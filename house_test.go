package centurion_test

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// limits are what the layout may measure at most, and what it is to measure. A figure may only fall: a change that lowers one
// lowers it here, too. Lines are rounded up to the next hundred, so that an ordinary change does not touch this table.
var limits = map[string]struct{ now, goal int }{
	"fields of orchestrator.mission":             {16, 18},
	"methods of orchestrator.mission":            {5, 40},
	"methods of orchestrator.Host":               {13, 35},
	"methods of orchestrator/agent.Conversation": {35, 35},
	"methods of cmd/centurion.cli":               {33, 40},
	"methods of worktree.Repo":                   {1, 40},
	"methods of worktree.objects":                {40, 40},
	"lines of orchestrator":                      {700, 2600},
	"lines of the biggest room":                  {2000, 2000},
	"lines of cmd":                               {4800, 6500},      // with the commands acp, mcp and plugin
	"lines of the product":                       {118_500, 124700}, // step by step: tools, hooks and agents from outside
	"files over 500 lines":                       {0, 0},
	"functions over 60 lines":                    {0, 0},
	"files in one circle":                        {8, 8},
	"transactions that do more":                  {0, 0},
	"searches of the journal":                    {0, 0},
}

// notProduct are packages that no user runs: trials, the scripted model, the demonstration and helpers of tests.
var notProduct = []string{"acp/acptest", "internal/trial", "cmd/trial", "provider/scripted", "demo", "workspace/todotest", "store/storetest", "internal/browser", "failpoint", "guard/cputime", "guard/synced", "server/opencode/v1/contract"}

// TestHouse measures how the code is divided.
func TestHouse(t *testing.T) {
	h := newHouse(t)
	got := map[string]int{}
	h.countTypes(got)
	h.countLines(got)
	const circle = "files in one circle"
	for dir := range h.packages {
		if files := h.circle(dir); layerOf(dir) == "orchestrator" && len(files) > got[circle] {
			got[circle], h.where[circle] = len(files), files
		}
	}
	h.countTransactions(got)
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		switch n, limit := got[name], limits[name]; {
		case n > max(limit.now, limit.goal):
			t.Errorf("%s: %d, at most %d: %s", name, n, limit.now, strings.Join(h.where[name], ", "))
		case n < limit.now && limit.now > limit.goal:
			t.Errorf("%s: %d is better than %d; write the new figure into limits", name, n, limit.now)
		}
	}
}

// house is the parsed and type-checked code of this module without its tests. What it imports from elsewhere stays unknown.
type house struct {
	fset     *token.FileSet
	files    map[string]*ast.File
	packages map[string]*types.Package
	infos    map[string]*types.Info
	where    map[string][]string // what was counted, by the figure's name
}

func newHouse(t *testing.T) *house {
	h := &house{packages: map[string]*types.Package{}, infos: map[string]*types.Info{}, where: map[string][]string{}}
	h.fset, h.files = parsed(t)
	for file := range h.files {
		h.check(path.Dir(file))
	}
	return h
}

// check type-checks a directory. Errors are left to the compiler: packages of other modules are empty here, and files of all systems lie side by side.
func (h *house) check(dir string) *types.Package {
	if p := h.packages[dir]; p != nil {
		return p
	}
	var files []*ast.File
	for _, file := range slices.Sorted(maps.Keys(h.files)) {
		if path.Dir(file) == dir {
			files = append(files, h.files[file])
		}
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Importer: h, Error: func(error) {}}
	h.packages[dir], _ = conf.Check(path.Join(module, dir), h.fset, files, info)
	h.infos[dir] = info
	return h.packages[dir]
}

// Import returns a package of this module, or an empty one with the name that its path suggests.
func (h *house) Import(name string) (*types.Package, error) {
	if dir, ours := strings.CutPrefix(name+"/", module+"/"); ours {
		return h.check(cmp.Or(strings.TrimSuffix(dir, "/"), ".")), nil
	}
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}

// countTypes counts the fields and the methods of the types that [limits] names, as "fields of package.Type".
func (h *house) countTypes(got map[string]int) {
	for name := range limits {
		what, typ, ok := strings.Cut(name, " of ")
		dot := strings.LastIndex(typ, ".")
		if !ok || dot < 0 {
			continue
		}
		p := h.packages[typ[:dot]]
		if p == nil {
			continue
		}
		obj := p.Scope().Lookup(typ[dot+1:])
		if obj == nil {
			continue
		}
		named := obj.Type().(*types.Named)
		if what == "methods" {
			got[name] = named.NumMethods()
		} else if s, ok := named.Underlying().(*types.Struct); ok {
			got[name] = s.NumFields()
		}
	}
}

func (h *house) countLines(got map[string]int) {
	const product, files, functions = "lines of the product", "files over 500 lines", "functions over 60 lines"
	packages := map[string]int{}
	for _, file := range slices.Sorted(maps.Keys(h.files)) {
		f, dir := h.files[file], path.Dir(file)
		n := h.fset.File(f.Pos()).LineCount()
		packages[dir] += n
		if layerOf(dir) == "cmd" {
			got["lines of cmd"] += n
		}
		if slices.Contains(notProduct, dir) {
			continue
		}
		got[product] += n
		if n > 500 {
			got[files]++
			h.where[files] = append(h.where[files], file)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && h.fset.Position(fn.End()).Line-h.fset.Position(fn.Pos()).Line >= 60 {
				got[functions]++
				h.where[functions] = append(h.where[functions], file+": "+fn.Name.Name)
			}
		}
	}
	for dir, n := range packages {
		if room := "lines of the biggest room"; strings.HasPrefix(dir, "orchestrator/") && n > got[room] {
			got[room], h.where[room] = n, []string{dir}
		}
	}
	got["lines of orchestrator"] = packages["orchestrator"]
	for name := range got {
		if strings.HasPrefix(name, "lines of") {
			got[name] = (got[name] + 99) / 100 * 100
		}
	}
}

// circle returns the files of the biggest set in which each refers to each, directly or through others.
func (h *house) circle(dir string) []string {
	info, refers := h.infos[dir], map[string]map[string]bool{}
	for id, obj := range info.Uses {
		from, to := h.file(id.Pos()), h.file(obj.Pos())
		if path.Dir(from) == dir && path.Dir(to) == dir && from != to {
			if refers[from] == nil {
				refers[from] = map[string]bool{}
			}
			refers[from][to] = true
		}
	}
	reach := map[string]map[string]bool{}
	for from := range refers {
		seen := map[string]bool{}
		for todo := []string{from}; len(todo) > 0; todo = todo[1:] {
			for to := range refers[todo[0]] {
				if !seen[to] {
					seen[to] = true
					todo = append(todo, to)
				}
			}
		}
		reach[from] = seen
	}
	var biggest []string
	for from := range reach {
		var same []string
		for to := range reach[from] {
			if reach[to][from] {
				same = append(same, to)
			}
		}
		if len(same) > len(biggest) {
			biggest = same
		}
	}
	return biggest
}

func (h *house) file(pos token.Pos) string {
	if !pos.IsValid() {
		return ""
	}
	return h.fset.Position(pos).Filename
}

// A transaction may run twice and holds up every other writer: a function that has one calls nothing that reads files, runs programs
// or asks the store beside it. The state of a mission is in rows; nobody searches the journal to decide.
func (h *house) countTransactions(got map[string]int) {
	const transactions, searches = "transactions that do more", "searches of the journal"
	slow, calls, bodies := map[types.Object]string{}, map[types.Object][]types.Object{}, map[types.Object]*ast.FuncDecl{} // across rooms
	in := map[*ast.FuncDecl]string{}
	for _, f := range h.files {
		dir := path.Dir(h.file(f.Pos()))
		if layerOf(dir) != "orchestrator" && layerOf(dir) != "takeover" && layerOf(dir) != "session" {
			continue
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				obj := h.infos[dir].Defs[fn.Name]
				bodies[obj], in[fn] = fn, dir
				slow[obj], calls[obj] = slowCalls(h.infos[dir], fn.Body)
			}
		}
	}
	for again := true; again; {
		again = false
		for obj, to := range calls {
			for _, callee := range to {
				if slow[obj] == "" && slow[callee] != "" {
					slow[obj], again = callee.Name()+" -> "+slow[callee], true
				}
			}
		}
	}
	for _, fn := range bodies {
		dir := in[fn]
		info := h.infos[dir]
		ast.Inspect(fn, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && layerOf(dir) != "session" && calledMethod(info, call) == "store.Store.Events" {
				got[searches]++
				h.where[searches] = append(h.where[searches], h.file(call.Pos())+": "+fn.Name.Name)
			}
			var params *ast.FieldList
			var body *ast.BlockStmt
			switch n := n.(type) {
			case *ast.FuncDecl:
				params, body = n.Type.Params, n.Body
			case *ast.FuncLit:
				params, body = n.Type.Params, n.Body
			}
			if body == nil || !takesTx(info, params) {
				return true
			}
			why, callees := slowCalls(info, body)
			for _, callee := range callees {
				if b := bodies[callee]; why == "" && slow[callee] != "" && !(b != nil && takesTx(info, b.Type.Params)) {
					why = callee.Name() + " -> " + slow[callee]
				}
			}
			if why != "" {
				got[transactions]++
				h.where[transactions] = append(h.where[transactions], h.file(fn.Pos())+": "+fn.Name.Name+" -> "+why)
			}
			return true
		})
	}
}

// slowCalls returns the first thing in a body that is no work of a transaction, and the functions of its package that it calls.
func slowCalls(info *types.Info, body *ast.BlockStmt) (slow string, callees []types.Object) {
	ast.Inspect(body, func(n ast.Node) bool {
		if lit, ok := n.(*ast.FuncLit); ok && takesTx(info, lit.Type.Params) {
			return false // looked at by itself
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := calledMethod(info, call)
		pkg, method, _ := strings.Cut(name, ".")
		switch {
		case name == "" || slow != "":
		case strings.HasSuffix(method, ".Path") || strings.HasSuffix(method, ".Prefix"): // what a value knows of itself
		case pkg == "os" || pkg == "verify" || pkg == "worktree" || strings.HasPrefix(name, "workspace.Workspace") || strings.HasPrefix(name, "workspace.TodoFile"):
			slow = name
		case strings.HasPrefix(method, "Store."):
			slow = name
		}
		fun := ast.Unparen(call.Fun)
		if sel, ok := fun.(*ast.SelectorExpr); ok {
			fun = sel.Sel
		}
		if id, ok := fun.(*ast.Ident); ok {
			if obj, ok := info.Uses[id].(*types.Func); ok {
				callees = append(callees, obj)
			}
		}
		return true
	})
	return slow, callees
}

// calledMethod names what a call calls, as "package.Type.Method" or "package.Function"; functions of the standard library only of
// package os.
func calledMethod(info *types.Info, call *ast.CallExpr) string {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := sel.X.(*ast.Ident); ok {
		if p, ok := info.Uses[x].(*types.PkgName); ok && p.Imported().Path() == "os" {
			return "os." + sel.Sel.Name
		}
	}
	fn, ok := info.Uses[sel.Sel].(*types.Func)
	if !ok || fn.Pkg() == nil {
		return ""
	}
	recv := fn.Signature().Recv()
	if recv == nil {
		return ""
	}
	typ := recv.Type()
	if p, ok := typ.(*types.Pointer); ok {
		typ = p.Elem()
	}
	if named, ok := typ.(*types.Named); ok {
		return fn.Pkg().Name() + "." + named.Obj().Name() + "." + fn.Name()
	}
	return ""
}

func takesTx(info *types.Info, params *ast.FieldList) bool {
	return params != nil && slices.ContainsFunc(params.List, func(p *ast.Field) bool {
		typ := info.Types[p.Type].Type
		return typ != nil && strings.HasSuffix(typ.String(), "store.Tx")
	})
}
