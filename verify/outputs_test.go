package verify

import (
	"slices"
	"strings"
	"testing"

	"centurion"
)

// Only lines that may explain a failed run are looked at: a word that is lost here is a failure that is not understood.
func TestSuspiciousLines(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"rror", "ERR", "ailed", "FAIL", "Fail", "ndefined", "annot", "an't", "ot found", "o such", "no ", "No ", "ould not", "does not", "not a ", "not defined", "NOT_FOUND", ".go:", "go: ",
		"issing", "ld returned", "uninitialized", "nil value", "denied", "NoSuch", "NoClass", "Class", "NoMethod", "ssert", "expect", "Expect", "panic", "Comparison", "export", "***", "Exception", "not compile"} {
		if got := suspicious("1\n\t2 " + word + "3\n4\n"); got != "\t2 "+word+"3\n" {
			t.Errorf("%q: %q", word, got)
		}
	}
	if got := suspicious("# a\ne: b\n #c\nae: d\nok\nfine"); got != "# a\ne: b\n" {
		t.Errorf("%q", got)
	}
}

// What is told of a failed run is the line that says most, whatever stands before it.
func TestTellingLines(t *testing.T) {
	t.Parallel()
	const noise = "it failed: want more\n"
	for _, line := range []string{"--- FAIL: TestA (0.00s)", "FAILED test_a.py::test_b - assert 1 == 2", "E   assert 1 == 2", "E   ValueError: x", "E  Failed: DID NOT RAISE", "junit.AssertionError: expected 1",
		"  code: 'ERR_ASSERTION'", "org.opentest4j.AssertionFailedError: 1", "main: assertion 'x' failed", "Failed asserting that 1 is 2.", "test tests::a ... FAILED", "not ok 3 - adds", "✕ adds (3 ms)", "✖ adds", "● adds",
		"FAIL: test_a (t.T)", "ERROR: test_b", "ValueError: bad", "java.io.IOException: bad", "Exception: bad", "panic: bad"} {
		want := strings.TrimSpace(line)
		if line == "java.io.IOException: bad" { // a name with dots is no line of this kind
			want = strings.TrimSpace(noise)
		}
		if got := telling(noise + "  \n" + line + "\nok\n"); got != want {
			t.Errorf("%q is told by %q", line, got)
		}
	}
	for output, want := range map[string]string{
		"": "", "a\nb\n\n": "b", "a\nit Failed\nb\n": "it Failed", "we expected x\nb": "we expected x", "a failure\nb": "a failure", "failing\nb": "b",
		"not ok 1 - a\n--- FAIL: B\n":                                "--- FAIL: B",
		"FAIL: a\ntest x ... FAILED\n":                               "test x ... FAILED",
		"panic: a\nERROR: b\n":                                       "ERROR: b",
		"--- FAIL: " + strings.Repeat("x", 300):                      centurion.Clip("--- FAIL: "+strings.Repeat("x", 300), 200),
		"error: |-\n  Expected:\n\n  1 !== 2\ncode: 'ERR_ASSERTION'": "Expected: 1 !== 2",
		"# error: 'x'\n# code: 'ERR_ASSERTION'\n":                    "x",
		"error: x\ncode: 'OTHER'\nnot ok 1 - a\n":                    "not ok 1 - a",
		"AssertionError [ERR_ASSERTION]: a\n\n1 !== 2\n at f\n at g": "AssertionError [ERR_ASSERTION]: a 1 !== 2",
	} {
		if got := telling(output); got != want {
			t.Errorf("%q is told by %q, want %q", output, got, want)
		}
	}
}

// The exit code alone, or what is printed before any test, may say that a run proves nothing.
func TestBrokenByExit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		command string
		exit    int
		output  string
		want    string
	}{
		{"go test", 0, "panic: x", ""},
		{"x", 127, "a\nsh: x: not found\n", "a program is missing: sh: x: not found"},
		{"x", 127, "", "a program is missing"},
		{"x", 126, "sh: x: Permission denied\n", "a program could not be started: sh: x: Permission denied"},
		{"x", 126, strings.Repeat("y", 200), "a program could not be started: " + centurion.Clip(strings.Repeat("y", 200), 160)},
		{"x", -1, "", "it crashed or was killed (exit code -1)"},
		{"x", 129, "--- FAIL: A", "it crashed or was killed (exit code 129)"},
		{"x", 159, "", "it crashed or was killed (exit code 159)"},
		{"x", 128, "", ""}, {"x", 160, "", ""}, {"x", 134, "", ""}, {"x", 1, "", ""},
		{"go test ./...", 1, " \n", "nothing says which test failed: its output is thrown away"},
		{"go test ./...", 1, "panic: test timed out after 1s\n", "it timed out"},
		{"go test ./...", 1, "x panic: test timed out after 1s\n--- FAIL: A", ""},
		{"go test ./...", 2, "panic: boom\n", "it crashed before a test ran: panic: …"},
		{"go test ./...", 2, "fatal error: boom\n", "it crashed before a test ran: fatal error: …"},
		{"go test ./...", 2, "--- FAIL: A\npanic: boom\n", ""},
		{"./x", 2, "panic: boom\n", ""},
		{"node --test", 1, "not ok 1 - a.test.js\n# RangeError: x\n", "a test file failed to run: RangeError: x"},
		{"node --test", 1, "not ok 1 - adds\nnot ok 2 - a.test.js\n# TypeError: x\n", ""},
		{"node --test", 1, "✖ failing tests:\n✖ a.test.mjs (3.5ms)\nRangeError: y\n", "a test file failed to run: RangeError: y"},
	} {
		if got := broken(tt.command, tt.exit, tt.output); got != tt.want {
			t.Errorf("%s, %d, %.60q: %q, want %q", tt.command, tt.exit, tt.output, got, tt.want)
		}
	}
}

// A shell stops at the first failure from the option on that says so.
func TestStopsAtFailure(t *testing.T) {
	t.Parallel()
	for front, want := range map[string]bool{
		"": false, "set -e": true, "set -eu": true, "set -u": false, "set -u -e": true, "set -o pipefail -e": true, "set +e": false, "set -e; set +e": false, "set +e; set -e": false, "set -e; set +u": true, "set": false,
		"echo -e": false, "x; set -e": true, "set -x; set -e; cd a": true, "(set -e)": false,
	} {
		if got := stopsAtFailure(parse(front).Stmts); got != want {
			t.Errorf("%q: %t", front, got)
		}
	}
}

// As many tests as were added count as renamed, unless they assert less.
func TestLostTests(t *testing.T) {
	t.Parallel()
	diff := func(lines ...string) centurion.FileDiff {
		return centurion.FileDiff{FileChange: centurion.FileChange{Path: "a_test.go"}, Hunks: []centurion.Hunk{{Text: strings.Join(lines, "\n") + "\n"}}}
	}
	a, b, c := "func TestA(t *testing.T) {", "func TestB(t *testing.T) {", "func TestC(t *testing.T) {"
	for _, tt := range []struct {
		f     centurion.FileDiff
		moved string
		want  string
	}{
		{diff("-"+b, "-"+a), "", "TestA TestB"}, {diff("-"+a, "+"+a), "", "TestA"}, {diff("-"+a, "+"+b), "", ""}, {diff("-"+a, "-"+b, "+"+c), "", "TestB"}, {diff("-"+a, "-"+b), "TestA", "TestB"},
		{diff("-"+a, "-\tt.Fatal()", "+"+b), "", "TestA"}, {diff("-"+a, "-\tt.Fatal()", "+"+b, "+\tt.Error()"), "", ""}, {diff("+" + a), "", ""}, {diff("-"+a, "-"+a), "", "TestA"}, {diff(" " + a), "", ""},
	} {
		if got := strings.Join(lostTests(tt.f, map[string]bool{tt.moved: true}), " "); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.f.Hunks[0].Text, got, tt.want)
		}
	}
}

func TestPythonStrings(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`"a" b`: `"a"`, `'a"' b`: `'a"'`, `"a\"b" c`: `"a\"b"`, "'a\nb": `'a`, `"""a"b""c""" d`: `"""a"b""c"""`, `'''a\'''b''' c`: `'''a\'''b'''`, `"""a`: `"""a`, `"a`: `"a`, `"" b`: `""`, `"a\`: `"a\`, "'''a\n'''b": "'''a\n'''",
	} {
		if end := pythonString([]byte("x"+src), 1); end > len(src)+1 && src != `"a\` || ("x" + src)[1:min(end, len(src)+1)] != want {
			t.Errorf("%q ends at %d, want %q", src, end, want)
		}
	}
	if !slices.Equal(testsIn(centurion.FileDiff{FileChange: centurion.FileChange{Path: "a.py"}, Hunks: []centurion.Hunk{{Text: "+def test_a():\n-def test_b():\n+x\n"}}}, '+'), []string{"test_a"}) {
		t.Error("other tests than the added one")
	}
}
