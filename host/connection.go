package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"sync"
	"time"

	"centurion"
	"centurion/config"
	"centurion/guard"
	"centurion/orchestrator/mail"
	"centurion/sandbox"
	"centurion/sandbox/confine"
	"centurion/server"
	"centurion/takeover"
	"centurion/workspace"
)

// Connection connects this process to a project: it is the project's host, or a client of the process that is. When that process ends or
// dies, the connection takes its place or finds the next host; its callers do not notice.
type Connection struct {
	Place
	Workspace *workspace.Workspace
	Config    *config.Config
	Models    *Models
	Options   Options
	Note      func(string) // prints to the person, beside the output

	// Reads says that a host of another version, or one that confines commands less than wanted, is still read: only what would change
	// something is refused. Without it such a host is an error.
	Reads bool

	Except string // a mission that a new host does not resume: the caller resumes it with other limits

	again sync.Mutex // held while the next host is found

	mu     sync.Mutex // protects the fields below
	host   *Host      // nil for a client
	client *server.Client
}

// How long to look for the host of a project. A new process must soon say who owns the project; one whose mission runs there waits
// while one host takes over from another.
const (
	FirstTimeout = 800 * time.Millisecond
	NextTimeout  = 10 * time.Second
	retryPause   = 20 * time.Millisecond

	// answerTimeout is how long a host may take to identify itself. A stopped one (Ctrl-Z) accepts and never answers.
	answerTimeout = 3 * time.Second
)

// ConnectOrOwn becomes the project's host, or a client of the process that is. A new host resumes the missions that the last one left.
// An error of centurion.KindConflict names a host that does not answer.
func (conn *Connection) ConnectOrOwn(ctx context.Context, patience time.Duration) error {
	for start := time.Now(); ; {
		cfg, models := conn.Config, conn.Current(ctx)
		if models != conn.Models {
			cfg = models.Config
		}
		h, err := Own(ctx, conn.Place, conn.Workspace, models, cfg, conn.Options)
		if err == nil {
			found, err := h.resumeInterrupted(ctx, conn.Except, conn.Note)
			if err != nil {
				return errors.Join(err, h.Close())
			}
			for _, id := range found {
				conn.Note("mission " + id + " was interrupted and continues here")
			}
			conn.set(h, nil)
			return nil
		}
		if !IsHeld(err) {
			return err
		}
		c, info, refused := conn.Connect(ctx)
		if c != nil {
			err := conn.accepts(info)
			if err != nil && conn.Reads {
				conn.Note("only reading: " + err.Error())
				c.OnlyRead(err)
				err = nil
			}
			conn.set(nil, c)
			return err
		}
		if refused != nil {
			return refused
		}
		if time.Since(start) > patience {
			return err
		}
		if err := WaitRetry(ctx); err != nil {
			return err
		}
	}
}

// Current returns the models of the configuration that is in force for what begins now.
func (conn *Connection) Current(ctx context.Context) *Models {
	if conn.Options.Renew == nil {
		return conn.Models
	}
	return conn.Options.Renew.Models(ctx)
}

// accepts refuses a host of another version, and one that confines commands less than this connection wants.
func (conn *Connection) accepts(info server.Info) error {
	if err := sameVersion(info, conn.Options.Version); err != nil || info.Way == "" {
		return err
	}
	least := confine.None
	switch conn.wanted() {
	case "require":
		least = confine.Full
	case "auto":
		least, _ = sandbox.Best()
	}
	if confine.Way(info.Way).Holds(least) {
		return nil
	}
	return &centurion.Error{Op: "host project", Kind: centurion.KindConflict,
		Msg:  fmt.Sprintf("process %d hosts this project and confines commands in the way %s, which is less than %s", info.PID, info.Way, least),
		Hint: fmt.Sprintf("end it with `kill %d` and try again, or agree to that with --sandbox off", info.PID)}
}

// wanted is how the person wants commands confined; "" if that was not said.
func (conn *Connection) wanted() string {
	if conn.Config == nil {
		return ""
	}
	return conn.Config.Own.Sandbox
}

// sameVersion refuses a host of another version: that combination was never tested.
func sameVersion(info server.Info, version string) error {
	if info.Version == version {
		return nil
	}
	return &centurion.Error{Op: "host project", Kind: centurion.KindConflict,
		Msg:  fmt.Sprintf("process %d hosts this project with version %s, and this is version %s", info.PID, info.Version, version),
		Hint: fmt.Sprintf("end it with `kill %d`: `centurion resume` continues its missions here", info.PID)}
}

func (conn *Connection) set(h *Host, c *server.Client) {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	if conn.client != nil {
		conn.client.Close()
	}
	conn.host, conn.client = h, c
}

// Connect returns a client of the process that hosts the project, and its Info, or nil if none answers. The error has
// centurion.KindPermission if the host refuses this process: an agent's command started it.
func (p Place) Connect(ctx context.Context) (*server.Client, server.Info, error) {
	o, err := p.Owner()
	if err != nil {
		return nil, server.Info{}, nil
	}
	c := server.NewClient(o.Socket, p.Token)
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	info, err := c.Info(ctx)
	if err == nil {
		return c, info, nil
	}
	c.Close()
	if centurion.KindOf(err) != centurion.KindPermission {
		err = nil
	}
	return nil, info, err
}

// Neighbour describes the program at the other end of a TCP connection if it may not control the projects; see [sandbox.Neighbour].
func Neighbour(c net.Conn, projects ...*Connection) sandbox.Peer {
	var runners []*sandbox.Runner
	for _, conn := range projects {
		if h := conn.Host(); h != nil {
			runners = append(runners, h.runner)
		}
	}
	return sandbox.Neighbour(c, runners...)
}

// Host returns the host if it is this process, else nil.
func (conn *Connection) Host() *Host {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	return conn.host
}

func (conn *Connection) API() server.API {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	if conn.host != nil {
		return conn.host.api
	}
	return conn.client
}

// Again finds the next host of the project, unless another caller has since calling was. Otherwise one caller would own the project, and
// the next one would make this process its own client.
func (conn *Connection) Again(ctx context.Context, was server.API) error {
	conn.again.Lock()
	defer conn.again.Unlock()
	if conn.API() != was {
		return nil
	}
	return conn.ConnectOrOwn(ctx, NextTimeout)
}

// Call calls the host, and the next one if that one has ended meanwhile: with several short missions each host may end soon.
func Call[T any](ctx context.Context, conn *Connection, f func(server.API) (T, error)) (T, error) {
	for start := time.Now(); ; {
		api := conn.API()
		v, err := f(api)
		if _, client := api.(*server.Client); centurion.KindOf(err) != centurion.KindNetwork || !client || time.Since(start) > NextTimeout {
			return v, err
		}
		if err := conn.Again(ctx, api); err != nil {
			return v, err
		}
	}
}

// Kept reports whether a mission goes on in another process when this connection is closed.
func (conn *Connection) Kept(ctx context.Context, id string) bool {
	h := conn.Host()
	return h == nil || h.hasSuccessor(ctx, id)
}

// Mission returns a mission.
func (conn *Connection) Mission(ctx context.Context, id string) (server.Mission, error) {
	return Call(ctx, conn, func(api server.API) (server.Mission, error) { return api.Mission(ctx, id) })
}

// Answer answers an ask.
func (conn *Connection) Answer(ctx context.Context, id, answer string) error {
	_, err := Call(ctx, conn, func(api server.API) (struct{}, error) { return struct{}{}, api.Answer(ctx, id, answer) })
	return err
}

// Diff returns what a mission or a task has changed.
func (conn *Connection) Diff(ctx context.Context, id string, o takeover.DiffOptions) (takeover.Change, error) {
	return Call(ctx, conn, func(api server.API) (takeover.Change, error) { return api.Diff(ctx, id, o) })
}

// Merge puts a mission's work on the person's branch.
func (conn *Connection) Merge(ctx context.Context, id string, q takeover.MergeRequest) (takeover.MergeReport, error) {
	return Call(ctx, conn, func(api server.API) (takeover.MergeReport, error) { return api.Merge(ctx, id, q) })
}

// Undo undoes a mission's or a task's work.
func (conn *Connection) Undo(ctx context.Context, id string, q takeover.UndoRequest) (takeover.UndoReport, error) {
	return Call(ctx, conn, func(api server.API) (takeover.UndoReport, error) { return api.Undo(ctx, id, q) })
}

// Events yields a mission's events, even across hosts. It ends with an error if the mission has stopped but could not record it.
func (conn *Connection) Events(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		for {
			inner, done := conn.watchRun(ctx, q.Mission)
			api := conn.API()
			for e, err := range api.Events(inner, q) {
				if centurion.KindOf(err) == centurion.KindNetwork {
					break
				}
				if !yield(e, err) || err != nil {
					done()
					return
				}
				q.After = max(q.After, e.Seq)
			}
			done()
			_, client := api.(*server.Client)
			switch {
			case ctx.Err() != nil || !q.Follow:
				return
			case !client:
				if cause := context.Cause(inner); cause != context.Canceled {
					yield(centurion.Event{}, cause)
				}
				return
			}
			if err := conn.Again(ctx, api); err != nil {
				yield(centurion.Event{}, err)
				return
			}
		}
	}
}

// watchRun returns a context that ends with the error of a mission of this process that could not record how it stopped.
func (conn *Connection) watchRun(ctx context.Context, mission string) (inner context.Context, done func()) {
	h := conn.Host()
	if h == nil {
		return ctx, func() {}
	}
	inner, cancel := context.WithCancelCause(ctx)
	var g guard.Group
	h.mu.Lock()
	x := h.all[mission]
	h.mu.Unlock()
	if x != nil {
		g.Go("watch mission", func() error {
			select {
			case <-x.done:
				if x.err != nil {
					cancel(x.err)
				}
			case <-inner.Done():
			}
			return nil
		})
	}
	return inner, func() { cancel(nil); _ = g.Wait() } // it returns nil
}

// pauseTimeout is how long a mission may take to stop after Ctrl-C.
const pauseTimeout = 30 * time.Second

// Pause pauses a mission because this process was told to end.
func (conn *Connection) Pause(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), pauseTimeout)
	defer cancel()
	_, err := Call(ctx, conn, func(api server.API) (struct{}, error) {
		return struct{}{}, api.Pause(ctx, id, centurion.ErrShutdown.Msg)
	})
	if err != nil && centurion.KindOf(err) != centurion.KindConflict { // it has just stopped by itself
		conn.Note("the mission could not be paused: " + err.Error())
	}
}

// Close ends the connection. A background host takes over the detached missions.
func (conn *Connection) Close(ctx context.Context) error {
	h := conn.Host()
	if h == nil {
		conn.set(nil, nil)
		return nil
	}
	if h.hasDetached(ctx) {
		if _, err := conn.startBackground(); err != nil {
			conn.Note("no background host could be started: " + err.Error())
		}
	}
	return h.leave(ctx, conn.Note)
}

// EndIfIdle makes this process take no more work for the project, unless it works on a mission there. It reports whether it did; then the
// connection is to be closed.
func (conn *Connection) EndIfIdle() bool {
	h := conn.Host()
	return h == nil || h.endIfIdle()
}

// Send writes to an agent, even across hosts.
func (conn *Connection) Send(ctx context.Context, p mail.Post) (mail.Posted, error) {
	p.ID = cmp.Or(p.ID, centurion.NewID(centurion.PrefixDelivery)) // the next host is asked to store the same one
	return Call(ctx, conn, func(api server.API) (mail.Posted, error) { return api.Send(ctx, p) })
}

// Abort ends the turn of a session, on any host.
func (conn *Connection) Abort(ctx context.Context, id, reason string) error {
	_, err := Call(ctx, conn, func(api server.API) (struct{}, error) { return struct{}{}, api.Abort(ctx, id, reason) })
	return err
}

// WaitRetry waits before looking for the project's host again. The error is the cause of ctx's end.
func WaitRetry(ctx context.Context) error { return guard.Sleep(ctx, retryPause) }
