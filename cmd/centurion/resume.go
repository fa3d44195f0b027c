package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/agents"
	"centurion/host"
	"centurion/server"
)

func resumeCommand(c *cli) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "resume [MISSION]",
		Short: "Go on with a mission",
		Long: "Go on with an interrupted, paused, blocked or failed mission (default: the latest). Limits that are given replace the mission's own.\n" +
			"One that runs already is watched; --max-workers and --max-per-agent hold for it from now on.",
		Example: "  centurion resume\n  centurion resume msn_0199… --max-cost 20",
		Args:    exactly(0, 1, "at most one mission"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.costSet = cmd.Flags().Changed("max-cost")
			return (&runner{c, f}).resumeMission(cmd.Context(), first(args))
		},
	}
	f.bind(cmd)
	cmd.ValidArgsFunction = complete(c, 1, resumable)
	return cmd
}

// prepareResume prepares to go on with a mission, with its own caps and limits where the flags do not say otherwise. The caller
// closes the connection's workspace.
func (c *runner) prepareResume(ctx context.Context, m server.Mission) (*host.Connection, centurion.MissionOptions, error) {
	given := *c.f
	c.f.modelKnown = c.f.model == "" && m.Model != ""
	c.f.model, c.f.profile = cmp.Or(c.f.model, m.Model), cmp.Or(m.Options.Profile, agents.ProfileMission)
	// The mission keeps its own caps unless a flag says otherwise. It also keeps an --ask that holds without a person; whether there is a
	// person to ask depends on this run.
	c.f.maxWorkers = cmp.Or(c.f.maxWorkers, m.Options.MaxWorkers)
	c.f.maxPerAgent = cmp.Or(c.f.maxPerAgent, m.Options.MaxPerAgent)
	conn, err := c.prepare(ctx)
	if err != nil {
		return nil, centurion.MissionOptions{}, err
	}
	c.f.costSet = given.costSet
	if given.ask == "" {
		c.f.ask = ""
		if m.Options.Ask == "allow" || m.Options.Unattended {
			c.f.ask = m.Options.Ask
		}
	}
	opts, err := c.missionOptions(conn.Models)
	if err != nil {
		return nil, opts, errors.Join(err, conn.Workspace.Close())
	}
	// The mission's own limits stay, also where the configuration has others.
	opts.MaxCost, opts.MaxTokens, opts.MaxRounds, opts.MaxDuration = given.maxCost, given.maxTokens, given.maxRounds, given.maxDuration.Milliseconds()
	opts.Level = given.level
	opts.MaxToolCalls = given.maxToolCalls
	return conn, opts, nil
}

// noteOthers names the newest mission that can be resumed after it was said that the latest one has ended.
func (c *cli) noteOthers(ctx context.Context, api server.API) {
	all, err := api.Missions(ctx)
	if err != nil { // the output itself is complete
		return
	}
	for _, m := range all {
		if m.Status == centurion.MissionPaused || m.Status == centurion.MissionBlocked {
			fmt.Fprintf(c.err, "next: an earlier mission is %s: centurion resume %s\n", m.Status, m.ID)
			return
		}
	}
}

// resumeMission is `centurion resume`.
func (c *runner) resumeMission(ctx context.Context, id string) error {
	m, over, err := c.findResumable(ctx, id)
	if err != nil || over {
		return err
	}
	conn, opts, err := c.prepareResume(ctx, m)
	if err != nil {
		return err
	}
	defer conn.Workspace.Close()
	id, opts.Detached, conn.Except = m.ID, c.f.detach, m.ID
	return c.launch(ctx, conn, func() (m server.Mission, after int64, err error) {
		if after, err = host.Call(ctx, conn, func(api server.API) (int64, error) { return api.LastSeq(ctx) }); err == nil {
			m, err = host.Call(ctx, conn, func(api server.API) (server.Mission, error) { return api.Resume(ctx, id, opts) })
		}
		if err == nil {
			conn.Except = "" // a later host of this process resumes it like any other
		}
		return m, after, err
	})
}

// findResumable finds the mission that is to be resumed. It is over if there is nothing to resume: the end of a mission that has ended is printed,
// and a mission that another process runs is watched to its end.
func (c *runner) findResumable(ctx context.Context, id string) (m server.Mission, over bool, err error) {
	err = c.open(ctx, c.f.viewFlags(), func(v *view) (err error) {
		m, err = v.API.Mission(ctx, id)
		switch {
		case err != nil:
		case m.Status == centurion.MissionCompleted || m.Status == centurion.MissionCancelled:
			if over, err = true, v.printEnd(ctx, m); err == nil {
				err = v.AsHost(ctx, func(api server.API) error { return c.afterMission(ctx, api, m.Noun(), false) })
			}
			if id == "" && err == nil {
				c.noteOthers(ctx, v.API)
			}
		case m.Status.Alive(): // of a project without a host it would be told as interrupted
			if c.f.maxWorkers > 0 || c.f.maxPerAgent > 0 {
				if _, err := v.API.Resume(ctx, m.ID, centurion.MissionOptions{MaxWorkers: c.f.maxWorkers, MaxPerAgent: c.f.maxPerAgent}); err != nil {
					return err
				}
			}
			over, err = true, c.watch(ctx, v, m)
		}
		return err
	})
	return m, over, err
}
