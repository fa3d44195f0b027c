package pulse

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"centurion"
	"centurion/provider"
	"centurion/session"
	"centurion/tools"
)

// callLimit is the time limit of tools without one of their own. It is the longest that a shell command may request.
const callLimit = 10 * time.Minute

// call registers a starting tool call with a time limit, 0 for none.
func (p *Pulse) call(name string, limit time.Duration) (c *callPulse, done func()) {
	c = &callPulse{}
	if limit > 0 {
		c.limit = time.Now().Add(limit)
	}
	p.at("a call of " + name)
	p.mu.Lock()
	p.calls[c]++
	p.mu.Unlock()
	return c, func() {
		p.mu.Lock()
		delete(p.calls, c)
		p.mu.Unlock()
		p.Beat()
	}
}

// Start registers something that an agent from outside does, with the limit of a call, which begins again with each more. done ends it.
func (p *Pulse) Start(what string) (more, done func()) {
	c, done := p.call(what, callLimit)
	return func() { p.limit(c, callLimit) }, done
}

// Prompted marks that an agent from outside takes a turn. Silence is a sign of a hang unless one of its calls runs.
func (p *Pulse) Prompted() (over func()) {
	p.at("a turn of the agent")
	p.count(&p.asking, 1)
	return func() { p.count(&p.asking, -1) }
}

// limit gives a running call a new limit from now on, 0 for none.
func (p *Pulse) limit(c *callPulse, d time.Duration) {
	p.Beat()
	p.mu.Lock()
	defer p.mu.Unlock()
	c.limit = time.Time{}
	if d > 0 {
		c.limit = time.Now().Add(d)
	}
}

// Heard returns the model, with its answers reported as signs of life.
func (p *Pulse) Heard(m session.Model) session.Model { return heard{m, p} }

type heard struct {
	session.Model
	p *Pulse
}

func (h heard) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		h.p.at("a request to the model")
		h.p.count(&h.p.asking, 1)
		defer h.p.count(&h.p.asking, -1)
		req.Alive = h.p.Beat // a provider that only sends keep-alives may be silent up to the client's limit
		for d, err := range h.Model.Stream(ctx, req) {
			if d.Type == provider.Waiting && d.Wait != nil {
				h.p.ahead(d.Wait.For)
			} else {
				h.p.Beat()
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// Run runs a tool and tracks it. A shell command has its given limit, counted from its actual start. A hosted tool, which only changes
// the host's state, has none: the agents it waits for are audited, too.
func (p *Pulse) Run(ctx context.Context, t tools.Tool, c *tools.Call, input json.RawMessage, hosted bool) (tools.Result, error) {
	limit := callLimit
	if hosted {
		limit = 0
	}
	running, done := p.call(t.Name(), limit)
	defer done()
	own := *c
	if own.Progress != nil {
		own.Progress = func(line string) {
			p.Beat()
			c.Progress(line)
		}
	}
	if own.Runner != nil {
		own.Runner = timed{own.Runner, p, running}
	}
	return t.Run(ctx, &own, input)
}

// timed is a runner that passes a command's time limit to the pulse.
type timed struct {
	centurion.Runner
	p    *Pulse
	call *callPulse
}

func (r timed) Run(ctx context.Context, c centurion.Command) (centurion.CommandResult, error) {
	r.p.limit(r.call, 0)
	begun := r.p.Queue() // it may wait for other commands to end
	defer begun()        // also if the command never ran
	c.Begun = func() {
		begun()
		r.p.limit(r.call, c.Timeout)
	}
	return r.Runner.Run(ctx, c)
}
