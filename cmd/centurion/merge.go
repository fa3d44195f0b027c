package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/server"
	"centurion/takeover"
	"centurion/tui"
)

const mergeHelp = `Put the work of a mission on your branch and into your files (default: the latest mission).

What you have not committed stays as it is and uncommitted. Where the work would have to change a file with uncommitted work
of yours, or does not agree with newer commits of yours, nothing at all is touched, the files are named, and the exit code
is 4. A mission that is not complete is merged with --yes only, or by naming items with --only. What was done since an
earlier merge can be merged again. An item is not merged without those that it comes after in the plan: name them, too, or use --force.

First it is shown what will change, and of each item what its proof is worth.`

func mergeCommand(c *cli) *cobra.Command {
	var q takeover.MergeRequest
	cmd := projectCommand(c, "merge [MISSION]", "Put finished work on your branch", mergeHelp,
		"  centurion merge\n  centurion merge msn_0199… --only T1,T3\n  centurion merge --squash\n  centurion merge --dry-run",
		exactly(0, 1, "at most one mission"),
		func(ctx context.Context, v *view, args []string) error {
			id, err := workID(ctx, v.API, first(args))
			if err != nil {
				return err
			}
			return v.AsHost(ctx, func(api server.API) error { return c.merge(ctx, api, v.format, id, q) })
		})
	cmd.Flags().StringSliceVar(&q.Only, "only", nil, "items or ids of tasks: these alone, T1,T3")
	cmd.Flags().BoolVar(&q.Squash, "squash", false, "as one commit")
	cmd.Flags().BoolVar(&q.DryRun, "dry-run", false, "show what would change, and change nothing")
	cmd.Flags().BoolVar(&q.Force, "force", false, "with --only: also without the items that these come after in the plan")
	cmd.Flags().BoolVar(&q.Unfinished, "yes", false, "also the work of a mission that is not complete")
	cmd.ValidArgsFunction = complete(c, 1, missions)
	completeFlag(cmd, "only", func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before, last := "", typed
		if at := strings.LastIndexByte(typed, ','); at >= 0 {
			before, last = typed[:at+1], typed[at+1:]
		}
		found, directive := complete(c, 2, items)(cmd, args, last)
		for i := range found {
			found[i] = before + found[i]
		}
		return found, directive | cobra.ShellCompDirectiveNoSpace
	})
	return cmd
}

// merge shows what a merge changes, and does it.
func (c *cli) merge(ctx context.Context, api server.Person, format, id string, q takeover.MergeRequest) error {
	if format == "json" {
		got, err := api.Merge(ctx, id, q)
		if err != nil {
			return err
		}
		if got.Refused != nil {
			c.refused(got.Refused)
		}
		return writeJSON(c.out, got)
	}
	look := q
	look.DryRun = true
	got, err := api.Merge(ctx, id, look)
	if err != nil {
		return err
	}
	if err := c.printMerge(c.out, got); err != nil {
		return err
	}
	if got.Refused == nil && !got.Finished && !q.DryRun {
		if got, err = api.Merge(ctx, id, q); err != nil {
			return err
		}
	}
	return c.merged(c.out, got)
}

// merged says what has become of a merge.
func (c *cli) merged(w io.Writer, got takeover.MergeReport) error {
	switch {
	case got.Refused != nil:
		c.refused(got.Refused)
		return nil
	case got.Finished:
		fmt.Fprintln(w, "a merge that was interrupted is complete now")
	case got.DryRun:
		_, err := fmt.Fprintln(w, "nothing was changed: this is what a merge would do")
		return err
	}
	undo := "centurion undo " + got.Mission
	if got.Running {
		undo = "centurion pause " + got.Mission + " && " + undo
	}
	_, err := fmt.Fprintf(w, "merged into %s: %s → %s\nundo: %s\n", tui.Clean(where(got.Branch)), commitName(got.Before), commitName(got.After), undo)
	return err
}

// printMerge shows what a merge changes, and what the proof of it is worth.
func (c *cli) printMerge(w io.Writer, got takeover.MergeReport) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of mission %s onto %s: %s\n", centurion.Count(got.Commits, "commit"), got.Mission, tui.Clean(where(got.Branch)), tui.Clean(centurion.Clip(got.Goal, 80)))
	for _, why := range got.Unfinished {
		fmt.Fprintf(&b, "! not complete: %s\n", tui.Clean(why))
	}
	for _, it := range got.Items {
		fmt.Fprintf(&b, "  %-5s %s · %s\n", tui.Clean(cmp.Or(it.Item, it.Task)), tui.Clean(it.Title), proofWords(it))
		for _, l := range it.Weakened {
			fmt.Fprintf(&b, "        ! %s\n", tui.Clean(l))
		}
	}
	for _, a := range got.Aside {
		fmt.Fprintf(&b, "! %s\n", tui.Clean(a.String()))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if got.Refused != nil && len(got.Files) == 0 { // nobody knows what it would change
		return nil
	}
	if err := tui.Stat(w, got.Files, c.showOptions()); err != nil {
		return err
	}
	_, err := io.WriteString(w, outsideLine(got.Items))
	return err
}

// outsideLine names the files of a merge that their items were not given by the plan, each with its items; it is empty if there are none.
func outsideLine(items []takeover.MergedItem) string {
	by, of := map[string][]string{}, map[string]bool{}
	for _, it := range items {
		for _, f := range it.Outside {
			if !slices.Contains(by[f], it.Item) {
				by[f] = append(by[f], it.Item)
			}
			of[it.Item] = true
		}
	}
	var files []string
	for _, f := range slices.Sorted(maps.Keys(by)) {
		files = append(files, fmt.Sprintf("%s (%s)", f, strings.Join(by[f], ", ")))
	}
	switch len(of) {
	case 0:
		return ""
	case 1:
		return "outside its item's files: " + tui.Clean(strings.Join(files, ", ")) + "\n"
	}
	return "outside their items' files: " + tui.Clean(strings.Join(files, ", ")) + "\n"
}

// proofWords says what the proof of an item is worth, and which review has passed where it is worth little.
func proofWords(it takeover.MergedItem) string {
	words := string(it.Proof)
	switch {
	case it.Proof.Solid():
		return words
	case it.Proof == "":
		words = "no proof of its own"
	case it.Why != "":
		words += ": " + tui.Clean(it.Why)
	}
	switch it.Review {
	case "":
		return words
	case it.Item:
		return words + "; a review: PASS"
	}
	return words + "; reviewed: PASS by " + tui.Clean(it.Review)
}

// afterMission offers to merge the work of a mission that has just been completed, or does it if that was asked for. Said: how it
// is merged stands already where the person reads.
func (c *cli) afterMission(ctx context.Context, api server.Person, f *runFlags, m centurion.Mission, said bool) error {
	if m.Status != centurion.MissionCompleted || m.Isolation != "worktree" || ctx.Err() != nil {
		return nil
	}
	merge := "centurion merge " + m.ID
	got, err := api.Merge(ctx, m.ID, takeover.MergeRequest{DryRun: true})
	switch {
	case centurion.KindOf(err) == centurion.KindConflict:
		return nil // there is nothing to merge, or it was merged meanwhile
	case err != nil && !f.merge:
		if !said {
			fmt.Fprintf(c.err, "next: %s\n", merge) // whose error says what is wrong
		}
		return nil
	case err != nil:
		return err
	}
	live := tui.CanLive(c.in, c.out, c.env) && f.format != "json"
	w := c.out
	if f.format == "json" { // whose lines are events and nothing else
		w = c.err
	}
	switch {
	case !f.merge && !live:
		if !said {
			fmt.Fprintf(c.err, "next: %s\n", merge)
		}
		return nil
	case !f.merge:
		yes, err := c.askMerge(ctx, api, got)
		if err != nil || !yes {
			return err
		}
	default:
		if err := c.printMerge(w, got); err != nil {
			return err
		}
	}
	if got.Refused == nil {
		if got, err = api.Merge(ctx, m.ID, takeover.MergeRequest{}); err != nil {
			return err
		}
	}
	if got.Refused != nil && !f.merge { // the person said yes; the mission is complete all the same
		code := c.code
		c.refused(got.Refused)
		c.code = code
		return nil
	}
	return c.merged(w, got)
}

// askMerge shows what a merge would change and asks whether it is to be done now.
func (c *cli) askMerge(ctx context.Context, api server.Person, got takeover.MergeReport) (bool, error) {
	if err := c.printMerge(c.out, got); err != nil {
		return false, err
	}
	if got.Refused != nil {
		fmt.Fprintf(c.err, "it cannot be merged now: %s\nnext: %s\n", oneLine(got.Refused.Why), oneLine(got.Refused.Next))
		return false, nil
	}
	for {
		key, err := tui.Choose(ctx, tui.Choice{Text: "merge now? (y/N, d shows the diff)", Keys: "ynd", Default: "n", In: c.in, Out: c.out, Env: c.env})
		if err != nil || key == "y" {
			return key == "y", err
		}
		if key == "n" {
			_, err := fmt.Fprintf(c.out, "later: centurion merge %s\n", got.Mission)
			return false, err
		}
		if err := c.diffOf(ctx, api, c.out, got.Mission); err != nil {
			return false, err
		}
	}
}
