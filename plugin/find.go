package plugin

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"centurion"
)

const hintAdd = "run `centurion plugin add`"

// Kind says what a file is.
type Kind string

// The kinds of files.
const (
	Hooks Kind = "plugin"
	Tool  Kind = "tool" // its exports are tools, named like the file
)

// Source is a plugin before it is started.
type Source struct {
	Name    string // for people; a package's name, or the file's
	Spec    string // as configured
	Options json.RawMessage
	Kind    Kind   // "" is Hooks
	File    string // the resolved entry file, absolute
	Version string // of its package; "" for a file
	Local   bool   // a file of the project, which may import what plugins import without having it installed
	Sum     string // the SHA-256 of the content of File that a person has trusted, in hexadecimal; "" if it needs no trust
	// Command runs a native plugin: a program that speaks the protocol itself. File is not looked at then.
	Command []string
	Err     error // why it cannot be started; it is shown as Failed
}

// exact is a version that names one release.
var exact = centurion.Pattern(`^\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$`)

// packageName is a name that npm allows; it never leads out of node_modules.
var packageName = centurion.Pattern(`^(@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*$`)

// Find resolves an entry of "plugin" in a configuration file: "name@version", a file URL, a path relative to base, or [spec, options].
// Packages are looked for in node_modules of an install directory. What is wrong is in the Err of the source.
func Find(entry json.RawMessage, base, modules string) Source {
	var s Source
	var pair []json.RawMessage
	if json.Unmarshal(entry, &s.Spec) != nil {
		if json.Unmarshal(entry, &pair) != nil || len(pair) == 0 || len(pair) > 2 || json.Unmarshal(pair[0], &s.Spec) != nil {
			s.Spec = centurion.Clip(string(entry), 100)
			s.Err = s.wrong("is neither a name nor [name, options]", `write "name@version", a file:// URL or ["name", {…}]`)
			return s
		}
		if len(pair) == 2 {
			s.Options = pair[1]
		}
	}
	if path, isFile := filePath(s.Spec, base); isFile {
		s.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		s.Local = true
		s.File, s.Err = path, nil
		if info, err := os.Stat(path); err != nil {
			s.Err = s.wrong("is not there: "+path, "correct the path in the configuration, or remove the entry")
		} else if info.IsDir() {
			s.Name = filepath.Base(path)
			s.entry(path)
		}
		return s
	}
	name, version, ok := Package(s.Spec)
	if s.Name = name; !ok {
		s.Err = s.wrong("is no name of a package", `write "name@version" or a file:// URL`)
		return s
	}
	dir := filepath.Join(modules, "node_modules", filepath.FromSlash(name))
	if _, err := os.Stat(filepath.Join(dir, "package.json")); err != nil {
		s.Err = s.wrong("is not installed", hintAdd)
		return s
	}
	if s.entry(dir); s.Err == nil && exact().MatchString(version) && s.Version != version {
		s.Err = s.wrong(fmt.Sprintf("is installed as %s", cmp.Or(s.Version, "another version")), hintAdd)
	}
	return s
}

// Package returns the name and the version of a spec, which may be "". ok is false if the name is no name of a package.
func Package(spec string) (name, version string, ok bool) {
	if name = spec; strings.LastIndex(spec, "@") > 0 {
		at := strings.LastIndex(spec, "@")
		name, version = spec[:at], spec[at+1:]
	}
	return name, version, packageName().MatchString(name)
}

func (s *Source) wrong(what, hint string) error {
	return &centurion.Error{Op: "plugin", Kind: centurion.KindConfig, Msg: fmt.Sprintf("%s %s", s.Spec, what), Hint: hint}
}

// changed says that the file is no longer what a person has trusted, or returns nil. A process that ends is started with the file of that time.
func (s *Source) changed() error {
	if s.Sum == "" {
		return nil
	}
	b, err := os.ReadFile(s.File)
	if sum := sha256.Sum256(b); err != nil || hex.EncodeToString(sum[:]) != s.Sum {
		return s.wrong("has changed since it was trusted", "look at it, and trust it: centurion trust")
	}
	return nil
}

// filePath returns the path of a spec that names a file.
func filePath(spec, base string) (string, bool) {
	if strings.HasPrefix(spec, "file:") {
		u, err := url.Parse(spec)
		if err != nil {
			return spec, true
		}
		path := filepath.FromSlash(u.Path)
		if filepath.VolumeName(strings.TrimPrefix(path, `\`)) != "" { // file:///C:/x
			path = strings.TrimPrefix(path, `\`)
		}
		return path, true
	}
	if filepath.IsAbs(spec) {
		return filepath.Clean(spec), true
	}
	if strings.HasPrefix(spec, "./") || strings.HasPrefix(spec, "../") {
		return filepath.Join(base, filepath.FromSlash(spec)), true
	}
	return "", false
}

// entry finds the file of a package that OpenCode would load: exports["./server"], else main, else an index file.
func (s *Source) entry(dir string) {
	var p struct {
		Name    string                     `json:"name"`
		Version string                     `json:"version"`
		Main    string                     `json:"main"`
		Exports map[string]json.RawMessage `json:"exports"`
	}
	b, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err == nil {
		err = json.Unmarshal(b, &p)
		if _, is := err.(*json.UnmarshalTypeError); is {
			err = nil // exports may be a string, which is not looked at
		}
	}
	if err != nil {
		s.Err = s.wrong("has a package.json that cannot be read: "+err.Error(), hintAdd)
		return
	}
	s.Name, s.Version = cmp.Or(p.Name, s.Name), p.Version
	candidates := []string{"index.js", "index.mjs", "index.cjs", "index.ts"}
	if main := strings.TrimSpace(p.Main); main != "" {
		candidates = []string{main, main + ".js", main + "/index.js"}
	}
	if server := target(p.Exports["./server"]); server != "" {
		candidates = []string{server}
	}
	for _, name := range candidates {
		file, err := filepath.EvalSymlinks(filepath.Join(dir, filepath.FromSlash(name)))
		if info, serr := os.Stat(file); err != nil || serr != nil || info.IsDir() {
			continue
		}
		root, err := filepath.EvalSymlinks(dir)
		if rel, rerr := filepath.Rel(root, file); err != nil || rerr != nil || !filepath.IsLocal(rel) {
			s.Err = s.wrong(fmt.Sprintf("has an entry file outside of its package: %s", name), "remove it from the configuration")
			return
		}
		s.File = file
		return
	}
	s.Err = s.wrong(fmt.Sprintf("has no entry file for a server, such as %s", candidates[0]), "it may be a plugin for OpenCode's terminal client, which does not run here")
}

// target reads an export: a path, or conditions with one.
func target(raw json.RawMessage) string {
	var path string
	var conditions struct {
		Import  json.RawMessage `json:"import"`
		Default json.RawMessage `json:"default"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &path) == nil || json.Unmarshal(raw, &conditions) != nil {
		return path
	}
	return cmp.Or(target(conditions.Import), target(conditions.Default))
}

// Scan finds the plugins and tools in a directory of OpenCode's, such as .opencode: {plugin,plugins}/*.{ts,js} and
// {tool,tools}/*.{ts,js}, by name.
func Scan(dir string) (out []Source) {
	for _, sub := range []string{"plugin", "plugins", "tool", "tools"} {
		entries, _ := os.ReadDir(filepath.Join(dir, sub)) // sorted
		for _, e := range entries {
			name, ext := strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())), filepath.Ext(e.Name())
			if e.IsDir() || !slices.Contains([]string{".ts", ".js"}, ext) || strings.HasSuffix(name, ".d") {
				continue
			}
			file := filepath.Join(dir, sub, e.Name())
			s := Source{Name: name, Spec: file, File: file, Kind: Hooks, Local: true}
			if strings.HasPrefix(sub, "tool") {
				s.Kind = Tool
			}
			out = append(out, s)
		}
	}
	return out
}
