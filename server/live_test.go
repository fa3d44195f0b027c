package server_test

import (
	"testing"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/mail"
	"centurion/server"
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
