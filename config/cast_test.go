package config

import (
	"encoding/json"
	"strings"
	"testing"

	"centurion/agents"
	"centurion/permission"
)

// C-13: settings under an old name go to the agent that has its work now, its permissions too, and again when the host
// asks for them a second time.
func TestSettingsUnderOldNames(t *testing.T) {
	cfg := &Config{Agents: map[string]Agent{
		"architect": {Model: "p/a", Permission: json.RawMessage(`{"bash":"deny"}`), File: "a"},
		"builder":   {Model: "p/b", File: "b"}, "worker": {Steps: 3, File: "w"},
		"librarian": {Prompt: "You keep books.", Mode: "subagent", File: "l"},
		"build":     {Model: "p/x", File: "o"}, "explore": {Disable: true, File: "o"}, "general": {Prompt: "You are general.", File: "g"},
	}}
	for round := range 2 {
		cast, err := cfg.Cast(agents.ProfileMission)
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
		rules, err := cfg.Rules()
		if err != nil {
			t.Fatal(err)
		}
		for agent, want := range map[string]permission.Action{agents.Planner: permission.Deny, agents.Worker: permission.Ask} {
			if d := permission.Decide(rules(agent), "bash", []string{"ls"}); d.Action != want {
				t.Errorf("round %d: bash of the %s: %+v", round, agent, d)
			}
		}
		all := strings.Join(cfg.Notices, "\n")
		if round == 0 && (strings.Count(all, "\n") != 1 || !strings.Contains(all, "agent builder (b) do not count beside those of the worker") ||
			!strings.Contains(all, "for OpenCode's own agents: build, explore")) {
			t.Errorf("notices:\n%s", all)
		}
	}
}
