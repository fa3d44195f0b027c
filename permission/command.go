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
	if a.shared.work++; a.shared.work > maxWork {
		if a.shared.work == maxWork+1 {
			a.unknown(src, "the script has too many commands to be followed")
		}
		return
	}
	if args[0].dynamic() || args[0].glob && args[0].match != "[" {
		a.unknown(showArgs(args), "what it runs is not known before it runs")
		a.operands(args, nil, false)
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
	if name == "cd" && u.why == "" {
		u.why = a.enter(args[1].match)
	}
	if !inert(name) && !a.operands(args[1:], patternOperands(name, args), u.why == "" && recurses(name, args)) {
		u.why = cmp.Or(u.why, tooMany)
	}
	if name == "git" && u.why == "" && a.place.GitRuns != nil {
		for _, dir := range a.dirs {
			u.why = cmp.Or(u.why, a.place.GitRuns(dir))
		}
	}
	a.tells(name, args, &u)
	if a.runs(name, args, &u) {
		a.add(u)
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
		words := slices.DeleteFunc(slices.Clone(args[1:]), arg.flag)
		a.guess(matchArgs(words))
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
					a.hint(w.match)
				}
			}
		}
	case interpreter(name) != "":
		a.interpreter(name, args, u)
	default:
		if w, rest, ok := wrapperOf(name, args); ok {
			return a.wrapper(w, name, rest, u)
		}
	}
	if slices.Contains([]string{"test", "[", "printf", "unset", "read", "wait", "getopts"}, name) {
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
		case len(f) > 2 && strings.HasPrefix("-command", strings.ToLower(f)): // PowerShell's
			takes = true
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
	case strings.HasPrefix(rest[0].match, "/dev/") && !rest[0].dynamic():
		a.stdin(u)
	case rest[0].dynamic() || slices.Contains(a.writes, a.relative(rest[0].match)):
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
			if len(inner) > 0 && !inert(programName(inner[0].match)) {
				a.reads = append(a.reads, secretsSought(text.Each(args, func(w arg) string { return w.match }))...)
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
		if strings.HasPrefix(f, "--config-env") {
			u.opaque, u.why, u.always = true, "its configuration is not known before it runs", ""
		}
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
	case "for-each-repo":
		a.guess("git " + matchArgs(slices.DeleteFunc(slices.Clone(rest), arg.flag)))
	case "clone", "fetch", "pull", "ls-remote", "archive":
		for _, w := range rest {
			if strings.HasPrefix(w.match, "ext::") || strings.ContainsAny(w.match, " \t\n") {
				a.hint(w.match)
			}
		}
	case "submodule", "filter-branch", "rebase", "config", "difftool", "mergetool", "grep":
		for i, w := range rest {
			if strings.HasPrefix(strings.ToLower(w.match), "alias.") {
				a.guess("git " + matchArgs(rest[i+1:]))
			}
		}
		for _, w := range rest {
			text := w.match
			if _, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(text, "--") {
				text = value
			}
			a.guessScript(strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(text, "-x"), "-O"), "!"), a.depth+1)
		}
		a.guess(matchArgs(rest))
		for i := 1; i < len(rest) && (i == 1 || rest[i-1].flag()); i++ {
			a.guess(matchArgs(rest[i:]))
		}
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
			operand = w.match != "-"
			break
		}
		cluster := !strings.HasPrefix(w.match, "--") && strings.ContainsAny(w.match[1:], inline)
		if cluster || strings.HasPrefix(w.match, "--eval") || strings.HasPrefix(w.match, "--print") || w.dynamic() {
			u.opaque, u.always, u.why = true, "", name+" runs code that rules for commands cannot see into"
			a.seedCode(rest)
			return
		}
		if w.match == "-m" || w.match == "--version" || w.match == "-V" || w.match == "-v" && len(rest) == 1 || w.match == "--test" {
			return
		}
	}
	if !operand && inline != "" || operand && len(rest) > 0 && slices.ContainsFunc(rest, func(w arg) bool { return w.match == "eval" && (name == "deno" || name == "bun") }) {
		u.opaque, u.always = true, ""
		u.why = cmp.Or(u.why, name+" runs whatever it reads")
		a.seedCode(rest)
		if text, known, _ := a.stdinText(); known {
			a.seedCode([]arg{literalArg(text)})
		}
	}
}

// seedCode keeps the quoted strings in a program's code for a second look.
func (a *analyzer) seedCode(args []arg) {
	for _, w := range args {
		a.seeds = append(a.seeds, w.match)
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

// operands records the paths among a command's arguments. skip has the indexes of arguments that are not paths; deep says that the
// command follows the links in directories. It reports false if there are too many files to follow them all.
func (a *analyzer) operands(args []arg, skip []int, deep bool) (ok bool) {
	ok = true
	for i, w := range args {
		if slices.Contains(skip, i) || w.match == "" || strings.Contains(w.match, "://") {
			continue
		}
		text := w.match
		if w.dynamic() { // $X/../../etc: only the known parts count
			if strings.HasPrefix(text, "/") || strings.Contains(text, "../") {
				a.touch(strings.ReplaceAll(text, unknown, "x"))
			}
			a.reads = append(a.reads, w.secrets...)
			if w.list {
				ok = a.follow(literalArg("."), true, false) && ok
			}
			continue
		}
		if w.flag() {
			if _, value, has := strings.Cut(text, "="); has {
				text = value
			} else if len(text) > 2 && text[1] != '-' {
				text = text[2:]
			} else {
				continue
			}
			a.follow(arg{match: text, glob: w.glob}, false, false)
			if strings.ContainsAny(text, "/~") || Secret(text) {
				a.paths(arg{match: text, glob: w.glob})
			}
			continue
		}
		a.paths(w)
		ok = a.follow(w, deep, false) && ok
	}
	if deep && !slices.ContainsFunc(args, func(w arg) bool { return !w.flag() && w.match == "." }) {
		ok = a.follow(literalArg("."), true, false) && ok // grep -R without a file
	}
	return ok
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

// sameAs are other words for commands that people write rules about.
var sameAs = map[string]string{"git send-pack": "git push", "git http-push": "git push", "git remote-http": "git push", "git remote-https": "git push", "git subtree push": "git push",
	"git lfs push": "git push", "git svn dcommit": "git push", "git p4 submit": "git push", "git annex sync": "git push", "hub push": "git push", "jj git push": "git push"}

// variants are other spellings of a command, for deny rules: as written, without the program's directory, without the options before
// the first operand (git -c a=b push), without unknown parts, and in the words of another command.
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
	if sub, ok := strings.CutPrefix(name, "git-"); ok {
		out = append(out, strings.TrimSpace("git "+sub+" "+matchArgs(rest)))
	}
	if name == "hub" || name == "jj" || strings.HasPrefix(name, "git") {
		for _, text := range out {
			for words, same := range sameAs {
				if after, ok := strings.CutPrefix(text, words); ok && (after == "" || after[0] == ' ') {
					out = append(out, same+after)
				}
			}
		}
	}
	return out
}
