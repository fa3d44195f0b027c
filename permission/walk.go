package permission

import (
	"encoding/base64"
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	maxWraps = 32       // programs that run programs: env nice timeout …
	maxDepth = 8        // scripts inside scripts: sh -c "sh -c …"
	maxUnits = 4000     // simple commands of one script; any more are unknown
	maxWork  = 20_000   // commands analysed, more than those found: each value of a variable counts
	maxText  = 64 << 10 // bytes of a script; the parser recurses, and no person reads a longer one before answering
)

// unit is one action of a script that rules apply to: a simple command, wherever it is.
type unit struct {
	match   string   // the text that allow rules match: the command without quotes
	show    string   // the same for people
	alts    []string // other spellings, seen only by deny and ask rules
	guessed bool     // only found as text in the script, not known to run: only a deny counts
	why     string   // why it is not plainly read-only; "" if it is
	opaque  bool     // it is unknown what it runs
	network bool
	push    bool
	always  string // what "always" would allow; "" if only "once" makes sense
}

// analyzer walks a script and collects its actions.
type analyzer struct {
	dir, home string
	workdir   string // where the script runs, relative to dir
	depth     int
	wraps     int
	work      *int // commands analysed so far, here and in inner scripts

	units   []unit
	outside []string // absolute paths
	reads   []string // relative to dir; possibly only words that look like paths
	writes  []string // targets of redirections, relative to dir
	seeds   []string // literal texts that an unknown command may run

	vars       vars
	arithmetic bool // something evaluates arithmetic, which runs $(…) inside a subscript
	quotedRun  bool // a quoted text contains $( or a backtick

	redirs []*syntax.Redirect // of the current statement
}

// script parses and walks the text of a script.
func (a *analyzer) script(text string) error {
	if len(text) > maxText {
		return fmt.Errorf("it is longer than %d bytes", maxText)
	}
	text = strings.ReplaceAll(text, unknown, "")
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return err
	}
	outer := a.vars
	a.vars = collectVars(file, a.home, path.Join(slash(a.dir), slash(a.workdir)))
	a.walk(file)
	a.vars = outer
	return nil
}

// nested walks a script inside a script. If it cannot be followed, it is unknown.
func (a *analyzer) nested(text, show string) {
	if a.depth >= maxDepth {
		a.unknown(show, "it is nested too deeply to be followed")
		return
	}
	a.depth++
	redirs := a.redirs
	a.redirs = nil
	if err := a.script(text); err != nil {
		a.unknown(show, "it holds a script that cannot be parsed")
	}
	a.redirs = redirs
	a.depth--
}

// add records a unit.
func (a *analyzer) add(u unit) {
	if len(a.units) < maxUnits {
		a.units = append(a.units, u)
		return
	}
	a.units[maxUnits-1] = unit{match: unknown, show: "…", opaque: true, why: "it has too many commands to be followed"}
}

// unknown records a command known only to the running shell.
func (a *analyzer) unknown(show, why string) {
	a.add(unit{match: unknown, show: show, opaque: true, why: why})
}

// guess records a text that may be a command.
func (a *analyzer) guess(text string) {
	if strings.TrimSpace(text) != "" {
		a.add(unit{match: text, show: text, alts: []string{text}, guessed: true})
	}
}

func (a *analyzer) walk(n syntax.Node) { syntax.Walk(n, a.visit) }

func (a *analyzer) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Stmt:
		a.stmt(n)
		return false
	case *syntax.CallExpr:
		a.call(n)
	case *syntax.DeclClause: // export, declare and their like
		a.add(unit{match: source(n), show: source(n), why: "it sets variables for the commands after it"})
	case *syntax.FuncDecl:
		start := len(a.units)
		a.walk(n.Body)
		a.taint(start, "it defines a function")
		a.add(unit{match: "function " + funcName(n), show: "function " + funcName(n), why: "it defines a function"})
		return false
	case *syntax.ForClause:
		if n.Select {
			a.add(unit{match: "select", show: "select", why: "it waits for input"})
		}
	case *syntax.ArithmCmd: // dash reads ((…)) as a command in two subshells
		a.arithmetic = true
		text := source(n)
		a.seeds = append(a.seeds, strings.Trim(text, "()"))
		a.add(unit{match: unknown, show: text, opaque: true, why: "an arithmetic command means something else in other shells"})
	case *syntax.LetClause:
		a.arithmetic = true
		a.add(unit{match: source(n), show: source(n), why: "it sets variables by arithmetic"})
	case *syntax.ArithmExp:
		a.arithmetic = true
	case *syntax.TestClause:
		a.test(n)
	case *syntax.CoprocClause:
		a.add(unit{match: "coproc", show: "coproc", why: "it starts a coprocess"})
	case *syntax.ProcSubst:
		if n.Op == syntax.CmdOut {
			a.add(unit{match: "tee", show: ">(…)", why: "it writes into a process substitution"})
		}
	case *syntax.ExtGlob:
		a.seeds = append(a.seeds, n.Pattern.Value)
		a.unknown(source(&syntax.Word{Parts: []syntax.WordPart{n}}), "an extended pattern means something else in other shells")
	case *syntax.ParamExp:
		a.paramExp(n)
	case *syntax.SglQuoted:
		a.quoted(n.Value)
	case *syntax.Assign:
		a.assign(n)
	}
	return true
}

func funcName(n *syntax.FuncDecl) string {
	if n.Name != nil {
		return n.Name.Value
	}
	return "…"
}

// taint marks every unit since start as not plainly read-only.
func (a *analyzer) taint(start int, why string) {
	for i := min(start, len(a.units)); i < len(a.units); i++ {
		if a.units[i].why == "" {
			a.units[i].why = why
		}
	}
}

func (a *analyzer) quoted(s string) {
	if strings.Contains(s, "$(") || strings.Contains(s, "`") {
		a.quotedRun = true
	}
	if strings.ContainsAny(s, " \t\n") {
		a.seeds = append(a.seeds, s)
	}
}

func (a *analyzer) paramExp(n *syntax.ParamExp) {
	switch {
	case n.Exp != nil && n.Exp.Op == syntax.OtherParamOps: // ${x@P} expands the value again
		a.unknown(source(&syntax.Word{Parts: []syntax.WordPart{n}}), "an expansion with @ may run what a variable holds")
	case n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) && n.Param != nil:
		a.name(n.Param.Value)
	case n.Index != nil:
		a.arithmetic = true
	}
}

// test handles [[ … ]], which dash does not know: there a > b inside it writes a file.
func (a *analyzer) test(n *syntax.TestClause) {
	syntax.Walk(n.X, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinaryTest:
			switch n.Op {
			case syntax.TsAfter, syntax.TsBefore:
				a.add(unit{match: "[[", show: "[[", why: "a comparison with > writes a file in other shells"})
			case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
				a.arithmetic = true
			}
		case *syntax.UnaryTest:
			if n.Op == syntax.TsVarSet {
				a.arithmetic = true
			}
		}
		return true
	})
}

// stmt walks one statement and applies its redirections and its & to the units in it.
func (a *analyzer) stmt(s *syntax.Stmt) {
	start := len(a.units)
	outer := a.redirs
	a.redirs = s.Redirs
	if s.Cmd != nil {
		a.walk(s.Cmd)
	}
	a.redirs = outer
	for _, r := range s.Redirs {
		a.redirect(r, start)
	}
	if s.Background || s.Coprocess || s.Disown {
		a.taint(start, "it leaves a command running in the background")
	}
}

func (a *analyzer) redirect(r *syntax.Redirect, start int) {
	if r.Hdoc != nil {
		a.walk(r.Hdoc)
		if text, ok := staticWord(r.Hdoc); ok {
			a.seeds = append(a.seeds, text)
		}
	}
	if r.Word == nil {
		return
	}
	a.walk(r.Word)
	w := (&resolver{vars: a.vars, pick: 0}).word(r.Word)
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		return
	case syntax.WordHdoc:
		if !w.dynamic() {
			a.seeds = append(a.seeds, w.match)
		}
		return
	case syntax.RdrIn:
		a.readTarget(w, start)
		return
	case syntax.DplIn, syntax.DplOut:
		if strings.Trim(w.match, "0123456789-") == "" {
			return
		}
	}
	a.writeTarget(w, start)
}

func (a *analyzer) readTarget(w arg, start int) {
	switch {
	case strings.HasPrefix(w.match, "/dev/tcp/") || strings.HasPrefix(w.match, "/dev/udp/"):
		a.add(unit{match: "< " + w.match, show: "< " + w.show, network: true, why: "it opens a network connection"})
	case w.dynamic():
		a.taint(start, "it reads a file whose name is not known")
	default:
		a.touch(w.match)
		a.read(w)
	}
}

func (a *analyzer) writeTarget(w arg, start int) {
	if harmlessDevice(w.match) {
		return
	}
	why := fmt.Sprintf("it writes to %s", w.show)
	if len(a.units) == start {
		a.add(unit{match: "> " + w.match, show: "> " + w.show, why: why})
	}
	a.taint(start, why)
	if strings.HasPrefix(w.match, "/dev/tcp/") || strings.HasPrefix(w.match, "/dev/udp/") {
		a.add(unit{match: "> " + w.match, show: "> " + w.show, network: true, why: "it opens a network connection"})
		return
	}
	if w.dynamic() {
		a.writes = append(a.writes, unknown)
		return
	}
	a.touch(w.match)
	a.writes = append(a.writes, a.relative(w.match))
}

func harmlessDevice(name string) bool {
	devices := []string{"null", "zero", "stdin", "stdout", "stderr", "tty", "random", "urandom", "full"}
	device, ok := strings.CutPrefix(name, "/dev/")
	return ok && (slices.Contains(devices, device) || strings.HasPrefix(device, "fd/"))
}

// assign handles X=…, alone or before a command.
func (a *analyzer) assign(n *syntax.Assign) {
	if n.Name == nil {
		return
	}
	a.name(n.Name.Value)
	if n.Value != nil {
		if v, ok := staticWord(n.Value); ok {
			a.seeds = append(a.seeds, v)
		}
	}
	if n.Array != nil {
		var words []string
		for _, e := range n.Array.Elems {
			if e.Value != nil {
				v, _ := staticWord(e.Value)
				words = append(words, v)
			}
		}
		a.seeds = append(a.seeds, strings.Join(words, " "))
	}
}

// name handles an assigned variable: some influence which program runs, or what it runs.
func (a *analyzer) name(name string) {
	switch {
	case steers(name):
		a.unknown(name+"=…", fmt.Sprintf("%s changes which programs run, or how", name))
	case !plainVariable(name):
		a.add(unit{match: name + "=", show: name + "=…", why: fmt.Sprintf("it sets %s", name)})
	}
}

// call analyses a simple command, once for every possible value of its variables.
func (a *analyzer) call(n *syntax.CallExpr) {
	if len(n.Args) == 0 {
		return
	}
	redirs := a.redirs
	first := resolver{vars: a.vars}
	args := first.fields(n.Args)
	a.command(args, source(n))
	if slices.ContainsFunc(args, arg.dynamic) {
		a.seedArgs(args)
	}
	if first.used {
		for pick := -1; pick < maxAlternatives; pick++ {
			if pick == 0 || pick > 0 && !first.multi {
				continue
			}
			r := resolver{vars: a.vars, pick: pick}
			a.redirs = redirs
			a.command(r.fields(n.Args), source(n))
		}
	}
	a.redirs = redirs
}

// seedArgs keeps the words of a command with unknown parts for a second look: the unknown parts may be empty.
func (a *analyzer) seedArgs(args []arg) {
	var words []string
	for _, w := range args {
		if w.guess != "" {
			words = append(words, w.guess)
		}
	}
	a.guess(strings.Join(words, " "))
	if len(words) > 0 {
		words[0] = path.Base(words[0])
		a.guess(strings.Join(words, " "))
	}
}

// finish takes a second look at the literal texts of a script that runs something unknown, which may be among them.
func (a *analyzer) finish() {
	if a.arithmetic && a.quotedRun {
		a.unknown("$((…))", "arithmetic may run a command that a quoted text holds")
	}
	if !slices.ContainsFunc(a.units, func(u unit) bool { return u.opaque }) {
		return
	}
	seeds := slices.Clone(a.seeds)
	for _, s := range a.seeds {
		if b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s)); err == nil && len(b) > 0 {
			seeds = append(seeds, string(b))
		}
	}
	slices.Sort(seeds)
	for _, s := range slices.Compact(seeds) {
		a.guessScript(s, maxDepth)
	}
}

// absolute returns the target of a path in the script: an absolute path, or one that starts with ~ for another user's home.
func (a *analyzer) absolute(name string) string {
	if strings.HasPrefix(name, "~") {
		return name
	}
	if path.IsAbs(name) || drive(name) {
		return path.Clean(slash(name))
	}
	return path.Join(slash(a.dir), slash(a.workdir), slash(name))
}

// relative returns a path in the form of file rules: relative to the directory if it is inside.
func (a *analyzer) relative(name string) string {
	abs := a.absolute(name)
	if rel, ok := strings.CutPrefix(abs, strings.TrimSuffix(slash(a.dir), "/")+"/"); ok {
		return rel
	}
	return abs
}

func (a *analyzer) inside(abs string) bool {
	dir := path.Clean(slash(a.dir))
	return abs == dir || dir == "/" || strings.HasPrefix(abs, dir+"/")
}

// touch records a path outside the directory.
func (a *analyzer) touch(name string) {
	if name == "" || harmlessDevice(name) {
		return
	}
	if abs := a.absolute(name); !a.inside(abs) && !slices.Contains(a.outside, abs) {
		a.outside = append(a.outside, abs)
	}
}

// read records a word that may name a file to be read.
func (a *analyzer) read(w arg) {
	if w.match == "" || w.dynamic() {
		return
	}
	a.reads = append(a.reads, a.relative(w.match))
	if w.glob {
		a.reads = append(a.reads, globbedSecrets(w.match)...)
	}
}

// globbedSecrets returns secret files that a pattern would match. A lone star is fine: it skips hidden files.
func globbedSecrets(pattern string) []string {
	base := path.Base(pattern)
	if strings.Trim(base, "*") == "" {
		return nil
	}
	var out []string
	for _, s := range []string{".env", ".env.local", ".envrc", ".netrc", ".npmrc", ".pgpass", ".git-credentials", "id_rsa", "id_ed25519",
		"server.pem", "server.key", "credentials", "credentials.json", "secrets.json", "secrets.yaml"} {
		if ok, _ := path.Match(base, s); ok && (s[0] != '.' || base[0] == '.') {
			out = append(out, path.Join(path.Dir(pattern), s))
		}
	}
	return out
}

func slash(s string) string {
	if windows {
		s = strings.ReplaceAll(s, `\`, "/")
	}
	return s
}

// drive reports whether a path starts with a drive letter of Windows.
func drive(s string) bool {
	return windows && len(s) > 2 && s[1] == ':' && (s[2] == '/' || s[2] == '\\')
}
