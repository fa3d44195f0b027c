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
	"centurion/config"
	"centurion/guard"
	"centurion/host"
	"centurion/notify"
	"centurion/orchestrator/approval"
	"centurion/orchestrator/mail"
	"centurion/server"
	"centurion/text"
	"centurion/tui"
	"centurion/workspace"
)

// missionAPI is what a view of a mission is drawn from.
type missionAPI interface {
	tui.Answerer
	Send(ctx context.Context, p mail.Post) (mail.Posted, error)
	Abort(ctx context.Context, id, reason string) error
	Mission(ctx context.Context, id string) (server.Mission, error)
	Events(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error]
}

// follow shows a mission of this person until it stops, on any host, and sets the exit code. It pauses the mission when ctx ends or the
// output is closed.
func (c *runner) follow(ctx context.Context, conn *host.Connection, id string, after int64) error {
	var g guard.Group
	shown := make(chan struct{})
	g.Go("pause mission", func() error {
		select {
		case <-ctx.Done():
			conn.Pause(id)
		case <-shown:
		}
		return nil
	})
	view := context.WithoutCancel(ctx)
	err := c.draw(view, conn, id, after, true)
	close(shown)
	if c.outputClosed() {
		err = nil // it is no failure of the mission
	}
	err = errors.Join(err, g.Wait())
	var m server.Mission
	if err == nil {
		m, err = conn.Mission(view, id)
	}
	if err == nil && c.outputClosed() && m.Status.Alive() { // the view has ended before the mission
		conn.Pause(id)
		m, err = conn.Mission(view, id)
	}
	if err == nil {
		c.setExitCode(m.Noun())
		err = c.afterMission(ctx, conn, m.Noun(), c.f.format != "json" && c.sameOutput())
	}
	return errors.Join(err, conn.Close(ctx))
}

// setExitCode sets the exit code. If the output is JSON lines or closed, the reason for another code than 0 goes to standard error.
func (c *runner) setExitCode(m centurion.Mission) {
	c.code = missionExit(m.Status, m.Reason)
	if c.code == exitComplete || c.f.format != "json" && !c.outputClosed() {
		return
	}
	next := "centurion resume " + m.ID
	switch m.Status {
	case centurion.MissionBlocked:
		next = answerFirst(m.Reason) + next
	case centurion.MissionCancelled:
		next = "centurion show " + m.ID
	case centurion.MissionFailed:
		next = fmt.Sprintf("centurion show %s, then centurion resume %s", m.ID, m.ID)
	}
	fmt.Fprintf(c.err, "centurion: mission %s is %s: %s\nnext: %s\n", m.ID, m.Status, oneLine(m.Reason), next)
}

// answerFirst returns what precedes the resume of a mission blocked on a question, according to its reason.
func answerFirst(reason string) string {
	if strings.HasSuffix(reason, "("+approval.AsksHint+")") {
		return approval.AsksHint + ", then "
	}
	if _, rest, asked := strings.Cut(reason, "(centurion answer "); asked {
		if id, _, named := strings.Cut(rest, " TEXT)"); named {
			return "centurion answer " + id + " TEXT, then "
		}
	}
	return ""
}

// draw draws a mission's events until its end. keep means that this process takes the mission over when its host ends.
func (c *runner) draw(ctx context.Context, api missionAPI, id string, after int64, keep bool) error {
	q := server.EventQuery{After: after, Mission: id, Follow: true, Keep: keep}
	if c.f.format == "json" {
		waits, err := c.noteWaiting(ctx, api, id, after)
		if err != nil {
			return err
		}
		return tui.RunJSON(ctx, c.out, tui.UntilEnd(waits.Through(api.Events(ctx, q))))
	}
	m, err := api.Mission(ctx, id)
	if err != nil {
		return err
	}
	past := tui.NewPast(m.Options.MaxWorkers, m.Options.MaxPerAgent, !keep)
	if after > 0 {
		for e, err := range api.Events(ctx, server.EventQuery{Mission: id}) {
			if err != nil {
				return err
			}
			if e.Seq <= after {
				past.Add(e)
			}
		}
	}
	if !c.live() {
		if tui.Dumb(c.in, c.out, c.env) {
			c.note("this terminal cannot be redrawn (TERM is dumb or not set): events are printed as plain lines; answer from another terminal with: centurion asks")
		}
		return past.RunPlain(ctx, c.out, tui.UntilEnd(api.Events(ctx, q)))
	}
	q.Deltas, q.Toasts = true, true
	o := tui.Options{Events: api.Events(ctx, q), In: c.in, Out: c.out, Env: c.env, Past: past, Answerer: api,
		Writer: commander{api, m.ID}, Aborter: commander{api, m.ID}, Interrupt: c.interrupt}
	if m.Todo != "" {
		o.PlanFile = planFile(api, id)
		o.Plan = planReader(o.PlanFile)
	}
	return tui.RunLive(ctx, o)
}

// noteWaiting reports on standard error what waits for a person, which is easy to miss among JSON lines. After a resume only questions are
// still open: everything else is asked again.
func (c *runner) noteWaiting(ctx context.Context, api missionAPI, id string, after int64) (*tui.Waits, error) {
	w := tui.NewWaits(c.note)
	for e, err := range api.Events(ctx, server.EventQuery{Mission: id}) {
		if err != nil {
			return w, err
		}
		if after == 0 || e.Seq <= after {
			w.Before(e)
		}
	}
	w.Open(after > 0)
	return w, nil
}

// missionExit returns the exit code for a stopped mission.
func missionExit(s centurion.MissionStatus, reason string) int {
	switch paused := s == centurion.MissionPaused; {
	case s == centurion.MissionCompleted, paused && reason == "planned":
		return exitComplete
	case paused && reason == centurion.ErrShutdown.Msg:
		return exitInterrupted
	case paused:
		return exitPaused
	case s == centurion.MissionBlocked:
		return exitBlocked
	case s == centurion.MissionCancelled:
		return exitCancelled
	}
	return exitFailed
}

// noteHost reports if another process hosts the mission.
func (c *runner) noteHost(conn *host.Connection) {
	if conn.Host() != nil {
		return
	}
	if o, err := conn.Place.Owner(); err == nil {
		c.note(fmt.Sprintf("process %d hosts this project; the mission runs there (Ctrl-C pauses it)", o.PID))
	}
}

// watch watches a mission of another process to its end, from before begin is called. Ctrl-C only ends the watching.
func (c *runner) watch(ctx context.Context, v *view, m server.Mission, begin func(api server.API, id string) (server.Mission, error)) error {
	c.f.format = cmp.Or(c.f.format, "text")
	api := lasting{v.API, v.Place, c.note}
	newest, err := api.LastSeq(ctx)
	if err == nil {
		_, err = begin(v.API, m.ID)
	}
	if err == nil {
		err = c.draw(ctx, api, m.ID, newest, false)
	}
	if ctx.Err() != nil { // this process was interrupted, the mission continues; a request that the interrupt cut is no failure
		c.code = exitInterrupted
		return nil
	}
	if err != nil {
		return err
	}
	m, err = v.Place.Mission(ctx, m.ID)
	if err == nil {
		c.setExitCode(m.Noun())
	}
	return err
}

// lasting is an API whose events outlive the host that it was opened with.
type lasting struct {
	server.API
	place host.Place
	note  func(string)
}

func (l lasting) Events(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
	return l.place.Events(ctx, l.API, q, l.note)
}

// printEnd prints the end of a mission that is not resumed.
func (v *view) printEnd(ctx context.Context, m server.Mission) error {
	v.code = missionExit(m.Status, m.Reason)
	if v.json() {
		return tui.RunJSON(ctx, v.out, lastEnd(v.API.Events(ctx, server.EventQuery{Mission: m.ID, Session: m.Session})))
	}
	_, err := fmt.Fprintf(v.out, "Mission %s is %s: %s\n", m.ID, m.Status, text.Clean(m.Goal))
	if m.Summary != "" && err == nil {
		_, err = fmt.Fprintln(v.out, strings.Join(text.CleanLines(m.Summary), "\n"))
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

// commander is the first agent of a mission, which the live view can write to and stop.
type commander struct {
	api     missionAPI
	mission string
}

func (c commander) Write(ctx context.Context, text string) error {
	_, err := c.api.Send(ctx, mail.Post{To: c.mission, Text: text})
	return err
}

func (c commander) Abort(ctx context.Context) error {
	return c.api.Abort(ctx, c.mission, "stopped with esc")
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
			return (&runner{c, f}).attach(cmd.Context(), first(args))
		}}
	cmd.Flags().StringVar(&f.dir, "dir", "", "the project directory (default: here)")
	cmd.Flags().StringVar(&f.format, "format", "text", "text or json, one event on each line")
	completeValues(cmd, "format", "text", "json")
	cmd.ValidArgsFunction = complete(c, 1, missions)
	return cmd
}

// attach is `centurion attach`. For a stopped mission it prints the end.
func (c *runner) attach(ctx context.Context, id string) error {
	c.awaitHost(ctx, c.f.dir, id)
	m, over, err := c.findResumable(ctx, id, func(server.API, string) (m server.Mission, err error) { return m, nil })
	if c.code == exitInterrupted && ctx.Err() != nil { // the usual way to leave
		c.code = exitComplete
		c.note("the mission continues; watch it with: centurion attach " + m.ID)
	}
	if err != nil || over {
		return err
	}
	return c.open(ctx, c.f.viewFlags(), func(v *view) error {
		err := v.printEnd(ctx, m)
		if !v.json() && err == nil {
			c.note("it is not running; continue with: centurion resume " + m.ID)
		}
		return err
	})
}

// awaitHost waits until the mission of a project in a directory has a host.
func (c *cli) awaitHost(ctx context.Context, dir, id string) {
	if p, ws, err := c.locate(dir); err == nil { // the next request reports the error
		p.AwaitHost(ctx, id)
		_ = ws.Close()
	}
}

func hostCommand(c *cli) *cobra.Command {
	var dir, sandbox string
	cmd := &cobra.Command{Use: "host", Short: "Host this project's missions in the background", Hidden: true,
		Long: "Host this project's missions in the background, until none is left. `centurion run --detach` starts it.",
		Args: exactly(0, 0, "no arguments"), Example: "  centurion host --dir .",
		RunE: func(cmd *cobra.Command, _ []string) error { return c.backgroundHost(cmd.Context(), dir, sandbox) }}
	cmd.Flags().StringVar(&dir, "dir", "", "the project directory (default: here)")
	cmd.Flags().StringVar(&sandbox, "sandbox", "", "how commands are confined: auto, require or off (default: as configured)")
	return cmd
}

// backgroundHost is `centurion host`.
func (c *cli) backgroundHost(ctx context.Context, dir, sandbox string) error {
	p, ws, err := c.locate(dir)
	if err != nil {
		return err
	}
	defer ws.Close()
	how := c.hostOptions()
	how.Renew = &host.Renewer{Note: c.note, Read: func(_ context.Context, stamps config.Stamps, _ func(string)) (*config.Config, config.Resolved, error) {
		cfg, err := config.Load(config.Options{Dir: ws.Dir(), Env: c.getenv, Stamps: stamps})
		if err == nil {
			cfg.Own.Sandbox = cmp.Or(sandbox, cfg.Own.Sandbox)
		}
		return cfg, config.Resolved{}, err
	}}
	if err := how.Renew.Begin(ctx); err != nil {
		return err
	}
	conn := &host.Connection{Place: p, Workspace: ws, Options: how}
	how.Front = (&frontEnd{c: c, conn: conn, given: runFlags{dir: ws.Dir(), sandbox: sandbox, detach: true}}).forPlugins
	return host.RunBackground(ctx, p, ws, how)
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
func (c *runner) printDetached(ctx context.Context, conn *host.Connection, m server.Mission) error {
	if c.f.format == "json" {
		first := func(yield func(centurion.Event, error) bool) {
			for e, err := range conn.Events(ctx, server.EventQuery{Mission: m.ID}) {
				yield(e, err)
				return
			}
		}
		return tui.RunJSON(ctx, c.out, first)
	}
	err := c.say(nil, m.ID)
	if err == nil {
		c.note("it runs in the background; watch it with: centurion attach " + m.ID)
	}
	return err
}
