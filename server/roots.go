package server

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"centurion"
	"centurion/orchestrator/roots"
)

// Roots is the part of [API] that keeps the conversations which a person begins.
type Roots interface {
	// Roots lists conversations, the last changed first.
	Roots(ctx context.Context, q roots.Query) ([]centurion.Session, error)
	// Open makes a conversation without a message. [API.Start] begins it, with its id in the options.
	Open(ctx context.Context, o roots.Opening) (centurion.Session, error)
	// Change names or archives a conversation, or changes what an opened one will begin with.
	Change(ctx context.Context, session string, c roots.Change) (centurion.Session, error)
	// Remove ends the work of a conversation and takes it out of all lists. Its record stays.
	Remove(ctx context.Context, session string) error
}

// Roots lists conversations.
func (l *Local) Roots(ctx context.Context, q roots.Query) ([]centurion.Session, error) {
	return some((&roots.Desk{Store: l.Store}).List(ctx, q))
}

// Open makes a conversation without a message.
func (l *Local) Open(ctx context.Context, o roots.Opening) (centurion.Session, error) {
	if l.Host == nil {
		return centurion.Session{}, notRunning("open session")
	}
	return l.Host.Roots.Open(ctx, o)
}

// Change changes a conversation.
func (l *Local) Change(ctx context.Context, session string, c roots.Change) (centurion.Session, error) {
	return with(ctx, l.Host != nil, "change session", l.Store.ResolveSession, session, func(id string) (centurion.Session, error) { return l.Host.Roots.Change(ctx, id, c) })
}

// Remove removes a conversation from lists.
func (l *Local) Remove(ctx context.Context, session string) error {
	_, err := with(ctx, l.Host != nil, "remove session", l.Store.ResolveSession, session, func(id string) (any, error) { return nil, l.Host.Roots.Remove(ctx, id) })
	return err
}

// Roots lists conversations.
func (c *Client) Roots(ctx context.Context, q roots.Query) ([]centurion.Session, error) {
	return get[[]centurion.Session](ctx, c, "/roots", url.Values{"search": {q.Search}, "since": {strconv.FormatInt(q.Since, 10)},
		"before": {strconv.FormatInt(q.Before, 10)}, "limit": {strconv.Itoa(q.Limit)}, "all": {strconv.FormatBool(q.All)},
		"tasks": {strconv.FormatBool(q.Tasks)}})
}

// Open makes a conversation without a message.
func (c *Client) Open(ctx context.Context, o roots.Opening) (centurion.Session, error) {
	return send[centurion.Session](ctx, c, "/roots", o)
}

// Change changes a conversation.
func (c *Client) Change(ctx context.Context, session string, ch roots.Change) (centurion.Session, error) {
	return send[centurion.Session](ctx, c, "/roots/"+url.PathEscape(session), ch)
}

// Remove removes a conversation from lists.
func (c *Client) Remove(ctx context.Context, session string) error {
	_, err := send[struct{}](ctx, c, "/roots/"+url.PathEscape(session)+"/remove", struct{}{})
	return err
}

// rootsQuery reads a query; a number that is none counts as 0.
func rootsQuery(r *http.Request) roots.Query {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(r.FormValue(name), 10, 64)
		return max(n, 0)
	}
	return roots.Query{Search: r.FormValue("search"), Since: number("since"), Before: number("before"), Limit: int(number("limit")), All: r.FormValue("all") == "true", Tasks: r.FormValue("tasks") == "true"}
}
