package host

import (
	"encoding/json"
	"slices"
	"testing"

	"centurion"
	"centurion/config"
	"centurion/permission"
	"centurion/workspace"
)

// TRIAL S6: only a rule of the person's that names a host in full opens one that is not public.
func TestOpenedHosts(t *testing.T) {
	rules, err := permission.ParseRules([]byte(`{"webfetch": {"*": "allow", "http://*": "allow", "http://localhost:3000/*": "allow", "https://intra.example/*": "allow",
		"http://[::1]:80/x": "allow", "http://192.168.*/*": "allow", "http://127.0.0.1*": "allow", "http://ask.example/*": "ask", "http://no.example/*": "deny",
		"http://u@localhost:1/*": "allow"}, "bash": {"http://localhost:4000/*": "allow"}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"[::1]:80", "intra.example:443", "localhost:3000"}
	if got := openedHosts(rules); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// ORCH-49, ORCH-50: engines are configured by the person's files or variables.
func TestWebIsConfigured(t *testing.T) {
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	for _, name := range []string{"SEARXNG_URL", "BRAVE_API_KEY", "TAVILY_API_KEY", "GITHUB_TOKEN"} {
		t.Setenv(name, "")
	}
	can := func(cfg *config.Config) (web, code bool) {
		t.Helper()
		c, err := newWeb(cfg, ws)
		if err != nil || c.Docs() == nil {
			t.Fatal(err)
		}
		return c.CanSearch(false) == nil, c.CanSearch(true) == nil
	}
	if web, code := can(&config.Config{}); web || code {
		t.Error("something can be searched without an engine")
	}
	if web, code := can(&config.Config{Own: config.Own{Search: config.Search{Brave: "k"}}}); !web || code {
		t.Error("a key in a file does not count")
	}
	t.Setenv("GITHUB_TOKEN", "k")
	if web, code := can(&config.Config{}); web || !code {
		t.Error("a key in a variable does not count")
	}
	_, err = newWeb(&config.Config{Permission: []config.PermissionLevel{{Raw: json.RawMessage(`{"webfetch": "maybe"}`)}}}, ws)
	if centurion.KindOf(err) != centurion.KindConfig {
		t.Error(err)
	}
}
