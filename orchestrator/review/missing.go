package review

import (
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/workspace/todo"
)

// Alive returns the living tasks by item; those without an item under "".
func (v View) Alive() map[string]centurion.Task {
	out := map[string]centurion.Task{}
	for _, t := range v.Tasks {
		if !t.Status.Ended() {
			out[t.Item] = t
		}
	}
	return out
}

// NewestOf returns the newest task of an item.
func (v View) NewestOf(item string) (centurion.Task, bool) {
	for _, t := range slices.Backward(v.Tasks) {
		if t.Item == item {
			return t, true
		}
	}
	return centurion.Task{}, false
}

// foundFaults reports whether the newest task of an item is a review that found faults, with no work done since.
func (v View) foundFaults(id string) bool {
	last, ok := v.NewestOf(id)
	if !ok || last.Reviews || !state.Rejects(last.Agent, last.Status, last.Result) || v.Own.After(last.Ended.Time) {
		return false
	}
	return !slices.ContainsFunc(v.Tasks, func(t centurion.Task) bool {
		return t.ID != last.ID && t.Status.Ended() && !state.Rejects(t.Agent, t.Status, t.Result) && WorkEnded(t).After(last.Ended.Time)
	})
}

// Next returns the items that can start, and separately the reviews that would find the same faults again. There must be a plan.
func (v View) Next() (start, failed []string) {
	alive := v.Alive()
	for _, it := range v.Plan.Doc.Runnable() {
		switch _, taken := alive[it.ID]; {
		case taken:
		case v.foundFaults(it.ID):
			failed = append(failed, it.ID)
		default:
			start = append(start, it.ID)
		}
	}
	return start, failed
}

// Unreviewed describes, for the Commander, the items that are marked as done and are not shown to be: the upcoming review, or what to do.
func (v View) Unreviewed() (out []string) {
	if v.Plan.Doc == nil {
		return nil
	}
	_, failed := v.Next()
	for _, w := range v.Proofs() {
		if w.Verified() || !v.MayReview && w.Left == "" {
			continue
		}
		what := fmt.Sprintf("item %s (%s): %s; ", w.Item.ID, w.Item.Title, w.Why)
		by, when := v.Coming(w.Item.ID)
		switch call := v.Plan.FreeReview(w.Item.ID, v.Tasks); {
		case w.Left != "":
			what += fmt.Sprintf(Undone, w.Left)
		case w.Blank:
			what = strings.TrimSuffix(what, "nothing was changed; ") + Blank // which begins so
		case by != "":
			what += fmt.Sprintf("%s reviews it %s", by, when)
		case slices.Contains(failed, call):
			what += fmt.Sprintf("%s has found faults: add an item for them and let %s wait for it (after)", call, call)
		default:
			what += "no review has passed since its work ended: delegate_task " + plan.ReviewCall(call)
		}
		out = append(out, what)
	}
	return out
}

// Missing describes, for the Commander, why the mission is not complete, apart from the final checks. unread are the pending deliveries
// of its own agent.
func (v View) Missing(unread []store.Delivery) (out []string) {
	for _, t := range v.Tasks {
		if !t.Status.Ended() {
			out = append(out, fmt.Sprintf("task %s (%s, %s) is still %s; end your turn, you will be told when it ends", t.Name(), t.Agent, t.Title, t.Status))
		}
	}
	for _, d := range unread {
		if d.Task == "" { // messages are read before the mission completes, but do not prevent the end of a turn
			continue
		}
		name := d.Task
		if i := slices.IndexFunc(v.Tasks, func(t centurion.Task) bool { return t.ID == d.Task }); i >= 0 {
			name = v.Tasks[i].Name()
		}
		out = append(out, fmt.Sprintf("task %s has ended and its result has not been read; it follows now", name))
	}
	if v.Unread != nil {
		return append(out, "the todo list cannot be read: "+v.Unread.Error())
	}
	p, alive := v.Plan, v.Alive()
	if v.Mission.HadItems && len(p.Items()) == 0 {
		out = append(out, "the todo list had items and has none any more: write it again, or ask the person")
	}
	for _, it := range p.Items() {
		if it.Group {
			continue
		}
		_, named := alive[it.ID]
		switch s := p.Doc.Status(it.ID); s {
		case todo.Open, todo.Running, todo.Blocked:
			if named {
				continue
			}
			out = append(out, fmt.Sprintf("item %s (%s) is %s", it.ID, it.Title, s))
		}
	}
	if p.Doc != nil {
		for _, pr := range p.Doc.Problems() {
			out = append(out, fmt.Sprintf("the todo list, line %d: %s", pr.Line, pr.Msg))
		}
	}
	return append(out, v.Unreviewed()...)
}
