package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"centurion/agents"
	"centurion/trust"
)

// FromPlugins is the File of what plugins have added.
const FromPlugins = "a plugin"

// Offered is what plugins added to the configuration when they ran last, with their hook config. It is kept between processes, and counts for
// what begins after it was: agents and commands whose names nobody else has, and permissions as far as they forbid more.
type Offered struct {
	Sum        string                     `json:"sum"` // of the plugins: see [Config.PluginSum]
	Agents     map[string]json.RawMessage `json:"agents,omitempty"`
	Commands   map[string]json.RawMessage `json:"commands,omitempty"`
	Permission json.RawMessage            `json:"permission,omitempty"`
	Kept       []string                   `json:"-"` // agents and commands that are there already, and that plugins wanted otherwise
}

// PluginSum tells configured plugins and their options apart from others.
func (c *Config) PluginSum() string {
	var all []string
	for _, s := range c.Plugins {
		all = append(all, s.Name, s.Version, s.File, string(s.Options))
	}
	return trust.Sum(strings.Join(all, "\x00"))
}

// offeredFile is where what plugins offer is kept, in a project's directory of the state directory.
func offeredFile(state string) string { return filepath.Join(state, "plugins", "config.json") }

// shownConfig are the keys of OpenCode's configuration that plugins see.
type shownConfig struct {
	Model        string                     `json:"model,omitempty"`
	DefaultAgent string                     `json:"default_agent,omitempty"`
	Agent        map[string]json.RawMessage `json:"agent"`
	Command      map[string]json.RawMessage `json:"command"`
	Permission   json.RawMessage            `json:"permission"`
	Instructions []string                   `json:"instructions,omitempty"`
	Plugin       []string                   `json:"plugin"`
}

func (c *Config) shown() (s shownConfig) {
	s = shownConfig{Model: c.Model, DefaultAgent: c.DefaultAgent, Permission: json.RawMessage("{}"), Instructions: c.Instructions, Plugin: []string{}}
	_ = json.Unmarshal(c.open.get("agent").rawJSON(), &s.Agent)
	_ = json.Unmarshal(c.open.get("command").rawJSON(), &s.Command)
	if s.Agent == nil {
		s.Agent = map[string]json.RawMessage{}
	}
	if s.Command == nil {
		s.Command = map[string]json.RawMessage{}
	}
	for _, p := range c.Plugins {
		s.Plugin = append(s.Plugin, p.Spec)
	}
	return s
}

// Shown is the configuration as plugins get it: OpenCode's keys, without providers and servers, which may have keys in them, and without
// what plugins have added before.
func (c *Config) Shown() json.RawMessage {
	b, err := json.Marshal(c.shown())
	if err != nil {
		return json.RawMessage("{}") // impossible: it was parsed from JSON
	}
	return b
}

// Offer returns what counts of what plugins have made of [Config.Shown].
func (c *Config) Offer(made json.RawMessage) Offered {
	was, o := c.shown(), Offered{Sum: c.PluginSum()}
	var now shownConfig
	if json.Unmarshal(made, &now) != nil {
		return o
	}
	o.Agents = o.added(was.Agent, now.Agent, func(name string) bool { return builtInAgent(name) }, "")
	o.Commands = o.added(was.Command, now.Command, func(string) bool { return false }, "/")
	if !sameJSON(was.Permission, now.Permission) {
		o.Permission = now.Permission
	}
	return o
}

// added returns what is new under names that nobody has.
func (o *Offered) added(was, now map[string]json.RawMessage, taken func(name string) bool, mark string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		had, known := was[name]
		switch {
		case known && sameJSON(had, now[name]):
		case known || taken(strings.ToLower(name)):
			o.Kept = append(o.Kept, mark+name)
		default:
			out[name] = now[name]
		}
	}
	return out
}

func builtInAgent(name string) bool {
	isNamed := func(a agents.Agent) bool { return strings.EqualFold(a.Name, name) }
	return agents.Alias(name) != "" || slices.Contains(OpenCodeAgents, name) || slices.ContainsFunc(agents.Default().All(), isNamed) || slices.ContainsFunc(agents.DefaultAssistant().All(), isNamed)
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// offered adds what the configured plugins offered when they ran last. What of it cannot be used is left out, with a notice.
func (l *loader) offered() error {
	c := l.c
	if len(c.Plugins) == 0 || l.state == "" {
		return nil
	}
	c.opts.Stamps.add(offeredFile(l.state))
	b, err := os.ReadFile(offeredFile(l.state))
	var o Offered
	if err != nil || json.Unmarshal(b, &o) != nil || o.Sum != c.PluginSum() {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(o.Agents)) {
		if lower := strings.ToLower(name); c.Agents[lower].Name == "" && !builtInAgent(lower) {
			l.offeredAgent(lower, o.Agents[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Commands)) {
		if c.Commands[name].Name == "" && name != "" && !strings.ContainsAny(name, "/ \n") {
			l.offeredCommand(name, o.Commands[name])
		}
	}
	if len(o.Permission) > 0 {
		c.Permission = append(c.Permission, PermissionLevel{File: FromPlugins, Project: true, Raw: o.Permission})
		if _, err := c.Rules(); err != nil {
			l.dropped, c.Permission = append(l.dropped, FromPlugins+": its permissions do not count: "+err.Error()), c.Permission[:len(c.Permission)-1]
		}
	}
	return nil
}

// offeredAgent adds an agent of a plugin. It works with the model of the mission, and its permissions only forbid.
func (l *loader) offeredAgent(name string, raw json.RawMessage) {
	c, at := l.c, "agent."+name
	n, err := parseJSONC(&source{name: FromPlugins}, raw)
	var a Agent
	if err == nil {
		err = decode(n, at, &a, agentFields(l, at), nil)
	}
	if err == nil && a.Prompt == "" {
		err = errors.New("it has no prompt")
	}
	if err == nil {
		_, _, err = agents.Default().Beside(c.serverNames(), true).With(agents.Definition{Name: name, Prompt: a.Prompt, Tools: a.Tools, Source: FromPlugins})
	}
	if err != nil {
		l.dropped = append(l.dropped, fmt.Sprintf("%s: its agent %s does not count: %v", FromPlugins, name, err))
		return
	}
	a.Name, a.File, a.Model, a.Fallback = name, FromPlugins, "", nil
	if a.Permission != nil {
		if c.AgentPermission == nil {
			c.AgentPermission = map[string][]PermissionLevel{}
		}
		c.AgentPermission[name] = append(c.AgentPermission[name], PermissionLevel{File: FromPlugins, Project: true, Raw: a.Permission})
		a.Permission = nil
	}
	c.Agents[name] = a
}

// offeredCommand adds a command of a plugin. Shell in it does not run, and an empty one is what was typed: a plugin may say more to it.
func (l *loader) offeredCommand(name string, raw json.RawMessage) {
	var cmd struct{ Template, Description, Agent string }
	if err := json.Unmarshal(raw, &cmd); err != nil {
		l.dropped = append(l.dropped, fmt.Sprintf("%s: its command /%s does not count: %v", FromPlugins, name, err))
		return
	}
	if a := strings.ToLower(cmd.Agent); l.c.Agents[a].Name == "" && !builtInAgent(a) {
		cmd.Agent = ""
	}
	l.c.Commands[name] = Command{Name: name, File: FromPlugins, Template: cmp.Or(cmd.Template, "/"+name+" $ARGUMENTS"), Description: cmd.Description, Agent: cmd.Agent, Project: true}
}
