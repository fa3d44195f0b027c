package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/config"
	"centurion/guard"
	"centurion/host"
	"centurion/notify"
	"centurion/orchestrator"
	"centurion/server"
	"centurion/tui"
	"centurion/workspace"
)

func (c *cli) hostCommand() *cobra.Command {
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

// startDetached is `centurion run --detach`.
func (c *cli) startDetached(ctx context.Context, s *host.Connection, f *runFlags, goal string, opts centurion.MissionOptions) error {
	opts.Detached = true
	if err := s.ConnectBackground(ctx); err != nil {
		return err
	}
	m, err := c.startWith(ctx, s, f, goal, opts)
	if err != nil {
		return err
	}
	return c.printDetached(ctx, s, f, m)
}

// resumeDetached is `centurion resume --detach`.
func (c *cli) resumeDetached(ctx context.Context, s *host.Connection, f *runFlags, id string, opts centurion.MissionOptions) error {
	opts.Detached = true
	if err := s.ConnectBackground(ctx); err != nil {
		return err
	}
	m, err := host.Call(ctx, s, func(api server.API) (server.Mission, error) { return api.Resume(ctx, id, opts) })
	if err != nil {
		return err
	}
	return c.printDetached(ctx, s, f, m)
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

// shower is what a view of a mission is drawn from.
type shower interface {
	tui.Answerer
	Send(ctx context.Context, p orchestrator.Post) (orchestrator.Posted, error)
	Abort(ctx context.Context, id, reason string) error
	Mission(ctx context.Context, id string) (server.Mission, error)
	Events(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error]
}

// attend shows a mission of this person until it stops, whoever hosts it, and sets the exit code. When ctx ends, or
// nobody reads the output any more, the mission is paused.
func (c *cli) attend(ctx context.Context, s *host.Connection, f *runFlags, id string, after int64) error {
	var g guard.Group
	shown := make(chan struct{})
	g.Go("pause mission", func() error {
		select {
		case <-ctx.Done():
			s.Pause(id)
		case <-shown:
		}
		return nil
	})
	view := context.WithoutCancel(ctx)
	err := c.show(view, s, f, id, after, true)
	close(shown)
	if c.unread() {
		err = nil // it is no failure of the mission
	}
	err = errors.Join(err, g.Wait())
	var m server.Mission
	if err == nil {
		m, err = s.Mission(view, id)
	}
	if err == nil && c.unread() && m.Status.Alive() { // the view has ended before the mission
		s.Pause(id)
		m, err = s.Mission(view, id)
	}
	if err == nil {
		c.ended(f, m.Noun())
		err = c.afterMission(ctx, s, f, m.Noun(), f.format != "json" && c.together())
	}
	return errors.Join(err, s.Close(ctx))
}

// note tells a person something that is not part of the output.
func (c *cli) note(text string) { fmt.Fprintln(c.err, "centurion: "+oneLine(text)) }

// confirmDirectory asks before agents work on the home directory or on a whole file system, which nobody means by a project. Without a
// terminal it refuses, unless the person is sure.
func (c *cli) confirmDirectory(ctx context.Context, dir string, f *runFlags, sure bool) error {
	what := ""
	switch home, err := filepath.EvalSymlinks(c.getenv("HOME")); {
	case filepath.Dir(dir) == dir:
		what = "the root of a file system"
	case err == nil && dir == home:
		what = "your home directory"
	}
	if what == "" || sure {
		return nil
	}
	refused := &centurion.Error{Op: "start mission", Kind: centurion.KindUsage, Msg: dir + " is " + what + ": agents would read and change everything in it",
		Hint: "go to a project directory, or name one with --dir; --yes starts here all the same"}
	if !tui.CanLive(c.in, c.out, c.env) || f.format == "json" {
		return refused
	}
	fmt.Fprintf(c.out, "%s is %s. Agents would read and change everything in it.\n", tui.Clean(dir), what)
	key, err := tui.Choose(ctx, tui.Choice{Text: "start here? (y/N)", Keys: "yn", Default: "n", In: c.in, Out: c.out, Env: c.env})
	if err == nil && key != "y" {
		return refused
	}
	return err
}
