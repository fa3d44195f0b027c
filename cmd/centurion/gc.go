package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/config"
	"centurion/host"
	"centurion/orchestrator"
	"centurion/server"
)

// gcReport is what `centurion gc` says as JSON.
type gcReport struct {
	orchestrator.TidyReport
	Before  int64 `json:"bytes_before"` // of the state file; 0 if it was not compacted
	After   int64 `json:"bytes_after"`
	HostPID int   `json:"host_pid,omitempty"` // the process that hosts the project and did it
}

func (c *cli) gcCommand() *cobra.Command {
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
			err := c.with(cmd.Context(), f, func(api server.API) error { return c.gc(cmd.Context(), f, api, o) })
			if _, none := errors.AsType[host.NoMissionError](err); !none {
				return err
			}
			return c.tellGC(f, gcReport{TidyReport: orchestrator.TidyReport{DryRun: o.DryRun}})
		}}
	f.bind(cmd)
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only say what would be done")
	cmd.Flags().BoolVar(&o.Checkouts, "checkouts", false, "also remove the checkouts that nobody uses")
	cmd.Flags().DurationVar(&age, "older-than", 0, "archive and remove everything that ended longer ago, such as 720h")
	return cmd
}

// gc is `centurion gc`. The process that hosts the project does it; without one this process does, and makes the state
// file smaller, too.
func (c *cli) gc(ctx context.Context, f *readFlags, api server.API, o orchestrator.TidyOptions) (err error) {
	var rep gcReport
	local, idle := api.(*server.Local)
	if !idle {
		rep.TidyReport, err = api.Tidy(ctx, o)
		if client, ok := api.(*server.Client); ok && err == nil {
			info, ierr := client.Info(ctx)
			rep.HostPID, err = info.PID, ierr
		}
		return errors.Join(err, c.tellGC(f, rep))
	}
	p, ws, err := c.locate(f.dir)
	if err != nil {
		return err
	}
	defer ws.Close()
	cfg, err := config.Load(config.Options{Dir: ws.Dir(), Env: c.getenv})
	if err != nil {
		return err
	}
	unlock, err := p.Lock()
	if err != nil {
		return err
	}
	if err := local.Store.Own(ctx); err != nil {
		return errors.Join(err, unlock())
	}
	h := orchestrator.New(orchestrator.Config{Store: local.Store, Workspace: ws, Retention: cfg.Own.Retention,
		ArchiveAfter: cfg.Own.ArchiveAfter, ArchiveFailedAfter: cfg.Own.ArchiveFailedAfter, KeepTasks: cfg.Own.KeepTasks,
		Worktrees: host.Worktrees(p, ws, nil, cfg.Own.CommitsAlone())})
	if rep.TidyReport, err = h.Tidy(ctx, o); err == nil && !o.DryRun {
		rep.Before, rep.After, err = local.Store.Compact(ctx)
	}
	if err = errors.Join(err, h.Close(), unlock()); err != nil {
		return err
	}
	return c.tellGC(f, rep)
}

// tellGC prints what was cleaned.
func (c *cli) tellGC(f *readFlags, r gcReport) error {
	if f.format == "json" {
		return writeJSON(c.out, r)
	}
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
	_, err := fmt.Fprint(c.out, b.String())
	return err
}
