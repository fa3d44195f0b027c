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
)

// program is the process of a server.
type program struct {
	*io.PipeReader // what it writes
	*io.PipeWriter // what it reads
	kill           context.CancelCauseFunc
	ended          chan struct{}
	err            error // once it has ended
}

// start starts a server, confined like a command of an agent, with the network. It may write in a directory of its own and in temporary
// ones, and read the project.
func (s *Servers) start(ctx context.Context, one mcp.Server) (mcp.Process, error) {
	dir := filepath.Join(s.state, fileName(one))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, StateError(dir, err)
	}
	words := make([]string, len(one.Command))
	for i, w := range one.Command {
		quoted, err := syntax.Quote(w, syntax.LangPOSIX)
		if err != nil {
			return nil, &centurion.Error{Op: "mcp." + one.Name, Kind: centurion.KindConfig, Msg: fmt.Sprintf("%q cannot be part of a command", w), Err: err}
		}
		words[i] = quoted
	}
	c := centurion.Command{Script: "exec " + strings.Join(words, " "), Dir: s.options.Root, Workspace: dir, Network: true, Timeout: centurion.NoTimeout}
	if one.Cwd != "" {
		c.Dir = filepath.Join(s.options.Root, filepath.FromSlash(one.Cwd))
		if filepath.IsAbs(one.Cwd) {
			c.Dir = one.Cwd
		}
	}
	for name, value := range one.Environment {
		c.Env = append(c.Env, name+"="+value)
	}
	p := &program{ended: make(chan struct{})}
	var life context.Context
	life, p.kill = context.WithCancelCause(context.Background())
	var stdout *io.PipeWriter
	p.PipeReader, stdout = io.Pipe()
	c.Input, p.PipeWriter = io.Pipe()
	said := &lastLines{}
	c.Errors = said
	begun := make(chan struct{})
	var group guard.Group
	group.Go("MCP server "+one.Name, func() error {
		defer close(p.ended)
		res, err := s.runner.RunBackground(life, c, stdout, func(int) { close(begun) })
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
