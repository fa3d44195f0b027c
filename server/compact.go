package server

import (
	"context"
	"net/url"

	"centurion"
)

type compactBody struct {
	Model string `json:"model,omitempty"`
}

// Compact shortens a session's history.
func (l *Local) Compact(ctx context.Context, session, model string) error {
	_, err := with(ctx, l.Host != nil, "compact session", l.Store.ResolveSession, session, func(id string) (any, error) {
		for {
			after := l.Store.LastSeq()
			done, err := l.Host.Shorten(ctx, id, model)
			if done || err != nil {
				return nil, err
			}
			if done, err = l.shortened(ctx, id, after); done || err != nil {
				return nil, err
			}
		}
	})
	return err
}

// shortened waits until a session was shortened after an event, or its mission has stopped before.
func (l *Local) shortened(ctx context.Context, session string, after int64) (done bool, err error) {
	rec, err := l.Store.Session(ctx, session)
	if err != nil {
		return false, err
	}
	mission := rec.Metadata.Mission
	if !l.Host.Mail.Attended(mission) {
		return false, &centurion.Error{Op: "compact session", Kind: centurion.KindConflict, Msg: "session " + session + " will be shortened before its next request, and it is not being worked on",
			Hint: "continue with: centurion resume " + mission}
	}
	for e, err := range l.Events(ctx, EventQuery{After: after, Mission: mission, Follow: true}) {
		switch {
		case err != nil:
			return false, err
		case e.Type == centurion.EventCompacted && e.Session == session:
			return true, nil
		case e.Type.EndsMission():
			return false, nil
		}
	}
	return false, context.Cause(ctx)
}

// Compact shortens a session's history.
func (c *Client) Compact(ctx context.Context, session, model string) error {
	return c.post(ctx, "/sessions/"+url.PathEscape(session)+"/compact", compactBody{model})
}
