package config

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"centurion/permission"
	"centurion/trust"
)

// seenKey names the rules of a file for one agent, or for all with "".
func seenKey(file, agent string) string { return filepath.ToSlash(file) + "\x00" + agent }

// projectRules are the permission values of the project's files, by [seenKey].
func (c *Config) projectRules() map[string][]string {
	all := map[string][]string{}
	add := func(agent string, levels []PermissionLevel) {
		for _, l := range levels {
			if key := seenKey(l.File, agent); l.src != nil && l.src.project && !slices.Contains(all[key], string(l.Raw)) {
				all[key] = append(all[key], string(l.Raw))
			}
		}
	}
	add("", c.Permission)
	for _, agent := range slices.Sorted(maps.Keys(c.AgentPermission)) {
		add(agent, c.AgentPermission[agent])
	}
	return all
}

// keepRules keeps the rules with which the person last started in force where a file has lost some of them since: an agent may have deleted
// what restricted it. Trust in the present content ends that.
func (l *loader) keepRules() error {
	c := l.c
	now := c.projectRules()
	for _, key := range slices.Sorted(maps.Keys(c.Trust.Seen)) {
		file, agent, _ := strings.Cut(key, "\x00")
		i := slices.IndexFunc(c.sources, func(s *source) bool { return filepath.ToSlash(s.name) == file })
		if i < 0 { // the file itself is gone
			i = len(c.sources)
			c.sources = append(c.sources, &source{name: file, project: true})
			l.judge(c.sources[i], "")
		}
		src := c.sources[i]
		for _, raw := range c.Trust.Seen[key] {
			if !src.foreign() || slices.Contains(now[key], raw) {
				continue
			}
			kept := PermissionLevel{File: src.name, Project: true, Raw: []byte(raw), src: src}
			if agent == "" {
				c.Permission = append(c.Permission, kept)
			} else {
				if c.AgentPermission == nil {
					c.AgentPermission = map[string][]PermissionLevel{}
				}
				c.AgentPermission[agent] = append(c.AgentPermission[agent], kept)
			}
			present := parsedRules(now[key]...)
			for _, r := range parsedRules(raw) {
				if r.Action != permission.Allow && !slices.Contains(present, r) {
					src.withholds(1, trust.Permission, "%s is gone", r)
				}
			}
		}
	}
	return nil
}

// parsedRules returns the rules of permission values; a faulty one has none, and is told by [Config.Rules].
func parsedRules(raws ...string) (all []permission.Rule) {
	for _, raw := range raws {
		rules, _ := permission.ParseRules([]byte(raw))
		all = append(all, rules...)
	}
	return all
}

// Started records the rules of the project's files, because the person starts work with them.
func (c *Config) Started() error { return c.Trust.See(c.projectRules()) }
