package verify

import (
	"strings"
	"testing"
)

// The outputs are what the programs print, shortened where they go on for long.
func TestBroken(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, command string
		exit          int
		output        string
		want          string // how the answer begins; empty: a check failed by itself
	}{
		{"go undefined", "go test ./...", 1, "# x [x.test]\n./a_test.go:5:28: undefined: Foo\nFAIL\tx [build failed]\nFAIL\n", "the build failed"},
		{"go build", "go build ./...", 1, "# x\n./a.go:3:12: undefined: Foo\n", "the build failed: ./a.go:3:12: undefined: Foo"},
		{"go vet types", "go vet ./...", 1, "# x\nvet: ./a.go:3:12: undefined: Foo\n", "the build failed"},
		{"go vet in test", "go test ./...", 1, "# x\n# [x]\n./a.go:5:24: fmt.Printf format %d has arg \"x\" of wrong type string\nFAIL\tx [build failed]\nFAIL\n", "the build failed"},
		{"go missing package", "go test ./...", 1, "# x\na.go:3:8: no required module provides package example.com/nope; to add it:\n\tgo get example.com/nope\nFAIL\tx [setup failed]\nFAIL\n", "the build failed"},
		{"go directory", "go test ./nope", 1, "# ./nope\nstat /w/nope: directory not found\nFAIL\t./nope [setup failed]\nFAIL\n", "the build failed"},
		{"go failed elsewhere", "go test ./...", 1, "# x [x.test]\n./a_test.go:5:28: undefined: Foo\nFAIL\tx [build failed]\n--- FAIL: TestB (0.00s)\nFAIL\tx/b\t0.003s\n", "the build failed"},
		{"go fails", "go test ./...", 1, "--- FAIL: TestA (0.00s)\n    a_test.go:5: bad\nFAIL\nFAIL\tx\t0.008s\nFAIL\n", ""},
		{"go nil in a test", "go test ./...", 1, "--- FAIL: TestA (0.00s)\npanic: runtime error: invalid memory address or nil pointer dereference [recovered, repanicked]\n\ngoroutine 18 [running]:\nFAIL\tx\t0.008s\nFAIL\n", ""},
		{"go panic before", "go test ./...", 1, "panic: x\n\ngoroutine 1 [running]:\nx.init.0()\n\t/w/a.go:3 +0x25\nFAIL\tx\t0.005s\nFAIL\n", "it crashed before a test ran"},
		{"go timeout", "go test ./...", 1, "panic: test timed out after 1s\n\trunning tests:\n\t\tTestA (1s)\n\ngoroutine 33 [running]:\nFAIL\tx\t1.010s\n", "it timed out"},
		{"rust", "cargo test", 101, "error[E0425]: cannot find function `foo` in this scope\n --> a.rs:1:12\n\nerror: could not compile `x` (bin \"x\" test) due to 1 previous error\n", "it did not compile"},
		{"rust fails", "cargo test", 101, "running 1 test\ntest tests::a ... FAILED\n\nthread 'tests::a' panicked at src/lib.rs:9:9:\nassertion `left == right` failed\n\ntest result: FAILED. 0 passed; 1 failed;\n", ""},
		{"typescript", "npx tsc && node t.js", 2, "a.ts(3,5): error TS2304: Cannot find name 'foo'.\n", "it did not compile"},
		{"node module", "node t.mjs", 1, "node:internal/modules/esm/resolve:283\n    throw new ERR_MODULE_NOT_FOUND(\n          ^\n\nError [ERR_MODULE_NOT_FOUND]: Cannot find module '/w/nope.mjs' imported from /w/t.mjs\n", "a module is missing"},
		{"node require", "node t.cjs", 1, "Error: Cannot find module './gone'\nRequire stack:\n- /w/t.cjs\n", "a module is missing"},
		{"node export", "node t.mjs", 1, "import {a} from './nope.mjs'; a()\n        ^\nSyntaxError: The requested module './nope.mjs' does not provide an export named 'a'\n", "a module does not export what is imported from it"},
		{"node syntax", "node s.cjs", 1, "let x = ;\n        ^\n\nSyntaxError: Unexpected token ';'\n", "a syntax error"},
		{"node no function", "node f.cjs", 1, "TypeError: a.b is not a function\n    at Object.<anonymous> (/w/f.cjs:1:15)\n", "what it calls is not there"},
		{"node test no function", "node --test", 1, "TAP version 13\n# Subtest: q\nnot ok 1 - q\n  ---\n  error: 'a.b is not a function'\n  code: 'ERR_TEST_FAILURE'\n  name: 'TypeError'\n1..1\n# tests 1\n# fail 1\n", "what it calls is not there"},
		{"node test fails", "node --test", 1, "TAP version 13\n# Subtest: q\nnot ok 1 - q\n  ---\n  error: '1 == 2'\n  code: 'ERR_ASSERTION'\n  name: 'AssertionError'\n1..1\n# tests 1\n# fail 1\n", ""},
		{"node test no file", "node --test x.test.js", 1, "Could not find '/w/x.test.js'\n", "a program or a script is missing"},
		{"node test file", "node --test", 1, "TAP version 13\n# Subtest: b\nok 1 - b\n# TypeError: Cannot read properties of undefined (reading 'c')\n#     at ModuleJob.run (node:internal/modules/esm/module_job:325:25)\n# Subtest: /w/a.test.mjs\nnot ok 2 - /w/a.test.mjs\n  ---\n  exitCode: 1\n1..2\n# fail 1\n", "a test file failed to run: TypeError: Cannot read"},
		{"node test file, as a person sees it", "node --test", 1, "TypeError: Cannot read properties of undefined (reading 'c')\n\n✖ /w/a.test.mjs (88.7184ms)\n  'test failed'\n\n✖ failing tests:\n\n✖ /w/a.test.mjs (88.7184ms)\n  'test failed'\n", "a test file failed to run: TypeError: Cannot read"},
		{"node test in a file that fails, too", "node --test", 1, "# Subtest: /w/a.test.mjs\n    not ok 1 - b\n      error: \"Cannot read properties of undefined (reading 'c')\"\nnot ok 1 - /w/a.test.mjs\n# TypeError: x\n", ""},
		{"node test file with assertions", "node --test", 1, "# AssertionError [ERR_ASSERTION]: 1 == 2\n# TypeError: x\nnot ok 1 - /w/a.test.mjs\n", ""},
		{"node test syntax", "node --test", 1, "# SyntaxError: Unexpected token ';'\nnot ok 1 - /w/a.test.mjs\n", "a syntax error"},
		{"mocha load", "npx mocha", 1, "\n Exception during run: TypeError: Cannot read properties of undefined (reading 'name')\n    at Object.<anonymous> (/w/a.test.cjs:1:36)\n", "a test suite failed to run"},
		{"tsx syntax", "npx tsx --test a.test.ts", 1, "Error: Transform failed with 1 error:\n/w/a.ts:1:9: ERROR: Unexpected \";\"\n", "it did not compile"},
		{"jest suite", "npx jest", 1, "FAIL ./a.test.js\n  ● Test suite failed to run\n\n    Cannot find module './a' from 'a.test.js'\n", "a test suite failed to run"},
		{"jest no function", "npx jest", 1, "  ● allow\n\n    TypeError: allow is not a function\n\n    > 4 |   expect(allow(2)).toBe(true)\n", "what it calls is not there"},
		{"jest fails", "npx jest", 1, "  ● allow\n\n    expect(received).toBe(expected) // Object.is equality\n\n    Expected: true\n    Received: undefined\n", ""},
		{"pytest collect", "pytest", 2, "collected 0 items / 1 error\n\n==== ERRORS ====\n___ ERROR collecting test_a.py ___\nImportError while importing test module '/w/test_a.py'.\nE   ModuleNotFoundError: No module named 'limit'\n!!! Interrupted: 1 error during collection !!!\n", "the tests could not be collected"},
		{"pytest attribute", "pytest", 1, ">       limit.allow(2)\nE       AttributeError: module 'limit' has no attribute 'allow'\n\ntest_a.py:4: AttributeError\nFAILED test_a.py::test_a - AttributeError: module 'limit' has no attribute 'allow'\n", "what it calls is not there"},
		{"pytest fails", "pytest", 1, ">       assert limit.allow(2)\nE       assert None\n\ntest_a.py:4: AssertionError\nFAILED test_a.py::test_a - assert None\n", ""},
		{"pytest none", "pytest", 1, ">       limit.make().allow\nE       AttributeError: 'NoneType' object has no attribute 'allow'\n", ""},
		{"python no pytest", "python3 -m pytest", 1, "/usr/bin/python3: No module named pytest\n", "a module is missing"},
		{"python no file", "python3 nope.py", 2, "python3: can't open file '/w/nope.py': [Errno 2] No such file or directory\n", "a program or a script is missing"},
		{"python import", "python3 t.py", 1, "Traceback (most recent call last):\n  File \"/w/t.py\", line 1, in <module>\n    import nope\nModuleNotFoundError: No module named 'nope'\n", "a module is missing"},
		{"python syntax", "python3 s.py", 1, "  File \"/w/s.py\", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax\n", "a syntax error"},
		{"python assert", "python3 b.py", 1, "Traceback (most recent call last):\n  File \"/w/b.py\", line 1, in <module>\n    assert 1==2, \"no\"\n           ^^^^\nAssertionError: no\n", ""},
		{"unittest import", "python3 -m unittest", 1, "ERROR: test_limit (unittest.loader._FailedTest.test_limit)\nImportError: Failed to import test module: test_limit\n", "the tests could not be collected"},
		{"c link", "gcc a.c && ./a.out", 1, "/usr/bin/ld: /tmp/cc48bB2x.o: in function `main':\na.c:(.text+0x5): undefined reference to `foo'\ncollect2: error: ld returned 1 exit status\n", "it did not compile"},
		{"c header", "make", 2, "b.c:1:10: fatal error: nope.h: No such file or directory\ncompilation terminated.\nmake: *** [Makefile:2: all] Error 1\n", "it did not compile"},
		{"c assert", "./e", 134, "e: e.c:2: main: Assertion `1==2' failed.\nbash:  5290 Aborted                 ./e\n", ""},
		{"c crash", "./e", 139, "bash:  5290 Segmentation fault                 ./e\n", "it crashed or was killed"},
		{"make target", "make nope", 2, "make: *** No rule to make target 'nope'.  Stop.\n", "there is nothing to make it from"},
		{"make fails", "make test", 2, "FAIL: limit\nmake: *** [Makefile:2: test] Error 1\n", ""},
		{"bash script", "bash nope.sh", 127, "bash: nope.sh: No such file or directory\n", "a program is missing: bash: nope.sh"},
		{"bash inner", "sh -c 'bash nope.sh || exit 1'", 1, "bash: nope.sh: No such file or directory\n", "a program or a script is missing"},
		{"bash denied", "./f", 126, "bash: ./f: Permission denied\n", "a program could not be started"},
		{"grep file", "grep -q x nope", 2, "grep: nope: No such file or directory\n", "a file is missing"},
		{"grep", "grep -q x f", 1, "", ""},
		{"javac", "javac A.java", 1, "A.java:1: error: cannot find symbol\nclass A { int x() { return foo(); } }\n", "it did not compile"},
		{"maven", "mvn test", 1, "[INFO] -----\n[ERROR] COMPILATION ERROR : \n[ERROR] /w/A.java:[3,5] cannot find symbol\n", "it did not compile"},
		{"maven fails", "mvn test", 1, "[ERROR] Tests run: 1, Failures: 1, Errors: 0\n[ERROR] ATest.allow:9 expected: <true> but was: <false>\n", ""},
		{"gradle", "./gradlew test", 1, "> Task :compileTestJava FAILED\n/w/ATest.java:5: error: cannot find symbol\n* What went wrong:\nExecution failed for task ':compileTestJava'.\n", "it did not compile"},
		{"dotnet", "dotnet test", 1, "/w/A.cs(3,5): error CS0103: The name 'Foo' does not exist in the current context [/w/A.csproj]\n", "it did not compile"},
		{"ruby", "rspec", 1, "NoMethodError:\n  undefined method `allow' for Limit:Module\n", "what it calls is not there"},
		{"php", "vendor/bin/phpunit", 2, "Error: Call to undefined function allow()\n", "what it calls is not there"},
		{"php fails", "vendor/bin/phpunit", 1, "1) T::testAllow\nFailed asserting that false is true.\n", ""},
		{"elixir", "mix test", 1, "== Compilation error in file lib/a.ex ==\n** (CompileError) lib/a.ex:3: undefined function foo/0\n", "it did not compile"},
		{"green", "true", 0, "FAIL [build failed]", ""},
	}
	for _, test := range tests {
		got := broken(test.command, test.exit, test.output)
		if test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]bool{
		"ok  \tx\t0.004s [no tests to run]\n":                                                      true,
		"testing: warning: no tests to run\nPASS\nok  \tx\t0.009s [no tests to run]\n":             true,
		"?   \tx\t[no test files]\n":                                                               true,
		"?   \tx\t[no test files]\nok  \tx/a\t0.003s\n":                                            false,
		"?   \tx\t[no test files]\nok  \tx/a\t(cached)\n":                                          false,
		"ok  \tx\t0.004s [no tests to run]\nok  \tx/a\t0.003s [no tests to run]\n":                 true,
		"ok  \tx\t0.003s\tcoverage: 80.0% of statements\n":                                         false,
		"collected 0 items\n\n==== no tests ran in 0.01s ====\n":                                   true,
		"collected 2 items\n\n==== 2 passed in 0.01s ====\n":                                       false,
		"----\nRan 0 tests in 0.000s\n\nOK\n":                                                      true,
		"----\nRan 1 test in 0.000s\n\nOK\n":                                                       false,
		"No tests found, exiting with code 1\n":                                                    true,
		"TAP version 13\n1..0\n# tests 0\n# suites 0\n# pass 0\n":                                  true,
		"TAP version 13\n# Subtest: /w/e.test.cjs\nok 1 - /w/e.test.cjs\n  ---\n1..1\n# tests 1\n": true,
		"TAP version 13\n# Subtest: q\nok 1 - q\n  ---\n1..1\n# tests 1\n":                         false,
		"  0 passing (1ms)\n":                                                                      true,
		"running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored\n":                      true,
		"running 2 tests\ntest a ... ok\n\ntest result: ok. 2 passed; 0 failed\n\n   Doc-tests x\n\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed\n": false,
		"": false, "done\n": false,
	} {
		if got := empty(output); (got != "") != want {
			t.Errorf("%q: got %q", output, got)
		}
	}
}

func TestTelling(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"=== RUN\n    --- FAIL: TestA/b (0.00s)\n    a_test.go:5: bad\nFAIL\n":      "--- FAIL: TestA/b (0.00s)",
		"E       assert None\n\nFAILED t.py::test_a - assert None\n":                "FAILED t.py::test_a - assert None",
		"Traceback\n    x\nAssertionError: None is not true\n\nFAILED (failures=1)": "AssertionError: None is not true",
		"TAP version 13\n# Subtest: adds\nnot ok 1 - adds\n  ---\n  failureType: 'testCodeFailure'\n  error: |-\n    Expected values to be strictly equal:\n    \n    undefined !== 2\n    \n  code: 'ERR_ASSERTION'\n  name: 'AssertionError'\n  ...\n": "Expected values to be strictly equal: undefined !== 2",
		"not ok 1 - s\n  ---\n  error: '1 subtest failed'\n  code: 'ERR_TEST_FAILURE'\n  ...\nnot ok 2 - ok\n  ---\n  error: 'want f'\n  code: 'ERR_ASSERTION'\n  name: 'AssertionError'\n  ...\n":                                                       "want f",
		"✖ adds (1.3ms)\n  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n  \n  undefined !== 2\n  \n      at TestContext.<anonymous> (file:///w/a.test.mjs:3:29)\n    code: 'ERR_ASSERTION',\n":                                 "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal: undefined !== 2",
		"not ok 1 - f\n  ---\n  error: 'f is not a function'\n  code: 'ERR_TEST_FAILURE'\n  name: 'TypeError'\n":                                                                                                                                         "not ok 1 - f",
		"error: it is late\n# AssertionError [ERR_ASSERTION]: want f\n#     at f (file:///w/a.test.mjs:3:29)\nnot ok 1 - /w/a.test.mjs\n":                                                                                                                "AssertionError [ERR_ASSERTION]: want f",
		// The output may be cut off.
		"AssertionError [ERR_ASSERTION]: want\n\n1 !== 2\n":   "AssertionError [ERR_ASSERTION]: want 1 !== 2",
		"not ok 1 - f\n  ---\n  error: |-\n    want\n    1\n": "not ok 1 - f",
		"one\ntwo\n": "two",
		"":           "",
	} {
		if got := telling(output); got != want {
			t.Errorf("%q: got %q, want %q", output, got, want)
		}
	}
}

func FuzzBroken(f *testing.F) {
	f.Add(1, "x [build failed]")
	f.Add(2, "# x\n./a.go:1:1: bad")
	f.Fuzz(func(t *testing.T, exit int, output string) {
		for _, line := range []string{broken("go test", exit, output), empty(output), telling(output)} {
			if strings.Contains(line, "\n") {
				t.Errorf("%q has a line break", line)
			}
		}
	})
}
