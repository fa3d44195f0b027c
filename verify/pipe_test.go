package verify

import (
	"context"
	"errors"
	"maps"
	"os/exec"
	"strings"
	"testing"

	"centurion"
)

// O1: what a filter finds is no verdict of the tests. A check that reads the output of tests is proven if they fail without the work, and
// unproven if only what reads them does, or if it was the build. Programs and scripts whose output is what has to be right are honest.
func TestProvePipes(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	need(t, "go")
	const (
		mod     = "module x\n\ngo 1.21\n"
		allow   = "package x\n\nfunc Allow(n int) bool { return n < 3 }\n"
		wrong   = "package x\n\nfunc Allow(n int) bool { return n < 9 }\n"
		tests   = "package x\n\nimport \"testing\"\n\nfunc TestAllow(t *testing.T) {\n\tif Allow(5) || !Allow(1) {\n\t\tt.Fatal(\"wrong\")\n\t}\n}\n"
		blind   = "package x\n\nimport \"testing\"\n\nfunc TestAllow(t *testing.T) { t.Log(Allow(5)) }\n"
		unit    = "test \"$(sh tax.sh 100)\" = 119 && echo 'ok length'\n"
		tax     = "echo $(($1 + $1 * 19 / 100))\n"
		another = "package x\n\nimport \"testing\"\n\nfunc TestOther(t *testing.T) {}\n"
	)
	old := files{"go.mod": mod, "other_test.go": another, "doc.go": "package x\n"}
	was := files{"go.mod": mod, "allow.go": wrong}
	sh := files{"README": "x\n"}
	for name, c := range map[string]struct {
		before, add files
		command     string
		proof       centurion.Proof
		why         string
	}{
		"a blind test, searched for PASS":      {old, files{"allow.go": allow, "allow_test.go": blind}, "go test -v ./... | grep -q PASS", centurion.ProofUnproven, "it stays green when this function does nothing: Allow"},
		"a test, searched for PASS":            {old, files{"allow.go": allow, "allow_test.go": tests}, "go test -v ./... | grep -q PASS", centurion.ProofProven, ""},
		"a test, its errors searched, too":     {old, files{"allow.go": allow, "allow_test.go": tests}, "go test -v ./... |& grep -q PASS", centurion.ProofProven, ""},
		"only the search fails":                {was, files{"allow.go": allow, "allow_test.go": blind}, "go test -v ./... 2>&1 | grep -q 'go:5: false'", centurion.ProofUnproven, "only `grep -q 'go:5: false'` fails, and `go test -v ./... 2>&1` stays green"},
		"only the search fails, in a list":     {was, files{"allow.go": allow, "allow_test.go": blind}, "mkdir -p /tmp; go test -v ./... | grep -q 'go:5: false'", centurion.ProofUnproven, "only `grep -q 'go:5: false'` fails"},
		"a search within test":                 {was, files{"allow.go": allow, "allow_test.go": blind}, `test -n "$(go test -v . 2>&1 | grep 'go:5: false')"`, centurion.ProofUnproven, "stays green"},
		"the whole output within test":         {was, files{"allow.go": allow, "allow_test.go": blind}, `[[ "$(go test -v .)" == *"go:5: false"* ]]`, centurion.ProofUnproven, "only what reads `$(go test -v .)` fails"},
		"a test within test":                   {was, files{"allow.go": allow, "allow_test.go": tests}, `test -z "$(go test . 2>&1 | grep FAIL)"`, centurion.ProofProven, ""},
		"a blind test that nobody hears":       {old, files{"allow.go": allow, "allow_test.go": blind}, "go test ./... > /dev/null 2>&1", centurion.ProofUnproven, "it stays green when this function does nothing: Allow"},
		"a test at the end of the output":      {was, files{"allow.go": allow, "allow_test.go": tests}, "go test ./... | tail -n 3", centurion.ProofProven, ""},
		"honest tests in a shell script":       {sh, files{"tax.sh": tax, "tests/run.sh": unit}, "sh tests/run.sh length", centurion.ProofProven, ""},
		"honest tests, searched for ok":        {sh, files{"tax.sh": tax, "tests/run.sh": unit}, "sh tests/run.sh length | grep -q ok", centurion.ProofProven, ""},
		"a script that always exits with 0":    {sh, files{"tax.sh": tax, "tests/run.sh": unit + "exit 0\n"}, "sh tests/run.sh length | grep -q 'ok length'", centurion.ProofProven, ""},
		"the output of a program":              {files{"tax.sh": "sed -f d\n", "d": ""}, files{"d": "s/a/b/\n"}, "printf 'a\\n' | sh tax.sh | grep -qx b", centurion.ProofProven, ""},
		"the output of a program, in Go":       {files{"go.mod": mod, "main.go": "package main\n\nfunc main() { println(1) }\n"}, files{"main.go": "package main\n\nfunc main() { println(2) }\n"}, "go run . 2>&1 | grep -qx 2", centurion.ProofProven, ""},
		"a reader that stops early":            {files{"n.sh": ". ./d\n", "d": "seq 1 9\n"}, files{"d": "seq 2 200000\n"}, "sh n.sh | head -n 1 | grep -qx 2", centurion.ProofProven, ""},
		"a text":                               {files{"README.md": "# X\n"}, files{"README.md": "# X\n\nLimits.\n"}, "cat README.md | grep -q Limits", centurion.ProofProven, ""},
		"a pipe whose first command can fail":  {was, files{"allow.go": allow, "allow_test.go": strings.Replace(tests, "Allow(5)", "!Allow(5)", 1)}, "go test ./... | cat", "", ""},
		"a warning that must not be there":     {files{"n.sh": ". ./d\n", "d": "echo bad; exit 1\n"}, files{"d": "echo good\n"}, "! sh n.sh | grep -q bad", centurion.ProofProven, ""},
		"a warning that is there although …":   {files{"n.sh": ". ./d\n", "d": "echo good\n"}, files{"d": "echo bad; exit 1\n"}, "! sh n.sh | grep -q bad", "", ""},
		"tests that are there, none that runs": {old, files{"allow.go": allow}, "go test -run TestNone . | grep -q ok", centurion.ProofUnproven, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := files{}
			for _, from := range []files{c.before, c.add} {
				maps.Copy(after, from)
			}
			m := newMemory(map[string]files{"before": c.before, "after": after})
			m.dir = t.TempDir()
			check := Checker{Runner: host{[]string{"GOFLAGS=-vet=off", "GOWORK=off"}}}
			r, err := check.Prove(t.Context(), m, Work{Command: c.command, Before: "before", After: "after"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if r.Proof != c.proof || !strings.Contains(r.Why, c.why) || r.Passed != (c.proof != "") || r.Command != c.command {
				t.Errorf("`%s`: proof %q, why %q, passed %t", r.Command, r.Proof, r.Why, r.Passed)
				for _, run := range r.Runs {
					t.Logf("%s: exit %d, passed %v, broken %q, empty %q\n%s", run.Kind, run.ExitCode, run.Passed, run.Broken, run.Empty, run.Output)
				}
			}
		})
	}
}

// A pipe fails if any of its commands does, unless that would turn a red check green, or a reader has only stopped early. The receipt binds
// the line as it was written.
func TestPipefail(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	c := Checker{Runner: host{}}
	for command, passes := range map[string]bool{
		"false | true": false, "exit 3 | cat": false, "true | true": true, "true | true && a=1": true, "(exit 2) | grep -c . || true": true, "yes | head -n 1": true, "seq 1 99999 | grep -q 1": true,
		"! false | grep -q x": true, "! { echo x; false; } | grep -q x": false, "if { echo x; false; } | grep -q x; then exit 1; fi": false,
		"{ echo x; false; } | grep -q x && exit 1": false, "{ echo x; false; } | grep -q x; test $? -ne 0": false, "false | true; test ${PIPESTATUS[0]} = 1": true, "set +o pipefail; false | true": true, "echo 'a | b'": true, "false || echo 'a | b'": true,
		"cat <<E | grep -q x\nx\nE": true, "# a comment\nfalse | cat": false, "while { echo x; false; } | grep -q y; do :; done": true,
		"while { echo x; false; } | grep -q x; do exit 1; done": false,
		// Who writes is heard to its end, also by a reader that has seen enough: it may still fail, or mind that nobody reads.
		"awk 'BEGIN { for (i = 0; i < 300000; i++) print \"PASS\"; exit 3 }' | grep -q PASS":    false,
		"awk 'BEGIN { for (i = 0; i < 300000; i++) print \"PASS\"; exit 3 }' | cat | head -n 1": false,
		"(trap '' PIPE; seq 1 300000) | grep -q 1":                                              true, "(trap '' PIPE; seq 1 300000) |& head -n 1 | grep -qx 1 # the first": true,
		"test \"$( (trap '' PIPE; seq 1 300000) | head -n 1)\" = 1 && (trap '' PIPE; seq 1 300000) | while read x; do break; done": true,
		"seq 1 300000 | grep -q x": false, "(trap '' PIPE; seq 1 300000; cat) <<E | grep -q 1\nx\nE": true,
	} {
		r, err := c.Run(t.Context(), t.TempDir(), command)
		if err != nil || r.Passed != passes || r.Command != command {
			t.Errorf("%s: passed %t as `%s`, %v\n%s", command, r.Passed, r.Command, err, r.Output)
		}
	}
}

// A shell that does not know pipefail runs the check all the same, and the output says what that means.
func TestNoPipefail(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	c := Checker{Runner: runner(func(ctx context.Context, want centurion.Command) (centurion.CommandResult, error) {
		script := "set() { if [ \"$1 $2\" = '-o pipefail' ]; then echo 'Illegal option' >&2; exit 2; fi; command set \"$@\"; }\n" + want.Script
		out, err := exec.CommandContext(ctx, "bash", "-c", script).CombinedOutput()
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			return centurion.CommandResult{ExitCode: ended.ExitCode(), Output: string(out)}, nil
		}
		return centurion.CommandResult{Output: string(out)}, err
	})}
	for command, passes := range map[string]bool{"false | echo end": true, "echo end | false": false} {
		r, err := c.Run(t.Context(), t.TempDir(), command)
		if err != nil || r.Passed != passes || !strings.Contains(r.Output, "This shell has no pipefail: of a pipe only the last command counts.") || strings.Contains(r.Output, "Illegal") {
			t.Errorf("%s: passed %t, %v\n%s", command, r.Passed, err, r.Output)
		}
	}
}

// What a command's exit code does not tell is said in words, and of an honest command nothing is said.
func TestMuffled(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"go test -v ./... | grep -q PASS":          "it ends in the filter `grep -q PASS`",
		"go test ./... 2>&1 | tail -n 5":           "it ends in the filter `tail -n 5`",
		"go test ./... |& head":                    "it ends in the filter `head`",
		"cd a && go test ./... | tee log":          "it ends in the filter `tee log`",
		"test -f a && ./calc 1 2 | grep -q 3":      "it ends in the filter `grep -q 3`",
		"go test ./... | mail -s x me@example.com": "it ends in a pipe into `mail -s x me@example.com`",
		"go test ./...; git status":                "behind `;` only the last command decides, and `go test ./...` may fail unseen",
		"go vet ./...\ngo test ./...":              "`go vet ./...` may fail unseen",
		"go test ./... || cat log":                 "`||` lets it pass where `go test ./...` fails",
		"set -e; go test ./... || cat log":         "`||` lets it pass",
		// Too long to be read.
		"go test ./... | head # " + strings.Repeat("x", maxChain): "",
		// Told by CanOnlyPass.
		"go test ./... || true": "", "go test ./...; echo ok": "", "true": "",
		// Honest.
		"go test ./... -run TestA": "", "sh tests/run.sh length": "", "test \"$(sh tax.sh 100)\" = 119": "", "grep -q x README.md": "", "cd a; go test ./...": "",
		"mkdir -p out; go test ./...": "", "set -e\ngo vet ./...\ngo test ./...": "", "echo tests; go test ./...": "", "printf '1 2\\n' | ./calc": "", "./calc < in | diff - want": "",
		"go test ./... || exit 1": "", "go test ./... || { echo failed; exit 1; }": "", "! test -f x_test.sh || sh x_test.sh": "", "go test ./a && go test ./b": "", "if [": "", "": "",
	} {
		if got := Muffled(command); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

// Whatever is captured, the script parses and nothing panics.
func FuzzHeard(f *testing.F) {
	f.Add(`go test -v . | grep -q "$(go test ./a)"`)
	f.Add("cat <<E | (a | b |& c) | d # x\nE")
	f.Add("! { go test |& tail; } || x $(pytest 2>&1)")
	f.Fuzz(func(t *testing.T, command string) {
		_, _ = strictPipes(command), Muffled(command)
		if d := drained(command); parse(command) != nil && !parses(d) {
			t.Errorf("%q becomes\n%s", command, d)
		}
		if c, ok := heard(command); ok && !parses(c.script("m")) {
			t.Errorf("%q becomes\n%s", command, c.script("m"))
		}
	})
}
