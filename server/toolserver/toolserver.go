// Package toolserver offers the missions of a project to other agents, over the Model Context Protocol. It owns the tools, their words
// and the protocol; [Project] carries them out. It decides what a program may do for a person: it answers the asks of its own missions
// only, never for always, and raises no limit.
package toolserver

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"sync/atomic"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/server"
	"centurion/server/rpc"
	"centurion/text"
)

// Project is what the tools work on. Its functions are safe for concurrent use.
type Project struct {
	// Call calls the project's host, or the next one if that one has ended.
	Call func(ctx context.Context, f func(server.API) error) error
	// Begin starts a mission according to the configuration. Resume goes on with one that has stopped, with its own limits, or with one
	// that nobody keeps. Both are this server's then.
	Begin  func(ctx context.Context, p rpc.StartParams) (server.Mission, error)
	Resume func(ctx context.Context, m server.Mission) (server.Mission, error)
	// Plan reads the items of a mission's plan.
	Plan func(ctx context.Context, mission string) ([]event.PlanItem, error)
	// Follow yields events, even across hosts.
	Follow func(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error]
	// Take makes a mission one of this server's, and Own reports whether it is: begun or resumed by its clients.
	Take func(mission string)
	Own  func(mission string) bool
}

// maxLine limits a message of the client, in bytes. What is too long for a mission is refused by its tool, with the id of the call.
const maxLine = 16 << 20

const instructions = `Centurion runs coding missions in this project: a team of agents plans, works in git worktrees, and the work counts as done when its checks
pass. run_mission starts one and returns at once; mission_result with wait_seconds waits for it. While it runs, look at list_questions: an agent
may wait for an answer. delegate gives one task to one agent. The work stays on a branch of its own until the user merges it.`

// New returns a server with all tools. Their calls end with ctx.
func New(ctx context.Context, version string, p *Project) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "centurion", Title: "Centurion", Version: version},
		&mcp.ServerOptions{Instructions: instructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	p.register(&tools{ctx, s})
	return s
}

// Serve answers a client until its input ends or ctx does. The end of the input is no error; gone is called at it, before the answers to
// open calls, which a client may never read.
func Serve(ctx context.Context, in io.Reader, out io.WriteCloser, s *mcp.Server, gone func()) error {
	c := &pipe{Lines: rpc.NewLines(in, out, maxLine), gone: gone}
	err := s.Run(ctx, c)
	if err == nil || ctx.Err() != nil || c.ended.Load() { // what was written after the end need not be read
		return nil
	}
	return &centurion.Error{Op: "serve MCP client", Kind: centurion.KindNetwork, Err: err}
}

// pipe is the connection to a client over two streams. Unlike the SDK's it survives a line that is no message.
type pipe struct {
	*rpc.Lines
	gone  func()
	ended atomic.Bool // the input
}

func (p *pipe) Connect(context.Context) (mcp.Connection, error) { return p, nil }

func (p *pipe) SessionID() string { return "" }

func (p *pipe) Read(context.Context) (jsonrpc.Message, error) {
	for {
		line, err := p.Recv()
		if err != nil {
			p.ended.Store(errors.Is(err, io.EOF))
			p.gone()
			return nil, err
		}
		msg, err := jsonrpc.DecodeMessage(line)
		if err == nil {
			return msg, nil
		}
		if err := p.Refuse(jsonrpc.CodeParseError, "not a JSON-RPC message: "+centurion.Clip(err.Error(), 200)); err != nil {
			return nil, err
		}
	}
}

func (p *pipe) Write(_ context.Context, msg jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	return p.Send(b)
}

// tools is where tools are registered.
type tools struct {
	ctx    context.Context // ends all calls
	server *mcp.Server
}

// What a tool does, for the user who is asked to allow it.
var (
	reads    = mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(false)}
	adds     = mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(false)}
	works    = mcp.ToolAnnotations{} // agents may change files and run commands
	destroys = mcp.ToolAnnotations{IdempotentHint: true, OpenWorldHint: new(false)}
)

// add registers a tool. Its result is data, and the same as a text for the model. An error is one of the call, with its hint; so is a
// panic.
func add[In, Out any](t *tools, name, description string, how mcp.ToolAnnotations, f func(context.Context, *mcp.CallToolRequest, In) (Out, error)) {
	mcp.AddTool(t.server, &mcp.Tool{Name: name, Description: description, Annotations: &how},
		func(ctx context.Context, req *mcp.CallToolRequest, in In) (_ *mcp.CallToolResult, out Out, err error) {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			defer guard.After(t.ctx, "end call of a tool", func() { cancel(context.Cause(t.ctx)) })()
			var said []byte
			err = guard.Call(name, func() (err error) {
				if out, err = f(ctx, req, in); err == nil {
					said, err = yaml.MarshalWithOptions(out, yaml.UseJSONMarshaler(), yaml.UseLiteralStyleIfMultiline(true))
				}
				return err
			})
			if err != nil {
				err = cmp.Or(context.Cause(ctx), err)
				hint := centurion.HintOf(err)
				return nil, out, errors.New(centurion.Clip(err.Error(), maxError) + text.When(hint != "", "\nnext: "+hint))
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(said)}}}, out, nil
		})
}

// maxError limits an error's text, in bytes: it may quote an argument.
const maxError = 4 << 10

// call calls the project's host.
func call[T any](ctx context.Context, p *Project, f func(server.API) (T, error)) (v T, err error) {
	err = p.Call(ctx, func(api server.API) (err error) { v, err = f(api); return err })
	return v, err
}

// The times of a call that waits.
const (
	delegateWait  = 50 * time.Second // of delegate by itself: many clients give a call one minute
	maxWait       = time.Hour
	progressEvery = 3 * time.Second
)

// await waits until a mission stops, one of its agents asks something, or the time is over, and tells the client meanwhile how far it is.
// The mission goes on whatever becomes of the call.
func (p *Project) await(ctx context.Context, req *mcp.CallToolRequest, id string, limit time.Duration) error {
	after, err := call(ctx, p, func(api server.API) (int64, error) { return api.LastSeq(ctx) })
	if err != nil {
		return err
	}
	m, err := p.mission(ctx, id)
	asks, aerr := p.asks(ctx, id)
	if err = cmp.Or(err, aerr); err != nil || !m.Status.Alive() || len(asks) > 0 {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var g guard.Group
	if token := req.Params.GetProgressToken(); token != nil {
		g.Go("tell progress", func() error { return p.tellProgress(inner, req.Session, token, id) })
	}
	err = p.until(ctx, id, after, limit, func(e centurion.EventType) bool {
		return e == centurion.EventPermissionAsked || e == centurion.EventQuestionAsked || e == centurion.EventPlanAsked || e.EndsMission()
	})
	cancel()
	return errors.Join(err, g.Wait())
}

// until reads the events of a mission after one until one is as wanted or the time is over, which is no error.
func (p *Project) until(ctx context.Context, id string, after int64, limit time.Duration, wanted func(centurion.EventType) bool) error {
	inner, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for e, err := range p.Follow(inner, server.EventQuery{Mission: id, After: after, Follow: true}) {
		if err != nil && inner.Err() == nil || err == nil && wanted(e.Type) {
			return err
		}
	}
	return context.Cause(ctx)
}

// tellProgress sends notifications until ctx ends. What cannot be read or sent is told the next time.
func (p *Project) tellProgress(ctx context.Context, to *mcp.ServerSession, token any, id string) error {
	for n := 1.0; ; n++ {
		if m, err := p.mission(ctx, id); err == nil {
			_ = to.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: p.seen(ctx, m).line()})
		}
		if guard.Sleep(ctx, progressEvery) != nil {
			return nil
		}
	}
}
