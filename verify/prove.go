package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
)

const (
	// look is how much output of a run is examined, in bytes: the line that distinguishes a failing check from a broken build may be far from both ends.
	look = 256 << 10
	// keepRed is how much output of a run without the work is kept, in bytes: its tail has the failure.
	keepRed = 4 << 10
	// keepRemoved is how much of the reverted work is kept, in bytes.
	keepRemoved = 16 << 10
	// maxTries limits the single pieces of the work that are reverted, one after the other, when reverting all at once breaks the build.
	maxTries = 8
)

// Prove runs the command red, green and red again, and grades the result: see [centurion.Proof]. Red is the work's own checks on the state before the
// work. If that only breaks the build, the changed functions keep their signatures but do nothing; if this is impossible, or breaks the build too,
// single pieces are reverted, at most 8 hunks and 8 files. So a command usually runs 3 times, 4 for a new function, and once more if green fails. In a
// chain `A && B && C` the clauses are run separately without the work: only one that runs something of the project proves anything. Each run is limited
// by Timeout. told, which may be nil, is called after each run.
//
// The error is only set if ctx ended or the trees could not be handled; the receipt then holds the runs so far.
func (c *Checker) Prove(ctx context.Context, t Trees, w Work, told func(centurion.CheckRun)) (centurion.Receipt, error) {
	p := &proving{checker: c, trees: t, work: w, told: told, receipt: newReceipt(w.Command)}
	if p.receipt.Error != "" {
		return p.receipt.Receipt, nil
	}
	err := p.prove(ctx)
	p.receipt.Tree = w.After
	return p.receipt.Receipt, err
}

// proving makes one receipt.
type proving struct {
	checker *Checker
	trees   Trees
	work    Work
	told    func(centurion.CheckRun)
	receipt draft
	changes changes
	chain   *chain // the split command; nil if that would show nothing
	facts   facts
}

func (p *proving) prove(ctx context.Context) error {
	diff, err := p.trees.Diff(ctx, p.work.Before, p.work.After)
	if err != nil {
		return err
	}
	if p.changes, err = p.split(ctx, diff); err != nil {
		return err
	}
	p.facts = facts{trivial: trivial(p.work.Command), regression: p.work.Regression, changed: len(diff) > 0, work: p.changes.any(work), tests: p.changes.any(check), weakened: weakened(diff, p.work.Command)}
	p.receipt.Weakened = p.facts.weakened
	c, ok := chainOf(p.work.Command)
	if !ok {
		c, ok = heard(p.work.Command)
	}
	if ok && !p.work.Regression {
		if p.changes.documents() {
			c.whole()
		}
		c.strict = strictPipes(p.work.Command)
		p.chain = &c
	}
	if err := p.reds(ctx); err != nil {
		return err
	}
	passed, err := p.greens(ctx)
	if err != nil || !passed {
		return err
	}
	if failure := p.facts.failure(); failure != nil && !p.work.Regression {
		run, err := p.run(ctx, centurion.RunRedAgain, failure.tree)
		if err != nil {
			return err
		}
		p.facts.again = &run.CheckRun
		if p.receipt.FailureLine = telling(run.Output); p.receipt.FailureLine == "" {
			p.receipt.FailureLine = fmt.Sprintf("exit code %d", run.ExitCode)
			if run.fell != "" {
				p.receipt.FailureLine += " of " + run.fell
			}
		}
	}
	p.receipt.Proof, p.receipt.Why = judge(p.facts)
	p.receipt.TestsMissWork = p.receipt.Proof == centurion.ProofUnproven && p.facts.testsMissWork()
	p.receipt.Removed = clipRemoved(p.facts.removed())
	return nil
}

// run makes one run, reports it and keeps it with its whole output. The result only has the output of the clause that counts.
func (p *proving) run(ctx context.Context, kind centurion.RunKind, tree string) (result, error) {
	script, mark := p.work.Command, newMark()
	apart := p.chain != nil && kind != centurion.RunGreen
	if apart {
		script = p.chain.script(mark)
	}
	run, err := p.checker.runOn(ctx, p.trees, tree, p.work.Command, script, look)
	run.Kind = kind
	if err != nil {
		return result{CheckRun: run}, err
	}
	whole := run.Output
	got := result{CheckRun: run}
	if apart {
		all := p.chain.read(whole, mark)
		got, whole = weigh(run, all), transcript(all)
	} else {
		got.Empty = empty(whole)
		if !run.Passed {
			got.Broken = cmp.Or(run.Error, broken(p.work.Command, run.ExitCode, whole))
		}
	}
	kept := got.CheckRun
	if kept.Output = ends(whole, keep/2, keep/2); kind != centurion.RunGreen && !got.Passed {
		kept.Output = ends(whole, 0, keepRed)
	}
	kept.Digest = digest(kept.Output)
	p.receipt.Runs = append(p.receipt.Runs, kept)
	if kind == centurion.RunGreen {
		p.receipt.take(kept)
	}
	if p.told != nil {
		p.told(kept)
	}
	return got, nil
}

// greens runs the check on the result, once more if it fails.
func (p *proving) greens(ctx context.Context) (passed bool, err error) {
	for range 2 {
		run, err := p.run(ctx, centurion.RunGreen, p.work.After)
		if err != nil {
			return false, err
		}
		p.facts.green = append(p.facts.green, run.CheckRun)
		if run.Passed {
			return true, nil
		}
		if strings.HasPrefix(run.Error, changedFiles) {
			break // a retry would fail, too
		}
	}
	return false, nil
}

// reds looks for a tree without the work where the check itself fails, and stops at the first one.
func (p *proving) reds(ctx context.Context) error {
	if p.work.Regression {
		if p.facts.changed {
			_, err := p.try(ctx, attempt{tree: p.work.Before})
			return err
		}
		return nil
	}
	if !p.facts.work {
		return nil
	}
	tree, removed, err := p.without(ctx)
	if err != nil {
		return err
	}
	if ok, err := p.try(ctx, attempt{tree: tree, removed: removed}); err != nil || !ok {
		return err
	}
	for _, next := range []func(context.Context) error{p.revertBodies, p.stubBodies, p.pieces} {
		if p.settled() {
			return nil
		}
		if err := next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// settled reports whether another attempt would show nothing new: the check failed, or passed on a tree that builds, or a run did not end.
func (p *proving) settled() bool {
	return slices.ContainsFunc(p.facts.reds, func(a attempt) bool {
		return a.stayed() && a.how != onePiece || a.real() || a.run.Error != ""
	})
}

// try runs the check on a tree without the work. goOn is set if the run proved nothing.
func (p *proving) try(ctx context.Context, a attempt) (goOn bool, err error) {
	if slices.ContainsFunc(p.facts.reds, func(b attempt) bool { return b.tree == a.tree }) {
		return true, nil
	}
	if a.run, err = p.run(ctx, centurion.RunRed, a.tree); err != nil {
		return false, err
	}
	p.facts.reds = append(p.facts.reds, a)
	p.receipt.Runs[len(p.receipt.Runs)-1].Out = a.out()
	return !p.settled(), nil
}

// without makes the tree that has the work's checks but not the work.
func (p *proving) without(ctx context.Context) (tree, removed string, err error) {
	tree, removed, err = p.trees.Without(ctx, p.work.Before, p.work.After, func(f centurion.FileDiff, h *centurion.Hunk) bool {
		return p.changes.role(f, h) == work
	})
	if err != nil || len(p.changes.mixed) == 0 {
		return tree, removed, err
	}
	tree, err = p.trees.With(ctx, tree, p.changes.mixed)
	return tree, removed, err
}

// pieces reverts single pieces, the biggest first: hunk by hunk, then file by file.
func (p *proving) pieces(ctx context.Context) error {
	type piece struct {
		path   string
		header string
		size   int
	}
	var hunks, files []piece
	for _, f := range p.changes.diff {
		n := 0
		for i := range f.Hunks {
			if h := &f.Hunks[i]; p.changes.role(f, h) == work {
				n++
				hunks = append(hunks, piece{f.Path, h.Header, len(h.Text)})
			}
		}
		if n > 1 || n == 0 && p.changes.role(f, nil) == work {
			files = append(files, piece{f.Path, "", f.Added + f.Deleted})
		}
	}
	for _, list := range [][]piece{hunks, files} {
		slices.SortStableFunc(list, func(a, b piece) int { return b.size - a.size })
		for _, one := range list[:min(len(list), maxTries)] {
			tree, removed, err := p.trees.Without(ctx, p.work.Before, p.work.After, func(f centurion.FileDiff, h *centurion.Hunk) bool {
				return f.Path == one.path && p.changes.role(f, h) == work && (one.header == "" || h != nil && h.Header == one.header)
			})
			if err != nil {
				return err
			}
			if ok, err := p.try(ctx, attempt{how: onePiece, tree: tree, removed: removed, what: lacking{piece: one.path}}); err != nil || !ok {
				return err
			}
		}
	}
	return nil
}

// ends keeps the head and the tail of a text, with a line about the omission.
func ends(s string, head, tail int) string {
	if len(s) <= head+tail {
		return s
	}
	front := strings.ToValidUTF8(s[:head], "")
	back := s[len(s)-tail:]
	if i := strings.IndexByte(back, '\n'); i >= 0 && i < len(back)-1 {
		back = back[i+1:]
	}
	back = strings.ToValidUTF8(back, "")
	if front != "" && !strings.HasSuffix(front, "\n") {
		front += "\n"
	}
	return fmt.Sprintf("%s[%s left out]\n%s", front, centurion.Bytes(int64(len(s)-len(front)-len(back))), back)
}

// clipRemoved cuts a patch at the end of a line.
func clipRemoved(patch string) string {
	if len(patch) <= keepRemoved {
		return patch
	}
	cut := strings.LastIndexByte(patch[:keepRemoved], '\n') + 1
	return fmt.Sprintf("%s[%s left out]\n", strings.ToValidUTF8(patch[:cut], ""), centurion.Bytes(int64(len(patch)-cut)))
}

// lacking says what a tree without the work lacks.
type lacking struct {
	stubbed  functions // do nothing
	reverted functions // do what they did before the work
	empty    []string  // new files without their content
	piece    string    // the file that lacks a piece
}

// functions are names of functions, by file.
type functions struct {
	names []string // "Allow (limit.go)"
	count int
}

// with adds functions of one file.
func (f functions) with(path string, names []string) functions {
	if len(names) == 0 {
		return f
	}
	return functions{append(f.names, fmt.Sprintf("%s (%s)", centurion.Names(names, 3), path)), f.count + len(names)}
}

// String is a clause that follows "when".
func (l lacking) String() string {
	var parts []string
	add := func(n int, names []string, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, one+": "+names[0])
		case n > 1:
			parts = append(parts, many+": "+centurion.Names(names, 4))
		}
	}
	add(l.stubbed.count, l.stubbed.names, "this function does nothing", "these functions do nothing")
	add(l.reverted.count, l.reverted.names, "this function does what it did before the work", "these functions do what they did before the work")
	add(len(l.empty), l.empty, "this file is empty", "these files are empty")
	return strings.Join(parts, "; ")
}

// heading is the text above the patch. It says how much one failure shows: all functions were changed at once.
func (l lacking) heading() string {
	switch l.stubbed.count + l.reverted.count + len(l.empty) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("Taken out so that %s.\n", l)
	}
	return fmt.Sprintf("Taken out so that %s.\nAll at once: which of them the check depends on was not tried.\n", l)
}
