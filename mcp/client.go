package mcp

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"centurion"
	"centurion/guard"
)

const (
	attempts  = 4                // connections that may fail, one after the other, before a server waits for the next need
	firstWait = time.Second      // after the first of them; it doubles
	pause     = 10 * time.Second // before a failed server is tried at the next need
	steady    = time.Minute      // a connection that lasts this long makes up for earlier failures
	maxNotes  = 50               // notices of one server
)

// client owns the connection with one server.
type client struct {
	server  Server
	o       *Options
	need    chan struct{}
	stale   chan struct{} // the server says that a list has changed
	begin   chan struct{} // closed by the first who waits for the server
	once    sync.Once     // closes it
	modern  bool          // the server refused the handshake of 2025: speak the protocol of 2026
	mu      sync.Mutex
	status  Status
	lists   Listing
	link    *link         // while Ready
	resting bool          // Failed, and the next need begins a connection
	changed chan struct{} // closed and replaced when the state changes
	notes   []string
	told    int // how many of the notes
}

// link is one connection.
type link struct {
	session *sdk.ClientSession
	life    context.Context // of its calls
	http    bool
}

func newClient(s Server, o *Options) *client {
	c := &client{server: s, o: o, need: make(chan struct{}, 1), stale: make(chan struct{}, 1), begin: make(chan struct{}), changed: make(chan struct{}),
		status: Status{Server: s.Name, State: Connecting}}
	if s.Disabled {
		c.status.State = Disabled
	}
	return c
}

// run keeps the server connected until ctx ends.
func (c *client) run(ctx context.Context) error {
	defer c.set(Failed, centurion.ErrShutdown)
	if c.o.HeadStart > 0 {
		select {
		case <-c.begin:
		case <-time.After(c.o.HeadStart):
		case <-ctx.Done():
		}
	}
	for failures := 1; ctx.Err() == nil; failures++ {
		lasted, err := c.live(ctx)
		if lasted >= steady {
			failures = 1
		}
		if kind := centurion.KindOf(err); failures < attempts && kind != centurion.KindAuth && kind != centurion.KindConfig {
			c.set(Connecting, err)
			_ = guard.Sleep(ctx, firstWait<<(failures-1)) // the loop looks at ctx
			continue
		}
		c.set(Failed, err)
		if guard.Sleep(ctx, pause) == nil {
			c.rest()
			select {
			case <-ctx.Done():
			case <-c.need:
			}
		}
	}
	return nil
}

// set changes the state and wakes those who wait for it.
func (c *client) set(s State, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.State, c.status.Err, c.resting = s, err, false
	if s != Ready {
		c.link = nil
	}
	if s == Failed {
		c.lists = Listing{}
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// rest lets the next need begin a connection.
func (c *client) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resting = true
}

// wake is a need: it begins a connection if the server failed some time ago.
func (c *client) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resting {
		c.resting, c.status.State = false, Connecting
		c.need <- struct{}{} // has room: it is sent once for each rest
	}
}

func (c *client) now() (Status, Listing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status, c.lists
}

// settle waits while the server is connecting, and returns its connection, or nil without one.
func (c *client) settle(ctx context.Context, once bool) (*link, error) {
	c.once.Do(func() { close(c.begin) })
	for {
		c.mu.Lock()
		state, failed, l, changed := c.status.State, c.status.Err != nil, c.link, c.changed
		c.mu.Unlock()
		if state != Connecting || once && failed {
			return l, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// connected returns the connection for a call, which is a need.
func (c *client) connected(ctx context.Context) (*link, error) {
	c.wake()
	limited, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	l, err := c.settle(limited, false)
	if l != nil {
		return l, nil
	}
	status, _ := c.now()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case status.Err != nil:
		err = status.Err
	case err == nil:
		err = fmt.Errorf("it is %s", status.State)
	}
	return nil, c.wrong(err)
}

func (c *client) timeout() time.Duration {
	if c.server.Timeout > 0 {
		return c.server.Timeout
	}
	return DefaultTimeout
}

// note keeps something that a person should know, once.
func (c *client) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := fmt.Sprintf("MCP server %s: %s", c.server.Name, fmt.Sprintf(format, args...))
	if len(c.notes) < maxNotes && !slices.Contains(c.notes, s) {
		c.notes = append(c.notes, s)
	}
}

func (c *client) untold() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Clone(c.notes[c.told:])
	c.told = len(c.notes)
	return out
}
