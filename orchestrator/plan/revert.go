package plan

import (
	"slices"

	"centurion"
	"centurion/orchestrator/state"
	"centurion/workspace/todo"
)

// RestOn returns the items, done or reopened by an earlier undo, that depend on the work of some items (nil for all): those items and
// their reviews. reviews are the tasks that did such reviews.
func (p View) RestOn(items []string, tasks []centurion.Task, earlier []centurion.Reverted) (open, reviews []string) {
	on := func(of map[string]bool) bool {
		return items == nil || of == nil || slices.ContainsFunc(items, func(id string) bool { return of[id] })
	}
	for _, it := range p.Items() {
		byUndo := slices.ContainsFunc(earlier, func(r centurion.Reverted) bool { return slices.Contains(r.Items, it.ID) })
		if it.Group || p.Doc.Status(it.ID) != todo.Done && !byUndo {
			continue
		}
		if slices.Contains(items, it.ID) || p.IsReview(it.ID) && on(p.before(it.ID)) || items == nil {
			open = append(open, it.ID)
		}
	}
	for _, t := range tasks {
		void := slices.ContainsFunc(earlier, func(r centurion.Reverted) bool { return slices.Contains(r.Reviews, t.ID) })
		if state.Approves(t) && (t.Undone.IsZero() || void) && on(p.Covers(t)) {
			reviews = append(reviews, t.ID)
		}
	}
	return open, reviews
}
