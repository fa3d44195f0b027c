package approval

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"

	"centurion"
	"centurion/agents"
	"centurion/permission"
	"centurion/tools"
	"centurion/tools/web"
)

// maxHosts is how many different hosts one command may name: each may ask a person and is stored.
const maxHosts = 20

// connections decides about the connections of one command.
type connections struct {
	decide func(a tools.Access) permission.Decision
	ask    func(ctx context.Context, a tools.Access) error

	mu    sync.Mutex // held while a person is asked, so that a host is asked about once
	known map[string]error
}

// connects returns what makes the connections of a call's command to single hosts, nil if none can be allowed: without a person to ask,
// without their policy and without a rule, a command gets no proxy that it could mistake for the network.
func (d Desk) connects(ctx context.Context, call tools.Call) centurion.Dial {
	if !d.cfg.Confined {
		return nil
	}
	if !permission.NamesHosts(d.cfg.Rules(d.Agent)) {
		rec, err := d.st.Store.Mission(ctx, d.st.ID)
		if err != nil || rec.Options.Ask == "deny" {
			return nil
		}
	}
	call.Decided = nil // its decision is that about the command
	c := connections{decide: func(a tools.Access) permission.Decision { return d.narrowed(a, call.Workspace) },
		ask: func(ctx context.Context, a tools.Access) error {
			asked := call
			return d.Ask(ctx, &asked, a)
		}, known: map[string]error{}}
	return c.dial
}

// CheckConnections returns what makes the connections of an acceptance command: to hosts that a rule allows, without asking. It is nil
// without such a rule.
func (m *Approvals) CheckConnections() centurion.Dial {
	if !m.cfg.Confined || !permission.NamesHosts(m.cfg.Rules(agents.Commander)) {
		return nil
	}
	decide := func(a tools.Access) permission.Decision { return m.Decide(agents.Commander, a) }
	c := connections{decide: decide, ask: func(_ context.Context, a tools.Access) error {
		if d := decide(a); d.Action != permission.Allow {
			return refused(a, d.Reason)
		}
		return nil
	}, known: map[string]error{}}
	return c.dial
}

// dial connects to an address if that is allowed. Private addresses are for those whom a rule of the configuration names in full: an answer
// is about a name, and the name's owner decides where it leads.
func (c *connections) dial(ctx context.Context, address string) (net.Conn, error) {
	name := hostName(address)
	a := tools.Access{Permission: permission.Network, Patterns: []string{name}, Always: []string{name}}
	if err := c.allowed(ctx, name, a); err != nil {
		return nil, err
	}
	by := c.decide(a)
	private := by.Action == permission.Allow && by.Level != always && strings.EqualFold(by.Rule.Pattern, name)
	return web.Dial(ctx, address, private)
}

// allowed asks once about each host.
func (c *connections) allowed(ctx context.Context, name string, a tools.Access) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err, ok := c.known[name]
	switch {
	case ok:
		return err
	case len(c.known) >= maxHosts:
		return refused(a, fmt.Sprintf("one command may name %d hosts", maxHosts))
	}
	err = c.ask(ctx, a)
	if err == nil || centurion.KindOf(err) == centurion.KindPermission {
		c.known[name] = err
	}
	return err
}

// hostName returns an address as rules name it: in lower case, without the usual ports.
func hostName(address string) string {
	host, port, err := net.SplitHostPort(strings.ToLower(address))
	if err != nil || port != "80" && port != "443" {
		return strings.ToLower(address)
	}
	return strings.TrimSuffix(host, ".")
}
