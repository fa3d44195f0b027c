package server

import (
	"context"
	"net/url"

	"centurion"
	"centurion/orchestrator/control"
	"centurion/orchestrator/mail"
)

// Live is the part of [API] that controls running sessions. Sessions are identified by their id or that of their task or mission.
type Live interface {
	// Prompt sends a message to an agent and returns the text of the turn that answers it; see mail.Desk.Prompt. A stopped
	// mission is resumed if p.Resume is set, a blocked one by a message to its Commander, and likewise one for which mail.GoesOn
	// returns true.
	Prompt(ctx context.Context, p mail.Post) (mail.Reply, error)
	// Abort ends the turn of a session, but not the session.
	Abort(ctx context.Context, id, reason string) error
	// Stop ends a session with its tool calls, their processes and its children, and returns when they have ended.
	Stop(ctx context.Context, id, reason string) error
	// State returns the state of a session without waiting for it.
	State(ctx context.Context, id string) (control.State, error)
}

// Prompt sends a message to an agent and waits for the answer. Ids may be unique prefixes.
func (l *Local) Prompt(ctx context.Context, p mail.Post) (mail.Reply, error) {
	if l.Host == nil {
		return mail.Reply{}, notRunning("prompt")
	}
	p, err := l.addressed(ctx, p)
	if err != nil {
		return mail.Reply{}, err
	}
	may := mail.Continues
	goOn, err := l.goesOnFor(ctx, p, may)
	if !goOn && err == nil {
		if goOn, err = l.goesOnFor(ctx, p, mail.GoesOn); goOn {
			may = mail.GoesOn // it was paused before the person asked
		}
	}
	if err != nil {
		return mail.Reply{}, err
	}
	if !goOn && !l.attended(ctx, p) {
		return l.Host.Mail.Prompt(ctx, p, nil)
	}
	return l.Host.Mail.Prompt(ctx, p, func(mission string) error {
		// It may have stopped since, or have been stopped by a person: the current state counts.
		switch goOn, err := l.goesOnFor(ctx, p, may); {
		case err != nil:
			return err
		case !goOn && l.Host.Mail.Attended(mission):
			return nil
		case !goOn:
			return l.Host.Mail.Unattended(ctx, mission)
		case l.Work == nil:
			return notRunning("prompt")
		}
		return l.Work.Launch(mission)
	})
}

// attended reports whether the mission of a message to its Commander is running.
func (l *Local) attended(ctx context.Context, p mail.Post) bool {
	s, err := l.Host.Control.State(ctx, lookedUpBy(p))
	return err == nil && s.Task == "" && l.Host.Mail.Attended(s.Mission)
}

// goesOnFor reports whether an idle mission is resumed by a message that waits for an answer: a blocked one, or one for which may
// returns true.
func (l *Local) goesOnFor(ctx context.Context, p mail.Post, may func(centurion.Mission) bool) (bool, error) {
	if p.Resume {
		return true, nil
	}
	s, err := l.Host.Control.State(ctx, lookedUpBy(p))
	if err != nil || s.Task != "" {
		return false, err
	}
	m, err := l.Store.Mission(ctx, s.Mission)
	return m.Status == centurion.MissionBlocked || may(m), err
}

// lookedUpBy is the id by which the receiver of a message is found: for the Commander, its mission's.
func lookedUpBy(p mail.Post) string {
	if p.Mission != "" && (p.To == "0/" || p.To == "0") {
		return p.Mission
	}
	return p.To
}

// whole completes the id of a session, task or mission.
func (l *Local) whole(ctx context.Context, id string) (string, error) {
	p, err := l.addressed(ctx, mail.Post{To: id})
	return p.To, err
}

// Abort ends the turn of a session.
func (l *Local) Abort(ctx context.Context, id, reason string) error {
	if l.Host != nil {
		if was, err := l.Host.Shell.Abort(ctx, id); was {
			return err
		}
	}
	_, err := with(ctx, l.Host != nil, "abort", l.whole, id, func(id string) (any, error) { return nil, l.Host.Control.Abort(ctx, id, reason) })
	return err
}

// Stop ends a session with its processes and children.
func (l *Local) Stop(ctx context.Context, id, reason string) error {
	_, err := with(ctx, l.Host != nil, "stop", l.whole, id, func(id string) (any, error) { return nil, l.Host.Control.Stop(ctx, id, reason) })
	return err
}

// State returns the state of a session.
func (l *Local) State(ctx context.Context, id string) (control.State, error) {
	full, err := l.whole(ctx, id)
	switch {
	case err != nil:
		return control.State{}, err
	case l.Host == nil:
		return control.StoredState(ctx, l.Store, full)
	}
	return l.Host.Control.State(ctx, full)
}

// Prompt sends a message to an agent and waits for the answer.
func (c *Client) Prompt(ctx context.Context, p mail.Post) (mail.Reply, error) {
	return send[mail.Reply](ctx, c, "/prompt", p)
}

// Abort ends the turn of a session.
func (c *Client) Abort(ctx context.Context, id, reason string) error {
	return c.post(ctx, "/abort", cancelBody{id, reason})
}

// Stop ends a session with its processes and children.
func (c *Client) Stop(ctx context.Context, id, reason string) error {
	return c.post(ctx, "/stop", cancelBody{id, reason})
}

// State returns the state of a session.
func (c *Client) State(ctx context.Context, id string) (control.State, error) {
	return get[control.State](ctx, c, "/state", url.Values{"id": {id}})
}
