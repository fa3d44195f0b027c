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

// shared is what an analyzer has in common with those of inner scripts.
type shared struct {
	work   int // commands analysed so far
	parser *syntax.Parser
}

// analyzer walks a script and collects its actions.
type analyzer struct {
	place   Place
	dirs    []string // absolute directories where a command may run: cd adds to them
	loops   int      // loops around the current statement
	depth   int
	wraps   int
	guesses int      // programs around this one whose command may begin anywhere
	fed     bool     // xargs appends what it reads to the current command
	framed  bool     // a makefile or a crontab may be among the seeds
	piped   bool     // the current statement reads what another one prints
	sought  []string // secrets whose names that may be
	shared  *shared
	text    string // the script that is walked

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
func (a *analyzer) script(code string) error {
	if len(code) > maxText {
		return fmt.Errorf("it is longer than %d bytes", maxText)
	}
	code = strings.ReplaceAll(code, unknown, "")
	file, err := a.shared.parser.Parse(strings.NewReader(code), "")
	if err != nil {
		return err
	}
	outer, around := a.vars, a.text
	a.text = code
	a.vars = collectVars(file, a.place.Home, a.start())
	a.walk(file)
	a.vars, a.text = outer, around
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

func (a *analyzer) walk(n syntax.Node) { syntax.Walk(n, a.visit) }

func (a *analyzer) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Stmt:
		a.stmt(n)
		return false
	case *syntax.CallExpr:
		a.call(n)
	case *syntax.FuncDecl:
		start := len(a.units)
		a.walk(n.Body)
		a.taint(start, "it defines a function")
		a.add(unit{match: "function " + funcName(n), show: "function " + funcName(n), why: "it defines a function"})
		return false
	case *syntax.BinaryCmd:
		if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
			a.stmt(n.X)
			piped, sought := a.piped, a.sought
			a.piped, a.sought = true, secretsPrinted(n.X)
			a.stmt(n.Y)
			a.piped, a.sought = piped, sought
			return false
		}
	case *syntax.WhileClause:
		a.loop(n.Cond)
		a.loop(n.Do)
		return false
	case *syntax.ForClause:
		if n.Select {
			a.add(unit{match: "select", show: "select", why: "it waits for input"})
		}
		a.walk(n.Loop)
		a.loop(n.Do)
		return false
	default:
		a.effects(n)
	}
	return true
}

// effects records what else a node does.
func (a *analyzer) effects(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.DeclClause: // export, declare and their like
		a.arithmetic = a.arithmetic || slices.ContainsFunc(n.Args, subscripted)
		a.add(unit{match: source(n), show: source(n), why: "it sets variables for the commands after it"})
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
}

// loop walks the statements of a loop.
func (a *analyzer) loop(stmts []*syntax.Stmt) {
	a.loops++
	for _, s := range stmts {
		a.stmt(s)
	}
	a.loops--
}

// subscripted reports whether a declaration names or refers to an element of an array, whose subscript is evaluated.
func subscripted(n *syntax.Assign) bool {
	v, _ := staticWord(n.Value)
	return strings.Contains(v, "[")
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
		if !a.follow(w, false, false) {
			a.taint(start, tooMany)
		}
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
	a.follow(w, false, true)
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
	src := a.text[n.Args[0].Pos().Offset():n.End().Offset()]
	a.command(args, src)
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
			a.command(r.fields(n.Args), src)
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
		if bare := frame().ReplaceAllString(s, ""); a.framed && bare != s {
			a.guessScript(bare, maxDepth)
		}
		if len(s) < 4<<10 && runMarker().MatchString(s) {
			a.hint(s)
		}
	}
}
