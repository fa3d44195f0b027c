package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/cli/goal"
	"centurion/config"
	"centurion/guard"
	"centurion/host"
	"centurion/server"
	v1 "centurion/server/opencode/v1"
	"centurion/server/rpc"
)

// served is an open project of a server.
type served struct {
	*frontEnd
	opencode, own http.Handler
	stopTelling   func() // its clients of its events; returns when that has ended
}

// connect connects to the project in a directory, for longer than the request that opens it. before is called with it first.
func (s *serving) connect(dir string, before func(*frontEnd)) (*frontEnd, error) {
	flags := *s.flags
	flags.dir, flags.format = dir, "json" // there is no terminal to draw on
	given := flags
	run := &runner{s.cli, &flags}
	conn, err := run.prepare(s.life)
	if err != nil {
		return nil, err
	}
	e := &frontEnd{c: s.cli, conn: conn, given: given}
	before(e)
	conn.Options.Shared, conn.Reads = s.shared, true
	if err = run.confirmDirectory(s.life, conn.Workspace.Dir(), given.yes); err == nil {
		err = conn.ConnectOrOwn(s.life, host.FirstTimeout)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Workspace.Close())
	}
	return e, nil
}

// openProject opens the project in a directory.
func (s *serving) openProject(dir string) (*served, error) {
	var project *v1.Project
	p := &served{}
	e, err := s.connect(dir, func(e *frontEnd) {
		p.frontEnd = e
		project = p.project()
		project.All = &s.events
		front := e.conn.Options.Front
		e.conn.Options.Front = func(p *v1.Project) {
			front(p)
			p.Show = project.Toast
		}
		e.conn.Options.Renew.Warn = project.Warn // a mission that goes on may need it at once
	})
	if err != nil {
		return nil, err
	}
	conn := e.conn
	var telling guard.Group
	ctx, cancel := context.WithCancel(s.life)
	telling.Go("tell clients", func() error {
		if err := project.Run(ctx); ctx.Err() == nil && err != nil {
			s.note("clients of " + conn.Workspace.Dir() + " get no events any more: " + err.Error())
		}
		return nil
	})
	p.stopTelling = func() {
		cancel()
		_ = telling.Wait() // it returns nil
	}
	p.opencode = project.Handler()
	p.own = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.Routes(conn.API(), server.Info{PID: os.Getpid(), Version: Version, Directory: conn.Workspace.Dir()}).ServeHTTP(w, r)
	})
	return p, nil
}

// closeIdle closes a project that no client uses, unless a mission works or an ask waits there.
func (s *serving) closeIdle(p *served) bool {
	ctx, cancel := context.WithTimeout(s.life, host.ReadTimeout)
	defer cancel()
	missions, err := p.conn.API().Missions(ctx)
	if err != nil || slices.ContainsFunc(missions, func(m server.Mission) bool { return m.Status.Alive() || m.Asks > 0 }) || !p.conn.EndIfIdle() {
		return false
	}
	if err := p.close(s.life); err != nil {
		s.note("closing " + p.conn.Workspace.Dir() + ": " + err.Error())
	}
	return true
}

// close closes a project; clients must have left it.
func (p *served) close(ctx context.Context) error {
	p.stopTelling() // or it finds the next host
	return errors.Join(p.conn.Close(ctx), p.conn.Workspace.Close())
}

// project is the project as the dialect of OpenCode needs it.
func (p *served) project() *v1.Project {
	project := &v1.Project{Directory: p.conn.Workspace.Dir(), State: p.conn.State, Version: Version, API: p.conn.API, Follow: p.follow, Begin: p.beginSession,
		Files: p.conn.Workspace, Note: p.c.note}
	p.furnish(project)
	return project
}

// furnish gives a project what can be chosen from.
func (e *frontEnd) furnish(p *v1.Project) {
	home, _ := os.UserHomeDir() // it is only shown
	p.Home, p.Config, p.Catalog, p.Expand = home, filepath.Join(home, ".config", "centurion"), e.catalog, e.expand
}

// forPlugins furnishes the project as its plugins reach it. The missions that they begin have the limits of the person's, but what nobody
// allows or denies is asked, and their work is merged by a person.
func (e *frontEnd) forPlugins(p *v1.Project) {
	quiet := *e.c
	quiet.err = io.Discard // it may be a terminal that is drawn on
	of := &frontEnd{c: &quiet, conn: e.conn, given: e.given}
	of.given.format, of.given.files, of.given.plan = "json", nil, ""
	of.furnish(p)
	p.Begin = func(ctx context.Context, b v1.Begin) (server.Mission, error) {
		opts, err := of.sessionOptions(ctx, b)
		if err != nil {
			return server.Mission{}, err
		}
		if opts.Merge = false; opts.Ask == "allow" {
			opts.Ask = "ask"
		}
		return p.API().Start(ctx, b.Goal, opts)
	}
}

// beginSession starts a mission with the first message of a session.
func (e *frontEnd) beginSession(ctx context.Context, b v1.Begin) (server.Mission, error) {
	opts, err := e.sessionOptions(ctx, b)
	if err != nil {
		return server.Mission{}, err
	}
	return e.conn.API().Start(ctx, b.Goal, opts)
}

func (e *frontEnd) sessionOptions(ctx context.Context, b v1.Begin) (centurion.MissionOptions, error) {
	opts, err := e.options(ctx, rpc.StartParams{Agent: b.Agent, Model: b.Model, Profile: b.Profile})
	opts.Session, opts.Message, opts.Parts, opts.ShowPlan = b.Session, b.Message, b.Parts, b.ShowPlan
	opts.Typed = b.Typed
	opts.PlanFirst = b.ShowPlan // who types /plan expects to be asked before anything is written
	return opts, err
}

// expand makes a message of a command that a client gives.
func (e *frontEnd) expand(ctx context.Context, command, arguments string) (v1.Begin, error) {
	mission := false
	for _, one := range slashCommands() {
		mission = mission || one.name == command && one.do == nil
		if one.name == command && one.do != nil {
			return v1.Begin{}, &centurion.Error{Kind: centurion.KindUsage, Msg: "/" + command + " is a command of a terminal", Hint: "run there: centurion " + command}
		}
	}
	f, cfg := e.given, *e.conn.Current(ctx).Config
	if _, own := cfg.Commands[command]; strings.Contains(command, ":") && !own {
		all, err := e.conn.API().Servers(ctx, false)
		if err != nil {
			return v1.Begin{}, err
		}
		if slices.ContainsFunc(v1.Prompts(all), func(one v1.Command) bool { return one.Name == command }) {
			got, err := e.conn.API().Content(ctx, server.ServerQuery{Prompt: command, Words: goal.SplitArgs(arguments)})
			return v1.Begin{Goal: got.Text, Typed: &centurion.Typed{Command: command, Arguments: arguments}}, err
		}
	}
	run := &runner{e.c, &f}
	got, err := run.readRequest(ctx, "/"+command+" "+arguments, func(string) (*config.Config, error) { return &cfg, nil })
	b := v1.Begin{Goal: got.goal, ShowPlan: got.planOnly, Agent: f.agent, Model: f.model, Typed: got.typed}
	if mission {
		b.Profile, b.Agent = agents.ProfileMission, ""
	}
	return b, err
}

// catalog is what clients can choose from: the assistant first, since most of what they send is a question.
func (e *frontEnd) catalog(ctx context.Context) (c v1.Catalog, err error) {
	now := e.conn.Current(ctx)
	cfg, first := *now.Config, now.First.Model // a copy, which gets notices
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
			c.Tools = append(c.Tools, a.Tools...)
			if !slices.ContainsFunc(c.Agents, func(b v1.Agent) bool { return b.Name == a.Name }) { // a person's own is in both: clients go through the list by name
				c.Agents = append(c.Agents, one)
			}
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
		if slices.ContainsFunc(slashCommands(), func(s slashCommand) bool { return s.name == name }) {
			continue // the built-in one is carried out
		}
		c.Commands = append(c.Commands, v1.Command{Name: name, Description: cmd.Description, Agent: cmd.Agent, Template: cmd.Template})
	}
	return c, nil
}
