package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"centurion"
	"centurion/provider/catalog"
)

// Load reads the configuration of the project in o.Dir.
//
// Errors are KindUsage if that directory does not exist and KindConfig, with file and line, for any fault in a file. The first fault
// ends the reading.
func Load(o Options) (*Config, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, &centurion.Error{Op: "read config", Kind: centurion.KindUsage, Err: err}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, &centurion.Error{Op: "read config", Kind: centurion.KindUsage,
			Msg: dir + " is not a directory that exists", Hint: "create it or name another with --dir"}
	}
	o.Dir = dir
	dirs := upwards(dir)
	l := &loader{
		c:     &Config{opts: o, catalog: catalog.New()},
		dirs:  dirs,
		subst: substituter{opts: o, root: dirs[0]},
		table: openCodeKeys(),
	}
	for _, step := range []func() error{l.openCode, l.ownFiles, l.decodeOpen, l.decodeOwn} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	l.notices()
	return l.c, nil
}

// upwards lists the directories from the root of dir's git repository down to dir; only dir without a repository.
func upwards(dir string) []string {
	var dirs []string
	for d := dir; ; d = filepath.Dir(d) {
		dirs = append(dirs, d)
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			slices.Reverse(dirs)
			return dirs
		}
		if d == filepath.Dir(d) {
			return []string{dir}
		}
	}
}

type loader struct {
	c       *Config
	dirs    []string // from the git root down to the project
	subst   substituter
	sources []*source
	table   []openKey
	dropped []string // notices
}

// source registers a read file.
func (l *loader) source(path string, project bool) *source {
	s := &source{path: path, name: l.display(path), project: project}
	l.sources = append(l.sources, s)
	l.c.Sources = append(l.c.Sources, path)
	return s
}

// display shortens a path for people: relative to the project, or with ~ for the home directory.
func (l *loader) display(path string) string {
	if rel, err := filepath.Rel(l.c.opts.Dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	if home := l.c.opts.home(); home != "" {
		if rel, err := filepath.Rel(home, path); err == nil && filepath.IsLocal(rel) {
			return "~" + string(filepath.Separator) + rel
		}
	}
	return path
}

// file reads one JSONC file; nil if it does not exist or was read before, as when the project is the directory of the global files.
func (l *loader) file(path string, project bool) (*node, error) {
	if slices.Contains(l.c.Sources, path) {
		return nil, nil
	}
	text, ok, err := readText(path)
	if err != nil {
		return nil, readError(err)
	}
	if !ok {
		return nil, nil
	}
	return parseJSONC(l.source(path, project), []byte(text))
}

// openCode reads OpenCode's files in its order.
func (l *loader) openCode() error {
	global := l.c.opts.base("XDG_CONFIG_HOME", ".config")
	if global != "" {
		global = filepath.Join(global, "opencode")
		if err := eachFile(l.openFile, global, false, "config.json", "opencode.json", "opencode.jsonc"); err != nil {
			return err
		}
	}
	if path := l.c.opts.env("OPENCODE_CONFIG"); path != "" {
		if !filepath.IsAbs(path) {
			path = filepath.Join(l.c.opts.Dir, path)
		}
		if _, err := os.Stat(path); err != nil {
			return configError("OPENCODE_CONFIG names "+path+", which cannot be read", "correct or unset the variable")
		}
		if err := l.openFile(path, false); err != nil {
			return err
		}
	}
	for _, dir := range l.dirs {
		if err := l.openDir(dir); err != nil {
			return err
		}
	}
	if global != "" {
		if err := l.markdown(global, false); err != nil {
			return err
		}
	}
	for _, dir := range l.dirs {
		dir = filepath.Join(dir, ".opencode")
		if err := l.openDir(dir); err != nil {
			return err
		}
		if err := l.markdown(dir, true); err != nil {
			return err
		}
	}
	if text := l.c.opts.env("OPENCODE_CONFIG_CONTENT"); text != "" {
		src := &source{name: "$OPENCODE_CONFIG_CONTENT"}
		l.sources = append(l.sources, src)
		n, err := parseJSONC(src, []byte(text))
		if err != nil {
			return err
		}
		return l.addOpen(n)
	}
	return nil
}

func (l *loader) openDir(dir string) error {
	return eachFile(l.openFile, dir, true, "opencode.json", "opencode.jsonc")
}

// eachFile reads files of a directory in order, and stops at the first error.
func eachFile(read func(path string, project bool) error, dir string, project bool, names ...string) error {
	for _, name := range names {
		if err := read(filepath.Join(dir, name), project); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) openFile(path string, project bool) error {
	n, err := l.file(path, project)
	if n == nil || err != nil {
		return err
	}
	return l.addOpen(n)
}

// addOpen checks one of OpenCode's files and merges it over earlier ones.
func (l *loader) addOpen(n *node) error {
	kept := &node{src: n.src, line: n.line, kind: kindObject}
	for _, m := range n.members {
		if err := l.subst.node(m.value); err != nil {
			return err
		}
		switch m.key {
		case "$schema":
		case "tools":
			if err := l.tools(m.value); err != nil {
				return err
			}
		case "permission":
			if m.value.kind != kindString && m.value.kind != kindObject {
				return m.value.mismatch(m.key, "allow, ask, deny or an object with rules")
			}
			l.c.Permission = append(l.c.Permission, PermissionLevel{n.src.name, n.src.project, l.ruled(m.key, m.value).rawJSON()})
		case "instructions":
			if err := l.instructions(m.value); err != nil {
				return err
			}
		case "agent":
			named := lowerKeys(m.value)
			if err := l.setApart(named); err != nil {
				return err
			}
			kept.members = append(kept.members, member{m.key, m.line, named})
		case "model", "default_agent", "provider", "command", "disabled_providers", "enabled_providers":
			kept.members = append(kept.members, m)
		default:
			l.unread(m.key, m)
			continue
		}
		if names := m.value.withheld(); len(names) > 0 && m.key != "provider" { // for a provider this is reported when it is used
			l.drop(m.value, fmt.Sprintf("{env:%s} is left as it stands: a project's file does not read your environment", names[0]))
		}
	}
	l.c.open = merge(l.c.open, kept)
	if !n.src.project {
		l.c.mineOpen = merge(l.c.mineOpen, kept)
	}
	return nil
}

// lowerKeys returns the object with lower-case keys: names of agents ignore case.
func lowerKeys(n *node) *node {
	out := *n
	out.members = nil
	for _, m := range n.members {
		m.key = strings.ToLower(m.key)
		out.set(m)
	}
	return &out
}

// setApart removes the permissions from the agents of a project's file. Merged with the person's, they could replace them.
func (l *loader) setApart(named *node) error {
	if !named.src.project {
		return nil
	}
	for _, m := range named.members {
		n := m.value.get("permission")
		switch {
		case n == nil || n.kind == kindNull:
			continue
		case n.kind != kindString && n.kind != kindObject:
			return n.mismatch("agent."+m.key+".permission", "allow, ask, deny or an object with rules")
		}
		if l.c.AgentPermission == nil {
			l.c.AgentPermission = map[string][]PermissionLevel{}
		}
		l.c.AgentPermission[m.key] = append(l.c.AgentPermission[m.key], PermissionLevel{n.src.name, true, l.ruled("agent."+m.key+".permission", n).rawJSON()})
		m.value.members = slices.DeleteFunc(m.value.members, func(x member) bool { return x.key == "permission" })
	}
	return nil
}

// tools converts OpenCode's older way to switch tools on and off to a permission level.
func (l *loader) tools(n *node) error {
	var tools struct{ m map[string]bool }
	if err := boolMap("tools", func(*struct{ m map[string]bool }) *map[string]bool { return &tools.m }).set(&tools, "tools", n); err != nil {
		return err
	}
	level := &node{src: n.src, line: n.line, kind: kindObject}
	for _, m := range n.members {
		action := "deny"
		if m.value.yes {
			action = "allow"
		}
		level.set(member{m.key, m.line, &node{src: n.src, line: m.line, kind: kindString, text: action}})
	}
	l.c.Permission = append(l.c.Permission, PermissionLevel{n.src.name, n.src.project, l.ruled("permission", level).rawJSON()})
	return nil
}

// instructions collects the entries of all files. Those of a project's file must be inside the project, because their text is sent to a
// model.
func (l *loader) instructions(n *node) error {
	entries, err := n.strs("instructions", false)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if n.src.project && (strings.HasPrefix(e, "~") || strings.Contains(e, "://") || !filepath.IsLocal(e)) {
			l.drop(n, fmt.Sprintf("the instruction %q lies outside the project and is not read", e))
			continue
		}
		if !slices.Contains(l.c.Instructions, e) {
			l.c.Instructions = append(l.c.Instructions, e)
		}
	}
	return nil
}

func (l *loader) drop(n *node, why string) {
	l.dropped = append(l.dropped, fmt.Sprintf("%s:%d: %s", n.src.name, n.line, why))
}

// ownFiles reads Centurion's own files.
func (l *loader) ownFiles() error {
	if dir := l.c.opts.base("XDG_CONFIG_HOME", ".config"); dir != "" {
		if err := eachFile(l.ownFile, filepath.Join(dir, "centurion"), false, "config.json", "config.jsonc"); err != nil {
			return err
		}
	}
	for _, dir := range l.dirs {
		if err := eachFile(l.ownFile, filepath.Join(dir, ".opencode"), true, "centurion.json", "centurion.jsonc"); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) ownFile(path string, project bool) error {
	n, err := l.file(path, project)
	if n == nil || err != nil {
		return err
	}
	subst := l.subst
	subst.own = true
	if err := subst.node(n); err != nil {
		return err
	}
	own, err := decodeOwn(n)
	if err != nil {
		return err
	}
	if project {
		before, err := decodeOwn(l.c.own)
		if err != nil {
			return err
		}
		n.members = slices.DeleteFunc(n.members, func(m member) bool {
			if !loosens(m.key, before, own) {
				return false
			}
			l.drop(m.value, fmt.Sprintf("%q does not count in a file that came with the project; "+
				"set it in ~/.config/centurion/config.jsonc or by its flag", m.key))
			return true
		})
	}
	l.c.own = merge(l.c.own, n)
	return nil
}

func decodeOwn(n *node) (*Own, error) {
	var o Own
	fields := ownFields()
	err := decode(n, "configuration", &o, fields, func(m member) error { return unknownKey(m, "", keysOf(fields)) })
	return &o, err
}

// loosens reports whether a project's value for a key would remove a protection of the person's, from their own files or by default.
func loosens(key string, person, project *Own) bool {
	const defaultCost = 10 // USD, the default of --max-cost
	switch key {
	case "isolation": // shared: agents write straight into the person's files
		return project.Isolation == "shared" && person.Isolation != "shared"
	case "ask":
		return project.Ask == "allow" && person.Ask != "allow" || project.Ask == "ask" && person.Ask == "deny"
	case "yes":
		return project.Yes && !person.Yes
	case "merge":
		return project.Merge && !person.Merge
	case "require_proof":
		return !project.RequireProof && person.RequireProof
	case "detach": // asks would go unseen
		return project.Detach && !person.Detach
	case "sandbox":
		return project.Sandbox != "require" && person.Sandbox == "require" || project.Sandbox == "off" && person.Sandbox != "off"
	case "max_cost":
		return project.MaxCost != nil && *project.MaxCost > *cmp.Or(person.MaxCost, new(float64(defaultCost)))
	case "search": // search queries would go there
		s := project.Search
		return s.Brave+s.Tavily+s.GitHub != "" || s.SearXNG != "" && (person.Search.SearXNG != "" || !loopback(s.SearXNG))
	case "concurrency":
		return project.Concurrency.wider(person.Concurrency)
	case "max_tokens":
		return person.MaxTokens > 0 && project.MaxTokens > person.MaxTokens
	case "max_duration":
		return person.MaxDuration > 0 && project.MaxDuration > person.MaxDuration
	case "max_rounds":
		return person.MaxRounds > 0 && project.MaxRounds > person.MaxRounds
	case "max_tool_calls":
		return person.MaxToolCalls > 0 && project.MaxToolCalls > person.MaxToolCalls
	case "task_budget":
		return looserTask(person.TaskBudget, project.TaskBudget)
	}
	return false
}

func (l *loader) decodeOwn() (err error) {
	own, err := decodeOwn(l.c.own)
	l.c.Own, l.c.Model = *own, cmp.Or(own.Model, l.c.Model)
	return err
}

// decodeOpen reads the merged values of OpenCode's files.
func (l *loader) decodeOpen() error {
	c := l.c
	fields := []field[Config]{
		text("model", func(c *Config) *string { return &c.Model }),
		text("default_agent", func(c *Config) *string { return &c.DefaultAgent }),
		{"provider", l.setProviders},
		{"agent", l.setAgents},
		{"command", l.setCommands},
		list("disabled_providers", false, func(*Config) *[]string { return new([]string) }), // evaluated separately: see disabled
		list("enabled_providers", false, func(*Config) *[]string { return new([]string) }),
	}
	c.Providers, c.Agents, c.Commands = map[string]Provider{}, map[string]Agent{}, map[string]Command{}
	return decode(c.open, "configuration", c, fields, nil)
}

// skip records an unused key below the top level.
func (l *loader) skip(prefix string) func(member) error {
	return func(m member) error {
		l.unread(prefix+m.key, m)
		return nil
	}
}

func (l *loader) notices() {
	l.c.Dropped = l.dropped
	l.c.Notices = append(l.c.ignoredNotices(), l.dropped...)
}
