package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"centurion"
	"centurion/guard"
	"centurion/text"
)

// MetaDirectory is the key under which a server is told where the caller of a tool works.
const MetaDirectory = "centurion/directory"

// Call calls a tool with a JSON object for a caller who works in a directory, "" for none. It waits for a connection that is being made, and calls again once if the connection ended
// before the call began. An answer of the server that the call failed is an error of KindUsage with its text; where there is no answer,
// the error is [ErrNotBegun] or, unless the tool only reads, [ErrMayHaveRun].
func (cs *Clients) Call(ctx context.Context, t Tool, dir string, args json.RawMessage) (out Result, err error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	err = cs.request(ctx, request{op: "call " + t.Name, server: t.Server, limit: CallTimeout, harmless: t.ReadOnly}, func(ctx context.Context, s *sdk.ClientSession) error {
		params := &sdk.CallToolParams{Name: t.Remote, Arguments: args}
		if dir != "" {
			params.Meta = sdk.Meta{MetaDirectory: dir}
		}
		r, err := s.CallTool(ctx, params)
		if err != nil {
			return err
		}
		if out = resultOf(r); r.IsError {
			return said(out.Text)
		}
		return nil
	})
	return out, err
}

// said is an error with which a server answers, for the model.
func said(what string) error { return &centurion.Error{Kind: centurion.KindUsage, Msg: what} }

// Prompt returns the text of the prompt with that name, server:prompt. Its arguments are words in their order, of which the last takes the rest.
func (cs *Clients) Prompt(ctx context.Context, name string, words []string) (Result, error) {
	for _, p := range cs.Tools().Prompts {
		if p.Name != name {
			continue
		}
		args := map[string]string{}
		for i, a := range p.Arguments {
			if i < len(words) {
				if args[a.Name] = words[i]; i == len(p.Arguments)-1 {
					args[a.Name] = strings.Join(words[i:], " ")
				}
			}
			if a.Required && args[a.Name] == "" {
				return Result{}, &centurion.Error{Op: name, Kind: centurion.KindUsage, Msg: fmt.Sprintf("the argument %s is missing", text.Clean(a.Name)), Hint: a.Description}
			}
		}
		var a answer
		err := cs.request(ctx, request{op: "get " + name, server: p.Server, harmless: true}, func(ctx context.Context, s *sdk.ClientSession) error {
			r, err := s.GetPrompt(ctx, &sdk.GetPromptParams{Name: p.Remote, Arguments: args})
			if err != nil {
				return err
			}
			for _, m := range r.Messages {
				if m != nil {
					a.content(m.Content)
				}
			}
			return nil
		})
		return a.result(), err
	}
	return Result{}, &centurion.Error{Op: "mcp", Kind: centurion.KindNotFound, Msg: fmt.Sprintf("there is no prompt %s", text.Clean(name))}
}

// Read reads a resource.
func (cs *Clients) Read(ctx context.Context, server, uri string) (Result, error) {
	var a answer
	err := cs.request(ctx, request{op: "read " + text.Clean(uri), server: server, harmless: true}, func(ctx context.Context, s *sdk.ClientSession) error {
		r, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
		if err != nil {
			return err
		}
		for _, part := range r.Contents {
			a.resource(part)
		}
		return nil
	})
	return a.result(), err
}

// request says what is asked of a server.
type request struct {
	op, server string
	limit      time.Duration // if it is longer than the server's timeout
	harmless   bool          // it changes nothing, so that it does not matter whether it has run
}

func (cs *Clients) request(ctx context.Context, r request, send func(context.Context, *sdk.ClientSession) error) error {
	for _, c := range cs.all {
		if c.server.Name != r.server {
			continue
		}
		for again := false; ; again = true {
			l, err := c.connected(ctx)
			if err != nil {
				return &centurion.Error{Op: r.op, Kind: centurion.KindOf(err), Msg: err.Error(), Hint: centurion.HintOf(err), Err: ErrNotBegun}
			}
			err = l.do(ctx, max(c.timeout(), r.limit), send)
			if again || !errors.Is(err, sdk.ErrConnectionClosed) && !errors.Is(err, sdk.ErrSessionMissing) || guard.Sleep(ctx, lull) != nil {
				return c.outcome(ctx, r, err)
			}
		}
	}
	return &centurion.Error{Op: r.op, Kind: centurion.KindNotFound, Msg: fmt.Sprintf("there is no MCP server %q", r.server), Err: ErrNotBegun}
}

// do sends a request and waits for the answer, for limit, or for the end of the connection.
func (l *link) do(ctx context.Context, limit time.Duration, send func(context.Context, *sdk.ClientSession) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer guard.After(l.life, "end an MCP call", cancel)()
	var s sending
	err := send(context.WithValue(ctx, sendingKey{}, &s), l.session)
	switch { // the SDK may answer with the end of the connection, which says less
	case err == nil || !l.http:
	case s.Load() == unknown:
		return sdk.ErrSessionMissing
	case s.Load() == unsent && !errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %s", sdk.ErrConnectionClosed, reason(err))
	}
	if l.life.Err() != nil && errors.Is(err, context.Canceled) {
		return errors.New(reason(context.Cause(l.life)))
	}
	return err
}

// outcome makes the caller's error of how a request ended.
func (c *client) outcome(ctx context.Context, r request, err error) error {
	if err == nil {
		return nil
	}
	out := &centurion.Error{Op: r.op, Kind: centurion.KindInterrupted, Msg: fmt.Sprintf("the MCP server %s: %s", c.server.Name, reason(err))}
	if !r.harmless {
		out.Err = ErrMayHaveRun
	}
	dial, ours := new(net.OpError), new(centurion.Error)
	switch answer := answered(err); {
	case errors.As(err, &ours): // a refusal, or a tool's own error
		out.Kind, out.Msg, out.Hint, out.Err = ours.Kind, ours.Msg, ours.Hint, ours.Err
	case ctx.Err() != nil:
		out.Kind, out.Msg = centurion.KindOf(context.Cause(ctx)), context.Cause(ctx).Error()
	case errors.Is(err, context.DeadlineExceeded):
		out.Kind = centurion.KindTimeout
	case errors.Is(err, sdk.ErrConnectionClosed), errors.Is(err, sdk.ErrSessionMissing), errors.As(err, &dial) && dial.Op == "dial":
		out.Err = ErrNotBegun
	case answer != nil:
		out.Kind, out.Msg, out.Err = centurion.KindUsage, "the MCP server answers: "+strings.TrimSpace(cut(answer.Message)), nil
	}
	return out
}
