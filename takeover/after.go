package takeover

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"centurion"
	"centurion/text"
	"centurion/workspace/todo"
)

// planOf returns the plan of a mission, nil if it is missing or cannot be read.
func (p *Person) planOf(w workDone) *todo.Doc {
	if w.mission.Todo == "" {
		return nil
	}
	doc, _, err := p.workspace.TodoAt(w.mission.Todo).Load()
	if err != nil {
		return nil
	}
	return doc
}

// before lists the direct and indirect predecessors of an item in a plan.
func before(plan *todo.Doc, item string) []string {
	if plan == nil || item == "" {
		return nil
	}
	return plan.Before(item)
}

// lacking refuses to merge items without the work of their predecessors in the plan: the merge would succeed, but the work would not
// run there. It returns nil if nothing is lacking, or with Force.
func (w *workDone) lacking(plan *todo.Doc, p picked, q MergeRequest) *Refusal {
	if len(q.Only) == 0 || q.Force {
		return nil
	}
	left, standing, named := map[string]bool{}, map[string]bool{}, []string{}
	reverted := map[string]centurion.Task{}
	for _, t := range w.tasks {
		if t.Item == "" {
			continue
		}
		if !t.Undone.IsZero() {
			if len(t.Landed) > 0 {
				reverted[t.Item] = t
			}
			continue
		}
		standing[t.Item] = standing[t.Item] || len(landed(t)) > 0
		for _, l := range landed(t) {
			switch {
			case slices.Contains(p.commits, l.Commit):
				named = text.Union(named, t.Item)
			case !w.mission.Merged.Has(l.Commit):
				left[t.Item] = true
			}
		}
	}
	maps.DeleteFunc(reverted, func(item string, _ centurion.Task) bool { return standing[item] }) // it was done again since
	if r := w.afterReverted(plan, named, reverted, q); r != nil {
		return r
	}
	var late, missing []string
	for _, item := range named {
		lacks := false
		for _, b := range before(plan, item) {
			if !left[b] {
				continue
			}
			lacks, missing = true, text.Union(missing, b)
		}
		if lacks {
			late = append(late, item)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	whole, alone := q, q
	whole.Only, whole.DryRun = slices.Concat(missing, q.Only), false
	alone.Force = true
	r := &Refusal{Why: fmt.Sprintf("%s %s after %s in the plan, which %s not on your branch", someNames(late), verb(late, "comes", "come"),
		someNames(missing), verb(missing, "is", "are"))}
	r.Next = fmt.Sprintf("merge %s: %s; or %s as %s, if you know that %s: %s", verb(whole.Only[1:], "both", "all of them"), mergeCommand(w.mission.ID, whole),
		strings.Join(q.Only, ", "), verb(q.Only, "it is", "they are"), verb(q.Only, "it works", "they work"), mergeCommand(w.mission.ID, alone))
	return r
}

// afterReverted refuses to merge items that depend on reverted work.
func (w *workDone) afterReverted(plan *todo.Doc, named []string, reverted map[string]centurion.Task, q MergeRequest) *Refusal {
	for _, item := range named {
		for _, b := range before(plan, item) {
			t, is := reverted[b]
			if !is {
				continue
			}
			q.Force = true
			return &Refusal{Why: fmt.Sprintf("%s comes after %s in the plan, and %s was reverted", item, b, b),
				Next: fmt.Sprintf("restore it: centurion undo --redo %s; or merge without it: %s", t.ID, mergeCommand(w.mission.ID, q))}
		}
	}
	return nil
}

// verb returns the singular or plural form of a word for some names.
func verb(names []string, one, several string) string { return text.If(len(names) == 1, one, several) }

// later lists the successors of a task's item in the plan that have work, oldest first.
func (w *workDone) later(plan *todo.Doc) []string {
	if w.task == nil || w.task.Item == "" {
		return nil
	}
	var out []string
	for _, t := range w.tasks {
		if t.Undone.IsZero() && len(landed(t)) > 0 && !slices.Contains(out, t.Item) && slices.Contains(before(plan, t.Item), w.task.Item) {
			out = append(out, t.Item)
		}
	}
	return out
}
