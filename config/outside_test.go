package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
)

// Issue "Plugin host", point 7: what an agent from outside may use stands in its definition, a preset's or the person's; a project's
// definition counts when it is trusted.
func TestOutside(t *testing.T) {
	const own = `{"agent":{"coder":{"acp":["coder","--acp"],"env":"CODER_KEY","files":["~/.coder","relative"],"hosts":["api.coder.example"]}}}`
	for name, tt := range map[string]struct {
		global, project string
		trust           bool
		want            string // name, command, variables, directories and hosts
		fails           []string
	}{
		"a person's":         {global: own, want: "coder: coder --acp [CODER_KEY] [HOME/.coder] [api.coder.example]"},
		"a project's":        {project: own},
		"trusted":            {project: own, trust: true, want: "coder: coder --acp [CODER_KEY] [HOME/.coder] [api.coder.example]"},
		"a preset":           {global: `{"agent":{"Builder":{"acp":"goose"}}}`, want: "worker: goose acp [] [HOME/.config/goose HOME/.local/share/goose HOME/.local/state/goose] [*]"},
		"a preset, narrowed": {global: `{"agent":{"worker":{"acp":"goose","files":[],"hosts":"x.example"}}}`, want: "worker: goose acp [] [] [x.example]"},
		"a project widens":   {global: own, project: `{"agent":{"coder":{"files":["~"]}}}`, want: "coder: coder --acp [CODER_KEY] [HOME/.coder] [api.coder.example]"},
		"of the Commander":   {global: `{"agent":{"commander":{"acp":"claude"}}}`, fails: []string{"agent.commander.acp", "Centurion's own tools"}},
		"of the reviewer":    {global: `{"agent":{"inspector":{"acp":"claude"}}}`, fails: []string{"agent.reviewer.acp"}},
		"an unknown key":     {global: `{"agent":{"x":{"acp":"claude","host":"*"}}}`, fails: []string{`the nearest known key is "agent.x.hosts"`}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tt.global != "" {
				w.global("centurion/config.jsonc", tt.global)
			}
			if tt.project != "" {
				w.project(".opencode/centurion.jsonc", tt.project)
			}
			if tt.trust {
				w.trust()
			}
			c, err := Load(w.opts)
			var cast *agents.Cast
			if err == nil {
				cast, err = c.Cast(agents.ProfileMission)
			}
			if len(tt.fails) > 0 {
				fails(t, err, centurion.KindConfig, tt.fails...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range c.Outside() {
				got = append(got, fmt.Sprintf("%s: %s %v %v %v", o.Name, strings.Join(o.Command, " "), o.Env, o.Dirs, o.Hosts))
				a, err := cast.Get(o.Name)
				if err != nil || a.Model != "acp/"+o.Name || a.Mode != "subagent" || !strings.HasPrefix(a.Prompt, agents.OutsidePrompt[:100]) || !a.Holds("write") {
					t.Errorf("in the cast: %+v, %v", a, err)
				}
			}
			if got := strings.ReplaceAll(strings.Join(got, "\n"), c.opts.home(), "HOME"); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if assistants, err := c.Cast(agents.ProfileAssistant); err != nil || slices.ContainsFunc(assistants.All(), func(a agents.Agent) bool { return strings.HasPrefix(a.Model, "acp/") }) {
				t.Errorf("an assistant has it, too: %v", err)
			}
		})
	}
}
