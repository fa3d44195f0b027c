// Package print writes the results of commands as text for a person. Package tui shows missions.
package print

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"centurion"
	"centurion/takeover"
	"centurion/text"
	"centurion/trust"
	"centurion/tui"
)

// Merged reports the result of a merge.
func Merged(w io.Writer, got takeover.MergeReport) error {
	switch {
	case got.Finished:
		fmt.Fprintln(w, "a merge that was interrupted is complete now")
	case got.DryRun:
		_, err := fmt.Fprintln(w, "nothing was changed: this is what a merge would do")
		return err
	}
	undo := text.When(got.Running, "centurion pause "+got.Mission+" && ") + "centurion undo " + got.Mission
	_, err := fmt.Fprintf(w, "merged into %s: %s → %s\nundo: %s\n", text.Clean(where(got.Branch)), commitName(got.Before), commitName(got.After), undo)
	return err
}

// Merge shows what a merge changes, and what its proof is worth.
func Merge(w io.Writer, got takeover.MergeReport, o tui.ShowOptions) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of mission %s onto %s: %s\n", centurion.Count(got.Commits, "commit"), got.Mission, text.Clean(where(got.Branch)), text.Clean(centurion.Clip(got.Goal, 80)))
	for _, why := range got.Unfinished {
		fmt.Fprintf(&b, "! not complete: %s\n", text.Clean(why))
	}
	for _, it := range got.Items {
		fmt.Fprintf(&b, "  %-5s %s · %s\n", text.Clean(cmp.Or(it.Item, it.Task)), text.Clean(it.Title), proofWords(it))
		for _, l := range it.Weakened {
			fmt.Fprintf(&b, "        ! %s\n", text.Clean(l))
		}
	}
	if got.Lost != "" {
		fmt.Fprintf(&b, "! %[1]s no longer contains %[2]s, where the mission began; if you did not rebase it, see: git reflog %[1]s\n", text.Clean(got.Branch), commitName(got.Lost))
	}
	for _, a := range got.Aside {
		fmt.Fprintf(&b, "! %s\n", text.Clean(a.String()))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if got.Refused != nil && len(got.Files) == 0 { // the change is unknown
		return nil
	}
	if err := tui.Stat(w, got.Files, o); err != nil {
		return err
	}
	_, err := io.WriteString(w, outsideLine(got.Items)+trustLine(got.Trust))
	return err
}

// trustLine names the files of a merge that configure agents; it is empty if there are none.
func trustLine(files []string) string {
	return text.When(len(files) > 0, "! these files configure agents, and can only restrict them until you trust them ("+trust.Command+"): "+text.Clean(strings.Join(files, ", "))+"\n")
}

// outsideLine names the files of a merge outside the plan's files for their items, each with its items; it is empty if there are none.
func outsideLine(items []takeover.MergedItem) string {
	by, of := map[string][]string{}, map[string]bool{}
	for _, it := range items {
		for _, f := range it.Outside {
			by[f] = text.Union(by[f], it.Item)
			of[it.Item] = true
		}
	}
	files := text.Each(slices.Sorted(maps.Keys(by)), func(f string) string { return fmt.Sprintf("%s (%s)", f, strings.Join(by[f], ", ")) })
	whose := text.If(len(of) == 1, "its item's", "their items'")
	return text.When(len(of) > 0, "outside "+whose+" files: "+text.Clean(strings.Join(files, ", "))+"\n")
}

// proofWords says what the proof of an item is worth and, if that is little, which review has passed.
func proofWords(it takeover.MergedItem) string {
	words := string(it.Proof)
	switch {
	case it.Proof.Solid():
		return words
	case it.Proof == "":
		words = "no proof of its own"
	case it.Why != "":
		words += ": " + text.Clean(it.Why)
	}
	switch it.Review {
	case "":
		return words
	case it.Item:
		return words + "; a review: PASS"
	}
	return words + "; reviewed: PASS by " + text.Clean(it.Review)
}

// where names the person's branch.
func where(branch string) string { return cmp.Or(branch, "the detached HEAD") }

// commitName is a commit as people read it.
func commitName(id string) string { return cmp.Or(id[:min(len(id), 10)], "nothing") }

// Undo reports what an undo did.
func Undo(w io.Writer, got takeover.UndoReport, o tui.ShowOptions) error {
	if got.Refused != nil && got.After == "" {
		return nil
	}
	if err := tui.Stat(w, got.Files, o); err != nil {
		return err
	}
	task := cmp.Or(text.When(got.Task != "", got.Item), text.When(got.Task != "", "task "+got.Task))
	lines := text.Filled(
		cmp.Or(task, "mission "+got.Mission)+" is "+text.If(got.Redo, "restored", "reverted")+undoPlace(got),
		text.When(got.Kept != "", "the old tip of its branch is kept as "+got.Kept),
		text.When(len(got.Open) > 0, "open again in the plan: "+text.Clean(strings.Join(got.Open, ", "))),
		laterLine(got),
		text.When(got.Back != "", "undo: "+got.Back),
	)
	if got.DryRun {
		lines = text.Filled(laterLine(got), "nothing was changed: this is what "+text.If(got.Redo, "undo --redo", "an undo")+" would do")
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// laterLine names the items that build on the reverted one and stay.
func laterLine(got takeover.UndoReport) string {
	n := len(got.Later)
	if n == 0 {
		return ""
	}
	names, comes, whether := text.Clean(strings.Join(got.Later, ", ")), "comes after %s in the plan and stays", "it still works, or revert it"
	if n > 1 {
		comes, whether = "come after %s in the plan and stay", "they still work, or revert them"
	}
	return fmt.Sprintf("%s "+comes+": check that %s too: centurion undo %s", names, text.Clean(got.Item), whether, text.Clean(got.Later[n-1]))
}

// undoPlace says where something was undone.
func undoPlace(got takeover.UndoReport) string {
	switch {
	case got.Person && got.After != "":
		return fmt.Sprintf(" on %s: %s → %s", text.Clean(where(got.Branch)), commitName(got.Before), commitName(got.After))
	case got.After != "":
		return fmt.Sprintf(" on its mission's branch: %s → %s; nothing of it was on yours", commitName(got.Before), commitName(got.After))
	}
	return ": " + centurion.Count(len(got.Files), "file")
}
