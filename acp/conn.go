package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"centurion"
	"centurion/guard"
	"centurion/guard/peer"
)

const (
	maxLine     = 32 << 20 // bytes of one message: a file of 20 MB with escapes
	maxNonsense = 100      // lines that are no message: a warning on the wrong stream is forgiven, a stream of them is not
	maxRequests = 64       // requests of the agent that are answered at the same time
)

// message is any message of JSON-RPC 2.0.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *wireError      `json:"error,omitempty"`
}

// wireError is an error of JSON-RPC.
type wireError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *wireError) Error() string { return e.Message }

// conn carries requests both ways. Notifications are handled in their order, before anything that comes after them.
type conn struct {
	streams io.ReadWriteCloser
	request func(ctx context.Context, method string, params json.RawMessage) (any, error)
	note    func(method string, params json.RawMessage) error
	heard   func() // a message has come

	life  context.Context // of the agent's requests
	end   context.CancelFunc
	group guard.Group
	turns chan struct{} // holds one for each request of the agent

	writing sync.Mutex
	mu      sync.Mutex // protects the fields below
	next    int
	pending map[string]chan message // by the id of our requests
	gone    chan struct{}           // closed when nothing more is read
	err     error                   // why
}

func newConn(ctx context.Context, streams io.ReadWriteCloser) *conn {
	c := &conn{streams: streams, turns: make(chan struct{}, maxRequests), pending: map[string]chan message{}, gone: make(chan struct{})}
	c.life, c.end = context.WithCancel(ctx)
	return c
}

// serve reads until the streams end.
func (c *conn) serve() {
	c.group.Go("read from the agent", func() error {
		err := guard.Call("read from the agent", c.read)
		c.end()
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
		close(c.gone)
		return nil
	})
}

func (c *conn) read() error {
	in, nonsense := bufio.NewReaderSize(c.streams, 64<<10), 0
	for {
		line, err := peer.ReadLine(in, maxLine)
		if errors.Is(err, peer.ErrTooLong) {
			return fault("a message has more than %s", centurion.Bytes(maxLine))
		}
		if err != nil {
			return err
		}
		var m message
		if line[0] != '{' || json.Unmarshal(line, &m) != nil || m.Method == "" && len(m.ID) == 0 {
			if nonsense++; nonsense > maxNonsense {
				return fault("it writes what is no message of the protocol, such as %q", centurion.Clip(string(line), 80))
			}
			continue
		}
		c.heard()
		if err := c.take(m); err != nil {
			return err
		}
	}
}

// take handles a message: an answer that nobody waits for, such as a second one, is passed over.
func (c *conn) take(m message) error {
	switch {
	case m.Method == "":
		c.mu.Lock()
		answer := c.pending[string(m.ID)]
		delete(c.pending, string(m.ID))
		c.mu.Unlock()
		if answer != nil {
			answer <- m
		}
		return nil
	case len(m.ID) == 0:
		return c.note(m.Method, m.Params)
	}
	select {
	case c.turns <- struct{}{}:
	default:
		return fault("it has more than %s open", centurion.Count(maxRequests, "request"))
	}
	c.group.Go("answer the agent", func() error {
		defer func() { <-c.turns }()
		var result any
		err := guard.Call("answer the agent", func() (err error) {
			result, err = c.request(c.life, m.Method, m.Params)
			return err
		})
		out := message{ID: m.ID}
		if err == nil {
			out.Result, err = json.Marshal(result)
		}
		if err != nil {
			out.Result, out.Error = nil, toWire(err)
		}
		_ = c.send(out) // who is gone needs no answer
		return nil
	})
	return nil
}

// toWire returns an error as the agent's model can use it.
func toWire(err error) *wireError {
	if e, ok := errors.AsType[*wireError](err); ok {
		return e
	}
	e := &wireError{Code: -32603, Message: err.Error()}
	if centurion.KindOf(err) == centurion.KindNotFound {
		e.Code = -32002
	}
	if hint := centurion.HintOf(err); hint != "" {
		e.Message += ". " + hint
	}
	return e
}

func (c *conn) send(m message) error {
	m.Version = "2.0"
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err = c.streams.Write(append(b, '\n'))
	return err
}

// begin sends a request, also to an agent that reads nothing: the answer comes through the channel.
func (c *conn) begin(method string, params any) (<-chan message, error) {
	b, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	answer := make(chan message, 1)
	c.mu.Lock()
	c.next++
	id := fmt.Sprint(c.next)
	c.pending[id] = answer
	c.mu.Unlock()
	c.group.Go("ask the agent", func() error {
		_ = c.send(message{ID: json.RawMessage(id), Method: method, Params: b}) // an agent that is gone is noticed by reading
		return nil
	})
	return answer, nil
}

// tell sends a notification.
func (c *conn) tell(method string, params any) {
	b, _ := json.Marshal(params) // our own types
	c.group.Go("tell the agent", func() error {
		_ = c.send(message{Method: method, Params: b})
		return nil
	})
}

// result waits for an answer.
func (c *conn) result(ctx context.Context, answer <-chan message, to any) error {
	select {
	case m := <-answer:
		return decode(m, to)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.gone:
	}
	select {
	case m := <-answer: // it answered and left
		return decode(m, to)
	default:
	}
	return c.broken()
}

func decode(m message, to any) error {
	if m.Error != nil {
		return m.Error
	}
	if len(m.Result) == 0 || string(m.Result) == "null" {
		return nil
	}
	if err := json.Unmarshal(m.Result, to); err != nil {
		return fault("its answer is not what the protocol says: %v", err)
	}
	return nil
}

// broken is why nothing more is read.
func (c *conn) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil || errors.Is(c.err, io.EOF) || errors.Is(c.err, io.ErrClosedPipe) {
		return &centurion.Error{Kind: centurion.KindStreamCut, Msg: "the agent's program has ended"}
	}
	return c.err
}

// fault is the error of an agent that does not keep to the protocol.
func fault(format string, args ...any) error {
	return &centurion.Error{Kind: centurion.KindStreamCut, Msg: fmt.Sprintf(format, args...)}
}

// close ends the connection and waits for everything that it has begun.
func (c *conn) close() error {
	c.end()
	err := c.streams.Close()
	_ = c.group.Wait() // crashes have been answered
	return err
}
