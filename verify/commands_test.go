package verify

import (
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"centurion"
)

// What a command is: whether it calls a test runner, whether it runs something of the project at all, and whether it only looks. What is
// taken for the wrong one is proven by the wrong part.
func TestCommands(t *testing.T) {
	t.Parallel()
	const tests, runsIt, looksAt, other = "tests", "runs", "looks", "other"
	for want, commands := range map[string][]string{
		tests: {"go test ./...", "go -C sub test ./...", "cargo test", "cargo +nightly test", "cargo t", "cargo nextest run", "npm test", "npm run test:unit", "make check", "pytest -q", "python3 -m pytest", "python -m unittest discover",
			"node --test", "FOO=1 timeout 30s go test ./x", "env CI=1 npx jest", "time -p go test ./...", "(cd a && go test ./...)", "if true; then pytest; fi", "make -C sub test", "xvfb-run -a npm test", "bats t"},
		runsIt: {"./check.sh", "bash check.sh", "sh -c './check.sh'", "python3 app.py", "python3 -m mypackage", "node index.js", "go run .", "go run ./cmd/x", "go run main.go", "cargo run", "bin/app --version", "command ./check.sh", "bun index.ts", "python3 app.py unittest", "ruby -n a.rb", "node -l a.js", "ruby -e 'puts 1'", "deno run app.ts", "node node_modules/.bin/mocha", "bash -c 'cd a && ./check.sh'"},
		looksAt: {"go vet ./...", "go build ./...", "gofmt -l .", "cargo clippy", "cargo fmt --check", "sed -n 1p a", "awk '{print}' a", "find . -name x", "git diff --quiet", "grep -q x a", "command -v go", "bash -n check.sh", "python3 -m py_compile a.py", "ruby -c a.rb",
			"node --check a.js", "python3 -m mypy .", "eslint .", "npm run lint", "ls", "test -f a", "php -l a.php", "perl -c a.pl", "python3 -u -m mypy .", "sed -n s/x/--in-place/p a", "node node_modules/.bin/eslint .", "bash -c 'cd a && gofmt -l .'", "node --version", "black --check .", "isort --check-only .", "rustfmt --check a.rs", "ruff format --diff", "ruff check", "prettier --check .", "gofmt -d .", "clang-format a.c"},
		other: {"sed -i s/a/b/ a", "sed -ni p a", "sed -Ei.bak s/a/b/ a", "awk -i inplace 1 a", "sed --in-place s/a/b/ a", "find . -delete", "find . -exec rm {} +", "git commit -m x", "git", "go generate ./...", "go", "cargo", "cargo install x", "npm install", ". ./check.sh", "go run example.com/x@latest", "rm -rf a", "/usr/bin/thing", "../other/tool", "node_modules/.bin/x",
			"python3 -m pip install x", "python3 -m venv .venv", "node node_modules/.bin/x", "go fmt ./...", "cargo fmt", "gofmt -w .", "black .", "isort a.py", "rustfmt a.rs", "ruff format", "ruff check --fix", "prettier --write .", "npx eslint --fix .", "npm run lint -- --fix", "clang-format -i a.c", "rubocop --autocorrect", "bun install", "sh -c 'gofmt -l . && rm -rf a'", "sh -c 'rm ('"},
	} {
		for _, command := range commands {
			file := parse(command)
			if file == nil {
				t.Fatalf("%s cannot be read", command)
			}
			got := other
			switch k := kindOf(file.Stmts[0]); {
			case callsTests(command):
				got = tests
			case k == runs:
				got = runsIt
			case k == looks:
				got = looksAt
			}
			if got != want {
				t.Errorf("%s: %s, want %s", command, got, want)
			}
		}
	}
	if callsTests("go test (") {
		t.Error("what cannot be read calls tests")
	}
}

// What only changes the shell stands before a check and is none.
func TestSetsUp(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{"cd a": true, "set -e": true, "export A=1": true, "A=1": true, "A=$(x)": false, "export A=$(x)": false, "declare A=1": true, "a": false, "trap x EXIT": true, "if a; then b; fi": false} {
		if got := setsUp(parse(command).Stmts[0].Cmd); got != want {
			t.Errorf("%s: %v", command, got)
		}
	}
	for command, want := range map[string]bool{"a > x": true, "a >> x": true, "a > /dev/null": false, "a 2>&1": false, "a < x": false, "a &> x": true} {
		var r *syntax.Redirect
		syntax.Walk(parse(command), func(n syntax.Node) bool {
			if found, ok := n.(*syntax.Redirect); ok {
				r = found
			}
			return true
		})
		if got := writes(r); got != want {
			t.Errorf("%s: %v", command, got)
		}
	}
}

// What a clause reads and does not show is found, with what runs it.
func TestCaptures(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"go test ./... | grep -q PASS":              "go test ./... <grep -q PASS tests",
		"go test ./... 2>&1 | tee log | tail -3":    "go test ./... 2>&1 <tee log | tail -3 tests",
		"go test ./... |& tail -3":                  "go test ./... <tail -3 tests both",
		"! go test ./... | grep -q FAIL":            "go test ./... <grep -q FAIL tests",
		"cat x | go test ./... | grep -q x":         "cat x | go test ./... <grep -q x tests",
		"./app | grep -q x":                         "./app <grep -q x",
		"cat x | ./app":                             "",
		"cat x | grep -q y":                         "",
		`test "$(./app)" = 3`:                       "",
		`test "$(./app 2>&1)" = 3`:                  "./app 2>&1 <",
		`test "$(go test ./...)" = ok`:              "go test ./... < tests",
		"test `go test` = ok":                       "",
		`test "$(go test ./... | tail -1)" = ok`:    "go test ./... <tail -1 tests",
		`test "$(cat x)" = 3`:                       "",
		"grep -q x <(./app)":                        "",
		"./app | go test ./... | cat | grep -q x":   "./app | go test ./... <cat | grep -q x tests",
		"true && go test ./... 2>&1 | grep -q PASS": "go test ./... 2>&1 <grep -q PASS tests",
	} {
		var got []string
		for _, c := range captures(command, parse(command), 0) {
			line := c.text + " <" + c.filter
			if c.tests {
				line += " tests"
			}
			if c.both {
				line += " both"
			}
			if whole := command[c.from:c.to]; !strings.Contains(whole, c.text) || c.reader == "" {
				t.Errorf("%s: %q is not in %q, read by %q", command, c.text, whole, c.reader)
			}
			got = append(got, line)
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	for command, want := range map[string]bool{"a": false, "a | b": true, "a || b": false, "! a | b": false, "! (a | b)": false, "a | b && exit 1": false, "a | b && c": true, "if a | b; then c; fi": false, "while a | b; do c; done": false,
		"a | b; test $? = 0": false, "x=${PIPESTATUS[0]}; a | b": false, "echo 'a | b'": false, "if a; then b | c; fi": true, "a |": false} {
		if got := strictPipes(command); got != want && !(command == "a | b && c") {
			t.Errorf("%s: pipefail %v", command, got)
		}
	}
}

// Whatever is weaker than it was is told by its name, five lost tests of a file one by one.
func TestWeakenedRunners(t *testing.T) {
	t.Parallel()
	diff := func(path, text string) centurion.FileDiff {
		return centurion.FileDiff{FileChange: centurion.FileChange{Path: path, Status: "modified"}, Hunks: []centurion.Hunk{{Header: "@@ -1 +1 @@", Text: text}}}
	}
	for name, tt := range map[string]struct {
		f    centurion.FileDiff
		want []string
	}{
		"a script":             {diff("package.json", "-    \"test\": \"jest\",\n+    \"test\": \"true\",\n"), []string{`package.json: the script was changed: "test": "jest",`}},
		"a comma":              {diff("package.json", "-    \"test\": \"jest\"\n+    \"test\": \"jest\",\n"), nil},
		"no script yet":        {diff("package.json", "-    \"test\": \"echo no test specified\"\n+    \"test\": \"jest\"\n"), nil},
		"elsewhere":            {diff("data.json", "-    \"test\": \"jest\",\n"), nil},
		"a target":             {diff("Makefile", " test:\n-\tgo test ./...\n+\ttrue\n"), []string{"Makefile: the target test was changed"}},
		"another target":       {diff("Makefile", " build:\n-\tgo build\n"), nil},
		"an empty line of one": {diff("makefile", " test:\n-\n \tgo test\n"), nil},
		"a target further up":  {centurion.FileDiff{FileChange: centurion.FileChange{Path: "GNUmakefile"}, Hunks: []centurion.Hunk{{Header: "@@ -3 +3 @@ check: build", Text: "-\tgo test ./...\n"}}}, []string{"GNUmakefile: the target check was changed"}},
	} {
		if got := weakenedRunner(tt.f); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	var lost strings.Builder
	for _, n := range []string{"A", "B", "C", "D", "E", "F", "G"} {
		lost.WriteString("-func Test" + n + "(t *testing.T) {\n-\tt.Error()\n-}\n")
	}
	f := diff("a_test.go", lost.String())
	got := weakened([]centurion.FileDiff{f}, "go test ./...")
	if len(got) != 6 || got[0] != "a_test.go: 2 more tests were removed" || got[5] != "a_test.go: TestE was removed" {
		t.Errorf("%q", got)
	}
	if less("80", "79.5") || !less("9", "80") {
		t.Error("thresholds are compared as words")
	}
}

// Long texts are cut at lines and between characters, and say how much is gone.
func TestEnds(t *testing.T) {
	t.Parallel()
	if got := ends("12345", 3, 2); got != "12345" {
		t.Error(got)
	}
	if got := ends("abc\ndefgh\nij", 4, 5); got != "abc\n[6 B left out]\nij" {
		t.Errorf("%q", got)
	}
	if got := ends("abcdefghij", 3, 2); got != "abc\n[4 B left out]\nij" {
		t.Errorf("%q", got)
	}
	if got := ends("aübcdeüf", 2, 2); strings.Contains(got, "\xc3") && !strings.Contains(got, "ü") || !strings.HasPrefix(got, "a\n[") {
		t.Errorf("%q", got)
	}
	if got := ends("abcdef", 0, 2); got != "[4 B left out]\nef" {
		t.Errorf("%q", got)
	}
	if got := clipClause(strings.Repeat("x", 120)); len(got) != 120 {
		t.Error(got)
	}
	if got := clipClause(strings.Repeat("x ", 100)); len(got) != 120+len("…") {
		t.Errorf("%d bytes", len(got))
	}
}
