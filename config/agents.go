package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	yamlparser "github.com/goccy/go-yaml/parser"

	"centurion/agents/instructions"
	"centurion/guard"
	"centurion/trust"
)

func agentFields(l *loader, at string) []field[Agent] {
	return []field[Agent]{
		text("description", func(a *Agent) *string { return &a.Description }),
		choice("mode", func(a *Agent) *string { return &a.Mode }, "primary", "subagent", "all"),
		text("model", func(a *Agent) *string { return &a.Model }),
		text("prompt", func(a *Agent) *string { return &a.Prompt }),
		number("temperature", func(a *Agent) **float64 { return &a.Temperature }),
		integer("maxSteps", 1, 0, func(a *Agent) *int { return &a.Steps }), // the older name
		integer("steps", 1, 0, func(a *Agent) *int { return &a.Steps }),
		list("fallback", true, func(a *Agent) *[]string { return &a.Fallback }),
		boolMap("tools", func(a *Agent) *map[string]bool { return &a.Tools }),
		{"permission", func(a *Agent, key string, n *node) error {
			if n.kind != kindString && n.kind != kindObject {
				return n.mismatch(key, "allow, ask, deny or an object with rules")
			}
			a.Permission = l.ruled(at+".permission", n).rawJSON()
			return nil
		}},
		boolean("disable", func(a *Agent) *bool { return &a.Disable }),
	}
}

func (l *loader) setAgents(c *Config, key string, n *node) error {
	if n.kind != kindObject {
		return n.mismatch(key, kindObject.String())
	}
	for _, m := range n.members {
		a := Agent{Name: m.key, File: m.value.src.name}
		if err := decode(m.value, key+"."+m.key, &a, agentFields(l, key+"."+m.key), l.skip(key+"."+m.key+".")); err != nil {
			return err
		}
		c.Agents[m.key] = a
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

// setApart removes the permissions from the agents of a project's file. Merged with the person's, they could replace them. Of an
// untrusted file nothing else remains: its agents are not in force, but what they may not do is.
func (l *loader) setApart(named *node) error {
	if !named.src.project {
		return nil
	}
	if l.c.AgentPermission == nil {
		l.c.AgentPermission = map[string][]PermissionLevel{}
	}
	for _, m := range named.members {
		at := "agent." + m.key + ".permission"
		switch n := m.value.get("permission"); {
		case n == nil || n.kind == kindNull:
		case n.kind != kindString && n.kind != kindObject:
			return n.mismatch(at, "allow, ask, deny or an object with rules")
		default:
			l.c.AgentPermission[m.key] = append(l.c.AgentPermission[m.key], l.level(at, n))
			m.value.members = slices.DeleteFunc(m.value.members, func(x member) bool { return x.key == "permission" })
		}
		if n := m.value.get("tools"); n != nil && n.kind != kindNull && named.src.foreign() {
			rules, err := switches(n)
			if err != nil {
				return err
			}
			level := l.level(at, rules)
			level.at = nil // a tool that is switched on is part of the agent, which is noted below
			l.c.AgentPermission[m.key] = append(l.c.AgentPermission[m.key], level)
		}
		if named.src.foreign() { // its faults are told now, and not after the yes
			if err := decode(m.value, "agent."+m.key, new(Agent), agentFields(l, "agent."+m.key), l.skip("agent."+m.key+".")); err != nil {
				return err
			}
		}
	}
	named.members = slices.DeleteFunc(named.members, withholdsAgent)
	return nil
}

// withholdsAgent reports whether an agent is not in force because its file is not trusted, and notes it with a sum of its content, so
// that a change is seen.
func withholdsAgent(m member) bool {
	if !m.value.src.foreign() {
		return false
	}
	var keys []string
	for _, setting := range m.value.members {
		keys = append(keys, setting.key)
	}
	if len(keys) > 0 {
		m.value.src.withholds(m.line, trust.Agent, "%s: %s (%.8s)", m.key, strings.Join(keys, ", "), trust.Sum(string(m.value.rawJSON())))
	}
	return true
}

func (l *loader) setCommands(c *Config, key string, n *node) error {
	if n.kind != kindObject {
		return n.mismatch(key, kindObject.String())
	}
	fields := []field[Command]{
		text("template", func(c *Command) *string { return &c.Template }),
		text("description", func(c *Command) *string { return &c.Description }),
		text("agent", func(c *Command) *string { return &c.Agent }),
		text("model", func(c *Command) *string { return &c.Model }),
		boolean("subtask", func(c *Command) *bool { return &c.Subtask }),
	}
	for _, m := range n.members {
		cmd := Command{Name: m.key, File: m.value.src.name}
		if err := decode(m.value, key+"."+m.key, &cmd, fields, l.skip(key+"."+m.key+".")); err != nil {
			return err
		}
		if cmd.Template == "" {
			return m.value.src.at(m.line, "the command %q has no template", m.key)
		}
		if at := cmp.Or(m.value.get("template").foreign(), m.value.foreign()); at != nil {
			cmd.Project = true
			for _, shell := range ShellPart.FindAllStringSubmatch(cmd.Template, -1) {
				at.src.withholds(at.line, trust.Shell, "/%s: %s", m.key, shell[1])
			}
		}
		c.Commands[m.key] = cmd
	}
	return nil
}

// ShellPart matches !`shell` in a command's template; its first group is the script.
var ShellPart = regexp.MustCompile("!`([^`\n]+)`")

// foreign returns a part of the value that comes from an untrusted file of the project, or nil.
func (n *node) foreign() *node {
	for part := range n.all {
		if part.src.foreign() {
			return part
		}
	}
	return nil
}

// markdown reads the agents and commands below a configuration directory. They are named after their files: the path below agent/ or
// command/, without .md, with slashes.
func (l *loader) markdown(dir string, project bool) error {
	for _, k := range []struct{ dir, key, body string }{
		{"agent", "agent", "prompt"}, {"agents", "agent", "prompt"},
		{"command", "command", "template"}, {"commands", "command", "template"},
	} {
		root := filepath.Join(dir, k.dir)
		l.c.opts.Stamps.add(root)
		// A link in place of the directory itself is followed, as in OpenCode; WalkDir follows none below it.
		if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err := fs.WalkDir(os.DirFS(root), ".", func(p string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return readError(err)
			case d.IsDir():
				l.c.opts.Stamps.add(filepath.Join(root, filepath.FromSlash(p))) // which changes when one of its files comes or goes
				return nil
			case path.Ext(p) != ".md":
				return nil
			}
			n, err := l.markdownFile(filepath.Join(root, filepath.FromSlash(p)), k.body, project)
			if n == nil || err != nil {
				return err
			}
			name := strings.TrimSuffix(p, ".md")
			if k.key == "agent" {
				name = strings.ToLower(name)
			}
			one := &node{src: n.src, line: 1, kind: kindObject, members: []member{{name, 1, n}}}
			if k.key == "agent" {
				if err := l.setApart(one); err != nil {
					return err
				}
			}
			l.c.open = merge(l.c.open, &node{src: n.src, line: 1, kind: kindObject, members: []member{{k.key, 1, one}}})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// inside reports whether a file, with links resolved, is inside the project. The content of a project's Markdown is sent to a model, so
// a repository's link must not reach the person's own files.
func (l *loader) inside(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) // then there is nothing to read
	}
	root, err := filepath.EvalSymlinks(l.subst.root)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(root, real)
	return err == nil && filepath.IsLocal(rel)
}

// markdownFile reads YAML between two lines of --- and the text after it, which becomes the value of body.
func (l *loader) markdownFile(path, body string, project bool) (*node, error) {
	l.c.opts.Stamps.add(path)
	if project && !l.inside(path) {
		l.dropped = append(l.dropped, l.display(path)+": not read, because it is a link to a place outside the project")
		return nil, nil
	}
	text, ok, err := readText(path)
	if err != nil {
		return nil, readError(err)
	}
	if !ok {
		return nil, nil
	}
	src := l.source(path, project)
	if project {
		l.judge(src, text)
	}
	front, rest, line, err := splitFrontmatter(src, strings.TrimPrefix(text, "\ufeff"))
	if err != nil {
		return nil, err
	}
	n := &node{src: src, line: 1, kind: kindObject}
	if front != "" {
		if n, err = parseYAML(src, front); err != nil {
			return nil, err
		}
	}
	if rest = strings.TrimSpace(rest); rest != "" {
		n.set(member{body, line, &node{src: src, line: line, kind: kindString, text: rest, raw: rest}})
	}
	return n, nil
}

// splitFrontmatter returns the frontmatter, the text after it and the line number of that text. The frontmatter keeps an empty first
// line for the opening ---, so that its line numbers are those of the file.
func splitFrontmatter(src *source, text string) (front, rest string, line int, err error) {
	first, _, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t\r") != "---" {
		return "", text, 1, nil
	}
	var b strings.Builder
	for l := range strings.Lines(text) {
		line++
		switch {
		case line == 1:
			b.WriteByte('\n')
		case strings.TrimRight(l, " \t\r\n") == "---":
			skipped := b.Len() - 1 + len(first) + 1 + len(l)
			return b.String(), text[skipped:], line + 1, nil
		default:
			b.WriteString(l)
		}
	}
	return "", "", 0, src.fault(1, "add a line with three dashes before the text", "the frontmatter is not closed by a second line ---")
}

// parseYAML parses a frontmatter into the same nodes as JSON. Anchors, aliases and tags are refused: no agent needs them, and an alias
// can make a small file very large.
func parseYAML(src *source, text string) (*node, error) {
	var file *ast.File
	err := guard.Call("read frontmatter", func() (err error) {
		file, err = yamlparser.ParseBytes([]byte(text), 0)
		return err
	})
	if err != nil {
		line, msg := 1, err.Error()
		if ye, ok := errors.AsType[yaml.Error](err); ok {
			msg = ye.GetMessage()
			if t := ye.GetToken(); t != nil && t.Position != nil {
				line = t.Position.Line
			}
		}
		return nil, src.fault(line, "put values that hold a colon or a # into quotes", "the frontmatter is not valid YAML: %s", msg)
	}
	y := yamlReader{src: src}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		n, err := y.node(doc.Body, 0)
		if err != nil {
			return nil, err
		}
		if n.kind != kindObject {
			return nil, src.at(n.line, "the frontmatter must hold lines of the form key: value, not %s", n.kind)
		}
		return n, nil
	}
	return &node{src: src, line: 1, kind: kindObject}, nil
}

type yamlReader struct{ src *source }

func (y yamlReader) node(v ast.Node, depth int) (*node, error) {
	n := &node{src: y.src, line: 1}
	if v == nil {
		return n, nil
	}
	if t := v.GetToken(); t != nil && t.Position != nil {
		n.line = t.Position.Line
	}
	if depth > maxDepth {
		return nil, y.src.at(n.line, "values are nested deeper than %d levels", maxDepth)
	}
	switch v := v.(type) {
	case *ast.NullNode:
	case *ast.BoolNode:
		n.kind, n.yes = kindBool, v.Value
	case *ast.IntegerNode:
		n.kind, n.text = kindNumber, fmt.Sprint(v.Value)
	case *ast.FloatNode:
		n.kind, n.text = kindNumber, strconv.FormatFloat(v.Value, 'g', -1, 64)
	case *ast.StringNode:
		n.kind, n.text, n.raw = kindString, v.Value, v.Value
	case *ast.LiteralNode:
		n.kind = kindString
		if v.Value != nil {
			n.text, n.raw = v.Value.Value, v.Value.Value
		}
	case *ast.SequenceNode:
		n.kind = kindArray
		for _, e := range v.Values {
			c, err := y.node(e, depth+1)
			if err != nil {
				return nil, err
			}
			n.elems = append(n.elems, c)
		}
	case *ast.MappingNode:
		return n, y.members(n, v.Values, depth)
	case *ast.MappingValueNode:
		return n, y.members(n, []*ast.MappingValueNode{v}, depth)
	default:
		return nil, y.src.at(n.line, "the frontmatter uses %s, which is not supported here", v.Type())
	}
	return n, nil
}

func (y yamlReader) members(n *node, values []*ast.MappingValueNode, depth int) error {
	n.kind = kindObject
	for _, m := range values {
		key, err := y.node(m.Key, depth+1)
		if err != nil {
			return err
		}
		name := key.text
		if key.kind == kindBool { // `on: …` is a key, although YAML 1.1 reads a boolean
			name = m.Key.String()
		}
		v, err := y.node(m.Value, depth+1)
		if err != nil {
			return err
		}
		n.set(member{name, key.line, v})
	}
	return nil
}

// Finder returns the finder of the instructions and skills of the project and the person.
func (c *Config) Finder() *instructions.Finder {
	dirs := upwards(c.opts.Dir)
	cfg := instructions.Config{Dir: c.opts.Dir, Above: dirs[:len(dirs)-1], Home: c.opts.home(), Entries: c.Instructions}
	if base := c.opts.base("XDG_CONFIG_HOME", ".config"); base != "" {
		cfg.OpenCode = filepath.Join(base, "opencode")
	}
	return instructions.New(cfg)
}
