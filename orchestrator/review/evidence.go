package review

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"centurion"
	"centurion/orchestrator/state"
	"centurion/verify"
)

// grade is the evidence of a receipt. A check that can only pass, ran no test, was weakened or is flaky shows nothing.
func grade(r centurion.Receipt) centurion.Evidence {
	switch {
	case !r.Passed || r.Proof == centurion.ProofFlaky || len(r.Weakened) > 0 || verify.ShowsNothing(r):
		return centurion.EvidenceNone
	case r.Proof == centurion.ProofProven:
		return centurion.EvidenceProven
	}
	return centurion.EvidenceChecked
}

// itemGrade is the evidence of an item's receipts: that of the weakest command. A command that has proven earlier work of the item
// keeps that grade while it passes.
func itemGrade(item string, commands []string, receipts []centurion.Receipt) centurion.Evidence {
	var all []centurion.Evidence
	for _, command := range commands {
		r := Newest(receipts, item, command)
		if r == nil {
			return centurion.EvidenceNone
		}
		g := grade(*r)
		if g == centurion.EvidenceChecked && r.Proof.Solid() && slices.ContainsFunc(receipts, func(o centurion.Receipt) bool {
			return o.Item == item && strings.TrimSpace(o.Command) == command && grade(o) == centurion.EvidenceProven
		}) {
			g = centurion.EvidenceProven
		}
		all = append(all, g)
	}
	return centurion.Weakest(all)
}

// missionGrade is the evidence of a mission: that of its weakest done item. Without items it is the strongest of the checks named in
// the goal; without those, of the check given by its own agent; without that, of the configured ones. All of these judge the same work,
// while an item's check judges that item alone. reviewed means that a review of all work has passed.
func missionGrade(items []centurion.Evidence, checks [][]centurion.Evidence, reviewed bool) centurion.Evidence {
	if len(items) > 0 {
		return centurion.Weakest(items)
	}
	e := centurion.EvidenceNone
	if reviewed {
		e = centurion.EvidenceReviewed
	}
	for _, source := range checks {
		if len(source) > 0 {
			return centurion.Strongest(append(source, e))
		}
	}
	return e
}

// Evidence returns the evidence that the mission achieved its goal; dir is the project's directory.
func (v View) Evidence(dir string) centurion.Evidence {
	if v.Unread != nil {
		return centurion.EvidenceNone
	}
	var items, reviews []centurion.Evidence
	for _, w := range v.Proofs() {
		if v.Plan.IsReview(w.Item.ID) {
			reviews = append(reviews, w.Evidence)
		} else {
			items = append(items, w.Evidence)
		}
	}
	if len(items) == 0 { // the plan has only reviews
		items = reviews
	}
	own := v.Mission.Options.Verify
	if v.Plan.Doc != nil {
		own = slices.Concat(own, v.Plan.Doc.Checks())
	}
	var checks [][]centurion.Evidence
	for _, source := range [][]string{GoalChecks(v.Mission.Goal, dir), {v.Mission.Check}, own} {
		var grades []centurion.Evidence
		for _, command := range verify.Distinct(source) {
			if r := newestFinal(v.Receipts, command); r != nil {
				grades = append(grades, grade(*r))
			}
		}
		checks = append(checks, grades)
	}
	return missionGrade(items, checks, v.wholeReviewed())
}

// newestFinal returns the newest receipt of a command on the finished work, or nil.
func newestFinal(receipts []centurion.Receipt, command string) *centurion.Receipt {
	for _, r := range slices.Backward(receipts) {
		if r.Final && strings.TrimSpace(r.Command) == command {
			return &r
		}
	}
	return nil
}

// wholeReviewed reports whether a review without an item, begun after all work had ended, has passed.
func (v View) wholeReviewed() bool {
	last := v.Own
	for _, t := range v.Tasks {
		if at := WorkEnded(t); len(t.Files)+len(t.Landed) > 0 && at.After(last) {
			last = at
		}
	}
	return slices.ContainsFunc(v.Tasks, func(t centurion.Task) bool {
		return state.Approves(t) && t.Item == "" && !t.Started.Before(last)
	})
}

// GoalChecks lists the checks named in a goal whose programs exist or may be created by the mission; dir is the project's directory.
func GoalChecks(goal, dir string) []string {
	return verify.InGoal(goal, func(program string) bool {
		if !strings.Contains(program, "/") {
			_, err := exec.LookPath(program)
			return err == nil
		}
		if !filepath.IsAbs(program) {
			program = filepath.Join(dir, program)
		}
		info, err := os.Stat(program)
		return err != nil || !info.IsDir() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) // a missing program may be what the mission creates
	})
}

// Bare reports whether a mission has no evidence at all, although it has no plan or its person requires proof.
func (v View) Bare(dir string) bool {
	return (!v.Mission.HadItems || v.Mission.Options.RequireProof) && v.Evidence(dir) == centurion.EvidenceNone
}

// Lacks is shown to a person whose mission lacks the required proof.
const Lacks = "nothing shows that it is done, and proof is required: no check has passed that could tell, and no review. " +
	"Say which command shows it (centurion send 0/ \"verify with …\"), then resume"
