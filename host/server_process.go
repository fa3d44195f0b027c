package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"centurion"
	"centurion/guard"
	"centurion/mcp"
	"centurion/sandbox"
	"centurion/tools"
)

// program is a process that serves this one over its standard streams.
type program struct {
	*io.PipeReader // what it writes
	*io.PipeWriter // what it reads
	kill           context.CancelCauseFunc
	ended          chan struct{}
	err            error // once it has ended
}

// served is a program to start.
type served struct {
	name    string
	command []string
	env     []string
	dir     string // where it runs, absolute
	plain   bool   // it has no use for OpenCode's configuration
	grounds
}

// grounds are where such a program may write.
type grounds struct {
	own  string   // always
	lend []string // below these during calls for those who work there
}

func (g grounds) make() error {
	for _, dir := range append([]string{g.own}, g.lend...) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return StateError(dir, err)
		}
	}
	return nil
}

// during runs a call of such a program, which may write meanwhile where the caller works.
func (g grounds) during(run *sandbox.Runner, c *tools.Call, call func() error) error {
	if c.Workspace.Elsewhere() {
		return call()
	}
	if err := g.make(); err != nil {
		return err
	}
	back, err := run.Lend(centurion.Command{Workspace: g.own, Lend: g.lend}, c.Workspace.Dir())
	if err != nil {
		return err
	}
	defer back()
	return call()
}

// serve starts a program, confined like a command of an agent, with the network. It may write in a directory of its own and in temporary
// ones, read the project and the checkouts of its workers, and write there while that is lent. ctx limits the start.
func serve(ctx context.Context, run *sandbox.Runner, s served) (*program, error) {
	if err := s.make(); err != nil {
		return nil, err
	}
	var env []string
	if !s.plain {
		var err error
		if env, err = ownConfig(run, s.own, s.name); err != nil {
			return nil, err
		}
	}
	return open(ctx, run, s.name, s.command, centurion.Command{Dir: s.dir, Workspace: s.own, Lend: s.lend, Env: append(env, s.env...), Network: true})
}

// open starts the program of these words as c says, and speaks with it over its standard streams. ctx limits the start.
func open(ctx context.Context, run *sandbox.Runner, name string, command []string, c centurion.Command) (*program, error) {
	words := make([]string, len(command))
	for i, w := range command {
		quoted, err := syntax.Quote(w, syntax.LangPOSIX)
		if err != nil {
			return nil, &centurion.Error{Op: "start " + name, Kind: centurion.KindConfig, Msg: fmt.Sprintf("%q cannot be part of a command", w), Err: err}
		}
		words[i] = quoted
	}
	p := &program{ended: make(chan struct{})}
	var life context.Context
	life, p.kill = context.WithCancelCause(context.Background())
	said := &lastLines{}
	c.Script, c.Errors, c.Timeout = "exec "+strings.Join(words, " "), said, centurion.NoTimeout
	var stdout *io.PipeWriter
	p.PipeReader, stdout = io.Pipe()
	c.Input, p.PipeWriter = io.Pipe()
	begun := make(chan struct{})
	var group guard.Group
	group.Go(name, func() error {
		defer close(p.ended)
		res, err := run.RunBackground(life, c, stdout, func(int) { close(begun) })
		if p.err = err; err == nil {
			p.err = fmt.Errorf("it ended with exit code %d%s", res.ExitCode, said)
		}
		return errors.Join(stdout.Close(), c.Input.Close())
	})
	select {
	case <-begun:
		return p, nil
	case <-p.ended:
		return nil, p.err
	case <-ctx.Done():
		p.Kill()
		return nil, errors.Join(context.Cause(ctx), group.Wait())
	}
}

// start starts a server.
func (s *Servers) start(ctx context.Context, one mcp.Server) (mcp.Process, error) {
	of := served{name: "MCP server " + one.Name, command: one.Command, dir: s.options.Root, grounds: s.grounds(one), plain: true}
	if filepath.IsAbs(one.Cwd) {
		of.dir = one.Cwd
	} else if one.Cwd != "" {
		of.dir = filepath.Join(s.options.Root, filepath.FromSlash(one.Cwd))
	}
	for name, value := range one.Environment {
		of.env = append(of.env, name+"="+value)
	}
	p, err := serve(ctx, s.runner, of)
	if err != nil {
		return nil, err // a nil program in the interface would not be none
	}
	return p, nil
}

// Close implements [mcp.Process].
func (p *program) Close() error { return errors.Join(p.PipeReader.Close(), p.PipeWriter.Close()) }

// Wait implements [mcp.Process].
func (p *program) Wait() error {
	<-p.ended
	return p.err
}

// Kill implements [mcp.Process].
func (p *program) Kill() { p.kill(centurion.ErrCancelled) }

// lastLines keeps the end of what a server writes to its standard error.
type lastLines struct {
	mu   sync.Mutex
	text []byte
}

// maxLast is how much of it is kept, in bytes.
const maxLast = 1000

func (l *lastLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	if over := len(l.text) - maxLast; over > 0 {
		l.text = slices.Delete(l.text, 0, over)
	}
	return len(b), nil
}

// String returns it, with what separates it from a sentence.
func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if said := strings.TrimSpace(string(l.text)); said != "" {
		return ": " + said
	}
	return ""
}
