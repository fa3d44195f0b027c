package verify

import (
	"maps"
	"strings"
	"testing"

	"centurion"
)

// Each case is a project before and after the work, a command, and what its proof must be worth. The commands run for real.

func TestProveReal(t *testing.T) {
	t.Parallel()
	goMod := "module x\n\ngo 1.21\n"
	limitGo := "package x\n\nimport \"strings\"\n\nfunc Allow(n int) bool {\n\treturn n < len(strings.Repeat(\"x\", 3))\n}\n"
	limitTest := "package x\n\nimport \"testing\"\n\nfunc TestAllow(t *testing.T) {\n\tif !Allow(2) || Allow(3) {\n\t\tt.Error(\"wrong\")\n\t}\n}\n"
	limitPy := "def allow(n):\n    \"\"\"Says whether.\"\"\"\n    return n < 3\n"
	limitJS := "export function allow(n) {\n  return n < 3;\n}\n"
	const jsHead = "import test from 'node:test';\nimport assert from 'node:assert';\nimport { allow } from './limit.mjs';\n"
	const pyHead = "import unittest\nimport limit\nclass T(unittest.TestCase):\n    def test_allow(self):\n        "
	shop := files{"package.json": "{}\n"}
	cart := "export const add = (a, b) => a + b;\n\nexport const load = async x => {\n  return [x];\n};\n\nexport class Cart {\n  sum = 0;\n  handle = (n) => {\n    this.sum += n;\n    return this.sum;\n  };\n}\n\nexport default () => add(1, 1);\n"
	const cartHead = "import test from 'node:test';\nimport assert from 'node:assert';\nimport { add, load, Cart } from './cart.mjs';\n"
	cartTest := cartHead + "test('add', () => assert.equal(add(1, 2), 3));\ntest('handle', () => assert.equal(new Cart().handle(2), 2));\n"
	ugly := strings.Replace(limitGo, "\treturn", "    return", 1)
	const clean = `test -z "$(gofmt -l .)" && `
	cases := []struct {
		name, program string
		before, add   files
		command       string
		proof         centurion.Proof
		why           string // a part of it
		runs          int
		died          string
	}{
		{"a new function with its test", "go", files{"go.mod": goMod, "doc.go": "package x\n"}, files{"limit.go": limitGo, "limit_test.go": limitTest}, "go test ./...",
			centurion.ProofProven, "", 4, "--- FAIL: TestAllow"},
		{"a test that asserts nothing", "go", files{"go.mod": goMod, "doc.go": "package x\n"}, files{"limit.go": limitGo,
			"limit_test.go": "package x\n\nimport \"testing\"\n\nfunc TestAllow(t *testing.T) { Allow(2) }\n"}, "go test ./...",
			centurion.ProofUnproven, "it stays green when this function does nothing: Allow (limit.go)", 3, ""},
		{"a changed function", "go", files{"go.mod": goMod, "limit.go": strings.Replace(limitGo, "3", "4", 1)}, files{"limit.go": limitGo, "limit_test.go": limitTest}, "go test ./...",
			centurion.ProofProven, "", 3, "--- FAIL: TestAllow"},
		{"true", "go", files{"go.mod": goMod}, files{"limit.go": limitGo}, "true", centurion.ProofUnproven, "the check is green without the work too", 2, ""},
		{"an empty suite", "go", files{"go.mod": goMod, "doc.go": "package x\n"}, files{"limit.go": limitGo}, "go test ./...", centurion.ProofUnproven, "it ran no test: ?", 2, ""},
		{"a filter that matches nothing", "go", files{"go.mod": goMod, "doc.go": "package x\n"}, files{"limit.go": limitGo, "limit_test.go": limitTest}, "go test ./... -run Nothing",
			centurion.ProofUnproven, "it ran no test", 3, ""},
		{"a red that is only a broken build", "go", files{"go.mod": goMod, "doc.go": "package x\n"}, files{"limit.go": "package x\n\nvar Max = 3\n",
			"limit_test.go": "package x\n\nimport \"testing\"\n\nfunc TestMax(t *testing.T) { _ = Max }\n"}, "go test ./...", centurion.ProofUnproven, "without the work the build breaks, which proves nothing", 2, ""},
		{"an old test dies and the new one asserts nothing", "go", files{"go.mod": goMod, "limit.go": limitGo, "limit_test.go": limitTest},
			files{"limit.go": strings.Replace(limitGo, "\treturn", "\tUsed()\n\treturn", 1) + "\nfunc Used() int { return 1 }\n",
				"used_test.go": "package x\n\nimport \"testing\"\n\nfunc TestUsed(t *testing.T) { Used() }\n"}, "go test ./...",
			centurion.ProofUnproven, "it stays green when this function does nothing: Used (limit.go); this function does what it did before the work: Allow (limit.go)", 3, ""},
		{"only tests", "go", files{"go.mod": goMod, "limit.go": limitGo}, files{"limit_test.go": limitTest}, "go test ./...", centurion.ProofUnproven, "only tests were changed", 1, ""},
		{"nothing", "go", files{"go.mod": goMod, "limit.go": limitGo, "limit_test.go": limitTest}, nil, "go test ./...", centurion.ProofUnproven, "nothing was changed", 1, ""},
		{"a deleted test", "go", files{"go.mod": goMod, "limit.go": strings.Replace(limitGo, "3", "4", 1), "old_test.go": strings.Replace(limitTest, "TestAllow", "TestOld", 1)},
			files{"limit.go": limitGo, "limit_test.go": limitTest, "old_test.go": ""}, "go test ./...", centurion.ProofUnproven, "old_test.go was removed", 3, "--- FAIL: TestAllow"},
		{"a change that the test does not call", "go", files{"go.mod": goMod, "limit.go": limitGo + "\nfunc Used() int {\n\treturn 1\n}\n"},
			files{"limit.go": limitGo + "\nfunc Used() int {\n\tMore()\n\treturn 2\n}\n\nfunc More() {}\n", "more_test.go": "package x\n\nimport \"testing\"\n\nfunc TestMore(t *testing.T) { More() }\n"}, "go test ./...",
			centurion.ProofUnproven, "it stays green when this function does nothing: More (limit.go); this function does what it did before the work: Used (limit.go)", 3, ""},
		{"Python", "python3", files{"README": "x\n"}, files{"limit.py": limitPy, "test_limit.py": pyHead + "self.assertTrue(limit.allow(2))\n"}, "python3 -m unittest -q test_limit",
			centurion.ProofProven, "", 4, "AssertionError"},
		{"Python that asserts nothing", "python3", files{"limit.py": "import os\n"}, files{"limit.py": "import os\n" + limitPy, "test_limit.py": pyHead + "limit.allow(2)\n"}, "python3 -m unittest -q test_limit",
			centurion.ProofUnproven, "it stays green when this function does nothing: allow (limit.py)", 3, ""},
		{"JavaScript", "node", files{"README": "x\n"}, files{"limit.mjs": limitJS, "limit.test.mjs": jsHead + "test('allow', () => { assert.ok(allow(2)); });\n"}, "node --test limit.test.mjs",
			centurion.ProofProven, "", 4, ""},
		{"JavaScript that asserts nothing", "node", files{"README": "x\n"}, files{"limit.mjs": limitJS, "limit.test.mjs": jsHead + "test('allow', () => { allow(2); });\n"}, "node --test limit.test.mjs",
			centurion.ProofUnproven, "it stays green when this function does nothing: allow (limit.mjs)", 3, ""},
		{"an arrow function", "node", shop, files{"limit.mjs": "export const allow = n => n < 3;\n", "limit.test.mjs": jsHead + "test('allow', () => assert.ok(allow(2)));\n"}, "node --test limit.test.mjs",
			centurion.ProofProven, "", 4, ""},
		{"arrow functions", "node", shop, files{"cart.mjs": cart, "cart.test.mjs": cartTest}, "node --test cart.test.mjs", centurion.ProofProven, "", 4, ""},
		{"arrow functions and a test that asserts nothing", "node", shop, files{"cart.mjs": cart, "cart.test.mjs": cartHead + "test('cart', async () => { add(1, 2); await load(1); new Cart().handle(2); });\n"}, "node --test cart.test.mjs",
			centurion.ProofUnproven, "it stays green when these functions do nothing: add, load, Cart.handle and 1 more (cart.mjs)", 3, ""},
		{"a changed arrow function", "node", files{"cart.mjs": strings.Replace(cart, "a + b", "a - b", 1)}, files{"cart.mjs": cart, "cart.test.mjs": cartTest}, "node --test cart.test.mjs", centurion.ProofProven, "", 3, ""},
		{"an object of functions", "node", shop, files{"cart.cjs": "module.exports = { add(a, b) { return a + b }, sum: (...xs) => xs.reduce((a, b) => a + b, 0) }\n",
			"cart.test.cjs": "const test = require('node:test'), assert = require('node:assert')\nconst { sum } = require('./cart.cjs')\ntest('sum', () => assert.equal(sum(1, 2), 3))\n"}, "node --test cart.test.cjs", centurion.ProofProven, "", 4, ""},
		{"a test that falls before it asserts nothing", "node", shop, files{"cart.mjs": cart, "cart.test.mjs": cartHead + "const n = new Cart().handle(2).toFixed();\ntest('cart', () => { add(1, 2); });\n"}, "node --test cart.test.mjs",
			centurion.ProofUnproven, "without the work the build breaks", 3, ""},
		{"a text", "grep", files{"README.md": "# X\n"}, files{"README.md": "# X\n\nLimits.\n"}, "grep -q Limits README.md", centurion.ProofProven, "", 3, ""},
		{"a new text", "grep", files{"README.md": "# X\n"}, files{"LIMITS.md": "Limits.\n"}, "grep -q Limits LIMITS.md", centurion.ProofProven, "", 4, ""},
		{"a script and its check", "bash", files{"README.md": "# X\n"}, files{"add.sh": "echo $(($1 + $2))\n", "check.sh": "[ \"$(bash add.sh 1 2)\" = 3 ]\n"}, "bash check.sh", centurion.ProofProven, "", 4, "exit code 1"},
		{"a worthless test behind a format", "go", files{"go.mod": goMod, "limit.go": strings.Replace(ugly, "3", "4", 1)}, files{"limit.go": limitGo,
			"limit_test.go": "package x\n\nimport \"testing\"\n\nfunc TestAllow(t *testing.T) { Allow(2) }\n"}, clean + "go test ./...",
			centurion.ProofUnproven, "without the work only `test -z \"$(gofmt -l .)\"` fails, and `go test ./...` stays green: no test depends on the work", 2, ""},
		{"a worthless test in a pipe behind two looks", "go", files{"go.mod": goMod, "limit.go": strings.Replace(ugly, "3", "4", 1)}, files{"limit.go": limitGo,
			"limit_test.go": "package x\n\nimport \"testing\"\n\nfunc TestAllow(t *testing.T) { Allow(2) }\n"}, "cd . && " + clean + "grep -q 3 limit.go && go test -v . | grep -q -- '--- PASS: TestAllow'",
			centurion.ProofUnproven, "stays green: no test depends on the work", 2, ""},
		{"a worthless test of a new function behind a search", "go", files{"go.mod": goMod, "doc.go": "package x\n"}, files{"limit.go": limitGo,
			"limit_test.go": "package x\n\nimport \"testing\"\n\nfunc TestAllow(t *testing.T) { Allow(2) }\n"}, "grep -q Repeat limit.go && go test ./...",
			centurion.ProofUnproven, "`go test ./...` stays green when this function does nothing: Allow (limit.go); only `grep -q Repeat limit.go` fails", 3, ""},
		{"a worthless test on a line behind a format", "go", files{"go.mod": goMod, "limit.go": strings.Replace(ugly, "3", "4", 1)}, files{"limit.go": limitGo,
			"limit_test.go": "package x\n\nimport \"testing\"\n\nfunc TestAllow(t *testing.T) { Allow(2) }\n"}, "set -euo pipefail\ntest -z \"$(gofmt -l .)\"\ngo test ./...\n",
			centurion.ProofUnproven, "without the work only `test -z \"$(gofmt -l .)\"` fails, and `go test ./...` stays green: no test depends on the work", 2, ""},
		{"a test on a line behind a format", "go", files{"go.mod": goMod, "limit.go": strings.Replace(ugly, "3", "4", 1)}, files{"limit.go": limitGo, "limit_test.go": limitTest},
			"set -e\ntest -z \"$(gofmt -l .)\"\ngo test ./...\n", centurion.ProofProven, "", 3, "--- FAIL: TestAllow"},
		{"a test behind a format", "go", files{"go.mod": goMod, "limit.go": strings.Replace(ugly, "3", "4", 1)}, files{"limit.go": limitGo, "limit_test.go": limitTest}, clean + "go test ./...",
			centurion.ProofProven, "", 3, "--- FAIL: TestAllow"},
		{"a new test in a pipe behind a format", "go", files{"go.mod": goMod, "doc.go": "package  x\n"}, files{"doc.go": "package x\n", "limit.go": limitGo, "limit_test.go": limitTest},
			clean + "go test -v . | grep -q -- '--- PASS: TestAllow'", centurion.ProofProven, "", 4, "--- FAIL: TestAllow"},
		{"a format that leaves the shell", "go", files{"go.mod": goMod, "limit.go": strings.Replace(ugly, "3", "4", 1)}, files{"limit.go": limitGo,
			"limit_test.go": "package x\n\nimport \"testing\"\n\nfunc TestAllow(t *testing.T) { Allow(2) }\n"}, "{ " + clean + "true || exit 1; } && go test ./...",
			centurion.ProofUnproven, "it stays green when this function does nothing: Allow (limit.go)", 3, ""},
		{"the shell's state stays", "python3", files{"a/limit.py": "def allow(n):\n    return  n < 4\n"}, files{"a/limit.py": limitPy,
			"a/test_limit.py": strings.Replace(pyHead, "import unittest\n", "import os, unittest\n", 1) + "self.assertEqual(os.environ['LIMIT'], '3')\n"}, "export LIMIT=3; cd a && N=3 && grep -q \"n < $N\" limit.py && python3 -m unittest -q test_limit",
			centurion.ProofUnproven, "without the work only `grep -q \"n < $N\" limit.py` fails, and `python3 -m unittest -q test_limit` stays green", 2, ""},
		{"Python behind a search", "python3", files{"limit.py": "def allow(n):\n    return  n < 4\n"}, files{"limit.py": limitPy, "test_limit.py": pyHead + "self.assertFalse(limit.allow(3))\n"},
			"grep -q Says limit.py && python3 -m unittest -q test_limit", centurion.ProofProven, "", 3, "AssertionError"},
		{"a text beside tests", "go", files{"go.mod": goMod, "limit.go": limitGo, "limit_test.go": limitTest}, files{"README.md": "# Limits\n"}, "go test ./... && grep -q Limits README.md",
			centurion.ProofProven, "", 4, "exit code 1 of `grep -q Limits README.md`"},
		{"a program behind a search", "bash", files{"tax.sh": "echo 1\n"}, files{"tax.sh": "# It doubles.\necho $(($1 * 2))\n"}, "grep -q doubles tax.sh && test \"$(sh tax.sh 2)\" = 4", centurion.ProofProven, "", 3,
			"exit code 1 of `test \"$(sh tax.sh 2)\" = 4`"},
		{"a program whose output is judged", "bash", files{"app.sh": "echo hi\n", "README.md": "# X\n"}, files{"app.sh": "echo Hello\n", "README.md": "# Says Hello\n"}, "bash app.sh | grep -x Hello",
			centurion.ProofProven, "", 3, "hi"},
		{"a new program whose output is judged", "bash", files{"README.md": "# X\n"}, files{"app.sh": "echo Hello\n"}, "bash app.sh | grep -x Hello", centurion.ProofProven, "", 4, "exit code 1"},
		{"a script that checks, and its output", "bash", files{"check.sh": "exit 1\n", "a.txt": "a\n"}, files{"check.sh": "echo OK\n", "a.txt": "b\n"}, "bash check.sh | grep OK",
			centurion.ProofUnproven, "check.sh was changed, which the check runs", 2, ""},
		{"a chain without tests", "grep", files{"a.c": "old\n"}, files{"a.c": "new\n"}, "test -f a.c && grep -q new a.c", centurion.ProofProven, "", 3, "exit code 1"},
		{"a check that changes files", "bash", files{"a.txt": "a\n"}, files{"b.txt": "b\n"}, "echo x >> a.txt", "", "", 2, ""},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			need(t, test.program)
			after := maps.Clone(test.before)
			maps.Copy(after, test.add)
			maps.DeleteFunc(after, func(_, text string) bool { return text == "" })
			m := newMemory(map[string]files{"before": test.before, "after": after})
			if len(test.add) == 0 {
				m.trees = map[string]files{"before": test.before}
				m.trees["after"] = m.trees["before"]
			}
			m.dir = t.TempDir()
			c := Checker{Runner: host{[]string{"GOFLAGS=-vet=off", "GOWORK=off", "PYTHONDONTWRITEBYTECODE=1", "NO_COLOR=1"}}}
			told := 0
			r, err := c.Prove(t.Context(), m, Work{Command: test.command, Before: "before", After: "after"}, func(centurion.CheckRun) { told++ })
			if err != nil {
				t.Fatal(err)
			}
			if r.Proof != test.proof || !strings.Contains(r.Why, test.why) || len(r.Runs) != test.runs || told != test.runs || !strings.Contains(r.FailureLine, test.died) || r.Tree != "after" {
				t.Errorf("proof %q, why %q, died %q, %d runs (told %d), tree %s", r.Proof, r.Why, r.FailureLine, len(r.Runs), told, r.Tree)
				for _, run := range r.Runs {
					t.Logf("%s %s: exit %d, passed %v, error %q, broken %q, empty %q\n%s", run.Kind, run.Tree, run.ExitCode, run.Passed, run.Error, run.Broken, run.Empty, run.Output)
				}
				t.Logf("removed:\n%s", r.Removed)
			}
			if told := strings.HasPrefix(r.Removed, "Taken out so that "); test.proof == centurion.ProofProven && told != (test.runs == 4) { // what did nothing is named
				t.Errorf("removed:\n%s", r.Removed)
			}
			if r.Passed != (test.proof != "") || test.proof == centurion.ProofProven && (r.Removed == "" || r.FailureLine == "") {
				t.Errorf("passed %v, removed %q, died %q", r.Passed, r.Removed, r.FailureLine)
			}
		})
	}
}
