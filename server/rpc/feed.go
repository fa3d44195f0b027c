package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"

	"centurion"
	"centurion/orchestrator/approval"
	"centurion/server"
	"centurion/store"
)

// feeds are the client's subscriptions and open asks.
type feeds struct {
	mu    sync.Mutex
	of    map[string]context.CancelFunc // by session
	desks map[string]bool               // missions whose asks are passed to the client
}

// feed sends the client a session's events after a sequence number, and passes on the asks of the mission's agents. A second call for a
// session restarts its feed.
func (c *conn) feed(session, mission string, after int64) error {
	ctx, cancel := context.WithCancel(c.ctx)
	f := &c.feeds
	f.mu.Lock()
	if old := f.of[session]; old != nil {
		old()
	}
	f.of[session] = cancel
	desk := !f.desks[mission]
	if f.desks == nil {
		f.desks = map[string]bool{}
	}
	f.desks[mission] = true
	f.mu.Unlock()
	c.jobs.Go("tell events", func() error {
		defer cancel()
		for e, err := range c.sessions.Events(ctx, server.EventQuery{Session: session, Mission: mission, After: after, Follow: true,
			Deltas: true, View: server.ViewAgent}) {
			if err != nil {
				if ctx.Err() == nil {
					c.opts.Say("the events of " + session + " end: " + err.Error())
				}
				return nil
			}
			if c.server.Notify(ctx, "session/event", e) != nil {
				return nil // the client is gone
			}
		}
		return nil
	})
	if desk {
		c.jobs.Go("take asks to the client", func() error { return c.desk(mission) })
	}
	return nil
}

func (c *conn) unfeed(session string) {
	c.feeds.mu.Lock()
	defer c.feeds.mu.Unlock()
	if cancel := c.feeds.of[session]; cancel != nil {
		cancel()
		delete(c.feeds.of, session)
	}
}

// desk passes the asks of a mission's agents to the client, each once, and withdraws those answered elsewhere. The store has the open
// asks; events about asks trigger a check.
func (c *conn) desk(mission string) error {
	at := map[string]context.CancelFunc{} // asks passed to the client
	defer func() {
		for _, cancel := range at {
			cancel()
		}
	}()
	after, err := c.sessions.LastSeq(c.ctx)
	if err == nil {
		err = c.look(mission, at)
	}
	if err != nil {
		return err
	}
	for e, err := range c.sessions.Events(c.ctx, server.EventQuery{Mission: mission, After: after, Follow: true}) {
		if err != nil {
			if c.ctx.Err() != nil {
				return nil
			}
			return err
		}
		switch e.Type {
		case centurion.EventPermissionAsked, centurion.EventQuestionAsked, centurion.EventPlanAsked,
			centurion.EventPermissionReplied, centurion.EventQuestionAnswered, centurion.EventPlanAnswered:
			if err := c.look(mission, at); err != nil && c.ctx.Err() == nil {
				return err
			}
		}
	}
	return nil
}

// look adapts the client's asks to the open ones.
func (c *conn) look(mission string, at map[string]context.CancelFunc) error {
	all, err := c.sessions.Asks(c.ctx)
	if err != nil {
		return err
	}
	open := map[string]bool{}
	for _, a := range all {
		if a.Mission != mission {
			continue
		}
		open[a.ID] = true
		if at[a.ID] == nil {
			ctx, cancel := context.WithCancel(c.ctx)
			at[a.ID] = cancel
			c.jobs.Go("ask the client", func() error { return c.ask(ctx, a) })
		}
	}
	for id, cancel := range at {
		if !open[id] {
			cancel()
			delete(at, id)
		}
	}
	return nil
}

// Question is the data of client/ask_user.
type Question struct {
	ID       string   `json:"id"`
	Session  string   `json:"session"`
	Address  string   `json:"address,omitempty"` // of the session: 0/ is the root, 0/3 its fourth child
	Question string   `json:"question"`
	Choices  []string `json:"choices,omitempty"`
}

// Permission is the data of client/confirm.
type Permission struct {
	ID         string         `json:"id"`
	Type       string         `json:"type"` // permission or plan
	Session    string         `json:"session"`
	Address    string         `json:"address,omitempty"`
	Call       string         `json:"call,omitempty"`
	Permission string         `json:"permission,omitempty"`
	Patterns   []string       `json:"patterns,omitempty"` // to allow now
	Always     []string       `json:"always,omitempty"`   // allowed from now on by "always"
	Title      string         `json:"title,omitempty"`
	Text       string         `json:"text,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"`
}

// ask passes an ask to the client and stores its answer. After any error the ask stays open for `centurion asks`.
func (c *conn) ask(ctx context.Context, a store.Ask) error {
	address := ""
	if s, err := c.sessions.Session(ctx, a.Session); err == nil {
		address = s.Metadata.Address
	}
	c.feeds.mu.Lock()
	able := c.able
	c.feeds.mu.Unlock()
	name, params := "client/confirm", any(Permission{ID: a.ID, Type: a.Type, Session: a.Session, Address: address, Call: a.Call,
		Permission: a.Permission, Patterns: a.Patterns, Always: a.Always, Title: a.Title, Text: a.Text, Metadata: a.Metadata})
	may := able.Confirm
	if a.Type == store.AskQuestion {
		name, params, may = "client/ask_user", Question{ID: a.ID, Session: a.Session, Address: address, Question: cmp.Or(a.Text, a.Title), Choices: a.Options}, able.AskUser
	}
	if !may {
		return nil
	}
	rsp, err := c.server.Callback(ctx, name, params)
	if err == nil {
		var answer string
		if answer, err = replyOf(a, rsp.ResultString()); err == nil {
			err = c.sessions.Answer(ctx, a.ID, answer)
		}
	}
	switch {
	case err == nil || c.ctx.Err() != nil:
	case ctx.Err() != nil: // answered elsewhere, or no longer needed
		_ = c.server.Notify(c.ctx, "client/withdraw", map[string]string{"id": a.ID}) // a disconnected client need not be told
	default:
		c.opts.Say(a.ID + " stays open: " + err.Error() + "; see: centurion asks")
	}
	return nil
}

// replyOf parses the client's answer to an ask.
func replyOf(a store.Ask, result string) (string, error) {
	var r struct {
		Answer  string `json:"answer"`
		Reply   string `json:"reply"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal([]byte(result), &r); err != nil {
		return "", &centurion.Error{Kind: centurion.KindUsage, Msg: "the client's answer is no object", Err: err}
	}
	if a.Type == store.AskQuestion {
		if strings.TrimSpace(r.Answer) == "" {
			return "", &centurion.Error{Kind: centurion.KindUsage, Msg: "the client's answer is empty"}
		}
		return r.Answer, nil
	}
	switch r.Reply {
	case "once", "always":
		return r.Reply, nil
	case "reject":
		return approval.Refusal(r.Message), nil
	}
	return "", &centurion.Error{Kind: centurion.KindUsage, Msg: "the client replied with neither once nor always nor reject"}
}
