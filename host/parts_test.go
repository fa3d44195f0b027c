package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"centurion"
	"centurion/config"
	"centurion/mcp"
	"centurion/orchestrator/slots"
	"centurion/plugin"
	"centurion/provider"
	"centurion/provider/anthropic"
	"centurion/provider/scripted"
	"centurion/server"
	v1 "centurion/server/opencode/v1"
	"centurion/store"
	"centurion/tools"
	"centurion/workspace"
)

// All that was resolved of a model, and the settings of requests, reach the client that asks it.
func TestEndpointOfAModel(t *testing.T) {
	first := config.Resolved{Model: centurion.ModelRef{Provider: "p", ID: "m"}, API: config.APIAnthropic, BaseURL: "http://model.test/v1", APIKey: "zq7-0wn-key", KeySource: "P_KEY",
		Headers: map[string]string{"X-A": "1"}, Echo: true, Limit: config.Limit{Context: 64_000, Output: 8_000}}
	for quiet, own := range map[bool]config.Own{true: {SessionHeaders: new(false), Limits: config.Limits{IdleTimeout: time.Minute, MaxRetries: 3}}, false: {SessionHeaders: new(true)}} {
		models := NewModels(&config.Config{Own: own}, first)
		m, err := models.Get("")
		if err != nil {
			t.Fatal(err)
		}
		end := reflect.ValueOf(m.Client.(withholding).Model).Elem().FieldByName("end") // what a client does with it is tested there
		want := map[string]any{"Model": first.Model, "Limits": provider.Limits{Context: 64_000, Output: 8_000}, "BaseURL": first.BaseURL, "APIKey": "zq7-0wn-key", "KeySource": "P_KEY",
			"Headers": first.Headers, "EchoReasoning": true, "NoSessionHeaders": quiet, "IdleTimeout": own.IdleTimeout, "MaxRetries": own.MaxRetries, "Wire": anthropic.Wire{MaxTokens: 8_000}}
		for name, v := range want {
			if f := end.FieldByName(name); !f.IsValid() || !reflect.ValueOf(v).IsZero() && !same(f, v) {
				t.Errorf("%s is %v, want %v", name, f, v)
			}
		}
		if again, err := models.Get("p/m"); err != nil || again.Client != m.Client || end.FieldByName("Gates").Pointer() != reflect.ValueOf(models.gates).Pointer() {
			t.Errorf("it is made once more, or waits at a gate of its own: %v", err)
		}
	}
}

// same compares a field that is not exported.
func same(f reflect.Value, want any) bool {
	if f.Kind() == reflect.Interface {
		f = f.Elem()
	}
	w := reflect.ValueOf(want)
	switch f.Kind() {
	case reflect.Struct:
		for i := range f.NumField() {
			if !f.Field(i).Equal(w.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		return f.Len() == w.Len() && f.MapIndex(w.MapKeys()[0]).Equal(w.MapIndex(w.MapKeys()[0]))
	}
	return f.Equal(w)
}

// Each setting that a host takes only at its start is told by its key when it has changed, and no other is.
func TestWhatIsFixed(t *testing.T) {
	for key, change := range map[string]func(c *config.Config){
		"sandbox": func(c *config.Config) { c.Own.Sandbox = "off" }, "max_processes": func(c *config.Config) { c.Own.MaxProcesses = 1 }, "max_memory": func(c *config.Config) { c.Own.MaxMemory = 1 },
		"max_commands": func(c *config.Config) { c.Own.MaxCommands = 1 }, "max_checks": func(c *config.Config) { c.Own.MaxChecks = 1 },
		"concurrency":         func(c *config.Config) { c.Own.Concurrency.Models = map[string]int{"a": 1} },
		"worktree.workspaces": func(c *config.Config) { c.Own.Workspaces = "overlay" }, "co_authored_by": func(c *config.Config) { c.Own.CoAuthoredBy = new(true) },
		"notify": func(c *config.Config) { c.Own.Notify = new(false) }, "mcp": func(c *config.Config) { c.Servers = []mcp.Server{{Name: "a"}} },
		"plugin": func(c *config.Config) { c.Plugins = []plugin.Source{{Name: "a"}} }, "poll_interval": func(c *config.Config) { c.Own.PollInterval = 1 },
		"retention": func(c *config.Config) { c.Own.Retention = 1 }, "archive_after": func(c *config.Config) { c.Own.ArchiveAfter = 1 },
		"archive_failed_after": func(c *config.Config) { c.Own.ArchiveFailedAfter = 1 }, "keep_tasks": func(c *config.Config) { c.Own.KeepTasks = 1 },
		"": func(c *config.Config) { c.Own.MaxWorkers, c.Own.Ask, c.Model = 1, "deny", "a/b" },
	} {
		var was, now config.Config
		change(&now)
		for _, pair := range [][2]*config.Config{{&was, &now}, {&now, &was}} {
			if got := strings.Join(fixed(pair[0], pair[1]), " "); got != key {
				t.Errorf("%s: %q", key, got)
			}
		}
	}
}

// The orchestrator gets the parts of this host, and what the configuration says of them.
func TestPartsOfAConfiguration(t *testing.T) {
	x := newProject(t, func(scripted.Request) scripted.Answer { return scripted.Answer{} })
	x.write(".config/centurion/config.jsonc", `{"concurrency": {"providers": {"custom": 1}, "models": {"custom/two": 2}, "agents": {"worker": 3}}, "agent": {"worker": {"tool_policy": "concurrent"}},
		"fallback": ["custom/two"], "max_workers": 4}`)
	shared := NewShared()
	h := x.mustOwn(Options{Shared: shared, Renew: x.renewer(), Version: "1.2.3"})
	defer h.Close()
	oc, err := h.configuration(t.Context(), h.models, h.hub, h.how)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{"concurrency": oc.Concurrency, "policies": oc.Policies, "fallback": oc.Fallback("worker", "custom/one"), "workers": oc.Workers}
	want := map[string]any{"concurrency": slots.Caps{Providers: map[string]int{"custom": 1}, Models: map[string]int{"custom/two": 2}, Agents: map[string]int{"worker": 3}},
		"policies": map[string]string{"worker": "concurrent"}, "fallback": []string{"custom/two"}, "workers": 4}
	if g, w := asJSON(t, got), asJSON(t, want); g != w {
		t.Errorf("%s\nwant %s", g, w)
	}
	if oc.Runner != centurion.Runner(h.runner) || oc.Workspace != x.ws || oc.Process != shared.slots || oc.Hooks != nil || oc.Look == nil || oc.Model == nil {
		t.Errorf("%+v", oc)
	}
	if home, _ := os.UserHomeDir(); oc.Home != home || oc.External != tools.External(external{h.servers, h.plugins}) {
		t.Errorf("home %q, tools %+v", oc.Home, oc.External)
	}
	h.models.Config.Plugins = []plugin.Source{{Name: "a"}}
	if oc, err = h.configuration(t.Context(), h.models, h.hub, Options{}); err != nil || oc.Hooks != centurion.Hooks(h.plugins) || oc.Process != nil || oc.Look != nil {
		t.Errorf("with plugins, alone: %+v, %v", oc, err)
	}
	h.models.Config.Plugins = nil
	p := h.plugins.project
	if p.Directory != x.Dir || p.State != x.State || p.Version != h.how.Version || p.API() != server.API(h.api) || p.Files != x.ws || p.All == nil || p.Note == nil || p.Show == nil || p.Follow == nil {
		t.Errorf("plugins reach %+v", p)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// write puts a file of the person's below their home.
func (x *project) write(name, text string) {
	x.t.Helper()
	path := filepath.Join(x.home, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		x.t.Fatal(err)
	}
}

// toolServer serves a tool that only reads by its own word, one that writes, a prompt and a resource; it wants a token.
func toolServer(t *testing.T) string {
	t.Helper()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "tools", Version: "1"}, nil)
	for name, hints := range map[string]*sdk.ToolAnnotations{"find": {ReadOnlyHint: true, Title: "Find it"}, "write": nil} {
		s.AddTool(&sdk.Tool{Name: name, Description: name + "s", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: hints},
			func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: name + " " + string(r.Params.Arguments)}, &sdk.ImageContent{MIMEType: "image/png", Data: picture.Bytes()}}}, nil
			})
	}
	s.AddPrompt(&sdk.Prompt{Name: "review", Description: "reviews", Arguments: []*sdk.PromptArgument{{Name: "what"}, {Name: "how"}}}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: r.Params.Arguments["what"] + " by " + r.Params.Arguments["how"]}}}}, nil
	})
	s.AddResource(&sdk.Resource{URI: "note://1", Name: "note", Description: "notes", MIMEType: "text/plain"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "note://1", Text: "noted"}}}, nil
	})
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		for session := range s.Sessions() {
			session.Close()
		}
		srv.Close()
	})
	return srv.URL
}

// What MCP servers have is listed by server, called by its tool, and known from the last time where one is gone.
func TestServersOfAProject(t *testing.T) {
	url, state := toolServer(t), t.TempDir()
	all := func(token string) []mcp.Server {
		return []mcp.Server{{Name: "b", URL: url, Headers: map[string]string{"Authorization": "Bearer " + token}, Trusted: true}, {Name: "a", URL: url, Disabled: true}}
	}
	s := newServers(all("s"), Place{State: state}, t.TempDir(), nil, "1")
	rows, err := s.Servers(t.Context(), true)
	schema := json.RawMessage(`{"type":"object","properties":{}}`)
	find := centurion.ExternalTool{Name: "b_find", Description: "finds", Schema: schema, ReadOnly: true, Away: true}
	offered := []centurion.ExternalTool{find, {Name: "b_write", Description: "writes", Schema: schema, Away: true}}
	want := []server.ToolServer{{Name: "b", State: "ready", Tools: offered, Prompts: []server.ServerPrompt{{Name: "b:review", Description: "reviews", Arguments: []string{"what", "how"}}},
		Resources: []server.ServerResource{{URI: "note://1", Name: "note", Description: "notes", Mime: "text/plain"}}}, {Name: "a", State: "disabled", Tools: []centurion.ExternalTool{}}}
	if d := cmp.Diff(want, rows); d != "" || err != nil {
		t.Errorf("%v: %s", err, d)
	}
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	for name, title := range map[string]string{"b_find": "Find it", "b_write": "write"} {
		for sees, files := range map[bool]int{true: 1, false: 0} {
			call := &tools.Call{Workspace: ws, Media: centurion.Media{Image: sees}}
			got, err := external{s, newPlugins(&config.Config{}, Place{State: state}, "", nil, "1")}.Run(t.Context(), call, name, json.RawMessage(`{"q":1}`))
			if err != nil || got.Title != title || !strings.HasPrefix(got.Output, name[2:]+` {"q":1}`) || len(got.Attachments) != files {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	}
	for want, q := range map[string]server.ServerQuery{"me by you all": {Prompt: "b:review", Words: []string{"me", "you", "all"}}, "noted": {Server: "b", URI: "note://1"}} {
		if got, err := s.Content(t.Context(), q); err != nil || !strings.Contains(got.Text, want) {
			t.Errorf("%+v: %+v, %v", q, got, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	later := newServers(all("other"), Place{State: state}, t.TempDir(), nil, "1") // another configuration: it may have something else
	rows, err = later.Servers(t.Context(), true)
	if err != nil || len(rows) != 2 || rows[0].State != "failed" || !rows[0].Login || rows[0].Error == "" || len(rows[0].Tools) != 0 {
		t.Errorf("refused: %+v, %v", rows, err)
	}
	if err := later.Close(); err != nil {
		t.Error(err)
	}
	again := newServers(all("s"), Place{State: state}, t.TempDir(), nil, "1")
	if d := cmp.Diff(offered, again.Tools()); d != "" {
		t.Errorf("known from the last time: %s", d)
	}
	if _, err := again.Run(t.Context(), &tools.Call{Workspace: ws}, "b_none", nil); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("nobody's tool: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	secret := secrets(mcp.Server{Environment: map[string]string{"A_TOKEN": "one two"}, Headers: map[string]string{"Authorization": "Bearer three", "X-Key": "four"}})
	slices.Sort(secret)
	if got := strings.Join(secret, "|"); got != "A_TOKEN=one two|Authorization=three|X-Key=four" {
		t.Errorf("secrets %s", got)
	}
}

// What plugins begin is counted and known, no more than a hundred; a process that leaves pauses it instead of waiting for it.
func TestWhatPluginsBegin(t *testing.T) {
	n := 0
	h := &Host{workspace: &workspace.Workspace{}, runs: &runs{plugins: map[string]bool{}}}
	fail := errors.New("not now")
	h.how.Front = func(p *v1.Project) {
		p.Begin = func(context.Context, v1.Begin) (server.Mission, error) {
			if n++; n == 1 {
				return server.Mission{ID: "msn_none"}, fail
			}
			return server.Mission{ID: "msn_" + strings.Repeat("x", n)}, nil
		}
	}
	p := h.pluginProject()
	for range maxBegun {
		_, err := p.Begin(t.Context(), v1.Begin{})
		if err != nil && !errors.Is(err, fail) {
			t.Fatal(err)
		}
	}
	if _, err := p.Begin(t.Context(), v1.Begin{}); centurion.KindOf(err) != centurion.KindBudget || !strings.Contains(err.Error(), "plugins have begun 100 missions here, and begin no more") || n != maxBegun {
		t.Errorf("after %d: %v", n, err)
	}
	if h.byPlugin("msn_none") || !h.byPlugin("msn_xx") || len(h.runs.plugins) != maxBegun-1 {
		t.Errorf("%d are known", len(h.runs.plugins))
	}
	bare := (&Host{workspace: &workspace.Workspace{}, runs: &runs{}}).pluginProject()
	_, err1 := bare.Begin(t.Context(), v1.Begin{})
	_, err2 := bare.Catalog(t.Context())
	_, err3 := bare.Expand(t.Context(), "", "")
	for _, err := range []error{err1, err2, err3} {
		if centurion.KindOf(err) != centurion.KindConfig || !strings.Contains(err.Error(), "this host begins no missions") {
			t.Errorf("without a front: %v", err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r, why := going(t, centurion.Mission{ID: "msn_1", Status: centurion.MissionRunning}, centurion.Mission{ID: "msn_2", Status: centurion.MissionRunning})
		r.plugins = map[string]bool{"msn_2": true}
		time.AfterFunc(time.Hour, func() { r.all["msn_1"].end(nil) })
		var said []string
		r.waitForOthers(t.Context(), func(line string) { said = append(said, line) })
		want := []string{"mission msn_2, which a plugin began, is paused; continue it with: centurion resume msn_2", "mission msn_1 still runs here; waiting for it (Ctrl-C pauses it)"}
		if !slices.Equal(said, want) || *why["msn_2"] != centurion.ErrShutdown {
			t.Errorf("%v: %q", *why["msn_2"], said)
		}
	})
}

// What is counted of plugins is kept beside what was counted before, and what nobody did counts for nothing.
func TestFiguresAreKept(t *testing.T) {
	p := pluginsOf(t, t.TempDir(), 0)
	defer p.Close()
	if err := p.keep(map[string]plugin.Figures{"a": {}}); err != nil || exists(p.figuresFile()) {
		t.Errorf("nothing was done: %v", err)
	}
	first := p.counted().Since
	for _, now := range []map[string]plugin.Figures{{"a": {Called: 1}, "b": {Hooked: 2}}, {"a": {Called: 3}, "c": {}}} {
		if err := p.keep(now); err != nil {
			t.Fatal(err)
		}
	}
	got := p.counted()
	if d := cmp.Diff(map[string]plugin.Figures{"a": {Called: 3}, "b": {Hooked: 2}}, got.Plugins); d != "" || got.Since.Before(first) || got.Since != p.counted().Since {
		t.Errorf("since %s: %s", got.Since, d)
	}
	if err := os.WriteFile(p.figuresFile(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.counted(); len(got.Plugins) != 0 || got.Plugins == nil || got.Since.IsZero() {
		t.Errorf("of a broken file: %+v", got)
	}
}

// What of a plugin's changes of the configuration counts and what does not is said once.
func TestNoteOfAPlugin(t *testing.T) {
	told := map[string]bool{}
	o := config.Offered{Agents: map[string]json.RawMessage{"z": nil, "a": nil}, Commands: map[string]json.RawMessage{"go": nil}, Left: []string{"agent x"}}
	for _, want := range []string{"in the configuration it adds agent a, agent z, /go; what it wants of these does not count: mcp, agent x", "what it wants of these does not count: mcp"} {
		if got := noteOf([]string{"agent", "mcp", "command"}, o, told); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := noteOf(nil, config.Offered{}, told); got != "" {
		t.Errorf("nothing: %q", got)
	}
}

// Of what a program writes to its standard error the end is kept.
func TestLastLines(t *testing.T) {
	var l lastLines
	if got := l.String(); got != "" {
		t.Errorf("nothing: %q", got)
	}
	for _, s := range []string{strings.Repeat("a", maxLast-1), "bc\n", " "} {
		if n, err := l.Write([]byte(s)); n != len(s) || err != nil {
			t.Error(n, err)
		}
	}
	if got := l.String(); got != ": "+strings.Repeat("a", maxLast-4)+"bc" {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

// A notice of a plugin is noted in the missions at work as one clean line, and another one at once is not.
func TestNoticesOfPlugins(t *testing.T) {
	_, h, m, release := waitingMission(t)
	show := h.showForPlugins()
	show("Title\x1b[31m", "a\nb "+strings.Repeat("x", 400), "info")
	show("too", "soon", "info")
	found, err := h.store.Events(t.Context(), store.EventQuery{Mission: m.ID, Types: []centurion.EventType{centurion.EventMissionUpdated}})
	var notes []string
	for _, e := range found {
		if strings.Contains(string(e.Data), "plugin: ") {
			notes = append(notes, string(e.Data))
		}
	}
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], `"note":"plugin: Title: a b xxx`) || len(notes[0]) > 400 {
		t.Errorf("%q, %v", notes, err)
	}
	close(release)
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}
