package verify

import (
	"regexp"
	"strings"
	"testing"

	"centurion"
)

// Each way to keep a check from failing is seen, and what only looks like one is not. Lines are separated by line feeds.
func TestSignsOfWeakening(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		re      func() *regexp.Regexp
		yes, no string
	}{
		"skips": {skips, "t.Skip(\"x\")\nb.SkipNow()\nt.Skipf(\"x\")\npytest.skip(\"x\")\n@pytest.mark.skip\n@pytest.mark.xfail\nnp = pytest.importorskip(\"np\")\n@unittest.skip(\"x\")\n@unittest.expectedFailure\n@skip\n@skipIf(x)\n@skipUnless(x)\n" +
			"it.skip('x', f)\ntest.only('x', f)\ndescribe.todo('x')\ncontext.fixme()\nsuite.failing('x')\nxit('x')\nxdescribe('x')\nxtest('x')\nxcontext('x')\nfit('x')\nfdescribe('x')\nfcontext ('x')\n#[ignore = \"x\"]\n@Disabled\n@Ignore\n[Ignore]\n" +
			"[Fact(Skip = \"x\")]\n[Theory, Skip=\"x\"]\n$this->markTestSkipped()\n@tag :skip\n@tag skip\nskip \"later\"\n{ skip: true }\nGTEST_SKIP();\nTEST(A, DISABLED_B) {\nthrow XCTSkip()\n//go:build ignore",
			"t.Skipped()\nexit(1)\nprofit(x)\nskip(x)\nx.skip(1)\nskip: false\nfunc skipper() {}\nx := 1"},
		"excused": {excused, "make test || true\nmake test ||:\nmake || exit 0\nmake || echo no\njest --passWithNoTests\nnpm run test --if-present\n  continue-on-error: true\nset +e\nruff --exit-zero\npytest --no-fail\nmvn -Dmaven.test.failure.ignore\nmvn -DskipTests",
			"make || exit 1\nmake | true\nset -e\ncontinue-on-error: false\nmake && echo yes"},
		"threshold": {threshold, "fail_under = 80\n--cov-fail-under=80\nthreshold: 80\n\"min_coverage\": 80\nminimum-coverage = 80\nbranches: 80\n\"functions\": 79.5\nlines: 80\nstatements: 80", "branches: main\nlimit: 80"},
		"asserts": {asserts, "t.Error(1)\nt.Errorf(\"\")\nb.Fatal()\ntb.Fatalf(\"\")\nf.Fail()\nt.FailNow()\nassert(x)\nassert x == 1\nassertEquals(1, x)\nassert_eq!(1, x)\nassert.equal(1, x)\nrequire.Equal(t, 1, x)\nrefute(x)\nexpect(x).toBe(1)\nverify(x)\nshould(x)\nmust(x)\n" +
			"check(x)\nself.assertTrue(x)\nraise AssertionError\nx.should eq 1\nXCTAssertEqual(1, x)\nASSERT_EQ(1, x)\nEXPECT_TRUE(x)\nCHECK(x)\nREQUIRE(x)\nAssert.Equal(1, x)\n[ -f x ]\n[[ $a == b ]]\nexit 1", "exit 0\nx := 1\nt.Log(1)\nreturn a(b)"},
		"settings": {runnerFiles, "jest.config.js\na/vitest.config.ts\nkarma.config.js\nplaywright.config.ts\ncypress.config.js\nava.config.mjs\npytest.ini\ntox.ini\nsetup.cfg\na/pyproject.toml\nphpunit.xml\nphpunit.xml.dist\n.mocharc.json\n.coveragerc\ncodecov.yml\ncodecov.yaml\n.nycrc\n.nycrc.json",
			"xjest.config.js\npytest.ini.bak\nsetup.py\nmypytest.ini\nconfig.js"},
	} {
		for line := range strings.SplitSeq(c.yes, "\n") {
			if !c.re().MatchString(line) {
				t.Errorf("%s: %s is not seen", name, line)
			}
		}
		for line := range strings.SplitSeq(c.no, "\n") {
			if c.re().MatchString(line) {
				t.Errorf("%s: %s is taken for one", name, line)
			}
		}
	}
}

// A test is known by its name, in every language.
func TestNamesOfTests(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"func TestA(t *testing.T) {": "TestA", "func FuzzA(f *testing.F) {": "FuzzA", "func ExampleA() {": "ExampleA", "func Example() {": "Example",
		"def test_a():": "test_a", "    async def test_b(x):": "test_b", "it('adds', () => {": "adds", "test(\"adds\", () => {": "adds", "test.each([1])('n', f)": "n", "it.only('o', f)": "o",
		"describe 'x' do": "x", "specify \"y\" do": "y", "context(`z`, f)": "z", "scenario 's' do": "s", "public void testA() {": "testA", "public async Task AddsTest() {": "AddsTest", "function testB() {": "testB",
		"fun shouldAdd() {": "shouldAdd", "@test \"bats\" {": "bats", "\tt.Run(\"case\", f)": "case", "\t\t{name: \"row\", a: 1},": "row", "\t\t{\"first\", 1},": "first", "func testSwift() {": "testSwift",
		"TEST(Suite, Case) {": "Suite, Case", "TEST_F(Suite, Other) {": "Suite, Other", "TEST_P(Suite, Third) {": "Suite, Third", "test \"elixir\" do": "elixir",
		"func helper(t *testing.T) {": "", "x := Testing()": "", "fn a() {": "", "it(name, f)": "",
	} {
		if got := testName("a_test.go", line); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	for line, want := range map[string]string{"fn a() {": "a", "    pub async fn b( ) {": "b", "fn c(x: u8) {": ""} {
		if got := testName("lib.rs", line); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	for file, want := range map[string]bool{"package.json": true, "Makefile": true, "a/makefile": true, "GNUmakefile": true, "justfile": true, "Justfile": true, "Taskfile.yml": true, "noxfile.py": true, "x.sh": true, "x.bats": true,
		".github/workflows/ci.yml": true, ".gitlab-ci.yml": true, "a/jest.config.js": true, "a.go": false, "ci.yml": false, "sh": false} {
		if got := runsChecks(file); got != want {
			t.Errorf("%s runs checks: %v", file, got)
		}
	}
}

const fiveTests = "package a\n\nfunc TestA(t *testing.T) {}\n\nfunc TestB(t *testing.T) {}\n\nfunc TestC(t *testing.T) {}\n\nfunc TestD(t *testing.T) {}\n\nfunc TestE(t *testing.T) {}\n"

// What a change does beside the tests themselves is seen in the files that run them only.
func TestWeakenedElsewhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after files
		want          string
	}{
		"a new script that passes over":      {files{}, files{"ci.sh": "make test || true\n"}, "ci.sh: a failure is passed over: make test || true"},
		"a new test with a skip":             {files{}, files{"a_test.go": "\tt.Skip()\n"}, "a_test.go: a skip was added: t.Skip()"},
		"a workflow":                         {files{".github/workflows/ci.yml": "run: make\n"}, files{".github/workflows/ci.yml": "run: make\ncontinue-on-error: true\n"}, ".github/workflows/ci.yml: a failure is passed over: continue-on-error: true"},
		"code that says so":                  {files{"a.go": "x\n"}, files{"a.go": "x\n// make || true\n"}, ""},
		"a skip in code":                     {files{"a.go": "x\n"}, files{"a.go": "x\nt.Skip()\n"}, ""},
		"a threshold of a package":           {files{"package.json": "  \"branches\": 80,\n"}, files{"package.json": "  \"branches\": 8,\n"}, "package.json: a threshold went from 80 to 8"},
		"a threshold of Python":              {files{"pyproject.toml": "fail_under = 90\n"}, files{"pyproject.toml": "fail_under = 9.5\n"}, "pyproject.toml: a threshold went from 90 to 9.5"},
		"a threshold, indented otherwise":    {files{"jest.config.js": "    branches: 80,\n"}, files{"jest.config.js": "  branches: 20,\n"}, "jest.config.js: a threshold went from 80 to 20"},
		"the same threshold":                 {files{"jest.config.js": "  branches: 80,\n"}, files{"jest.config.js": "  branches: 80\n"}, ""},
		"five tests":                         {files{"a_test.go": fiveTests}, files{"a_test.go": "package a\n"}, "a_test.go: TestA was removed; a_test.go: TestB was removed; a_test.go: TestC was removed; a_test.go: TestD was removed; a_test.go: TestE was removed"},
		"another threshold":                  {files{"jest.config.js": "  branches: 80,\n"}, files{"jest.config.js": "  lines: 20,\n"}, ""},
		"a number in code":                   {files{"a.js": "  branches: 80,\n"}, files{"a.js": "  branches: 20,\n"}, ""},
		"a removed file of tests of nothing": {files{"a_test.go": "package a\n"}, files{}, "a_test.go was removed"},
		"a removed file of code":             {files{"a.go": "package a\n"}, files{}, ""},
		"the script of the check, removed":   {files{"check.sh": "x\n"}, files{}, "check.sh was removed"},
		"the script of the check, new":       {files{}, files{"check.sh": "x\n"}, ""},
		"a lint target":                      {files{"Makefile": "lint-all:\n\tgolint\n"}, files{"Makefile": "lint-all:\n"}, "Makefile: the target lint-all was changed"},
		"a script before the test":           {files{"package.json": "  \"pretest\": \"tsc\"\n"}, files{"package.json": "  \"pretest\": \"true\"\n"}, "package.json: the script was changed: \"pretest\": \"tsc\""},
		"a script of one kind of test":       {files{"package.json": "  \"test:unit\": \"jest\"\n"}, files{"package.json": "  \"test:unit\": \"true\"\n"}, "package.json: the script was changed: \"test:unit\": \"jest\""},
		"another script":                     {files{"package.json": "  \"build\": \"tsc\"\n"}, files{"package.json": "  \"build\": \"true\"\n"}, ""},
	} {
		if got := strings.Join(weakened(diffTrees(c.before, c.after), "bash check.sh"), "; "); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// A passed check shows nothing if it can only pass, or if it ran no test, in the receipt or in its green run.
func TestShowsNothing(t *testing.T) {
	t.Parallel()
	run := func(kind centurion.RunKind, passed bool, empty string) []centurion.CheckRun {
		return []centurion.CheckRun{{Kind: kind, Passed: passed, Empty: empty}}
	}
	for name, c := range map[string]struct {
		r             centurion.Receipt
		nothing, none bool
	}{
		"it can only pass":       {centurion.Receipt{Command: "true"}, true, false},
		"a test":                 {centurion.Receipt{Command: "go test", Output: "ok  \tx\t0.1s\n"}, false, false},
		"no test in its output":  {centurion.Receipt{Command: "go test", Output: "?   \tx\t[no test files]\n"}, true, true},
		"no test when green":     {centurion.Receipt{Command: "go test", Runs: run(centurion.RunGreen, true, "no tests")}, true, true},
		"no test when it failed": {centurion.Receipt{Command: "go test", Runs: run(centurion.RunGreen, false, "no tests")}, false, false},
		"no test without it":     {centurion.Receipt{Command: "go test", Runs: run(centurion.RunRed, true, "no tests")}, false, false},
		"tests when green":       {centurion.Receipt{Command: "go test", Runs: run(centurion.RunGreen, true, "")}, false, false},
	} {
		if ShowsNothing(c.r) != c.nothing || RanNoTest(c.r) != c.none {
			t.Errorf("%s: shows nothing %v, ran no test %v", name, ShowsNothing(c.r), RanNoTest(c.r))
		}
	}
	many := strings.Repeat("`go test ./a` passes. ", 2) + "`go test ./b` passes. `go test ./c` passes. `go test ./d` passes. `go test ./e` passes. `go test ./f` passes."
	if got := InGoal(many, func(string) bool { return true }); strings.Join(got, " ") != "go test ./a go test ./b go test ./c go test ./d go test ./e" {
		t.Errorf("a goal names %q", got)
	}
}
