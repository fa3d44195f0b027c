package permission

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// unknown stands for a part of a text whose value only the running shell knows. No argument can contain a NUL itself.
const unknown = "\x00"

// arg is one word of a command, as far as it is known without running anything.
type arg struct {
	match string // without quotes; [unknown] for unknown parts
	guess string // the same with the likeliest value, often none, for unknown parts
	show  string // for people: unknown parts as written
	glob  bool   // it has an unquoted *, ? or [
	list  bool   // its unknown part is a plain list of files of the project: $(git ls-files)

	secrets []string // files that usually hold secrets, if its unknown part is a search for them: $(find . -name .env)
}

func literalArg(s string) arg { return arg{match: s, guess: s, show: s} }

func (a arg) dynamic() bool { return strings.Contains(a.match, unknown) }

func (a arg) flag() bool { return len(a.match) > 1 && a.match[0] == '-' }

// vars are the values a script gives to its variables. The value of a missing variable is unknown.
type vars map[string][]string

// maxAlternatives is how many values of a variable are followed. A variable with more counts as unknown.
const maxAlternatives = 8

// maxBraces limits the words that {a,b} expands to. A word with more counts as unknown.
const maxBraces = 64

// collectVars finds variables that only ever get literal values, anywhere in the tree.
func collectVars(root syntax.Node, home, dir string) vars {
	values, lost, refers := vars{}, map[string]bool{}, map[string]string{}
	set := func(name string, w *syntax.Word) {
		v, ok := staticWord(w)
		if !ok {
			lost[name] = true
			return
		}
		values[name] = append(values[name], v)
	}
	syntax.Walk(root, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			switch {
			case n.Name == nil:
			case n.Append || n.Array != nil || n.Index != nil || n.Naked:
				lost[n.Name.Value] = true
			default:
				set(n.Name.Value, n.Value)
			}
		case *syntax.DeclClause:
			references(n, refers)
		case *syntax.WordIter:
			for _, w := range n.Items {
				set(n.Name.Value, w)
			}
			if len(n.Items) == 0 {
				lost[n.Name.Value] = true
			}
		case *syntax.ParamExp:
			if n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				lost[n.Param.Value] = true
			}
		case *syntax.BinaryArithm, *syntax.UnaryArithm:
			loseArithmetic(n, lost)
		case *syntax.CallExpr:
			loseBuiltin(n, lost)
		}
		return true
	})
	for name, to := range refers {
		values[name] = append(values[name], values[to]...)
		lost[name] = lost[name] || lost[to] || len(values[to]) == 0
	}
	for name, v := range values {
		if lost[name] || len(v) > maxAlternatives {
			delete(values, name)
		}
	}
	for name, v := range map[string]string{"HOME": home, "PWD": dir} {
		if _, assigned := values[name]; !assigned && !lost[name] && v != "" {
			values[name] = []string{v}
		}
	}
	return values
}

// references collects the variables that a declaration makes other names of variables: declare -n x=y.
func references(n *syntax.DeclClause, refers map[string]string) {
	if !slices.ContainsFunc(n.Args, func(a *syntax.Assign) bool { return a.Name == nil && flagWith(a.Value, "n") }) {
		return
	}
	for _, a := range n.Args {
		if v, ok := staticWord(a.Value); a.Name != nil && ok {
			refers[a.Name.Value] = v
		}
	}
}

// flagWith reports whether a word is an option with this letter.
func flagWith(w *syntax.Word, letter string) bool {
	v, _ := staticWord(w)
	return len(v) > 1 && v[0] == '-' && strings.Contains(v, letter)
}

// loseArithmetic drops the variables that an arithmetic expression may assign to.
func loseArithmetic(n syntax.Node, lost map[string]bool) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if l, ok := n.(*syntax.Lit); ok {
			lost[l.Value] = true
		}
		return true
	})
}

// loseBuiltin drops the variables assigned by builtins such as read: all of their arguments.
func loseBuiltin(n *syntax.CallExpr, lost map[string]bool) {
	if len(n.Args) == 0 {
		return
	}
	name, _ := staticWord(n.Args[0])
	switch name {
	case "read", "mapfile", "readarray", "getopts", "printf", "unset", "wait", "eval", "builtin", "command", "local", "export", "declare":
		for _, w := range n.Args[1:] {
			if v, ok := staticWord(w); ok {
				name, _, _ := strings.Cut(v, "=")
				lost[name] = true
			}
		}
	}
}

// staticWord returns a word's text if it does not depend on the running shell; globs stay as written.
func staticWord(w *syntax.Word) (string, bool) {
	if w == nil {
		return "", true
	}
	a := (&resolver{}).word(w)
	return a.match, !a.dynamic()
}

// resolver turns words into args. pick is the index of a variable's value in this alternative; -1 means none, because the script may
// use a variable before, or without, its assignment.
type resolver struct {
	vars  vars
	pick  int
	multi bool // a variable with several values was used
	used  bool // a variable with a known value was used
}

// fields expands the words of a command: braces, and variables that hold several words.
func (r *resolver) fields(words []*syntax.Word) []arg {
	var out []arg
	for _, w := range words {
		split := *w
		split.Parts = append([]syntax.WordPart(nil), w.Parts...)
		if !syntax.SplitBraces(&split) {
			out = append(out, r.split(w)...)
			continue
		}
		if len(split.Parts) > maxBraces {
			out = append(out, arg{match: unknown, show: source(w)})
			continue
		}
		n := 0
		for b, err := range expand.BracesSeq(nil, &split) {
			if n++; err != nil || n > maxBraces {
				out = append(out, arg{match: unknown, show: source(w)})
				break
			}
			out = append(out, r.split(b)...)
		}
	}
	return out
}

// split resolves one word and splits it at the spaces of an unquoted variable.
func (r *resolver) split(w *syntax.Word) []arg {
	a := r.word(w)
	if !splits(w) {
		return []arg{a}
	}
	fields := strings.Fields(a.match)
	if len(fields) == 0 {
		return nil
	}
	if a.dynamic() || len(fields) == 1 {
		return []arg{a}
	}
	out := make([]arg, len(fields))
	for i, f := range fields {
		out[i] = literalArg(f)
		out[i].glob = strings.ContainsAny(f, "*?[")
	}
	return out
}

// splits reports whether a word has an unquoted expansion.
func splits(w *syntax.Word) bool {
	return slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		switch p.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst:
			return true
		}
		return false
	})
}

func (r *resolver) word(w *syntax.Word) arg {
	var a arg
	if len(w.Parts) == 1 {
		if sub, ok := w.Parts[0].(*syntax.CmdSubst); ok {
			a.list = listsFiles(sub)
		}
	}
	for i, p := range w.Parts {
		r.part(&a, p, false)
		if l, ok := p.(*syntax.Lit); ok && i == 0 && strings.HasPrefix(l.Value, "~") {
			r.tilde(&a)
		}
	}
	return a
}

// tilde replaces a leading ~ with the home directory; ~user stays and counts as outside.
func (r *resolver) tilde(a *arg) {
	home := r.vars["HOME"]
	if len(home) == 1 && (len(a.match) == 1 || a.match[1] == '/') {
		a.match, a.guess = home[0]+a.match[1:], home[0]+a.guess[1:]
	}
}

func (a *arg) add(s string) {
	a.match += s
	a.guess += s
	a.show += s
}

func (a *arg) addUnknown(guess, show string) {
	a.match += unknown
	a.guess += guess
	a.show += show
}

func (r *resolver) part(a *arg, p syntax.WordPart, quoted bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		if quoted {
			a.add(unescape(p.Value, "$`\"\\\n"))
			return
		}
		if hasGlob(p.Value) {
			a.glob = true
		}
		a.add(unescape(p.Value, ""))
	case *syntax.SglQuoted:
		s := p.Value
		if p.Dollar {
			if v, _, err := expand.Format(&expand.Config{}, s, nil); err == nil {
				s = strings.ReplaceAll(v, unknown, "")
			}
		}
		a.add(s)
	case *syntax.DblQuoted:
		for _, q := range p.Parts {
			r.part(a, q, true)
		}
	case *syntax.ParamExp:
		r.param(a, p)
	case *syntax.CmdSubst:
		words := onlyCall(p.Stmts)
		a.secrets = append(a.secrets, secretsSought(words)...)
		a.addUnknown(printed(words), source(&syntax.Word{Parts: []syntax.WordPart{p}}))
	default: // arithmetic, process substitution, extended globs
		a.addUnknown("", source(&syntax.Word{Parts: []syntax.WordPart{p}}))
	}
}

func (r *resolver) param(a *arg, p *syntax.ParamExp) {
	show := source(&syntax.Word{Parts: []syntax.WordPart{p}})
	plain := p.Param != nil && !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil &&
		p.Names == 0 && p.Exp == nil
	if plain && p.Param.Value == "IFS" {
		a.add(" ")
		return
	}
	if plain {
		if values, ok := r.vars[p.Param.Value]; ok {
			r.used = true
			if len(values) > 1 {
				r.multi = true
			}
			v := ""
			if p.Param.Value == "HOME" || p.Param.Value == "PWD" {
				v = values[0]
			} else if r.pick >= 0 {
				v = values[min(r.pick, len(values)-1)]
			}
			a.match += v
			a.guess += v
			a.show += show
			if hasGlob(v) {
				a.glob = true
			}
			return
		}
	}
	guess := ""
	if p.Exp != nil && p.Exp.Word != nil { // ${x:-rm}
		g := r.word(p.Exp.Word)
		guess = g.guess
	}
	a.addUnknown(guess, show)
}

// unescape removes backslashes; inside double quotes only those before a character of only.
func unescape(s, only string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (only == "" || strings.IndexByte(only, s[i+1]) >= 0) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// hasGlob reports whether unquoted text has an unescaped glob character.
func hasGlob(s string) bool {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '*', '?', '[':
			return true
		}
	}
	return false
}

// onlyCall returns the words of a substitution's only command; nil if there are several or one of its words is not known.
func onlyCall(stmts []*syntax.Stmt) (words []string) {
	if len(stmts) != 1 {
		return nil
	}
	call, ok := stmts[0].Cmd.(*syntax.CallExpr)
	if !ok {
		return nil
	}
	for _, w := range call.Args {
		v, ok := staticWord(w)
		if !ok {
			return nil
		}
		words = append(words, v)
	}
	return words
}

// printed returns the output of echo or printf with these words, else "".
func printed(words []string) string {
	switch {
	case len(words) < 2:
	case words[0] == "echo":
		args := words[1:]
		for len(args) > 0 && len(args[0]) > 1 && strings.Trim(args[0][1:], "neE") == "" && args[0][0] == '-' {
			args = args[1:]
		}
		s := strings.Join(args, " ")
		if v, _, err := expand.Format(&expand.Config{}, s, nil); err == nil && strings.Contains(s, `\`) {
			return v
		}
		return s
	case words[0] == "printf":
		if v, _, err := expand.Format(&expand.Config{}, words[1], words[2:]); err == nil {
			return v
		}
	}
	return ""
}

// listsFiles reports whether a substitution's only command lists files of the project.
func listsFiles(sub *syntax.CmdSubst) bool {
	words := onlyCall(sub.Stmts)
	if len(words) == 0 {
		return false
	}
	switch words[0] {
	case "find": // a file it was told to find may be a secret
		return len(secretsSought(words)) == 0 && !slices.ContainsFunc(words[1:], func(w string) bool {
			return strings.HasPrefix(path.Base(w), ".") && path.Base(w) != "." || strings.HasPrefix(w, "-reg")
		})
	case "git":
		return len(words) > 1 && words[1] == "ls-files"
	case "rg", "grep":
		return slices.ContainsFunc(words[1:], func(w string) bool {
			return slices.Contains([]string{"-l", "--files", "-rl", "-lr", "--files-with-matches"}, w)
		})
	}
	return false
}

// secretsSought returns files that usually hold secrets and that a find with these words may find, by the names and patterns in them.
func secretsSought(words []string) (out []string) {
	if len(words) == 0 || words[0] != "find" {
		return nil
	}
	for _, w := range words[1:] {
		switch {
		case Secret(w):
			out = append(out, w)
		case Secret(w + "/*"):
			out = append(out, w+"/*")
		default:
			out = append(out, globbedSecrets(w)...)
		}
	}
	return out
}

// secretsPrinted returns files that usually hold secrets and whose names a pipeline may print.
func secretsPrinted(s *syntax.Stmt) []string {
	if pipe, ok := s.Cmd.(*syntax.BinaryCmd); ok && (pipe.Op == syntax.Pipe || pipe.Op == syntax.PipeAll) {
		return append(secretsPrinted(pipe.X), secretsPrinted(pipe.Y)...)
	}
	return secretsSought(onlyCall([]*syntax.Stmt{s}))
}

// source prints a node as shell text, on one line if possible.
func source(n syntax.Node) string {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, n); err != nil {
		return "…"
	}
	return b.String()
}
