package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"centurion"
)

// scripted answers each run by the files that it sees, and by how many runs there were of the same tree.
func scripted(m *memory, answer func(t files, nth int) (exit int, output string)) runner {
	seen := map[string]int{}
	return func(context.Context, centurion.Command) (centurion.CommandResult, error) {
		seen[m.laid]++
		exit, output := answer(m.trees[m.laid], seen[m.laid])
		return centurion.CommandResult{ExitCode: exit, Output: output}, nil
	}
}

const failing = "--- FAIL: TestA (0.00s)\n"

func TestProve(t *testing.T) {
	t.Parallel()
	before := files{"a.go": "package a\n\nfunc A() int { return 1 }\n"}
	after := files{"a.go": "package a\n\nfunc A() int { return 2 }\n", "a_test.go": "package a\n\nfunc TestA(t *testing.T) {}\n", "go.mod": "module a\n"}
	honest := func(t files, _ int) (int, string) {
		if strings.Contains(t["a.go"], "2") {
			return 0, "ok"
		}
		return 1, failing
	}
	kinds := func(s string) []centurion.RunKind {
		names := map[rune]centurion.RunKind{'r': centurion.RunRed, 'g': centurion.RunGreen, 'a': centurion.RunRedAgain}
		var out []centurion.RunKind
		for _, c := range s {
			out = append(out, names[c])
		}
		return out
	}
	tests := []struct {
		name   string
		answer func(files, int) (int, string)
		work   Work
		runs   string
		proof  centurion.Proof
		why    string
		passed bool
	}{
		{"proven", honest, Work{}, "rga", centurion.ProofProven, "", true},
		{"it fails", func(files, int) (int, string) { return 1, failing }, Work{}, "rgg", "", "", false},
		{"green the second time", func(t files, nth int) (int, string) {
			if strings.Contains(t["a.go"], "2") && nth == 1 {
				return 1, failing
			}
			return honest(t, nth)
		}, Work{}, "rgga", centurion.ProofFlaky, "it was red and then green on the same tree", true},
		{"red only the first time", func(t files, nth int) (int, string) {
			if nth > 1 {
				return 0, "ok"
			}
			return honest(t, nth)
		}, Work{}, "rga", centurion.ProofFlaky, "without the work it was red, and green when it was run again", true},
		{"a red that is empty", func(t files, nth int) (int, string) {
			if exit, out := honest(t, nth); exit == 0 {
				return exit, out
			}
			return 5, "collected 0 items\n"
		}, Work{}, "rrg", centurion.ProofUnproven, "without the work it runs no test: collected 0 items", true},
		{"regression", func(files, int) (int, string) { return 0, "ok" }, Work{Regression: true}, "rg", centurion.ProofRegression, "", true},
		{"regression that can only pass", func(files, int) (int, string) { return 0, "ok" }, Work{Regression: true, Command: "go test ./... || true"}, "rg", centurion.ProofUnproven, "it can only pass, whatever is done", true},
		{"regression that was red", honest, Work{Regression: true}, "rg", centurion.ProofUnproven, "it was red before the work, so that it is no regression check", true},
		{"regression without a test", func(files, int) (int, string) { return 0, "[no test files]" }, Work{Regression: true}, "rg", centurion.ProofUnproven, "it ran no test: [no test files]", true},
	}
	for _, test := range tests {
		m := newMemory(map[string]files{"before": before, "after": after})
		c := Checker{Runner: scripted(m, test.answer)}
		test.work.Command, test.work.Before, test.work.After = cmp.Or(test.work.Command, "go test"), "before", "after"
		r, err := c.Prove(t.Context(), m, test.work, nil)
		var got []centurion.RunKind
		for _, run := range r.Runs {
			got = append(got, run.Kind)
		}
		if err != nil || r.Proof != test.proof || r.Why != test.why || r.Passed != test.passed || !slices.Equal(got, kinds(test.runs)) {
			t.Errorf("%s: %v, proof %q, why %q, passed %v, runs %v", test.name, err, r.Proof, r.Why, r.Passed, got)
		}
		if test.proof == centurion.ProofProven {
			if r.FailureLine != "--- FAIL: TestA (0.00s)" || !strings.Contains(r.Removed, "+func A() int { return 2 }") || strings.Contains(r.Removed, "TestA") || strings.Contains(r.Removed, "module") {
				t.Errorf("%s: died %q, removed %s", test.name, r.FailureLine, r.Removed)
			}
			red := m.trees[r.Runs[0].Tree]
			if want := (files{"a.go": before["a.go"], "a_test.go": after["a_test.go"], "go.mod": after["go.mod"]}); !maps.Equal(red, want) {
				t.Errorf("%s: red on %v", test.name, red)
			}
			if r.Digest != r.Runs[1].Digest || r.Digest != digest("ok") || r.Output != "ok" || r.Tree != "after" {
				t.Errorf("%s: %+v", test.name, r)
			}
		}
	}
}

// A single hunk is taken out where all of them break the build.
func TestProvePieces(t *testing.T) {
	t.Parallel()
	var old, changed strings.Builder
	for i := range 40 {
		fmt.Fprintf(&old, "%d\n", i)
		if i == 3 || i == 30 {
			fmt.Fprintf(&changed, "new %d\n", i)
		}
		fmt.Fprintf(&changed, "%d\n", i)
	}
	m := newMemory(map[string]files{"before": {"a.hs": old.String()}, "after": {"a.hs": changed.String()}})
	c := Checker{Runner: scripted(m, func(t files, _ int) (int, string) {
		switch first, second := strings.Contains(t["a.hs"], "new 3\n"), strings.Contains(t["a.hs"], "new 30\n"); {
		case first && second:
			return 0, "ok"
		case first:
			return 1, "a.hs:3:4: error: not in scope\n"
		case second:
			return 1, "AssertionError"
		}
		return 1, "a.hs:3:4: error: not in scope\n"
	})}
	r, err := c.Prove(t.Context(), m, Work{Command: "make test", Before: "before", After: "after"}, nil)
	if err != nil || r.Proof != centurion.ProofProven || len(r.Runs) != 5 || !strings.Contains(r.Removed, "+new 3\n") || strings.Contains(r.Removed, "new 30") {
		t.Errorf("%v, %+v", err, r)
	}
}

// A piece whose tree was tried before, with the bodies taken back, does not end the search.
func TestProvePiecesAfterBodies(t *testing.T) {
	t.Parallel()
	const old, changed, more = "package a\n\nfunc A() int {\n\treturn 0\n}\n", "package a\n\nfunc A() int {\n\tn := 1\n\tn += 2\n\tn += 3\n\treturn n\n}\n", "package a\n\nvar b = 1\n"
	m := newMemory(map[string]files{"before": {"a.go": old}, "after": {"a.go": changed, "b.go": more}})
	c := Checker{Runner: scripted(m, func(t files, _ int) (int, string) {
		switch _, ok := t["b.go"]; {
		case t["a.go"] != changed:
			return 1, "a.go:3:4: undefined: n\n"
		case !ok:
			return 1, "AssertionError"
		}
		return 0, "ok"
	})}
	r, err := c.Prove(t.Context(), m, Work{Command: "make test", Before: "before", After: "after"}, nil)
	if err != nil || r.Proof != centurion.ProofProven || !strings.Contains(r.Removed, "var b") {
		t.Errorf("%v, proof %q, why %q, removed %q, %d runs", err, r.Proof, r.Why, r.Removed, len(r.Runs))
	}
}

// Single pieces are taken out up to a limit, the biggest first: work of many pieces does not run its check for hours.
func TestProvePiecesAreLimited(t *testing.T) {
	t.Parallel()
	const places = 12
	var old, changed strings.Builder
	for i := range places * 10 {
		fmt.Fprintf(&old, "%d\n", i)
		if i%10 == 3 {
			changed.WriteString(strings.Repeat(fmt.Sprintf("new %d\n", i/10), 1+i/10)) // the last is the biggest
		}
		fmt.Fprintf(&changed, "%d\n", i)
	}
	m := newMemory(map[string]files{"before": {"a.hs": old.String()}, "after": {"a.hs": changed.String()}})
	var missing []string
	c := Checker{Runner: scripted(m, func(t files, _ int) (int, string) {
		var lacks []string
		for i := range places {
			if name := fmt.Sprintf("new %d\n", i); !strings.Contains(t["a.hs"], name) {
				lacks = append(lacks, fmt.Sprint(i))
			}
		}
		if len(lacks) == 0 {
			return 0, "ok"
		}
		missing = append(missing, strings.Join(lacks, ","))
		return 1, "a.hs:3:4: error: not in scope\n"
	})}
	r, err := c.Prove(t.Context(), m, Work{Command: "make test", Before: "before", After: "after"}, nil)
	if err != nil || r.Proof != centurion.ProofUnproven {
		t.Errorf("%v, proof %q, why %q", err, r.Proof, r.Why)
	}
	if want := []string{"0,1,2,3,4,5,6,7,8,9,10,11", "11", "10", "9", "8", "7", "6", "5", "4"}; !slices.Equal(missing, want) {
		t.Errorf("taken out: %q, want %q", missing, want)
	}
}

// Rust's tests stand in the file that they test, so they stay when the rest goes.
func TestProveInline(t *testing.T) {
	t.Parallel()
	const tests = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() { assert!(super::a()) }\n}\n"
	m := newMemory(map[string]files{"before": {"lib.rs": "fn a() -> bool { false }\n"}, "after": {"lib.rs": "fn a() -> bool { true }\n\n" + tests}})
	c := Checker{Runner: scripted(m, func(t files, _ int) (int, string) {
		if !strings.Contains(t["lib.rs"], "assert!") {
			return 0, "running 0 tests"
		} else if strings.Contains(t["lib.rs"], "true") {
			return 0, "running 1 test"
		}
		return 101, "running 1 test\nthread 'tests::a' panicked at lib.rs:6:9\n"
	})}
	r, err := c.Prove(t.Context(), m, Work{Command: "cargo test", Before: "before", After: "after"}, nil)
	if err != nil || r.Proof != centurion.ProofProven {
		t.Errorf("%v, %+v", err, r)
	}
	if got := m.trees[r.Runs[0].Tree]["lib.rs"]; got != "fn a() -> bool { false }\n\n"+strings.TrimSuffix(tests, "\n")+"\n" {
		t.Errorf("red on %s", got)
	}
}

func TestProveChangedFiles(t *testing.T) {
	t.Parallel()
	m := newMemory(map[string]files{"before": {"a.go": "1\n"}, "after": {"a.go": "2\n"}})
	m.changed = func(laid string) []string { return []string{"go.sum", "b"} }
	c := Checker{Runner: scripted(m, func(files, int) (int, string) { return 0, "ok" })}
	r, err := c.Prove(t.Context(), m, Work{Command: "x", Before: "before", After: "after"}, nil)
	if err != nil || r.Passed || r.Proof != "" || r.Error != "it changed tracked files: go.sum, b" || len(r.Runs) != 2 {
		t.Errorf("%v, %+v", err, r)
	}
	if r, err = c.RunOn(t.Context(), m, "after", "x"); err != nil || r.Passed || r.Error != "it changed tracked files: go.sum, b" || r.Tree != "after" {
		t.Errorf("%v, %+v", err, r)
	}
	m.changed = nil
	if r, err = c.RunOn(t.Context(), m, "after", "x"); err != nil || !r.Passed || r.Output != "ok" || r.Tree != "after" || m.laid != "after" {
		t.Errorf("%v, %+v", err, r)
	}
	if r, err = c.Prove(t.Context(), m, Work{Command: " "}, nil); err != nil || r.Passed || r.Error == "" || len(r.Runs) != 0 {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestProveStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	m := newMemory(map[string]files{"before": {"a.go": "1\n"}, "after": {"a.go": "2\n"}})
	n := 0
	c := Checker{Runner: runner(func(ctx context.Context, _ centurion.Command) (centurion.CommandResult, error) {
		if n++; n == 2 {
			cancel(centurion.ErrShutdown)
			return centurion.CommandResult{}, ctx.Err()
		}
		return centurion.CommandResult{ExitCode: 1, Output: failing}, nil
	})}
	if r, err := c.Prove(ctx, m, Work{Command: "x", Before: "before", After: "after"}, nil); centurion.KindOf(err) != centurion.KindInterrupted || r.Passed || r.Proof != "" || len(r.Runs) != 1 {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestProveKeepsEnds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a line of output\n", 4000)
	m := newMemory(map[string]files{"before": {"a.go": "1\n"}, "after": {"a.go": strings.Repeat("package a\n", 3000)}})
	c := Checker{Runner: scripted(m, func(t files, _ int) (int, string) {
		if len(t["a.go"]) > 10 {
			return 0, "first\n" + long + "last\n"
		}
		return 1, "first\n" + long + failing
	})}
	r, err := c.Prove(t.Context(), m, Work{Command: "x", Before: "before", After: "after"}, nil)
	if err != nil || r.Proof != centurion.ProofProven || len(r.Output) > keep+100 || !strings.HasPrefix(r.Output, "first\n") || !strings.HasSuffix(r.Output, "last\n") {
		t.Errorf("%v, %q, %d bytes", err, r.Proof, len(r.Output))
	}
	if red := r.Runs[0].Output; len(red) > keepRed+100 || !strings.HasSuffix(red, failing) || r.Runs[0].Digest != digest(red) || strings.Contains(red, "first") {
		t.Errorf("%d bytes", len(red))
	}
	if len(r.Removed) > keepRemoved+100 || !strings.HasSuffix(r.Removed, " left out]\n") {
		t.Errorf("%d bytes: %s", len(r.Removed), r.Removed[len(r.Removed)-40:])
	}
}

func TestTestFile(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{"a_test.go": true, "a/test_a.py": true, "conftest.py": true, "tests/x.rs": true, "src/a.test.ts": true, "a.spec.jsx": true, "__tests__/a.js": true,
		"src/test/java/a/B.java": true, "a/LimitTest.java": true, "a/LimitTests.cs": true, "App.Tests/B.cs": true, "spec/a_spec.rb": true, "tests/ATest.php": true, "test/a_test.exs": true,
		"a_test.cc": true, "Tests/XTests/A.swift": true, "a.bats": true, "testdata/x.bin": true, "a/fixtures/b.json": true, "__snapshots__/a.snap": true, "jest.config.js": true, "a_test.rs": true,
		"src/__tests__/A.tsx": true, "src/a.test.tsx": true, "a.spec.mts": true, "a.test-d.ts": true, "vitest.config.mts": true, "vitest.workspace.ts": true, "jest.config.unit.cjs": true, "src/setupTests.ts": true, "vitest.setup.ts": true, "test-utils.tsx": true,
		"src/setup.ts": false, "src/test.service.ts": false, "vite.config.ts": false, "contest-d.ts": false,
		"latest.go": false, "contest.py": false, "attest/a.go": false, "protest.js": false, "a.go": false, "Manifest.java": false, "testing.md": false, "src/Latest.kt": false, "Contest.cs": false, "test.md": false} {
		if got := testFile(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestManifestFile(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{"go.mod": true, "web/package.json": true, "tsconfig.json": true, "tsconfig.build.json": true, "jsconfig.json": true, "vite.config.mts": true, "babel.config.js": true, ".babelrc": true,
		"App.csproj": true, "config.json": false, "src/tsconfig.ts": false, "src/vite.ts": false} {
		if got := manifestFile(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	for command, want := range map[string][]string{
		"bash check.sh": {"check.sh"}, "bash\tcheck.sh": {"check.sh"}, "./check.sh -x": {"check.sh"}, "python3 -u verify.py && node ./t/a.js": {"verify.py", "t/a.js"}, "go test ./a/...": nil, "python -m pytest tests/a.py": nil,
		"cd x && FOO=1 bash -e 'a b.sh' | tee out": {"a b.sh"}, "gcc -o t t.c limit.c && ./t": {"t"}, "grep -q a README.md": nil, "test -f out.txt": nil, "bash -c 'x.sh'": nil, "/usr/bin/env python3 a.py": {"a.py"}, "": nil,
		// what a filter judges
		"python3 app.py | grep -x Hello": nil, "./app | sort | diff - want": nil, "bash check.sh | grep OK": {"check.sh"}, "sh sub/run_tests.sh 2>&1 | grep -q ok": {"sub/run_tests.sh"},
		"python3 app.py | tail -1": {"app.py"}, "python3 app.py || grep x y": {"app.py"}, "sh a.sh; python3 app.py | grep x && ./b.sh": {"a.sh", "b.sh"}, "python3 app.py; grep x y": {"app.py"},
		"cat x | ./judge | grep y": nil, "python3 app.py | FOO=1 grep x": {"app.py"}, "python3 app.py | tee out | bash want.sh": {"app.py", "want.sh"},
	} {
		got := slices.DeleteFunc(scripts(command), func(s string) bool { return s == "" })
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", command, got)
		}
	}
}

func FuzzScripts(f *testing.F) {
	f.Add("bash 'a b' && ./c")
	f.Fuzz(func(t *testing.T, command string) {
		for _, s := range scripts(command) {
			if s == "" || strings.HasPrefix(s, "/") {
				t.Errorf("%q: %q", command, s)
			}
		}
	})
}

// BenchmarkProve is what a proof costs beside the runs themselves and git: a work of 20 files.
func BenchmarkProve(b *testing.B) {
	before, after := files{}, files{}
	for i := range 20 {
		name := fmt.Sprintf("f%d", i)
		before[name+".go"] = "package a\n\nimport \"fmt\"\n" + strings.Repeat("\nfunc X() { fmt.Println(1) }\n", 20)
		after[name+".go"] = before[name+".go"] + "\nfunc N() { fmt.Println(2) }\n"
		after[name+"_test.go"] = "package a\n\nfunc TestN(t *testing.T) { t.Error(N()) }\n"
	}
	m := newMemory(map[string]files{"before": before, "after": after})
	diff := diffTrees(before, after)
	output := strings.Repeat("ok  \tx/y\t0.003s\n", 2000)
	b.ReportAllocs()
	for b.Loop() {
		c := changes{diff: diff, command: "go test ./..."}
		if !c.any(work) || len(weakened(diff, c.command)) > 0 || broken(c.command, 1, output) != "" || empty(output) != "" {
			b.Fatal("wrong")
		}
		for _, f := range diff {
			if l, ok := languageOf(f.Path); ok && c.role(f, nil) == work {
				emptyBodies(l, []byte(m.trees["after"][f.Path]), nil, touchedBy(f.Hunks...))
			}
		}
	}
}

// A command that can only pass proves nothing, as a regression either; one that may end before its last word is not such.
func TestTrivial(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"true": true, ":": true, "exit 0": true, "echo all tests pass": true, "true && echo ok": true, "/bin/true": true, "go test ./... || true": true,
		"go test ./...; true": true, "go test ./... ; echo done": true, "make test || exit 0": true, "a && b || :": true,
		"false": false, "exit 1": false, "go test ./...": false, "go test ./... && echo ok": false, "set -e; go test ./...; echo ok": false,
		"go test ./... || exit 1; echo ok": false, "echo $(cat a)": false, "echo x > a": false, "test -f a": false, "grep -q '|| true' a": false,
		"true && test -f a": false, "sh -c true": false, "truest": false,
	} {
		if got := trivial(command); got != want {
			t.Errorf("%s: %t", command, got)
		}
	}
}
