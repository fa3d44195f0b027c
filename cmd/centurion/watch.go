package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/server"
)

func pauseCommand(c *cli) *cobra.Command {
	var reason string
	cmd := projectCommand(c, "pause [ID]", "Pause a mission", "Pause a mission (default: the latest that runs) so that it can be resumed. Answers that are on their way are given up.",
		"  centurion pause\n  centurion pause msn_0199… --reason \"the office closes\"", exactly(0, 1, "at most one mission"),
		func(ctx context.Context, v *view, args []string) error {
			m, err := toPause(ctx, v.API, first(args))
			if err != nil {
				return err
			}
			return c.say(v.AsHost(ctx, func(api server.API) error { return api.Pause(ctx, m.ID, reason) }), "paused "+m.ID+"; go on with: centurion resume "+m.ID)
		})
	cmd.ValidArgsFunction = complete(c, 1, missions)
	cmd.Flags().StringVar(&reason, "reason", "", "kept with the mission")
	return cmd
}

// toPause finds the mission that a person wants to pause: the newest that is being worked on, unless they name one. The error
// has centurion.KindConflict for one that stands still already.
func toPause(ctx context.Context, api server.API, id string) (m server.Mission, err error) {
	if id == "" {
		all, err := api.Missions(ctx)
		if err != nil {
			return m, err
		}
		for _, can := range []func(server.Mission) bool{
			func(m server.Mission) bool { return m.Status.Alive() },
			func(m server.Mission) bool { return m.Reason == server.Interrupted }, // it would be gone on with
		} {
			if i := slices.IndexFunc(all, can); i >= 0 {
				return all[i], nil
			}
		}
	}
	m, err = api.Mission(ctx, id)
	if err != nil || m.Status.Alive() || m.Reason == server.Interrupted {
		return m, err
	}
	e := &centurion.Error{Op: "pause", Kind: centurion.KindConflict, Msg: fmt.Sprintf("mission %s is %s already", m.ID, m.Status), Hint: "see: centurion show " + m.ID}
	if m.Status == centurion.MissionPaused {
		e.Hint = "go on with it: centurion resume " + m.ID
	}
	return m, e
}

func attachCommand(c *cli) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{Use: "attach [MISSION]", Short: "Watch a mission that runs in the background",
		Long: "Show the live view of a mission that another process hosts (default: the latest), and answer what it asks. Ctrl-C ends\n" +
			"the view, not the mission.",
		Example: "  centurion attach\n  centurion attach msn_0199… --format json",
		Args:    exactly(0, 1, "at most one mission"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.Contains(first(args), "://") {
				return notYet("centurion attach URL", "the OpenCode server")
			}
			return c.attach(cmd.Context(), f, first(args))
		}}
	cmd.Flags().StringVar(&f.dir, "dir", "", "the project directory (default: here)")
	cmd.Flags().StringVar(&f.format, "format", "text", "text or json: one event a line on stdout")
	completeValues(cmd, "format", "text", "json")
	cmd.ValidArgsFunction = complete(c, 1, missions)
	return cmd
}

// attach is `centurion attach`. A mission that has stopped prints its end.
func (c *cli) attach(ctx context.Context, f *runFlags, id string) error {
	c.awaitHost(ctx, f.dir, id)
	m, over, err := c.look(ctx, f, id)
	if c.code == exitInterrupted && ctx.Err() != nil { // the usual way to leave
		c.code = exitComplete
		c.note("the mission goes on; see it again with: centurion attach " + m.ID)
	}
	if err != nil || over {
		return err
	}
	return c.open(ctx, f.looks(), func(v *view) error {
		err := v.printEnd(ctx, m)
		if !v.json() && err == nil {
			c.note("nobody works on it; go on with: centurion resume " + m.ID)
		}
		return err
	})
}

// awaitHost waits until the mission of a project in a directory has a host.
func (c *cli) awaitHost(ctx context.Context, dir, id string) {
	if p, ws, err := c.locate(dir); err == nil { // who asks next is told what is wrong
		p.AwaitHost(ctx, id)
		_ = ws.Close()
	}
}
