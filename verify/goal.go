package verify

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"centurion"
)

// ShowsNothing reports whether a passed check shows nothing: it can only pass, or it ran no test.
func ShowsNothing(r centurion.Receipt) bool {
	return trivial(r.Command) || RanNoTest(r)
}

// RanNoTest reports whether a passed check ran no test.
func RanNoTest(r centurion.Receipt) bool {
	return empty(r.Output) != "" ||
		slices.ContainsFunc(r.Runs, func(run centurion.CheckRun) bool {
			return run.Kind == centurion.RunGreen && run.Passed && run.Empty != ""
		})
}

// maxInGoal limits the commands of a goal that count.
const maxInGoal = 5

// InGoal finds the checks that a goal names in backticks, in order, each once. A command counts if its sentence requires that it passes ("so that `X`
// passes", "verify with `X`"); a plain run of tests also otherwise, unless the sentence asks about it or forbids it. Text that the shell cannot parse,
// a single name, and programs that runnable does not know are no commands: the Commander can supply a missed check, but an unintended one would prevent
// the mission's end.
func InGoal(goal string, runnable func(program string) bool) []string {
	var out []string
	for line := range strings.SplitSeq(fenced().ReplaceAllString(goal, "\n"), "\n") {
		spans := inBackticks().FindAllStringSubmatchIndex(line, -1)
		for _, at := range spans {
			command := strings.TrimSpace(line[at[4]:at[5]])
			before, after := around(line, at[0], at[1])
			if forbids().MatchString(before) {
				continue
			}
			passes := (saysPasses().MatchString(after) || saysCheck().MatchString(before)) && !asksAbout().MatchString(before)
			if (passes || !asksAnywhere().MatchString(before) && !strings.HasSuffix(after, "?")) && isCheck(command, passes, runnable) {
				out = append(out, command)
			}
		}
	}
	out = Distinct(out)
	return out[:min(len(out), maxInGoal)]
}

var (
	fenced      = centurion.Pattern("(?s)```.*?(?:```|$)")
	inBackticks = centurion.Pattern("(`+)([^`]+)(`+)")
	sentenceEnd = centurion.Pattern(`[.!?;](?:\s|$)`)

	// saysPasses matches the beginning of the text after a command that has to pass; an X stands for another command.
	saysPasses = centurion.Pattern(`(?i)^(?:[),\s]|and\b|X)*(?:(?:must|should|shall|will|has to|have to|needs? to|to|now|still|again|both|all)\s+)*` +
		`(?:pass(?:es)?|succeeds?|(?:is|are|be|stays?|goes|go|turns?|runs?)?\s*(?:green|clean)|exits? (?:with )?(?:status |code )*(?:0|zero))\b`)
	// saysCheck matches the end of the text before a command that is a check.
	saysCheck = centurion.Pattern(`(?i)\b(?:check|checked|verify|verified|verification|test|tested|validate|validated|prove|proven|proved|acceptance|done when)(?:\s+(?:it|this|that|them|everything|all|command|check))?\s*(?:with|by|using|:|by running|is)?\s*(?:X[,\s]*(?:and\s*)?)*$`)
	// forbids matches the end of the text before a command that must not be run, or is to be replaced.
	forbids = centurion.Pattern(`(?i)(?:\b(?:not|never|without|avoid|instead of|rather than|replace|rename|remove|delete)|n't)\s+(?:[\w,]+\s+){0,2}$`)
	// asksAbout matches the end of the text before a command in a question, asksAnywhere a sentence about a command.
	asksAbout    = centurion.Pattern(`(?i)\b(?:why|whether|if|how|what|explain|describe|does|do|is)\s+(?:[\w,]+\s+){0,3}$`)
	asksAnywhere = centurion.Pattern(`(?i)\b(?:why|whether|how|what|explain|describe|document|documentation|summari[sz]e|replace|rename|like|such as|example|e\.g\.)`)
)

// around returns the rest of the sentence before and after a span of a line, with every other span as an X.
func around(line string, from, to int) (before, after string) {
	before, after = inBackticks().ReplaceAllString(line[:from], "X"), inBackticks().ReplaceAllString(line[to:], "X")
	if ends := sentenceEnd().FindAllStringIndex(before, -1); len(ends) > 0 {
		before = before[ends[len(ends)-1][1]:]
	}
	if end := sentenceEnd().FindStringIndex(after); end != nil {
		after = after[:end[0]+1]
	}
	return before, strings.TrimSpace(after)
}

// isCheck reports whether a text is a runnable command and, unless it is required to pass, a run of tests.
func isCheck(command string, passes bool, runnable func(string) bool) bool {
	file := parse(command)
	if file == nil || len(file.Stmts) == 0 {
		return false
	}
	calls, tests, known := 0, false, true
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		args := literals(call.Args)
		if slices.Contains([]string{"cd", "set", "export"}, args[0]) {
			return true
		}
		calls++
		name := path.Base(args[0])
		alone := len(args) == 1 && len(file.Stmts) == 1 && !strings.Contains(args[0], "/") && !slices.Contains(runners, name) && !slices.Contains(tools, name)
		known = known && !alone && runnable(args[0])
		tests = tests || runsProject(args) && slices.ContainsFunc(args, func(w string) bool {
			return testWord().MatchString(path.Base(w)) || slices.Contains(runners, path.Base(w))
		})
		return true
	})
	return calls > 0 && known && (passes || tests)
}
