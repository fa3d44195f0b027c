package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/permission"
	"centurion/trust"
)

// OpenCodeAgents are OpenCode's own agents. Settings for them are for its conversations.
var OpenCodeAgents = []string{"build", "plan", "general", "explore", "title", "summary", "compaction"}

// Cast returns the agents of a profile, including configured ones. Settings under an old name move to the agent's new name, in cfg too,
// so that its permissions do as well. Ignored settings are added to cfg's notices.
func (cfg *Config) Cast(profile string) (*agents.Cast, error) {
	var defs []agents.Definition
	var passed []string
	say := func(format string, args ...any) {
		cfg.Notices = append(cfg.Notices, "centurion: "+fmt.Sprintf(format, args...))
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Agents)) {
		a := cfg.Agents[name]
		if slices.Contains(OpenCodeAgents, name) && a.Prompt == "" {
			passed = append(passed, name)
			continue
		}
		if to := agents.Alias(name); to != "" && a.Prompt == "" { // with a prompt it is a custom agent
			delete(cfg.Agents, name)
			if _, both := cfg.Agents[to]; both {
				say("the settings of agent %s (%s) do not count beside those of the %s, whose old name it is", name, a.File, to)
				continue
			}
			cfg.Agents[to] = a
			name = to
		}
		defs = append(defs, agents.Definition{Name: name, Description: a.Description, Mode: a.Mode, Model: a.Model, Prompt: a.Prompt,
			Temperature: a.Temperature, Steps: a.Steps, Tools: a.Tools, Disable: a.Disable, Source: a.File})
	}
	if profile == agents.ProfileMission {
		var err error
		if defs, err = cfg.withOutside(defs); err != nil {
			return nil, err
		}
	}
	if len(passed) > 0 {
		say("ignored: settings for OpenCode's own agents: %s", strings.Join(passed, ", "))
	}
	base := agents.Default()
	if profile == agents.ProfileAssistant {
		base = agents.DefaultAssistant()
	}
	cast, notes, err := base.Beside(cfg.serverNames(), len(cfg.Plugins) > 0).With(defs...)
	for _, n := range notes {
		say("%s", n)
	}
	return cast, err
}

// Rules converts the configured permissions to the levels for each agent, weakest first.
func (cfg *Config) Rules() (func(agent string) []permission.Level, error) {
	levels := []permission.Level{{Name: permission.DefaultLevel, Rules: permission.Defaults(false)}}
	for _, l := range cfg.Permission {
		rules, err := permission.ParseRules(l.Raw)
		if err != nil {
			return nil, &centurion.Error{Op: "read permission in " + l.File, Kind: centurion.KindConfig, Err: err, Hint: centurion.HintOf(err)}
		}
		l.withholdRules("", levels, rules)
		levels = append(levels, permission.Level{Name: l.File, Rules: rules, Untrusted: l.Project})
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
		byAgent[name] = append(slices.Clone(levels), permission.Level{Name: "agent " + name, Rules: rules})
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.AgentPermission)) {
		to := name
		if now := agents.Alias(name); now != "" && cfg.Agents[name].Prompt == "" {
			to = now
		}
		if byAgent[to] == nil {
			byAgent[to] = slices.Clone(levels)
		}
		for _, l := range cfg.AgentPermission[name] {
			rules, err := permission.ParseRules(l.Raw)
			if err != nil {
				return nil, &centurion.Error{Op: "read permission of agent " + name + " in " + l.File, Kind: centurion.KindConfig, Err: err, Hint: centurion.HintOf(err)}
			}
			l.withholdRules("of agent "+name+": ", byAgent[to], rules)
			byAgent[to] = append(byAgent[to], permission.Level{Name: "agent " + name + " of " + l.File, Rules: rules, Untrusted: l.Project})
		}
	}
	return func(agent string) []permission.Level {
		if l, ok := byAgent[strings.ToLower(agent)]; ok {
			return l
		}
		return levels
	}, nil
}

// withholdRules notes the rules of an untrusted level that would make a decision milder after the levels, which they cannot do.
func (l PermissionLevel) withholdRules(key string, levels []permission.Level, rules []permission.Rule) {
	if !l.Project || l.at == nil {
		return
	}
	var lines []int // of the rules, whose order is that of the file
	for part := range l.at.all {
		if part.kind == kindString {
			lines = append(lines, part.line)
		}
	}
	wider := permission.Widens(levels, rules)
	for i, r := range rules {
		if slices.Contains(wider, r) {
			l.at.src.withholds(lines[i], trust.Permission, "%s%s", key, r)
		}
	}
}
