package tui

import (
	"cmp"
	"fmt"
	"slices"

	"centurion"
	"centurion/text"
)

// receipt is a line for one run of a check: time, result, grade, and which of several runs it is.
func (p *page) receipt(r centurion.Receipt, run string, o ShowOptions) {
	mark, c, how := "✓", good, text.Took(text.Millis(r.Millis))
	switch {
	case !r.Passed:
		mark, c, how = "✗", bad, cmp.Or(text.Clean(r.Error), fmt.Sprintf("exit %d", r.ExitCode))
	case r.Proof != "":
		how = text.Dots(how, string(r.Proof))
		if !r.Proof.Solid() {
			mark, c = "?", warn
		}
	}
	when := text.When(!r.Time.IsZero(), r.Time.In(o.Now.Location()).Format("15:04:05")+" ")
	p.line(p.theme.paint(c, mark) + " " + text.Fit(when+text.Dots(how, run, checkedWhat(r))+" "+text.Escape(r.Command), p.w-2))
}

// runOf describes which of the runs of a check for the same subject a receipt is; "" for the only one.
func runOf(all []centurion.Receipt, i int) string {
	at, n := 0, 0
	for k, r := range all {
		if r.Command != all[i].Command || r.Item != all[i].Item || checkedWhat(r) != checkedWhat(all[i]) {
			continue
		}
		if n++; k <= i {
			at = n
		}
	}
	return text.When(n > 1, fmt.Sprintf("run %d of %d", at, n))
}

// checkedWhat describes the subject of a check: an item, the finished work at the end, or the mission's branch after a merge, when
// other items may still be missing.
func checkedWhat(r centurion.Receipt) string {
	switch {
	case r.Early:
		return "mission (not green yet)"
	case r.Final:
		return "final"
	}
	return cmp.Or(text.Clean(r.Item), "mission")
}

// doubt describes the checks of a completed task if they prove too little.
func (o ShowOptions) doubt(t centurion.Task) string {
	return text.When(t.Status == centurion.TaskCompleted, o.Doubt[t.ID])
}

// Doubts describes, by task, the newest receipts of its commands if they prove too little: unproven or flaky. The receipts are those of
// a mission, oldest first.
func Doubts(receipts []centurion.Receipt) map[string]string {
	out := map[string]string{}
	seen := map[[2]string]bool{}
	for _, r := range slices.Backward(receipts) {
		of := [2]string{r.Task, r.Command}
		if r.Task == "" || r.Final || seen[of] {
			continue
		}
		seen[of] = true
		if r.Passed && r.Proof != "" && !r.Proof.Solid() {
			out[r.Task] = text.Clean(string(r.Proof))
		}
	}
	return out
}
