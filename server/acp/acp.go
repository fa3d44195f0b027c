// Package acp makes Centurion an agent for editors: the Agent Client Protocol, version 1, over a pair of streams. It owns the protocol: what
// an editor asks for, what it is told of a conversation, and what it asks the person. It starts and stores nothing itself: conversations,
// asks and answers are those of the project's API, and the form of attachments and commands is that of package v1.
package acp

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/handler"

	"centurion"
	"centurion/agents"
	"centurion/guard"
	"centurion/orchestrator/roots"
	v1 "centurion/server/opencode/v1"
	"centurion/server/rpc"
)

// Version is the version of the protocol.
const Version = 1

// maxLine limits a message of the editor, in bytes: 20 MB of attachments in base64, and text.
const maxLine = 32 << 20

// concurrency limits parallel requests: a prompt blocks until its turn has ended.
const concurrency = 1 << 10

// Project is an open project. Its conversations are brought forward by the bridge, which finds the next host when one has gone.
type Project struct {
	*v1.Project
	Bridge *rpc.Bridge
	Pause  func(mission string) // pauses a mission if it works; the editor has left
}

// Options are what an editor is served with.
type Options struct {
	Version string // of the program
	// Open opens the project in a directory, or returns the open one. Two directories may be one project.
	Open func(ctx context.Context, dir string) (*Project, error)
	// Close closes the opened projects, when nothing uses them any more.
	Close func() error
	Say   func(string) // tells the person who reads the standard error; never nil
}

// conn is one editor.
type conn struct {
	Options
	ctx    context.Context // ends with the editor
	server *jrpc2.Server
	out    *queue
	jobs   guard.Group

	mu       sync.Mutex // protects the fields below, and those of projects and sessions that say so
	projects map[string]*project
	sessions map[string]*session
}

// Serve answers an editor until its input ends or ctx does; the end of the input is no error. Missions that it has begun or continued are
// paused then. It closes the projects before it waits for the editor to read what is left, and closes out.
func Serve(ctx context.Context, in io.Reader, out io.WriteCloser, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	c := &conn{Options: o, ctx: ctx, projects: map[string]*project{}, sessions: map[string]*session{}, out: newQueue(in, out)}
	var writing guard.Group
	writing.Go("write to editor", c.out.write)
	c.server = jrpc2.NewServer(c.methods(), &jrpc2.ServerOptions{AllowPush: true, DisableBuiltin: true, Concurrency: concurrency,
		NewContext: func() context.Context { return ctx }})
	c.server.Start(c.out)
	stop := guard.After(ctx, "end editor", c.server.Stop)
	err := c.server.Wait()
	stop()
	cancel()
	for _, err := range []error{err, c.jobs.Wait()} {
		if err != nil {
			o.Say(err.Error())
		}
	}
	for _, s := range c.sessions {
		if s.used && s.mission != "" {
			s.Pause(s.mission)
		}
	}
	err = o.Close()
	_ = writing.Wait() // an editor that has gone is no error
	return err
}

func (c *conn) methods() jrpc2.Assigner {
	return inOrder{c, handler.Map{
		"initialize":       method(c.initialize),
		"authenticate":     method(func(context.Context, struct{}) (any, error) { return struct{}{}, nil }), // keys are the host's
		"session/new":      method(c.open),
		"session/load":     method(c.load),
		"session/cancel":   method(c.cancel),
		"session/set_mode": method(c.setMode),
	}}
}

// inOrder finds the method of a request. That is done in the order in which requests come, and calls are not: a prompt begins here, so that
// the cancel behind it is not before it.
type inOrder struct {
	*conn
	others jrpc2.Assigner
}

// Assign is part of jrpc2.Assigner.
func (o inOrder) Assign(ctx context.Context, name string) jrpc2.Handler {
	req := jrpc2.InboundRequest(ctx)
	if name != "session/prompt" || req == nil || req.IsNotification() {
		return o.others.Assign(ctx, name)
	}
	var p struct {
		Session string `json:"sessionId"`
	}
	_ = req.UnmarshalParams(&p) // the call tells what is wrong
	s, t, err := o.begin(p.Session)
	prompt := method(func(ctx context.Context, p struct {
		Prompt []block `json:"prompt"`
	}) (any, error) {
		if err != nil {
			return nil, err
		}
		return s.prompt(ctx, t, p.Prompt)
	})
	return func(ctx context.Context, req *jrpc2.Request) (any, error) {
		if err == nil {
			defer s.end()
		}
		return prompt(ctx, req)
	}
}

// method makes a handler of a function. A field that a newer editor sends is passed over, and a panic is an error of that call.
func method[P any](f func(context.Context, P) (any, error)) jrpc2.Handler {
	return func(ctx context.Context, req *jrpc2.Request) (v any, err error) {
		var p P
		if req.HasParams() {
			if err := req.UnmarshalParams(&p); err != nil {
				return nil, jrpc2.Errorf(jrpc2.InvalidParams, "%s", err.Error())
			}
		}
		err = guard.Call(req.Method(), func() (err error) { v, err = f(context.WithValue(ctx, requestKey{}, req.ID()), p); return err })
		return v, wireError(err)
	}
}

// requestKey is the key of a request's id in its context.
type requestKey struct{}

// wireError is an error as the protocol has it. Its text has the hint, since editors show nothing else. The code -32000 is that of a login.
func wireError(err error) error {
	if err == nil {
		return nil
	}
	code, text, hint := jrpc2.InternalError, err.Error(), centurion.HintOf(err)
	switch kind := centurion.KindOf(err); kind {
	case centurion.KindUsage, centurion.KindNotFound, centurion.KindConflict, centurion.KindPermission:
		code = jrpc2.InvalidParams
	}
	if hint != "" {
		text += "; " + hint
	}
	return jrpc2.Errorf(code, "%s", text).WithData(map[string]any{"kind": centurion.KindOf(err), "hint": hint})
}

// initialize answers with the version that is spoken, whatever the editor's is: it decides whether to go on.
func (c *conn) initialize(context.Context, struct{}) (any, error) {
	return map[string]any{"protocolVersion": Version, "authMethods": []any{},
		"agentInfo": map[string]string{"name": "centurion", "title": "Centurion", "version": c.Version},
		"agentCapabilities": map[string]any{"loadSession": true, "promptCapabilities": map[string]bool{"image": true, "audio": false, "embeddedContext": true},
			"mcpCapabilities": map[string]bool{"http": false, "sse": false}}}, nil
}

// place is where an editor wants a session.
type place struct {
	Session string `json:"sessionId"`
	Dir     string `json:"cwd"`
	Servers []any  `json:"mcpServers"`
}

// enter opens the project of a place.
func (c *conn) enter(ctx context.Context, p place) (*project, error) {
	if !filepath.IsAbs(p.Dir) {
		return nil, &centurion.Error{Kind: centurion.KindUsage, Msg: "cwd is no absolute path: " + p.Dir}
	}
	if len(p.Servers) > 0 {
		c.Say("MCP servers of the editor are not used: " + centurion.Count(len(p.Servers), "server"))
	}
	opened, err := c.Open(ctx, filepath.Clean(p.Dir))
	if err != nil {
		return nil, err
	}
	return c.watch(ctx, opened)
}

// open begins a conversation, with the assistant.
func (c *conn) open(ctx context.Context, at place) (any, error) {
	p, err := c.enter(ctx, at)
	if err != nil {
		return nil, err
	}
	rec, err := p.API().Open(ctx, roots.Opening{Profile: agents.ProfileAssistant})
	if err != nil {
		return nil, err
	}
	c.take(p, rec)
	modes, err := c.opened(ctx, p, rec)
	return map[string]any{"sessionId": rec.ID, "modes": modes}, err
}

// load shows a conversation again from its beginning, and what comes of it from now on.
func (c *conn) load(ctx context.Context, at place) (any, error) {
	p, err := c.enter(ctx, at)
	if err != nil {
		return nil, err
	}
	if err := centurion.CheckID(centurion.PrefixSession, at.Session); err != nil {
		return nil, err
	}
	rec, err := p.API().Session(ctx, at.Session)
	if err == nil {
		err = roots.IsRoot(rec)
	}
	if err != nil {
		return nil, err
	}
	if err := c.take(p, rec).replay(ctx); err != nil {
		return nil, err
	}
	modes, err := c.opened(ctx, p, rec)
	return map[string]any{"modes": modes}, err
}

// take makes a session one of this editor.
func (c *conn) take(p *project, rec centurion.Session) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[rec.ID]
	if s == nil {
		s = &session{project: p, conn: c, id: rec.ID, asked: map[string]context.CancelFunc{}, stopping: make(chan struct{}, 1)}
		s.telling.reset()
		c.sessions[rec.ID] = s
	}
	s.mission = rec.Metadata.Mission
	return s
}

// session is a session of this editor.
func (c *conn) session(id string) (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sessions[id]; s != nil {
		return s, nil
	}
	return nil, &centurion.Error{Kind: centurion.KindNotFound, Msg: "this connection has no session " + id, Hint: "begin one with session/new, or load it with session/load"}
}

// opened are the modes of a session: the agents that a person can speak to. Its commands are told after the answer: before it, the editor does
// not know the session.
func (c *conn) opened(ctx context.Context, p *project, rec centurion.Session) (any, error) {
	list, err := p.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	var modes []map[string]string
	for _, a := range list.Agents {
		if a.Profile != "" {
			modes = append(modes, map[string]string{"id": a.Name, "name": a.Name, "description": a.Description})
		}
	}
	answered := c.out.after(ctx.Value(requestKey{}).(string))
	c.jobs.Go("tell commands", func() error {
		select {
		case <-answered:
			commands := []any{}
			all, _ := p.Commands(c.ctx) // without the servers' at least
			for _, one := range all {
				hint := "what to do"
				if one.Server != "" {
					hint = strings.Join(one.Arguments, " ")
				}
				commands = append(commands, map[string]any{"name": one.Name, "description": one.Description, "input": map[string]string{"hint": hint}})
			}
			return c.update(rec.ID, update{Kind: "available_commands_update", Commands: &commands})
		case <-c.ctx.Done():
			return nil
		}
	})
	return map[string]any{"currentModeId": rec.Agent, "availableModes": modes}, nil
}

// setMode chooses the agent of a session that has no message yet.
func (c *conn) setMode(ctx context.Context, p struct {
	Session string `json:"sessionId"`
	Mode    string `json:"modeId"`
}) (any, error) {
	s, err := c.session(p.Session)
	if err != nil {
		return nil, err
	}
	profile, err := s.ProfileOf(ctx, p.Mode)
	if err == nil && profile == "" {
		err = &centurion.Error{Kind: centurion.KindUsage, Msg: p.Mode + " works for other agents, and is no mode"}
	}
	if err != nil {
		return nil, err
	}
	rec, err := s.API().Session(ctx, s.id)
	if err != nil || rec.Metadata.Mission != "" && rec.Agent == p.Mode {
		return struct{}{}, err
	}
	_, err = s.API().Change(ctx, s.id, roots.Change{Agent: &p.Mode, Profile: &profile})
	return struct{}{}, err
}

// of are the sessions that an event of a project concerns.
func (c *conn) of(p *project, e centurion.Event) (all []*session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		if s.project == p && (s.id == e.Session || s.mission != "" && s.mission == e.Mission || e.Session == "" && e.Type == centurion.EventDelta) {
			all = append(all, s)
		}
	}
	return all
}
