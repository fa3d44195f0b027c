package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"centurion"
	"centurion/agents"
	"centurion/config"
	"centurion/orchestrator"
	"centurion/orchestrator/slots"
	"centurion/permission"
	"centurion/provider"
	"centurion/tui"
)

// ruleLevels turns the configured permissions into the levels for each agent, weakest first.
func ruleLevels(cfg *config.Config) (func(agent string) []permission.Level, error) {
	levels := []permission.Level{{Name: permission.DefaultLevel, Rules: permission.Defaults(false)}}
	for _, l := range cfg.Permission {
		rules, err := permission.ParseRules(l.Raw)
		if err != nil {
			return nil, &centurion.Error{Op: "read permission in " + l.File, Kind: centurion.KindConfig, Err: err, Hint: centurion.HintOf(err)}
		}
		if l.Project {
			cfg.Notices = append(cfg.Notices, ignored(l.File, "permission", permission.Widens(levels, rules))...)
		}
		levels = append(levels, permission.Level{Name: l.File, Rules: rules, Untrusted: l.Project})
	}
	byAgent := map[string][]permission.Level{}
	for name, a := range cfg.Agents {
		if len(a.Permission) == 0 {
			continue
		}
		rules, err := permission.ParseRules(a.Permission)
		if err != nil {
			return nil, &centurion.Error{Op: "read permission of agent " + name + " in " + a.File, Kind: centurion.KindConfig, Err: err, Hint: centurion.HintOf(err)}
		}
		byAgent[name] = append(slices.Clone(levels), permission.Level{Name: "agent " + name, Rules: rules})
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.AgentPermission)) {
		to := name
		if now := agents.Alias(name); now != "" && cfg.Agents[name].Prompt == "" {
			to = now
		}
		if byAgent[to] == nil {
			byAgent[to] = slices.Clone(levels)
		}
		for _, l := range cfg.AgentPermission[name] {
			rules, err := permission.ParseRules(l.Raw)
			if err != nil {
				return nil, &centurion.Error{Op: "read permission of agent " + name + " in " + l.File, Kind: centurion.KindConfig, Err: err, Hint: centurion.HintOf(err)}
			}
			cfg.Notices = append(cfg.Notices, ignored(l.File, "agent."+name+".permission", permission.Widens(byAgent[to], rules))...)
			byAgent[to] = append(byAgent[to], permission.Level{Name: "agent " + name + " of " + l.File, Rules: rules, Untrusted: true})
		}
	}
	return func(agent string) []permission.Level {
		if l, ok := byAgent[strings.ToLower(agent)]; ok {
			return l
		}
		return levels
	}, nil
}

// ignored is the notice of rules of a project's file that would widen what agents may do, if there are any.
func ignored(file, key string, rules []permission.Rule) []string {
	if len(rules) == 0 {
		return nil
	}
	const most = 3
	var names []string
	for _, r := range rules[:min(len(rules), most)] {
		names = append(names, r.String())
	}
	if more := len(rules) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return []string{fmt.Sprintf("centurion: %s came with the project and can only restrict: ignored %s: %s (your own rules go into ~/.config/opencode/opencode.json)",
		file, key, strings.Join(names, ", "))}
}

// concurrency turns the configured caps into the orchestrator's, under the names that its agents have.
func concurrency(cfg *config.Config, cast, assistant *agents.Cast) (slots.Caps, error) {
	c := slots.Caps{Providers: cfg.Own.Concurrency.Providers, Models: cfg.Own.Concurrency.Models, Agents: map[string]int{}}
	for _, name := range slices.Sorted(maps.Keys(cfg.Own.Concurrency.Agents)) {
		a, err := cast.Find(name)
		if other, no := assistant.Get(name); err != nil && no == nil {
			a, err = other, nil
		}
		if err != nil {
			file, _ := cfg.Origin("concurrency")
			return c, &centurion.Error{Op: "read config", Kind: centurion.KindConfig, Msg: "concurrency.agents (" + file + ")", Err: err, Hint: centurion.HintOf(err)}
		}
		c.Agents[a.Name] = cfg.Own.Concurrency.Agents[name]
	}
	return c, nil
}

// firstModel finds the model of a mission. What a project's file would send of the person's environment, they are asked for.
func (c *cli) firstModel(ctx context.Context, cfg *config.Config, f *runFlags) (config.Resolved, error) {
	for {
		r, err := cfg.ResolveModel(ctx, f.model)
		ask, ok := errors.AsType[*config.Unvouched](err)
		if !ok || f.detach || f.format != "text" || !tui.CanLive(c.in, c.out, c.env) {
			return r, err
		}
		c.note(ask.Error())
		key, failed := tui.Choose(ctx, tui.Choice{Text: "send it? (y/N)", Keys: "yn", Default: "n", In: c.in, Out: c.out, Env: c.env})
		if failed != nil || key != "y" {
			return r, errors.Join(err, failed)
		}
		if err := cfg.Vouch(ask.Provider); err != nil {
			return r, err
		}
	}
}

// modelSet resolves model names to clients, each once.
type modelSet struct {
	cfg   *config.Config
	first config.Resolved
	gates provider.Gates

	mu    sync.Mutex // protects known
	known map[string]orchestrator.Model
}

func newModels(cfg *config.Config, first config.Resolved) *modelSet {
	return &modelSet{cfg: cfg, first: first, known: map[string]orchestrator.Model{}}
}

// get returns the model of that name, and the mission's own for "".
func (s *modelSet) get(ref string) (orchestrator.Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.first
	none := r.Model == centurion.ModelRef{} // a background host has no mission of its own
	if ref == "" && !none {
		ref = r.Model.String()
	}
	if m, ok := s.known[ref]; ok {
		return m, nil
	}
	if none || ref != r.Model.String() {
		var err error
		if r, err = s.cfg.ResolveModel(context.Background(), ref); err != nil {
			return orchestrator.Model{}, err
		}
	}
	own := s.cfg.Own
	client := provider.New(provider.Endpoint{
		Model: r.Model, Limits: provider.Limits(r.Limit), BaseURL: r.BaseURL, APIKey: r.APIKey.Reveal(), KeySource: r.KeySource, Headers: r.Headers, EchoReasoning: r.Echo,
		NoSessionHeaders: own.SessionHeaders != nil && !*own.SessionHeaders, IdleTimeout: own.IdleTimeout, MaxRetries: own.MaxRetries,
		Gates: &s.gates, Wire: r.Wire()})
	m := orchestrator.Model{Ref: r.Model, Price: r.Price, Context: client.Model().Context, Media: r.Media, Client: client, Closed: client.Closed}
	s.known[ref] = m
	return m, nil
}
