package permission

import (
	"centurion"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// guess records a text that may be a command.
func (a *analyzer) guess(text string) {
	if strings.TrimSpace(text) != "" {
		a.add(unit{match: text, show: text, alts: []string{text}, guessed: true})
	}
}

// guessScript looks for denied commands in a text that may be a script, so many levels deep.
func (a *analyzer) guessScript(text string, depth int) {
	inner := a.inner(depth)
	if strings.TrimSpace(text) == "" || a.depth > maxDepth || inner.script(text) != nil {
		return
	}
	a.addGuessed(inner)
}

// guessCommand looks for denied commands in words that may be a command.
func (a *analyzer) guessCommand(args []arg) {
	if len(args) == 0 || args[0].dynamic() || a.depth > maxDepth {
		return
	}
	inner := a.inner(a.depth + 1)
	inner.vars, inner.wraps, inner.guesses = a.vars, a.wraps+1, a.guesses+1
	inner.command(args, showArgs(args))
	a.addGuessed(inner)
}

func (a *analyzer) inner(depth int) *analyzer {
	return &analyzer{place: a.place, depth: min(depth, maxDepth), shared: a.shared}
}

func (a *analyzer) addGuessed(inner *analyzer) {
	for _, u := range inner.units {
		if !u.opaque || u.match != unknown {
			u.guessed, u.alts = true, append(u.alts, u.match)
			a.add(u)
		}
	}
}

// maxHints limits the places in one text at which a denied command is looked for.
const maxHints = 24

// hint looks for denied commands anywhere in a text that a program runs in a way of its own: "exec=rm x", "!rm x", `system("rm", "x")`.
func (a *analyzer) hint(text string) {
	a.guessScript(text, a.depth+1)
	const between = " \t\n;|&(){}[]`\"',:=!@+\\"
	for range maxHints {
		text = strings.TrimLeft(text, between)
		if text == "" {
			return
		}
		line, _, _ := strings.Cut(text, "\n")
		word, rest, _ := strings.Cut(line, " ")
		end := strings.IndexAny(word, between)
		if end < 0 {
			end = len(word)
		}
		// "rm", "x" and rm(x) are as good as rm x.
		rest = strings.TrimLeft(word[end:], between) + " " + rest
		a.guess(strings.TrimSpace(path.Base(word[:end]) + " " + strings.TrimSpace(rest)))
		text = text[end:]
	}
}

// runMarker matches texts for programs that can be told to run a command among other things.
var runMarker = centurion.Pattern("(?i)\\b(system|exec\\w*|popen|spawn\\w*|shell|e?syscmd|run|fork|getline|command)\\b|[!`|]|\\$\\(")

// talkers are programs that take commands of a language of their own, as arguments or on their standard input, and run others if told to.
var talkers = []string{"gdb", "lldb", "ed", "ex", "vi", "vim", "nvim", "view", "emacs", "less", "more", "dc", "bc", "m4", "sqlite3", "psql", "mysql", "mariadb", "ftp", "lftp", "socat",
	"gnuplot", "expect", "patch", "tmux", "fzf", "mail", "top", "telnet"}

// later are programs that run what they read on standard input at another time.
var later = []string{"at", "batch", "crontab"}

// talks follows what a program is told to run by its arguments or on its standard input.
func (a *analyzer) talks(args []arg, u *unit) {
	for _, w := range args[1:] {
		if !w.dynamic() && runMarker().MatchString(w.match) {
			a.hint(w.match)
		}
	}
	a.input(u, runMarker())
}

// input looks for denied commands in the text on standard input that marker matches. Text that is not known makes the command unknown.
func (a *analyzer) input(u *unit, marker *regexp.Regexp) {
	text, known, any := a.stdinText()
	a.framed = a.framed || marker == nil
	switch {
	case known && (marker == nil || marker.MatchString(text)):
		a.seeds = append(a.seeds, text)
		a.hintLines(text)
	case any && !known:
		u.opaque, u.why, u.always = true, "it runs what it reads", ""
	}
}

// stdinText returns the text that a here-document or a here-string puts on standard input; any reports whether there is some input.
func (a *analyzer) stdinText() (text string, known, any bool) {
	for _, r := range slices.Backward(a.redirs) {
		w := r.Hdoc
		switch r.Op {
		case syntax.WordHdoc:
			w = r.Word
		case syntax.RdrIn:
			return "", false, true
		}
		if w != nil {
			text, known = staticWord(w)
			return text, known, true
		}
	}
	return "", false, a.piped
}

// frame matches what stands before a command in a makefile, in a crontab, and before a recipe's flags.
var frame = centurion.Pattern(`(?m)^(@\w+[ \t]+|([-*/,0-9]+[ \t]+){5}|[\w./%-]+[ \t]*::?[^=;\n]*;?)?[ \t]*[-@+]*`)

// hintLines looks for denied commands in a makefile, a crontab, or the lines of another language.
func (a *analyzer) hintLines(text string) {
	a.guessScript(text, a.depth+1)
	if bare := frame().ReplaceAllString(text, ""); bare != text {
		a.guessScript(bare, a.depth+1)
	}
	if runMarker().MatchString(text) {
		a.hint(text)
	}
}

// tells follows what programs run besides the words of a command: values of options, standard input, and their own language.
func (a *analyzer) tells(name string, args []arg, u *unit) {
	rest := args[1:]
	if options := codeOptions[name]; options != nil {
		a.optionCode(options, rest, u)
	}
	switch {
	case slices.Contains(later, name):
		lists := slices.ContainsFunc(rest, func(w arg) bool {
			return slices.Contains([]string{"-l", "-r", "-d", "-c", "-q"}, w.match) && name != "at" || w.match == "-l" || w.match == "-V"
		})
		if _, known, _ := a.stdinText(); !lists && !known {
			u.opaque, u.why, u.always = true, name+" runs commands later", ""
		}
		a.input(u, nil)
	case name == "make" || name == "gmake":
		a.makes(rest, u)
	case name == "tar" && len(rest) > 0 && !rest[0].flag() && strings.ContainsAny(rest[0].match, "IF"): // tar cIf program archive
		for _, w := range rest[1:] {
			a.hint(w.match)
		}
	case slices.Contains(talkers, name):
		a.talks(args, u)
	}
}

// makes follows a makefile that is not a file of the project, and variables that hold programs.
func (a *analyzer) makes(rest []arg, u *unit) {
	for i, w := range rest {
		value, attached, ok := optionOf(w.match, []string{"-f", "--file", "--makefile"})
		if ok && !attached && i+1 < len(rest) {
			value = rest[i+1].match
		}
		switch name, set, assigns := strings.Cut(w.match, "="); {
		case ok && (value == "-" || strings.HasPrefix(value, "/dev/")):
			a.input(u, nil)
		case ok && strings.HasPrefix(value, unknown):
			u.opaque, u.why, u.always = true, "the makefile is not known before it runs", ""
		case assigns && syntax.ValidName(name) && !w.dynamic():
			a.guessScript(set, a.depth+1)
		}
	}
}
