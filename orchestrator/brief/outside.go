package brief

import (
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/orchestrator/claims"
	"centurion/orchestrator/plan"
)

// Outside lists the project files that a task changed or merged although they are not in its item's `files:`, and those planned files.
// It is empty for an item without `files:`, which may change any.
func (w *Writer) Outside(p plan.View, t centurion.Task) (files, planned []string) {
	if p.Doc == nil || t.Item == "" || t.Reviews {
		return nil, nil
	}
	it, ok := p.Doc.Item(t.Item)
	if !ok || len(it.Files) == 0 {
		return nil, nil
	}
	changed := slices.Clone(t.Files)
	if len(t.Landed) > 0 { // merged files count, however they were written
		changed = nil
	}
	for _, l := range t.Landed {
		paths := centurion.Paths(l.Files)
		if w.iso.Isolated() { // otherwise the trees are those of the project
			paths = w.iso.InProject(paths)
		}
		changed = append(changed, paths...)
	}
	slices.Sort(changed)
	for _, f := range slices.Compact(changed) {
		if !slices.ContainsFunc(it.Files, func(pattern string) bool { return claims.Matches(pattern, f) }) {
			files = append(files, f)
		}
	}
	return files, it.Files
}

// outsideLine reports files that a task changed outside its item's plan.
func (w *Writer) outsideLine(b *strings.Builder, p plan.View, t centurion.Task) {
	if files, planned := w.Outside(p, t); len(files) > 0 {
		fmt.Fprintf(b, "Outside its files: %s (the plan gives it %s)\n", Some(files), Some(planned))
	}
}

// reviewOutside reports such files to a reviewer; of is the set of judged items, nil for all.
func (w *Writer) reviewOutside(b *strings.Builder, p plan.View, tasks []centurion.Task, of map[string]bool) {
	var lines []string
	for _, t := range tasks {
		if files, planned := w.Outside(p, t); len(files) > 0 && (of == nil || of[t.Item]) {
			lines = append(lines, fmt.Sprintf("- %s, outside its files: %s (the plan gives it %s)", t.Item, Some(files), Some(planned)))
		}
	}
	if lines = slices.Compact(lines); len(lines) > 0 {
		b.WriteString("\nLOOK AT THIS: files were changed that the plan does not give to the item:\n" + strings.Join(lines, "\n") + "\n")
	}
}

// Some joins names, shortened to a reasonable length for a prompt.
func Some(names []string) string { return centurion.Clip(strings.Join(names, ", "), 500) }
