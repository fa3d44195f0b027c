package verify

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"centurion"
)

// sign is a line of output which shows that no check ran, or that the called code is missing.
type sign struct {
	line *regexp.Regexp
	why  string
	soft bool // it proves nothing unless a check itself failed in the same output
}

func hard(why string, alternatives ...string) sign {
	return sign{regexp.MustCompile(`(?m)(?:` + strings.Join(alternatives, "|") + `)`), why, false}
}

func soft(why string, alternatives ...string) sign {
	return sign{regexp.MustCompile(`(?m)(?:` + strings.Join(alternatives, "|") + `)`), why, true}
}

// signs are searched in this order. Messages of a compiler are hard: the program was not built, regardless of other failures. Messages of an
// interpreter during tests are soft: a test may have failed an assertion besides. They are compiled when they are needed: most starts of the
// program do not need them.
var signs = sync.OnceValue(func() []sign {
	return []sign{
		hard("the build failed", `\[build failed\]`, `\[setup failed\]`, `^vet: `, `^# \S+(?: \[\S+\])?\r?\n(?:# .*\n)?(?:vet: )?\S*\.go:\d+:\d+: `,
			`^\S+\.go:\d+:\d+: (?:undefined|undeclared|syntax error|expected |cannot use|.* redeclared|no required module|package \S+ is not in std|missing return|not enough arguments|too many arguments|assignment mismatch|.* undefined \(type )`),
		hard("a package or module is missing", `^go: .*(?:cannot find|no required module|updates to go\.(?:mod|sum) needed|missing go\.sum entry|does not contain package|no such file)`,
			`no required module provides package`, `cannot find module providing package`, `^package \S+: (?:cannot find|no Go files)`, `^no Go files in `, `matched no packages`),
		hard("it did not compile", `error: could not compile `, `^error\[E\d{4}\]`, `^error: linking with `, `error: failed to parse manifest`),
		hard("it did not compile", `Transform failed with \d+ error`, `ERR_(?:INVALID|UNSUPPORTED)_TYPESCRIPT_SYNTAX`, `^\s*[✘✖] \[ERROR\] `, `error TS\d+:`, `^\S+\.tsx?[:(]\d+`+`[:,]\d+\)?:? ?-? error `),
		hard("it did not compile", `COMPILATION ERROR`, `Compilation failed`, `Execution failed for task '[^']*:compile`, `^\S+\.java:\d+: error: `, `^e: (?:file://)?\S+\.kts?:`, `^\[ERROR\] .*\.(?:java|kt|scala):\[?\d+`, `^\S+\.scala:\d+: error`),
		hard("it did not compile", `: error CS\d{4}:`, `: error FS\d{4}:`, `: error MSB\d{4}:`, `^Build FAILED\.`),
		hard("it did not compile", `^\S+\.(?:c|cc|cpp|cxx|h|hpp|m|mm|swift|zig|hs|d|f90):\d+:(?:\d+:)? (?:fatal )?error: `, `undefined reference to `, `ld returned \d+ exit status`, `^ld: .*(?:symbol|library) .*not found`, `Undefined symbols for architecture`,
			`^(?:gcc|g\+\+|cc|c\+\+|clang(?:\+\+)?|cc1(?:plus)?)(?:-\d+)?: (?:fatal )?error: `, `^\*\* \(CompileError\)`, `^== Compilation error in file`, `\*\* \((?:SyntaxError|TokenMissingError)\)`),
		hard("there is nothing to make it from", `^make(?:\[\d+\])?: \*\*\* No rule to make target`, `^make(?:\[\d+\])?: \*\*\* No targets`, `^make(?:\[\d+\])?: .*(?:No such file or directory|[Cc]ommand not found)`, `^CMake Error`, `^ninja: error: `),
		hard("the tests could not be collected", `errors? during collection`, `^ERROR collecting `, `^ImportError while (?:loading|importing)`, `^ERROR: (?:file or directory not found|not found|usage)`, `^ImportError: Failed to import test module`, `^ERROR: \S+ \(unittest\.loader\._FailedTest`, `unittest\.loader\._FailedTest`),
		hard("a test suite failed to run", `Test suite failed to run`, `^\s*Exception during run: `, `Failed to resolve import`, `FAIL  \S+ \[ \S+ \]$`),
		hard("a module is missing", `ERR_MODULE_NOT_FOUND`, `MODULE_NOT_FOUND`, `Cannot find (?:module|package) '`, `ERR_PACKAGE_PATH_NOT_EXPORTED`, `ERR_UNKNOWN_FILE_EXTENSION`, `(?:missing script|Missing script):`, `npm (?:ERR!|error) (?:code ENOENT|enoent)`, `ERR_PNPM_NO_SCRIPT`),
		hard("a module does not export what is imported from it", `does not provide an export named`),
		hard("a syntax error", `^(?:# )?(?:Uncaught )?SyntaxError: `, `^\s*(?:E\s+)?(?:SyntaxError|IndentationError|TabError): `, `(?:PHP )?Parse error: +syntax error`, `syntax error, unexpected`, `^\S+: line \d+: syntax error`),
		hard("there is no such test", `^(?:AttributeError|ValueError): .*'test\w*'`, `^No tests found for given includes`, `^\s*> No tests found for given includes`),
		soft("a module is missing", `(?:ModuleNotFoundError|ImportError)\b`, `(?:LoadError|cannot load such file)`, `uninitialized constant`, `Failed opening required`, `Can't locate \S+\.pm in @INC`, `module '[^']*' not found:`, `: No module named '?\S+$`),
		soft("what it calls is not there", `AttributeError: (?:partially initialized )?(?:module|type object) .*has no attribute`, `AttributeError: '[^']*' object has no attribute`, `NameError: name '[^']*' is not defined`,
			`TypeError: .*\(\) (?:got an unexpected keyword|takes (?:from )?\w+|missing \d+ required)`, `(?:TypeError: |error: ')\S+ is not a (?:function|constructor)`, `(?:ReferenceError: |error: ')\S+ is not defined`, `NoMethodError`, `NameError: undefined`, `undefined (?:local variable or )?method`,
			`Call to undefined (?:function|method)`, `Class "[^"]*" not found`, `\(UndefinedFunctionError\)`, `attempt to call a nil value`, `Undefined subroutine`, `(?:NoSuchMethodError|NoClassDefFoundError|ClassNotFoundException|UnsatisfiedLinkError)`),
		soft("a program or a script is missing", `^(?:\S*(?:bash|sh|zsh|env|dash|busybox)|\S+\.sh|\S+\.bats)(?:: line)?(?:: \d+)?: (?:line \d+: |\d+: )?.*(?:[Cc]ommand not found|[Nn]ot found|No such file or directory|Permission denied)\r?$`, `can't open file '`, `Cannot find file `, `^Could not open input file`, `^Could not find '`, `No such file or directory -- \S+ \(LoadError\)`),
		soft("a file is missing", `^(?:/\S*/)?(?:e?grep|rg|cat|diff|cmp|sed|g?awk|head|tail|wc|jq|sort|source|xmllint|yq)(?:: line \d+)?: .*(?:No such file or directory|can't open file|Could not open file)`),
	}
})

// nonePassed is a missing attribute of a NoneType: the value returned by a stub, not a missing function.
var nonePassed = centurion.Pattern(`AttributeError: 'NoneType' object has no attribute`)

// asserted matches the output of a check that ran and failed by itself.
var asserted = centurion.Pattern(`(?m)(?:` + strings.Join([]string{
	`^\s*--- FAIL: `, `AssertionError`, `AssertionFailedError`, `ComparisonFailure`, `^E +assert `, `^E +Failed: `, `expect\(received\)`, `Failure/Error: expect`, `ERR_ASSERTION`, `ExpectationNotMet`,
	`Assert(?:\.\w+\(\)|ion) (?:Failure|failed)`, `[Aa]ssertion .*failed`, `thread '.*' panicked at`, `Failed asserting that`, `Minitest::Assertion`, `Assertion with `, `XCTAssert\w+ failed`,
}, "|") + `)`)

// goPanic matches a program that crashed before any of its tests ran, goTest the output of a test that ran.
var (
	goPanic = centurion.Pattern(`(?m)^(?:panic: |fatal error: )`)
	goTest  = centurion.Pattern(`(?m)^\s*--- FAIL: `)
	goLate  = centurion.Pattern(`(?m)^panic: test timed out after`)
)

// broken says why a failed run proves nothing about the work: the tested code was not built, or does not exist. It is empty if a check failed by
// itself. It is strict: if a compiler gave up, failures elsewhere do not count.
func broken(command string, exit int, output string) string {
	switch {
	case exit == 0:
		return ""
	case exit == 127:
		return "a program is missing" + quoteLine(lastLine(output))
	case exit == 126:
		return "a program could not be started" + quoteLine(lastLine(output))
	case exit < 0 || exit > 128 && exit < 160 && exit != 134: // by a signal; SIGABRT is a C program's failed assertion
		return fmt.Sprintf("it crashed or was killed (exit code %d)", exit)
	}
	if strings.TrimSpace(output) == "" && callsTests(command) {
		return "nothing says which test failed: its output is thrown away"
	}
	if strings.Contains(output, "panic: test timed out") && goLate().MatchString(output) {
		return "it timed out"
	}
	if strings.Contains(command, "go ") && goPanic().MatchString(output) && !goTest().MatchString(output) {
		return "it crashed before a test ran" + quoteLine(goPanic().FindString(output)+"…")
	}
	files := nodeFiles(output)
	output = suspicious(output)
	failing := asserted().MatchString(output)
	without := nonePassed().ReplaceAllString(output, "")
	for _, s := range signs() {
		if s.soft && failing {
			continue
		}
		if at := s.line.FindStringIndex(without); at != nil {
			return s.why + quoteLine(lineAt(without, at[0], at[1]))
		}
	}
	if files != "" && !failing {
		return "a test file failed to run" + quoteLine(files)
	}
	return ""
}

// nodeFailed matches a failed test in the output of Node's test runner, nodeName a test name that is a file, and jsThrown the error of a program that
// uses a missing value.
var (
	nodeFailed = centurion.Pattern(`(?m)^\s*(?:not ok \d+ - |✖ )(.+?)(?: \([\d.]+ms\))?\r?$`)
	nodeName   = centurion.Pattern(`^\S+\.[cm]?[jt]sx?$`)
	jsThrown   = centurion.Pattern(`(?m)^(?:# )?(?:Uncaught )?(?:TypeError|RangeError): .*$`)
)

// nodeFiles quotes the error of a test file if Node reports only files as failed: then they failed before a test in them ran.
func nodeFiles(output string) string {
	files := 0
	for _, m := range nodeFailed().FindAllStringSubmatch(output, -1) {
		if m[1] == "failing tests:" {
			continue
		}
		if files++; !nodeName().MatchString(m[1]) {
			return ""
		}
	}
	if files == 0 {
		return ""
	}
	return strings.TrimPrefix(jsThrown().FindString(output), "# ")
}

// suspects are substrings of every line that matches a sign or an assertion. Expressions are slow, and most lines of an output are harmless.
var suspects = []string{"rror", "ERR", "ailed", "FAIL", "Fail", "ndefined", "annot", "an't", "ot found", "o such", "no ", "No ", "ould not", "does not", "not a ", "not defined", "NOT_FOUND", ".go:", "go: ",
	"issing", "ld returned", "uninitialized", "nil value", "denied", "NoSuch", "NoClass", "Class", "NoMethod", "ssert", "expect", "Expect", "panic", "Comparison", "export", "***", "Exception", "not compile"}

// suspicious keeps the lines that may explain a failed run.
func suspicious(output string) string {
	var b strings.Builder
	for l := range strings.Lines(output) {
		if strings.HasPrefix(l, "# ") || strings.HasPrefix(l, "e: ") || slices.ContainsFunc(suspects, func(s string) bool { return strings.Contains(l, s) }) {
			b.WriteString(l)
		}
	}
	return b.String()
}

func quoteLine(line string) string {
	if line = strings.TrimSpace(line); line == "" {
		return ""
	}
	return ": " + centurion.Clip(line, 160)
}

// lineAt returns the whole last line of a match: compilers name the package first and then the error.
func lineAt(s string, from, to int) string {
	from += strings.LastIndexByte(strings.TrimRight(s[from:to], "\r\n"), '\n') + 1
	from = strings.LastIndexByte(s[:from], '\n') + 1
	if i := strings.IndexByte(s[from:], '\n'); i >= 0 {
		return s[from : from+i]
	}
	return s[from:]
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// Test runners print how many tests ran. noTest matches a line for none, ranTest a line for at least one.
var (
	noTest = centurion.Pattern(`(?m)(?:` + strings.Join([]string{
		`testing: warning: no tests to run`, `\[no tests to run\]`, `\[no test files\]`, `collected 0 items`, `no tests ran`, `^Ran 0 tests`, `^NO TESTS RAN`, `No tests? (?:found|files found|were found|executed|run)\b.*`, `^(?:#|ℹ) tests 0$`,
		`^\s*0 passing`, `running 0 tests`, `^0 examples, 0 failures`, `No test is available`, `^0 tests?,`, `^1\.\.0`, `Tests run: 0,`, `^Tests:\s+0 total`, `Executed 0 tests`, `There are no tests to run`, `NO-SOURCE$`, `^0 runs, 0 assertions`, `No test suite found`, `0 passed; 0 failed`,
	}, "|") + `)`)
	ranTest = centurion.Pattern(`(?m)(?:` + strings.Join([]string{
		`^ok  ?\t\S+\t(?:[\d.]+s|\(cached\))(?:\tcoverage: [^\[\n]*)?$`, `^\s*--- (?:PASS|FAIL): `, `^PASS: `, `\b[1-9]\d* (?:passed|failed|passing|failing|pass|fail)\b`, `^Ran [1-9]\d* tests?`, `collected [1-9]\d* items?`, `^(?:#|ℹ) tests [1-9]\d*$`, `running [1-9]\d* tests?`, `^[1-9]\d* examples?,`,
		`^[1-9]\d* tests?,`, `Tests run: [1-9]`, `Executed [1-9]\d* tests?`, `^[1-9]\d* runs,`, `^1\.\.[1-9]`, `^OK \([1-9]`, `Passed: +[1-9]`,
	}, "|") + `)`)
)

// nodeFile matches a file without a test, which Node counts as one, and nodeCase a test.
var (
	nodeFile = centurion.Pattern(`(?m)^(?:ok \d+ - |✔ )/.+\.[cm]?[jt]s(?: \(.*\))?$`)
	nodeCase = centurion.Pattern(`(?m)^\s*(?:(?:not )?ok \d+ - |[✔✖] )[^/]`)
)

// empty quotes the line which says that no test ran. It is empty if a test ran, or if the output does not tell.
func empty(output string) string {
	if l := nodeFile().FindString(output); l != "" && !nodeCase().MatchString(output) {
		return l
	}
	if ranTest().MatchString(output) { // first, because it is found early if at all
		return ""
	}
	at := noTest().FindStringIndex(output)
	if at == nil {
		return ""
	}
	return strings.TrimSpace(lineAt(output, at[0], at[1]))
}

// tellers find the most informative line about a failed check, best first.
var tellers = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(?m)^\s*--- FAIL: .*$`),
		regexp.MustCompile(`(?m)^FAILED \S+::.*$`),
		regexp.MustCompile(`(?m)^E\s+(?:assert|\w*Error|Failed).*$`),
		regexp.MustCompile(`(?m)^.*AssertionError.*$`),
		regexp.MustCompile(`(?m)^.*(?:ERR_ASSERTION|AssertionFailedError|assertion .*failed|Failed asserting).*$`),
		regexp.MustCompile(`(?m)^test \S+ \.\.\. FAILED$`),
		regexp.MustCompile(`(?m)^\s*(?:not ok \d+.*|✕ .*|✖ .*|● .*)$`),
		regexp.MustCompile(`(?m)^(?:FAIL|ERROR): .*$`),
		regexp.MustCompile(`(?m)^\w*(?:Error|Exception|panic): .*$`),
		regexp.MustCompile(`(?mi)^.*\b(?:expected|want|fail(?:ed|ure)?)\b.*$`),
	}
})

// telling returns the most informative line of a failed run's output, at most 200 bytes.
func telling(output string) string {
	if l := nodeSaid(output); l != "" {
		return clipLine(l)
	}
	for _, t := range tellers() {
		if l := strings.TrimSpace(t.FindString(output)); l != "" {
			return clipLine(l)
		}
	}
	return clipLine(lastLine(output))
}

// nodeSaid is the message of the first failed assertion in an output of Node, in one line: its test runner prints it on several lines, in TAP
// separately from the line that names the error.
//
//	error: |-
//	  Expected values to be strictly equal:
//
//	  undefined !== 2
//
//	code: 'ERR_ASSERTION'
func nodeSaid(output string) string {
	const thrown = "AssertionError [ERR_ASSERTION]: "
	var said []string
	inTAP := false
	for l := range strings.Lines(output) {
		l = strings.TrimSpace(strings.TrimPrefix(l, "# ")) // TAP's prefix for a file's output
		tap, isTAP := strings.CutPrefix(l, "error: ")
		_, rest, isThrown := strings.Cut(l, thrown)
		switch {
		case isTAP:
			inTAP, said = true, nil
			if tap != "|-" {
				said = []string{strings.Trim(tap, `'"`)}
			}
		case inTAP && strings.HasPrefix(l, "code: "):
			if l == "code: 'ERR_ASSERTION'" && len(said) > 0 {
				return strings.Join(said, " ")
			}
			inTAP, said = false, nil
		case isThrown:
			inTAP, said = false, []string{thrown + rest}
		case len(said) > 0 && !inTAP && (strings.HasPrefix(l, "at ") || l == "..."):
			return strings.Join(said, " ")
		case l != "" && (inTAP || len(said) > 0) && len(said) < 40:
			said = append(said, l)
		}
	}
	if inTAP {
		return ""
	}
	return strings.Join(said, " ")
}

func clipLine(l string) string { return centurion.Clip(l, 200) }
