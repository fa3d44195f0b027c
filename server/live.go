package server

import (
	"context"
	"net/url"

	"centurion"
	"centurion/orchestrator"
)

// Live is the part of [API] that controls sessions while they run. Sessions are named by their id or that of their task
// or mission.
type Live interface {
	// Prompt writes to an agent and returns the answer of the turn that answers; see orchestrator.Host.Prompt. A mission
	// that has stopped is gone on with if p.Resume is set, a blocked one when its Commander is written to, and so is one that
	// orchestrator.GoesOn.
	Prompt(ctx context.Context, p orchestrator.Post) (orchestrator.Reply, error)
	// Abort ends the turn of a session, not the session.
	Abort(ctx context.Context, id, reason string) error
	// Stop ends a session with its tool calls, their processes and its children, and returns when they have ended.
	Stop(ctx context.Context, id, reason string) error
	// State returns how a session stands, and never waits for it.
	State(ctx context.Context, id string) (orchestrator.State, error)
}

// Prompt writes to an agent and waits for the answer. Ids may be given by a unique prefix.
func (l *Local) Prompt(ctx context.Context, p orchestrator.Post) (orchestrator.Reply, error) {
	if l.Host == nil {
		return orchestrator.Reply{}, notRunning("prompt")
	}
	p, err := l.addressed(ctx, p)
	if err != nil {
		return orchestrator.Reply{}, err
	}
	may := orchestrator.Continues
	goOn, err := l.goesOnFor(ctx, p, may)
	if !goOn && err == nil {
		if goOn, err = l.goesOnFor(ctx, p, orchestrator.GoesOn); goOn {
			may = orchestrator.GoesOn // it was paused before the person asked
		}
	}
	if err != nil {
		return orchestrator.Reply{}, err
	}
	if !goOn && !l.attended(ctx, p) {
		return l.Host.PromptAnd(ctx, p, nil)
	}
	return l.Host.PromptAnd(ctx, p, func(mission string) error {
		// It may have stopped since, or have been stopped by a person: what counts is how it stands now.
		switch goOn, err := l.goesOnFor(ctx, p, may); {
		case err != nil:
			return err
		case !goOn && l.Host.Attended(mission):
			return nil
		case !goOn:
			return l.Host.Unattended(ctx, mission)
		case l.Work == nil:
			return notRunning("prompt")
		}
		return l.Work.Launch(mission)
	})
}

// attended reports whether somebody works on the mission of a message to its Commander.
func (l *Local) attended(ctx context.Context, p orchestrator.Post) bool {
	s, err := l.Host.State(ctx, lookedUpBy(p))
	return err == nil && s.Task == "" && l.Host.Attended(s.Mission)
}

// goesOnFor reports whether a mission that nobody works on goes on for a message whose answer is waited for: one that is
// blocked, or that may.
func (l *Local) goesOnFor(ctx context.Context, p orchestrator.Post, may func(centurion.Mission) bool) (bool, error) {
	if p.Resume {
		return true, nil
	}
	s, err := l.Host.State(ctx, lookedUpBy(p))
	if err != nil || s.Task != "" {
		return false, err
	}
	m, err := l.Store.Mission(ctx, s.Mission)
	return m.Status == centurion.MissionBlocked || may(m), err
}

// lookedUpBy is what the receiver of a message is looked up by: the Commander by its mission.
func lookedUpBy(p orchestrator.Post) string {
	if p.Mission != "" && (p.To == "0/" || p.To == "0") {
		return p.Mission
	}
	return p.To
}

// whole completes the id of a session, task or mission.
func (l *Local) whole(ctx context.Context, id string) (string, error) {
	p, err := l.addressed(ctx, orchestrator.Post{To: id})
	return p.To, err
}

// Abort ends the turn of a session.
func (l *Local) Abort(ctx context.Context, id, reason string) error {
	_, err := with(ctx, l.Host != nil, "abort", l.whole, id, func(id string) (any, error) { return nil, l.Host.Abort(ctx, id, reason) })
	return err
}

// Stop ends a session with all that it has started.
func (l *Local) Stop(ctx context.Context, id, reason string) error {
	_, err := with(ctx, l.Host != nil, "stop", l.whole, id, func(id string) (any, error) { return nil, l.Host.Stop(ctx, id, reason) })
	return err
}

// State returns how a session stands.
func (l *Local) State(ctx context.Context, id string) (orchestrator.State, error) {
	full, err := l.whole(ctx, id)
	switch {
	case err != nil:
		return orchestrator.State{}, err
	case l.Host == nil:
		return orchestrator.StoredState(ctx, l.Store, full)
	}
	return l.Host.State(ctx, full)
}

// Prompt writes to an agent and waits for the answer.
func (c *Client) Prompt(ctx context.Context, p orchestrator.Post) (orchestrator.Reply, error) {
	return send[orchestrator.Reply](ctx, c, "/prompt", p)
}

// Abort ends the turn of a session.
func (c *Client) Abort(ctx context.Context, id, reason string) error {
	return c.post(ctx, "/abort", cancelBody{id, reason})
}

// Stop ends a session with all that it has started.
func (c *Client) Stop(ctx context.Context, id, reason string) error {
	return c.post(ctx, "/stop", cancelBody{id, reason})
}

// State returns how a session stands.
func (c *Client) State(ctx context.Context, id string) (orchestrator.State, error) {
	return get[orchestrator.State](ctx, c, "/state", url.Values{"id": {id}})
}
