package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/permission"
)

// OpenCodeAgents are OpenCode's own agents. Settings for them are for its conversations.
var OpenCodeAgents = []string{"build", "plan", "general", "explore", "title", "summary", "compaction"}

// Cast returns the agents of a profile, including configured ones. Settings under an old name move to the agent's new name, in cfg too,
// so that its permissions do as well. Ignored settings are added to cfg's notices.
func (cfg *Config) Cast(profile string) (*agents.Cast, error) {
	var defs []agents.Definition
	var passed, project []string
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
		if a.Project {
			project = append(project, name+" ("+a.File+")")
		}
		defs = append(defs, agents.Definition{Name: name, Description: a.Description, Mode: a.Mode, Model: a.Model, Prompt: a.Prompt,
			Temperature: a.Temperature, Steps: a.Steps, Tools: a.Tools, Disable: a.Disable, Source: a.File})
	}
	if len(passed) > 0 {
		say("ignored: settings for OpenCode's own agents: %s", strings.Join(passed, ", "))
	}
	if len(project) > 0 {
		say("agents that came with the project are in force: %s", strings.Join(project, ", "))
	}
	base := agents.Default()
	if profile == agents.ProfileAssistant {
		base = agents.DefaultAssistant()
	}
	cast, notes, err := base.With(defs...)
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
		if l.Project {
			cfg.Notices = append(cfg.Notices, ignoredRules(l.File, "permission", permission.Widens(levels, rules))...)
		}
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
			cfg.Notices = append(cfg.Notices, ignoredRules(l.File, "agent."+name+".permission", permission.Widens(byAgent[to], rules))...)
			byAgent[to] = append(byAgent[to], permission.Level{Name: "agent " + name + " of " + l.File, Rules: rules, Untrusted: true})
		}
	}
	return func(agent string) []permission.Level {
		if l, ok := byAgent[strings.ToLower(agent)]; ok {
			return l
		}
		return levels
	}, nil
}

// ignoredRules is the notice of rules in a project's file that would widen permissions, if there are any.
func ignoredRules(file, key string, rules []permission.Rule) []string {
	if len(rules) == 0 {
		return nil
	}
	const most = 3
	var names []string
	for _, r := range rules[:min(len(rules), most)] {
		names = append(names, r.String())
	}
	if more := len(rules) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return []string{fmt.Sprintf("centurion: %s came with the project and can only restrict: ignored %s: %s (your own rules go into ~/.config/opencode/opencode.json)",
		file, key, strings.Join(names, ", "))}
}
