package main

import (
	"testing"

	"centurion"
	"centurion/config"
)

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
