package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// pipefail makes a pipe fail if any of its commands fails. A shell without the option, such as an older dash, prints a note and continues.
const pipefail = `if (set -o pipefail) 2>/dev/null; then set -o pipefail; else echo 'This shell has no pipefail: of a pipe only the last command counts.' >&2; fi; `

// brokenPipe is the exit code of a command whose reader had enough and closed the pipe, such as head and grep -q.
const brokenPipe = 128 + 13

// maxDrained limits the unread output of a pipe, in bytes: commands with more, such as `yes`, never end.
const maxDrained = 64 << 20

// drained makes every reader of a pipe, such as `grep -q` and `head`, consume the rest of its input. Otherwise the pipe's exit code is a race: a writer
// to a closed pipe is killed, reports an error of its own, or has ended before.
func drained(script string) string {
	file := parse(script)
	if file == nil {
		return script
	}
	at := map[uint]string{}
	syntax.Walk(file, func(n syntax.Node) bool {
		if b, ok := n.(*syntax.BinaryCmd); ok && isPipe(b) && !slices.ContainsFunc(b.Y.Redirs, func(r *syntax.Redirect) bool { return r.Hdoc != nil }) {
			from, to := b.Y.Pos().Offset(), b.Y.End().Offset()
			at[from] += "{ "
			at[to] = fmt.Sprintf("; centurion_x=$?; head -c %d >/dev/null; (exit $centurion_x); }", maxDrained) + at[to]
		}
		return true
	})
	for _, i := range slices.Backward(slices.Sorted(maps.Keys(at))) {
		script = script[:i] + at[i] + script[i:]
	}
	return script
}

// parse parses a command as bash does. It returns nil on failure.
func parse(command string) *syntax.File {
	if len(command) > maxChain {
		return nil
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return nil
	}
	return file
}

// strictPipes reports whether a command runs with pipefail: it has a pipe, and none whose failure would make it pass, as in `! make 2>&1 | grep -q
// warning`. There pipefail would make a failing check pass.
func strictPipes(command string) bool {
	if !strings.Contains(command, "|") {
		return false
	}
	file := parse(command)
	if file == nil || !hasPipe(file) {
		return false
	}
	piped := func(s *syntax.Stmt) bool { return hasPipe(s) }
	return !hasNode(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			return n.Negated && hasPipe(n.Cmd)
		case *syntax.IfClause:
			return slices.ContainsFunc(n.Cond, piped)
		case *syntax.WhileClause:
			return slices.ContainsFunc(n.Cond, piped)
		case *syntax.BinaryCmd:
			return n.Op == syntax.AndStmt && hasPipe(n.X) && mayFail(n.Y)
		case *syntax.ParamExp: // it reads exit codes itself
			return n.Param != nil && (n.Param.Value == "?" || n.Param.Value == "PIPESTATUS")
		}
		return false
	})
}

// hasNode reports whether `is` returns true for a node or one below it.
func hasNode(n syntax.Node, is func(syntax.Node) bool) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		found = found || is(n)
		return !found
	})
	return found
}

// hasCall reports whether `is` returns true for the words of a call within a statement.
func hasCall(n syntax.Node, is func(args []string) bool) bool {
	return hasNode(n, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		return ok && len(call.Args) > 0 && is(literals(call.Args))
	})
}

func hasPipe(n syntax.Node) bool {
	return hasNode(n, func(n syntax.Node) bool { b, ok := n.(*syntax.BinaryCmd); return ok && isPipe(b) })
}

func isPipe(b *syntax.BinaryCmd) bool { return b.Op == syntax.Pipe || b.Op == syntax.PipeAll }

// mayFail reports whether a statement intentionally ends the shell, or fails.
func mayFail(s *syntax.Stmt) bool {
	return hasCall(s, func(args []string) bool { return slices.Contains([]string{"exit", "return", "false"}, args[0]) })
}

// stages lists the commands of a pipe. both tells which of them also pipe their error output.
func stages(b *syntax.BinaryCmd) (all []*syntax.Stmt, both []bool) {
	add := func(s *syntax.Stmt) {
		if inner, ok := s.Cmd.(*syntax.BinaryCmd); ok && isPipe(inner) && plain(s) {
			more, errs := stages(inner)
			all, both = append(all, more...), append(both, errs...)
			return
		}
		all, both = append(all, s), append(both, false)
	}
	add(b.X)
	both[len(both)-1] = b.Op == syntax.PipeAll
	add(b.Y)
	return all, both
}

// capture is a part of a clause whose output is captured, so that the output of the project's tests is not visible: the input of a filter in a pipe, or
// `$(…)`.
type capture struct {
	from, to int    // replaced bytes of the clause
	text     string // the command that is run
	filter   string // its reader in a pipe; empty for `$(…)`
	reader   string // its reader, for people
	both     bool   // its error output is captured, too
	tests    bool   // it is a test runner: its exit code shows whether the tests passed
}

// captures finds the captures in a statement; base is the start of its clause.
func captures(command string, s syntax.Node, base int) (out []capture) {
	text := func(from, to syntax.Pos) string { return command[from.Offset():to.Offset()] }
	syntax.Walk(s, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinaryCmd:
			if !isPipe(n) {
				break
			}
			all, both := stages(n)
			last := len(all) - 1
			for last >= 0 && kindOf(all[last]) != runs {
				last--
			}
			if last < 0 || last == len(all)-1 {
				break
			}
			from, end := n.Pos().Offset(), all[len(all)-1].End()
			if !all[0].Negated { // the parser assigns a `!` before the whole pipe to its first command
				from += uint(len(command[from:]) - len(strings.TrimLeft(strings.TrimPrefix(command[from:], "!"), " \t")))
			}
			filter := text(all[last+1].Pos(), end)
			out = append(out, capture{int(from) - base, int(end.Offset()) - base, command[from:all[last].End().Offset()], filter, "`" + clipClause(filter) + "`", both[last], runsTests(all[last])})
			return false
		case *syntax.CmdSubst:
			if n.Backquotes || len(n.Stmts) == 0 || !slices.ContainsFunc(n.Stmts, func(s *syntax.Stmt) bool { return kindOf(s) == runs }) {
				break
			}
			if slices.ContainsFunc(n.Stmts, func(s *syntax.Stmt) bool { return len(captures(command, s, 0)) > 0 }) {
				break
			}
			inner := command[n.Left.Offset()+2 : n.Right.Offset()]
			tests := slices.ContainsFunc(n.Stmts, runsTests)
			if !tests && !strings.Contains(inner, "2>&1") { // errors of a program are visible
				break
			}
			out = append(out, capture{int(n.Left.Offset()) - base, int(n.Right.Offset()) + 1 - base, inner, "", "what reads `$(" + clipClause(inner) + ")`", false, tests})
			return false
		}
		return true
	})
	return out
}

// heard makes a single clause of a command that is not a chain and hides the output of its tests.
func heard(command string) (c chain, ok bool) {
	file := parse(command)
	if file == nil || len(file.Stmts) == 0 || hereDocument(file) || stopsAtFailure(file.Stmts) || strings.HasSuffix(strings.TrimSpace(command), `\`) ||
		slices.ContainsFunc(file.Stmts, func(s *syntax.Stmt) bool { return s.Background }) {
		return c, false
	}
	c.hide(captures(command, file, 0))
	c.clauses = []clause{{command, runs}}
	return c, len(c.hidden) > 0
}

// hide records the hidden output of the next clause.
func (c *chain) hide(hidden []capture) {
	if len(hidden) == 0 {
		return
	}
	if c.hidden == nil {
		c.hidden = map[int][]capture{}
	}
	c.hidden[len(c.clauses)] = hidden
}

// shown is a clause as a script that prints the captured output on descriptor 9, with a line of the mark and the exit code of a test runner.
func (c chain) shown(i int, mark string) string {
	text := c.clauses[i].text
	for _, h := range slices.Backward(c.hidden[i]) {
		body := h.text
		if h.both {
			body = "{ " + body + "\n} 2>&1"
		}
		run := fmt.Sprintf("if %[1]s_o=$(%[2]s\n); then %[1]s_x=0; else %[1]s_x=$?; fi; printf '%%s\\n' \"$%[1]s_o\" >&9", mark, body)
		if h.tests {
			run += fmt.Sprintf("; printf '\\n%[1]s| %%s\\n' \"$%[1]s_x\" >&9", mark)
		}
		if h.filter == "" {
			run = fmt.Sprintf("$(%[2]s; printf '%%s\\n' \"$%[1]s_o\"; exit \"$%[1]s_x\")", mark, run)
		} else {
			// Ignoring the signal keeps a reader that stops early from failing the pipe.
			run = fmt.Sprintf("{ %[2]s; (trap '' PIPE; printf '%%s\\n' \"$%[1]s_o\" 2>/dev/null; :) | %[3]s\n%[1]s_f=$?; ", mark, run, h.filter)
			if c.strict {
				run += fmt.Sprintf("if [ $%[1]s_f = 0 ]; then %[1]s_f=$%[1]s_x; fi; ", mark)
			}
			run += fmt.Sprintf("(exit $%s_f); }", mark)
		}
		text = text[:h.from] + run + text[h.to:]
	}
	return text
}

// takeCodes removes the exit codes of test runners from a clause's output.
func (e *ended) takeCodes(mark string) {
	var b strings.Builder
	for l := range strings.Lines(e.output) {
		if code, ok := strings.CutPrefix(l, mark+"| "); ok {
			e.codes = append(e.codes, strings.TrimSpace(code))
			continue
		}
		b.WriteString(l)
	}
	if len(e.codes) > 0 {
		e.output = b.String()
	}
}

// deaf reports whether the tests have passed and only the reader of their output failed: which test runner, and which reader.
func (e *ended) deaf() (tests, reader string, ok bool) {
	if !e.failed() || len(e.codes) == 0 || slices.ContainsFunc(e.codes, func(code string) bool { return code != "0" }) {
		return "", "", false
	}
	for _, h := range e.hidden {
		if h.tests {
			return "`" + clipClause(h.text) + "`", h.reader, true
		}
	}
	return "", "", false
}

// filters are programs that pass on, or search, the output of others.
var filters = []string{"grep", "egrep", "fgrep", "rg", "ag", "head", "tail", "tee", "cat", "sed", "awk", "gawk", "wc", "sort", "uniq", "cut", "tr", "jq", "less", "more", "column", "nl", "fold", "xargs"}

// Muffled says why a command's exit code may hide failing tests, "" if it does not: it ends in a filter, `||` makes it pass, or only the last of
// several commands decides. See [CanOnlyPass] for commands that always pass.
func Muffled(command string) string {
	file := parse(command)
	if file == nil || len(file.Stmts) == 0 || CanOnlyPass(command) {
		return ""
	}
	text := func(n syntax.Node) string {
		return "`" + clipClause(strings.TrimRight(command[n.Pos().Offset():n.End().Offset()], "; \n")) + "`"
	}
	if !stopsAtFailure(file.Stmts) {
		for _, s := range file.Stmts[:len(file.Stmts)-1] {
			if kind := kindOf(s); kind == runs || kind == looks && !onlyPrints(s) {
				return "behind `;` only the last command decides, and " + text(s) + " may fail unseen"
			}
		}
	}
	last := file.Stmts[len(file.Stmts)-1]
	for {
		b, ok := last.Cmd.(*syntax.BinaryCmd)
		switch {
		case !ok:
			return ""
		case b.Op == syntax.AndStmt:
			last = b.Y
		case b.Op == syntax.OrStmt:
			if kindOf(b.Y) != runs && !mayFail(b.Y) {
				return "`||` lets it pass where " + text(b.X) + " fails"
			}
			last = b.Y
		default:
			all, _ := stages(b)
			end := all[len(all)-1]
			if call, ok := end.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 {
				if name, _ := program(literals(call.Args)); slices.Contains(filters, name) {
					return "it ends in the filter " + text(end) + ", and what that finds decides"
				}
			}
			if kindOf(end) == acts {
				return "it ends in a pipe into " + text(end) + ", which decides"
			}
			return ""
		}
	}
}

// onlyPrints reports whether a statement only prints.
func onlyPrints(s *syntax.Stmt) bool {
	call, ok := s.Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) > 0 && slices.Contains([]string{"echo", "printf", "true", ":", "ls", "cat", "which", "type"}, call.Args[0].Lit())
}
