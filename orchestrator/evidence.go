package orchestrator

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"centurion"
	"centurion/orchestrator/state"
	"centurion/store"
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
		r := newest(receipts, item, command)
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

// evidence says what shows that the mission did what it was to do.
func (m *mission) evidence(ctx context.Context) (centurion.Evidence, error) {
	rec, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return centurion.EvidenceNone, err
	}
	p, err := m.plan.Read()
	if err != nil { // the plan's own fault is told elsewhere
		return centurion.EvidenceNone, nil
	}
	all, err := m.worths(ctx, p)
	if err != nil {
		return centurion.EvidenceNone, err
	}
	var items, reviews []centurion.Evidence
	for _, w := range all {
		if p.IsReview(w.item.ID) {
			reviews = append(reviews, w.evidence)
		} else {
			items = append(items, w.evidence)
		}
	}
	if len(items) == 0 { // a plan of reviews alone
		items = reviews
	}
	receipts, err := m.h.cfg.Store.Receipts(ctx, m.st.ID)
	if err != nil {
		return centurion.EvidenceNone, err
	}
	own := rec.Options.Verify
	if p.Doc != nil {
		own = slices.Concat(own, p.Doc.Checks())
	}
	var checks [][]centurion.Evidence
	for _, source := range [][]string{m.goalChecks(rec), {rec.Check}, own} {
		var grades []centurion.Evidence
		for _, command := range verify.Distinct(source) {
			if r := newestFinal(receipts, command); r != nil {
				grades = append(grades, grade(*r))
			}
		}
		checks = append(checks, grades)
	}
	reviewed, err := m.wholeReviewed(ctx)
	return missionGrade(items, checks, reviewed), err
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
func (m *mission) wholeReviewed(ctx context.Context) (bool, error) {
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return false, err
	}
	last, err := m.ownLanding(ctx)
	if err != nil {
		return false, err
	}
	for _, t := range tasks {
		if at := workEnded(t); len(t.Files)+len(t.Landed) > 0 && at.After(last) {
			last = at
		}
	}
	return slices.ContainsFunc(tasks, func(t centurion.Task) bool {
		return state.Approves(t) && t.Item == "" && !t.Started.Before(last)
	}), nil
}

// goalChecks lists the checks that the goal names.
func (m *mission) goalChecks(rec centurion.Mission) []string {
	return verify.InGoal(rec.Goal, func(program string) bool {
		if !strings.Contains(program, "/") {
			_, err := exec.LookPath(program)
			return err == nil
		}
		if !filepath.IsAbs(program) {
			program = filepath.Join(m.h.cfg.Workspace.Dir(), program)
		}
		info, err := os.Stat(program)
		return err != nil || !info.IsDir() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) // what is not there may be what is to be made
	})
}

// changedAnything reports whether the mission has changed any file of the project.
func (m *mission) changedAnything(ctx context.Context, rec centurion.Mission) (bool, error) {
	if m.iso.Isolated() {
		base, err := m.iso.Base(ctx)
		if err != nil {
			return false, err
		}
		tip, err := m.iso.Tip(ctx)
		if err != nil {
			return false, err
		}
		same, err := m.iso.SameTree(ctx, base.Commit, tip)
		return !same, err
	}
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.st.ID)
	return m.wrote.Load() || len(rec.Wrote) > 0 ||
		slices.ContainsFunc(tasks, func(t centurion.Task) bool { return len(t.Files)+len(t.Landed) > 0 }), err
}

// bare reports whether the mission would end with nothing to show for it, and its own agent was not asked about that yet: without a plan,
// nothing was changed and no check shows anything; or its person wants proof, and there is none.
func (m *mission) bare(ctx context.Context) (bool, error) {
	rec, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	if err != nil || m.questioned || rec.HadItems && !rec.Options.RequireProof || state.Alone(m.st.Profile) {
		return false, err
	}
	if e, err := m.evidence(ctx); err != nil || e != centurion.EvidenceNone {
		return false, err
	}
	if rec.Options.RequireProof {
		return true, nil
	}
	changed, err := m.changedAnything(ctx, rec)
	return !changed, err
}

// lacks says to a person what a mission lacks whose end has to be proven.
func (m *mission) lacks() string {
	return "nothing shows that it is done, and proof is required: no check has passed that could tell, and no review. " +
		"Say which command shows it (centurion send 0/ \"verify with …\"), then resume"
}

// keepEvidence records what shows that the mission did what it was to do, and returns it.
func (m *mission) keepEvidence(ctx context.Context) (rec centurion.Mission, err error) {
	e, err := m.evidence(ctx)
	if err != nil {
		return rec, err
	}
	err = m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		if rec, err = tx.Mission(m.st.ID); err != nil {
			return err
		}
		rec.Evidence = e
		return tx.PutMission(&rec)
	})
	return rec, err
}
