package verify

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"centurion"
)

// What a clause does decides whether its death counts. A letter is a kind: Runs something of the project, Sets up the shell, Looks, Acts.
func TestChainOf(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		`test -z "$(gofmt -l .)" && go vet ./... && go test ./...`:                    "LLR",
		`cd a && export X=1 && Y=2 && test -f b && pytest -q`:                         "SSSLR",
		`cd a; X=1; test -f b && pytest -q`:                                           "LR",
		`{ gofmt -l . | grep -q x && go test ./...; }`:                                "LR",
		`test -f x && (cd a && go test ./...)`:                                        "LSR",
		`(gofmt -d . && go test ./... ) && go vet ./...`:                              "RL",
		`test -f x && (cd a; go test ./...)`:                                          "LR",
		`mkdir -p out && go test ./... > out/log`:                                     "AR",
		`gofmt -l . > x && go test ./... 2>/dev/null`:                                 "AR",
		`ruff check . && python3 -m black --check . && uv run pytest`:                 "LLR",
		`npx eslint . && npx tsc --noEmit && npm test`:                                "LLR",
		`npm run lint && npm run test:unit`:                                           "LR",
		`cargo fmt --check && cargo clippy && cargo test`:                             "LLR",
		`./gradlew ktlintCheck && ./gradlew :app:testDebugUnitTest`:                   "LR",
		`bash -n a.sh && bash -c 'cd x && go test ./...'`:                             "LR",
		`node --check a.js && node --test`:                                            "LR",
		`bash -c 'test -z "$(gofmt -l .)"' && go test ./...`:                          "LR",
		`scripts/lint.sh && sh tests/all.sh`:                                          "LR",
		`grep -q x a && test "$(./app list | wc -l)" = 3`:                             "LR",
		`grep -q x a && diff <(go run . list) want.txt`:                               "LR",
		`grep -q x a && python3 -c 'import a; assert a.b() == 1'`:                     "LR",
		`test -f x || exit 1 && go test ./...`:                                        "AR",
		`! grep -q TODO a.go && go test ./...`:                                        "LR",
		`go build ./... && $(go env GOPATH)/bin/golangci-lint run && go test ./..`:    "LLR",
		`sed -i s/a/b/ x && find . -delete && make check`:                             "AAR",
		`command -v pytest && timeout 60 pytest`:                                      "LR",
		`node_modules/.bin/prettier -c . && node_modules/.bin/vitest run`:             "LR",
		"set -e\ntest -z \"$(gofmt -l .)\"\ngo vet ./...\ngo test ./...":              "LLR",
		"set -euo pipefail; cd a\ngofmt -l . | grep -q x; pytest -q":                  "LR",
		"set -e; mkdir -p out; cd out; grep -q x a; go test ./... && ! grep -q y log": "ASLRL",
		"set -e\ngo test ./...\n! grep -q y log":                                      "RL",
		// Under set -e as well: what would mean something else where its exit code is asked for.
		"set -e\n! grep -q x a\ngo test ./...": "", "set -e\ngofmt -l . && go vet ./...\ngo test ./...": "", "set -e\n(gofmt -l .; go vet)\ngo test": "",
		"set -e\ngofmt -l .\nset +e\ngo test": "", "set -e +e\ngofmt -l .\ngo test": "", "set -u\ngofmt -l .\ngo test": "", "set -e\ngofmt -l . || true\ngo test": "",
		"set -e\ngofmt -l . &\ngo test": "", "set -e\nif test -f x; then gofmt -l .; fi\ngo test": "", "gofmt -l .\ngo test ./...": "",
		// No chain, or one that is judged as a whole.
		`go test ./...`: "", `test -f x && grep -q y x`: "", `go test ./a && go test ./b`: "", `cd a && go test ./...`: "", `gofmt -l . ; go test ./...`: "",
		`gofmt -l . && go test ./... || exit 1`: "", `gofmt -l . && go test ./... | tail -3; echo`: "", `{ gofmt -l . && go test; } > log`: "", "cat <<E && go test ./...\nx\nE": "",
		"test -f x && go test . \\":           "", // the backslash would join the script's own next line
		"set -e\ngofmt -l . | (cat)\ngo test": "", "set -e\n(gofmt -l .) | cat\ngo test": "",
		`go vet && go test &`: "", `go vet && `: "", `! (go vet && go test)`: "",
	} {
		var got strings.Builder
		if c, ok := chainOf(command); ok {
			for _, one := range c.clauses {
				got.WriteByte("RSLA"[one.kind])
			}
		}
		if got.String() != want {
			t.Errorf("%s: %q, want %q", command, got.String(), want)
		}
	}
}

// Each case is a chain of marks for the shell: the clauses run in one shell, each at most once, and go on behind one that only looks.
func TestChainRuns(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	tests := []struct {
		name    string
		clauses []clause
		passed  bool
		exit    int
		fell    string
		green   string
		unseen  string
		broken  string
		shown   string
	}{
		{"green", []clause{{"echo a", looks}, {"echo b", runs}}, true, 0, "", "", "", "", "$ echo a\na\n[exit code 0]\n$ echo b\nb\n[exit code 0]\n"},
		{"a look fails", []clause{{"sh -c 'exit 3'", looks}, {"printf b", runs}}, false, 3, "`sh -c 'exit 3'`", "`printf b`", "", "only `sh -c 'exit 3'` failed, and `printf b` stayed green",
			"$ sh -c 'exit 3'\n[exit code 3]\n$ printf b\nb\n[exit code 0]\n"},
		{"both fail", []clause{{"false", looks}, {"echo '--- FAIL: TestA'; sh -c 'exit 2'", runs}, {"echo c", runs}}, false, 2, "`echo '--- FAIL: TestA'; sh -c 'exit 2'`", "", "", "",
			"$ false\n[exit code 1]\n$ echo '--- FAIL: TestA'; sh -c 'exit 2'\n--- FAIL: TestA\n[exit code 2]\n(not run: echo c)\n"},
		{"nothing is done behind a failure", []clause{{"false", looks}, {"echo wipe", acts}, {"echo b", runs}}, false, 1, "`false`", "", "`echo b`", "`false` failed, and `echo b` behind it was not run",
			"$ false\n[exit code 1]\n(not run: echo wipe)\n(not run: echo b)\n"},
		{"the shell cannot be set up", []clause{{"cd /no/such 2>/dev/null", sets}, {"true", looks}, {"echo b", runs}}, false, 1, "`cd /no/such 2>/dev/null`", "", "`echo b`", "`cd /no/such 2>/dev/null` failed, and `echo b` behind it was not run",
			"$ cd /no/such 2>/dev/null\n[exit code 1]\n(not run: true)\n(not run: echo b)\n"},
		{"a test leaves the shell", []clause{{"false", looks}, {"echo 'AssertionError'; exit 4", runs}}, false, 4, "`echo 'AssertionError'; exit 4`", "", "", "",
			"$ false\n[exit code 1]\n$ echo 'AssertionError'; exit 4\nAssertionError\n[exit code 4]\n"},
		{"a test leaves the shell as if all were well", []clause{{"false", looks}, {"exit 0", runs}}, false, 1, "`false`", "`exit 0`", "", "only `false` failed, and `exit 0` stayed green",
			"$ false\n[exit code 1]\n$ exit 0\n[exit code 0]\n"},
		{"what acts runs tests", []clause{{"echo '--- FAIL: TestA'; false", acts}, {"echo b", runs}}, false, 1, "`echo '--- FAIL: TestA'; false`", "", "", "",
			"$ echo '--- FAIL: TestA'; false\n--- FAIL: TestA\n[exit code 1]\n$ echo b\nb\n[exit code 0]\n"},
		{"a broken build", []clause{{"false", looks}, {"echo 'x.go:1:2: undefined: A'; false", runs}}, false, 1, "`echo 'x.go:1:2: undefined: A'; false`", "", "", "the build failed: x.go:1:2: undefined: A",
			"$ false\n[exit code 1]\n$ echo 'x.go:1:2: undefined: A'; false\nx.go:1:2: undefined: A\n[exit code 1]\n"},
		{"the state of the shell", []clause{{"V=7", sets}, {"sh -c 'exit 5'", looks}, {"echo $V", runs}}, false, 5, "`sh -c 'exit 5'`", "`echo $V`", "", "only `sh -c 'exit 5'` failed, and `echo $V` stayed green",
			"$ V=7\n[exit code 0]\n$ sh -c 'exit 5'\n[exit code 5]\n$ echo $V\n7\n[exit code 0]\n"},
	}
	for _, test := range tests {
		c := chain{front: "set -eu;", clauses: test.clauses}
		mark := newMark()
		out, err := exec.CommandContext(t.Context(), "bash", "-c", c.script(mark)).CombinedOutput()
		run := centurion.CheckRun{Passed: err == nil, Output: string(out)}
		if err != nil {
			run.ExitCode = 1
			if ee, ok := err.(*exec.ExitError); ok {
				run.ExitCode = ee.ExitCode()
			}
		}
		all := c.read(string(out), mark)
		got := weigh(run, all)
		if got.Passed != test.passed || got.ExitCode != test.exit || got.fell != test.fell || got.green != test.green || got.unseen != test.unseen || got.Broken != test.broken || transcript(all) != test.shown {
			t.Errorf("%s: %+v\n%s", test.name, got, transcript(all))
		}
	}
}

// The middle of a long output is lost; how each clause has ended is not.
func TestChainReadsEnds(t *testing.T) {
	t.Parallel()
	c := chain{clauses: []clause{{"a", looks}, {"b", looks}, {"c", runs}}}
	all := c.read("one\n[9 MB left out]\n\nm 0:0 1:2 2:0\n", "m")
	if got := []int{all[0].exit, all[1].exit, all[2].exit}; !slices.Equal(got, []int{0, 2, 0}) || !all[0].seen || !all[2].seen {
		t.Errorf("%+v", all)
	}
	if got := weigh(centurion.CheckRun{ExitCode: 1}, all); got.fell != "`b`" || got.green != "`c`" {
		t.Errorf("%+v", got)
	}
	if all = c.read("m 0:0\nm 7:1 x:y\n\n", "m"); !all[0].seen || all[1].seen {
		t.Errorf("%+v", all)
	}
}

// A run that was stopped by the clock says that, and nothing of its clauses.
func TestChainTimesOut(t *testing.T) {
	t.Parallel()
	m := newMemory(map[string]files{"before": {"a.go": "1\n"}, "after": {"a.go": "2\n"}})
	n := 0
	c := Checker{Runner: runner(func(_ context.Context, cmd centurion.Command) (centurion.CommandResult, error) {
		if n++; n == 1 {
			return centurion.CommandResult{ExitCode: -1, TimedOut: true, Output: "x\n"}, nil
		}
		if cmd.Script != "gofmt -l . && go test ./..." { // the green run is the command, as it stands
			return centurion.CommandResult{ExitCode: 1}, fmt.Errorf("it ran %q", cmd.Script)
		}
		return centurion.CommandResult{}, nil
	})}
	r, err := c.Prove(t.Context(), m, Work{Command: "gofmt -l . && go test ./...", Before: "before", After: "after"}, nil)
	if err != nil || r.Proof != centurion.ProofUnproven || r.Why != "without the work it did not end: timed out after 10m0s" || len(r.Runs) != 2 {
		t.Errorf("%v, %+v", err, r)
	}
}

// Whatever is taken apart can be run, and what it means is what it meant: the script of a chain parses, and every clause stands in it.
func FuzzChain(f *testing.F) {
	f.Add(`cd a && test -z "$(gofmt -l .)" && { go test ./...; }`, "m 0:0\n")
	f.Add("/b && .\r && \\", "")
	f.Add("a || b && (c && go test) # x", "x\n\nm 0:1 1:0\ny")
	f.Fuzz(func(t *testing.T, command, output string) {
		c, ok := chainOf(command)
		if !ok {
			return
		}
		if !parses(c.script("m")) {
			t.Errorf("%q becomes\n%s", command, c.script("m"))
		}
		all := c.read(output, "m")
		_ = weigh(centurion.CheckRun{ExitCode: 1, Output: output}, all)
		_ = transcript(all)
	})
}

func parses(script string) bool {
	_, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	return err == nil
}

// A clause that could not be built, or was killed, does not count where one behind it fails by itself.
func TestRealFailureCountsBeforeABrokenOne(t *testing.T) {
	t.Parallel()
	all := []ended{
		{clause: clause{"make check", acts}, seen: true, exit: 137, output: "--- FAIL: TestA\nKilled\n"},
		{clause: clause{"go test .", runs}, seen: true, exit: 1, output: "--- FAIL: TestB (0.00s)\n    b_test.go:7: no b\nFAIL\n"},
	}
	if got := weigh(centurion.CheckRun{ExitCode: 1}, all); got.fell != "`go test .`" || got.Broken != "" || got.ExitCode != 1 {
		t.Errorf("%+v", got)
	}
	if got := weigh(centurion.CheckRun{ExitCode: 137}, all[:1]); got.fell != "`make check`" || got.Broken == "" {
		t.Errorf("%+v", got)
	}
}
