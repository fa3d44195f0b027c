package config

import (
	"fmt"
	"strings"
	"testing"
)

// ORCH-49, ORCH-50: a person chooses the search engines; a project may only name one on the person's own machine.
func TestSearchEngines(t *testing.T) {
	w := newWorld(t)
	w.env["KEY"] = "bk"
	w.global("centurion/config.jsonc", `{"search": {"brave_key": "{env:KEY}", "github_token": "gk"}}`)
	w.project(".opencode/centurion.jsonc", `{"search": {"searxng": "http://localhost:8080"}}`)
	c := w.load()
	if s := c.Own.Search; s.SearXNG != "http://localhost:8080" || s.Brave.Reveal() != "bk" || s.GitHub.Reveal() != "gk" {
		t.Errorf("%+v", s)
	}
	if s := fmt.Sprintf("%+v %#v", c.Own.Search, c.Own.Search); strings.Contains(s, "gk") {
		t.Errorf("%s tells a key", s)
	}
	for name, project := range map[string]string{"elsewhere": `{"searxng": "https://evil.example"}`, "looks like here": `{"searxng": "http://localhost.evil.example"}`,
		"key": `{"brave_key": "theirs"}`} {
		w := newWorld(t)
		w.project(".opencode/centurion.jsonc", `{"search": `+project+`}`)
		c := w.load()
		if c.Own.Search != (Search{}) || !strings.Contains(strings.Join(withheld(c), "\n"), "setting search: ") {
			t.Errorf("%s: %+v, %q", name, c.Own.Search, withheld(c))
		}
	}
	w.global("centurion/config.jsonc", `{"search": {"searxng": "http://10.0.0.1"}}`)
	if s := w.load().Own.Search; s.SearXNG != "http://10.0.0.1" {
		t.Errorf("the project's engine stands in place of the person's: %+v", s)
	}
	w = newWorld(t)
	w.global("centurion/config.jsonc", `{"search": {"braev_key": "k"}}`)
	if _, err := Load(w.opts); err == nil || !strings.Contains(err.Error(), `"search.brave_key"`) {
		t.Error(err)
	}
}
