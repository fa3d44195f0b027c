package server_test

import (
	"context"
	"errors"
	"testing"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/mail"
	"centurion/server"
	"centurion/store"
)

// What controls a session crosses the socket with ids completed and errors of their kinds, and without a host only
// the state is told.
func TestLive(t *testing.T) {
	p, b := hosting(t)
	c := connect(t, p.local)
	short := p.session.ID[:len(p.session.ID)-4]
	s, err := c.State(t.Context(), short)
	if err != nil || s.Session != p.session.ID || s.Activity != agent.Stopped || s.Mission != p.mission.ID {
		t.Errorf("state %+v, %v", s, err)
	}
	if _, err := c.Prompt(t.Context(), mail.Post{To: short, Text: "well?"}); centurion.KindOf(err) != centurion.KindConflict || centurion.HintOf(err) == "" {
		t.Errorf("prompt: %v", err)
	}
	if err := c.Abort(t.Context(), short, ""); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("abort: %v", err)
	}
	if err := c.Abort(t.Context(), "ses_zz", ""); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("abort of nothing: %v", err)
	}
	if err := c.Stop(t.Context(), short, ""); err != nil {
		t.Errorf("stop of a paused mission: %v", err)
	}
	if len(b.launched) > 0 {
		t.Errorf("launched %v", b.launched)
	}
	idle := &server.Local{Store: p.store}
	if s, err := idle.State(t.Context(), short); err != nil || s.Session != p.session.ID {
		t.Errorf("without a host: %+v, %v", s, err)
	}
	if err := idle.Abort(t.Context(), short, ""); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("without a host: %v", err)
	}
}

// waits is a runner of commands each of which lasts until it is ended.
type waits struct{ begun chan struct{} }

func (w waits) Run(ctx context.Context, _ centurion.Command) (centurion.CommandResult, error) {
	close(w.begun)
	<-ctx.Done()
	return centurion.CommandResult{}, context.Cause(ctx)
}

// A person's command in a conversation that rests is what an abort of that conversation ends, and nothing is wrong then.
func TestAbortOfACommand(t *testing.T) {
	p, _ := hosting(t)
	c := connect(t, p.local)
	w := waits{make(chan struct{})}
	p.local.Host.Shell.Session.Call.Runner = w
	over := make(chan error, 1)
	go func() { _, err := c.Shell(t.Context(), p.session.ID, "make"); over <- err }()
	select {
	case <-w.begun:
	case err := <-over:
		t.Fatalf("it does not run: %v", err)
	}
	if err := c.Abort(t.Context(), p.session.ID, ""); err != nil {
		t.Error(err)
	}
	if err := <-over; err != nil {
		t.Errorf("the command ends with %v", err)
	}
}

// Who asks the Commander of a blocked mission for an answer lets that mission continue, whichever of its names the message has.
func TestPromptOfABlockedMission(t *testing.T) {
	p, b := hosting(t)
	p.local.Work = refusing{b}
	p.mission.Status = centurion.MissionBlocked
	if err := p.store.Update(t.Context(), func(tx *store.Tx) error { return tx.PutMission(&p.mission) }); err != nil {
		t.Fatal(err)
	}
	for _, post := range []mail.Post{{To: "0/"}, {To: "0"}, {To: "0", Mission: p.mission.ID}, {To: p.session.ID}, {To: p.mission.ID}} {
		post.Text = "use PostgreSQL"
		if _, err := p.local.Prompt(t.Context(), post); !errors.Is(err, errBegun) {
			t.Errorf("to %q of %q: %v", post.To, post.Mission, err)
		}
	}
	if _, err := p.local.Prompt(t.Context(), mail.Post{To: p.worker(), Text: "use PostgreSQL"}); err == nil || errors.Is(err, errBegun) {
		t.Errorf("to a worker: %v", err)
	}
}

// The reason of a mission's own state is not hidden by a turn that a person has stopped.
func TestReasonStandsBeforeStopped(t *testing.T) {
	p := newProject(t)
	p.mission.Status, p.mission.Reason, p.session.Metadata.Aborted = centurion.MissionRunning, "its own reason", "enough"
	if err := p.store.Update(t.Context(), func(tx *store.Tx) error { return errors.Join(tx.PutMission(&p.mission), tx.PutSession(&p.session)) }); err != nil {
		t.Fatal(err)
	}
	if all, err := p.local.Missions(t.Context()); err != nil || len(all) != 1 || all[0].Reason != "its own reason" {
		t.Errorf("%+v, %v", all, err)
	}
}
