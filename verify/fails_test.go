package verify

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"centurion"
)

// fragile is trees of which one operation fails, counted from 1.
type fragile struct {
	*memory
	ops  int
	fail int
	done []string
}

var errFragile = &centurion.Error{Op: "use a tree", Kind: centurion.KindDisk, Msg: "the disk is full"}

func (f *fragile) fails(op string) error {
	f.done = append(f.done, op)
	if f.ops++; f.ops == f.fail {
		return errFragile
	}
	return nil
}

func (f *fragile) Lay(ctx context.Context, tree string) (centurion.Place, error) {
	if err := f.fails("lay"); err != nil {
		return centurion.Place{}, err
	}
	return f.memory.Lay(ctx, tree)
}

func (f *fragile) Changed(ctx context.Context) ([]string, error) {
	if err := f.fails("changed"); err != nil {
		return nil, err
	}
	return f.memory.Changed(ctx)
}

func (f *fragile) Diff(ctx context.Context, from, to string) ([]centurion.FileDiff, error) {
	if err := f.fails("diff"); err != nil {
		return nil, err
	}
	return f.memory.Diff(ctx, from, to)
}

func (f *fragile) Read(ctx context.Context, tree, path string) ([]byte, error) {
	if err := f.fails("read"); err != nil {
		return nil, err
	}
	return f.memory.Read(ctx, tree, path)
}

func (f *fragile) With(ctx context.Context, tree string, put map[string][]byte) (string, error) {
	if err := f.fails("with"); err != nil {
		return "", err
	}
	return f.memory.With(ctx, tree, put)
}

func (f *fragile) Without(ctx context.Context, from, to string, out func(centurion.FileDiff, *centurion.Hunk) bool) (string, string, error) {
	if err := f.fails("without"); err != nil {
		return "", "", err
	}
	return f.memory.Without(ctx, from, to, out)
}

// Whichever step of a proof cannot be done, the proof ends there with that error, and its receipt has the runs so far and no grade.
func TestProofEndsWhereTreesFail(t *testing.T) {
	t.Parallel()
	const tests = "\n#[cfg(test)]\nmod tests {\n    fn a() {}\n}\n"
	before := files{"a.go": "package a\n\nfunc A() int { return 1 }\n", "l.rs": "fn l() -> i32 { 1 }\n", "b.hs": "1\n"}
	after := files{"a.go": "package a\n\nfunc A() int { return 2 }\n", "l.rs": "fn l() -> i32 { 2 }\n" + tests, "b.hs": "2\n"}
	var last []string
	runs := 0
	for fail := 1; ; fail++ {
		m := &fragile{memory: newMemory(map[string]files{"before": before, "after": after}), fail: fail}
		var told []centurion.CheckRun
		c := Checker{Runner: scripted(m.memory, func(f files, _ int) (int, string) {
			switch {
			case f["a.go"] == after["a.go"] && f["l.rs"] == after["l.rs"] && f["b.hs"] == after["b.hs"]:
				return 0, "ok"
			case f["b.hs"] != after["b.hs"] && f["a.go"] == after["a.go"] && f["l.rs"] == after["l.rs"]:
				return 1, "AssertionError"
			}
			return 1, notInScope
		})}
		r, err := c.Prove(t.Context(), m, Work{Command: "make test", Before: "before", After: "after"}, func(run centurion.CheckRun) { told = append(told, run) })
		for i := range told {
			told[i].Out = r.Runs[i].Out // is known when the run has been judged
		}
		if !reflect.DeepEqual(told, r.Runs) || len(r.Runs) < runs || r.Tree != "after" {
			t.Errorf("step %d: told of %d runs, the receipt of %q has %d", fail, len(told), r.Tree, len(r.Runs))
		}
		if runs = len(r.Runs); len(m.done) < fail {
			last = m.done
			if err != nil || r.Proof != centurion.ProofProven || !strings.Contains(r.Removed, "b.hs") || strings.Contains(r.Removed, "a.go") {
				t.Errorf("%v, %s, %s, removed %s", err, r.Proof, r.Why, r.Removed)
			}
			break
		}
		if !errors.Is(err, errFragile) || len(m.done) != fail || r.Proof != "" || r.Why != "" || r.Removed != "" {
			t.Errorf("step %d (%s): %v, %q after %d more", fail, m.done[fail-1], err, r.Proof, len(m.done)-fail)
		}
	}
	if got := strings.Join(last, " "); !strings.HasPrefix(got, "diff read read without with lay changed") || !strings.HasSuffix(got, "lay changed lay changed") || runs < 6 {
		t.Errorf("%d runs by %s", runs, got)
	}
}

// What the clauses of a failed run prove, and what is told of it.
func TestWeigh(t *testing.T) {
	t.Parallel()
	const fail, undefined = "--- FAIL: TestA\n", "x.go:1:2: undefined: A\n"
	tests := []capture{{text: "cat x", reader: "`no`"}, {text: "go test .", reader: "`grep PASS`", tests: true}}
	seen := func(kind clauseKind, text string, exit int, output string) ended {
		return ended{clause: clause{text, kind}, seen: true, exit: exit, output: output}
	}
	deaf := func(exit int, output string, codes ...string) ended {
		e := seen(runs, "go test . | grep PASS", exit, output)
		e.hidden, e.codes = tests, codes
		return e
	}
	red := centurion.CheckRun{ExitCode: 1, Output: "whole"}
	late := centurion.CheckRun{ExitCode: -1, Output: "whole", Error: "timed out"}
	of := func(run centurion.CheckRun, exit int, output, broken, empty string) centurion.CheckRun {
		run.ExitCode, run.Output, run.Broken, run.Empty = exit, output, broken, empty
		return run
	}
	for name, tt := range map[string]struct {
		run  centurion.CheckRun
		all  []ended
		want result
	}{
		"green":                      {centurion.CheckRun{Passed: true}, []ended{seen(looks, "vet", 0, "a"), seen(runs, "test", 0, "b\n")}, result{CheckRun: centurion.CheckRun{Passed: true, Output: "a\nb\n"}}},
		"green, no test":             {centurion.CheckRun{Passed: true}, []ended{seen(runs, "test", 0, "collected 0 items\n")}, result{CheckRun: centurion.CheckRun{Passed: true, Output: "collected 0 items\n", Empty: "collected 0 items"}}},
		"late":                       {late, []ended{seen(runs, "test", 1, fail), {clause: clause{"more", runs}, output: "so far"}}, result{CheckRun: of(late, -1, fail+"so far\n", "timed out", "")}},
		"the first that fails":       {red, []ended{seen(runs, "one", 2, fail), seen(runs, "two", 3, fail)}, result{CheckRun: of(red, 2, fail, "", ""), fell: "`one`"}},
		"what acts, with a test":     {red, []ended{seen(acts, "make", 2, fail), seen(runs, "two", 0, "")}, result{CheckRun: of(red, 2, fail, "", ""), fell: "`make`"}},
		"what acts, without":         {red, []ended{seen(acts, "make", 2, "no"), seen(runs, "two", 0, "b")}, result{CheckRun: of(red, 2, "no\nb\n", "only `make` failed, and `two` stayed green", ""), fell: "`make`", green: "`two`"}},
		"what looks, with a test":    {red, []ended{seen(looks, "grep", 2, fail), seen(runs, "two", 0, "")}, result{CheckRun: of(red, 2, fail, "only `grep` failed, and `two` stayed green", ""), fell: "`grep`", green: "`two`"}},
		"a build":                    {red, []ended{seen(runs, "go test", 1, undefined)}, result{CheckRun: of(red, 1, undefined, "the build failed: x.go:1:2: undefined: A", ""), fell: "`go test`"}},
		"the first of two that look": {red, []ended{seen(looks, "vet", 2, ""), seen(looks, "fmt", 3, ""), seen(runs, "test", 0, "ok\n"), seen(runs, "more", 0, "ok\n")}, result{CheckRun: of(red, 2, "ok\nok\n", "only `vet` failed, and `test`, `more` stayed green", ""), fell: "`vet`", green: "`test`, `more`"}},
		"what looks, no test":        {red, []ended{seen(looks, "vet", 2, ""), seen(runs, "test", 0, "collected 0 items\n")}, result{CheckRun: of(red, 2, "collected 0 items\n", "", "collected 0 items"), fell: "`vet`"}},
		"what was not run": {red, []ended{seen(looks, "vet", 2, ""), seen(runs, "test", 0, "ok\n"), {clause: clause{"make", acts}}, {clause: clause{"a", runs}}, {clause: clause{"b", runs}}},
			result{CheckRun: of(red, 2, "ok\n", "`vet` failed, and `a`, `b` behind it was not run", ""), fell: "`vet`", unseen: "`a`, `b`"}},
		"it leaves the shell":   {centurion.CheckRun{Passed: true, Output: "whole"}, []ended{seen(looks, "vet", 2, ""), {clause: clause{"exit 0", runs}, output: "ok"}}, result{CheckRun: of(centurion.CheckRun{}, 2, "ok\n", "only `vet` failed, and `exit 0` stayed green", ""), fell: "`vet`", green: "`exit 0`"}},
		"only the reader":       {red, []ended{deaf(1, "ok\n", "0", "0")}, result{CheckRun: of(red, 1, "ok\n", "only `grep PASS` failed, and `go test .` stayed green", ""), fell: "`grep PASS`", green: "`go test .`"}},
		"the reader and a look": {red, []ended{seen(looks, "vet", 2, ""), deaf(1, "ok\n", "0")}, result{CheckRun: of(red, 2, "ok\n", "only `vet` failed, and `go test .` stayed green", ""), fell: "`vet`", green: "`go test .`"}},
		"the reader, no test":   {red, []ended{deaf(1, "collected 0 items\n", "0")}, result{CheckRun: of(red, 1, "collected 0 items\n", "", "collected 0 items"), fell: "`grep PASS`"}},
		"the tests":             {red, []ended{deaf(1, fail, "0", "1")}, result{CheckRun: of(red, 1, fail, "", ""), fell: "`go test . | grep PASS`"}},
		"no code":               {red, []ended{deaf(1, fail)}, result{CheckRun: of(red, 1, fail, "", ""), fell: "`go test . | grep PASS`"}},
	} {
		if got := weigh(tt.run, tt.all); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, tt.want)
		}
	}
}

// Lines that only look like the script's own change nothing, and each clause has the output before its mark.
func TestChainRead(t *testing.T) {
	t.Parallel()
	c := chain{clauses: []clause{{"a", looks}, {"b", runs}, {"c", runs}}, hidden: map[int][]capture{1: {{text: "t"}}}}
	for output, want := range map[string]string{
		"":                          "-'' -'' -''",
		"out":                       "-'out' -'' -''",
		"\nout\n\nm 0:3\nmore\nend": "3'\nout\n' -'more\nend' -''",
		"m 0:0\n":                   "0'' -'' -''",
		"a\n\nm 0:0\nb\n\nm 0:0 1:7\nc\n\nm 0:0 1:7 2:1\nrest\n":  "0'a\n' 7'b\n' 1'c\n'",
		"a\nm -1:1 0:0 3:0 x:1 2: :\nb":                           "0'a' -'b' -''",
		"a\nm 0:0\nm| 4\nb\nxm| 5\nm 0:0 1:2\nm| 6\nm 0:9 1:9\nc": "0'a' 2'b\nxm| 5' [4] -'c'",
		"a\nm 1:5\nb": "-'' 5'a' -'b'",
	} {
		var got []string
		for i, e := range c.read(output, "m") {
			code := "-"
			if e.seen {
				code = fmt.Sprint(e.exit)
			}
			s := code + "'" + e.output + "'"
			if e.codes != nil {
				s += fmt.Sprintf(" %v", e.codes)
			}
			if got = append(got, s); e.clause != c.clauses[i] || !reflect.DeepEqual(e.hidden, c.hidden[i]) {
				t.Errorf("%q: %d is %+v", output, i, e)
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%q: %s, want %s", output, got, want)
		}
	}
}

// Where only texts were changed, what looks at them is the check; otherwise it is only what runs something of the project.
func TestWhatCountsForTexts(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	const command = "grep -q Limits %[1]s && sh t.sh"
	for file, want := range map[string]struct {
		proof     centurion.Proof
		line, why string
	}{
		"README.md": {centurion.ProofProven, "exit code 1 of `grep -q Limits README.md`", ""},
		"list.hs":   {centurion.ProofUnproven, "", "without the work only `grep -q Limits list.hs` fails, and `sh t.sh` stays green: no test depends on the work"},
	} {
		m := newMemory(map[string]files{"before": {"t.sh": "true\n", file: "x\n"}, "after": {"t.sh": "true\n", file: "x\nLimits\n"}})
		m.dir = t.TempDir()
		c := Checker{Runner: host{}}
		r, err := c.Prove(t.Context(), m, Work{Command: fmt.Sprintf(command, file), Before: "before", After: "after"}, nil)
		if err != nil || r.Proof != want.proof || r.Why != want.why || r.FailureLine != want.line || r.Passed != true || r.TestsMissWork {
			t.Errorf("%s: %v, %s, %q, %q, tests miss the work: %v", file, err, r.Proof, r.Why, r.FailureLine, r.TestsMissWork)
		}
	}
}

// A check that is red and then green on one tree is not missing better tests.
func TestFlakyMissesNoTests(t *testing.T) {
	t.Parallel()
	m := newMemory(map[string]files{"before": {"a.go": "package a\n"}, "after": {"a.go": "package a\n\nvar A = 2\n", "a_test.go": "package a\n"}})
	c := Checker{Runner: scripted(m, func(f files, nth int) (int, string) {
		if nth == 1 && strings.Contains(f["a.go"], "A") {
			return 1, failing
		}
		return 0, "ok"
	})}
	r, err := c.Prove(t.Context(), m, Work{Command: "go test", Before: "before", After: "after"}, nil)
	if err != nil || r.Proof != centurion.ProofFlaky || r.TestsMissWork || !r.Passed || r.Removed == "" {
		t.Errorf("%v, %+v", err, r)
	}
}
