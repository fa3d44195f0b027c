package review

import (
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/workspace/todo"
)

// Reviewed returns, by item, the review that has passed since the item's work ended. Without the plan a review covers only its own
// item.
func Reviewed(doc *todo.Doc, items []string, tasks []centurion.Task, m centurion.Mission) map[string]centurion.Task {
	passed := passedIn(plan.View{Doc: doc}, tasks)
	out := map[string]centurion.Task{}
	for _, id := range items {
		if t := reviewed(id, tasks, passed, m); t != nil {
			out[id] = *t
		}
	}
	return out
}

// passed is a passed review.
type passed struct {
	task centurion.Task
	of   map[string]bool // the items it covers; nil means all
}

// passedIn returns the passed reviews and their coverage.
func passedIn(p plan.View, tasks []centurion.Task) []passed {
	var out []passed
	for _, t := range tasks {
		if state.Approves(t) && t.Undone.IsZero() {
			out = append(out, passed{task: t, of: p.Covers(t)})
		}
	}
	return out
}

// onlyReviewed reports whether an item has tasks of its own and all are the reviewer's: then it is a review, even if not declared as
// one.
func onlyReviewed(id string, tasks []centurion.Task) (only bool) {
	for _, t := range tasks {
		if t.Item == id && !t.Reviews {
			if only = t.Agent == agents.Reviewer; !only {
				break
			}
		}
	}
	return only
}

// reviewed returns the newest passed review of the item that began after its work ended and after other merges that touch its files;
// nil if there is none. A review that was itself the item's work counts as long as the files it judged do not change.
func reviewed(item string, tasks []centurion.Task, reviews []passed, m centurion.Mission) *centurion.Task {
	last, itself := workOn(item, tasks, m.OwnLanding())
	var wide *centurion.Task // a review after no item covers everything; one that names the item is more specific
	for _, r := range slices.Backward(reviews) {
		is := itself != nil && r.task.Item == item
		switch {
		case !is && r.task.Started.Before(last):
		case is && !stale(r.of, r.task, tasks, m.Landed):
			return &r.task
		case is || stale(map[string]bool{item: true}, r.task, tasks, m.Landed):
		case r.of[item]:
			return &r.task
		case r.of == nil && wide == nil:
			wide = &r.task
		}
	}
	return wide
}

// stale reports whether a merge after the begin of a review changed files that it judged. of is the set of judged items, nil for all;
// own are the merges of the mission's own agent.
func stale(of map[string]bool, review centurion.Task, tasks []centurion.Task, own []centurion.Landed) bool {
	judged := map[string]bool{}
	touches := func(l centurion.Landed) bool {
		return l.Time.After(review.Started.Time) && slices.ContainsFunc(centurion.Paths(l.Files), func(f string) bool { return judged[f] })
	}
	for _, t := range tasks {
		for _, l := range t.Landed {
			for _, f := range centurion.Paths(l.Files) {
				judged[f] = judged[f] || (of == nil || of[t.Item]) && !l.Time.After(review.Started.Time)
			}
		}
	}
	return slices.ContainsFunc(own, touches) || slices.ContainsFunc(tasks, func(t centurion.Task) bool {
		return WorkEnded(t).After(review.Started.Time) && slices.ContainsFunc(t.Landed, touches)
	})
}

// workOn returns when the work on an item last ended, and the passed review that was itself that work, if any. Items without tasks were
// done by the mission's own agent, which last landed at own.
func workOn(item string, tasks []centurion.Task, own time.Time) (last time.Time, itself *centurion.Task) {
	byTask := false
	for _, t := range tasks {
		if t.Item != item || t.Reviews || t.Status == centurion.TaskCancelled && len(t.Landed) == 0 {
			continue
		}
		byTask = true
		if t.Agent == agents.Reviewer {
			if state.Approves(t) && t.Undone.IsZero() {
				itself = &t
			}
			continue
		}
		if at := WorkEnded(t); at.After(last) {
			last = at
		}
	}
	if !byTask {
		last = own
	}
	return last, itself
}

// HasPassed reports whether a task's work is reviewed: a review passed since its end, or it is a passed review itself.
func HasPassed(p plan.View, t centurion.Task, tasks []centurion.Task) bool {
	return p.Doc != nil && t.Item != "" && (state.Approves(t) || reviewed(t.Item, tasks, passedIn(p, tasks), centurion.Mission{}) != nil)
}

// WorkEnded is when a task's work got its current state. A revert with its restore does not count.
func WorkEnded(t centurion.Task) time.Time {
	n := len(t.Landed)
	for n > 2 && t.Landed[n-1].Restores {
		n -= 2
	}
	if n > 0 {
		return t.Landed[n-1].Time.Time
	}
	return t.Ended.Time
}

// Coming returns the started or planned review of a done item and when it happens: now, when it begins, or after other items. by is ""
// if no review is planned.
func (v View) Coming(id string) (by, when string) {
	p := v.Plan
	if p.Doc == nil {
		return "", ""
	}
	if t := v.reviewer(id); t != nil {
		by, when = reviewName(*t), "now"
		if state.Waits(*t) {
			when = "when it begins"
			if unmet := p.UnmetBut(by, id); len(unmet) > 0 {
				when = "after " + strings.Join(unmet, ", ")
			}
		}
		return by, when
	}
	for _, r := range p.Planned(id) {
		if unmet := p.UnmetBut(r, id); len(unmet) > 0 && !plan.HasTask(r, v.Tasks) {
			return r, "after " + strings.Join(unmet, ", ")
		}
	}
	return "", ""
}

// reviewer returns the living review that covers a done item and did not begin before the item's work ended, or nil.
func (v View) reviewer(id string) *centurion.Task {
	last, _ := workOn(id, v.Tasks, v.Own)
	for _, t := range v.Tasks {
		if t.Agent != agents.Reviewer || t.Status.Ended() || !t.Started.IsZero() && t.Started.Before(last) {
			continue
		}
		if of := v.Plan.Covers(t); of == nil || of[id] {
			return &t
		}
	}
	return nil
}

// reviewName is the name of a review. One that belongs to the work's item is named by its number.
func reviewName(t centurion.Task) string {
	if t.Reviews {
		t.Item = ""
	}
	return t.Name()
}
