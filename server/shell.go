package server

import (
	"context"
	"net/url"
)

// Shell is the part of [API] that runs a person's commands.
type Shell interface {
	// Shell runs a command in the project's directory and records it in a conversation that rests, whose model knows of it in its next
	// request. It returns the message with the call when the command has ended; an end of ctx, and Abort, end it. See shells.Desk.Run.
	Shell(ctx context.Context, session, command string) (Message, error)
}

type shellBody struct {
	Command string `json:"command"`
}

// Shell runs a command of the person.
func (l *Local) Shell(ctx context.Context, session, command string) (Message, error) {
	return with(ctx, l.Host != nil, "run command", l.Store.ResolveSession, session, func(id string) (Message, error) {
		m, err := l.Host.Shell.Run(ctx, id, command)
		return messageView(m), err
	})
}

// Shell runs a command of the person.
func (c *Client) Shell(ctx context.Context, session, command string) (Message, error) {
	return send[Message](ctx, c, "/sessions/"+url.PathEscape(session)+"/shell", shellBody{command})
}
