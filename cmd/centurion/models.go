package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"centurion"
	"centurion/agents"
	"centurion/cmd/centurion/config"
	"centurion/orchestrator"
	"centurion/orchestrator/slots"
	"centurion/permission"
	"centurion/provider"
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
			cfg.Notices = append(cfg.Notices, "centurion: the permission rules of "+l.File+", which came with the project, are in force")
		}
		levels = append(levels, permission.Level{Name: l.File, Rules: rules})
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
		byAgent[name] = append(append([]permission.Level{}, levels...), permission.Level{Name: "agent " + name, Rules: rules})
	}
	return func(agent string) []permission.Level {
		if l, ok := byAgent[strings.ToLower(agent)]; ok {
			return l
		}
		return levels
	}, nil
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
		Model: r.Model, BaseURL: r.BaseURL, APIKey: r.APIKey.Reveal(), KeySource: r.KeySource, Headers: r.Headers, EchoReasoning: r.Echo,
		NoSessionHeaders: own.SessionHeaders != nil && !*own.SessionHeaders, IdleTimeout: own.IdleTimeout, MaxRetries: own.MaxRetries,
		Gates: &s.gates, Wire: r.Wire()})
	m := orchestrator.Model{Ref: r.Model, Price: r.Price, Context: r.Limit.Context, Media: r.Media, Client: client, Closed: client.Closed}
	s.known[ref] = m
	return m, nil
}
