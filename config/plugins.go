package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"centurion"
	"centurion/plugin"
	"centurion/trust"
)

// PluginDir returns the directory in which `centurion plugin add` installs packages; "" without a state directory.
func (c *Config) PluginDir() string {
	state, err := c.opts.stateDir()
	if err != nil {
		return ""
	}
	return filepath.Join(state, "plugins")
}

// plugins collects the entries of all files. Those of an untrusted file do not count.
func (l *loader) plugins(n *node) error {
	if n.kind != kindArray {
		return n.mismatch("plugin", "an array of names")
	}
	var err error
	base := l.c.opts.Dir
	if n.src.path != "" {
		base = filepath.Dir(n.src.path)
	}
	for _, e := range n.elems {
		if pair := e.kind == kindArray && (len(e.elems) == 1 || len(e.elems) == 2) && e.elems[0].kind == kindString; e.kind != kindString && !pair {
			return e.mismatch("plugin", `a name or ["name", {options}]`)
		}
		spec := e.spec()
		l.c.entries = append(l.c.entries, PluginEntry{File: e.src.path, At: fmt.Sprintf("%s:%d", e.src.name, e.line), Spec: spec.text, raw: spec.raw})
		withheld := e.src.withholds(e.line, trust.Plugin, "%s", e.rawJSON())
		s := plugin.Find(e.rawJSON(), base, l.c.PluginDir())
		if e.src.project && s.Local && s.Err == nil {
			content, _, err := readText(s.File)
			if s.Err = err; err == nil && !l.ships(&s, content) {
				continue
			}
		}
		if withheld {
			continue
		}
		if name, ok := strings.CutPrefix(s.Spec, nativePrefix); ok {
			if s, err = native(e, name); err != nil {
				return err
			}
		}
		if i := slices.IndexFunc(l.c.Plugins, func(o plugin.Source) bool { return o.Name == s.Name && o.File == s.File }); i >= 0 {
			l.c.Plugins[i] = s // the nearest file's options count
			continue
		}
		l.c.Plugins = append(l.c.Plugins, s)
	}
	return nil
}

// ships judges a file of the project that is a plugin, by its own content, and reports whether it counts.
func (l *loader) ships(s *plugin.Source, content string) bool {
	i := slices.IndexFunc(l.c.sources, func(o *source) bool { return o.path == s.File })
	if i < 0 { // else several files name it
		i = len(l.c.sources)
		l.judge(l.source(s.File, true), content)
	}
	src := l.c.sources[i]
	s.Sum = src.sum
	return !src.withholds(1, trust.Plugin, "%s", src.name)
}

// nativePrefix begins the spec of a plugin that is a program of its own: ["exec:NAME", {"command": ["PROGRAM", "ARGUMENT"]}].
const nativePrefix = "exec:"

// native reads the entry of a native plugin.
func native(e *node, name string) (plugin.Source, error) {
	s := plugin.Source{Name: name, Spec: nativePrefix + name, Local: true}
	var err error
	if e.kind == kindArray && len(e.elems) == 2 {
		if command := e.elems[1].get("command"); command != nil {
			s.Command, err = command.strs("command", false)
		}
	}
	if err == nil && (len(s.Command) == 0 || s.Command[0] == "" || name == "") {
		err = e.src.fault(e.line, `write ["exec:words", {"command": ["python3", "words.py"]}]`, "plugin: %q names no command", s.Spec)
	}
	return s, err
}

// scanPlugins adds the files in a configuration directory that are plugins or tools. Each of a project's is trusted by itself.
func (l *loader) scanPlugins(dir string, project bool) error {
	for _, s := range plugin.Scan(dir) {
		content, ok, err := readText(s.File)
		if err != nil || !ok || slices.Contains(l.c.Sources, s.File) {
			continue // what is no text is no plugin, and the configuration may have named it
		}
		if !project {
			l.source(s.File, false)
		} else if !l.ships(&s, content) {
			continue
		}
		l.c.Plugins = append(l.c.Plugins, s)
	}
	return nil
}

// PluginsNamed returns the entries that a person means by a whole spec or by the name in it. Those are of one plugin, else it is an error.
func (c *Config) PluginsNamed(arg string) (named []PluginEntry, err error) {
	fail := func(hint, format string, a ...any) ([]PluginEntry, error) {
		return nil, &centurion.Error{Op: "plugin " + arg, Kind: centurion.KindUsage, Msg: fmt.Sprintf(format, a...), Hint: hint}
	}
	name, version, _ := plugin.Package(arg)
	for _, e := range c.entries {
		short, _, ok := plugin.Package(e.Spec)
		if !ok {
			short = strings.TrimPrefix(baseName(e.Spec), nativePrefix)
		}
		switch {
		case e.Spec != arg && short != name:
		case e.File == "":
			return fail("change the variable OPENCODE_CONFIG_CONTENT", "%s is named in a variable", e.Spec)
		case e.Spec != arg && version != "":
			return fail("without the version: "+short, "%s names %s", e.At, e.Spec)
		case len(named) > 0 && !ok && e.Spec != named[0].Spec:
			return fail("name one of them", "it means %s (%s) and %s (%s)", named[0].Spec, named[0].At, e.Spec, e.At)
		default:
			named = append(named, e)
		}
	}
	for _, file := range c.Sources {
		if len(named) == 0 && slices.Contains([]string{".js", ".ts"}, filepath.Ext(file)) && slices.Contains([]string{baseName(file), filepath.Base(file), file}, arg) {
			return fail("delete the file", "it is no entry of a configuration but a file: %s", file)
		}
	}
	return named, nil
}

// baseName is the name of a file without its ending.
func baseName(file string) string {
	return strings.TrimSuffix(filepath.Base(filepath.FromSlash(file)), filepath.Ext(file))
}
