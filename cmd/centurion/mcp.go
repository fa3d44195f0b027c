package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/guard"
	"centurion/host"
	"centurion/sandbox"
	"centurion/server"
	"centurion/server/rpc"
	"centurion/server/toolserver"
)

func mcpCommand(c *cli) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "mcp [flags]",
		Short: "Serve missions as tools to other agents (MCP)",
		Long: "Serve the missions of a project to another agent (Claude Code, Codex, an editor) with the Model Context Protocol over standard\n" +
			"input and output. Its tools start missions and show them, answer what their agents ask, and pause, resume and cancel them;\n" +
			"docs/mcp-server.md describes each. When standard input ends, the missions that the client started are paused, unless another\n" +
			"process keeps them; with --detach they continue in the background. The flags are those of run and hold for every mission.",
		Example: "  claude mcp add missions -- centurion mcp\n  codex mcp add missions -- centurion mcp\n  centurion mcp --dir ../api --max-cost 2 --detach",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.costSet = cmd.Flags().Changed("max-cost")
			return (&runner{c, f}).serveTools(cmd.Context())
		},
	}
	f.bind(cmd)
	for _, name := range []string{"format", "merge"} {
		_ = cmd.Flags().MarkHidden(name)
	}
	return cmd
}

// serveTools is `centurion mcp`. A command of an agent gets no tools: with them it could approve what it asks for itself.
func (c *runner) serveTools(ctx context.Context) error {
	if c.f.format != "" || c.f.merge {
		return &centurion.Error{Kind: centurion.KindUsage, Msg: "--format and --merge are no flags of mcp", Hint: "see: centurion mcp --help"}
	}
	p, ws, err := c.locate(c.f.dir)
	if err != nil {
		return err
	}
	_ = ws.Close()
	if c.getenv(centurion.HostVariable) != "" || (&sandbox.Runner{Mark: p.Mark()}).Started() {
		return &centurion.Error{Op: "serve MCP client", Kind: centurion.KindPermission, Msg: "agents of a mission cannot control Centurion", Hint: "start it outside of a mission"}
	}
	return c.withFrontEnd(ctx, func(e *frontEnd) error {
		inner, gone := context.WithCancel(ctx) // ends with the client, too
		leave := func() { e.missions.Leave(func(id string) bool { return e.conn.Kept(ctx, id) }) }
		defer leave() // once more: a last call may have started one
		var g guard.Group
		g.Go("pause missions", func() error {
			<-inner.Done()
			leave()
			return nil
		})
		s := toolserver.New(inner, Version, &toolserver.Project{Call: e.conn.Do, Begin: e.begin, Resume: e.resume, Follow: e.follow, Take: e.missions.Take, Own: e.missions.Owns,
			Plan: func(ctx context.Context, id string) ([]event.PlanItem, error) {
				return planReader(planFile(e.conn, id))(ctx)
			}})
		err := toolserver.Serve(ctx, wakeable(c.in), noClose{c.out}, s, gone)
		gone()
		return errors.Join(err, g.Wait())
	})
}

// resume goes on with a stopped mission, with its own limits, and asks as it did. One that this process has found interrupted goes on
// already, and is only taken.
func (e *frontEnd) resume(ctx context.Context, m server.Mission) (server.Mission, error) {
	if m.Status.Alive() {
		if e.conn.Kept(ctx, m.ID) {
			return m, &centurion.Error{Op: "resume", Kind: centurion.KindConflict, Msg: "mission " + m.ID + " is " + string(m.Status) + " already", Hint: "see mission_result"}
		}
		e.missions.Take(m.ID)
		return m, nil
	}
	opts, err := e.options(ctx, rpc.StartParams{Model: m.Model, Profile: cmp.Or(m.Options.Profile, agents.ProfileMission)})
	if err != nil {
		return server.Mission{}, err
	}
	opts.MaxCost, opts.MaxTokens, opts.MaxRounds, opts.MaxDuration, opts.MaxToolCalls, opts.Level = 0, 0, 0, 0, 0, 0
	opts.Ask = e.given.ask
	m, err = host.Call(ctx, e.conn, func(api server.API) (server.Mission, error) { return api.Resume(ctx, m.ID, opts) })
	if err == nil {
		e.missions.Take(m.ID)
	}
	return m, err
}
