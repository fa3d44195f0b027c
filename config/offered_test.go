package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion/agents"
	"centurion/permission"
)

// Step 11, point 2: what plugins do to the configuration adds agents, which only forbid, and commands; it replaces nothing, allows nothing,
// chooses no model and runs no shell.
func TestOffered(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"plugin": [["exec:p", {"command": ["p"]}]], "permission": {"bash": {"rm *": "deny"}},
		"provider": {"x": {"options": {"apiKey": "secret"}}}, "agent": {"mine": {"prompt": "mine", "mode": "subagent"}}, "command": {"hello": {"template": "hi"}}}`)
	before := w.load()
	shown := string(before.Shown())
	if strings.Contains(shown, "secret") || !strings.Contains(shown, `"mine"`) || !strings.Contains(shown, `"hello"`) || !strings.Contains(shown, `"exec:p"`) {
		t.Errorf("shown: %s", shown)
	}
	var cfg map[string]any
	if err := json.Unmarshal(before.Shown(), &cfg); err != nil {
		t.Fatal(err)
	}
	a, c := cfg["agent"].(map[string]any), cfg["command"].(map[string]any)
	a["mine"].(map[string]any)["prompt"] = "theirs"
	a["Worker"] = map[string]any{"prompt": "theirs"}
	a["build"] = map[string]any{"prompt": "theirs"}
	a["Oracle"] = map[string]any{"prompt": "You know.", "model": "anthropic/claude", "mode": "subagent", "color": "#ff0000", "tools": map[string]bool{"read": true, "theirs": true, "write": false},
		"permission": map[string]any{"bash": map[string]string{"rm *": "allow", "git push*": "deny"}}}
	a["empty"] = map[string]any{"description": "no prompt"}
	a["not a name"] = map[string]any{"prompt": "x"}
	a["rules"] = map[string]any{"prompt": "x", "permission": map[string]any{"bash": "perhaps"}}
	a["odd"] = map[string]any{"prompt": 7}
	c["hello"] = map[string]any{"template": "theirs"}
	c["squeeze"] = map[string]any{"template": "", "description": "d", "agent": "nobody"}
	c["shell"] = map[string]any{"template": "!`id`"}
	c["seven"] = 7
	cfg["permission"] = map[string]any{"bash": map[string]string{"rm *": "allow", "curl *": "deny"}}
	cfg["model"], cfg["default_agent"] = "x/y", "Oracle"
	made, _ := json.Marshal(cfg)
	o := before.Offer(made)
	if got := fmt.Sprintf("%q", o.Left); got != `["Worker" "build" "empty" "mine" "not a name" "odd" "rules" "/hello" "/seven"]` {
		t.Errorf("left: %s", got)
	}
	b, _ := json.Marshal(o)
	state, err := w.opts.stateDir()
	if err != nil {
		t.Fatal(err)
	}
	w.write(filepath.Join(ProjectDir(state, w.dir), "plugins", "config.json"), string(b))
	now := w.load()
	if names := fmt.Sprint(slices.Sorted(maps.Keys(now.Agents)), slices.Sorted(maps.Keys(now.Commands))); names != "[mine oracle] [hello shell squeeze]" || now.Model != before.Model || now.DefaultAgent != before.DefaultAgent {
		t.Errorf("%s, %s, %s", names, now.Model, now.DefaultAgent)
	}
	if oracle := now.Agents["oracle"]; now.Agents["mine"].Prompt != "mine" || oracle.Model != "" || fmt.Sprint(oracle.Tools) != "map[read:true theirs:true write:false]" || oracle.File != FromPlugins {
		t.Errorf("%+v", now.Agents)
	}
	if cmd := now.Commands["squeeze"]; cmd.Template != "/squeeze $ARGUMENTS" || cmd.Agent != "" || !now.Commands["shell"].Project {
		t.Errorf("%+v", now.Commands)
	}
	if told := strings.Join(now.Notices, "\n"); strings.Contains(told, FromPlugins) {
		t.Errorf("notices: %s", told)
	}
	rules, err := now.Rules()
	if err != nil {
		t.Fatal(err)
	}
	for agent, want := range map[string]string{"worker": "deny ask ask", "oracle": "deny deny ask"} {
		var got []string
		for _, script := range []string{"rm x", "git push", "curl x"} {
			got = append(got, string(permission.DecideShell(rules(agent), script, "/p", "/h", false).Action))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", agent, got, want)
		}
	}
	if cast, err := now.Cast(agents.ProfileMission); err != nil || !slices.ContainsFunc(cast.All(), func(a agents.Agent) bool { return a.Name == "oracle" }) {
		t.Error(err)
	}
	if string(now.Shown()) != shown {
		t.Errorf("it is shown again: %s", now.Shown())
	}
	// Of other plugins it does not count.
	w.global("opencode/opencode.json", `{"plugin": [["exec:q", {"command": ["q"]}]]}`)
	if other := w.load(); len(other.Agents)+len(other.Commands)+len(other.Permission) > 0 {
		t.Errorf("%+v", other)
	}
}
