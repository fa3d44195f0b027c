package main

import (
	"encoding/json"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/config"
	"centurion/permission"
	"centurion/provider"
)

// C-13: settings under an old name go to the agent that has its work now, its permissions too, and again when the host
// asks for them a second time.
func TestSettingsUnderOldNames(t *testing.T) {
	cfg := &config.Config{Agents: map[string]config.Agent{
		"architect": {Model: "p/a", Permission: json.RawMessage(`{"bash":"deny"}`), File: "a"},
		"builder":   {Model: "p/b", File: "b"}, "worker": {Steps: 3, File: "w"},
		"librarian": {Prompt: "You keep books.", Mode: "subagent", File: "l", Project: true},
		"build":     {Model: "p/x", File: "o"}, "explore": {Disable: true, File: "o"}, "general": {Prompt: "You are general.", File: "g"},
	}}
	for round := range 2 {
		cast, err := castOf(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"planner": "p/a", "worker": "", "librarian": ""} {
			if a, err := cast.Get(name); err != nil || a.Model != want {
				t.Errorf("round %d, %s: %+v, %v", round, name, a, err)
			}
		}
		if a, err := cast.Find("general"); err != nil || !a.Custom {
			t.Errorf("general is %+v, %v", a, err)
		}
		for _, name := range []string{"build", "explore"} {
			if _, err := cast.Find(name); err == nil {
				t.Errorf("%s is an agent", name)
			}
		}
		rules, err := ruleLevels(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for agent, want := range map[string]permission.Action{agents.Planner: permission.Deny, agents.Worker: permission.Ask} {
			if d := permission.Decide(rules(agent), "bash", []string{"ls"}); d.Action != want {
				t.Errorf("round %d: bash of the %s: %+v", round, agent, d)
			}
		}
		all := strings.Join(cfg.Notices, "\n")
		if round == 0 && (strings.Count(all, "\n") != 2 || !strings.Contains(all, "agent builder (b) do not count beside those of the worker") ||
			!strings.Contains(all, "no part in a mission: build, explore") || !strings.Contains(all, "came with the project are in force: librarian (l)")) {
			t.Errorf("notices:\n%s", all)
		}
	}
}

// LOOP-89: the client of a configured model says how much the model takes and gives.
func TestLimitsOfAModel(t *testing.T) {
	m, err := newModels(&config.Config{}, config.Resolved{Model: centurion.ModelRef{Provider: "p", ID: "m"}, BaseURL: "http://model.test/v1",
		Limit: config.Limit{Context: 64_000, Output: 8_000}}).get("")
	if err != nil {
		t.Fatal(err)
	}
	client, ok := m.Client.(*provider.Client)
	if !ok {
		t.Fatalf("the client is a %T", m.Client)
	}
	if info := client.Model(); info.String() != "p/m" || info.Context != 64_000 || info.Output != 8_000 || m.Context != 64_000 {
		t.Errorf("the client says %+v, the mission has a window of %d", info, m.Context)
	}
}

// The model of the agent that a mission starts with counts more than the configured one and less than the one given.
func TestModelOfTheAgent(t *testing.T) {
	for name, tt := range map[string]struct {
		f     runFlags
		given bool
		def   string // default_agent
		agent string
		model string
		kind  centurion.Kind
	}{
		"the commander's": {model: "p/c"},
		"a named one":     {f: runFlags{agent: "own"}, agent: "own", model: "p/o"},
		"by default":      {def: "own", agent: "own", model: "p/o"},
		"not ours":        {def: "build", model: "p/c"},
		"none of its own": {f: runFlags{agent: "worker", model: "p/configured"}, agent: "worker", model: "p/configured"},
		"given":           {f: runFlags{agent: "own", model: "p/given"}, given: true, agent: "own", model: "p/given"},
		"misspelt":        {f: runFlags{agent: "onw"}, agent: "onw", kind: centurion.KindUsage},
	} {
		cfg := &config.Config{DefaultAgent: tt.def, Agents: map[string]config.Agent{"own": {Model: "p/o", Prompt: "You own it."}, "commander": {Model: "p/c"}}}
		err := tt.f.cast(cfg, tt.given)
		if tt.f.agent != tt.agent || tt.f.model != tt.model || tt.kind != "" && centurion.KindOf(err) != tt.kind || tt.kind == "" && err != nil {
			t.Errorf("%s: agent %q, model %q, %v", name, tt.f.agent, tt.f.model, err)
		}
	}
}
