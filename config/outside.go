package config

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
)

// OutsideProvider is the provider in the model of an agent that is another program: "acp/NAME".
const OutsideProvider = "acp"

// Outside is an agent that is another program, and what of the person's it may use.
type Outside struct {
	Name    string   `json:"-"`
	Command []string `json:"command"`
	Env     []string `json:"env,omitempty"`         // names of variables that it gets
	Dirs    []string `json:"directories,omitempty"` // where it may write beside its checkout, absolute
	Hosts   []string `json:"hosts,omitempty"`       // that it may connect to; * is any
	From    string   `json:"-"`                     // the file that defines it, for people
}

// presets are the commands and needs of known agents, as of their documentation.
func presets() map[string]OwnAgent {
	return map[string]OwnAgent{
		"claude": {ACP: []string{"npx", "-y", "@agentclientprotocol/claude-agent-acp"}, Files: []string{"~/.claude"},
			Env:   []string{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"},
			Hosts: []string{"api.anthropic.com", "claude.ai", "platform.claude.com", "console.anthropic.com", "registry.npmjs.org"}},
		"codex": {ACP: []string{"npx", "-y", "@agentclientprotocol/codex-acp"}, Files: []string{"~/.codex"},
			Env:   []string{"OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME"},
			Hosts: []string{"api.openai.com", "chatgpt.com", "auth.openai.com", "registry.npmjs.org"}},
		"gemini": {ACP: []string{"gemini", "--experimental-acp"}, Files: []string{"~/.gemini"},
			Env:   []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT"},
			Hosts: []string{"generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "oauth2.googleapis.com", "accounts.google.com", "www.googleapis.com"}},
		"opencode": {ACP: []string{"opencode", "acp"}, Files: []string{"~/.local/share/opencode", "~/.local/state/opencode", "~/.config/opencode", "~/.cache/opencode"}, Hosts: []string{"*"}},
		"goose":    {ACP: []string{"goose", "acp"}, Files: []string{"~/.config/goose", "~/.local/share/goose", "~/.local/state/goose"}, Hosts: []string{"*"}},
	}
}

// outsideName is the name under which a mission knows an agent of the configuration.
func outsideName(name string) string {
	name = strings.ToLower(name)
	return cmp.Or(agents.Alias(name), name)
}

// Outside lists the agents that are other programs, by name.
func (c *Config) Outside() (all []Outside) {
	home := c.opts.home()
	for _, name := range slices.Sorted(maps.Keys(c.Own.Agents)) {
		a := c.Own.Agents[name]
		if len(a.ACP) == 0 {
			continue
		}
		if preset, known := presets()[a.ACP[0]]; known && len(a.ACP) == 1 {
			a.ACP = preset.ACP
			if a.Env == nil {
				a.Env = preset.Env
			}
			if a.Files == nil {
				a.Files = preset.Files
			}
			if a.Hosts == nil {
				a.Hosts = preset.Hosts
			}
		}
		o := Outside{Name: outsideName(name), Command: a.ACP, Env: a.Env, Hosts: a.Hosts}
		o.From, _ = c.Origin("agent." + name)
		for _, dir := range a.Files {
			if rest, ok := strings.CutPrefix(dir, "~/"); ok && home != "" {
				dir = filepath.Join(home, rest)
			}
			if filepath.IsAbs(dir) {
				o.Dirs = append(o.Dirs, filepath.Clean(dir))
			}
		}
		all = append(all, o)
	}
	return all
}

// withOutside makes the agents that are other programs workers of a mission: with a model of their own, which stands for the program.
func (c *Config) withOutside(defs []agents.Definition) ([]agents.Definition, error) {
	for _, o := range c.Outside() {
		if slices.Contains([]string{agents.Commander, agents.Planner, agents.Reviewer}, o.Name) {
			return nil, &centurion.Error{Op: "read config", Kind: centurion.KindConfig, Msg: fmt.Sprintf("agent.%s.acp (%s): the %s works with Centurion's own tools and cannot be another program", o.Name, o.From, o.Name),
				Hint: "use it for the worker, or for an agent of another name"}
		}
		i := slices.IndexFunc(defs, func(d agents.Definition) bool { return strings.EqualFold(d.Name, o.Name) })
		if i < 0 {
			i = len(defs)
			defs = append(defs, agents.Definition{Name: o.Name, Source: o.From})
		}
		d := &defs[i]
		d.Model, d.Mode = OutsideProvider+"/"+o.Name, "subagent"
		d.Prompt = cmp.Or(d.Prompt, agents.OutsidePrompt)
		d.Description = cmp.Or(d.Description, "carries out one task with another program, "+strings.Join(o.Command, " "))
	}
	return defs, nil
}
