package verify

import (
	"fmt"
	"slices"
	"strings"

	"centurion"
)

// how is the way the work was reverted.
type how int

const (
	allOut   how = iota // all of it; its checks stay
	reverted            // changed functions have their old bodies, new ones do nothing
	stubbed             // changed functions do nothing
	onePiece            // one hunk or one file
)

// attempt is one run on a tree without the work, or without a part of it.
type attempt struct {
	how     how
	tree    string
	removed string
	what    lacking
	run     result
}

// out says what was reverted, if it was not all of the work.
func (a attempt) out() string {
	switch a.how {
	case reverted:
		return "changed functions as they were"
	case stubbed:
		return "functions that do nothing"
	case onePiece:
		return "a piece of " + a.what.piece + " taken out"
	}
	return ""
}

// real reports whether the check itself failed, and not the build.
func (a attempt) real() bool { return failed(a.run.CheckRun) }

// stayed reports whether the tests that could see the work passed.
func (a attempt) stayed() bool { return a.run.Passed || a.run.green != "" }

func failed(r centurion.CheckRun) bool { return !r.Passed && r.Broken == "" && r.Empty == "" }

// facts are what the verdict depends on.
type facts struct {
	trivial    bool // it can only pass
	regression bool
	changed    bool // anything was
	work       bool // something else than checks was
	tests      bool // checks were
	weakened   []string
	reds       []attempt
	green      []centurion.CheckRun
	again      *centurion.CheckRun
}

// failure returns the attempt where the check itself failed, or nil.
func (f facts) failure() *attempt {
	for i := range f.reds {
		if f.reds[i].real() {
			return &f.reds[i]
		}
	}
	return nil
}

// removed is the patch of the attempt that counts.
func (f facts) removed() string {
	if a := f.failure(); a != nil {
		return a.removed
	}
	if len(f.reds) > 0 {
		return f.reds[len(f.reds)-1].removed
	}
	return ""
}

// testsMissWork reports whether only better tests are missing: those that the work added or changed do not run, or pass without it.
func (f facts) testsMissWork() bool {
	if f.trivial || f.regression || !f.work || !f.tests || len(f.weakened) > 0 || f.failure() != nil {
		return false
	}
	if f.green[len(f.green)-1].Empty != "" {
		return true
	}
	return slices.ContainsFunc(f.reds, func(a attempt) bool { return a.stayed() && a.how != onePiece && a.run.Empty == "" })
}

// judge grades the runs of a check that passed and says in one line why the grade is no better.
func judge(f facts) (centurion.Proof, string) {
	green := f.green[len(f.green)-1]
	switch failure := f.failure(); {
	case len(f.green) > 1:
		return centurion.ProofFlaky, "it was red and then green on the same tree"
	case len(f.weakened) > 0:
		return centurion.ProofUnproven, "checks were weakened: " + centurion.Names(f.weakened, 3)
	case green.Empty != "":
		return centurion.ProofUnproven, "it ran no test: " + green.Empty
	case !f.changed:
		return centurion.ProofUnproven, "nothing was changed"
	case f.regression && f.trivial: // otherwise a check that can only pass is green without the work too
		return centurion.ProofUnproven, "it can only pass, whatever is done"
	case f.regression:
		return judgeRegression(f.reds)
	case !f.work:
		return centurion.ProofUnproven, "only tests were changed; nothing could be taken out"
	case failure == nil:
		return centurion.ProofUnproven, undecided(f.reds)
	case f.again == nil || f.again.Passed:
		return centurion.ProofFlaky, "without the work it was red, and green when it was run again"
	case !failed(*f.again):
		return centurion.ProofFlaky, "without the work it failed, and run again it ended otherwise: " + f.again.Broken + f.again.Empty
	}
	return centurion.ProofProven, ""
}

func judgeRegression(reds []attempt) (centurion.Proof, string) {
	switch {
	case len(reds) == 0 || !reds[0].run.Passed:
		return centurion.ProofUnproven, "it was red before the work, so that it is no regression check"
	case reds[0].run.Empty != "":
		return centurion.ProofUnproven, "before the work it ran no test: " + reds[0].run.Empty
	}
	return centurion.ProofRegression, ""
}

// undecided says why no attempt proved anything.
func undecided(reds []attempt) string {
	why := "without the work the build breaks, which proves nothing"
	for _, a := range reds {
		switch {
		case a.run.green != "" && a.how == allOut:
			return fmt.Sprintf("without the work only %s fails, and %s stays green: no test depends on the work", a.run.fell, a.run.green)
		case a.run.green != "" && a.how == onePiece:
			why = fmt.Sprintf("without a piece of %s only %s fails, and %s stays green", a.what.piece, a.run.fell, a.run.green)
		case a.run.green != "":
			return fmt.Sprintf("%s stays green when %s; only %s fails", a.run.green, a.what, a.run.fell)
		case a.run.unseen != "":
			why = "without the work " + a.run.Broken
		case a.run.Passed && a.how == allOut:
			return "the check is green without the work too"
		case a.run.Passed && a.how == onePiece:
			why = "it is green without a piece of " + a.what.piece
		case a.run.Passed:
			return fmt.Sprintf("it stays green when %s", a.what)
		case strings.HasPrefix(a.run.Error, "timed out"):
			return "without the work it did not end: " + a.run.Error
		case a.run.Error != "":
			return "without the work " + a.run.Error
		case a.run.Empty != "":
			why = "without the work it runs no test: " + a.run.Empty
		}
	}
	if len(reds) > 0 && reds[len(reds)-1].run.Broken != "" && strings.HasPrefix(why, "without the work the build") {
		why += ": " + reds[0].run.Broken
	}
	return why
}
