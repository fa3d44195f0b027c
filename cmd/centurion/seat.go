package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"time"

	"centurion"
	"centurion/config"
	"centurion/guard"
	"centurion/orchestrator"
	"centurion/server"
	"centurion/takeover"
	"centurion/tui"
	"centurion/workspace"
)

// seat is this process's place at a project: it is the project's host, or a client of the process that is. When that
// one ends or dies, the seat takes its place or finds who did; whoever uses the seat does not notice.
type seat struct {
	place
	ws     *workspace.Workspace
	cfg    *config.Config
	models *modelSet
	how    manner
	say    func(string) // tells the person, not as part of the output

	first string // a mission that is not taken up when the project is taken: it is resumed with new limits

	mu     sync.Mutex // protects what follows
	host   *host      // nil for a client
	client *server.Client
}

// How long the host of a project is looked for: a second one has to say soon who owns the project, but who has work
// there waits for a host that is just ending.
const (
	findFirst = 800 * time.Millisecond
	findNext  = 10 * time.Second
	findPause = 20 * time.Millisecond

	// findAnswer is how long a host may take to say who it is: one that is stopped (Ctrl-Z) takes the connection and never says so,
	// and a busy one needs a part of a second.
	findAnswer = 3 * time.Second
)

// take becomes the project's host, or the client of the process that is. As the host it takes up what another one has
// left. An error of centurion.KindConflict says who has the project and does not answer.
func (s *seat) take(ctx context.Context, patience time.Duration) error {
	for start := time.Now(); ; {
		h, err := own(ctx, s.place, s.ws, s.models, s.cfg, s.how)
		if err == nil {
			found, err := h.goOn(ctx, s.first, s.say)
			if err != nil {
				return errors.Join(err, h.Close())
			}
			for _, id := range found {
				s.say("mission " + id + " was interrupted and goes on here")
			}
			s.sit(h, nil)
			return nil
		}
		if !isHeld(err) {
			return err
		}
		if c, info := s.connect(ctx); c != nil {
			s.sit(nil, c)
			return sameVersion(info)
		}
		if time.Since(start) > patience {
			return err
		}
		t := time.NewTimer(findPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
	}
}

// sameVersion refuses a host of another version: what the two would say to each other was never tried.
func sameVersion(info server.Info) error {
	if info.Version == Version {
		return nil
	}
	return &centurion.Error{Op: "host project", Kind: centurion.KindConflict,
		Msg:  fmt.Sprintf("process %d hosts this project with version %s, and this is version %s", info.PID, info.Version, Version),
		Hint: fmt.Sprintf("end it with `kill %d`: its missions go on here with `centurion resume`", info.PID)}
}

func (s *seat) sit(h *host, c *server.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		s.client.Close()
	}
	s.host, s.client = h, c
}

// connect returns a client of the process that hosts the project, and who that is, or nil if none answers.
func (p place) connect(ctx context.Context) (*server.Client, server.Info) {
	o, err := readOwner(p)
	if err != nil {
		return nil, server.Info{}
	}
	c := server.NewClient(o.Socket, p.token)
	ctx, cancel := context.WithTimeout(ctx, findAnswer)
	defer cancel()
	info, err := c.Info(ctx)
	if err != nil {
		c.Close()
		return nil, info
	}
	return c, info
}

// hosting returns the host if this process is it.
func (s *seat) hosting() *host {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.host
}

func (s *seat) api() server.API {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.host != nil {
		return s.host.api()
	}
	return s.client
}

// ask asks the host, and the next one if it has gone meanwhile: of several short missions each host may end soon.
func ask[T any](ctx context.Context, s *seat, f func(server.API) (T, error)) (T, error) {
	for start := time.Now(); ; {
		v, err := f(s.api())
		if centurion.KindOf(err) != centurion.KindNetwork || s.hosting() != nil || time.Since(start) > findNext {
			return v, err
		}
		if err := s.take(ctx, findNext); err != nil {
			return v, err
		}
	}
}

// Mission returns a mission.
func (s *seat) Mission(ctx context.Context, id string) (server.Mission, error) {
	return ask(ctx, s, func(api server.API) (server.Mission, error) { return api.Mission(ctx, id) })
}

// Answer answers an ask.
func (s *seat) Answer(ctx context.Context, id, answer string) error {
	_, err := ask(ctx, s, func(api server.API) (struct{}, error) { return struct{}{}, api.Answer(ctx, id, answer) })
	return err
}

// Diff tells what a mission or a task has changed.
func (s *seat) Diff(ctx context.Context, id string, o takeover.DiffOptions) (takeover.Change, error) {
	return ask(ctx, s, func(api server.API) (takeover.Change, error) { return api.Diff(ctx, id, o) })
}

// Merge puts a mission's work on the person's branch.
func (s *seat) Merge(ctx context.Context, id string, q takeover.MergeRequest) (takeover.MergeReport, error) {
	return ask(ctx, s, func(api server.API) (takeover.MergeReport, error) { return api.Merge(ctx, id, q) })
}

// Undo takes back what a mission or a task has done.
func (s *seat) Undo(ctx context.Context, id string, q takeover.UndoRequest) (takeover.UndoReport, error) {
	return ask(ctx, s, func(api server.API) (takeover.UndoReport, error) { return api.Undo(ctx, id, q) })
}

// Events yields a mission's events, also across hosts. It ends with an error if the mission has stopped without being
// able to record it.
func (s *seat) Events(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		for {
			inner, done := s.whileHosted(ctx, q.Mission)
			for e, err := range s.api().Events(inner, q) {
				if centurion.KindOf(err) == centurion.KindNetwork {
					break
				}
				if !yield(e, err) || err != nil {
					done()
					return
				}
				q.After = max(q.After, e.Seq)
			}
			done()
			switch {
			case ctx.Err() != nil || !q.Follow:
				return
			case s.hosting() != nil:
				if cause := context.Cause(inner); cause != context.Canceled {
					yield(centurion.Event{}, cause)
				}
				return
			}
			if err := s.take(ctx, findNext); err != nil {
				yield(centurion.Event{}, err)
				return
			}
		}
	}
}

// whileHosted returns a context that ends with the error of a mission of this process that could not even record how it
// stopped.
func (s *seat) whileHosted(ctx context.Context, mission string) (inner context.Context, done func()) {
	h := s.hosting()
	if h == nil {
		return ctx, func() {}
	}
	inner, cancel := context.WithCancelCause(ctx)
	var g guard.Group
	h.mu.Lock()
	x := h.hosted[mission]
	h.mu.Unlock()
	if x != nil {
		g.Go("watch mission", func() error {
			select {
			case <-x.done:
				if x.err != nil {
					cancel(x.err)
				}
			case <-inner.Done():
			}
			return nil
		})
	}
	return inner, func() { cancel(nil); _ = g.Wait() } // it returns nil
}

// stopTime is how long a mission may take to stop after Ctrl-C.
const stopTime = 30 * time.Second

// interrupt pauses a mission because this process was told to end.
func (s *seat) interrupt(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	_, err := ask(ctx, s, func(api server.API) (struct{}, error) {
		return struct{}{}, api.Pause(ctx, id, centurion.ErrShutdown.Msg)
	})
	if err != nil && centurion.KindOf(err) != centurion.KindConflict { // it has just stopped by itself
		s.say("the mission could not be paused: " + err.Error())
	}
}

// leave gives the place up. A background host takes over what runs in the background.
func (s *seat) leave(ctx context.Context) error {
	h := s.hosting()
	if h == nil {
		s.sit(nil, nil)
		return nil
	}
	if h.background(ctx) {
		if _, err := s.spawn(); err != nil {
			s.say("no background host could be started: " + err.Error())
		}
	}
	return h.leave(ctx, s.say)
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
func (c *cli) attend(ctx context.Context, s *seat, f *runFlags, id string, after int64) error {
	var g guard.Group
	shown := make(chan struct{})
	g.Go("pause mission", func() error {
		select {
		case <-ctx.Done():
			s.interrupt(id)
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
		s.interrupt(id)
		m, err = s.Mission(view, id)
	}
	if err == nil {
		c.ended(f, m.Noun())
		err = c.afterMission(ctx, s, f, m.Noun(), f.format != "json" && c.together())
	}
	return errors.Join(err, s.leave(ctx))
}

// note tells a person something that is not part of the output.
func (c *cli) note(text string) { fmt.Fprintln(c.err, "centurion: "+oneLine(text)) }

// executable is the program itself, for what it starts in the background.
func executable() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", &centurion.Error{Op: "start background host", Kind: centurion.KindInternal, Err: err}
	}
	return self, nil
}
