package permission

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"centurion/text"
)

// command analyses a simple command: it records it and whatever it would run.
func (a *analyzer) command(args []arg, src string) {
	if len(args) == 0 {
		return
	}
	if *a.work++; *a.work > maxWork {
		if *a.work == maxWork+1 {
			a.unknown(src, "the script has too many commands to be followed")
		}
		return
	}
	if args[0].dynamic() || args[0].glob && args[0].match != "[" {
		a.unknown(showArgs(args), "what it runs is not known before it runs")
		a.operands(args, nil)
		return
	}
	name := programName(args[0].match)
	u := unit{match: matchArgs(args), show: showArgs(args), always: alwaysPattern(name, args)}
	u.alts = variants(name, args, src)
	u.why = whyNotReadOnly(name, args)
	if args[0].match != name && u.why == "" {
		u.why = fmt.Sprintf("%s is named by a path", args[0].show)
	}
	u.network, u.push = usesNetwork(name, args)
	if strings.Contains(args[0].match, "/") && !systemProgram(args[0].match) {
		a.touch(args[0].match)
	}
	if slices.Contains(a.writes, a.relative(args[0].match)) {
		u.opaque, u.why = true, "it runs a file that the script has just written"
	}
	if a.runs(name, args, &u) {
		a.add(u)
	}
	if !inert(name) {
		a.operands(args[1:], patternOperands(name, args))
	}
}

// runs follows what a command runs. It reports whether the command itself is recorded too: a wrapper such as timeout is only another
// way to write what it wraps.
func (a *analyzer) runs(name string, args []arg, u *unit) bool {
	switch {
	case isShell(name):
		a.shell(args, u)
	case name == "eval":
		a.eval(args, u)
	case name == "source" || name == ".":
		u.opaque, u.why, u.always = true, "it runs the commands of a file", ""
	case name == "trap" || name == "alias" || name == "complete" || name == "bind":
		u.why = name + " runs commands later"
		for _, w := range args[1:] {
			a.code(w, u)
		}
	case name == "set":
		if i := slices.IndexFunc(args, func(w arg) bool { return w.match == "--" }); i > 0 {
			a.guess(matchArgs(args[i+1:]))
		}
	case name == "find":
		a.find(args)
	case name == "echo" || name == "printf":
		a.seeds = append(a.seeds, printed(text.Each(args, func(w arg) string { return w.guess })))
	case name == "git":
		a.git(args, u)
	case slices.Contains([]string{"hash", "enable", "mapfile", "readarray"}, name):
		if slices.ContainsFunc(args[1:], arg.flag) {
			u.opaque, u.why = true, name+" changes what later commands mean"
		}
	case name == "sed":
		if slices.ContainsFunc(args[1:], func(w arg) bool { return w.dynamic() || sedRuns(w.match) }) {
			u.opaque, u.always = true, ""
			for _, w := range args[1:] {
				if i := strings.IndexByte(w.match, 'e'); i >= 0 && !w.dynamic() {
					a.seeds = append(a.seeds, w.match[i+1:])
				}
			}
		}
	case interpreter(name) != "":
		a.interpreter(name, args, u)
	default:
		if w, ok := wrappers[name]; ok {
			return a.wrapper(w, args, u)
		}
	}
	if name == "test" || name == "[" || name == "printf" || name == "unset" || name == "read" {
		if slices.ContainsFunc(args[1:], func(w arg) bool {
			return w.match == "-v" || w.dynamic() || strings.Contains(w.match, "[") && name != "["
		}) {
			a.arithmetic = a.arithmetic || name != "printf" || slices.ContainsFunc(args[1:], func(w arg) bool { return w.match == "-v" })
		}
	}
	return true
}

// code follows an argument that is itself a script.
func (a *analyzer) code(w arg, u *unit) {
	switch {
	case w.dynamic():
		a.seeds = append(a.seeds, w.guess)
		u.opaque, u.always, u.why = true, "", cmp.Or(u.why, "it runs a script that is not known before it runs")
	default:
		text := w.match
		if name, value, ok := strings.Cut(text, "="); ok && syntax.ValidName(name) {
			text = value // alias name=script
		}
		if strings.ContainsAny(text, " \t\n") || text != "" && text[0] != '-' {
			a.nested(strings.TrimPrefix(text, "!"), u.show)
		}
	}
}

// shell follows sh -c '…', a here-document, or a script on standard input.
func (a *analyzer) shell(args []arg, u *unit) {
	u.always = ""
	u.why = "it starts another shell"
	rest := args[1:]
	takes := false // the flags so far want a script as the next operand
	for len(rest) > 0 && (rest[0].flag() || len(rest[0].match) > 1 && rest[0].match[0] == '+') {
		f := rest[0].match
		rest = rest[1:]
		switch {
		case f == "--":
		case f == "--rcfile" || f == "--init-file" || f == "-o" || f == "+o" || f == "-O" || f == "+O":
			if len(rest) > 0 {
				rest = rest[1:]
			}
			u.opaque = u.opaque || strings.HasPrefix(f, "--")
		case !strings.HasPrefix(f, "--"):
			takes = takes || strings.ContainsRune(f, 'c')
			if strings.ContainsAny(f, "si") && !takes {
				u.opaque = true
			}
		}
	}
	switch {
	case takes && len(rest) > 0:
		a.code(rest[0], u)
		for i := 1; i < min(len(rest), 4); i++ { // "$@" and "$0" in the script are these
			a.guess(matchArgs(rest[i:]))
		}
	case len(rest) == 0:
		a.stdin(u)
	case rest[0].dynamic() || strings.HasPrefix(rest[0].match, "/dev/") || slices.Contains(a.writes, a.relative(rest[0].match)):
		u.opaque, u.why = true, "what it runs is not known before it runs"
	}
}

// stdin follows a script on a shell's standard input if the text contains it.
func (a *analyzer) stdin(u *unit) {
	for _, r := range a.redirs {
		w := r.Hdoc
		if r.Op == syntax.WordHdoc {
			w = r.Word
		}
		if script, ok := staticWord(w); w != nil && ok {
			a.nested(script, u.show)
			return
		}
	}
	u.opaque, u.why = true, "it runs whatever it reads"
}

func (a *analyzer) eval(args []arg, u *unit) {
	u.always, u.why = "", "eval runs its arguments"
	rest := args[1:]
	if len(rest) > 0 && rest[0].match == "--" {
		rest = rest[1:]
	}
	a.code(arg{match: " " + matchArgs(rest), guess: guessArgs(rest), show: showArgs(rest)}, u)
}

// find follows -exec and the like.
func (a *analyzer) find(args []arg) {
	for i, w := range args {
		switch w.match {
		case "-exec", "-execdir", "-ok", "-okdir":
			inner := args[i+1:]
			if end := slices.IndexFunc(inner, func(w arg) bool { return w.match == ";" || w.match == "+" }); end >= 0 {
				inner = inner[:end]
			}
			if len(inner) > 0 && strings.Contains(inner[0].match, "{}") {
				a.unknown(showArgs(inner), "find runs what it finds")
				continue
			}
			a.command(inner, showArgs(inner))
		}
	}
}

// git follows commands that git runs: aliases, bisect, submodules, rebase.
func (a *analyzer) git(args []arg, u *unit) {
	rest := args[1:]
	for len(rest) > 0 && rest[0].flag() {
		f := rest[0].match
		rest = rest[1:]
		if !slices.Contains([]string{"-c", "-C", "--git-dir", "--work-tree", "--exec-path", "--namespace", "--config-env", "--super-prefix"}, f) || len(rest) == 0 {
			continue
		}
		if f == "-c" {
			key, value, _ := strings.Cut(rest[0].match, "=")
			u.always = ""
			a.guessScript(strings.TrimPrefix(value, "!"), a.depth+1)
			if strings.HasPrefix(strings.ToLower(key), "alias.") || rest[0].dynamic() {
				u.opaque, u.why = true, "an alias decides what git runs"
				a.guess("git " + value + " " + matchArgs(rest[1:]))
			}
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return
	}
	sub, rest := rest[0].match, rest[1:]
	switch sub {
	case "bisect":
		if len(rest) > 1 && rest[0].match == "run" {
			a.command(rest[1:], showArgs(rest[1:]))
		}
	case "submodule", "filter-branch", "rebase", "config", "difftool", "mergetool", "grep":
		for _, w := range rest {
			text := w.match
			if _, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(text, "--") {
				text = value
			}
			a.guessScript(strings.TrimPrefix(strings.TrimPrefix(text, "-x"), "!"), a.depth+1)
		}
		a.guess(matchArgs(rest))
		if len(rest) > 1 {
			a.guess(matchArgs(rest[1:]))
		}
	}
}

// guessScript looks for denied commands in a text that may be a script, so many levels deep.
func (a *analyzer) guessScript(text string, depth int) {
	inner := analyzer{dir: a.dir, workdir: a.workdir, home: a.home, depth: min(depth, maxDepth), work: a.work}
	if strings.TrimSpace(text) == "" || a.depth > maxDepth || inner.script(text) != nil {
		return
	}
	for _, u := range inner.units {
		u.guessed, u.alts = true, append(u.alts, u.match)
		a.add(u)
	}
}

// interpreter handles python -c and the like: code that rules for shell commands cannot see into.
func (a *analyzer) interpreter(name string, args []arg, u *unit) {
	inline := interpreter(name)
	rest := args[1:]
	if inline == "program" { // awk: its first operand is the code
		code := slices.ContainsFunc(rest, func(w arg) bool {
			return w.dynamic() || strings.Contains(w.match, "system") || strings.Contains(w.match, "getline") || strings.Contains(w.match, "|")
		})
		if code {
			u.opaque, u.always, u.why = true, "", name+" runs commands of its own"
			a.seedCode(rest)
		}
		return
	}
	operand := false
	for _, w := range rest {
		if !w.flag() {
			operand = true
			break
		}
		cluster := !strings.HasPrefix(w.match, "--") && strings.ContainsAny(w.match[1:], inline)
		if cluster || strings.HasPrefix(w.match, "--eval") || strings.HasPrefix(w.match, "--print") || w.dynamic() {
			u.opaque, u.always, u.why = true, "", name+" runs code that rules for commands cannot see into"
			a.seedCode(rest)
			return
		}
		if w.match == "-m" || strings.Contains(w.match, "version") || w.match == "-V" || w.match == "-v" || w.match == "--test" {
			return
		}
	}
	if !operand && inline != "" || operand && len(rest) > 0 && slices.ContainsFunc(rest, func(w arg) bool { return w.match == "eval" && (name == "deno" || name == "bun") }) {
		u.opaque, u.always = true, ""
		u.why = cmp.Or(u.why, name+" runs whatever it reads")
	}
}

// seedCode keeps the quoted strings in a program's code for a second look.
func (a *analyzer) seedCode(args []arg) {
	for _, w := range args {
		for _, quote := range []string{`"`, `'`, "`"} {
			var words []string
			for i, part := range strings.Split(w.match, quote) {
				if i%2 == 1 {
					words = append(words, part)
				}
			}
			a.seeds = append(append(a.seeds, words...), strings.Join(words, " ")) // ["rm", "-rf", "x"]
		}
	}
}

// wrapper follows a program that runs its arguments.
func (a *analyzer) wrapper(w wrapper, args []arg, u *unit) bool {
	rest := args[1:]
	if programName(args[0].match) == "command" && len(rest) > 0 && (rest[0].match == "-v" || rest[0].match == "-V") {
		return true
	}
	rest = a.wrapped(w, rest, u)
	if len(rest) == 0 {
		return true
	}
	if w.joined { // the arguments are one script
		a.nested(matchArgs(rest), u.show)
		return true
	}
	start := len(a.units)
	if a.wraps >= maxWraps {
		a.unknown(u.show, "it is wrapped too deeply to be followed")
		return true
	}
	a.wraps++
	a.command(rest, showArgs(rest))
	a.wraps--
	if w.why != "" {
		a.taint(start, w.why)
	}
	if !w.plain || u.opaque {
		u.why = cmp.Or(w.why, u.why)
		u.always = ""
		return true
	}
	for i := start; i < len(a.units); i++ {
		a.units[i].alts = append(a.units[i].alts, u.match)
	}
	return false
}

// wrapped returns the command that a wrapper runs: its arguments without options, variables and its own operands. It follows code among
// the options.
func (a *analyzer) wrapped(w wrapper, rest []arg, u *unit) []arg {
	for len(rest) > 0 && rest[0].flag() {
		f := rest[0].match
		rest = rest[1:]
		switch {
		case f == "--":
		case w.script != "" && (f == w.script || f == w.longScript) && len(rest) > 0:
			a.code(rest[0], u)
			rest = rest[1:]
		case w.script != "" && (strings.HasPrefix(f, w.script) || w.longScript != "" && strings.HasPrefix(f, w.longScript+"=")):
			text := strings.TrimPrefix(strings.TrimPrefix(f, w.longScript+"="), w.script)
			a.code(literalArg(text), u)
		case len(f) == 2 && strings.Contains(w.values, f[1:]) && len(rest) > 0:
			rest = rest[1:]
		case strings.HasPrefix(f, "--") && slices.Contains(w.longs, f[2:]) && len(rest) > 0:
			rest = rest[1:]
		}
	}
	if w.assigns {
		for len(rest) > 0 {
			name, _, ok := strings.Cut(rest[0].match, "=")
			if !ok || !syntax.ValidName(name) {
				break
			}
			a.name(name)
			rest = rest[1:]
		}
	}
	rest = rest[min(w.skip, len(rest)):]
	if len(rest) > 1 && w.script != "" && (rest[0].match == w.script || rest[0].match == w.longScript) {
		a.code(rest[1], u)
		rest = rest[2:]
	}
	return rest
}

// operands records the paths among a command's arguments. skip has the indexes of arguments that are not paths.
func (a *analyzer) operands(args []arg, skip []int) {
	for i, w := range args {
		if slices.Contains(skip, i) || w.match == "" || strings.Contains(w.match, "://") {
			continue
		}
		text := w.match
		if w.dynamic() { // $X/../../etc: only the known parts count
			if strings.HasPrefix(text, "/") || strings.Contains(text, "../") {
				a.touch(strings.ReplaceAll(text, unknown, "x"))
			}
			continue
		}
		if w.flag() {
			if _, value, ok := strings.Cut(text, "="); ok {
				text = value
			} else if len(text) > 2 && text[1] != '-' {
				text = text[2:]
			} else {
				continue
			}
			if strings.ContainsAny(text, "/~") || Secret(text) {
				a.paths(arg{match: text, glob: w.glob})
			}
			continue
		}
		a.paths(w)
	}
}

// paths records a word that may be a path, or several joined by : , or =.
func (a *analyzer) paths(w arg) {
	a.touch(w.match)
	a.read(w)
	if !strings.ContainsAny(w.match, ":,=@") {
		return
	}
	for _, part := range strings.FieldsFunc(w.match, func(r rune) bool { return strings.ContainsRune(":,=@", r) }) {
		if strings.HasPrefix(part, "/") || strings.HasPrefix(part, "~") || strings.HasPrefix(part, "../") || Secret(part) {
			a.touch(part)
			a.read(arg{match: part})
		}
	}
}

func matchArgs(args []arg) string { return joinArgs(args, func(w arg) string { return w.match }) }
func guessArgs(args []arg) string { return joinArgs(args, func(w arg) string { return w.guess }) }
func showArgs(args []arg) string {
	return joinArgs(args, func(w arg) string { return cmp.Or(w.show, "''") })
}

func joinArgs(args []arg, f func(arg) string) string { return strings.Join(text.Each(args, f), " ") }

// programName returns the program of a command's first word: without directory, and on Windows without extension.
func programName(word string) string {
	name := path.Base(slash(word))
	if windows {
		name = strings.TrimSuffix(strings.ToLower(name), ".exe")
	}
	return name
}

func systemProgram(word string) bool {
	return slices.Contains([]string{"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"},
		path.Dir(path.Clean(word)))
}

// variants are other spellings of a command, for deny rules: as written, without the program's directory, without the options before
// the first operand (git -c a=b push), and without unknown parts.
func variants(name string, args []arg, src string) []string {
	rest := args[1:]
	out := []string{src, strings.TrimSpace(name + " " + matchArgs(rest))}
	for k := 1; k <= min(len(rest), 10) && rest[0].flag(); k++ {
		if !rest[k-1].flag() && (k < 2 || !rest[k-2].flag()) {
			break
		}
		out = append(out, strings.TrimSpace(name+" "+matchArgs(rest[k:])))
	}
	if slices.ContainsFunc(rest, arg.dynamic) {
		out = append(out, strings.TrimSpace(name+" "+guessArgs(rest)))
	}
	return out
}
