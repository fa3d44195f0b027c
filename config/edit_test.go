package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"centurion"
)

// Each edit changes one entry, and leaves comments and the form of the file.
func TestEditPlugins(t *testing.T) {
	for name, test := range map[string]struct {
		text, old, spec, want string // without old, spec is added
	}{
		"add to nothing":          {"", "", "a@1.0.0", "{\n  \"plugin\": [\"a@1.0.0\"]\n}\n"},
		"add to comments":         {"// mine", "", "a", "// mine\n{\n  \"plugin\": [\"a\"]\n}\n"},
		"add to an empty object":  {"{}", "", "a", `{"plugin": ["a"]}`},
		"add to a line":           {`{"model": "x/y"}`, "", "a", `{"plugin": ["a"], "model": "x/y"}`},
		"add to lines":            {"{\n\t// the model\n\t\"model\": \"x/y\", // good\n}\n", "", "a", "{\n\t// the model\n\t\"plugin\": [\"a\"],\n\t\"model\": \"x/y\", // good\n}\n"},
		"add to an empty array":   {`{"plugin": [ /* none */ ]}`, "", "a", `{"plugin": ["a" /* none */ ]}`},
		"add to a short array":    {`{"plugin": ["b"]}`, "", "a", `{"plugin": ["b", "a"]}`},
		"add to a long array":     {"{\"plugin\": [\n  \"b\", // b, the first\n]}", "", "a", "{\"plugin\": [\n  \"b\",\n  \"a\", // b, the first\n]}"},
		"remove the only one":     {`{"plugin": ["a"]}`, "a", "", `{"plugin": []}`},
		"remove the first":        {`{"plugin": ["a", "b"]}`, "a", "", `{"plugin": ["b"]}`},
		"remove the last":         {`{"plugin": ["b", "a"]}`, "a", "", `{"plugin": ["b"]}`},
		"remove in the middle":    {`{"plugin": ["b","a","c"]}`, "a", "", `{"plugin": ["b","c"]}`},
		"remove a line":           {"{\"plugin\": [\n  // first, b\n  \"b\",\n  \"a\",\n  \"c\"\n]}", "a", "", "{\"plugin\": [\n  // first, b\n  \"b\",\n  \"c\"\n]}"},
		"remove the last line":    {"{\"plugin\": [\n  \"b\", // not [\"a\"], but b\n  \"a\"\n]}", "a", "", "{\"plugin\": [\n  \"b\" // not [\"a\"], but b\n]}"},
		"remove a trailing comma": {"{\"plugin\": [\n  \"b\",\n  \"a\",\n]}", "a", "", "{\"plugin\": [\n  \"b\",\n]}"},
		"keep its comment":        {"{\"plugin\": [\n  \"a\", // why, oh why\n  \"b\"\n]}", "a", "", "{\"plugin\": [\n  // why, oh why\n  \"b\"\n]}"},
		"a comment before comma":  {"{\"plugin\": [\"a\" /* , */ , \"b\"]}", "a", "", "{\"plugin\": [/* , */  \"b\"]}"},
		"remove with options":     {"{\"plugin\": [\n  [\"a\", {\n    \"x\": [1, 2]\n  }],\n  \"b\"]}", "a", "", "{\"plugin\": [\n  \"b\"]}"},
		"replace":                 {`{"plugin": [["a@1", {"x": "a@1"}], "b"]} // a@1`, "a@1", "a@2", `{"plugin": [["a@2", {"x": "a@1"}], "b"]} // a@1`},
		"lines of Windows":        {"\xef\xbb\xbf{\"plugin\": [\r\n  \"a\",\r\n  \"b\"\r\n]}\r\n", "a", "", "\xef\xbb\xbf{\"plugin\": [\r\n  \"b\"\r\n]}\r\n"},
		"as it was written":       {`{"plugin": ["\u0061"]}`, "a", "b", `{"plugin": ["b"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "sub", "opencode.jsonc")
			if test.text != "" {
				w := os.MkdirAll(filepath.Dir(file), 0o700)
				if err := os.WriteFile(file, []byte(test.text), 0o640); err != nil || w != nil {
					t.Fatal(err, w)
				}
			}
			change := func() error { return AddPlugin(file, test.spec) }
			if test.old != "" {
				change = func() error { return PluginEntry{File: file, Spec: test.old, raw: test.old}.Replace(test.spec) }
			}
			err := change()
			got, rerr := os.ReadFile(file)
			if err != nil || rerr != nil || string(got) != test.want {
				t.Errorf("%v %v\n%q\nis not\n%q", err, rerr, got, test.want)
			}
			if info, err := os.Stat(file); err == nil && test.text != "" && info.Mode().Perm() != 0o640 {
				t.Errorf("the file's mode is now %s", info.Mode())
			}
		})
	}
}

// An entry is found in the file that names it, also one that is not trusted; a link to a file stays a link.
func TestPluginEntries(t *testing.T) {
	w := newWorld(t)
	w.global("elsewhere.json", "{\"plugin\": [\"mine@1.0.0\"]}")
	w.global("opencode/x", "")
	w.project(".opencode/opencode.jsonc", "{\n\"plugin\": [[\"mine\", {}],\n\"{env:NAME}\"]}")
	c := w.load()
	link := c.PluginFile(false)
	if err := os.Symlink(filepath.Join("..", "elsewhere.json"), link); err != nil && runtime.GOOS == "windows" {
		t.Skip(err) // it takes a right there
	} else if err != nil {
		t.Fatal(err)
	}
	c = w.load()
	var all []string
	for _, e := range c.PluginEntries() {
		all = append(all, filepath.Base(e.At)+" "+e.Spec)
	}
	if got := strings.Join(all, ", "); got != "opencode.json:1 mine@1.0.0, opencode.jsonc:2 mine, opencode.jsonc:3 {env:NAME}" {
		t.Errorf("the entries are %s", got)
	}
	if got := c.PluginFile(true); got != filepath.Join(c.opts.Dir, ".opencode", "opencode.jsonc") || c.PluginFile(false) != link {
		t.Errorf("one is named in %s and %s", got, c.PluginFile(false))
	}
	for _, e := range c.PluginEntries() {
		if err := e.Replace(""); err != nil {
			t.Error(err)
		}
		fails(t, e.Replace(""), centurion.KindConfig, e.At, "has changed")
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v %v", info, err)
	}
	if c = w.load(); len(c.PluginEntries()) != 0 {
		t.Errorf("left: %v", c.PluginEntries())
	}
}

// Whatever a file has, an edit changes the entry and nothing else, or says that it cannot: see edit.
func FuzzEditPlugins(f *testing.F) {
	for _, s := range []string{`{"plugin": ["a", /* , */ "b",],}`, "{\"plugin\": [\n\"a\" // ]\n, \"b\"\n]}", "// x", `{"plugin":[["a",{}]]}`, `{"plugin":"a"}`, "{\"x\":1//"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		root, err := parseJSONC(&source{name: "x"}, []byte(text))
		if err != nil {
			return
		}
		for _, change := range []func(file string) error{
			func(file string) error { return AddPlugin(file, "new") },
			func(file string) error { return PluginEntry{File: file, Spec: "a", raw: "a"}.Replace("new") },
			func(file string) error { return PluginEntry{File: file, Spec: "a", raw: "a"}.Replace("") },
		} {
			file := filepath.Join(t.TempDir(), "x.json")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := change(file)
			got, rerr := os.ReadFile(file)
			if rerr != nil {
				t.Fatal(rerr)
			}
			now, perr := parseJSONC(&source{name: "x"}, got)
			if perr != nil {
				t.Fatalf("%q became %q: %v", text, got, perr)
			}
			for _, m := range root.members {
				if m.key != "plugin" && string(m.value.rawJSON()) != string(now.get(m.key).rawJSON()) {
					t.Fatalf("%q became %q: %s has changed", text, got, m.key)
				}
			}
			if err != nil && (string(got) != text || strings.Contains(err.Error(), "cannot be edited")) {
				t.Fatalf("%q became %q: %v", text, got, err)
			}
		}
	})
}
