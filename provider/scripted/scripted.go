// Package scripted is a model with predefined answers. It serves OpenAI's APIs (chat completions, streaming or not, the model list, and
// responses, streaming) and Anthropic's (messages, streaming) as an http.Handler, on loopback, or in memory to its own client, and it
// can delay, fail, cut and stall. The demonstration, tests and benchmarks all use it.
//
// Its answers come from a [Scenario], a small YAML file, or from a Go function. Like a strict provider it checks every request and
// answers a faulty one with status 400; [Model.Violations] lists the faults, so that a test also sees those hidden by a recovery. It
// checks what providers document, and that a session continues what it has sent: the same system prompt, the same tools, and a history
// that only grows. It knows the wire format and three marks of this program's own client: the status at the very end, which changes;
// the summary with which a compaction replaces older messages; and the words that mark a person's.
//
// # Scenarios
//
// Rules are tried in order for each request; the first one that matches and is not used up answers. Default rules come last. If no rule
// matches, the answer is status 500 with the reason for each rule.
//
//	models: [scripted]     # others are answered with 404; without this key every name is accepted
//	key: sk-test           # requests without this key are answered with 401
//	latency: 50ms          # before the first byte
//	pace: 15ms             # between two chunks
//	chunk: 12              # characters a chunk
//	rewinds: true          # sessions may go back to an earlier point; without this key a history may only grow
//	rules:
//	  - name: plan
//	    when: {agent: commander, step: 1}
//	    say: "I split this."
//	    reasoning: "Two parts."
//	    calls:
//	      - update_todo: {level: 2, content: "- [ ] T1 One"}
//	      - read: '{"filePath": '                   # a text is sent as it is, also if it is no JSON
//	    usage: {input: 1200, output: 80, cached: 1000, reasoning: 10}
//	  - when: {contains: T3, times: 1}
//	    error: {status: 429, message: slow down, retry_after: 2}
//	  - when: {tool_result: '/task (tsk_\w+)/'}
//	    calls: [{get_task_result: {task_id: '{{find `tsk_\w+`}}'}}]
//	  - default: true
//	    say: Done.
//
// All matchers of a rule must match. Texts are substrings, or regular expressions between slashes; every text of a list must be found.
//
//	session      the n-th session seen, counted from 1, or the exact value of x-session-id
//	root         true: no x-parent-session-id; false: with one
//	agent        a regular expression, without case, on the first line of the system prompt
//	item         a word of the session's first user message
//	turn         the n-th request of the session, retries included, counted from 1
//	step         1 + the number of answers in the request's history; unlike turn it survives a restart and a retry
//	first        in the session's first user message
//	last         in the newest message of any role
//	contains     in any message
//	tool_result  in one of the tool results that the request brings
//	has_tool     the request offers this tool
//	model        the exact name
//	times        how often this rule may answer
//
// An answer is say, reasoning and calls; or an error (with stream: true in the middle of a stream); or raw, a literal body. delay adds
// to the latency, stall is a silence after the first chunk, finish replaces the finish reason. cut: true ends the stream half way, cut:
// late before its finish reason, cut: reset half way by breaking the connection. Without usage the tokens are estimated from the bytes,
// four each, and the prefix shared with the session's previous request counts as cached.
//
// Texts and arguments are templates (text/template) if they contain {{: {{.Session}}, {{.Parent}}, {{.Nth}}, {{.Turn}}, {{.Step}},
// {{.Agent}}, {{.Model}}, {{.First}}, {{.Last}}, and {{find `regexp`}}, which searches the newest message first and returns the first
// group, or the whole match without one. Finding nothing is an error of the scenario.
package scripted

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"centurion"
	"centurion/guard"
)

// URL is the base URL for a [Model.Client]; the host's name means nothing.
const URL = "http://scripted.invalid/v1"

// DefaultChunk is the number of characters per chunk.
const DefaultChunk = 12

// Config says what a model answers. Exactly one of Scenario and Func is needed. These settings override the scenario's.
type Config struct {
	Scenario *Scenario
	Func     func(Request) Answer // called concurrently for several sessions

	Models  []string      // the known models; with none, every name is accepted
	Key     string        // required in requests; empty: none
	Latency time.Duration // before the first byte of every answer
	Pace    time.Duration // between two chunks; negative: none
	Chunk   int           // characters per chunk; 0: DefaultChunk; negative: everything in one
	Rewinds bool          // sessions may go back to an earlier point of their history and continue from there
	NoCheck bool          // for benchmarks: requests are not checked, and Requests returns only figures
}

// Answer is one answer. The zero Answer is an empty text.
type Answer struct {
	Rule      string // shown in Requests
	Say       string
	Reasoning string
	Calls     []Call
	Finish    string // finish_reason; empty: tool_calls with calls, else stop
	Usage     *Usage // nil: estimated
	Error     *Error // instead of everything above, or in its middle
	Raw       string // the whole body, instead of everything above; with Content-Type text/event-stream for a stream

	Delay time.Duration // in addition to the latency
	Pace  time.Duration // instead of the model's; negative: none
	Chunk int           // instead of the model's; negative: everything in one
	Stall time.Duration // silence after the first chunk
	Cut   Cut
}

// Call is a tool call in an answer. Arguments is sent unchanged; empty means {}. An empty ID is replaced with a unique one.
type Call struct {
	ID        string
	Name      string
	Arguments string
}

// Usage counts tokens as in the API: Input includes Cached, and Output includes Reasoning.
type Usage struct {
	Input, Output, Cached, Reasoning int
}

// Error is an error answer.
type Error struct {
	Status     int // 0: 500
	Message    string
	Type, Code string        // empty: OpenAI's for the status
	RetryAfter time.Duration // sent in seconds, rounded up
	Stream     bool          // status 200 and half an answer first
}

// Cut is how an answer is cut off.
type Cut string

// The ways to cut off an answer.
const (
	CutHalf  Cut = "half"  // the stream ends properly half way through the answer
	CutLate  Cut = "late"  // the stream ends properly after the whole answer, without a finish reason
	CutReset Cut = "reset" // the connection breaks half way
)

// Violation is a faulty request, or one that the script has no answer for.
type Violation struct {
	Number  int // of the request
	Session string
	Turn    int
	Message string
}

// Model is a scripted model. With testing/synctest it must be created inside the bubble.
type Model struct {
	cfg    Config
	script func(Request) (Answer, error)
	run    *run // nil with a Func
	done   chan struct{}

	group    guard.Group
	handlers sync.WaitGroup
	number   atomic.Int64
	inFlight atomic.Int64
	peak     atomic.Int64
	rewinds  atomic.Bool // sessions may go back to an earlier point
	recasts  atomic.Bool // sessions may continue with another agent
	encoders sync.Pool

	mu         sync.Mutex
	closed     bool
	pipe       *pipeListener
	servers    []*http.Server
	clients    []*http.Client
	sessions   map[string]*session
	requests   []Request
	violations []Violation
	thoughts   map[string]string // the signature of a call's thinking, by call id
}

// New returns a model. It starts nothing.
func New(c Config) *Model {
	m := &Model{done: make(chan struct{}), sessions: map[string]*session{}}
	if s := c.Scenario; s != nil {
		if c.Models == nil {
			c.Models = s.models
		}
		c.Key = cmp.Or(c.Key, s.key)
		c.Latency = cmp.Or(c.Latency, s.latency)
		c.Pace = cmp.Or(c.Pace, s.pace)
		c.Chunk = cmp.Or(c.Chunk, s.chunk)
		c.Rewinds = c.Rewinds || s.rewinds
		m.run = s.start()
		m.script = m.run.answer
	} else {
		m.script = func(r Request) (Answer, error) { return c.Func(r), nil }
	}
	c.Chunk = cmp.Or(c.Chunk, DefaultChunk)
	m.cfg = c
	m.rewinds.Store(c.Rewinds)
	return m
}

// AllowRewinds lets sessions go back to an earlier point of their history from now on: a program that continues from a copy of
// another's state does not know the later requests.
func (m *Model) AllowRewinds() { m.rewinds.Store(true) }

// AllowRecasts lets sessions continue with another agent from now on, which has a system prompt and tools of its own.
func (m *Model) AllowRecasts() { m.recasts.Store(true) }

// Func returns a model that answers with f, which is called concurrently for several sessions.
func Func(f func(Request) Answer) *Model { return New(Config{Func: f}) }

// Serve serves the model on a free port of 127.0.0.1 until Close, and returns the base URL for clients.
func (m *Model) Serve() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", &centurion.Error{Op: "serve the scripted model", Kind: centurion.KindNetwork, Err: err}
	}
	if err := m.serve(l); err != nil {
		_ = l.Close()
		return "", err
	}
	return "http://" + l.Addr().String() + "/v1", nil
}

// Client returns a client that reaches the model in memory, whatever the requested host; [URL] is its base URL. Close ends its
// connections.
func (m *Model) Client() *http.Client {
	c := &http.Client{Transport: &http.Transport{DialContext: m.DialContext, DisableCompression: true, MaxIdleConnsPerHost: 1024}}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clients = append(m.clients, c)
	return c
}

// DialContext connects to the model in memory, whatever the address. It fits http.Transport.
func (m *Model) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	m.mu.Lock()
	l, fresh := m.pipe, false
	if l == nil {
		l, fresh = &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}, true
		m.pipe = l
	}
	m.mu.Unlock()
	if fresh {
		if err := m.serve(l); err != nil {
			return nil, err
		}
	}
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-m.done:
		return nil, errClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

var errClosed = &centurion.Error{Op: "call the scripted model", Kind: centurion.KindNetwork, Msg: "it is closed"}

func (m *Model) serve(l net.Listener) error {
	srv := &http.Server{Handler: m, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errClosed
	}
	m.servers = append(m.servers, srv)
	m.group.Go("scripted model", func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return nil
}

// Close ends every connection and answer, and waits for them. Closing again does nothing.
func (m *Model) Close() error {
	m.mu.Lock()
	if !m.closed {
		m.closed = true
		close(m.done)
	}
	servers, clients := m.servers, m.clients
	m.mu.Unlock()
	for _, s := range servers {
		_ = s.Close()
	}
	for _, c := range clients {
		c.CloseIdleConnections()
	}
	m.handlers.Wait()
	return m.group.Wait()
}

// Requests returns the requests so far, in order of arrival, without those for the model list.
func (m *Model) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Violations returns all faults of requests so far; a test asserts that there are none.
func (m *Model) Violations() []Violation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.violations)
}

// Peak returns the maximum number of simultaneous requests.
func (m *Model) Peak() int { return int(m.peak.Load()) }

// Unused returns the names of the scenario's rules that have not answered anything.
func (m *Model) Unused() []string {
	if m.run == nil {
		return nil
	}
	return m.run.unused()
}

func (m *Model) violation(r *Request, msg string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.violations = append(m.violations, Violation{Number: r.Number, Session: r.Session, Turn: r.Turn, Message: msg})
}

// enter counts a handler, or reports that the model is closed.
func (m *Model) enter() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.handlers.Add(1)
	n := m.inFlight.Add(1)
	if n > m.peak.Load() {
		m.peak.Store(n)
	}
	return true
}

func (m *Model) leave() {
	m.inFlight.Add(-1)
	m.handlers.Done()
}

// wait waits. If the client disconnects or the model is closed meanwhile, the connection is broken, so that the part sent so far does
// not look like a whole answer.
func (m *Model) wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return
	case <-ctx.Done():
	case <-m.done:
	}
	panic(http.ErrAbortHandler) // the documented way to break a connection
}

// pipeListener accepts the far ends of in-memory connections.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
