package verify

import (
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"centurion"
)

var (
	// testBegins finds the name of a test, or of a case in a table, at its beginning.
	testBegins = centurion.Pattern(`^\s*(?:func (Test\w+|Fuzz\w+|Example\w*)\s*\(|(?:async\s+)?def (test\w*)\s*\(|(?:it|test|describe|specify|context|scenario)(?:\.(?:each|concurrent|only|skip)\b[^(]*(?:\([^)]*\))?)?\s*\(?\s*["'` + "`" + `]([^"'` + "`" + `]+)|(?:public\s+)?(?:async\s+)?(?:void|Task|function|fun)\s+(\w*[Tt]est\w*|should\w*)\s*\(|(?:pub\s+)?(?:async\s+)?fn (\w+)\s*\(\s*\)|@test "([^"]+)"|t\.Run\("([^"]+)"|\{\s*(?:name:\s*)?"([^"]+)",|func (test\w+)\(|(?:TEST(?:_[FP])?)\((\w+,\s*\w+)\)|test "([^"]+)" do)`)
	// asserts finds a line with an assertion.
	asserts = centurion.Pattern(`\b(?:t|b|tb|f)\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\b|\b(?:assert|require|refute|expect|verify|should|must|check)(?:_?\w*[!?]?\s*\(|\.\w+|\s+\S)|\bassert\b|self\.assert|\braise AssertionError|\.should\b|\bXCTAssert\w*|\b(?:ASSERT|EXPECT|CHECK|REQUIRE)_?\w*\(|\bAssert\.|\[\[? .*\]\]?|\bexit [1-9]`)
	// skips finds code that prevents a test from running.
	skips = centurion.Pattern(`\b[tb]\.Skip(?:f|Now)?\(|pytest\.(?:mark\.)?(?:skip|xfail|importorskip)|unittest\.(?:skip|expectedFailure)|@skip(?:If|Unless)?\b|\b(?:it|test|describe|context|suite)\.(?:skip|only|todo|fixme|failing)\b|\b(?:xit|xdescribe|xtest|xcontext|fit|fdescribe|fcontext)\s*\(|#\[ignore|@(?:Disabled|Ignore)\b|\[(?:Ignore|Fact\(Skip)|Skip\s*=\s*"|markTestSkipped|@tag :?skip|\bskip\s+["']|skip:\s*true|GTEST_SKIP|DISABLED_|XCTSkip|^\s*//go:build ignore`)
	// excused finds code that makes a failing command pass.
	excused = centurion.Pattern(`\|\|\s*(?:true|:|exit 0|echo\b)|--passWithNoTests|--if-present\b|continue-on-error:\s*true|set \+e\b|--exit-zero|--no-fail\b|-Dmaven\.test\.failure\.ignore|-DskipTests`)
	// threshold finds a limit for a check.
	threshold = centurion.Pattern(`(?i)(?:fail[_-]under|threshold|min(?:imum)?[_-]?coverage|branches|functions|lines|statements)["']?\s*[:=]\s*(\d+(?:\.\d+)?)`)
)

// runnerFiles are test runners' own settings.
var runnerFiles = centurion.Pattern(`(?:^|/)(?:(?:jest|vitest|karma|playwright|cypress|ava)\.config\.\w+|pytest\.ini|tox\.ini|setup\.cfg|pyproject\.toml|phpunit\.xml(?:\.dist)?|\.mocharc\.\w+|\.coveragerc|codecov\.ya?ml|\.nycrc(?:\.json)?)$`)

// weakened lists the checks that a change has deleted or weakened, one line each. Tests that were renamed or moved to another file do not count.
func weakened(diff []centurion.FileDiff, command string) []string {
	var out []string
	cs := changes{diff: diff, command: command}
	moved := map[string]bool{} // tests that now begin somewhere
	for _, f := range diff {
		for _, name := range testsIn(f, '+') {
			moved[name] = true
		}
	}
	for _, f := range diff {
		named := cs.named(f.Path)
		switch {
		case f.Status == "deleted" && (testFile(f.Path) || named):
			if len(lostTests(f, moved)) > 0 || len(testsIn(f, '-')) == 0 {
				out = append(out, f.Path+" was removed")
			}
			continue
		case f.Status == "added" && !named:
			out = append(out, excuses(f, testFile(f.Path))...)
			continue
		case named && f.Status != "added":
			out = append(out, f.Path+" was changed, which the check runs")
		}
		if testFile(f.Path) || inlineTestFile(f.Path) {
			out = append(out, weakenedTests(f, moved)...)
		}
		out = append(out, excuses(f, testFile(f.Path))...)
		out = append(out, weakenedRunner(f)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// changed are the lines of a file that were added ('+') or removed ('-'), without the sign.
func changed(f centurion.FileDiff, sign byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, h := range f.Hunks {
			for l := range strings.Lines(h.Text) {
				if l[0] == sign && !yield(strings.TrimRight(l[1:], "\r\n")) {
					return
				}
			}
		}
	}
}

func inlineTestFile(file string) bool { return path.Ext(file) == ".rs" }

// testName returns the name of the test that begins on a line, or "".
func testName(file, line string) string {
	m := testBegins().FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	if m[5] != "" && path.Ext(file) != ".rs" {
		return ""
	}
	for _, name := range m[1:] {
		if name != "" {
			return name
		}
	}
	return ""
}

// testsIn lists the tests that begin on the added ('+') or removed ('-') lines of a file.
func testsIn(f centurion.FileDiff, sign byte) (names []string) {
	for l := range changed(f, sign) {
		if name := testName(f.Path, l); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// lostTests are the tests that a file lost and no file has now. As many as were added to it count as renamed.
func lostTests(f centurion.FileDiff, moved map[string]bool) []string {
	was := testsIn(f, '-')
	added := slices.DeleteFunc(testsIn(f, '+'), func(name string) bool { return slices.Contains(was, name) })
	lost := slices.DeleteFunc(slices.Clone(was), func(name string) bool { return moved[name] })
	slices.Sort(lost)
	lost = slices.Compact(lost)
	if assertions(f, '-') > assertions(f, '+') {
		return lost // the new tests assert less
	}
	return lost[min(len(added), len(lost)):]
}

// assertions counts the added or removed lines with assertions.
func assertions(f centurion.FileDiff, sign byte) (n int) {
	for l := range changed(f, sign) {
		if asserts().MatchString(l) && !comment().MatchString(l) {
			n++
		}
	}
	return n
}

var comment = centurion.Pattern(`^\s*(?://|#(?: |$)|\*|/\*)`)

func weakenedTests(f centurion.FileDiff, moved map[string]bool) []string {
	var out []string
	lost := lostTests(f, moved)
	for _, name := range lost[:min(len(lost), 5)] {
		out = append(out, fmt.Sprintf("%s: %s was removed", f.Path, name))
	}
	if len(lost) > 5 {
		out = append(out, fmt.Sprintf("%s: %d more tests were removed", f.Path, len(lost)-5))
	}
	if added, removed := assertions(f, '+'), assertions(f, '-'); len(lost) == 0 && removed > added {
		out = append(out, fmt.Sprintf("%s: %s removed and %d added", f.Path, centurion.Count(removed, "assertion"), added))
	}
	return out
}

// excuses are added lines that keep a check from failing.
func excuses(f centurion.FileDiff, test bool) []string {
	var out []string
	had := map[string]bool{}
	for l := range changed(f, '-') {
		had[strings.TrimSpace(l)] = true
	}
	for l := range changed(f, '+') {
		t := strings.TrimSpace(l)
		switch {
		case had[t]: // it was only moved
		case (test || inlineTestFile(f.Path)) && skips().MatchString(l):
			out = append(out, f.Path+": a skip was added: "+clipLine(t))
		case (test || runsChecks(f.Path)) && excused().MatchString(l):
			out = append(out, f.Path+": a failure is passed over: "+clipLine(t))
		}
	}
	return out
}

// runsChecks reports whether a file is one that runs checks.
func runsChecks(file string) bool {
	name := path.Base(file)
	return slices.Contains([]string{"package.json", "Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", "Taskfile.yml", "noxfile.py"}, name) || path.Ext(name) == ".sh" || path.Ext(name) == ".bats" ||
		strings.Contains(file, ".github/workflows/") || name == ".gitlab-ci.yml" || runnerFiles().MatchString(file)
}

var (
	npmTest    = centurion.Pattern(`^\s*"(?:pre|post)?test(?::[\w-]+)?"\s*:`)
	makeTarget = centurion.Pattern(`^(?:test|check|verify|lint)[\w-]*\s*:`)
)

// weakenedRunner examines files that run tests: a script of package.json, a target of a Makefile, a threshold.
func weakenedRunner(f centurion.FileDiff) []string {
	var out []string
	name := path.Base(f.Path)
	for l := range changed(f, '-') {
		if name == "package.json" && npmTest().MatchString(l) && !strings.Contains(l, "no test specified") && !sameButComma(f, l) {
			out = append(out, f.Path+": the script was changed: "+clipLine(strings.TrimSpace(l)))
		}
	}
	if strings.EqualFold(name, "makefile") || name == "GNUmakefile" {
		out = append(out, weakenedTargets(f)...)
	}
	low := map[string]string{}
	for l := range changed(f, '-') {
		if m := threshold().FindStringSubmatch(l); m != nil {
			low[keyOf(l)] = m[1]
		}
	}
	for l := range changed(f, '+') {
		if m := threshold().FindStringSubmatch(l); m != nil && (runnerFiles().MatchString(f.Path) || name == "package.json") {
			if was := low[keyOf(l)]; was != "" && less(m[1], was) {
				out = append(out, fmt.Sprintf("%s: a threshold went from %s to %s", f.Path, was, m[1]))
			}
		}
	}
	return out
}

func keyOf(l string) string {
	at := threshold().FindStringSubmatchIndex(l)
	return strings.TrimSpace(l[:at[2]])
}

// less compares numbers that were matched as such.
func less(a, b string) bool {
	var x, y float64
	_, _ = fmt.Sscan(a, &x)
	_, _ = fmt.Sscan(b, &y)
	return x < y
}

// sameButComma reports whether a removed line was added again, except for a trailing comma.
func sameButComma(f centurion.FileDiff, line string) bool {
	trim := func(s string) string { return strings.TrimSuffix(strings.TrimSpace(s), ",") }
	return slices.ContainsFunc(slices.Collect(changed(f, '+')), func(l string) bool { return trim(l) == trim(line) })
}

// weakenedTargets finds targets that run tests and lost lines.
func weakenedTargets(f centurion.FileDiff) []string {
	var out []string
	for _, h := range f.Hunks {
		target := ""
		if _, behind, ok := strings.Cut(strings.TrimPrefix(h.Header, "@@"), "@@"); ok {
			target = makeTarget().FindString(strings.TrimSpace(behind))
		}
		for l := range strings.Lines(h.Text) {
			body := strings.TrimRight(l[1:], "\n")
			if body != "" && body[0] != '\t' && body[0] != ' ' && body[0] != '#' && strings.Contains(body, ":") {
				target = makeTarget().FindString(body)
			}
			if l[0] == '-' && target != "" && strings.TrimSpace(body) != "" {
				out = append(out, f.Path+": the target "+strings.TrimRight(target, " :")+" was changed")
				break
			}
		}
	}
	return out
}

// touched is the lines of a new file that a change has touched.
type touched struct {
	added   []int // new or changed lines, from 1
	removed []int // lines were removed between this one and the previous one
}

// touchedBy reads which lines a hunk touches.
func touchedBy(hunks ...centurion.Hunk) touched {
	var t touched
	for _, h := range hunks {
		at := h.NewStart
		if h.NewLines == 0 {
			at++ // git names the previous line if nothing is left
		}
		for l := range strings.Lines(h.Text) {
			switch l[0] {
			case '+':
				t.added = append(t.added, at)
				at++
			case '-':
				t.removed = append(t.removed, at)
			case '\\':
			default:
				at++
			}
		}
	}
	return t
}

// in reports whether one of the lines from first to last was touched.
func (t touched) in(first, last int) bool {
	return slices.ContainsFunc(t.added, func(n int) bool { return first <= n && n <= last }) ||
		slices.ContainsFunc(t.removed, func(n int) bool { return first < n && n <= last })
}

// outside reports whether anything outside of a range was touched. Blank lines next to the range do not count.
func (t touched) outside(in lines) bool {
	return slices.ContainsFunc(t.added, func(n int) bool { return n < in.first-1 || n > in.last }) ||
		slices.ContainsFunc(t.removed, func(n int) bool { return n < in.first || n > in.last+1 })
}
