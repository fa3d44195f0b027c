package config

import (
	"fmt"
	"strings"
	"testing"

	"centurion"
)

// Step 11, point 6: a person's MCP servers count; those of a project only once they are trusted, and until then they change none of the person's.
func TestServers(t *testing.T) {
	const linear = `{"mcp":{"linear":{"type":"local","command":["npx","linear"],"timeout":2000}}}`
	for name, tt := range map[string]struct {
		global, project string
		trust           bool
		want            string // name, command or URL, timeout and whether it is disabled
		items           string
		fails           []string
	}{
		"the person's":       {global: linear, want: "linear npx linear 2s false"},
		"the project's":      {project: linear, items: "server linear: npx linear ("},
		"trusted":            {project: linear, trust: true, want: "linear npx linear 2s false"},
		"remote":             {global: `{"mcp":{"gh":{"type":"remote","url":"https://x.example/mcp"}}}`, want: "gh https://x.example/mcp 0s false"},
		"a project's change": {global: linear, project: `{"mcp":{"linear":{"command":["evil"]}}}`, want: "linear npx linear 2s false", items: "server linear: evil ("},
		"trusted change":     {global: linear, project: `{"mcp":{"linear":{"enabled":false}}}`, trust: true, want: "linear npx linear 2s true"},
		"no type":            {global: "{\n\"mcp\":{\"linear\":{\"command\":[\"x\"]}}}", fails: []string{"opencode.json:2", "linear", "has no type", "local"}},
		"no command":         {project: `{"mcp":{"linear":{"type":"local"}}}`, fails: []string{"opencode.json:1", "linear", "has no command"}},
		"no host":            {global: `{"mcp":{"linear":{"type":"remote","url":"x.example"}}}`, fails: []string{"linear", "http://", `"x.example"`}},
		"no time":            {global: `{"mcp":{"linear":{"type":"local","command":["x"],"timeout":0}}}`, fails: []string{"timeout", "from 1"}},
		"not an object":      {global: `{"mcp":["x"]}`, fails: []string{"mcp", "an object"}},
		"the tool of a server": {global: strings.TrimSuffix(linear, "}") + `,"agent":{"worker":{"tools":{"linear_find":true}},"commander":{"permission":{"linear_find":"deny"}}}}`,
			want: "linear npx linear 2s false"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tt.global != "" {
				w.global("opencode/opencode.json", tt.global)
			}
			if tt.project != "" {
				w.project("opencode.json", tt.project)
			}
			if tt.trust {
				w.trust()
			}
			c, err := Load(w.opts)
			if len(tt.fails) > 0 {
				fails(t, err, centurion.KindConfig, tt.fails...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got, items []string
			for _, s := range c.Servers {
				got = append(got, fmt.Sprintf("%s %s %s %t", s.Name, strings.Join(s.Command, " ")+s.URL, s.Timeout, s.Disabled))
			}
			for _, f := range c.ProjectFiles() {
				for _, i := range f.Items {
					if !tt.trust {
						items = append(items, i.String())
					}
				}
			}
			if strings.Join(got, "; ") != tt.want || !strings.HasPrefix(strings.Join(items, "; "), tt.items) || tt.items == "" && len(items) > 0 {
				t.Errorf("got %q with the items %q", got, items)
			}
			cast, err := c.Cast("mission")
			if err != nil || len(c.Notices) > 0 {
				t.Fatal(err, c.Notices)
			}
			if a, err := cast.Get("worker"); err != nil || a.HoldsExternal("linear_find") != strings.Contains(tt.global, "worker") {
				t.Errorf("the worker: %+v %v", a.External, err)
			}
		})
	}
}
