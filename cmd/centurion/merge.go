package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/cli/lookup"
	"centurion/cli/print"
	"centurion/server"
	"centurion/takeover"
	"centurion/text"
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
		on(lookup.Work, func(ctx context.Context, v *view, id string) error {
			return v.AsHost(ctx, func(api server.API) error { return v.merge(ctx, api, id, q) })
		}))
	cmd.Flags().StringSliceVar(&q.Only, "only", nil, "merge only these items or tasks, such as T1,T3")
	cmd.Flags().BoolVar(&q.Squash, "squash", false, "merge as one commit")
	cmd.Flags().BoolVar(&q.DryRun, "dry-run", false, "show what would change, without changing anything")
	cmd.Flags().BoolVar(&q.Force, "force", false, "with --only: ignore items that these come after")
	cmd.Flags().BoolVar(&q.Unfinished, "yes", false, "also merge a mission that is not complete")
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
func (v *view) merge(ctx context.Context, api server.Person, id string, q takeover.MergeRequest) error {
	if v.json() {
		got, err := api.Merge(ctx, id, q)
		if err != nil {
			return err
		}
		if got.Refused != nil {
			v.printRefusal(got.Refused)
		}
		return writeJSON(v.out, got)
	}
	look := q
	look.DryRun = true
	got, err := api.Merge(ctx, id, look)
	if err != nil {
		return err
	}
	if err := print.Merge(v.out, got, v.showOptions()); err != nil {
		return err
	}
	if got.Refused == nil && !got.Finished && !q.DryRun {
		if got, err = api.Merge(ctx, id, q); err != nil {
			return err
		}
	}
	return v.merged(v.out, got)
}

// afterMission merges a completed mission if --merge says so, else offers it. hinted means that the command for it has already been printed.
func (c *runner) afterMission(ctx context.Context, api server.Person, m centurion.Mission, hinted bool) error {
	if m.Status != centurion.MissionCompleted || m.Isolation != "worktree" || ctx.Err() != nil {
		return nil
	}
	merge := "centurion merge " + m.ID
	got, err := api.Merge(ctx, m.ID, takeover.MergeRequest{DryRun: true})
	switch {
	case centurion.KindOf(err) == centurion.KindConflict:
		return nil // there is nothing to merge, or it was merged meanwhile
	case err != nil && !c.f.merge:
		if !hinted {
			fmt.Fprintf(c.err, "next: %s\n", merge) // its error says what is wrong
		}
		return nil
	case err != nil:
		return err
	}
	live := c.live() && c.f.format != "json"
	w := c.out
	if c.f.format == "json" { // its lines are events and nothing else
		w = c.err
	}
	switch {
	case !c.f.merge && !live:
		if !hinted {
			fmt.Fprintf(c.err, "next: %s\n", merge)
		}
		return nil
	case !c.f.merge:
		yes, err := c.askMerge(ctx, api, got)
		if err != nil || !yes {
			return err
		}
	default:
		if err := print.Merge(w, got, c.showOptions()); err != nil {
			return err
		}
	}
	if got.Refused == nil {
		if got, err = api.Merge(ctx, m.ID, takeover.MergeRequest{}); err != nil {
			return err
		}
	}
	if got.Refused != nil && !c.f.merge { // the person said yes; the mission is complete anyway
		code := c.code
		c.printRefusal(got.Refused)
		c.code = code
		return nil
	}
	return c.merged(w, got)
}

// askMerge shows what a merge would change and asks whether to do it now.
func (c *runner) askMerge(ctx context.Context, api server.Person, got takeover.MergeReport) (bool, error) {
	if err := print.Merge(c.out, got, c.showOptions()); err != nil {
		return false, err
	}
	if got.Refused != nil {
		fmt.Fprintf(c.err, "it cannot be merged now: %s\nnext: %s\n", oneLine(got.Refused.Why), oneLine(got.Refused.Next))
		return false, nil
	}
	for {
		key, err := c.choose(ctx, "merge now? (y/N, d shows the diff)", "ynd", "n")
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

// merged reports the result of a merge.
func (c *cli) merged(w io.Writer, got takeover.MergeReport) error {
	if got.Refused != nil {
		c.printRefusal(got.Refused)
		return nil
	}
	return print.Merged(w, got)
}

// printRefusal says why nothing was changed, and what to do. The exit code says that a person has to act.
func (c *cli) printRefusal(r *takeover.Refusal) {
	c.code = exitBlocked
	fmt.Fprintf(c.err, "centurion: nothing was changed: %s\nnext: %s\n", oneLine(r.Why), oneLine(r.Next))
}

const diffHelp = `Show what a mission or a task has changed (default: the latest mission).

Of a mission all that stands on its branch is shown, from where it began; your own uncommitted work that it began with is
not part of that. Of a task its commits are shown, and while it works what it has not committed yet. A task of the latest
mission may be named by its item. Files and directories that are named, relative to the repository's top, narrow it down.

Into a pipe the change goes as it is, so that it can be applied: centurion diff T3 | git apply`

func diffCommand(c *cli) *cobra.Command {
	var stat, names bool
	cmd := readCommand(c, "diff [MISSION|TASK] [PATH...]", "Show what a mission or task changed", diffHelp,
		"  centurion diff\n  centurion diff T3 --stat\n  centurion diff msn_0199… src/parser\n  centurion diff tsk_0199… --format json",
		exactly(0, -1, "a mission or a task, and paths"),
		func(ctx context.Context, v *view, args []string) error {
			if stat && names {
				return &centurion.Error{Kind: centurion.KindUsage, Msg: "--stat and --name-only do not go together", Hint: "choose one of them"}
			}
			id, err := lookup.Work(ctx, v.API, first(args))
			if err != nil {
				return err
			}
			o := takeover.DiffOptions{Patch: v.json() || !stat && !names}
			if len(args) > 1 {
				o.Paths = args[1:]
			}
			var got takeover.Change
			err = v.Beside(func(api server.API) (err error) {
				got, err = api.Diff(ctx, id, o)
				return err
			})
			if err != nil {
				return err
			}
			return v.printChange(got, stat, names)
		})
	cmd.Flags().BoolVar(&stat, "stat", false, "show files and numbers of lines only")
	cmd.Flags().BoolVar(&names, "name-only", false, "show file names only")
	cmd.ValidArgsFunction = complete(c, 1, missions, items)
	return cmd
}

func (v *view) printChange(got takeover.Change, stat, names bool) error {
	o := v.showOptions()
	switch {
	case v.json():
		return writeJSON(v.out, got)
	case names:
		for _, file := range got.Files {
			if _, err := fmt.Fprintln(v.out, text.Escape(file.Path)); err != nil {
				return err
			}
		}
		return nil
	}
	if !got.Undone.IsZero() {
		v.note("it was reverted, " + got.Undone.Local().Format(time.DateTime) + "; this is what it changed")
	}
	switch {
	case len(got.Files) == 0:
		v.note("nothing was changed")
		return nil
	case stat:
		return tui.Stat(v.out, got.Files, o)
	case !v.live(): // byte for byte, to be applied
		_, err := v.out.Write(got.Bytes())
		return err
	}
	return tui.Patch(v.out, string(got.Bytes()), o)
}

// diffOf prints a mission's changes, for a person who decides on its merge.
func (c *cli) diffOf(ctx context.Context, api server.Person, out io.Writer, mission string) error {
	got, err := api.Diff(ctx, mission, takeover.DiffOptions{Patch: true})
	if err != nil {
		return err
	}
	return tui.Patch(out, string(got.Bytes()), c.showOptions())
}
