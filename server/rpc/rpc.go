// Package rpc lets a front end drive sessions over a pair of streams: JSON-RPC 2.0, one message per line. It owns the protocol: the
// methods, the notifications, and the requests to the client. [Sessions] implements the methods; questions and permissions stay in the
// store, independent of the client.
package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/handler"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/control"
	"centurion/server"
	"centurion/store"
)

// Sessions is the backend of a front end. Ids are complete. Its methods are safe for concurrent use.
type Sessions interface {
	// Start records a mission and starts to work on it.
	Start(ctx context.Context, p StartParams) (Started, error)
	// Prompt stores a message for a session and returns the answer of the turn that took it in. If ctx ends the message stays.
	Prompt(ctx context.Context, p PromptParams) (Answer, error)
	// Abort ends the session's turn, but not the session.
	Abort(ctx context.Context, session, reason string) error
	// State is the state of a session at one moment.
	State(ctx context.Context, session string) (State, error)
	// Stop ends a session with its tools and its children.
	Stop(ctx context.Context, session, reason string) error
	// List returns the sessions of a mission, or all for "".
	List(ctx context.Context, mission string) ([]centurion.Session, error)
	Session(ctx context.Context, id string) (centurion.Session, error)
	History(ctx context.Context, session string) ([]server.Message, error)
	// Asks lists the open asks.
	Asks(ctx context.Context) ([]store.Ask, error)
	Answer(ctx context.Context, ask, answer string) error
	// Events yields events until ctx ends.
	Events(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error]
	LastSeq(ctx context.Context) (int64, error)
}

// StartParams are the parameters of session/start.
type StartParams struct {
	Prompt  string `json:"prompt"`
	Profile string `json:"profile,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Model   string `json:"model,omitempty"` // provider/model
	Dir     string `json:"dir,omitempty"`   // the project; empty means that of the front end
	// Unasked means that the client cannot be asked: if all agents wait for answers, the mission stops as blocked.
	Unasked bool `json:"-"`
}

// Started is the result of session/start.
type Started struct {
	Mission string `json:"mission"`
	Session string `json:"session"`
}

// PromptParams are the parameters of session/prompt.
type PromptParams struct {
	Session string           `json:"session"`
	Text    string           `json:"text"`
	Policy  string           `json:"policy,omitempty"` // steer (default): before the next request; queue: at the end of the turn
	Parts   []centurion.Part `json:"-"`                // the message for the model, if it is more than Text
	Typed   *centurion.Typed `json:"-"`                // the command that made it
}

// Answer is the result of session/prompt.
type Answer struct {
	Text    string `json:"text"` // of the turn's last answer, complete
	Finish  string `json:"finish,omitempty"`
	Message string `json:"message,omitempty"` // the id of that answer
}

// State is the result of session/state.
type State struct {
	control.State
	Seq int64 `json:"seq"` // an event number no newer than the rest: session/subscribe after it misses nothing
}

// ref names a session.
type ref struct {
	Session string `json:"session"`
	Reason  string `json:"reason,omitempty"`
	Mission string `json:"mission,omitempty"`
	After   int64  `json:"after,omitempty"`
}

// Options are the options for serving a front end. The zero value is valid.
type Options struct {
	Version string
	// Say reports errors outside the protocol. Nil drops them.
	Say func(string)
}

// concurrency limits parallel requests: prompts block until they are answered, and must not block others.
const concurrency = 1 << 12

// conn is one client.
type conn struct {
	sessions Sessions
	opts     Options
	server   *jrpc2.Server
	ctx      context.Context // ends with the client
	jobs     guard.Group     // subscriptions and asks
	able     able
	feeds    feeds
}

// Serve answers a client until its input ends or ctx does, and closes out, and in if it has a Close, which must wake its reader. The
// end of the input is no error. Missions started by the client continue; the caller decides about them.
func Serve(ctx context.Context, in io.Reader, out io.WriteCloser, s Sessions, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	if o.Say == nil {
		o.Say = func(string) {}
	}
	c := &conn{sessions: s, opts: o, ctx: ctx, able: able{Confirm: true, AskUser: true}}
	c.feeds.of = map[string]context.CancelFunc{}
	c.server = jrpc2.NewServer(c.methods(), &jrpc2.ServerOptions{AllowPush: true, DisableBuiltin: true, Concurrency: concurrency,
		NewContext: func() context.Context { return ctx }})
	c.server.Start(NewLines(in, out, MaxLine))
	stop := guard.After(ctx, "end front end", c.server.Stop)
	err := c.server.Wait()
	stop()
	cancel()
	if gerr := c.jobs.Wait(); gerr != nil {
		o.Say(gerr.Error())
	}
	if err == nil { // also at the end of the input, and of ctx
		return nil
	}
	return &centurion.Error{Op: "serve front end", Kind: centurion.KindNetwork, Err: err}
}

// methods are the methods for clients.
func (c *conn) methods() jrpc2.Assigner {
	return handler.Map{
		"initialize":      method(c.initialize),
		"$/cancelRequest": method(c.cancelRequest),
		"session/start":   method(c.start),
		"session/prompt": method(func(ctx context.Context, p PromptParams) (any, error) {
			switch p.Policy {
			case "", "steer", "queue":
				return c.sessions.Prompt(ctx, p)
			}
			return nil, &centurion.Error{Op: "session/prompt", Kind: centurion.KindUsage, Msg: "policy is neither steer nor queue: " + p.Policy,
				Hint: "steer is read before the next request to the model, queue at the end of the turn"}
		}),
		"session/abort": method(func(ctx context.Context, r ref) (any, error) {
			return struct{}{}, c.sessions.Abort(ctx, r.Session, r.Reason)
		}),
		"session/stop": method(func(ctx context.Context, r ref) (any, error) {
			return struct{}{}, c.sessions.Stop(ctx, r.Session, r.Reason)
		}),
		"session/state": method(func(ctx context.Context, r ref) (any, error) { return c.sessions.State(ctx, r.Session) }),
		"session/list": method(func(ctx context.Context, r ref) (any, error) {
			all, err := c.sessions.List(ctx, r.Mission)
			if all == nil {
				all = []centurion.Session{}
			}
			return all, err
		}),
		"session/history":     method(func(ctx context.Context, r ref) (any, error) { return c.sessions.History(ctx, r.Session) }),
		"session/subscribe":   method(c.subscribe),
		"session/unsubscribe": method(c.unsubscribe),
	}
}

// able are the requests that the client supports.
type able struct {
	Confirm bool `json:"confirm"`
	AskUser bool `json:"ask_user"`
}

func (c *conn) initialize(_ context.Context, p struct {
	Capabilities *able `json:"capabilities"`
}) (any, error) {
	if p.Capabilities != nil {
		c.feeds.mu.Lock()
		c.able = *p.Capabilities
		c.feeds.mu.Unlock()
	}
	return map[string]any{"name": "centurion", "version": c.opts.Version, "protocol": 1, "capabilities": map[string]any{
		"methods": []string{"session/start", "session/prompt", "session/abort", "session/state", "session/stop", "session/list",
			"session/history", "session/subscribe", "session/unsubscribe"},
		"notifications": []string{"session/event", "client/withdraw"}, "requests": []string{"client/ask_user", "client/confirm"},
		"policies": []string{"steer", "queue"}, "max_line": MaxLine}}, nil
}

// cancelRequest cancels a waiting request: it is answered with an error at once.
func (c *conn) cancelRequest(_ context.Context, p struct {
	ID json.RawMessage `json:"id"`
}) (any, error) {
	c.server.CancelRequest(string(p.ID))
	return nil, nil
}

func (c *conn) start(ctx context.Context, p StartParams) (any, error) {
	before, err := c.sessions.LastSeq(ctx) // before any effect of the request
	if err != nil {
		return nil, err
	}
	c.feeds.mu.Lock()
	p.Unasked = !c.able.AskUser
	c.feeds.mu.Unlock()
	got, err := c.sessions.Start(ctx, p)
	if err != nil {
		return nil, err
	}
	return got, c.feed(got.Session, got.Mission, before)
}

func (c *conn) subscribe(ctx context.Context, r ref) (any, error) {
	s, err := c.sessions.Session(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	return struct {
		Session string `json:"session"`
	}{s.ID}, c.feed(s.ID, s.Metadata.Mission, r.After)
}

func (c *conn) unsubscribe(_ context.Context, r ref) (any, error) {
	c.unfeed(r.Session)
	return struct{}{}, nil
}

// method makes a handler of a function whose parameters are an object. A panic is an error of that call.
func method[P any](f func(context.Context, P) (any, error)) jrpc2.Handler {
	return func(ctx context.Context, req *jrpc2.Request) (v any, err error) {
		var p P
		if req.HasParams() {
			if err := req.UnmarshalParams(jrpc2.StrictFields(&p)); err != nil {
				return nil, jrpc2.Errorf(jrpc2.InvalidParams, "%s", err.Error())
			}
		}
		if err := guard.Call(req.Method(), func() (err error) { v, err = f(ctx, p); return err }); err != nil {
			return nil, wireError(err)
		}
		return v, nil
	}
}

// failure is the data of an error: its kind for programs, a hint for people.
type failure struct {
	Kind centurion.Kind `json:"kind"`
	Hint string         `json:"hint,omitempty"`
}

// The code of an error that has a kind; its data says which.
const codeFailed jrpc2.Code = -32000

func wireError(err error) error {
	code := codeFailed
	switch {
	case errors.Is(err, context.Canceled):
		code = jrpc2.Cancelled
	case centurion.KindOf(err) == centurion.KindUsage:
		code = jrpc2.InvalidParams
	}
	return jrpc2.Errorf(code, "%s", err.Error()).WithData(failure{centurion.KindOf(err), centurion.HintOf(err)})
}
