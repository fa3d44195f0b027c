package config

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"centurion"
	"centurion/guard/durable"
)

// PluginEntry is an entry of "plugin" in a configuration file, trusted or not.
type PluginEntry struct {
	File string // absolute; "" is the variable OPENCODE_CONFIG_CONTENT
	At   string // the file and the line, for people
	Spec string

	raw string // the spec as written
}

// PluginEntries returns the entries of all files, in their order.
func (c *Config) PluginEntries() []PluginEntry { return c.entries }

// PluginFile returns the file in which a new plugin is named: the person's, or that of the project.
func (c *Config) PluginFile(project bool) string {
	dir, below := c.opts.base("XDG_CONFIG_HOME", ".config"), []string{"opencode"}
	if project {
		dir, below = c.opts.Dir, []string{"", ".opencode"}
	}
	for _, sub := range below {
		for _, name := range []string{"opencode.jsonc", "opencode.json"} {
			if file := filepath.Join(dir, sub, name); slices.Contains(c.Sources, file) {
				return file
			}
		}
	}
	return filepath.Join(dir, below[0], "opencode.json")
}

// Replace writes another spec into an entry, whose options stay, or removes it if spec is "". Comments and everything else stay as they are.
func (e PluginEntry) Replace(spec string) error {
	return edit(e.File, func(text []byte, root *node) ([]byte, error) {
		all := root.get("plugin")
		for i := 0; all != nil && i < len(all.elems); i++ {
			switch at := all.elems[i].spec(); {
			case at == nil || at.raw != e.raw:
			case spec != "":
				out := slices.Replace(slices.Clone(text), at.from, at.to, quoted(spec)...)
				at.text = spec
				return out, nil
			default:
				out := without(text, all, i)
				all.elems = slices.Delete(all.elems, i, i+1)
				return out, nil
			}
		}
		return nil, configError(e.At+" has changed", "try again")
	})
}

// AddPlugin names a plugin in a file, which is made if it does not exist.
func AddPlugin(file, spec string) error {
	return edit(file, func(text []byte, root *node) ([]byte, error) {
		value, all := quoted(spec), root.get("plugin")
		added := &node{kind: kindString, text: spec}
		at := root.from + 1
		switch {
		case all == nil && root.to == 0: // it has no value
			if text = bytes.TrimRight(text, " \t\r\n"); len(text) > 0 {
				text = append(text, '\n') // it may be a comment
			}
			text, at, value = append(text, "{}\n"...), len(text)+1, slices.Concat([]byte("\n  \"plugin\": ["), value, []byte("]\n"))
		case all == nil:
			end := ", "
			if len(root.members) == 0 {
				end = ""
			} else if from := skip(text, at); indent(text, from) != "" {
				at, end = from, ",\n"+indent(text, from)[1:]
			}
			value = slices.Concat([]byte(`"plugin": [`), value, []byte("]"+end))
		case all.kind != kindArray:
			return nil, all.mismatch("plugin", "an array of names")
		case len(all.elems) == 0:
			at = all.from + 1
		default:
			last := all.elems[len(all.elems)-1]
			between := indent(text, last.from)
			if between == "" {
				between = " "
			}
			at, value = last.to, append([]byte(","+between), value...)
		}
		if all == nil {
			all = &node{kind: kindArray}
			root.members = append([]member{{key: "plugin", value: all}}, root.members...)
		}
		all.elems = append(all.elems, added)
		return slices.Insert(slices.Clone(text), at, value...), nil
	})
}

// spec returns the string of an entry that names the plugin, or nil.
func (n *node) spec() *node {
	if n.kind == kindArray && len(n.elems) > 0 {
		n = n.elems[0]
	}
	if n.kind != kindString {
		return nil
	}
	return n
}

func quoted(s string) []byte {
	b, _ := json.Marshal(s) // a string always can
	return b
}

// edit changes the text of a file. change also changes the root, with which the new text is compared before it is written.
func edit(file string, change func(text []byte, root *node) ([]byte, error)) error {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real // a link stays one
	}
	perm := fs.FileMode(0o600)
	if info, err := os.Stat(file); err == nil {
		perm = info.Mode().Perm()
	}
	whole, _, err := readText(file)
	if err != nil {
		return readError(err)
	}
	text, bom := strings.CutPrefix(whole, "\xef\xbb\xbf")
	src := &source{path: file, name: file}
	root, err := parseJSONC(src, []byte(text))
	if err != nil {
		return err
	}
	out, err := change([]byte(text), root)
	if err != nil {
		return err
	}
	if now, err := parseJSONC(src, out); err != nil || !bytes.Equal(now.rawJSON(), root.rawJSON()) {
		return configError(file+" cannot be edited here", "change its \"plugin\" yourself")
	}
	if bom {
		out = append([]byte("\xef\xbb\xbf"), out...)
	}
	err = os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = durable.Replace(file, out, perm)
	}
	if err != nil {
		return &centurion.Error{Op: "write config", Kind: centurion.KindDisk, Err: err}
	}
	return nil
}

// without returns text without an element of an array: its line, where nothing else is there, and one comma.
func without(text []byte, all *node, i int) []byte {
	e := all.elems[i]
	from, to, comma := e.from, e.to, -1
	if at := skip(text, e.to); text[at] == ',' {
		if comma = at; len(bytes.TrimSpace(text[e.to:at])) == 0 {
			to = at + 1
		}
	} else if i > 0 {
		comma = skip(text, all.elems[i-1].to)
	}
	line, end := bytes.LastIndexByte(text[:from], '\n')+1, bytes.IndexByte(text[to:], '\n')
	blank := func(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }
	switch {
	case line > 0 && end >= 0 && blank(text[line:from]) && blank(text[to:to+end]):
		from, to = line, to+end+1
	case comma >= from:
		for to < len(text) && (text[to] == ' ' || text[to] == '\t') {
			to++
		}
	default:
		for from > 0 && (text[from-1] == ' ' || text[from-1] == '\t') {
			from--
		}
	}
	out := slices.Delete(slices.Clone(text), from, to)
	switch {
	case comma < 0 || comma >= from && comma < to:
		return out
	case comma > from:
		comma -= to - from
	}
	return slices.Delete(out, comma, comma+1)
}

// skip returns the offset of what follows spaces and comments.
func skip(text []byte, at int) int {
	for ; at < len(text); at++ {
		switch rest := text[at:]; {
		case bytes.HasPrefix(rest, []byte("//")):
			at += max(bytes.IndexByte(rest, '\n'), 1)
		case bytes.HasPrefix(rest, []byte("/*")):
			at += bytes.Index(rest[2:], []byte("*/")) + 3
		case rest[0] > ' ':
			return at
		}
	}
	return at
}

// indent returns the line break and the spaces before what begins a line, or "".
func indent(text []byte, at int) string {
	line := bytes.LastIndexByte(text[:at], '\n')
	if line < 0 || len(bytes.TrimSpace(text[line:at])) > 0 {
		return ""
	}
	return string(text[line:at])
}
