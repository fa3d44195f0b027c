package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv("MCP_TEST_SERVER") != "" {
		if err := newServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	if os.Getenv("MCP_CONFORMANCE_SCENARIO") != "" {
		if err := conform(os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// pipes is a process in this one: a function that reads and writes what a server does.
type pipes struct {
	io.Reader
	io.Writer
	close, kill func()
	wait        chan error
}

func (p *pipes) Close() error { p.close(); return nil }
func (p *pipes) Kill()        { p.kill() }
func (p *pipes) Wait() error  { return <-p.wait }

// start runs serve as a process. Its end closes its output; kill ends its reads and writes.
func start(serve func(in io.Reader, out io.Writer) error) Process {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &pipes{Reader: outR, Writer: inW, wait: make(chan error, 1)}
	gone, once := make(chan struct{}), sync.Once{}
	p.close = func() { inW.Close(); outR.Close(); once.Do(func() { close(gone) }) }
	p.kill = func() { inR.CloseWithError(io.ErrClosedPipe); outW.CloseWithError(io.ErrClosedPipe) }
	go func() {
		err := serve(input{inR, gone}, outW)
		outW.Close()
		inR.Close()
		p.wait <- err
	}()
	return p
}

// input is what a server reads. gone is closed with the client's end.
type input struct {
	io.Reader
	gone chan struct{}
}

// starter starts servers by name, and counts the starts.
type starter struct {
	mu    sync.Mutex
	count map[string]int
	serve map[string]func(in io.Reader, out io.Writer) error
}

func (s *starter) start(_ context.Context, server Server) (Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == nil {
		s.count = map[string]int{}
	}
	s.count[server.Name]++
	f := s.serve[server.Name]
	if f == nil {
		return nil, fmt.Errorf("%s is not installed", server.Name)
	}
	return start(f), nil
}

func (s *starter) starts(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[name]
}

func local(names ...string) (out []Server) {
	for _, n := range names {
		out = append(out, Server{Name: n, Command: []string{n}})
	}
	return out
}

// open opens servers and closes them at the end of the test.
func open(t testing.TB, o Options, servers ...Server) *Clients {
	t.Helper()
	if o.Root == "" {
		o.Root = "/srv/project"
	}
	cs := Open(servers, o)
	t.Cleanup(func() {
		if err := cs.Close(); err != nil {
			t.Error(err)
		}
	})
	return cs
}

// settled opens servers and waits until they are connected or have failed for the first time.
func settled(t testing.TB, o Options, servers ...Server) *Clients {
	t.Helper()
	cs := open(t, o, servers...)
	if err := cs.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	return cs
}

// through serves one session of an SDK server.
func through(s *sdk.Server) func(io.Reader, io.Writer) error {
	return func(in io.Reader, out io.Writer) error {
		return s.Run(context.Background(), &sdk.IOTransport{Reader: io.NopCloser(in), Writer: nopCloser{out}})
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func (cs *Clients) tool(t testing.TB, name string) Tool {
	t.Helper()
	l := cs.Tools()
	for _, tool := range l.Tools {
		if tool.Name == name {
			return tool
		}
	}
	t.Fatalf("no tool %s in %+v", name, l)
	return Tool{}
}

// script is a server without the SDK: what it does with each message, by method. A method that is missing gets an ordinary answer.
type script map[string]func(p *player)

// player is one message of the client, and the way to answer.
type player struct {
	Method string          `json:"method"`
	ID     json.RawMessage `json:"id"`
	Params json.RawMessage `json:"params"`
	gone   chan struct{}   // closed when the client has closed its end
	out    io.Writer
	end    error // ends the server
}

func (p *player) line(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

func (p *player) result(result string) {
	if len(p.ID) > 0 {
		p.line(`{"jsonrpc":"2.0","id":%s,"result":%s}`, p.ID, result)
	}
}

const greeting = `{"protocolVersion":"2025-11-25","serverInfo":{"name":"raw","version":"1"},"capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{}}}`

// ordinary are the answers of a well-behaved server.
var ordinary = map[string]string{
	"initialize":     greeting,
	"tools/list":     `{"tools":[{"name":"do","description":"does","inputSchema":{"type":"object"}}]}`,
	"tools/call":     `{"content":[{"type":"text","text":"done"}]}`,
	"prompts/list":   `{"prompts":[{"name":"ask","arguments":[{"name":"what","required":true}]}]}`,
	"prompts/get":    `{"messages":[{"role":"user","content":{"type":"text","text":"asked"}}]}`,
	"resources/list": `{"resources":[{"uri":"note://1","name":"one"}]}`,
	"resources/read": `{"contents":[{"uri":"note://1","text":"noted"}]}`,
}

func (s script) serve(in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return nil
		}
		p := &player{gone: in.(input).gone, out: out}
		if err := json.Unmarshal(line, p); err != nil {
			return err
		}
		if f := s[p.Method]; f != nil {
			f(p)
		} else if answer, ok := ordinary[p.Method]; ok {
			p.result(answer)
		}
		if p.end != nil {
			return p.end
		}
	}
}

// child is a real process.
type child struct {
	io.ReadCloser
	io.WriteCloser
	cmd *exec.Cmd
	err bytes.Buffer
}

func (c *child) Close() error { c.WriteCloser.Close(); return c.ReadCloser.Close() }
func (c *child) Kill()        { _ = c.cmd.Process.Kill() }

func (c *child) Wait() error {
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(c.err.String()))
	}
	return nil
}

// execute starts the real command of a server.
func execute(_ context.Context, s Server) (Process, error) {
	c := &child{cmd: exec.Command(s.Command[0], s.Command[1:]...)}
	c.cmd.Stderr = &c.err
	c.cmd.Env = os.Environ()
	for k, v := range s.Environment {
		c.cmd.Env = append(c.cmd.Env, k+"="+v)
	}
	// Not StdoutPipe: Wait would close it before it is read.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.ReadCloser, c.cmd.Stdout = r, w
	if c.WriteCloser, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	err = c.cmd.Start()
	w.Close()
	return c, err
}

// start starts a server that only Kill ends.
func (s *stubborn) start(context.Context, Server) (Process, error) {
	p := start(s.serve).(*pipes)
	kill, once := p.kill, sync.Once{}
	p.kill = func() { kill(); once.Do(func() { close(s.killed) }) }
	return p, nil
}
