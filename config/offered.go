package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"centurion/agents"
	"centurion/permission"
	"centurion/trust"
)

// FromPlugins is the File of what plugins have added.
const FromPlugins = "a plugin"

// Offered is what plugins added to the configuration when they ran last, with their hook config. It is kept between processes, and counts for
// what begins after it was: agents and commands under new names.
type Offered struct {
	Sum      string                     `json:"sum"` // of the plugins: see [Config.PluginSum]
	Agents   map[string]json.RawMessage `json:"agents,omitempty"`
	Commands map[string]json.RawMessage `json:"commands,omitempty"`
	Left     []string                   `json:"-"` // agents and commands that do not count: they are there already, or cannot be used
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
	l := reader(c)
	o.Agents = o.added(was.Agent, now.Agent, func(name string, raw json.RawMessage) bool {
		_, err := l.offeredAgent(name, raw)
		return err == nil && !builtInAgent(name)
	}, "")
	o.Commands = o.added(was.Command, now.Command, func(name string, raw json.RawMessage) bool {
		_, err := l.offeredCommand(name, raw)
		return err == nil
	}, "/")
	return o
}

// added returns what is new under a new name, and usable.
func (o *Offered) added(was, now map[string]json.RawMessage, usable func(name string, raw json.RawMessage) bool, mark string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		had, known := was[name]
		switch {
		case known && sameJSON(had, now[name]):
		case known || !usable(name, now[name]):
			o.Left = append(o.Left, mark+name)
		default:
			out[name] = now[name]
		}
	}
	return out
}

func builtInAgent(name string) bool {
	name = strings.ToLower(name)
	isNamed := func(a agents.Agent) bool { return strings.EqualFold(a.Name, name) }
	return agents.Alias(name) != "" || slices.Contains(OpenCodeAgents, name) || slices.ContainsFunc(agents.Default().All(), isNamed) || slices.ContainsFunc(agents.DefaultAssistant().All(), isNamed)
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// reader reads what plugins offer; what it ignores is told nowhere.
func reader(c *Config) *loader {
	own := *c
	own.Ignored = nil
	return &loader{c: &own, table: openCodeKeys()}
}

// offered adds what the configured plugins offered when they ran last, and what can still be used of it.
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
		a, err := reader(c).offeredAgent(name, o.Agents[name])
		if err != nil || c.Agents[a.Name].Name != "" || builtInAgent(name) {
			continue
		}
		if a.Permission != nil { // it only forbids
			if c.AgentPermission == nil {
				c.AgentPermission = map[string][]PermissionLevel{}
			}
			c.AgentPermission[a.Name] = append(c.AgentPermission[a.Name], PermissionLevel{File: FromPlugins, Project: true, Raw: a.Permission})
			a.Permission = nil
		}
		c.Agents[a.Name] = a
	}
	for _, name := range slices.Sorted(maps.Keys(o.Commands)) {
		if cmd, err := l.offeredCommand(name, o.Commands[name]); err == nil && c.Commands[name].Name == "" {
			c.Commands[name] = cmd
		}
	}
	return nil
}

// offeredAgent reads an agent of a plugin. It works with the model of the mission.
func (l *loader) offeredAgent(name string, raw json.RawMessage) (a Agent, err error) {
	name = strings.ToLower(name)
	at := "agent." + name
	n, err := parseJSONC(&source{name: FromPlugins}, raw)
	if err == nil {
		err = decode(n, at, &a, agentFields(l, at), nil)
	}
	if err == nil && a.Prompt == "" {
		err = errors.New("it has no prompt")
	}
	if err == nil {
		_, _, err = agents.Default().Beside(l.c.serverNames(), true).With(agents.Definition{Name: name, Prompt: a.Prompt, Tools: a.Tools, Source: FromPlugins})
	}
	if err == nil && a.Permission != nil {
		_, err = permission.ParseRules(a.Permission)
	}
	a.Name, a.File, a.Model, a.Fallback = name, FromPlugins, "", nil
	return a, err
}

// offeredCommand reads a command of a plugin. Shell in it does not run, and an empty one is what was typed: a plugin may say more to it.
func (l *loader) offeredCommand(name string, raw json.RawMessage) (Command, error) {
	var cmd struct{ Template, Description, Agent string }
	if name == "" || strings.ContainsAny(name, "/ \n") {
		return Command{}, errors.New("it has no usable name")
	}
	if err := json.Unmarshal(raw, &cmd); err != nil {
		return Command{}, err
	}
	if a := strings.ToLower(cmd.Agent); l.c.Agents[a].Name == "" && !builtInAgent(a) {
		cmd.Agent = ""
	}
	return Command{Name: name, File: FromPlugins, Template: cmp.Or(cmd.Template, "/"+name+" $ARGUMENTS"), Description: cmd.Description, Agent: cmd.Agent, Project: true}, nil
}
