//lint:file-ignore SA1019 servers of today ask for roots and send logs, which the version of 2026 has deprecated

package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"centurion"
	"centurion/guard"
	"centurion/guard/peer"
	"centurion/text"
)

const (
	// handshake is the newest version with a handshake of its own. It is tried first: servers that do not know the version of 2026 may
	// leave its first request unanswered.
	handshake = "2025-11-25"
	// endLimit is how long a server may take to end by itself.
	endLimit = 300 * time.Millisecond // a person waits for it at the end of a run
	// lull is how long a changed list, and the reason of an end, may take to be complete.
	lull = 300 * time.Millisecond
)

var errClosed = errors.New("it closed the connection")

// live connects and stays until the connection ends. It returns how long the connection was usable, and why it ended.
func (c *client) live(ctx context.Context) (lasted time.Duration, err error) {
	var group guard.Group
	life, end := context.WithCancelCause(ctx)
	l := &link{life: life, http: len(c.server.Command) == 0}
	defer func() { err = errors.Join(c.wrong(err), group.Wait()) }()
	defer end(errClosed)
	transport, shut, err := c.open(life, &group, end)
	if err != nil {
		return 0, err
	}
	defer func() { end(errClosed); shut(l.session) }()
	lists, err := c.greet(life, l, transport)
	if err != nil {
		return 0, why(life, err)
	}
	c.mu.Lock()
	c.link, c.lists = l, lists
	c.mu.Unlock()
	c.set(Ready, nil)
	began := time.Now()
	group.Go("wait for an MCP session", func() error {
		err := l.session.Wait()
		if c.set(Connecting, nil); err == nil {
			err = io.EOF
		}
		end(why(life, err))
		return nil
	})
	for {
		select {
		case <-life.Done():
			return time.Since(began), context.Cause(life)
		case <-c.stale:
			_ = guard.Sleep(life, lull)
			again, err := c.list(life, l.session)
			if err != nil {
				if guard.Sleep(life, 2*lull) == nil { // else it ended
					c.note("its changed lists cannot be read: %s", reason(err))
				}
				continue
			}
			c.mu.Lock()
			c.lists = again
			c.mu.Unlock()
		}
	}
}

// why waits a moment for the end of the process, which says more than the end of its output.
func why(life context.Context, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, sdk.ErrConnectionClosed) {
		if guard.Sleep(life, 2*lull) != nil {
			return context.Cause(life)
		}
	}
	return err
}

// open starts a server's process, whose end is the end of life, or prepares its requests. shut ends the session, which may be nil, and
// what was opened.
func (c *client) open(life context.Context, group *guard.Group, end context.CancelCauseFunc) (sdk.Transport, func(*sdk.ClientSession), error) {
	if len(c.server.Command) == 0 {
		open, closed := context.WithCancel(context.WithoutCancel(life)) // longer than life: the server hears of the end
		w := &wire{base: c.o.HTTP, headers: c.server.Headers, life: open, limit: min(takeLimit, c.timeout()/2),
			rate: peer.Rate{Max: maxRate}, deaf: func() { end(peer.ErrDeaf) }}
		return &sdk.StreamableClientTransport{Endpoint: c.server.URL, HTTPClient: w.client(), MaxEventSize: peer.MaxMessage, MaxRetries: 2},
			func(s *sdk.ClientSession) {
				defer time.AfterFunc(endLimit, closed).Stop()
				if s != nil {
					_ = s.Close() // it may be gone
				}
				closed()
			}, nil
	}
	ctx, cancel := context.WithTimeout(life, c.timeout())
	defer cancel()
	p, err := c.o.Start(ctx, c.server)
	if err != nil {
		return nil, nil, err
	}
	gone := make(chan struct{})
	group.Go("wait for an MCP server", func() error {
		err := p.Wait()
		close(gone)
		_ = guard.Sleep(life, lull) // what it wrote last is still read
		end(fmt.Errorf("its process has ended: %v", text.If(err == nil, "exit status 0", fmt.Sprint(err))))
		return nil
	})
	in := newLines(p, group, func(line string) { c.o.Log.Debug("MCP server wrote no message", "server", c.server.Name, "line", line) })
	return in, func(s *sdk.ClientSession) {
		_ = in.Close() // a well-behaved server ends with its input
		if s != nil {
			_ = s.Close()
		}
		defer time.AfterFunc(endLimit, p.Kill).Stop()
		<-gone
		p.Kill() // its children
	}, nil
}

// greet makes the session of l and reads its lists.
func (c *client) greet(life context.Context, l *link, t sdk.Transport) (Listing, error) {
	ctx, cancel := context.WithTimeout(life, c.timeout())
	defer cancel()
	var o *sdk.ClientSessionOptions
	if !c.modern {
		o = &sdk.ClientSessionOptions{ProtocolVersion: handshake}
	}
	session, err := c.sdkClient().Connect(ctx, t, o)
	if err != nil {
		c.modern = answered(err) != nil && !c.modern // for the next attempt
		return Listing{}, err
	}
	l.session = session
	return c.list(life, session)
}

func (c *client) sdkClient() *sdk.Client {
	stale := func() {
		select {
		case c.stale <- struct{}{}:
		default:
		}
	}
	s := sdk.NewClient(&sdk.Implementation{Name: "centurion", Version: c.o.Version}, &sdk.ClientOptions{
		Logger:                     slog.New(slog.DiscardHandler),
		Capabilities:               &sdk.ClientCapabilities{RootsV2: &sdk.RootCapabilities{}},
		ToolListChangedHandler:     func(context.Context, *sdk.ToolListChangedRequest) { stale() },
		PromptListChangedHandler:   func(context.Context, *sdk.PromptListChangedRequest) { stale() },
		ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { stale() },
		LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) {
			c.o.Log.Debug("MCP server log", "server", c.server.Name, "level", text.Clean(string(r.Params.Level)),
				"text", text.Clean(centurion.Clip(fmt.Sprint(r.Params.Data), maxLine)))
		},
	})
	for _, dir := range []string{c.o.Root, c.o.Below} {
		root := &url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(dir), "/")}
		if dir != "" {
			s.AddRoots(&sdk.Root{URI: root.String(), Name: filepath.Base(dir)})
		}
	}
	s.AddReceivingMiddleware(c.receive)
	return s
}

// receive handles what a server asks for and tells. It may not use the model, and no person is asked for it. The rest ends here: the
// SDK's handler of notifications/elicitation/complete panics with a lock held when there are no params.
func (c *client) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		switch method {
		case "ping", "roots/list", "notifications/message", "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
			err = guard.Call("handle "+method, func() (err error) { res, err = next(ctx, method, req); return err })
			return res, err
		case "sampling/createMessage", "elicitation/create":
			c.note("it sent %s, which is refused: servers get neither the model nor a person's answers", method)
		}
		if strings.HasPrefix(method, "notifications/") {
			return nil, nil
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Centurion does not support " + method}
	}
}

// wrong makes an error about the server of what the SDK or the process said.
func (c *client) wrong(err error) error {
	if e, ok := errors.AsType[*centurion.Error](err); err == nil || ok && e.Op != "" || errors.Is(err, centurion.ErrShutdown) {
		return err
	} else if ok { // a refusal of ours
		return &centurion.Error{Op: "MCP server " + c.server.Name, Kind: e.Kind, Msg: e.Msg, Hint: e.Hint}
	}
	kind := centurion.KindNetwork
	if errors.Is(err, context.DeadlineExceeded) {
		kind = centurion.KindTimeout
	}
	return &centurion.Error{Op: "MCP server " + c.server.Name, Kind: kind, Msg: reason(err)}
}

// reason is the text of err without words of the SDK that say nothing here.
func reason(err error) string {
	if e, ok := errors.AsType[*centurion.Error](err); ok {
		return e.Msg
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "it did not answer in time"
	case errors.Is(err, io.EOF) || errors.Is(err, sdk.ErrConnectionClosed):
		return errClosed.Error()
	}
	return text.Clean(centurion.Clip(err.Error(), maxLine))
}

// answered returns the error that a server answered with, or nil if err is none of those.
func answered(err error) *jsonrpc.Error {
	const first, last = -32005, -32003 // the SDK's own, about its connection
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && (e.Code < first || e.Code > last) {
		return e
	}
	return nil
}
