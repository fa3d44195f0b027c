package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/agents"
	"centurion/host"
	"centurion/server"
	"centurion/tui"
)

func (c *cli) resumeCommand() *cobra.Command {
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
			id := ""
			if len(args) > 0 {
				id = args[0]
			}
			return c.resumeMission(cmd.Context(), f, id)
		},
	}
	f.bind(cmd)
	cmd.ValidArgsFunction = c.completeResumable
	return cmd
}

// resumeMission is `centurion resume`.
func (c *cli) resumeMission(ctx context.Context, f *runFlags, id string) error {
	m, over, err := c.look(ctx, f, id)
	if err != nil || over {
		return err
	}
	s, opts, err := c.again(ctx, f, m)
	if err != nil {
		return err
	}
	defer s.Workspace.Close()
	if f.detach {
		return c.resumeDetached(ctx, s, f, m.ID, opts)
	}
	s.Except = m.ID
	if err := s.ConnectOrOwn(ctx, host.FirstTimeout); err != nil {
		return err
	}
	c.sayWhere(s)
	after, err := host.Call(ctx, s, func(api server.API) (int64, error) { return api.LastSeq(ctx) })
	if err == nil {
		_, err = host.Call(ctx, s, func(api server.API) (server.Mission, error) { return api.Resume(ctx, m.ID, opts) })
	}
	if err != nil {
		return errors.Join(err, s.Close(ctx))
	}
	s.Except = ""
	return c.attend(ctx, s, f, m.ID, after)
}

// again prepares to go on with a mission, with its own caps and limits where the flags do not say otherwise. The caller
// closes the seat's workspace.
func (c *cli) again(ctx context.Context, f *runFlags, m server.Mission) (*host.Connection, centurion.MissionOptions, error) {
	given := *f
	f.known = f.model == "" && m.Model != ""
	f.model, f.profile = cmp.Or(f.model, m.Model), cmp.Or(m.Options.Profile, agents.ProfileMission)
	// The mission's own caps stay, where a flag does not say otherwise, and so does what was said of asks in advance: that all is
	// allowed, or that they wait although nobody watches. Whether there is a person to be asked is else a matter of this run.
	f.maxWorkers = cmp.Or(f.maxWorkers, m.Options.MaxWorkers)
	f.maxPerAgent = cmp.Or(f.maxPerAgent, m.Options.MaxPerAgent)
	s, err := c.prepare(ctx, f)
	if err != nil {
		return nil, centurion.MissionOptions{}, err
	}
	f.costSet = given.costSet
	if given.ask == "" {
		f.ask = ""
		if m.Options.Ask == "allow" || m.Options.Unattended {
			f.ask = m.Options.Ask
		}
	}
	opts, err := c.options(f, s.Models)
	if err != nil {
		return nil, opts, errors.Join(err, s.Workspace.Close())
	}
	// The mission's own limits stay, also where the configuration has others.
	opts.MaxCost, opts.MaxTokens, opts.MaxRounds, opts.MaxDuration = given.maxCost, given.maxTokens, given.maxRounds, given.maxDuration.Milliseconds()
	opts.Level = given.level
	opts.MaxToolCalls = given.maxToolCalls
	return s, opts, nil
}

// look finds the mission that is to be resumed. It is over if there is nothing left to resume: one that has ended prints
// its end, and one that another process works on was watched to its end.
func (c *cli) look(ctx context.Context, f *runFlags, id string) (m server.Mission, over bool, err error) {
	if f.format != "" && f.format != "text" && f.format != "json" {
		return m, false, badValue("format", f.format, []string{"text", "json"})
	}
	p, ws, err := c.locate(f.dir)
	if err != nil {
		return m, false, err
	}
	api, done, err := p.API(ctx)
	if err != nil {
		return m, false, errors.Join(err, ws.Close())
	}
	m, err = api.Mission(ctx, id)
	switch {
	case err != nil:
	case m.Status == centurion.MissionCompleted || m.Status == centurion.MissionCancelled:
		if over, err = true, c.printEnd(ctx, api, m, f.format); err == nil {
			err = c.asHost(ctx, &readFlags{dir: f.dir}, api, func(api server.API) error { return c.afterMission(ctx, api, f, m.Noun(), false) })
		}
		if id == "" && err == nil {
			c.sayOthers(ctx, api)
		}
	case m.Status.Alive(): // of a project without a host it would be told as interrupted
		if f.maxWorkers > 0 || f.maxPerAgent > 0 {
			if _, err = api.Resume(ctx, m.ID, centurion.MissionOptions{MaxWorkers: f.maxWorkers, MaxPerAgent: f.maxPerAgent}); err != nil {
				break
			}
		}
		over, err = true, c.follow(ctx, p, api, f, m)
	}
	return m, over, errors.Join(err, done(), ws.Close())
}

// sayOthers names the newest mission that can be resumed after it was said that the latest one has ended.
func (c *cli) sayOthers(ctx context.Context, api server.API) {
	all, err := api.Missions(ctx)
	if err != nil { // what was asked for has been told
		return
	}
	for _, m := range all {
		if m.Status == centurion.MissionPaused || m.Status == centurion.MissionBlocked {
			fmt.Fprintf(c.err, "next: an earlier mission is %s: centurion resume %s\n", m.Status, m.ID)
			return
		}
	}
}

// follow watches a mission that another process runs, to its end. Ctrl-C ends the watching only.
func (c *cli) follow(ctx context.Context, p host.Place, api server.API, f *runFlags, m server.Mission) error {
	f.format = cmp.Or(f.format, "text")
	after := int64(0)
	for e, err := range api.Events(ctx, server.EventQuery{Mission: m.ID}) {
		if err != nil {
			return err
		}
		after = e.Seq
	}
	if err := c.show(ctx, api, f, m.ID, after, false); err != nil {
		return err
	}
	if ctx.Err() != nil { // this process was interrupted, the mission goes on
		c.code = exitInterrupted
		return nil
	}
	m, err := p.Mission(ctx, m.ID)
	if err == nil {
		c.ended(f, m.Noun())
	}
	return err
}

// printEnd prints how a mission ended that is not resumed.
func (c *cli) printEnd(ctx context.Context, api server.API, m server.Mission, format string) error {
	c.code = missionExit(m.Status, m.Reason)
	if format == "json" {
		return tui.RunJSON(ctx, c.out, lastEnd(api.Events(ctx, server.EventQuery{Mission: m.ID, Session: m.Session})))
	}
	_, err := fmt.Fprintf(c.out, "Mission %s is %s: %s\n", m.ID, m.Status, tui.Clean(m.Goal))
	if m.Summary != "" && err == nil {
		_, err = fmt.Fprintln(c.out, strings.Join(tui.CleanLines(m.Summary), "\n"))
	}
	return err
}

// lastEnd yields the newest event that ended the mission.
func lastEnd(events iter.Seq2[centurion.Event, error]) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		var end centurion.Event
		for e, err := range events {
			if err != nil {
				yield(e, err)
				return
			}
			if e.Type.EndsMission() {
				end = e
			}
		}
		if end.Seq != 0 {
			yield(end, nil)
		}
	}
}
