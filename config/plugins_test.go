package config

import (
	"strings"
	"testing"

	"centurion"
)

// Step 11, point 3: a person's plugins count; those of a project, named in its file or lying in its directories, only once they are trusted.
func TestPlugins(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"plugin":["mine@1.0.0",["opts",{"a":1}],["exec:words",{"command":["python3","w.py"]}]]}`)
	w.global("opencode/plugins/own.js", "export default {}")
	w.project("opencode.json", `{"plugin":["theirs","file:///tmp/x.js","./local.ts"],"agent":{"worker":{"tools":{"any_tool_at_all":true}}}}`)
	w.project("local.ts", "export const y = 1")
	w.project(".opencode/tool/greet.ts", "export default {}")
	w.project(".opencode/plugin/guard.ts", "export const x = 1")
	w.project(".opencode/plugin/notes.md", "no plugin")
	listed := func(c *Config) string {
		var all []string
		for _, s := range c.Plugins {
			all = append(all, string(s.Kind)+" "+s.Name+string(s.Options))
		}
		return strings.Join(all, ", ")
	}
	c := w.load()
	if got := listed(c); got != ` mine,  opts{"a":1},  words, plugin own` {
		t.Errorf("untrusted: %s", got)
	}
	if got := strings.Join(c.Plugins[2].Command, " "); got != "python3 w.py" {
		t.Errorf("the native one runs %q", got)
	}
	items := strings.Join(withheld(c), "; ")
	for _, want := range []string{`plugin "theirs"`, `plugin "file:///tmp/x.js"`, `plugin "./local.ts"`, "plugin local.ts", "plugin .opencode/tool/greet.ts", "plugin .opencode/plugin/guard.ts"} {
		if !strings.Contains(items, want) {
			t.Errorf("%s is not among %s", want, items)
		}
	}
	w.trust()
	c = w.load()
	if got := listed(c); got != ` mine,  opts{"a":1},  words,  theirs,  x,  local, plugin own, plugin guard, tool greet` {
		t.Errorf("trusted: %s", got)
	}
	if cast, err := c.Cast("mission"); err != nil {
		t.Error(err)
	} else if a, err := cast.Get("worker"); err != nil || !a.HoldsExternal("any_tool_at_all") {
		t.Errorf("the worker has %+v %v", a.External, err)
	}
	for file, name := range map[string]string{".opencode/tool/greet.ts": "greet", "local.ts": "local"} {
		w.project(file, "export default { changed: true }")
		if c = w.load(); strings.Contains(listed(c), name) || !strings.Contains(strings.Join(withheld(c), ""), file) {
			t.Errorf("a file that has changed is still trusted: %s", listed(c))
		}
	}
	for _, wrong := range []string{`"x"`, `[7]`, `[["x",{},1]]`, `[[]]`, `["exec:x"]`, `[["exec:x",{"command":[]}]]`, `[["exec:",{"command":["x"]}]]`} {
		w.global("opencode/opencode.json", "{\n\"plugin\":"+wrong+"}")
		_, err := Load(w.opts)
		fails(t, err, centurion.KindConfig, "opencode.json:2", "plugin")
	}
}
