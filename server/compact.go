package server

import (
	"context"
	"net/url"
)

// Compact asks for a session's history to be shortened.
func (l *Local) Compact(ctx context.Context, session string) error {
	if l.Host == nil {
		return notRunning("compact session")
	}
	full, err := l.Store.ResolveSession(ctx, session)
	if err != nil {
		return err
	}
	return l.Host.Compact(ctx, full)
}

// Compact asks for a session's history to be shortened.
func (c *Client) Compact(ctx context.Context, session string) error {
	return c.post(ctx, "/sessions/"+url.PathEscape(session)+"/compact", struct{}{})
}
