package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"centurion"
	"centurion/guard"
	"centurion/host"
	"centurion/orchestrator"
	"centurion/server"
	"centurion/tui"
)

// shower is what a view of a mission is drawn from.
type shower interface {
	tui.Answerer
	Send(ctx context.Context, p orchestrator.Post) (orchestrator.Posted, error)
	Abort(ctx context.Context, id, reason string) error
	Mission(ctx context.Context, id string) (server.Mission, error)
	Events(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error]
}

// follow shows a mission of this person until it stops, whoever hosts it, and sets the exit code. When ctx ends, or
// nobody reads the output any more, the mission is paused.
func (c *cli) follow(ctx context.Context, s *host.Connection, f *runFlags, id string, after int64) error {
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

// ended sets the exit code. Whoever reads JSON lines, or nothing any more, is told on the other stream, in words, why it is
// not 0.
func (c *cli) ended(f *runFlags, m centurion.Mission) {
	c.code = missionExit(m.Status, m.Reason)
	if c.code == exitComplete || f.format != "json" && !c.unread() {
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

// answerFirst is what comes before the resume of a mission that is blocked on a question, as the reason of its end names it.
func answerFirst(reason string) string {
	if strings.HasSuffix(reason, "("+orchestrator.AsksHint+")") {
		return orchestrator.AsksHint + ", then "
	}
	if _, rest, asked := strings.Cut(reason, "(centurion answer "); asked {
		if id, _, named := strings.Cut(rest, " TEXT)"); named {
			return "centurion answer " + id + " TEXT, then "
		}
	}
	return ""
}

// show draws a mission's events until its end. Keep says that this process takes the mission over when its host ends.
func (c *cli) show(ctx context.Context, api shower, f *runFlags, id string, after int64, keep bool) error {
	q := server.EventQuery{After: after, Mission: id, Follow: true, Keep: keep}
	if f.format == "json" {
		waits, err := c.waits(ctx, api, id, after)
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
	if !tui.CanLive(c.in, c.out, c.env) {
		c.sayDumb()
		return past.RunPlain(ctx, c.out, tui.UntilEnd(api.Events(ctx, q)))
	}
	q.Deltas, q.Toasts = true, true
	o := tui.Options{Events: api.Events(ctx, q), In: c.in, Out: c.out, Env: c.env, Past: past, Answerer: api,
		Writer: commanderOf{api, m.ID}, Aborter: turnOf{api, m.ID}, Interrupt: c.interrupt}
	if m.Todo != "" {
		o.PlanFile = planFile(api, id)
		o.Plan = planReader(o.PlanFile)
	}
	return tui.RunLive(ctx, o)
}

// sayDumb tells somebody in front of a terminal that says it cannot move its cursor why they see plain lines.
func (c *cli) sayDumb() {
	if tui.Dumb(c.in, c.out, c.env) {
		c.note("this terminal cannot be redrawn (TERM is dumb or not set): events are printed as plain lines; answer from another terminal with: centurion asks")
	}
}

// waits tells on stderr of what waits for a person: among JSON lines nobody would see it. What was open when a mission was taken up again,
// after an event, is a question: everything else is asked anew.
func (c *cli) waits(ctx context.Context, api shower, id string, after int64) (*tui.Waits, error) {
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

// missionExit is the exit code for how a mission stopped.
func missionExit(s centurion.MissionStatus, reason string) int {
	switch s {
	case centurion.MissionCompleted:
		return exitComplete
	case centurion.MissionPaused:
		switch reason {
		case centurion.ErrShutdown.Msg:
			return exitInterrupted
		case "planned":
			return exitComplete
		}
		return exitPaused
	case centurion.MissionBlocked:
		return exitBlocked
	case centurion.MissionCancelled:
		return exitCancelled
	}
	return exitFailed
}

// sayWhere tells the person if their mission runs in another process.
func (c *cli) sayWhere(s *host.Connection) {
	if s.Host() != nil {
		return
	}
	if o, err := s.Place.Owner(); err == nil {
		c.note(fmt.Sprintf("process %d hosts this project; the mission runs there (Ctrl-C pauses it)", o.PID))
	}
}

// watch watches a mission that another process runs, to its end. Ctrl-C ends the watching only.
func (v *view) watch(ctx context.Context, f *runFlags, m server.Mission) error {
	f.format = cmp.Or(f.format, "text")
	after := int64(0)
	for e, err := range v.API.Events(ctx, server.EventQuery{Mission: m.ID}) {
		if err != nil {
			return err
		}
		after = e.Seq
	}
	if err := v.show(ctx, v.API, f, m.ID, after, false); err != nil {
		return err
	}
	if ctx.Err() != nil { // this process was interrupted, the mission goes on
		v.code = exitInterrupted
		return nil
	}
	m, err := v.Place.Mission(ctx, m.ID)
	if err == nil {
		v.ended(f, m.Noun())
	}
	return err
}

// printEnd prints how a mission ended that is not resumed.
func (v *view) printEnd(ctx context.Context, m server.Mission) error {
	v.code = missionExit(m.Status, m.Reason)
	if v.json() {
		return tui.RunJSON(ctx, v.out, lastEnd(v.API.Events(ctx, server.EventQuery{Mission: m.ID, Session: m.Session})))
	}
	_, err := fmt.Fprintf(v.out, "Mission %s is %s: %s\n", m.ID, m.Status, tui.Clean(m.Goal))
	if m.Summary != "" && err == nil {
		_, err = fmt.Fprintln(v.out, strings.Join(tui.CleanLines(m.Summary), "\n"))
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
