package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/muesli/cancelreader"
	"github.com/spf13/cobra"

	"centurion"
	"centurion/host"
	"centurion/server"
	"centurion/server/rpc"
)

func rpcCommand(c *cli) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "rpc [flags]",
		Short: "Serve a front end over standard input and output",
		Long: "Serve a front end with JSON-RPC 2.0, one message a line, over standard input and output: it starts sessions, writes to\n" +
			"them, receives their events and answers their requests. docs/frontends.md describes every method. Nothing else is written to\n" +
			"standard output. When standard input ends, the missions that the front end started are paused; continue them with\n" +
			"`centurion resume`. The flags are those of run; session/start may name another agent or model.",
		Example: "  centurion rpc\n  centurion rpc --dir ../api --model openai/gpt-5",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.costSet = cmd.Flags().Changed("max-cost")
			return c.serveFrontEnd(cmd.Context(), f)
		},
	}
	f.bind(cmd)
	for _, name := range []string{"format", "detach", "yes", "merge"} { // there is no output to format, and no terminal
		_ = cmd.Flags().MarkHidden(name)
	}
	return cmd
}

// frontEnd is a project controlled by a program: a front end, or a client of the tools.
type frontEnd struct {
	c    *cli
	conn *host.Connection

	given runFlags // the flags, without configured values

	missions *host.Keeper
}

func (c *cli) serveFrontEnd(ctx context.Context, f *runFlags) error {
	if f.format != "" || f.detach || f.merge {
		return &centurion.Error{Kind: centurion.KindUsage, Msg: "--format, --detach and --merge are no flags of rpc", Hint: "see: centurion rpc --help"}
	}
	return (&runner{c, f}).withFrontEnd(ctx, func(e *frontEnd) error {
		err := rpc.Serve(ctx, wakeable(c.in), noClose{c.out}, &rpc.Bridge{API: e.conn.API, Begin: e.begin, Follow: e.follow, Moved: e.hostChanged},
			rpc.Options{Version: Version, Say: c.note})
		e.missions.Leave(func(string) bool { return false })
		return err
	})
}

// withFrontEnd connects a program to a project while serve runs.
func (c *runner) withFrontEnd(ctx context.Context, serve func(*frontEnd) error) error {
	c.f.format = "json" // there is no terminal to draw on
	given := *c.f
	conn, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	defer conn.Workspace.Close()
	if err := c.confirmDirectory(ctx, conn.Workspace.Dir(), given.yes); err != nil {
		return err
	}
	if err := conn.ConnectOrOwn(ctx, host.FirstTimeout); err != nil {
		return err
	}
	err = serve(&frontEnd{c: c.cli, conn: conn, given: given, missions: conn.Keeper(ctx)})
	return errors.Join(err, conn.Close(ctx))
}

// begin starts a mission with the front end's parameters.
func (e *frontEnd) begin(ctx context.Context, p rpc.StartParams) (server.Mission, error) {
	if p.Dir != "" {
		if abs, err := filepath.Abs(p.Dir); err != nil || filepath.Clean(abs) != filepath.Clean(e.conn.Workspace.Dir()) {
			return server.Mission{}, &centurion.Error{Op: "session/start", Kind: centurion.KindUsage,
				Msg:  "this front end was started for " + e.conn.Workspace.Dir() + " and not for " + p.Dir,
				Hint: "start another one with: centurion rpc --dir " + p.Dir}
		}
	}
	opts, err := e.options(ctx, p)
	if err != nil {
		return server.Mission{}, err
	}
	m, err := host.Call(ctx, e.conn, func(api server.API) (server.Mission, error) { return api.Start(ctx, p.Prompt, opts) })
	if err == nil {
		e.missions.Take(m.ID)
	}
	return m, err
}

// options are what a mission with these parameters is started with. The front end is asked, unless a flag says something else.
func (e *frontEnd) options(ctx context.Context, p rpc.StartParams) (centurion.MissionOptions, error) {
	models := e.conn.Current(ctx)
	f, cfg := e.given, *models.Config // copies, which get the choice
	f.agent, f.model, f.profile = cmp.Or(p.Agent, f.agent), cmp.Or(p.Model, f.model), cmp.Or(p.Profile, f.profile)
	run, flagged := &runner{e.c, &f}, f.model != ""
	if err := f.settle(cfg.Own); err != nil {
		return centurion.MissionOptions{}, err
	}
	first, err := run.findModel(ctx, &cfg, flagged, e.c.note)
	if err != nil {
		return centurion.MissionOptions{}, err
	}
	f.ask = cmp.Or(f.ask, "ask")
	opts, err := run.missionOptions(&host.Models{Config: &cfg, First: first})
	opts.Request, opts.Detached, opts.Unattended = rand.Text(), e.given.detach, opts.Ask == "ask" && p.Unasked
	return opts, err
}

// follow yields events until ctx ends, across hosts.
func (e *frontEnd) follow(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		for {
			api := e.conn.API()
			for ev, err := range api.Events(ctx, q) {
				if centurion.KindOf(err) == centurion.KindNetwork {
					break
				}
				if !yield(ev, err) || err != nil {
					return
				}
				q.After = max(q.After, ev.Seq)
			}
			if ctx.Err() != nil {
				return
			}
			if err := e.conn.Again(ctx, api); err != nil {
				yield(centurion.Event{}, err)
				return
			}
		}
	}
}

// hostChanged reports whether the called host is gone, and finds the next one. This process hosts until it ends.
func (e *frontEnd) hostChanged(ctx context.Context, was server.API) (bool, error) {
	if _, client := was.(*server.Client); !client {
		return false, nil
	}
	if _, err := was.LastSeq(ctx); centurion.KindOf(err) != centurion.KindNetwork {
		return false, nil // the turn itself failed
	}
	return true, e.conn.Again(ctx, was)
}

// wakeable makes closing a file end its reads, if the system can.
func wakeable(in io.Reader) io.Reader {
	file, ok := in.(*os.File)
	if !ok {
		return in
	}
	r, err := cancelreader.NewReader(file)
	if err != nil {
		return in // it is read until it ends
	}
	return wakeableReader{r}
}

type wakeableReader struct{ cancelreader.CancelReader }

// Close wakes the reader; the file itself stays open.
func (w wakeableReader) Close() error {
	w.Cancel()
	return nil
}

// noClose is an output closed by its owner.
type noClose struct{ io.Writer }

func (noClose) Close() error { return nil }
