package host

import (
	"context"
	"iter"
	"net"
	"os"
	"slices"
	"strings"

	"centurion"
	"centurion/acp"
	"centurion/config"
	"centurion/orchestrator"
	"centurion/provider"
	"centurion/redact"
	"centurion/sandbox"
)

// outside returns what stands for the model of an agent that is another program.
func (s *Models) outside(name string) (m orchestrator.Model, err error) {
	all := s.Config.Outside()
	i := slices.IndexFunc(all, func(o config.Outside) bool { return o.Name == name })
	if i < 0 {
		return m, &centurion.Error{Op: "find agent", Kind: centurion.KindConfig, Msg: "no agent." + name + ".acp is configured any more",
			Hint: "define it again in centurion.json, and trust that file if it is the project's: centurion trust"}
	}
	o := all[i]
	var env []string
	for _, name := range o.Env {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	s.keys.Add(redact.Environment(env)...)
	out := &acp.Program{Name: name, Command: strings.Join(o.Command, " "), Version: s.version, Stable: s.Config.Own.StableFor}
	out.Start = func(ctx context.Context, at centurion.Place) (acp.Process, error) {
		return startOutside(ctx, s.runner, o, env, at)
	}
	return orchestrator.Model{Ref: centurion.ModelRef{Provider: config.OutsideProvider, ID: name}, Client: noModel{}, Outside: out}, nil
}

// noModel stands where an agent that is another program has no model of ours.
type noModel struct{}

// Stream implements [session.Model].
func (noModel) Stream(context.Context, provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		yield(provider.Delta{}, &centurion.Error{Kind: centurion.KindUsage, Msg: "an agent that is another program makes its own requests, and shortens its conversations itself"})
	}
}

// startOutside starts an agent in a session's checkout, confined like the session's commands, with what its definition grants.
func startOutside(ctx context.Context, run *sandbox.Runner, o config.Outside, env []string, at centurion.Place) (acp.Process, error) {
	if run == nil {
		return nil, &centurion.Error{Op: "start agent " + o.Name, Kind: centurion.KindInternal, Msg: "only the host of a project starts agents"}
	}
	c := centurion.Command{Dir: at.Dir, Workspace: at.Workspace, Env: env}
	for _, dir := range o.Dirs {
		if info, err := os.Stat(dir); err == nil && info.IsDir() { // without a login there is none
			c.Dirs = append(c.Dirs, dir)
		}
	}
	if c.Network = slices.Contains(o.Hosts, "*"); !c.Network && len(o.Hosts) > 0 {
		c.Connect = connectOutside(o)
	}
	p, err := open(ctx, run, "agent "+o.Name, o.Command, c)
	if err != nil {
		return nil, err // a nil program in the interface would not be none
	}
	return p, nil
}

// connectOutside connects an agent to the hosts that its definition names.
func connectOutside(o config.Outside) centurion.Dial {
	return func(ctx context.Context, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil || !slices.Contains(o.Hosts, strings.ToLower(host)) {
			return nil, &centurion.Error{Op: "connect to " + address, Kind: centurion.KindPermission, Msg: "the definition of the agent " + o.Name + " does not name that host"}
		}
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
}
