package server

import (
	"context"
	"net/url"

	"centurion"
	"centurion/orchestrator/branches"
)

// Tree is all messages of a session: its current line and its other branches.
type Tree struct {
	Session  centurion.Session `json:"session"`
	Leaf     string            `json:"leaf"`     // the newest message of the current line
	Messages []Message         `json:"messages"` // in storage order, each with the id of the previous one
}

// Rewind is a request to rewind a conversation. See orchestrator.Host.Rewind.
type Rewind struct {
	To   string `json:"to,omitempty"`
	Mark string `json:"mark,omitempty"`
}

type revertBody struct {
	Message string `json:"message"` // "" brings everything back
}

type forkBody struct {
	At string `json:"at,omitempty"`
}

func messageView(m centurion.Message) Message {
	m.Wrote, m.Heard = nil, false // [API.Written] tells what that was
	return Message{Info: m, Origin: m.Origin, Parts: m.Parts, Prev: m.Prev}
}

// Tree returns all messages of a session.
func (l *Local) Tree(ctx context.Context, session string) (Tree, error) {
	full, err := l.Store.ResolveSession(ctx, session)
	if err != nil {
		return Tree{}, err
	}
	stored, err := l.Store.Tree(ctx, full)
	return Tree{Session: stored.Session, Leaf: stored.Leaf, Messages: told(stored.Messages, messageView)}, err
}

// Rewind moves a conversation to an older message, or names its current one.
func (l *Local) Rewind(ctx context.Context, session string, r Rewind) (branches.Rewound, error) {
	return with(ctx, l.Host != nil, "rewind", l.Store.ResolveSession, session, func(id string) (branches.Rewound, error) { return l.Host.Branches.Rewind(ctx, id, r.To, r.Mark) })
}

// Revert reverts the end of a conversation, or brings it back.
func (l *Local) Revert(ctx context.Context, session, message string) (branches.Reverted, error) {
	return with(ctx, l.Host != nil, "revert", l.Store.ResolveSession, session, func(id string) (branches.Reverted, error) { return l.Host.Branches.Revert(ctx, id, message) })
}

// Written lists what a turn has changed in files, or what is reverted in them.
func (l *Local) Written(ctx context.Context, session, message string) ([]centurion.FileDiff, error) {
	return some(with(ctx, l.Host != nil, "diff", l.Store.ResolveSession, session, func(id string) ([]centurion.FileDiff, error) {
		return l.Host.Branches.Written(ctx, id, message)
	}))
}

// Fork copies a conversation into a new mission.
func (l *Local) Fork(ctx context.Context, session, at string) (branches.Forked, error) {
	return with(ctx, l.Host != nil, "fork", l.Store.ResolveSession, session, func(id string) (branches.Forked, error) { return l.Host.Branches.Fork(ctx, id, at) })
}

// Tree returns all messages of a session.
func (c *Client) Tree(ctx context.Context, session string) (Tree, error) {
	return get[Tree](ctx, c, "/sessions/"+url.PathEscape(session)+"/tree", nil)
}

// Rewind moves a conversation to an older message, or names its current one.
func (c *Client) Rewind(ctx context.Context, session string, r Rewind) (branches.Rewound, error) {
	return send[branches.Rewound](ctx, c, "/sessions/"+url.PathEscape(session)+"/rewind", r)
}

// Revert reverts the end of a conversation, or brings it back.
func (c *Client) Revert(ctx context.Context, session, message string) (branches.Reverted, error) {
	return send[branches.Reverted](ctx, c, "/sessions/"+url.PathEscape(session)+"/revert", revertBody{message})
}

// Written lists what a turn has changed in files, or what is reverted in them.
func (c *Client) Written(ctx context.Context, session, message string) ([]centurion.FileDiff, error) {
	return get[[]centurion.FileDiff](ctx, c, "/sessions/"+url.PathEscape(session)+"/written", url.Values{"message": {message}})
}

// Fork copies a conversation into a new mission.
func (c *Client) Fork(ctx context.Context, session, at string) (branches.Forked, error) {
	return send[branches.Forked](ctx, c, "/sessions/"+url.PathEscape(session)+"/fork", forkBody{at})
}
