package verify

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"centurion"
)

// maxChain is how long a command may be to be taken apart, in bytes: the parser recurses.
const maxChain = 64 << 10

// chain is a command `A && B && C`, or `set -e` and a line for each, some clauses of which run something of the project, and others only look at it. The shell stops at the first that
// fails, so a red run of the whole says nothing of what stands behind. Run by its script it goes on, until each clause that matters was seen.
type chain struct {
	front   string // statements before it that only set up the shell, as they are written
	clauses []clause
	hidden  map[int][]capture // by clause: what it runs and does not show
	strict  bool              // it runs with pipefail
}

// clause is one part of a chain.
type clause struct {
	text string
	kind clauseKind
}

func (c clause) String() string { return "`" + clipClause(c.text) + "`" }

func clipClause(s string) string { return centurion.Clip(strings.Join(strings.Fields(s), " "), 120) }

// chainOf takes a command apart. ok is false where its clauses need not be told apart, or cannot be: it is no chain, nothing in it runs tests, nothing else stands
// beside them, or a here-document stands elsewhere than the clause that reads it.
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
	if len(rest) > 1 && !strict { // the last one decides, whatever became of the others
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
		if s.Background || s.Coprocess {
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

// stopsAtFailure reports whether statements in front let the shell stop at the first of the others that fails, as && does.
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

// compound reports whether a statement under set -e would mean something else where its exit code is asked for, as the script does: the
// shell then goes on within it. A change of the shell's options is one, too.
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

// whole lets every clause count that does not only set up the shell.
func (c *chain) whole() {
	for i := range c.clauses {
		if c.clauses[i].kind != sets {
			c.clauses[i].kind = runs
		}
	}
}

// hereDocument reports whether the text of a statement does not stand where the statement does.
func hereDocument(file *syntax.File) bool {
	return hasNode(file, func(n syntax.Node) bool { r, ok := n.(*syntax.Redirect); return ok && r.Hdoc != nil })
}

// plain reports whether a statement is what its command is, and nothing around it.
func plain(s *syntax.Stmt) bool {
	return !s.Negated && !s.Background && !s.Coprocess && len(s.Redirs) == 0
}

// flatten lists what && joins. Braces do not change what it means, nor does a subshell at the very end.
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

// newMark makes the word that tells the script's own lines from what its clauses print. It is a name for a variable, too.
func newMark() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return "centurion_" + hex.EncodeToString(b[:])
}

// script runs the clauses in one shell, so that they share its state, each at most once. After each it prints the mark and how every clause so far has ended.
// What only looks at the project may fail without an end to it; behind it nothing is done that does more than look or test: it may rely on what failed. The
// exit code is 0 if all passed.
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

// ended is how one clause has ended.
type ended struct {
	clause
	seen   bool // it ran to its end
	exit   int
	output string
	hidden []capture
	codes  []string // exit codes of test runners whose output something else read
}

func (e ended) failed() bool { return e.seen && e.exit != 0 }

// read tells the output of the script apart. The last mark tells of all before it, so that nothing is lost with the middle of a long output.
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

// transcript shows what was run, for people: each clause, what it printed, and how it ended.
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

// result is what a run says. Where the clauses of a chain were told apart, ExitCode, Output, Broken and Empty are of the clause that counts.
type result struct {
	centurion.CheckRun
	fell   string // the clause that failed, quoted
	green  string // the clauses that could see the work and stayed green, where only others failed
	unseen string // the clauses that could see the work and were not run, because another failed
}

// weigh says what the clauses of a red run prove. One that runs something of the project counts, and one that prints that a test of its failed.
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
		case one.failed() && (one.kind == runs || one.kind == acts && asserted.MatchString(one.output)):
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
		got.unseen = some(unseen, 3)
		got.Broken = fmt.Sprintf("%s failed, and %s behind it was not run", got.fell, got.unseen)
	case got.Empty == "":
		got.green = some(green, 3)
		got.Broken = fmt.Sprintf("only %s failed, and %s stayed green", got.fell, got.green)
	}
	return got
}

// leave gives a clause that has left the shell, as by `exit 1`, the exit code with which it did: no mark stands behind it.
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

// printed is what all clauses have printed.
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
