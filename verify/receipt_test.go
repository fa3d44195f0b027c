package verify

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"centurion"
)

// unable is memory of which one operation fails.
type unable struct {
	*memory
	at string
}

var errUnable = errors.New("no disk")

func (u *unable) fails(operation string) error {
	if u.at == operation {
		return errUnable
	}
	return nil
}

func (u *unable) Lay(ctx context.Context, tree string) (centurion.Place, error) {
	if err := u.fails("lay " + tree); err != nil {
		return centurion.Place{}, err
	}
	return u.memory.Lay(ctx, tree)
}

func (u *unable) Changed(ctx context.Context) ([]string, error) {
	if err := u.fails("changed"); err != nil {
		return nil, err
	}
	return u.memory.Changed(ctx)
}

func (u *unable) Diff(ctx context.Context, from, to string) ([]centurion.FileDiff, error) {
	if err := u.fails("diff"); err != nil {
		return nil, err
	}
	return u.memory.Diff(ctx, from, to)
}

func (u *unable) Read(ctx context.Context, tree, path string) ([]byte, error) {
	if err := u.fails("read"); err != nil {
		return nil, err
	}
	return u.memory.Read(ctx, tree, path)
}

func (u *unable) Without(ctx context.Context, from, to string, out func(centurion.FileDiff, *centurion.Hunk) bool) (string, string, error) {
	if err := u.fails("without"); err != nil {
		return "", "", err
	}
	return u.memory.Without(ctx, from, to, out)
}

func (u *unable) With(ctx context.Context, tree string, put map[string][]byte) (string, error) {
	if err := u.fails("with"); err != nil {
		return "", err
	}
	return u.memory.With(ctx, tree, put)
}

// A tree that cannot be handled is an error of the proof, and never a grade.
func TestProveWithoutTrees(t *testing.T) {
	t.Parallel()
	const tests = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() { assert!(super::a()) }\n}\n"
	for _, at := range []string{"", "diff", "read", "without", "with", "changed", "lay after"} {
		m := newMemory(map[string]files{"before": {"lib.rs": "fn a() -> bool { false }\n", "b.go": "package b\n\nfunc B() int {\n\treturn 1\n}\n"},
			"after": {"lib.rs": "fn a() -> bool { true }\n\n" + tests, "b.go": "package b\n\nfunc B() int {\n\treturn 2\n}\n"}})
		c := Checker{Runner: scripted(m, func(t files, _ int) (int, string) {
			if strings.Contains(t["lib.rs"], "true") {
				return 0, "running 1 test"
			}
			return 101, "running 1 test\nthread 'tests::a' panicked at lib.rs:6:9\n"
		})}
		r, err := c.Prove(t.Context(), &unable{m, at}, Work{Command: "cargo test", Before: "before", After: "after"}, nil)
		if !errors.Is(err, errUnable) != (at == "") || (r.Proof == centurion.ProofProven) != (at == "") {
			t.Errorf("%s: %v, proof %q", at, err, r.Proof)
		}
	}
	m := newMemory(map[string]files{"after": {"a": "1"}})
	c := Checker{Runner: scripted(m, func(files, int) (int, string) { return 0, "ok" })}
	for at, ran := range map[string]string{"lay after": "", "changed": "ok"} {
		r, err := c.RunOn(t.Context(), &unable{m, at}, "after", "make")
		if !errors.Is(err, errUnable) || r.Output != ran || r.Tree != "after" || ran == "" && (r.Passed || r.ExitCode != -1) {
			t.Errorf("%s: %v, %+v", at, err, r)
		}
	}
}

// Who asks for a proof is told of each run as the receipt keeps it, when it has ended.
func TestProveTellsOfRuns(t *testing.T) {
	t.Parallel()
	m := newMemory(map[string]files{"before": {"a.txt": "1\n"}, "after": {"a.txt": "2\n"}})
	n := 0
	c := Checker{Runner: scripted(m, func(t files, _ int) (int, string) {
		n++
		if t["a.txt"] == "2\n" {
			return 0, "ok"
		}
		return 3, " \n"
	})}
	var told []centurion.CheckRun
	r, err := c.Prove(t.Context(), m, Work{Command: "./check", Before: "before", After: "after"}, func(run centurion.CheckRun) {
		if told = append(told, run); len(told) != n {
			t.Errorf("told of %d runs of %d", len(told), n)
		}
	})
	if err != nil || r.Proof != centurion.ProofProven || r.FailureLine != "exit code 3" || !reflect.DeepEqual(told, r.Runs) {
		t.Errorf("%v, proof %q, died %q, told of %+v\nkept %+v", err, r.Proof, r.FailureLine, told, r.Runs)
	}
	if r.Runs[0].Tree != "before" || r.Runs[1].Tree != "after" || r.Runs[2].Tree != "before" || r.Runs[0].ExitCode != 3 || r.Runs[0].Passed || r.Runs[0].Time.IsZero() {
		t.Errorf("%+v", r.Runs)
	}
}

// The limits of what a receipt keeps are those of its readers: 8 KB of a run, 4 KB of one without the work, seen in 256 KB.
func TestLimitsOfAReceipt(t *testing.T) {
	t.Parallel()
	limits := map[int]bool{}
	c := Checker{Runner: runner(func(_ context.Context, c centurion.Command) (centurion.CommandResult, error) {
		limits[c.Keep] = true
		return centurion.CommandResult{ExitCode: 1, Output: strings.Repeat("a line of output\n", 1000)}, nil
	})}
	if _, err := c.Run(t.Context(), "/dir", "make"); err != nil || !limits[8192] || len(limits) != 1 {
		t.Errorf("%v, limits %v", err, limits)
	}
	m := newMemory(map[string]files{"before": {"a.txt": "1\n"}, "after": {"a.txt": "2\n"}})
	r, err := c.Prove(t.Context(), m, Work{Command: "make", Before: "before", After: "after"}, nil)
	if err != nil || len(limits) != 2 || !limits[256<<10] || len(r.Runs) < 2 {
		t.Fatalf("%v, limits %v, %d runs", err, limits, len(r.Runs))
	}
	for i, want := range []int{4 << 10, 8 << 10} {
		if n := len(r.Runs[i].Output); n > want+40 || n < want-40 {
			t.Errorf("%d bytes of run %d are kept, want about %d", n, i, want)
		}
	}
}

// A run has the workspace of its place, and connections where the caller makes any.
func TestPlaceOfRun(t *testing.T) {
	t.Parallel()
	dial := centurion.Dial(nil)
	asked := 0
	var got centurion.Command
	c := Checker{Runner: runner(func(_ context.Context, c centurion.Command) (centurion.CommandResult, error) {
		got = c
		return centurion.CommandResult{}, nil
	}), Connect: func() centurion.Dial { asked++; return dial }}
	if _, err := c.once(t.Context(), centurion.Place{Dir: "/d", Workspace: "w"}, "a", "b", 7); err != nil || asked != 1 {
		t.Errorf("asked for connections %d times, %v", asked, err)
	}
	if got.Workspace != "w" || got.Dir != "/d" || got.Script != "b" || got.Keep != 7 || got.Network || !got.Check {
		t.Errorf("ran %+v", got)
	}
}

// What a reader is told of a failure is the last run without the work, its head and its tail.
func TestWithoutWork(t *testing.T) {
	t.Parallel()
	run := func(kind centurion.RunKind, out string) centurion.CheckRun {
		return centurion.CheckRun{Kind: kind, Output: out}
	}
	proof := centurion.Receipt{Output: "green", Runs: []centurion.CheckRun{run(centurion.RunRed, "first"), run(centurion.RunRed, " \nsecond\n"), run(centurion.RunGreen, "green"), run(centurion.RunRedAgain, "again")}}
	for name, tt := range map[string]struct {
		r     centurion.Receipt
		limit int
		want  string
	}{
		"the last one":   {proof, 100, "second"},
		"as long":        {proof, 6, "second"},
		"longer":         {proof, 4, "se\n[…]\nnd"},
		"none":           {centurion.Receipt{Output: " green\n", Runs: []centurion.CheckRun{run(centurion.RunGreen, "run")}}, 100, "green"},
		"in a character": {centurion.Receipt{Output: "aüböc"}, 4, "a\n[…]\nc"},
	} {
		if got := WithoutWork(tt.r, tt.limit); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Why nothing was proven is said of the attempt that shows most.
func TestUndecided(t *testing.T) {
	t.Parallel()
	of := func(h how, r result) attempt { return attempt{how: h, run: r, what: lacking{piece: "a.go"}} }
	failed := func(r centurion.CheckRun) result { return result{CheckRun: r} }
	passed, broken := failed(centurion.CheckRun{Passed: true}), failed(centurion.CheckRun{Broken: "undefined: A"})
	formatter := result{CheckRun: centurion.CheckRun{Broken: "x"}, green: "go test ./...", fell: "gofmt"}
	stub := func(r result) attempt {
		return attempt{how: stubbed, run: r, what: lacking{stubbed: functions{}.with("a.go", []string{"A"})}}
	}
	for want, reds := range map[string][]attempt{
		"without the work the build breaks, which proves nothing":                                       nil,
		"without the work the build breaks, which proves nothing: undefined: A":                         {of(allOut, broken)},
		"without the work only gofmt fails, and go test ./... stays green: no test depends on the work": {of(allOut, formatter)},
		"without a piece of a.go only gofmt fails, and go test ./... stays green":                       {of(allOut, broken), of(onePiece, formatter)},
		"go test ./... stays green when this function does nothing: A (a.go); only gofmt fails":         {of(allOut, broken), stub(formatter)},
		"it stays green when this function does nothing: A (a.go)":                                      {of(allOut, broken), stub(passed)},
		"it is green without a piece of a.go":                                                           {of(allOut, broken), of(onePiece, passed)},
		"the check is green without the work too":                                                       {of(allOut, passed)},
		"without the work it did not end: timed out after 1s":                                           {of(allOut, failed(centurion.CheckRun{Error: "timed out after 1s", Broken: "timed out after 1s"}))},
		"without the work it changed tracked files: a":                                                  {of(allOut, failed(centurion.CheckRun{Error: "it changed tracked files: a", Broken: "x"}))},
		"without the work it runs no test: none":                                                        {of(allOut, failed(centurion.CheckRun{Empty: "none"}))},
		"without the work only `grep` fails, which does not run the work":                               {of(allOut, result{CheckRun: centurion.CheckRun{Broken: "only `grep` fails, which does not run the work"}, unseen: "grep"})},
		"without the work it runs no test: collected 0":                                                 {of(allOut, broken), of(reverted, failed(centurion.CheckRun{Empty: "collected 0"}))},
	} {
		if got := undecided(reds); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	for how, want := range map[how]string{allOut: "", reverted: "changed functions as they were", stubbed: "functions that do nothing", onePiece: "a piece of a.go taken out"} {
		if got := (attempt{how: how, what: lacking{piece: "a.go"}}).out(); got != want {
			t.Errorf("%d: %q, want %q", how, got, want)
		}
	}
}

// What a tree lacks is said with how much one failure can show.
func TestHeadingOfWhatIsLacking(t *testing.T) {
	t.Parallel()
	none := functions{}
	for want, l := range map[string]lacking{
		"": {},
		"Taken out so that this function does nothing: A (a.go).\n":                                                        {stubbed: none.with("a.go", []string{"A"}).with("b.go", nil)},
		"Taken out so that this function does what it did before the work: A (a.go).\n":                                    {reverted: none.with("a.go", []string{"A"})},
		"Taken out so that this file is empty: a.txt.\n":                                                                   {empty: []string{"a.txt"}},
		"Taken out so that these files are empty: a, b.\nAll at once: which of them the check depends on was not tried.\n": {empty: []string{"a", "b"}},
		"Taken out so that these functions do nothing: A, B, C and 1 more (a.go), E (b.go); this file is empty: a.txt.\nAll at once: which of them the check depends on was not tried.\n": {
			stubbed: none.with("a.go", []string{"A", "B", "C", "D"}).with("b.go", []string{"E"}), empty: []string{"a.txt"}},
	} {
		if got := l.heading(); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
