// Package mcp is a client of MCP servers: it connects them in the background, lists what they have, and calls them. It starts no
// process itself, decides no permission, and knows nothing of missions. Nothing here waits for a server without a limit, and a broken
// server costs its own tools only.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/guard/peer"
)

// The limits of waiting for a server.
const (
	DefaultTimeout = 30 * time.Second // for connecting and for each list: npx fetches many a server at its first start
	CallTimeout    = 10 * time.Minute // for a call
)

// The outcome of a call without an answer; [errors.Is] finds them in the errors of [Clients.Call].
var (
	// ErrNotBegun: the server did not get the call, or did not take it. It may be repeated.
	ErrNotBegun = errors.New("the call has not begun")
	// ErrMayHaveRun: the server got the call, and its outcome is unknown. Calls of tools that only read never have it.
	ErrMayHaveRun = errors.New("the call may have run")
)

// Server is a server as an entry of OpenCode's `mcp` key describes it, with a Command (local) or a URL (remote).
type Server struct {
	Name        string // the entry's key
	Command     []string
	Cwd         string // of the command; empty is the project's directory
	Environment map[string]string
	URL         string // of streamable HTTP
	Headers     map[string]string
	Disabled    bool
	Timeout     time.Duration // instead of DefaultTimeout, and of CallTimeout if it is longer
	Trusted     bool          // its word counts that a tool only reads; no entry says so, the caller does
}

// Process is a started server.
type Process = peer.Process

// State is the state of a server.
type State string

// The states of a server.
const (
	Connecting State = "connecting" // for the first time, or again
	Ready      State = "ready"
	Failed     State = "failed" // it is tried again at the next need
	Disabled   State = "disabled"
)

// Status is what is known of a server.
type Status struct {
	Server string
	State  State
	Err    error // why it is not Ready; of KindAuth if it needs a token; nil if nothing has failed yet
}

// Options are what the servers of a project have in common.
type Options struct {
	// Start starts the process of a server with a Command, confined as any child. ctx limits the start, not the process.
	Start   func(ctx context.Context, s Server) (Process, error)
	HTTP    http.RoundTripper // for the others; nil is one of its own
	Root    string            // the project's directory, which servers may ask for
	Below   string            // the directory below which callers may work, likewise; "" for none
	Version string            // of this program
	// HeadStart is how long a server is not started for which nobody waits: many processes take the processor from who opens them.
	HeadStart time.Duration
	Log       *slog.Logger // gets what servers log, at debug level; nil drops it
}

// Listing is what the servers have at one moment.
type Listing struct {
	Tools     []Tool // by name
	Prompts   []Prompt
	Resources []Resource
	Servers   []Status // as configured
	Err       error    // clashes of names, each with both tools; neither of them is in Tools
}

// Clients are the connections with the servers of a project.
type Clients struct {
	all   []*client
	group guard.Group
	end   context.CancelCauseFunc
	idle  func() // closes idle HTTP connections
}

// Open begins to connect the servers and returns at once. The caller closes what it returns.
func Open(servers []Server, o Options) *Clients {
	ctx, end := context.WithCancelCause(context.Background())
	cs := &Clients{end: end, idle: func() {}}
	if o.HTTP == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		o.HTTP, cs.idle = t, t.CloseIdleConnections
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	for _, s := range servers {
		c := newClient(s, &o)
		cs.all = append(cs.all, c)
		if !s.Disabled {
			cs.group.Go("MCP server "+s.Name, func() error { return c.run(ctx) })
		}
	}
	return cs
}

// Close ends all connections and processes, and waits for them. Calls under way fail.
func (cs *Clients) Close() error {
	cs.end(centurion.ErrShutdown)
	err := cs.group.Wait()
	cs.idle()
	return err
}

// Tools returns what there is now, without waiting. It is a need: servers that have failed are tried again in the background.
func (cs *Clients) Tools() Listing {
	var out Listing
	byName := map[string][]Tool{}
	for _, c := range cs.all {
		status, l := c.now()
		c.wake()
		out.Servers = append(out.Servers, status)
		out.Prompts, out.Resources = append(out.Prompts, l.Prompts...), append(out.Resources, l.Resources...)
		for _, t := range l.Tools {
			byName[t.Name] = append(byName[t.Name], t)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		same := byName[name]
		if len(same) == 1 {
			out.Tools = append(out.Tools, same[0])
			continue
		}
		out.Err = errors.Join(out.Err, &centurion.Error{Op: "mcp", Kind: centurion.KindConflict, Hint: "rename one of the servers in the configuration",
			Msg: fmt.Sprintf("%q of %s and %q of %s would both be called %s", same[0].Remote, same[0].Server, same[1].Remote, same[1].Server, name)})
	}
	return out
}

// Notices returns what a person should know and was not told yet: tools that were left out, requests that were refused.
func (cs *Clients) Notices() (out []string) {
	for _, c := range cs.all {
		out = append(out, c.untold()...)
	}
	return out
}

// Settle waits until each server was connected or has failed once. Only a person who looks at a list needs it.
func (cs *Clients) Settle(ctx context.Context) error {
	for _, c := range cs.all {
		if _, err := c.settle(ctx, true); err != nil {
			return err
		}
	}
	return nil
}
