package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/host"
	"centurion/orchestrator"
)

func gcCommand(c *cli) *cobra.Command {
	var o orchestrator.TidyOptions
	var age time.Duration
	f := &readFlags{}
	cmd := &cobra.Command{Use: "gc", Short: "Archive and remove what is left of missions that have ended",
		Long: "Do now what a host does in time, for missions that have ended: sessions of tasks are dropped, records go to\n" +
			".opencode/archive/tasks, and beyond keep_tasks the oldest archived tasks are removed. With --older-than everything that\n" +
			"ended longer ago is archived and removed, with the files of its agents that git ignores. Up to eight checkouts that nobody uses stay, so that the next mission begins quickly;\n" +
			"with --checkouts they go, too. Then the state file is made smaller, unless a host works here.",
		Example: "  centurion gc --dry-run\n  centurion gc --older-than 720h\n  centurion gc --checkouts", Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("older-than") {
				if age < 0 {
					return &centurion.Error{Op: "gc", Kind: centurion.KindUsage, Msg: "--older-than cannot be less than nothing: " + age.String(), Hint: "give an age such as 720h"}
				}
				o.OlderThan = &age
			}
			rep := host.TidyReport{TidyReport: orchestrator.TidyReport{DryRun: o.DryRun}}
			err := c.open(cmd.Context(), f, func(v *view) (err error) {
				rep, err = v.Tidy(cmd.Context(), o)
				return err
			})
			if _, none := errors.AsType[host.NoMissionError](err); err != nil && !none {
				return err
			}
			if f.format == "json" {
				return writeJSON(c.out, rep)
			}
			return printTidy(c.out, rep)
		}}
	f.bind(cmd)
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only say what would be done")
	cmd.Flags().BoolVar(&o.Checkouts, "checkouts", false, "also remove the checkouts that nobody uses")
	cmd.Flags().DurationVar(&age, "older-than", 0, "archive and remove everything that ended longer ago, such as 720h")
	return cmd
}

// printTidy prints what was cleaned.
func printTidy(w io.Writer, r host.TidyReport) error {
	drop, archive, remove := "dropped", "archived", "removed"
	if r.DryRun {
		drop, archive, remove = "would be dropped", "would be archived", "would be removed"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, %s %s, %s %s, of %s that ended.\n", centurion.Count(r.Sessions, "session"), drop,
		centurion.Count(r.Archived, "task"), archive, centurion.Count(r.Removed, "task"), remove, centurion.Count(r.Missions, "mission"))
	gone := "No longer needed and removed"
	if r.DryRun {
		gone = "Would be removed"
	}
	if len(r.Aside) > 0 {
		fmt.Fprintf(&b, "%s, with files of removed tasks and missions that git ignores: %s.\n", gone, strings.Join(r.Aside, ", "))
	}
	if len(r.Worktrees) > 0 {
		fmt.Fprintf(&b, "%s: %s.\n", gone, strings.Join(r.Worktrees, ", "))
	}
	switch {
	case r.DryRun:
	case r.HostPID != 0:
		fmt.Fprintf(&b, "Process %d hosts this project and did it; the state file keeps its size until nobody works here.\n", r.HostPID)
	case r.Before > 0:
		fmt.Fprintf(&b, "The state file has %d KiB; it had %d KiB.\n", r.After>>10, r.Before>>10)
	}
	_, err := fmt.Fprint(w, b.String())
	return err
}
