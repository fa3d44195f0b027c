package host

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/mcp"
	"centurion/sandbox"
	"centurion/server"
	"centurion/text"
	"centurion/tools"
	"centurion/trust"
)

// Servers are the MCP servers of a project. They are connected when the first conversation begins that may have a tool of theirs. What each
// offered last is kept in the project's state directory, so that a conversation need not wait for a connection to know its tools.
type Servers struct {
	all     []mcp.Server
	state   string
	options mcp.Options
	runner  *sandbox.Runner

	mu      sync.Mutex // protects what follows
	clients *mcp.Clients
	kept    map[string][]mcp.Tool // by server
}

var _ tools.External = (*Servers)(nil)

// headStart is what the first request of a conversation takes, twice. Its tools are known from the last time.
const headStart = 250 * time.Millisecond

// newServers returns the servers of a project in a directory, whose processes run confines. version is that of this program.
func newServers(all []mcp.Server, p Place, dir string, run *sandbox.Runner, version string) *Servers {
	s := &Servers{all: all, state: filepath.Join(p.State, "mcp"), runner: run, kept: map[string][]mcp.Tool{}}
	s.options = mcp.Options{Start: s.start, Root: dir, Below: p.checkouts(), Version: version, HeadStart: headStart}
	return s
}

// connect begins to connect them, unless that was done.
func (s *Servers) connect() *mcp.Clients {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients == nil {
		for _, one := range s.all {
			s.kept[one.Name] = recall[mcp.Tool](s.memory(one))
		}
		s.clients = mcp.Open(s.all, s.options)
	}
	return s.clients
}

// Close ends the connections and the servers' processes.
func (s *Servers) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients == nil {
		return nil
	}
	return s.clients.Close()
}

// Tools implements [tools.External].
func (s *Servers) Tools() []centurion.ExternalTool {
	if len(s.all) == 0 {
		return nil
	}
	return s.shown(s.known())
}

// shown returns tools as models see them.
func (s *Servers) shown(all []mcp.Tool) []centurion.ExternalTool {
	out := make([]centurion.ExternalTool, 0, len(all))
	for _, t := range all {
		if schema, err := json.Marshal(t.Schema); err == nil {
			out = append(out, centurion.ExternalTool{Name: t.Name, Description: t.Description, Schema: schema, ReadOnly: t.ReadOnly, Away: s.of(t).URL != ""})
		}
	}
	return out
}

// known returns the tools of all servers by name: what those that are ready have, and what the others had last.
func (s *Servers) known() []mcp.Tool {
	now := s.connect().Tools()
	out := now.Tools
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, one := range now.Servers {
		if one.State == mcp.Ready {
			mine := slices.DeleteFunc(slices.Clone(now.Tools), func(t mcp.Tool) bool { return t.Server != one.Server })
			s.kept[one.Server] = remember(s.memory(s.all[i]), s.kept[one.Server], mine)
			continue
		}
		for _, t := range s.kept[one.Server] {
			if one.State != mcp.Disabled && !slices.ContainsFunc(out, func(o mcp.Tool) bool { return o.Name == t.Name }) {
				out = append(out, t)
			}
		}
	}
	slices.SortFunc(out, func(a, b mcp.Tool) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// tool returns a tool that a server has, or had last.
func (s *Servers) tool(name string) (t mcp.Tool, known bool) {
	if len(s.all) == 0 {
		return t, false
	}
	all := s.known()
	i := slices.IndexFunc(all, func(t mcp.Tool) bool { return t.Name == name })
	if i < 0 {
		return t, false
	}
	return all[i], true
}

// of is the server of a tool.
func (s *Servers) of(t mcp.Tool) (of mcp.Server) {
	if i := slices.IndexFunc(s.all, func(one mcp.Server) bool { return one.Name == t.Server }); i >= 0 {
		of = s.all[i]
	}
	return of
}

// grounds are where a server may write.
func (s *Servers) grounds(one mcp.Server) grounds {
	return grounds{filepath.Join(s.state, fileName(one)), []string{s.options.Root, s.options.Below}}
}

// Run implements [tools.External].
func (s *Servers) Run(ctx context.Context, c *tools.Call, name string, input json.RawMessage) (tools.Result, error) {
	t, known := s.tool(name)
	if !known {
		return tools.Result{}, noTool(name)
	}
	one, dir := s.of(t), ""
	if one.URL == "" {
		dir = c.Workspace.Dir()
	}
	var r mcp.Result
	clients := s.connect()
	call := func() (err error) {
		r, err = clients.Call(ctx, t, dir, input)
		return err
	}
	run := func() error { return s.grounds(one).during(s.runner, c, call) }
	if t.ReadOnly || dir == "" {
		run = call
	}
	if err := run(); err != nil {
		return tools.Result{}, err
	}
	files := slices.DeleteFunc(r.Files, func(f centurion.File) bool { return !c.Media.Takes(f.Mime) })
	return tools.Result{Output: r.Text, Title: cmp.Or(t.Title, t.Remote), Attachments: files}, nil
}

// Servers lists the servers with what they offer. With wait it returns when none is connecting any more.
func (s *Servers) Servers(ctx context.Context, wait bool) ([]server.ToolServer, error) {
	out := []server.ToolServer{}
	if len(s.all) == 0 {
		return out, nil
	}
	clients := s.connect()
	if wait {
		if err := clients.Settle(ctx); err != nil {
			return nil, err
		}
	}
	all, now := s.known(), clients.Tools()
	for _, one := range now.Servers {
		mine := slices.DeleteFunc(slices.Clone(all), func(t mcp.Tool) bool { return t.Server != one.Server })
		row := server.ToolServer{Name: one.Server, State: string(one.State), Tools: s.shown(mine)}
		if wait && one.State == mcp.Connecting { // again, after a failure
			row.State = string(mcp.Failed)
		}
		for _, p := range now.Prompts {
			if p.Server == one.Server {
				row.Prompts = append(row.Prompts, server.ServerPrompt{Name: p.Name, Description: p.Description, Arguments: text.Each(p.Arguments, func(a mcp.Argument) string { return a.Name })})
			}
		}
		for _, r := range now.Resources {
			if r.Server == one.Server {
				row.Resources = append(row.Resources, server.ServerResource{URI: r.URI, Name: r.Name, Description: r.Description, Mime: r.Mime})
			}
		}
		if one.Err != nil {
			row.Error, row.Login = one.Err.Error(), centurion.KindOf(one.Err) == centurion.KindAuth
		}
		out = append(out, row)
	}
	return out, nil
}

// Content asks a server for a prompt or a resource.
func (s *Servers) Content(ctx context.Context, q server.ServerQuery) (server.ServerContent, error) {
	var r mcp.Result
	var err error
	if q.Prompt == "" {
		r, err = s.connect().Read(ctx, q.Server, q.URI)
	} else {
		r, err = s.connect().Prompt(ctx, q.Prompt, q.Words)
	}
	return server.ServerContent{Text: r.Text, Files: r.Files}, err
}

// memory is where it is kept what a server has. One whose configuration was changed may have something else.
func (s *Servers) memory(one mcp.Server) memory {
	return memory{filepath.Join(s.state, fileName(one)+".json"), trust.Sum(fmt.Sprintf("%+v", one))}
}

// fileName is a server's name as a file may have it.
func fileName(one mcp.Server) string { return strings.TrimSuffix(mcp.ToolName(one.Name, ""), "_") }

// secrets lists what may hold a key of a server, as NAME=value.
func secrets(one mcp.Server) (all []string) {
	for name, value := range one.Environment {
		all = append(all, name+"="+value)
	}
	for name, value := range one.Headers {
		_, token, found := strings.Cut(value, " ") // Bearer TOKEN
		if !found {
			token = value
		}
		all = append(all, name+"="+token)
	}
	return all
}
