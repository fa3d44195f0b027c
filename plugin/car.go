package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/text"
)

const (
	restarts  = 3
	steady    = 10 * time.Minute // a process that lives this long makes up for earlier ends
	disposing = 2 * time.Second
	maxSchema = 64 << 10 // bytes of a tool's schema; each conversation that holds the tool pays for it in each request
)

// hooks are those that have a meaning here. Other keys of what a plugin returns are ignored, as in OpenCode: helpers that are
// exported beside a plugin return anything.
var hooks = []string{"config", "event", "chat.message", "chat.params", "chat.headers", "permission.ask", "command.execute.before", "tool.execute.before",
	"tool.execute.after", "shell.env", "tool.definition", "experimental.chat.messages.transform", "experimental.chat.system.transform",
	"experimental.session.compacting", "experimental.text.complete", "dispose"}

// toolName is what providers accept.
var toolName = centurion.Pattern(`^[a-zA-Z0-9_-]{1,64}$`)

var errEnded = errors.New("its process ended")

// car is a process with the plugins that it runs.
type car struct {
	*lines
	h       *Host
	members []*plug
	group   guard.Group
	fetches fetches

	mu       sync.Mutex // protects what follows
	n        int
	pending  map[int]*request
	begins   *request // the one that was announced last: code of a plugin that runs until it waits for something
	limit    int      // requests after it are above suspicion; 0 is no limit
	blamed   *plug    // known to be the cause of the end
	suspects []*plug  // at the end
}

// request is what has no answer yet. One that nobody waits for stays pending, since it may be what hangs.
type request struct {
	id   int
	do   string
	plug *plug         // nil: for the process itself
	got  chan answer   // the end; has room
	part func(*answer) // gets what comes before; must not block; may be nil
}

// keep keeps a process for plugins running until ctx ends or they have failed too often. When it ends, those that may have caused
// that get processes of their own, so that the next end has one cause.
func (h *Host) keep(ctx context.Context, members []*plug) error {
	for {
		if members = h.unchanged(members); len(members) == 0 {
			return nil
		}
		began := time.Now()
		suspects, started, err := h.live(ctx, members)
		if ctx.Err() != nil {
			return nil
		}
		if len(members) == 1 || !started {
			if !h.again(ctx, members, began, err) {
				return nil
			}
			continue
		}
		if len(suspects) == 0 {
			suspects = members
		}
		for _, p := range suspects {
			h.group.Go("plugin "+p.name, func() error {
				if alone := []*plug{p}; h.again(ctx, alone, began, err) {
					return h.keep(ctx, alone)
				}
				return nil
			})
		}
		members = slices.DeleteFunc(slices.Clone(members), func(p *plug) bool { return slices.Contains(suspects, p) })
	}
}

// unchanged returns the plugins whose files are as they were trusted. The others are off.
func (h *Host) unchanged(members []*plug) []*plug {
	return slices.DeleteFunc(slices.Clone(members), func(p *plug) bool {
		err := p.source.changed()
		if err != nil {
			h.change(func() { p.state, p.err = Failed, err })
		}
		return err != nil
	})
}

// again waits before the next start, or says that there is none.
func (h *Host) again(ctx context.Context, members []*plug, began time.Time, err error) bool {
	var wait time.Duration
	h.change(func() {
		for _, p := range members {
			if p.fail(err); time.Since(began) >= steady {
				p.recent = 0
			}
			if p.recent++; p.recent > restarts {
				p.state, p.err = Failed, p.wrong(centurion.KindCrashed, "is off: %v, after %s", err, centurion.Count(restarts, "restart"))
				continue
			}
			p.state, p.restarts = Restarting, p.restarts+1
			wait = max(wait, h.o.Backoff<<(p.recent-1))
		}
	})
	return wait > 0 && guard.Sleep(ctx, wait) == nil
}

// live starts a process and returns when it has ended: why, who may have caused it, and whether it had started.
func (h *Host) live(ctx context.Context, members []*plug) (suspects []*plug, started bool, err error) {
	start, cancel := context.WithTimeout(ctx, h.o.InitLimit)
	proc, err := h.o.Start(start, h.command(members))
	cancel()
	if err != nil {
		return nil, false, err
	}
	c := &car{h: h, members: members, pending: map[int]*request{}}
	c.fetches.open = map[int]*fetching{}
	c.fetches.ctx, c.fetches.end = context.WithCancel(context.Background())
	c.lines = newLines(proc, &c.group, func() {
		c.suspects = c.suspected()
		c.fetches.end()
	})
	var exit error
	c.group.Go("wait for a plugin", func() error {
		exit = proc.Wait()
		time.AfterFunc(time.Second, func() { c.Close(io.EOF) }) // should somebody else hold its output
		return nil
	})
	c.group.Go("watch a plugin", func() error { c.beat(); return nil })
	c.group.Go("dispose of plugins", func() error { c.dispose(ctx); return nil })
	for _, p := range members {
		if r, err := c.request(p, "init", c.h.initParams(&p.source), nil); err == nil { // else its process has ended
			c.group.Go("begin a plugin", func() error { c.begin(p, r); return nil })
		}
	}
	for err == nil {
		var a answer
		if a, err = c.next(); err == nil {
			err = c.deliver(&a)
		}
	}
	c.Close(err)
	proc.Kill()
	_ = c.group.Wait()
	h.change(func() {
		for _, p := range members {
			if p.car, p.events = nil, nil; p.state != Failed || ctx.Err() == nil {
				p.state = Restarting
			}
		}
	})
	return c.suspects, true, cmp.Or(c.why(), exit, errEnded)
}

// suspected returns the plugins that may have caused the end: the one that is known, else those with requests.
func (c *car) suspected() (out []*plug) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blamed != nil {
		return []*plug{c.blamed}
	}
	if c.begins != nil && c.pending[c.begins.id] != nil {
		return []*plug{c.begins.plug}
	}
	for _, p := range c.members {
		for _, r := range c.pending {
			if r.plug == p && (c.limit == 0 || r.id < c.limit) && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// request sends a request.
func (c *car) request(p *plug, do string, params any, part func(*answer)) (*request, error) {
	r := &request{do: do, plug: p, got: make(chan answer, 1), part: part}
	m := message{Do: do, Params: params}
	if p != nil {
		m.Plugin = p.name
	}
	c.mu.Lock()
	c.n++
	r.id, m.ID = c.n, c.n
	c.pending[r.id] = r
	c.mu.Unlock()
	sent, err := c.send(m)
	if sent {
		return r, nil
	}
	c.mu.Lock()
	delete(c.pending, r.id)
	c.mu.Unlock()
	return nil, cmp.Or(err, errors.New("it does not read its input, or its process has ended"))
}

// wait waits for the end of a request.
func (c *car) wait(ctx context.Context, r *request) (answer, error) {
	select {
	case a := <-r.got:
		return a, nil
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	case <-c.Done:
	}
	select {
	case a := <-r.got:
		return a, nil
	default:
		return answer{}, cmp.Or(c.why(), errEnded)
	}
}

// deliver passes an answer to the request that it belongs to.
func (c *car) deliver(a *answer) error {
	switch {
	case a.Fetch != nil:
		return c.fetch(a)
	case a.ID == 0:
		c.fault(a)
		return nil
	}
	c.mu.Lock()
	r := c.pending[a.ID]
	ends := a.Result != nil || a.Error != nil
	if r != nil && !ends && (r.do == "init" || r.do == "events") {
		c.begins = r
	}
	if ends {
		delete(c.pending, a.ID)
	}
	c.mu.Unlock()
	switch {
	case r == nil:
		return c.skip(fmt.Appendf(nil, "an answer to request %d", a.ID)) // again, or to none
	case ends:
		r.got <- *a
	case r.part != nil:
		r.part(a)
	}
	return nil
}

// fault notes what went wrong in a plugin outside of any request.
func (c *car) fault(a *answer) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	for _, p := range c.members {
		if p.name == a.Plugin || len(c.members) == 1 {
			p.fail(p.wrong(centurion.KindInternal, "failed on its own: %s", text.Clean(centurion.Clip(a.Fault, 500))))
		}
	}
}

// beat ends the process when it does not answer.
func (c *car) beat() {
	tick := time.NewTicker(c.h.o.Silence / 2)
	defer tick.Stop()
	for {
		select {
		case <-c.Done:
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), c.h.o.Silence)
		r, err := c.request(nil, "ping", nil, nil)
		if err == nil {
			_, err = c.wait(ctx, r)
		}
		cancel()
		if err != nil {
			c.mu.Lock()
			if r != nil {
				c.limit = r.id
			}
			c.mu.Unlock()
			c.Close(fmt.Errorf("it did not answer for %s", text.Took(c.h.o.Silence)))
			return
		}
	}
}

// dispose lets the plugins end what they have begun, and ends the process, when ctx ends.
func (c *car) dispose(ctx context.Context) {
	select {
	case <-c.Done:
		return
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), disposing)
	defer cancel()
	var all []*request
	for _, p := range c.members {
		if c.h.carOf(p) != c {
			continue
		}
		if r, err := c.request(p, "dispose", nil, nil); err == nil {
			all = append(all, r)
		}
	}
	for _, r := range all {
		_, _ = c.wait(ctx, r)
	}
	c.h.change(func() {
		for _, p := range c.members {
			p.state, p.err = Failed, centurion.ErrShutdown
		}
	})
	c.Close(centurion.ErrShutdown)
}

func (h *Host) carOf(p *plug) *car {
	h.mu.Lock()
	defer h.mu.Unlock()
	return p.car
}

// initParams is what a plugin is told at its start.
type initParams struct {
	Protocol  int             `json:"protocol"` // 1
	File      string          `json:"file,omitempty"`
	Kind      Kind            `json:"kind,omitempty"`
	Local     bool            `json:"local,omitempty"` // its file is the project's, and its directory has no modules
	Options   json.RawMessage `json:"options,omitempty"`
	Directory string          `json:"directory"`
	Worktree  string          `json:"worktree"`
	Modules   string          `json:"modules,omitempty"`
	Project   json.RawMessage `json:"project,omitempty"`
	Version   string          `json:"version,omitempty"`
	Server    string          `json:"server"`
}

func (h *Host) initParams(s *Source) initParams {
	o := &h.o
	return initParams{Protocol: 1, File: s.File, Kind: s.Kind, Local: s.Local, Options: s.Options, Directory: o.Directory, Worktree: o.Worktree,
		Modules: o.Modules, Project: o.Project, Version: o.Version, Server: "http://" + ServerHost}
}

// begin waits until a plugin has begun. One that takes too long has failed until it answers.
func (c *car) begin(p *plug, r *request) {
	o, h, began := &c.h.o, c.h, time.Now()
	late := time.AfterFunc(o.InitLimit, func() {
		h.change(func() {
			if p.state != Ready {
				p.state, p.err = Failed, p.wrong(centurion.KindTimeout, "did not begin within %s", text.Took(o.InitLimit))
			}
		})
	})
	defer late.Stop()
	a, err := c.wait(context.Background(), r)
	if err != nil {
		return // its process has ended: see keep
	}
	h.change(func() {
		p.init = time.Since(began)
		if a.Error != nil {
			p.state, p.f.Failures, p.err = Failed, p.f.Failures+1, p.wrong(centurion.KindConfig, "does not load: %s", text.Clean(centurion.Clip(*a.Error, 1000)))
			if missing().MatchString(*a.Error) {
				p.err.(*centurion.Error).Hint = hintAdd
			}
		} else if err := p.take(a.Result); err != nil {
			p.state, p.f.Failures, p.err = Failed, p.f.Failures+1, err
		} else if !guard.Closed(c.Done) {
			if p.state == Failed {
				p.err = nil // it was late
			}
			p.state, p.car, p.timeouts = Ready, c, 0
		}
	})
}

// missing is how Bun says that a module is not there.
var missing = centurion.Pattern(`Cannot find (module|package)`)

// take reads what a plugin has. The lock is held.
func (p *plug) take(result json.RawMessage) error {
	var r struct {
		Version string                   `json:"version"`
		Hooks   []string                 `json:"hooks"`
		Tools   []centurion.ExternalTool `json:"tools"`
		Notes   []string                 `json:"notes"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return p.wrong(centurion.KindConfig, "says nothing usable of itself: %v", err)
	}
	p.version, p.hooks, p.tools = cmp.Or(p.version, text.Clean(centurion.Clip(r.Version, 50))), nil, nil
	for _, name := range hooks {
		if slices.Contains(r.Hooks, name) {
			p.hooks = append(p.hooks, name)
		}
	}
	for _, t := range r.Tools {
		var schema struct{ Type string }
		err := json.Unmarshal(t.Schema, &schema)
		switch {
		case !toolName().MatchString(t.Name):
			p.note(fmt.Sprintf("its tool %.100q was left out: providers refuse the name", t.Name))
		case err != nil || schema.Type != "object" || len(t.Schema) > maxSchema:
			p.note(fmt.Sprintf("its tool %s was left out: its schema is no object, or has more than %s", t.Name, centurion.Bytes(maxSchema)))
		case slices.ContainsFunc(p.tools, func(o centurion.ExternalTool) bool { return o.Name == t.Name }):
			p.note(fmt.Sprintf("it has two tools %s; the first is used", t.Name))
		default:
			t.Description, t.ReadOnly = text.CleanText(centurion.Clip(t.Description, 16<<10)), false
			var said any
			if json.Unmarshal(t.Schema, &said) == nil && text.CleanSchema(said) { // else it stays as it came, the order of its keys included
				t.Schema, _ = json.Marshal(said)
			}
			p.tools = append(p.tools, t)
		}
	}
	for _, s := range r.Notes {
		p.note(s)
	}
	return nil
}
