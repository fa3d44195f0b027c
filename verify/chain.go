package verify

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"centurion"
)

// maxChain is the longest command that is split, in bytes: the parser recurses.
const maxChain = 64 << 10

// chain is a command `A && B && C`, or `set -e` with one line each, in which some clauses run something of the project and others only look at it. The
// shell stops at the first failure, so a failed run shows nothing about the later clauses. The chain's script continues until each relevant clause has
// run.
type chain struct {
	front   string // leading statements that only set up the shell, as written
	clauses []clause
	hidden  map[int][]capture // by clause: commands whose output is not shown
	strict  bool              // it runs with pipefail
}

// clause is one part of a chain.
type clause struct {
	text string
	kind clauseKind
}

func (c clause) String() string { return "`" + clipClause(c.text) + "`" }

func clipClause(s string) string { return centurion.Clip(strings.Join(strings.Fields(s), " "), 120) }

// chainOf splits a command. ok is false if its clauses need not or cannot be separated: it is not a chain, nothing in it runs tests, there is nothing
// else, or a here-document is separate from the clause that reads it.
func chainOf(command string) (c chain, ok bool) {
	file := parse(command)
	if file == nil || len(file.Stmts) == 0 || hereDocument(file) {
		return c, false
	}
	rest := file.Stmts
	for len(rest) > 1 && plain(rest[0]) && setsUp(rest[0].Cmd) {
		rest = rest[1:]
	}
	strict := stopsAtFailure(file.Stmts[:len(file.Stmts)-len(rest)])
	if len(rest) > 1 && !strict { // the last one decides, regardless of the others
		return c, false
	}
	c.front = command[:rest[0].Pos().Offset()]
	var all []*syntax.Stmt
	for i, s := range rest {
		end := i == len(rest)-1
		if !end && s.Negated { // it never stops the shell
			return c, false
		}
		parts := flatten(s, end)
		if len(parts) > 1 && !end || strict && slices.ContainsFunc(parts, compound) {
			return c, false
		}
		all = append(all, parts...)
	}
	for _, s := range all {
		if s.Background {
			return c, false
		}
		end := s.End()
		if s.Semicolon.IsValid() {
			end = s.Semicolon
		}
		text := command[s.Pos().Offset():end.Offset()]
		if strings.HasSuffix(text, `\`) { // it would join the next line of the script
			return c, false
		}
		c.hide(captures(command, s, int(s.Pos().Offset())))
		c.clauses = append(c.clauses, clause{text, kindOf(s)})
	}
	has := func(kinds ...clauseKind) bool {
		return slices.ContainsFunc(c.clauses, func(one clause) bool { return slices.Contains(kinds, one.kind) })
	}
	return c, has(runs) && has(looks, acts)
}

// stopsAtFailure reports whether the statements in front make the shell stop at the first failure of the others, as && does.
func stopsAtFailure(front []*syntax.Stmt) (strict bool) {
	for _, s := range front {
		call, ok := s.Cmd.(*syntax.CallExpr)
		if !ok || len(call.Args) < 2 || call.Args[0].Lit() != "set" {
			continue
		}
		for _, w := range call.Args[1:] {
			switch flag := w.Lit(); {
			case strings.HasPrefix(flag, "+") && strings.Contains(flag, "e"):
				return false
			case strings.HasPrefix(flag, "-") && strings.Contains(flag, "e"):
				strict = true
			}
		}
	}
	return strict
}

// compound reports whether a statement under set -e behaves differently when its exit code is tested, as in the script: the shell then continues within
// it. Changes of the shell's options count, too.
func compound(s *syntax.Stmt) bool {
	switch cmd := s.Cmd.(type) {
	case *syntax.CallExpr:
		return len(cmd.Args) > 0 && slices.Contains([]string{"set", "eval", "source", ".", "exec", "trap"}, cmd.Args[0].Lit())
	case *syntax.BinaryCmd:
		return cmd.Op != syntax.Pipe || compound(cmd.X) || compound(cmd.Y)
	case *syntax.DeclClause, *syntax.TestClause:
		return false
	}
	return true
}

// whole makes every clause count, except those that only set up the shell.
func (c *chain) whole() {
	for i := range c.clauses {
		if c.clauses[i].kind != sets {
			c.clauses[i].kind = runs
		}
	}
}

// hereDocument reports whether part of a statement's text is elsewhere.
func hereDocument(file *syntax.File) bool {
	return hasNode(file, func(n syntax.Node) bool { r, ok := n.(*syntax.Redirect); return ok && r.Hdoc != nil })
}

// plain reports whether a statement consists only of its command.
func plain(s *syntax.Stmt) bool {
	return !s.Negated && !s.Background && len(s.Redirs) == 0
}

// flatten lists the operands of &&. Braces do not change its meaning, nor does a subshell at the very end.
func flatten(s *syntax.Stmt, end bool) []*syntax.Stmt {
	if !plain(s) {
		return []*syntax.Stmt{s}
	}
	switch cmd := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.AndStmt {
			return append(flatten(cmd.X, false), flatten(cmd.Y, end)...)
		}
	case *syntax.Block:
		if len(cmd.Stmts) == 1 {
			return flatten(cmd.Stmts[0], end)
		}
	case *syntax.Subshell:
		if len(cmd.Stmts) == 1 && end {
			return flatten(cmd.Stmts[0], end)
		}
	}
	return []*syntax.Stmt{s}
}

// newMark makes a word that distinguishes the script's own lines from the output of clauses. It is also a valid variable name.
func newMark() string { return "centurion_" + rand.Text() }

// script runs the clauses in one shell, so that they share its state, each at most once. After each it prints the mark and how every clause so far has
// ended. A clause that only looks at the project may fail without ending the script; after that only clauses that look or test are run, since others
// may depend on it. The exit code is 0 if all passed.
func (c chain) script(mark string) string {
	const failed = `case "$%s" in *:[1-9]*) exit 1 ;; esac` + "\n"
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s=\n", c.front, mark)
	if len(c.hidden) > 0 {
		b.WriteString("exec 9>&2\n")
	}
	for i, one := range c.clauses {
		if one.kind == acts {
			fmt.Fprintf(&b, failed, mark)
		}
		stop := ""
		if one.kind == runs || one.kind == sets {
			stop = "; exit 1"
		}
		fmt.Fprintf(&b, "if %[3]s\nthen %[1]s=\"$%[1]s %[2]d:0\"; printf '\\n%[1]s%%s\\n' \"$%[1]s\"\nelse %[1]s=\"$%[1]s %[2]d:$?\"; printf '\\n%[1]s%%s\\n' \"$%[1]s\"%[4]s\nfi\n", mark, i, c.shown(i, mark), stop)
	}
	fmt.Fprintf(&b, failed, mark)
	return b.String()
}

// ended is the result of one clause.
type ended struct {
	clause
	seen   bool // it ran to its end
	exit   int
	output string
	hidden []capture
	codes  []string // exit codes of test runners with captured output
}

func (e ended) failed() bool { return e.seen && e.exit != 0 }

// read splits the output of the script. The last mark has the results of all clauses before it, so they survive when the middle of a long output is
// lost.
func (c chain) read(output, mark string) []ended {
	all := make([]ended, len(c.clauses))
	for i, one := range c.clauses {
		all[i].clause, all[i].hidden = one, c.hidden[i]
	}
	pieces := strings.Split("\n"+output, "\n"+mark+" ")
	next := 0
	for i, piece := range pieces {
		if i > 0 {
			list, rest, _ := strings.Cut(piece, "\n")
			for pair := range strings.FieldsSeq(list) {
				at, code, _ := strings.Cut(pair, ":")
				n, err := strconv.Atoi(at)
				exit, err2 := strconv.Atoi(code)
				if err != nil || err2 != nil || n < 0 || n >= len(all) {
					continue
				}
				if !all[n].seen {
					all[n].seen, all[n].exit = true, exit
					if n >= next {
						all[n].output = strings.TrimPrefix(pieces[i-1], "\n")
						if i > 1 {
							_, all[n].output, _ = strings.Cut(pieces[i-1], "\n")
						}
					}
					next = n + 1
				}
			}
			piece = rest
		}
		if i == len(pieces)-1 && next < len(all) && !all[next].seen {
			all[next].output = strings.TrimPrefix(piece, "\n")
		}
	}
	for i := range all {
		all[i].takeCodes(mark)
	}
	return all
}

// transcript shows the run to people: each clause, its output and its result.
func transcript(all []ended) string {
	var b strings.Builder
	for _, one := range all {
		if !one.seen && one.output == "" {
			fmt.Fprintf(&b, "(not run: %s)\n", clipClause(one.text))
			continue
		}
		fmt.Fprintf(&b, "$ %s\n%s", clipClause(one.text), one.output)
		if one.output != "" && !strings.HasSuffix(one.output, "\n") {
			b.WriteByte('\n')
		}
		if one.seen {
			fmt.Fprintf(&b, "[exit code %d]\n", one.exit)
		}
	}
	return b.String()
}

// result is the result of a run. For a split chain, ExitCode, Output, Broken and Empty are those of the clause that counts.
type result struct {
	centurion.CheckRun
	fell   string // the clause that failed, quoted
	green  string // the clauses that could see the work and passed, if only others failed
	unseen string // the clauses that could see the work and did not run, because another failed
}

// weigh determines what the clauses of a failed run prove. A clause counts if it runs something of the project, or prints that one of its tests failed.
func weigh(run centurion.CheckRun, all []ended) result {
	leave(run, all)
	got := result{CheckRun: run}
	var fell, other *ended // the one that failed and could see the work, and the first that failed and could not
	var green, unseen []string
	tests, only := "", ""
	for i := range all {
		one := &all[i]
		runner, reader, deaf := one.deaf()
		switch {
		case deaf:
			green, tests = append(green, runner), tests+one.output
			if other == nil {
				other, only = one, reader
			}
		case one.failed() && (one.kind == runs || one.kind == acts && asserted().MatchString(one.output)):
			if fell == nil || broken(fell.text, fell.exit, fell.output) != "" {
				fell = one
			}
		case one.failed() && other == nil:
			other = one
		case one.kind != runs:
		case one.seen:
			green, tests = append(green, one.String()), tests+one.output
		default:
			unseen = append(unseen, one.String())
		}
	}
	if run.Error != "" || fell == nil && other == nil {
		got.Output, got.Empty, got.Broken = printed(all), empty(printed(all)), run.Error
		return got
	}
	got.Passed = false
	if fell != nil {
		got.fell, got.ExitCode, got.Output = fell.String(), fell.exit, fell.output
		got.Empty, got.Broken = empty(fell.output), broken(fell.text, fell.exit, fell.output)
		return got
	}
	got.fell, got.ExitCode, got.Output, got.Empty = cmp.Or(only, other.String()), other.exit, printed(all), empty(tests)
	switch {
	case len(unseen) > 0:
		got.unseen = centurion.Names(unseen, 3)
		got.Broken = fmt.Sprintf("%s failed, and %s behind it was not run", got.fell, got.unseen)
	case got.Empty == "":
		got.green = centurion.Names(green, 3)
		got.Broken = fmt.Sprintf("only %s failed, and %s stayed green", got.fell, got.green)
	}
	return got
}

// leave sets the exit code of a clause that ended the shell, such as `exit 1`: there is no mark after it.
func leave(run centurion.CheckRun, all []ended) {
	failed := false
	for i := range all {
		one := &all[i]
		if !one.seen {
			if run.Error == "" && !(failed && one.kind == acts) {
				one.seen, one.exit = true, run.ExitCode
			}
			return
		}
		if failed = failed || one.exit != 0; one.failed() && (one.kind == runs || one.kind == sets) {
			return
		}
	}
}

// printed is the output of all clauses.
func printed(all []ended) string {
	var b strings.Builder
	for _, one := range all {
		b.WriteString(one.output)
		if one.output != "" && !strings.HasSuffix(one.output, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
