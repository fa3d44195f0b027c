package orchestrator

import (
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/state"
	"centurion/workspace/todo"
)

// nextReview says which review that is handed out or planned is going to judge a done item, and when: now, when it begins, or
// after others. by is "" where nobody would review the item unless somebody were asked.
func (p planView) nextReview(id string, tasks []centurion.Task, own time.Time) (by, when string) {
	if p.doc == nil {
		return "", ""
	}
	if t := p.reviewer(id, tasks, own); t != nil {
		by, when = reviewName(*t), "now"
		if state.Waits(*t) {
			when = "when it begins"
			if unmet := p.unmetBut(by, id); len(unmet) > 0 {
				when = "after " + strings.Join(unmet, ", ")
			}
		}
		return by, when
	}
	for _, r := range p.planned(id) {
		if unmet := p.unmetBut(r, id); len(unmet) > 0 && !hasTask(r, tasks) {
			return r, "after " + strings.Join(unmet, ", ")
		}
	}
	return "", ""
}

// unmetBut lists what an item still waits for, but for one that is done and whose mark may still be to be set.
func (p planView) unmetBut(item, done string) []string {
	return slices.DeleteFunc(p.doc.Unmet(item), func(id string) bool { return id == done })
}

// reviewer returns the living review that covers a done item and has not begun before the item's work had ended, or nil.
func (p planView) reviewer(id string, tasks []centurion.Task, own time.Time) *centurion.Task {
	last, _ := workOn(id, tasks, own)
	for _, t := range tasks {
		if t.Agent != agents.Reviewer || t.Status.Ended() || !t.Started.IsZero() && t.Started.Before(last) {
			continue
		}
		if of := p.covers(t); of == nil || of[id] {
			return &t
		}
	}
	return nil
}

// reviewName is what a review is called. One without an item of its own goes by its number: its item's name is the work's.
func reviewName(t centurion.Task) string {
	if t.Reviews {
		t.Item = ""
	}
	return t.Name()
}

// planned returns the plan's reviews of an item that are neither done nor cancelled.
func (p planView) planned(id string) (out []string) {
	for _, it := range p.items() {
		if s := p.doc.Status(it.ID); !p.isReview(it.ID) || it.Group || s == todo.Done || s == todo.Cancelled {
			continue
		}
		if of := p.before(it.ID); of == nil || of[id] {
			out = append(out, it.ID)
		}
	}
	return out
}

// reviewItem names the item that a review of another one is to be handed out for: the plan's own item for it, if it has one
// that is not done, else the other one itself.
func (p planView) reviewItem(id string) string {
	if planned := p.planned(id); len(planned) > 0 {
		return planned[0]
	}
	return id
}

// freeReview is the same for a call that is made now: a review that works already, and began too early for the item, is not
// to be had.
func (p planView) freeReview(id string, tasks []centurion.Task) string {
	for _, r := range p.planned(id) {
		if !hasTask(r, tasks) {
			return r
		}
	}
	return id
}

// hasTask reports whether a task that has not ended works on an item.
func hasTask(item string, tasks []centurion.Task) bool {
	return slices.ContainsFunc(tasks, func(t centurion.Task) bool { return t.Item == item && !t.Status.Ended() })
}
