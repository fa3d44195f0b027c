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

// grade is what the receipt of a command shows. A check that can only pass, that ran no test, that was weakened or that is flaky shows nothing.
func grade(r centurion.Receipt) centurion.Evidence {
	switch {
	case !r.Passed || r.Proof == centurion.ProofFlaky || len(r.Weakened) > 0 || verify.ShowsNothing(r):
		return centurion.EvidenceNone
	case r.Proof == centurion.ProofProven:
		return centurion.EvidenceProven
	}
	return centurion.EvidenceChecked
}

// itemGrade is what the receipts of an item's commands show: as little as the weakest of them. What earlier work of the item has proven by a
// command stays proven while that is green.
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

// missionGrade is the evidence of a mission: that of its weakest done item. Without items it is what its checks show, the strongest of
// those that the goal names; without any, of the one that its own agent gave, and without that of the configured ones. All of them judge the
// same work, while an item's check judges that item alone. reviewed says that a review of all of it has passed.
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

// Evidence says what shows that the mission did what it was to do; dir is that of the project.
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
	if len(items) == 0 { // a plan of reviews alone
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

// newestFinal returns the newest receipt of a command that was run on the finished work, or nil.
func newestFinal(receipts []centurion.Receipt, command string) *centurion.Receipt {
	for _, r := range slices.Backward(receipts) {
		if r.Final && strings.TrimSpace(r.Command) == command {
			return &r
		}
	}
	return nil
}

// wholeReviewed reports whether a review without an item has passed that began after all work had ended.
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

// GoalChecks lists the checks that a goal names, of programs that are there or may be what is to be made; dir is that of the project.
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
		return err != nil || !info.IsDir() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) // what is not there may be what is to be made
	})
}

// Bare reports whether nothing shows what a mission has done that either has no plan or whose person wants proof.
func (v View) Bare(dir string) bool {
	return (!v.Mission.HadItems || v.Mission.Options.RequireProof) && v.Evidence(dir) == centurion.EvidenceNone
}

// Lacks tells a person what a mission lacks whose end has to be proven.
const Lacks = "nothing shows that it is done, and proof is required: no check has passed that could tell, and no review. " +
	"Say which command shows it (centurion send 0/ \"verify with …\"), then resume"
