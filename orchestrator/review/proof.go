package review

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/verify"
	"centurion/workspace/todo"
)

// ItemProof is the evidence for a done item.
type ItemProof struct {
	Item     todo.Item
	Why      string          // why its checks alone are not enough; empty if they are
	Proof    centurion.Proof // unproven or flaky, if that is the reason
	Reviewed bool            // a review has passed since its work ended
	By       centurion.Task  // that review
	Blank    bool            // a review has passed since, but no file was changed for the item
	Left     string          // the name of its task that failed or is blocked, while nothing was merged for it: it is not done
	Evidence centurion.Evidence
}

// Verified reports whether the item counts as verified. A review without changed files counts only with passed checks that show
// something.
func (w ItemProof) Verified() bool {
	return w.Why == "" || w.Reviewed || w.Blank && w.Evidence != centurion.EvidenceNone
}

// Blank describes what to do about an item whose review had nothing to judge.
const Blank = "nothing was changed, so a review had nothing to look at. Have the work done; or, if none is needed, cancel the item with a note, " +
	"or give it a verify command that shows so, and set it to open and then to done (update_todo)"

// Undone describes what to do about an item that is marked as done although its work was given up.
const Undone = "nothing of it was merged, so it is not done: resume %s or hand it out anew (delegate_task), " +
	"with what would help; or set it to cancelled with a note"

// leftUndone returns the newest task of an item if it failed or is blocked, nothing was merged for the item, and no work has been merged
// that began since: a review has nothing of it to judge.
func (v View) leftUndone(item string) *centurion.Task {
	var newest *centurion.Task
	for i, t := range v.Tasks {
		if t.Item == item && t.Agent != agents.Reviewer {
			if len(t.Landed) > 0 {
				return nil
			}
			newest = &v.Tasks[i]
		}
	}
	if !v.isolated() || newest == nil || newest.Status != centurion.TaskFailed && newest.Status != centurion.TaskBlocked {
		return nil
	}
	ended := newest.Ended.Time
	if v.Own.After(ended) || slices.ContainsFunc(v.Tasks, func(t centurion.Task) bool { return len(t.Landed) > 0 && t.Started.After(ended) }) {
		return nil
	}
	return newest
}

// Proofs returns the evidence of every done item of the plan.
func (v View) Proofs() (out []ItemProof) {
	if v.Plan.Doc == nil {
		return nil
	}
	passed := passedIn(v.Plan, v.Tasks)
	blank := slices.Clone(v.Tasks) // as if each review had had something to judge
	for i := range blank {
		blank[i].Unchanged = false
	}
	for _, it := range v.Plan.Items() {
		if it.Group || v.Plan.Doc.Status(it.ID) != todo.Done {
			continue
		}
		if t := v.leftUndone(it.ID); t != nil {
			out = append(out, ItemProof{Item: it, Why: fmt.Sprintf("its task %s is %s", t.Name(), t.Status), Left: t.Name()})
			continue
		}
		w := ItemProof{Item: it}
		w.Why, w.Proof = Unproven(it, v.Receipts, v.isolated())
		isReview := len(it.Verify) == 0 && (v.Plan.IsReview(it.ID) || onlyReviewed(it.ID, v.Tasks))
		if isReview {
			w.Why = "it is a review that has not passed since the files that it judges were changed"
		}
		w.Evidence = itemGrade(it.ID, verify.Distinct(it.Verify), v.Receipts)
		by := reviewed(it.ID, v.Tasks, passed, v.Mission)
		switch {
		case by != nil && w.Why != "" && v.isolated() && Idle(it.ID, v.Tasks) && (len(it.Verify) > 0 || bare(by.Result)):
			w.Blank = true
		case by != nil:
			w.Evidence = centurion.Strongest([]centurion.Evidence{w.Evidence, centurion.EvidenceReviewed})
			if w.Why != "" {
				w.Reviewed, w.By = true, *by
			}
		case w.Why != "" && reviewed(it.ID, blank, passedIn(v.Plan, blank), v.Mission) != nil:
			if w.Blank = true; isReview { // the reviewed items are judged themselves
				w.Why = ""
			}
		}
		out = append(out, w)
	}
	return out
}

// bare reports whether a review says nothing but its verdict: it does not say why nothing had to be changed.
func bare(answer string) bool { return len(strings.Fields(answer)) < leastReason }

// leastReason is the number of words of a verdict with a reason.
const leastReason = 8

// Idle reports whether the tasks of an item have completed it without changing a file.
func Idle(item string, tasks []centurion.Task) (idle bool) {
	for _, t := range tasks {
		if t.Item == item && t.Agent != agents.Reviewer {
			if len(t.Landed) > 0 {
				return false
			}
			idle = idle || t.Status == centurion.TaskCompleted
		}
	}
	return idle
}

// InDoubt reports whether a done item still needs a proof or a review.
func (v View) InDoubt(id string) bool {
	return slices.ContainsFunc(v.Proofs(), func(w ItemProof) bool { return w.Item.ID == id && !w.Verified() })
}

// Unproven says why an item's newest receipts do not prove it. Without trees, a passed check is the best evidence possible.
func Unproven(it todo.Item, receipts []centurion.Receipt, trees bool) (string, centurion.Proof) {
	commands := verify.Distinct(it.Verify)
	if len(commands) == 0 {
		return "it has no verify command", ""
	}
	if !trees {
		return "", ""
	}
	for _, command := range commands {
		switch r := Newest(receipts, it.ID, command); {
		case r == nil:
			return fmt.Sprintf("unproven: `%s` was never run against its work", command), centurion.ProofUnproven
		case !r.Passed:
			return fmt.Sprintf("unproven: `%s` failed when it was run last", command), centurion.ProofUnproven
		case !r.Proof.Solid():
			why := cmp.Or(r.Why, "nothing shows that the check can fail")
			return fmt.Sprintf("%s: `%s`: %s", r.Proof, command, why), r.Proof
		}
	}
	return "", ""
}

// Newest returns the newest receipt of an item's command, or nil.
func Newest(receipts []centurion.Receipt, item, command string) *centurion.Receipt {
	for _, r := range slices.Backward(receipts) {
		if r.Item == item && !r.Final && strings.TrimSpace(r.Command) == command {
			return &r
		}
	}
	return nil
}
