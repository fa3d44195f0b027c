package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/agents"
	"centurion/guard"
	"centurion/host"
	"centurion/sandbox"
	"centurion/server"
	v1 "centurion/server/opencode/v1"
	"centurion/server/rpc"
	"centurion/text"
)

// defaultPort is OpenCode's.
const defaultPort = 4096

func serveCommand(c *cli) *cobra.Command {
	f := &runFlags{}
	o := &serving{cli: c, flags: f, open: map[string]*served{}}
	var level string
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Serve clients of OpenCode",
		Long: "Serve clients of OpenCode 1.18 (its terminal client, its SDK) and Centurion's own API on this machine, until it is ended.\n" +
			"It prints the address with its token when it answers; a program that has it acts for you. Its missions can be resumed afterwards.\n" +
			"The flags are those of run, for the missions that clients start.",
		Example: "  centurion serve\n  centurion serve --port 0 --dir ../api\n  opencode attach http://127.0.0.1:4096/t/TOKEN",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.costSet = cmd.Flags().Changed("max-cost")
			return o.serve(cmd.Context(), cmd.Flags().Changed("port"))
		},
	}
	f.bind(cmd)
	cmd.Flags().StringVar(&o.hostname, "hostname", "127.0.0.1", "the loopback address to listen on")
	cmd.Flags().IntVar(&o.port, "port", defaultPort, "the port; 0 for any free one")
	cmd.Flags().StringVar(&level, "log-level", "", "for callers that know OpenCode's flag; it changes nothing")
	for _, name := range []string{"format", "detach", "yes", "merge", "log-level"} {
		_ = cmd.Flags().MarkHidden(name)
	}
	return cmd
}

// serving is a server of several projects.
type serving struct {
	*cli
	flags    *runFlags
	hostname string
	port     int

	life  context.Context // ends with the server
	group guard.Group
	mu    sync.Mutex // protects open; held while a project is opened
	open  map[string]*served
}

// served is an open project.
type served struct {
	*frontEnd
	opencode, own http.Handler
}

func (s *serving) serve(ctx context.Context, portGiven bool) error {
	if s.flags.format != "" || s.flags.detach || s.flags.merge {
		return &centurion.Error{Kind: centurion.KindUsage, Msg: "--format, --detach and --merge are no flags of serve", Hint: "see: centurion serve --help"}
	}
	l, err := s.listen(portGiven)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.life = ctx
	first, err := s.project("")
	if err != nil {
		return errors.Join(err, l.Close())
	}
	srv := &http.Server{Handler: server.Guard(first.conn.Token, s.hostname, http.HandlerFunc(s.route)), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return server.WithPeer(ctx, s.neighbour(c)) }}
	s.group.Go("end server", func() error {
		<-ctx.Done()
		return srv.Close()
	})
	if _, err := fmt.Fprintf(s.out, "opencode server listening on http://%s%s%s\n", l.Addr(), server.TokenPath, first.conn.Token); err != nil {
		cancel()
	}
	if err = srv.Serve(l); errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	cancel()
	err = errors.Join(err, s.group.Wait())
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.open {
		err = errors.Join(err, p.conn.Close(ctx), p.conn.Workspace.Close())
	}
	return err
}

// neighbour is the program at the other end of a connection if a command of an open project started it, else the zero Peer.
func (s *serving) neighbour(c net.Conn) (p sandbox.Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, open := range s.open {
		if p = open.conn.Neighbour(c); p.Refused != "" {
			s.note(fmt.Sprintf("refused process %d (%s): %s", p.PID, text.Clean(p.Command), p.Refused))
			break
		}
	}
	return p
}

// listen listens on the port, or on the next free one if it is only the default.
func (s *serving) listen(given bool) (net.Listener, error) {
	ip := net.ParseIP(s.hostname)
	if !strings.EqualFold(s.hostname, "localhost") && (ip == nil || !ip.IsLoopback()) {
		return nil, &centurion.Error{Op: "serve", Kind: centurion.KindUsage, Msg: s.hostname + " is no loopback address, and every program that reaches the server acts for you",
			Hint: "serve on 127.0.0.1, and let another machine in through: ssh -L"}
	}
	for port := s.port; ; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort(s.hostname, strconv.Itoa(port)))
		if err == nil {
			return l, nil
		}
		if given || port >= s.port+100 {
			return nil, &centurion.Error{Op: "serve", Kind: centurion.KindConflict, Err: err, Hint: "give another port with --port, 0 for any free one"}
		}
	}
}

// route finds the project of a request.
func (s *serving) route(w http.ResponseWriter, r *http.Request) {
	p, err := s.project(v1.Directory(r))
	switch {
	case err != nil:
		v1.Refuse(w, err)
	case strings.HasPrefix(r.URL.Path, server.Prefix+"/") || r.URL.Path == server.Prefix:
		p.own.ServeHTTP(w, r)
	default:
		p.opencode.ServeHTTP(w, r)
	}
}

// project is the project at dir, which is opened at its first request; "" is the one of the flags.
func (s *serving) project(dir string) (*served, error) {
	dir = cmp.Or(dir, s.flags.dir, ".")
	if !filepath.IsAbs(dir) {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, &centurion.Error{Op: "open project", Kind: centurion.KindUsage, Err: err}
		}
		dir = abs
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	real, err := filepath.EvalSymlinks(dir)
	if p := s.open[real]; err == nil && p != nil {
		return p, nil
	}
	flags := *s.flags
	flags.dir, flags.format = dir, "json" // there is no terminal to draw on
	given := flags
	run := &runner{s.cli, &flags}
	conn, err := run.prepare(s.life) // a project outlives the request that opens it
	if err != nil {
		return nil, err
	}
	if err = run.confirmDirectory(s.life, conn.Workspace.Dir(), given.yes); err == nil {
		err = conn.ConnectOrOwn(s.life, host.FirstTimeout)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Workspace.Close())
	}
	p := &served{frontEnd: &frontEnd{c: s.cli, conn: conn, given: given, settled: flags}}
	project := p.project()
	s.group.Go("tell clients", func() error {
		if err := project.Run(s.life); s.life.Err() == nil && err != nil {
			s.note("clients of " + conn.Workspace.Dir() + " get no events any more: " + err.Error())
		}
		return nil
	})
	p.opencode = project.Handler()
	p.own = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.Routes(conn.API(), server.Info{PID: os.Getpid(), Version: Version, Directory: conn.Workspace.Dir()}).ServeHTTP(w, r)
	})
	s.open[conn.Workspace.Dir()] = p
	return p, nil
}

// project is the project as the dialect of OpenCode needs it.
func (p *served) project() *v1.Project {
	home, _ := os.UserHomeDir() // it is only shown
	return &v1.Project{Directory: p.conn.Workspace.Dir(), Home: home, State: p.conn.State, Config: filepath.Join(home, ".config", "centurion"), Version: Version,
		API: p.conn.API, Follow: p.follow, Begin: p.beginSession, Catalog: p.catalog, Expand: p.expand, Files: p.conn.Workspace, Note: p.c.note}
}

// beginSession starts a mission with the first message of a session.
func (p *served) beginSession(ctx context.Context, b v1.Begin) (server.Mission, error) {
	opts, err := p.options(ctx, rpc.StartParams{Agent: b.Agent, Model: b.Model, Profile: b.Profile})
	if err != nil {
		return server.Mission{}, err
	}
	opts.Session, opts.Files, opts.ShowPlan = b.Session, b.Files, b.ShowPlan
	return p.conn.API().Start(ctx, b.Goal, opts)
}

// expand makes a message of a command that a client gives.
func (p *served) expand(ctx context.Context, command, arguments string) (v1.Begin, error) {
	mission := false
	for _, one := range slashCommands() {
		mission = mission || one.name == command && one.do == nil
		if one.name == command && one.do != nil {
			return v1.Begin{}, &centurion.Error{Kind: centurion.KindUsage, Msg: "/" + command + " is a command of a terminal", Hint: "run there: centurion " + command}
		}
	}
	f := p.given
	run := &runner{p.c, &f}
	got, err := run.readRequest(ctx, "/"+command+" "+arguments)
	b := v1.Begin{Goal: got.goal, ShowPlan: got.planOnly, Agent: f.agent, Model: f.model}
	if mission {
		b.Profile, b.Agent = agents.ProfileMission, ""
	}
	return b, err
}

// catalog is what clients can choose from: the assistant first, since most of what they send is a question.
func (p *served) catalog(context.Context) (c v1.Catalog, err error) {
	cfg, first := p.conn.Models.Config, p.conn.Models.First.Model
	models := map[string]bool{}
	add := func(m v1.Model) {
		if !models[m.Ref.String()] {
			models[m.Ref.String()] = true
			c.Models = append(c.Models, m)
		}
	}
	listed := cfg.Listed()
	for _, own := range []bool{true, false} { // the default one first
		for _, m := range listed {
			provider, id, _ := strings.Cut(m.Name, "/")
			ref := centurion.ModelRef{Provider: provider, ID: id}
			if (ref.String() == first.String()) != own {
				continue
			}
			one := v1.Model{Ref: ref, Name: m.Title, Provider: m.ProviderTitle, Context: m.Limit.Context, Output: m.Limit.Output, Media: m.Media}
			if m.Price != nil {
				one.Price = *m.Price
			}
			add(one)
		}
		if own {
			add(v1.Model{Ref: centurion.ModelRef{Provider: first.Provider, ID: first.ID}})
		}
	}
	for _, profile := range []string{agents.ProfileAssistant, agents.ProfileMission} {
		cast, err := cfg.Cast(profile)
		if err != nil {
			return c, err
		}
		for _, a := range cast.All() {
			one := v1.Agent{Name: a.Name, Description: a.Description}
			if a.Name == cast.Owner() || a.Mode == "primary" {
				one.Profile = profile
			}
			c.Agents, c.Tools = append(c.Agents, one), append(c.Tools, a.Tools...)
		}
	}
	slices.Sort(c.Tools)
	c.Tools = slices.Compact(c.Tools)
	for _, one := range slashCommands() {
		if one.do == nil {
			c.Commands = append(c.Commands, v1.Command{Name: one.name, Description: one.short, Template: "$ARGUMENTS"})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Commands)) {
		cmd := cfg.Commands[name]
		c.Commands = append(c.Commands, v1.Command{Name: name, Description: cmd.Description, Agent: cmd.Agent, Template: cmd.Template})
	}
	return c, nil
}
