package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/config"
	"centurion/host"
	"centurion/notify"
	"centurion/server"
	"centurion/tui"
	"centurion/workspace"
)

func hostCommand(c *cli) *cobra.Command {
	var dir string
	cmd := &cobra.Command{Use: "host", Short: "Host this project's missions in the background", Hidden: true,
		Long: "Host this project's missions in the background, until none is left. `centurion run --detach` starts it.",
		Args: exactly(0, 0, "no arguments"), Example: "  centurion host --dir .",
		RunE: func(cmd *cobra.Command, _ []string) error { return c.backgroundHost(cmd.Context(), dir) }}
	cmd.Flags().StringVar(&dir, "dir", "", "the project directory (default: here)")
	return cmd
}

// backgroundHost is `centurion host`.
func (c *cli) backgroundHost(ctx context.Context, dir string) error {
	p, ws, err := c.locate(dir)
	if err != nil {
		return err
	}
	defer ws.Close()
	cfg, err := config.Load(config.Options{Dir: ws.Dir(), Env: c.getenv})
	if err != nil {
		return err
	}
	return host.RunBackground(ctx, p, ws, cfg, c.hostOptions())
}

// hostOptions are how this process hosts a project.
func (c *cli) hostOptions() host.Options {
	return host.Options{Note: c.note, Force: c.force, Version: Version, Watch: func(ctx context.Context, events iter.Seq2[centurion.Event, error]) {
		_ = notify.Watch(ctx, tui.UntilEnd(events), notify.NewDesktop()) // a notice that cannot be shown is no failure of the mission
	}}
}

// locate finds the state of the project in dir.
func (c *cli) locate(dir string) (host.Place, *workspace.Workspace, error) {
	return host.Locate(dir, c.getenv)
}

// printDetached says which mission runs in the background.
func (c *cli) printDetached(ctx context.Context, s *host.Connection, f *runFlags, m server.Mission) error {
	if f.format == "json" {
		first := func(yield func(centurion.Event, error) bool) {
			for e, err := range s.Events(ctx, server.EventQuery{Mission: m.ID}) {
				yield(e, err)
				return
			}
		}
		return tui.RunJSON(ctx, c.out, first)
	}
	if _, err := fmt.Fprintln(c.out, m.ID); err != nil {
		return err
	}
	c.note("it runs in the background; watch it with: centurion attach " + m.ID)
	return nil
}
