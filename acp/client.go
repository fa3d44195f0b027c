// Package acp speaks the Agent Client Protocol, version 1, with an agent that is another program: it opens or loads a conversation, drives
// one turn after another, and tells what comes meanwhile. It owns the wire, the end of a turn, and what an error of such a program means. It
// starts no process, stores nothing, and decides about no permission: its caller does.
package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"centurion"
)

// Version is the version of the protocol.
const Version = 1

const (
	startLimit  = 2 * time.Minute // until an agent has answered to initialize: the first start may download it
	answerLimit = time.Minute     // until it has opened a conversation
	cancelGrace = 5 * time.Second // from session/cancel until it is not waited for any more
	maxTurn     = 256 << 20       // see Options.MaxTurn
)

// An agent that does not say that its turn has ended is looked at: it has ended if it is idle, has an answer, and has not changed for a
// while. The numbers are those of the orchestrator of which ours is the successor.
const (
	DefaultStable = 3 * time.Second
	lookEvery     = 500 * time.Millisecond
	maxLooks      = 600
)

// Client is the other side of an agent. Its methods are for one goroutine.
type Client struct {
	conn    *conn
	options Options
	login   []string // how a person logs in, as the agent says
	loads   bool     // it can load a conversation

	mu      sync.Mutex // protects the fields below
	session string     // the conversation whose updates count; "" for none
	told    int        // bytes of the turn
	output  bool       // the turn has an answer
	asks    int        // open requests of the agent
	open    map[string]bool
	changed time.Time // when something came last
	cost    *float64  // of the conversation, in USD; nil if the agent has said nothing
	fault   error     // of the handler, which ends the turn
	failed  chan struct{}
}

// Options are what an agent is given.
type Options struct {
	Name    string // of the agent, for errors
	Command string // for a person
	Version string // of this program
	Dir     string // where it works, as it sees it
	Stable  time.Duration
	MaxTurn int // bytes that it may tell in one turn; 0 is 256 MB
	Handler Handler
}

// Handler gets what an agent tells and asks. Asks may come at the same time.
type Handler interface {
	// Update is called in order, before the end of the turn. An error ends the turn.
	Update(u Update) error
	// Permit asks whether a call may proceed. An error is a refusal, unless the context has ended.
	Permit(ctx context.Context, call Call) error
	Read(ctx context.Context, path string) (string, error)
	Write(ctx context.Context, path, content string) error
}

// Open begins to speak with an agent. The error has centurion.KindConfig for another version of the protocol.
func Open(ctx context.Context, streams io.ReadWriteCloser, o Options) (*Client, error) {
	c := &Client{conn: newConn(ctx, streams), options: o, open: map[string]bool{}, failed: make(chan struct{})}
	c.conn.request, c.conn.note, c.conn.heard = c.request, c.note, c.beat
	c.conn.serve()
	var able struct {
		Version json.RawMessage `json:"protocolVersion"`
		Can     struct {
			Load bool `json:"loadSession"`
		} `json:"agentCapabilities"`
		Auth []struct {
			ID          string `json:"id"`
			Name        string `json:"name"`
			Description string `json:"description"`
		} `json:"authMethods"`
	}
	err := c.call(ctx, startLimit, "initialize", map[string]any{"protocolVersion": Version,
		"clientCapabilities": map[string]any{"fs": map[string]bool{"readTextFile": true, "writeTextFile": true}, "terminal": false},
		"clientInfo":         map[string]string{"name": "centurion", "version": o.Version}}, &able)
	if err == nil && string(able.Version) != fmt.Sprint(Version) {
		err = &centurion.Error{Kind: centurion.KindConfig, Msg: fmt.Sprintf("it speaks version %s of the protocol, not %d", cmp.Or(string(able.Version), "none"), Version),
			Hint: "install a version of it that speaks version 1 of the Agent Client Protocol, or one of Centurion that speaks its own"}
	}
	if err != nil {
		return nil, errors.Join(c.explain(err), c.Close())
	}
	c.loads = able.Can.Load
	for _, a := range able.Auth {
		c.login = append(c.login, strings.TrimSpace(cmp.Or(a.Name, a.ID)+" "+a.Description))
	}
	return c, nil
}

// Close ends the connection. The agent's process is not ended by it.
func (c *Client) Close() error { return c.conn.close() }

// call makes a request that is answered soon.
func (c *Client) call(ctx context.Context, limit time.Duration, method string, params, result any) error {
	ctx, over := context.WithTimeoutCause(ctx, limit, fault("it has not answered to %s within %v", method, limit))
	defer over()
	answer, err := c.conn.begin(method, params)
	if err == nil {
		err = c.conn.result(ctx, answer, result)
	}
	return err
}

// Join opens the conversation with the given id again, if the agent can, otherwise a new one. It returns its id.
func (c *Client) Join(ctx context.Context, id string) (now string, err error) {
	where := map[string]any{"cwd": c.options.Dir, "mcpServers": []any{}}
	if id != "" && c.loads {
		where["sessionId"] = id
		var none json.RawMessage
		if err = c.call(ctx, answerLimit, "session/load", where, &none); err == nil { // what it tells of it is known
			c.joined(id)
			return id, nil
		}
		if e, refused := errors.AsType[*wireError](err); !refused || e.Code == authRequired {
			return "", c.explain(err)
		}
		delete(where, "sessionId")
	}
	var made struct {
		ID string `json:"sessionId"`
	}
	if err = c.call(ctx, answerLimit, "session/new", where, &made); err == nil && made.ID == "" {
		err = fault("it has opened a conversation without an id")
	}
	if err != nil {
		return "", c.explain(err)
	}
	c.joined(made.ID)
	return made.ID, nil
}

// joined lets the updates of a conversation count.
func (c *Client) joined(id string) {
	c.mu.Lock()
	c.session = id
	c.mu.Unlock()
}

// End is the end of a turn.
type End struct {
	Reason string // as in the protocol: end_turn, max_tokens, max_turn_requests, refusal, cancelled
	Tokens centurion.Tokens
	Cost   *float64 // of the conversation until now, in USD; nil if the agent does not say
	Silent bool     // the agent did not say that its turn has ended
}

// Prompt takes one turn. When ctx ends, the agent is told so, and the error is the cause.
func (c *Client) Prompt(ctx context.Context, text string) (end End, err error) {
	c.mu.Lock()
	c.told, c.output, c.fault, c.failed = 0, false, nil, make(chan struct{})
	clear(c.open)
	failed := c.failed
	c.mu.Unlock()
	answer, err := c.conn.begin("session/prompt", map[string]any{"sessionId": c.session, "prompt": []any{map[string]string{"type": "text", "text": text}}})
	if err != nil {
		return end, err
	}
	turn, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	over := make(chan struct{})
	defer close(over)
	c.conn.group.Go("watch the turn", func() error {
		select {
		case <-failed:
			stop(c.why())
		case <-over:
		}
		return nil
	})
	var said struct {
		Reason string `json:"stopReason"`
		Usage  struct {
			Input   int64 `json:"inputTokens"`
			Output  int64 `json:"outputTokens"`
			Thought int64 `json:"thoughtTokens"`
			Read    int64 `json:"cachedReadTokens"`
			Write   int64 `json:"cachedWriteTokens"`
		} `json:"usage"`
	}
	err = c.conn.result(turn, answer, &said)
	if err == nil && said.Reason == "" {
		end.Silent = true
		said.Reason, err = "end_turn", c.settle(turn)
	}
	if turn.Err() != nil {
		c.cancel(answer)
		err = context.Cause(turn)
	} else if err == nil {
		err = c.why() // of the last update
	}
	c.mu.Lock()
	end.Cost = c.cost
	c.mu.Unlock()
	u := said.Usage
	end.Reason, end.Tokens = said.Reason, centurion.Tokens{Input: u.Input, Output: u.Output, Reasoning: u.Thought, Cache: centurion.CacheUsage{Read: u.Read, Write: u.Write}}
	if turn.Err() != nil {
		return end, err
	}
	return end, c.explain(err)
}

// cancel tells the agent that its turn is over, and gives it a moment to end it.
func (c *Client) cancel(answer <-chan message) {
	c.conn.tell("session/cancel", map[string]string{"sessionId": c.session})
	late := time.NewTimer(cancelGrace)
	defer late.Stop()
	select {
	case <-answer:
	case <-c.conn.gone:
	case <-late.C:
	}
}

// settle waits until an agent that does not say that its turn has ended has ended it.
func (c *Client) settle(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for range maxLooks {
		select {
		case <-look.C:
		case <-c.conn.gone:
			return c.conn.broken()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if c.settled(time.Now()) {
			return nil
		}
	}
	return &centurion.Error{Kind: centurion.KindTimeout, Msg: fmt.Sprintf("it did not say that its turn has ended, and was not idle with an answer within %v", maxLooks*lookEvery),
		Hint: "use an agent that answers session/prompt with a stop reason"}
}

// settled reports whether it is idle, unchanged for long enough, and has an answer.
func (c *Client) settled(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) == 0 && c.asks == 0 && c.output && now.Sub(c.changed) >= cmp.Or(c.options.Stable, DefaultStable)
}

// beat notes that something has come.
func (c *Client) beat() {
	c.mu.Lock()
	c.changed = time.Now()
	c.mu.Unlock()
}

// fail ends the turn with an error.
func (c *Client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault == nil {
		c.fault = err
		close(c.failed)
	}
}

func (c *Client) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault
}

// note handles a notification: only updates of the conversation count.
func (c *Client) note(method string, params json.RawMessage) error {
	if method != "session/update" || c.why() != nil {
		return nil
	}
	var p struct {
		Session string     `json:"sessionId"`
		Update  wireUpdate `json:"update"`
	}
	if json.Unmarshal(params, &p) != nil { // an update of a form that we do not know
		return nil
	}
	c.mu.Lock()
	if p.Session != c.session || c.session == "" {
		c.mu.Unlock()
		return nil
	}
	c.told += len(params)
	most := cmp.Or(c.options.MaxTurn, maxTurn)
	flood := c.told > most
	u := p.Update.read()
	switch {
	case u.Call != nil && u.Call.Ended():
		delete(c.open, u.Call.ID)
	case u.Call != nil && (u.First || u.Call.Status != ""):
		c.open[u.Call.ID] = true
	}
	if strings.TrimSpace(u.Text) != "" {
		c.output = true
	}
	if u.Cost != nil {
		c.cost = u.Cost
	}
	c.mu.Unlock()
	if flood {
		c.fail(fault("it has told more than %s in one turn", centurion.Bytes(int64(most))))
		return nil
	}
	if err := c.options.Handler.Update(u); err != nil {
		c.fail(err)
	}
	return nil
}

// methods that we do not offer.
var unknown = &wireError{Code: -32601, Message: "Centurion does not offer this method"}

// request answers a request of the agent.
func (c *Client) request(ctx context.Context, method string, params json.RawMessage) (any, error) {
	c.mu.Lock()
	c.asks++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.asks--
		c.changed = time.Now()
		c.mu.Unlock()
	}()
	switch method {
	case "session/request_permission":
		return c.permit(ctx, params)
	case "fs/read_text_file", "fs/write_text_file":
	default:
		return nil, unknown
	}
	var p struct {
		Path    string `json:"path"`
		Content string `json:"content"`
		Line    *int   `json:"line"`
		Limit   *int   `json:"limit"`
	}
	if err := json.Unmarshal(params, &p); err != nil || p.Path == "" {
		return nil, &wireError{Code: -32602, Message: "give the path of a file"}
	}
	if method == "fs/write_text_file" {
		return nil, c.options.Handler.Write(ctx, p.Path, p.Content)
	}
	content, err := c.options.Handler.Read(ctx, p.Path)
	if err != nil {
		return nil, err
	}
	lines := strings.SplitAfter(content, "\n")
	if p.Line != nil {
		lines = lines[min(max(*p.Line-1, 0), len(lines)):]
	}
	if p.Limit != nil {
		lines = lines[:min(max(*p.Limit, 0), len(lines))]
	}
	return map[string]string{"content": strings.Join(lines, "")}, nil
}

// permit answers a request for permission with one of its options.
func (c *Client) permit(ctx context.Context, params json.RawMessage) (any, error) {
	var p struct {
		Call    wireUpdate `json:"toolCall"`
		Options []struct {
			ID   string `json:"optionId"`
			Kind string `json:"kind"`
		} `json:"options"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &wireError{Code: -32602, Message: err.Error()}
	}
	err := c.options.Handler.Permit(ctx, p.Call.call())
	if ctx.Err() != nil {
		return outcome{Outcome: cancelled{"cancelled"}}, nil
	}
	kinds := []string{"reject_once", "reject_always"}
	if err == nil { // what "always" means is up to our own rules: they are asked each time
		kinds = []string{"allow_once", "allow_always"}
	}
	for _, kind := range kinds {
		for _, o := range p.Options {
			if o.Kind == kind {
				return outcome{Outcome: selected{"selected", o.ID}}, nil
			}
		}
	}
	return outcome{Outcome: cancelled{"cancelled"}}, nil
}

type (
	outcome struct {
		Outcome any `json:"outcome"`
	}
	selected struct {
		Outcome string `json:"outcome"`
		Option  string `json:"optionId"`
	}
	cancelled struct {
		Outcome string `json:"outcome"`
	}
)

// authRequired is the code of the error of an agent that needs a login.
const authRequired = -32000

// explain gives an error of the agent its kind and its next step.
func (c *Client) explain(err error) error {
	if err == nil {
		return nil
	}
	out := &centurion.Error{Op: "agent " + c.options.Name, Err: err}
	e, ok := errors.AsType[*wireError](err)
	if !ok {
		return out
	}
	said := e.Message
	if len(e.Data) > 0 {
		said += " " + string(e.Data)
	}
	out.Err, out.Msg, out.Kind = nil, centurion.Clip(strings.TrimSpace(said), 1000), centurion.KindInternal
	wait, limited := Limit(said, time.Now())
	switch lower := strings.ToLower(said); {
	case limited:
		out.Kind, out.RetryAfter = centurion.KindRateLimit, wait
	case e.Code == authRequired, slices.ContainsFunc([]string{"auth_required", "authentication required", "not logged in", "please log in", "/login", "invalid api key"},
		func(s string) bool { return strings.Contains(lower, s) }):
		out.Kind = centurion.KindAuth
		out.Hint = "log in with the agent itself, outside of Centurion"
		if len(c.login) > 0 {
			out.Hint += " (it offers: " + centurion.Clip(strings.Join(c.login, "; "), 300) + ")"
		}
		out.Hint += "; its definition must name the files and variables that keep the login. It is started with: " + c.options.Command
	}
	return out
}
