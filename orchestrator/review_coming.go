package orchestrator

import (
	"strings"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
)

// nextReview says which review that is handed out or planned is going to judge a done item, and when: now, when it begins, or
// after others. by is "" where nobody would review the item unless somebody were asked.
func nextReview(p plan.View, id string, tasks []centurion.Task, own time.Time) (by, when string) {
	if p.Doc == nil {
		return "", ""
	}
	if t := reviewer(p, id, tasks, own); t != nil {
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
		if unmet := p.UnmetBut(r, id); len(unmet) > 0 && !plan.HasTask(r, tasks) {
			return r, "after " + strings.Join(unmet, ", ")
		}
	}
	return "", ""
}

// reviewer returns the living review that covers a done item and has not begun before the item's work had ended, or nil.
func reviewer(p plan.View, id string, tasks []centurion.Task, own time.Time) *centurion.Task {
	last, _ := workOn(id, tasks, own)
	for _, t := range tasks {
		if t.Agent != agents.Reviewer || t.Status.Ended() || !t.Started.IsZero() && t.Started.Before(last) {
			continue
		}
		if of := p.Covers(t); of == nil || of[id] {
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
