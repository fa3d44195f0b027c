package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/guard"
	"centurion/host"
	"centurion/sandbox"
	"centurion/server"
	"centurion/server/opencode"
	v1 "centurion/server/opencode/v1"
	"centurion/server/page"
	"centurion/text"
)

// defaultPort is OpenCode's.
const defaultPort = 4096

func serveCommand(c *cli) *cobra.Command {
	f := &runFlags{}
	o := &serving{cli: c, flags: f, shared: host.NewShared()}
	var level, launcher string
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Serve clients of OpenCode",
		Long: "Serve clients of OpenCode 1.18 (its terminal client, its SDK) and Centurion's own API on this machine, until it is ended.\n" +
			"It prints the address with its token when it answers; a program that has it acts for you. Its missions can be resumed afterwards.\n" +
			"The flags are those of run, for the missions that clients start.",
		Example: "  centurion serve\n  centurion serve --port 0 --dir ../api\n  opencode attach http://127.0.0.1:4096/t/TOKEN",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if launcher != "" {
				return c.installLauncher(launcher)
			}
			f.costSet = cmd.Flags().Changed("max-cost")
			return o.serve(cmd.Context(), cmd.Flags().Changed("port"))
		},
	}
	f.bind(cmd)
	cmd.Flags().StringVar(&o.hostname, "hostname", "127.0.0.1", "the loopback address to listen on")
	cmd.Flags().IntVar(&o.port, "port", defaultPort, "the port; 0 for any free one")
	cmd.Flags().StringVar(&launcher, "install-launcher", "", "only write a program named opencode into `DIR`, by which OpenCode's SDK starts this server")
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

	life     context.Context // ends with the server
	group    guard.Group
	projects pool[*served] // by directory
	shared   *host.Shared  // by their hosts
	site     *page.Site    // set before the server begins
	events   opencode.Hub  // of all projects
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
	s.life, s.projects.open, s.projects.close = ctx, s.openProject, s.closeIdle
	first, done, err := s.project(ctx, "")
	if err != nil {
		return errors.Join(err, l.Close())
	}
	done()
	s.site = s.page(first.conn.Token)
	srv := &http.Server{Handler: server.Guard(first.conn.Token, s.hostname, http.HandlerFunc(s.route)), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return server.WithPeer(ctx, s.neighbour(c)) }}
	s.group.Go("end server", func() error {
		<-ctx.Done()
		return srv.Close()
	})
	s.group.Go("close idle projects", func() error {
		s.projects.tidy(ctx)
		return nil
	})
	if _, err := fmt.Fprintf(s.out, "opencode server listening on http://%s%s%s\n", l.Addr(), server.TokenPath, first.conn.Token); err != nil {
		cancel()
	}
	if err = srv.Serve(l); errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	cancel()
	err = errors.Join(err, s.group.Wait())
	for _, p := range s.projects.end() {
		err = errors.Join(err, p.close(ctx))
	}
	return err
}

// neighbour is the program at the other end of a connection if a command of an open project started it, else the zero Peer.
func (s *serving) neighbour(c net.Conn) sandbox.Peer {
	var open []*host.Connection
	for _, p := range s.projects.opened() {
		open = append(open, p.conn)
	}
	p := host.Neighbour(c, open...)
	if p.Refused != "" {
		s.note(fmt.Sprintf("refused process %d (%s): %s", p.PID, text.Clean(p.Command), p.Refused))
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

// route finds the project of a request. The page is of all that are open.
func (s *serving) route(w http.ResponseWriter, r *http.Request) {
	if s.site.Serves(r) {
		s.site.ServeHTTP(w, r)
		return
	}
	own := strings.HasPrefix(r.URL.Path, server.Prefix+"/") || r.URL.Path == server.Prefix
	p, done, err := s.project(r.Context(), v1.Directory(r))
	if err != nil && own {
		server.Refuse(w, err)
		return
	}
	if err != nil {
		v1.Refuse(w, err)
		return
	}
	defer done()
	if _, err := p.hostChanged(r.Context(), p.conn.API()); err != nil {
		s.note("the host of " + p.conn.Workspace.Dir() + " is gone: " + err.Error()) // the request says so, too
	}
	if own {
		p.own.ServeHTTP(w, r)
		return
	}
	p.opencode.ServeHTTP(w, r)
}

// project is the project at dir, which is opened at its first request, until done is called; "" is the one of the flags.
func (s *serving) project(ctx context.Context, dir string) (p *served, done func(), err error) {
	dir, err = filepath.Abs(cmp.Or(dir, s.flags.dir, "."))
	if err != nil {
		return nil, nil, &centurion.Error{Op: "open project", Kind: centurion.KindUsage, Err: err}
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil { // else opening it says why
		dir = real
	}
	return s.projects.use(ctx, dir)
}
