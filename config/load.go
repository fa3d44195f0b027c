package config

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"centurion"
	"centurion/provider/catalog"
	"centurion/trust"
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
	state, err := o.stateDir()
	if err == nil {
		state = ProjectDir(state, dir)
		l.state = state
	}
	l.stampKeys(state)
	if l.c.Trust, err = trust.Open(state); err != nil {
		return nil, err
	}
	for _, step := range []func() error{l.openCode, l.ownFiles, l.decodeOpen, l.withholdChoices, l.decodeOwn, l.keepRules, l.offered} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	l.notices()
	return l.c, nil
}

// stampKeys notes what counts beside the configuration's own files: what the person trusts, and their keys.
func (l *loader) stampKeys(state string) {
	keys := NewKeys(l.c.opts)
	l.c.opts.Stamps.add(keys.openPath())
	if own, err := keys.ownPath(); err == nil {
		l.c.opts.Stamps.add(own)
		l.c.opts.Stamps.add(trust.Path(state))
	}
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
	table   []openKey
	dropped []string // notices
	state   string   // the directory of the project in the state directory; "" without one
	mineOwn *node    // Centurion's own keys without those of the project's untrusted files
}

// source registers a read file.
func (l *loader) source(path string, project bool) *source {
	s := &source{path: path, name: l.display(path), project: project}
	l.c.sources = append(l.c.sources, s)
	l.c.Sources = append(l.c.Sources, path)
	return s
}

// display shortens a path for people: relative to the project, or with ~ for the home directory.
func (l *loader) display(path string) string {
	if rel := within(l.c.opts.Dir, path); rel != "" {
		return rel
	}
	if home := l.c.opts.home(); home != "" {
		if rel := within(home, path); rel != "" {
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
	l.c.opts.Stamps.add(path)
	text, ok, err := readText(path)
	if err != nil {
		return nil, readError(err)
	}
	if !ok {
		return nil, nil
	}
	n, err := parseJSONC(l.source(path, project), []byte(text))
	if n == nil || !project {
		return n, err
	}
	// What a file includes is part of its content.
	for part := range n.all {
		for _, m := range reference.FindAllStringSubmatch(part.text, -1) {
			if m[1] == "file" {
				included, err := l.subst.file(part, strings.TrimSpace(m[2]))
				if err != nil {
					return nil, err
				}
				text += "\x00" + included
			}
		}
	}
	l.judge(n.src, text)
	return n, nil
}

// judge finds out whether a person has trusted a file of the project with this content.
func (l *loader) judge(s *source, content string) {
	s.sum = trust.Sum(content)
	s.trusted = l.c.Trust.Trusts(filepath.ToSlash(s.name), s.sum)
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
		path, project, err := l.inProject(path, global)
		if err != nil {
			return configError("OPENCODE_CONFIG names "+path+", which cannot be read", "correct or unset the variable")
		}
		if err := l.openFile(path, project); err != nil {
			return err
		}
	}
	for _, dir := range l.dirs {
		if err := l.openDir(dir); err != nil {
			return err
		}
	}
	if global != "" {
		if err := cmp.Or(l.markdown(global, false), l.scanPlugins(global, false)); err != nil {
			return err
		}
	}
	for _, dir := range l.dirs {
		dir = filepath.Join(dir, ".opencode")
		if err := l.openDir(dir); err != nil {
			return err
		}
		if err := cmp.Or(l.markdown(dir, true), l.scanPlugins(dir, true)); err != nil {
			return err
		}
	}
	if text := l.c.opts.env("OPENCODE_CONFIG_CONTENT"); text != "" {
		src := &source{name: "$OPENCODE_CONFIG_CONTENT"}
		n, err := parseJSONC(src, []byte(text))
		if err != nil {
			return err
		}
		return l.addOpen(n)
	}
	return nil
}

// inProject reports whether a file that the person named lies in the project, its links followed: the repository brought it all the same.
// Then it returns its path there. Files of the person's own directory are theirs, also where their home is the repository.
func (l *loader) inProject(path, own string) (string, bool, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path, false, err
	}
	if dir, err := filepath.EvalSymlinks(own); err == nil && within(dir, real) != "" {
		return path, false, nil
	}
	root, err := filepath.EvalSymlinks(l.dirs[0])
	rel := within(root, real)
	if err != nil || rel == "" {
		return path, false, err
	}
	return filepath.Join(l.dirs[0], rel), true, nil
}

// within returns a path relative to a directory; "" if it lies elsewhere.
func within(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return ""
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
			l.c.Permission = append(l.c.Permission, l.level(m.key, m.value))
		case "plugin":
			if err := l.plugins(m.value); err != nil {
				return err
			}
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
		case "model", "default_agent", "provider", "command", "mcp", "disabled_providers", "enabled_providers":
			kept.members = append(kept.members, m)
		default:
			l.unread(m.key, m)
			continue
		}
		if m.key != "provider" {
			withholdVariables(m)
		}
	}
	l.c.open = merge(l.c.open, kept)
	if !n.src.foreign() {
		l.c.mineOpen = merge(l.c.mineOpen, kept)
	}
	return nil
}

// withholdVariables notes the variables that a value would read if its file were trusted.
func withholdVariables(m member) {
	for _, p := range m.value.withheld() {
		p.at.src.withholds(p.at.line, trust.Variable, "%s reads {env:%s}", m.key, p.name)
	}
}

// level returns the permission level of a value.
func (l *loader) level(path string, n *node) PermissionLevel {
	n = l.ruled(path, n)
	return PermissionLevel{File: n.src.name, Project: n.src.foreign(), Raw: n.rawJSON(), at: n, src: n.src}
}

// tools converts OpenCode's older way to switch tools on and off to a permission level.
func (l *loader) tools(n *node) error {
	level, err := switches(n)
	if err == nil {
		l.c.Permission = append(l.c.Permission, l.level("permission", level))
	}
	return err
}

// switches returns the rules for tools that are switched on and off.
func switches(n *node) (*node, error) {
	var tools struct{ m map[string]bool }
	if err := boolMap("tools", func(*struct{ m map[string]bool }) *map[string]bool { return &tools.m }).set(&tools, "tools", n); err != nil {
		return nil, err
	}
	level := &node{src: n.src, line: n.line, kind: kindObject}
	for _, m := range n.members {
		action := "deny"
		if m.value.yes {
			action = "allow"
		}
		level.set(member{m.key, m.line, &node{src: n.src, line: m.line, kind: kindString, text: action}})
	}
	return level, nil
}

// instructions collects the entries of all files. Those of an untrusted file must be inside the project, because their text is sent to
// a model.
func (l *loader) instructions(n *node) error {
	entries, err := n.strs("instructions", false)
	if err != nil {
		return err
	}
	for _, e := range entries {
		outside := strings.HasPrefix(e, "~") || strings.Contains(e, "://") || !filepath.IsLocal(e)
		if outside && n.src.withholds(n.line, trust.Setting, "instructions: %q, which lies outside the project", e) {
			continue
		}
		if !slices.Contains(l.c.Instructions, e) {
			l.c.Instructions = append(l.c.Instructions, e)
		}
	}
	return nil
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
	if err := l.subst.node(n); err != nil {
		return err
	}
	own, err := decodeOwn(n)
	if err != nil {
		return err
	}
	before, err := decodeOwn(l.c.own)
	if err != nil {
		return err
	}
	n.members = slices.DeleteFunc(n.members, func(m member) bool {
		withholdVariables(m)
		return loosens(m.key, before, own) && n.src.withholds(m.line, trust.Setting, "%s: %s", m.key, m.value.rawJSON())
	})
	n.get("verify").withholdCommands(trust.Verify)
	n.get("worktree").get("setup").withholdCommands(trust.Setup)
	l.c.own = merge(l.c.own, n)
	if !n.src.foreign() {
		l.mineOwn = merge(l.mineOwn, n)
	}
	return nil
}

// withholdCommands notes the commands of a list that would run without a question if its file were trusted.
func (n *node) withholdCommands(kind trust.Kind) {
	for part := range n.all {
		if part.kind == kindString {
			part.src.withholds(part.line, kind, "%s", part.text)
		}
	}
}

func decodeOwn(n *node) (*Own, error) {
	var o Own
	fields := ownFields()
	err := decode(n, "configuration", &o, fields, func(m member) error { return unknownKey(m, "", keysOf(fields)) })
	return &o, err
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
		{"mcp", l.setServers},
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
