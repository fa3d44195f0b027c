package verify

import (
	"context"
	"slices"
	"strings"
	"testing"

	"centurion"
)

// prove proves work of two files by a runner that sees which of them are new.
func prove(t *testing.T, before, after files, command string, answer func(files) (int, string)) (centurion.Receipt, *memory) {
	t.Helper()
	m := newMemory(map[string]files{"before": before, "after": after})
	c := Checker{Runner: scripted(m, func(f files, _ int) (int, string) { return answer(f) })}
	r, err := c.Prove(t.Context(), m, Work{Command: command, Before: "before", After: "after"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r, m
}

const notInScope = "a.hs:3:4: error: not in scope\n"

// A piece is one of one file, also where another file has one at the same place; the receipt says which it was.
func TestPieceOfOneFile(t *testing.T) {
	t.Parallel()
	r, m := prove(t, files{"a.hs": "1\n", "b.hs": "1\n"}, files{"a.hs": "2\n", "b.hs": "2\n"}, "make test", func(f files) (int, string) {
		switch {
		case f["a.hs"] == "2\n" && f["b.hs"] == "2\n":
			return 0, "ok"
		case f["b.hs"] == "2\n":
			return 1, "AssertionError"
		}
		return 1, notInScope
	})
	if r.Proof != centurion.ProofProven || !strings.Contains(r.Removed, "a.hs") || strings.Contains(r.Removed, "b.hs") || len(r.Runs) != 4 {
		t.Fatalf("%s, %s, removed %s", r.Proof, r.Why, r.Removed)
	}
	if out, tree := r.Runs[1].Out, m.trees[r.Runs[1].Tree]; out != "a piece of a.hs taken out" || tree["b.hs"] != "2\n" || r.Runs[0].Out != "" {
		t.Errorf("%q on %v", out, tree)
	}
}

// Pieces of a file that only make sense together are taken out together, after each by itself.
func TestPiecesOfAFileTogether(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat("same\n", 20)
	r, _ := prove(t, files{"a.hs": lines, "b.hs": "1\n"}, files{"a.hs": "one\n" + lines + "two\n", "b.hs": "2\n"}, "make test", func(f files) (int, string) {
		switch one, two := strings.Contains(f["a.hs"], "one"), strings.Contains(f["a.hs"], "two"); {
		case f["b.hs"] != "2\n" || one != two:
			return 1, notInScope
		case one:
			return 0, "ok"
		}
		return 1, "AssertionError"
	})
	if r.Proof != centurion.ProofProven || !strings.Contains(r.Removed, "+one") || !strings.Contains(r.Removed, "+two") || strings.Contains(r.Removed, "b.hs") {
		t.Errorf("%s, %s, removed %s", r.Proof, r.Why, r.Removed)
	}
}

// A receipt says that tests miss the work where some were changed, and only there.
func TestReceiptOfTestsThatMiss(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after files
		want  bool
	}{
		"with tests":    {files{"a.go": "package a\n\nvar A = 2\n", "a_test.go": "package a\n\nfunc TestA(t *testing.T) {}\n"}, true},
		"without tests": {files{"a.go": "package a\n\nvar A = 2\n"}, false},
	} {
		r, _ := prove(t, files{"a.go": "package a\n\nvar A = 1\n"}, tt.after, "go test", func(files) (int, string) { return 0, "ok" })
		if r.Proof != centurion.ProofUnproven || r.TestsMissWork != tt.want || r.Why != "the check is green without the work too" {
			t.Errorf("%s: %s, %s, tests miss the work: %v", name, r.Proof, r.Why, r.TestsMissWork)
		}
	}
}

// A regression check runs on the tree before the work, and is stopped there like everywhere else.
func TestRegressionRunsBefore(t *testing.T) {
	t.Parallel()
	trees := map[string]files{"before": {"a": "1\n"}, "after": {"a": "2\n", "a_test.go": "package a\n"}}
	m := newMemory(trees)
	scripts := []string{}
	c := Checker{Runner: runner(func(_ context.Context, c centurion.Command) (centurion.CommandResult, error) {
		scripts = append(scripts, c.Script) // as it stands: no clause of it is looked at alone
		return centurion.CommandResult{Output: "ok"}, nil
	})}
	work := Work{Command: "gofmt -l . && go test", Before: "before", After: "after", Regression: true}
	if r, err := c.Prove(t.Context(), m, work, nil); err != nil || r.Proof != centurion.ProofRegression || r.Runs[0].Tree != "before" || r.Runs[1].Tree != "after" || r.FailureLine != "" || r.TestsMissWork || !slices.Equal(scripts, []string{work.Command, work.Command}) {
		t.Errorf("%v, %+v, %q", err, r, scripts)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	c.Runner = runner(func(ctx context.Context, _ centurion.Command) (centurion.CommandResult, error) {
		cancel(centurion.ErrShutdown)
		return centurion.CommandResult{}, ctx.Err()
	})
	if r, err := c.Prove(ctx, m, work, nil); centurion.KindOf(err) != centurion.KindInterrupted || len(r.Runs) != 0 || err.Error() != `verify: "gofmt -l . && go test" was stopped before it ended: interrupted` {
		t.Errorf("%v, %+v", err, r)
	}
}

// Of a run that failed with the work, head and tail are kept, as of one that passed.
func TestFailedGreenKeepsBothEnds(t *testing.T) {
	t.Parallel()
	r, _ := prove(t, files{"a.txt": "1\n"}, files{"a.txt": "2\n"}, "make", func(files) (int, string) {
		return 1, "first\n" + strings.Repeat("a line of output\n", 4000) + failing
	})
	if green := r.Runs[1]; green.Kind != centurion.RunGreen || !strings.HasPrefix(green.Output, "first\n") || !strings.HasSuffix(green.Output, failing) || r.Output != green.Output {
		t.Errorf("%s: %d bytes, %.60q", green.Kind, len(green.Output), green.Output)
	}
}

// What was taken out is cut at a line if it is long, and names a renamed file as it was.
func TestPatchOfRemoved(t *testing.T) {
	t.Parallel()
	exact := strings.Repeat("x", keepRemoved)
	if got := clipRemoved(exact); got != exact {
		t.Errorf("%d bytes of %d", len(got), len(exact))
	}
	long := "first\n" + strings.Repeat("y", 9) + "\n" + strings.Repeat("z", 16<<10)
	if got := clipRemoved(long); got != "first\nyyyyyyyyy\n[16 KB left out]\n" {
		t.Errorf("%.80q", got)
	}
	got := patch([]centurion.FileDiff{{FileChange: centurion.FileChange{Path: "b", Old: "a"}, Hunks: []centurion.Hunk{{Header: "@@ -1 +1 @@\n", Text: "-1\n+2\n"}}}, {FileChange: centurion.FileChange{Path: "c", Binary: true}},
		{FileChange: centurion.FileChange{Path: "d"}, Hunks: []centurion.Hunk{{Header: "@@ -3 +3 @@ f", Text: "-3\n"}}}})
	if want := "--- a/a\n+++ b/b\n@@ -1 +1 @@\n-1\n+2\n--- a/d\n+++ b/d\n@@ -3 +3 @@ f\n-3\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Work on texts for people only is told from other work, whatever their names are.
func TestDocuments(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{"README.md": true, "docs/a.MD": true, "a.rst": true, "a.adoc": true, "a.txt": true, "a.org": true, "a.tex": true, "a.markdown": true, "LICENSE": true, "README": true, "sub/CHANGELOG": true,
		"NOTICE": true, "AUTHORS": true, "COPYING": true, "a.go": false, "Readme": false, "a.md.go": false, "a_test.go": true} {
		c := changes{command: "make", diff: []centurion.FileDiff{{FileChange: centurion.FileChange{Path: path, Status: "modified"}, Hunks: []centurion.Hunk{{Header: "@@ -1 +1 @@", Text: "-1\n+2\n", NewStart: 1, NewLines: 1}}}}}
		if got := c.documents(); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
