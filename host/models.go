package host

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"centurion"
	"centurion/agents"
	"centurion/config"
	"centurion/orchestrator"
	"centurion/orchestrator/slots"
	"centurion/provider"
	"centurion/redact"
	"centurion/sandbox"
)

// concurrency converts the configured limits to the orchestrator's, under its agents' names.
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

// Models resolves model names to clients, each once.
type Models struct {
	Config *config.Config
	First  config.Resolved
	gates  *provider.Gates

	runner  *sandbox.Runner // of the host, for agents that are other programs; nil before it has one
	version string

	mu    sync.Mutex // protects known
	known map[string]orchestrator.Model

	keys *redact.Keys // that no model, no store and no command's output gets
}

func NewModels(cfg *config.Config, first config.Resolved) *Models {
	return (&Models{gates: &provider.Gates{}, keys: redact.New(redact.Environment(os.Environ())...)}).again(cfg, first)
}

// again returns the models of a configuration that was read again. They wait at the same gates, and whatever was a key stays one.
func (s *Models) again(cfg *config.Config, first config.Resolved) *Models {
	s.keys.Add(cfg.Keys()...)
	for _, one := range cfg.Servers {
		s.keys.Add(redact.Environment(secrets(one))...)
	}
	return &Models{Config: cfg, First: first, gates: s.gates, runner: s.runner, version: s.version, known: map[string]orchestrator.Model{}, keys: s.keys}
}

// Get returns the model with that name, or the mission's own for "".
func (s *Models) Get(ref string) (orchestrator.Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.First
	none := r.Model == centurion.ModelRef{} // a background host has no mission of its own
	if ref == "" && !none {
		ref = r.Model.String()
	}
	if m, ok := s.known[ref]; ok {
		return m, nil
	}
	if name, ok := strings.CutPrefix(ref, config.OutsideProvider+"/"); ok {
		m, err := s.outside(name)
		if err == nil {
			s.known[ref] = m
		}
		return m, err
	}
	if none || ref != r.Model.String() {
		var err error
		if r, err = s.Config.ResolveModel(context.Background(), ref); err != nil {
			return orchestrator.Model{}, err
		}
	}
	s.keys.Add(redact.Key{Name: r.Model.Provider, Value: r.APIKey.Reveal()})
	own := s.Config.Own
	client := provider.New(provider.Endpoint{
		Model: r.Model, Limits: provider.Limits(r.Limit), BaseURL: r.BaseURL, APIKey: r.APIKey.Reveal(), KeySource: r.KeySource, Headers: r.Headers, EchoReasoning: r.Echo,
		NoSessionHeaders: own.SessionHeaders != nil && !*own.SessionHeaders, IdleTimeout: own.IdleTimeout, MaxRetries: own.MaxRetries,
		Gates: s.gates, Wire: r.Wire()})
	m := orchestrator.Model{Ref: r.Model, Price: r.Price, Context: client.Model().Context, Media: r.Media, Client: withholding{client, s.keys}, Closed: client.Closed}
	s.known[ref] = m
	return m, nil
}
