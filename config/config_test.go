package config

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"centurion"
)

// world is a home, a project in a git repository and an environment, all of their own.
type world struct {
	t         *testing.T
	home, dir string
	env       map[string]string
	opts      Options
}

func newWorld(t *testing.T) *world {
	t.Helper()
	base := t.TempDir()
	w := &world{t: t, home: filepath.Join(base, "home"), dir: filepath.Join(base, "my prüject"), env: map[string]string{}}
	w.env["HOME"] = w.home
	for _, d := range []string{w.home, filepath.Join(w.dir, ".git")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.opts = Options{Dir: w.dir, Home: w.home, Env: func(name string) string { return w.env[name] }}
	return w
}

// global and project write a file below ~/.config and below the project.
func (w *world) global(name, text string)  { w.write(filepath.Join(w.home, ".config", name), text) }
func (w *world) project(name, text string) { w.write(filepath.Join(w.dir, name), text) }

func (w *world) write(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) load() *Config {
	w.t.Helper()
	c, err := Load(w.opts)
	if err != nil {
		w.t.Fatalf("Load: %v (hint: %s)", err, centurion.HintOf(err))
	}
	return c
}

// trust trusts what the project's files hold now.
func (w *world) trust() {
	w.t.Helper()
	c := w.load()
	if _, err := c.Rules(); err != nil {
		w.t.Fatal(err)
	}
	for _, f := range c.ProjectFiles() {
		if err := c.Trust.Trust(f.File()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// withheld lists what of the project's files is not in force without trust.
func withheld(c *Config) (out []string) {
	for _, s := range c.ProjectFiles() {
		for _, i := range s.File().Items {
			if !s.Trusted {
				out = append(out, i.String())
			}
		}
	}
	return out
}

// fails loads and checks that the error has the kind and that its text and hint together hold every word.
func fails(t *testing.T, err error, kind centurion.Kind, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if got := centurion.KindOf(err); got != kind {
		t.Errorf("kind %s, want %s (%v)", got, kind, err)
	}
	all := err.Error() + " | " + centurion.HintOf(err)
	for _, word := range words {
		if !strings.Contains(all, word) {
			t.Errorf("%q does not say %q", all, word)
		}
	}
}

func TestLoadNothing(t *testing.T) {
	w := newWorld(t)
	c := w.load()
	if len(c.Sources)+len(c.Notices)+len(c.Providers)+len(c.Agents) != 0 || c.Model != "" {
		t.Errorf("an empty world gives %+v", c)
	}
}

func TestLoadOrder(t *testing.T) {
	w := newWorld(t)
	w.env["OPENCODE_CONFIG"] = filepath.Join(w.home, "extra.json")
	w.env["OPENCODE_CONFIG_CONTENT"] = `{"username":"x","default_agent":"inline"}`
	w.global("opencode/config.json", `{"model":"a/1","instructions":["one.md"]}`)
	w.global("opencode/opencode.json", `{"model":"a/2"}`)
	w.global("opencode/opencode.jsonc", "// c\n{\"model\":\"a/3\", /* c */ \"provider\":{\"p\":{\"npm\":\"P\",\"options\":{\"baseURL\":\"https://p.example/v1/\"}}},}")
	w.write(w.env["OPENCODE_CONFIG"], `{"model":"a/4"}`)
	w.project("opencode.json", `{"model":"a/5","instructions":["two.md","one.md"],"provider":{"p":{"models":{"z":{},"a":{}}}}}`)
	w.project("sub/opencode.jsonc", `{"model":"a/6"}`)
	w.project("sub/.opencode/opencode.json", `{"model":"a/7"}`)
	w.opts.Dir = filepath.Join(w.dir, "sub")
	w.trust()
	c := w.load()
	if c.Model != "a/7" || c.DefaultAgent != "inline" {
		t.Errorf("model %q, agent %q", c.Model, c.DefaultAgent)
	}
	if diff := cmp.Diff([]string{"one.md", "two.md"}, c.Instructions); diff != "" {
		t.Error(diff)
	}
	p := c.Providers["p"]
	if p.NPM != "P" || p.BaseURL != "https://p.example/v1" || len(p.Models) != 2 || p.Models[0].Name != "z" {
		t.Errorf("providers were not merged key by key in order: %+v", p)
	}
	var names []string
	for _, s := range c.Sources {
		names = append(names, filepath.Base(s))
	}
	want := []string{"config.json", "opencode.json", "opencode.jsonc", "extra.json", "opencode.json", "opencode.jsonc", "opencode.json"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if file, project := c.Origin("model"); file != filepath.Join(".opencode", "opencode.json") || project {
		t.Errorf("origin of model: %q, %v", file, project)
	}
	if file, project := c.Origin("provider.p.npm"); file != "~/.config/opencode/opencode.jsonc" && filepath.Separator == '/' || project {
		t.Errorf("origin of the package: %q, %v", file, project)
	}
}

func TestLoadXDGAndEmptyFiles(t *testing.T) {
	w := newWorld(t)
	w.env["XDG_CONFIG_HOME"] = filepath.Join(w.home, "xdg")
	w.write(filepath.Join(w.home, "xdg", "opencode", "opencode.json"), `{"model":"a/b"}`)
	w.global("opencode/opencode.json", `{"model":"not/read"}`)
	w.project("opencode.json", "")
	w.project("opencode.jsonc", "\ufeff// nothing\n")
	if c := w.load(); c.Model != "a/b" || len(c.Sources) != 3 {
		t.Errorf("model %q from %q", c.Model, c.Sources)
	}
}

func TestOwn(t *testing.T) {
	w := newWorld(t)
	w.global("centurion/config.jsonc", `{
		"model": "own/global", "max_cost": 3.5, "max_duration": "1h30m", "notify": false, "ask": "allow", "yes": true,
		"agent": {"coder": {"acp": ["coder", "--acp"]}}, "stall_timeout": "2m", "max_workers": 12,
	}`)
	w.project("opencode.json", `{"model":"open/code"}`)
	w.project(".opencode/centurion.jsonc", `{"verify":"go test ./...","worktree":{"setup":["npm ci"]},"format":"JSON","level":2,"max_tokens":5e6,"max_cost":2}`)
	o := w.load().Own
	cost, notify := 2.0, false
	want := Own{Model: "own/global", Format: "json", Ask: "allow", Yes: true, MaxWorkers: 12, Level: 2, MaxCost: &cost,
		MaxTokens: 5_000_000, MaxDuration: 90 * time.Minute, Notify: &notify, Verify: []string{"go test ./..."},
		WorktreeSetup: []string{"npm ci"}, Agents: map[string]OwnAgent{"coder": {ACP: []string{"coder", "--acp"}}},
		Limits: Limits{StallTimeout: 2 * time.Minute}}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Error(diff)
	}
	c := w.load()
	if c.Model != "own/global" {
		t.Errorf("model %q: the own key stands before OpenCode's", c.Model)
	}
	for key, want := range map[string]bool{"verify": true, "worktree.setup": true, "max_workers": false, "unset": false} {
		if _, project := c.Origin(key); project != want {
			t.Errorf("origin of %s: from the project = %v", key, project)
		}
	}
}

// S4: an untrusted file of the project does not take away the person's checks, neither with others nor with none.
func TestVerifyOfTheProject(t *testing.T) {
	for _, theirs := range []string{`[]`, `["true"]`} {
		w := newWorld(t)
		w.global("centurion/config.jsonc", `{"verify": ["go test ./..."]}`)
		w.project(".opencode/centurion.jsonc", `{"verify": `+theirs+`}`)
		c := w.load()
		if got := withheld(c); !slices.Equal(c.Own.Verify, []string{"go test ./..."}) || !slices.Equal(got, []string{"setting verify: " + theirs}) {
			t.Errorf("%s: %q, withheld %q", theirs, c.Own.Verify, got)
		}
		w.trust()
		if c := w.load(); slices.Equal(c.Own.Verify, []string{"go test ./..."}) {
			t.Errorf("%s does not count with trust", theirs)
		}
	}
}

// Every key of `run`'s flags has a key in the configuration.
func TestOwnKeysCoverFlags(t *testing.T) {
	keys := keysOf(ownFields())
	for flag := range strings.FieldsSeq("model agent format isolation max-workers max-per-agent max-cost max-tokens " +
		"max-duration max-rounds max-tool-calls ask yes dirty level profile sandbox detach merge") {
		if !slices.Contains(keys, strings.ReplaceAll(flag, "-", "_")) {
			t.Errorf("--%s has no key", flag)
		}
	}
	for i, k := range keys {
		if slices.Contains(keys[:i], k) {
			t.Errorf("%s is there twice", k)
		}
	}
}

// What takes a protection away does not count in a project's file, whether the person's stands in a file or is the default; what keeps
// it, or makes it stricter, does.
func TestLoosens(t *testing.T) {
	cost := func(x float64) *float64 { return &x }
	budget := func(b centurion.TaskBudget) *Own { return &Own{TaskBudget: b} }
	for _, tt := range []struct {
		key             string
		person, project *Own
		want            bool
	}{
		{"isolation", &Own{}, &Own{Isolation: "shared"}, true},
		{"isolation", &Own{Isolation: "shared"}, &Own{Isolation: "shared"}, false},
		{"isolation", &Own{Isolation: "shared"}, &Own{Isolation: "worktree"}, false},
		{"ask", &Own{}, &Own{Ask: "allow"}, true},
		{"ask", &Own{Ask: "allow"}, &Own{Ask: "allow"}, false},
		{"ask", &Own{Ask: "deny"}, &Own{Ask: "ask"}, true},
		{"ask", &Own{Ask: "deny"}, &Own{Ask: "deny"}, false},
		{"ask", &Own{Ask: "allow"}, &Own{Ask: "ask"}, false},
		{"ask", &Own{}, &Own{Ask: "deny"}, false},
		{"yes", &Own{}, &Own{Yes: true}, true},
		{"yes", &Own{Yes: true}, &Own{Yes: true}, false},
		{"merge", &Own{}, &Own{Merge: true}, true},
		{"merge", &Own{Merge: true}, &Own{Merge: true}, false},
		{"require_proof", &Own{RequireProof: true}, &Own{}, true},
		{"require_proof", &Own{}, &Own{RequireProof: true}, false},
		{"require_proof", &Own{RequireProof: true}, &Own{RequireProof: true}, false},
		{"detach", &Own{}, &Own{Detach: true}, true},
		{"detach", &Own{Detach: true}, &Own{Detach: true}, false},
		{"sandbox", &Own{Sandbox: "require"}, &Own{Sandbox: "auto"}, true},
		{"sandbox", &Own{Sandbox: "require"}, &Own{Sandbox: "require"}, false},
		{"sandbox", &Own{}, &Own{Sandbox: "off"}, true},
		{"sandbox", &Own{Sandbox: "off"}, &Own{Sandbox: "off"}, false},
		{"sandbox", &Own{}, &Own{Sandbox: "require"}, false},
		{"profile", &Own{}, &Own{Profile: "assistant"}, true},
		{"profile", &Own{Profile: "assistant"}, &Own{Profile: "assistant"}, false},
		{"profile", &Own{Profile: "assistant"}, &Own{Profile: "mission"}, true},
		{"profile", &Own{}, &Own{Profile: "mission"}, false},
		{"agent", &Own{}, &Own{Agent: "mine"}, true},
		{"agent", &Own{Agent: "mine"}, &Own{Agent: "mine"}, false},
		{"agent", &Own{}, &Own{Agents: map[string]OwnAgent{"worker": {Fallback: []string{"a/b"}}}}, true},
		{"fallback", &Own{}, &Own{Fallback: Fallback{All: []string{"a/b"}}}, true},
		{"fallback", &Own{Fallback: Fallback{All: []string{"a/b"}}}, &Own{Fallback: Fallback{All: []string{"a/b"}}}, false},
		{"stall_timeout", &Own{Limits: Limits{StallTimeout: time.Minute}}, &Own{Limits: Limits{StallTimeout: time.Minute}}, false},
		{"stall_timeout", &Own{Limits: Limits{StallTimeout: time.Minute}}, &Own{Limits: Limits{StallTimeout: 2 * time.Minute}}, true},
		{"ask_timeout", &Own{}, &Own{Limits: Limits{AskTimeout: time.Hour}}, false},
		{"ask_timeout", &Own{Limits: Limits{AskTimeout: time.Minute}}, &Own{Limits: Limits{AskTimeout: time.Hour}}, true},
		{"max_cost", &Own{}, &Own{MaxCost: cost(10)}, false},
		{"max_cost", &Own{}, &Own{MaxCost: cost(10.01)}, true},
		{"max_cost", &Own{MaxCost: cost(3)}, &Own{MaxCost: cost(3)}, false},
		{"max_cost", &Own{MaxCost: cost(3)}, &Own{MaxCost: cost(4)}, true},
		{"max_cost", &Own{MaxCost: cost(20)}, &Own{MaxCost: cost(15)}, false},
		{"search", &Own{}, &Own{Search: Search{GitHub: "k"}}, true},
		{"search", &Own{}, &Own{Search: Search{Tavily: "k"}}, true},
		{"search", &Own{Search: Search{SearXNG: "http://localhost:1"}}, &Own{Search: Search{SearXNG: "http://localhost:2"}}, true},
		{"search", &Own{}, &Own{Search: Search{SearXNG: "http://localhost:2"}}, false},
		{"max_tokens", &Own{MaxTokens: 5}, &Own{MaxTokens: 6}, true},
		{"max_tokens", &Own{MaxTokens: 5}, &Own{MaxTokens: 5}, false},
		{"max_tokens", &Own{}, &Own{MaxTokens: 5}, false},
		{"max_duration", &Own{MaxDuration: 5}, &Own{MaxDuration: 6}, true},
		{"max_duration", &Own{MaxDuration: 5}, &Own{MaxDuration: 5}, false},
		{"max_duration", &Own{}, &Own{MaxDuration: 5}, false},
		{"max_rounds", &Own{MaxRounds: 5}, &Own{MaxRounds: 6}, true},
		{"max_rounds", &Own{MaxRounds: 5}, &Own{MaxRounds: 5}, false},
		{"max_rounds", &Own{}, &Own{MaxRounds: 5}, false},
		{"max_tool_calls", &Own{MaxToolCalls: 5}, &Own{MaxToolCalls: 6}, true},
		{"max_tool_calls", &Own{MaxToolCalls: 5}, &Own{MaxToolCalls: 5}, false},
		{"max_tool_calls", &Own{}, &Own{MaxToolCalls: 5}, false},
		{"max_processes", &Own{Limits: Limits{MaxProcesses: 5}}, &Own{Limits: Limits{MaxProcesses: 4}}, true},
		{"max_memory", &Own{}, &Own{Limits: Limits{MaxMemory: 5}}, true},
		{"task_budget", budget(centurion.TaskBudget{Cost: 1}), budget(centurion.TaskBudget{Cost: 2}), true},
		{"task_budget", budget(centurion.TaskBudget{Tokens: 1}), budget(centurion.TaskBudget{Tokens: 2}), true},
		{"task_budget", budget(centurion.TaskBudget{Rounds: 1}), budget(centurion.TaskBudget{Rounds: 2}), true},
		{"task_budget", budget(centurion.TaskBudget{ToolCalls: 1}), budget(centurion.TaskBudget{ToolCalls: 2}), true},
		{"task_budget", budget(centurion.TaskBudget{Minutes: 1}), budget(centurion.TaskBudget{Minutes: 2}), true},
		{"task_budget", budget(centurion.TaskBudget{Cost: 1, Tokens: 2, Rounds: 3, ToolCalls: 4, Minutes: 5}), budget(centurion.TaskBudget{Cost: 1, Tokens: 2, Rounds: 3, ToolCalls: 4, Minutes: 5}), false},
		{"task_budget", budget(centurion.TaskBudget{}), budget(centurion.TaskBudget{Cost: 1, Tokens: 2, Rounds: 3, ToolCalls: 4, Minutes: 5}), false},
		{"model", &Own{Model: "a/b"}, &Own{Model: "c/d"}, false},
	} {
		if got := loosens(tt.key, tt.person, tt.project); got != tt.want {
			t.Errorf("%s: %+v over %+v: %v", tt.key, *tt.project, *tt.person, got)
		}
	}
	yes, no := true, false
	if (&Own{}).CommitsAlone() || (&Own{CoAuthoredBy: &yes}).CommitsAlone() || !(&Own{CoAuthoredBy: &no}).CommitsAlone() {
		t.Error("the trailer is not what the key says")
	}
}

func TestLoadErrors(t *testing.T) {
	const own = ".opencode/centurion.jsonc"
	for name, tc := range map[string]struct {
		file, text string
		words      []string
	}{
		"unknown own key":        {own, "{\n  // hi\n  \"max_worker\": 3\n}", []string{own + ":3", `"max_worker"`, `"max_workers"`}},
		"unknown, nothing near":  {own, "{\"qqqqqqq\": 3}", []string{own + ":1", `"qqqqqqq"`}},
		"key of opencode.json":   {own, "{\n\"permission\": {}}", []string{own + ":2", "which belongs to opencode.json", "move it"}},
		"unknown nested key":     {own, "{\"worktree\": {\n\n\"setpu\": []}}", []string{own + ":3", "worktree.setup"}},
		"unknown key of agent":   {own, `{"agent":{"x":{"apc":[]}}}`, []string{"agent.x.acp"}},
		"number for a string":    {own, "{\n\"model\": 3}", []string{own + ":2", `"model"`, "a string", "not 3"}},
		"string for a number":    {own, "{\"max_workers\":\n\"many\"}", []string{own + ":2", "whole number of at least 1"}},
		"fraction for a number":  {own, `{"max_workers": 1.5}`, []string{"whole number", "1.5"}},
		"no longer exact":        {own, `{"max_workers": 1e16}`, []string{"whole number", "1e16"}},
		"out of range":           {own, `{"level": 4}`, []string{"from 1 to 3", "4"}},
		"negative cost":          {own, `{"max_cost": -1}`, []string{"at least 0"}},
		"bad choice":             {own, `{"isolation": "shraed"}`, []string{"auto, shared, worktree", `"shared"`}},
		"bad duration":           {own, `{"max_duration": "5 minutes"}`, []string{"5m", "5 minutes"}},
		"no duration":            {own, `{"max_duration": "0s"}`, []string{"5m", "0s"}},
		"duration as number":     {own, `{"max_duration": 5}`, []string{"duration"}},
		"bad bool":               {own, `{"notify": "yes"}`, []string{"true or false"}},
		"bad list":               {own, `{"verify": [1]}`, []string{"a string or an array of strings", "not 1"}},
		"not an object":          {own, `[]`, []string{own + ":1", "an object"}},
		"open brace":             {own, "{\n\"model\": \"a/b\"\n", []string{own, "not valid JSON", "closing"}},
		"missing comma":          {own, "{\n\"model\": \"a/b\"\n\"ask\": \"deny\"}", []string{own + ":3", "not valid JSON"}},
		"text after":             {own, "{}\n{}", []string{own + ":2", "after the closing"}},
		"deep":                   {own, `{"verify":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, []string{"nested"}},
		"not UTF-8":              {own, "{\"model\":\"\xff\"}", []string{own, "UTF-8"}},
		"too large":              {own, "{}" + strings.Repeat(" ", maxFile), []string{"larger"}},
		"model type in opencode": {"opencode.json", "{\n\"model\": []}", []string{"opencode.json:2", `"model"`, "a string", "an array"}},
		"provider type":          {"opencode.json", `{"provider": []}`, []string{"opencode.json:1", "an object"}},
		"base URL":               {"opencode.json", "{\"provider\":{\"x\":{\"options\":{\n\"baseURL\":\"localhost:80\"}}}}", []string{"opencode.json:2", "https://host/path"}},
		"half a cost":            {"opencode.json", `{"provider":{"x":{"models":{"m":{"cost":{"input":1}}}}}}`, []string{"input and output"}},
		"bad limit":              {"opencode.json", `{"provider":{"x":{"models":{"m":{"limit":{"context":"big"}}}}}}`, []string{"whole number"}},
		"agent mode":             {"opencode.json", `{"agent":{"x":{"mode":"sub"}}}`, []string{"primary, subagent, all"}},
		"agent permission":       {"opencode.json", `{"agent":{"x":{"permission":1}}}`, []string{"allow, ask, deny"}},
		"agents not an object":   {"opencode.json", `{"agent": 7}`, []string{"an object"}},
		"tools":                  {"opencode.json", `{"tools": {"bash": "no"}}`, []string{"tools.bash", "true or false"}},
		"command without text":   {"opencode.json", `{"command":{"x":{}}}`, []string{"no template"}},
		"file missing":           {"opencode.json", "{\n\n\"agent\":{\"x\":{\"prompt\":\"{file:./no.txt}\"}}}", []string{"opencode.json:3", "no.txt", "does not exist"}},
		"file outside":           {"opencode.json", `{"agent":{"x":{"prompt":"{file:../home/secret}"}}}`, []string{"inside the project"}},
		"file at home":           {"opencode.json", `{"agent":{"x":{"prompt":"{file:~/secret}"}}}`, []string{"inside the project"}},
		"file by a link":         {"opencode.json", `{"agent":{"x":{"prompt":"{file:link}"}}}`, []string{"{file:link}"}},
		"file is a directory":    {"opencode.json", `{"agent":{"x":{"prompt":"{file:.git}"}}}`, []string{"regular file"}},
		"frontmatter open":       {".opencode/agents/a.md", "---\nmode: all\nBody", []string{"a.md:1", "---", "add a line with three dashes"}},
		"tools of an agent":      {"opencode.json", `{"agent":{"x":{"tools":["bash"]}}}`, []string{"tools", "an object"}},
		"frontmatter broken":     {".opencode/agents/a.md", "---\nmode: all\ndescription: a: b: c\n---\nBody", []string{"a.md:3", "YAML"}},
		"frontmatter type":       {".opencode/agents/a.md", "---\nmode: all\nsteps: many\n---\nBody", []string{"a.md:3", "steps", "whole number"}},
		"frontmatter permission": {".opencode/agents/a.md", "---\npermission: 1\n---\nBody", []string{"a.md:2", "allow, ask, deny"}},
		"a person's permission":  {"../home/.config/opencode/opencode.json", `{"agent":{"x":{"permission":1}}}`, []string{"opencode.json:1", "allow, ask, deny"}},
		"frontmatter alias":      {".opencode/agents/a.md", "---\na: &x [1]\nb: *x\n---\nBody", []string{"a.md:2", "not supported"}},
		"frontmatter list":       {".opencode/command/a.md", "---\n- x\n---\nBody", []string{"a.md:2", "key: value"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(filepath.Join(w.home, "secret"), "s3cret")
			if err := os.Symlink(filepath.Join(w.home, "secret"), filepath.Join(w.dir, "link")); err != nil {
				if runtime.GOOS != "windows" {
					t.Fatal(err)
				}
				t.Skip("links need a right on Windows:", err)
			}
			w.project(tc.file, tc.text)
			_, err := Load(w.opts)
			for i := range tc.words {
				tc.words[i] = strings.ReplaceAll(tc.words[i], own, filepath.FromSlash(own))
			}
			fails(t, err, centurion.KindConfig, tc.words...)
			if strings.Contains(err.Error(), "s3cret") {
				t.Error("the error tells a secret")
			}
		})
	}
}

func TestLoadBadPlaces(t *testing.T) {
	w := newWorld(t)
	o := w.opts
	o.Dir = filepath.Join(w.dir, "no")
	_, err := Load(o)
	fails(t, err, centurion.KindUsage, "no", "--dir")

	w.env["OPENCODE_CONFIG"] = "/nowhere/x.json"
	_, err = Load(w.opts)
	fails(t, err, centurion.KindConfig, "OPENCODE_CONFIG", "x.json")
	w.env["OPENCODE_CONFIG"] = "extra.json" // beside the project, wherever the program was started
	w.project("extra.json", `{"model":"a/extra"}`)
	w.trust()
	if c := w.load(); c.Model != "a/extra" {
		t.Errorf("model %q", c.Model)
	}
	w.project("extra.json", `{"model":`)
	_, err = Load(w.opts)
	fails(t, err, centurion.KindConfig, "extra.json")
	w.env["OPENCODE_CONFIG"], w.env["OPENCODE_CONFIG_CONTENT"] = "", `{"model":`
	_, err = Load(w.opts)
	fails(t, err, centurion.KindConfig, "$OPENCODE_CONFIG_CONTENT")
	delete(w.env, "OPENCODE_CONFIG_CONTENT")
	delete(w.env, "OPENCODE_CONFIG")

	if err := os.Mkdir(filepath.Join(w.dir, "opencode.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = Load(w.opts)
	fails(t, err, centurion.KindConfig, "opencode.json", "not a regular file")
}

func TestSubstitution(t *testing.T) {
	w := newWorld(t)
	w.env["WHO"], w.env["TRICK"] = "me\"}", "{file:/etc/hostname}"
	w.global("opencode/opencode.json", `{"agent":{"a":{"prompt":"{env:WHO}-{env:NOT_SET}-{file:./p.txt}-{env:TRICK}-{x}", "description":"{file:~/h.txt}"}}}`)
	w.global("opencode/p.txt", "\n a \"quoted\" prompt {env:WHO}\n")
	w.write(filepath.Join(w.home, "h.txt"), "from home")
	w.project("opencode.json", `{"mcp":{"x":{"type":"local","command":["x"],"environment":{"K":"{env:WHO}"}}},"agent":{"b":{"prompt":"{file:prompts/ü b.txt}"}}}`)
	w.project("prompts/ü b.txt", "inside\n")
	w.trust()
	c := w.load()
	if got, want := c.Agents["a"].Prompt, `me"}--a "quoted" prompt {env:WHO}-{file:/etc/hostname}-{x}`; got != want {
		t.Errorf("prompt %q, want %q", got, want)
	}
	if got := c.Agents["a"].Description + c.Agents["b"].Prompt; got != "from homeinside" {
		t.Errorf("got %q", got)
	}
	if got := c.Servers[0].Environment["K"]; got != `me"}` {
		t.Errorf("the server's variable is %q", got)
	}
}

// Contract "Configuration": what would change what agents can do is told at every run, in a line for each file; the rest is left to
// the doctor. What wants nothing is not told.
func TestNotices(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"$schema":"x","theme":"dark","username":"me","mcp":{},"shell":"fish","max_workers":3,"permision":{"bash":"deny"},"formatter":false,
		"agent":{"a":{"variant":"high","permission":{"bsah":"deny","doom_loop":"ask","mytool_*":"deny","mytool":"deny"}}},"provider":{"p":{"models":{"m.1":{"name":"M","cost":{"input":1,"output":1,"context_over_200k":{"input":2,"output":2}}}}}}}`)
	w.project("opencode.json", `{"model":"{env:HOME}/b","theme":"{env:HOME}","instructions":["ok/*.md","../x.md","/etc/passwd","~/.ssh/id","https://x.example/y"]}`)
	c := w.load()
	if len(c.Notices) != 1 {
		t.Fatalf("notices: %s", strings.Join(c.Notices, "\n"))
	}
	want := "~/.config/opencode/opencode.json: ignored: shell, max_workers (belongs in .opencode/centurion.jsonc), permision (did you mean \"permission\"?)" +
		" and 4 more (see: centurion doctor)"
	if got := filepath.ToSlash(c.Notices[0]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if diff := cmp.Diff([]string{"variable model reads {env:HOME}", `setting instructions: "../x.md", which lies outside the project`,
		`setting instructions: "/etc/passwd", which lies outside the project`, `setting instructions: "~/.ssh/id", which lies outside the project`,
		`setting instructions: "https://x.example/y", which lies outside the project`, `setting model: "{env:HOME}/b"`}, withheld(c)); diff != "" || c.Model != "" {
		t.Errorf("model %q: %s", c.Model, diff)
	}
	var got []string
	for _, i := range c.Ignored {
		got = append(got, fmt.Sprint(i.Key, " ", i.Loud))
	}
	if diff := cmp.Diff([]string{"theme false", "username false", "shell true", "max_workers true", "permision true", "theme false", "agent.a.variant true", "agent.a.permission.bsah true", "agent.a.permission.doom_loop true",
		"provider.p.models.m.1.cost.context_over_200k true"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"ok/*.md"}, c.Instructions); diff != "" {
		t.Error(diff)
	}
}

// A rule under another name of a tool decides about it; of two words for one thing the stricter counts.
func TestPermissionAliases(t *testing.T) {
	for in, want := range map[string]string{
		`{"write":"deny"}`:                           `{"edit":"deny"}`,
		`{"update_todo":"ask","delegate_task":{}}`:   `{"todowrite":"ask","task":{}}`,
		`{"edit":"deny","write":"allow"}`:            `{"edit":"deny"}`,
		`{"edit":{"a":"allow"},"patch":"deny"}`:      `{"edit":"deny"}`,
		`{"write":"deny","edit":{"docs/*":"allow"}}`: `{"edit":"deny"}`,
		`{"patch":"deny","write":"allow"}`:           `{"edit":"deny"}`,
		`"ask"`:                                      `"ask"`,
	} {
		w := newWorld(t)
		w.global("opencode/opencode.json", `{"permission":`+in+`,"agent":{"x":{"permission":`+in+`}}}`)
		c := w.load()
		if got := string(c.Permission[0].Raw); got != want || string(c.Agents["x"].Permission) != want {
			t.Errorf("%s became %s, and of an agent %s; want %s", in, got, c.Agents["x"].Permission, want)
		}
		w.project("opencode.json", `{"agent":{"x":{"permission":`+in+`}}}`)
		if got := string(w.load().AgentPermission["x"][0].Raw); got != want {
			t.Errorf("%s of a project's agent became %s; want %s", in, got, want)
		}
	}
}

func TestProjectCannotLoosen(t *testing.T) {
	w := newWorld(t)
	w.global("centurion/config.jsonc", `{"max_tokens":100,"max_rounds":5,"max_tool_calls":8,"task_budget":{"cost":1,"rounds":9},"max_duration":"1m","ask":"deny"}`)
	w.project(".opencode/centurion.jsonc", `{"ask":"allow","isolation":"shared","yes":true,"merge":true,"sandbox":"off","detach":true,"max_cost":11,
		"max_tokens":101,"max_rounds":6,"max_tool_calls":9,"task_budget":{"cost":2},"max_duration":"2m","max_workers":7}`)
	c := w.load()
	want := Own{Ask: "deny", MaxTokens: 100, MaxRounds: 5, MaxToolCalls: 8,
		TaskBudget: centurion.TaskBudget{Cost: 1, Rounds: 9}, MaxDuration: time.Minute, MaxWorkers: 7}
	if diff := cmp.Diff(want, c.Own); diff != "" {
		t.Error(diff)
	}
	if got := withheld(c); len(got) != 12 || got[0] != `setting ask: "allow"` {
		t.Errorf("%d are withheld: %q", len(got), got)
	}
	w.trust()
	if c = w.load(); c.Own.Ask != "allow" || !c.Own.Yes || c.Own.MaxTokens != 101 {
		t.Errorf("what was trusted does not count: %+v", c.Own)
	}

	w.project(".opencode/centurion.jsonc", `{"max_cost":10,"max_tokens":99,"ask":"deny","yes":false,"sandbox":"require"}`)
	if c = w.load(); len(withheld(c)) != 0 || c.Own.Sandbox != "require" || c.Own.MaxTokens != 99 || *c.Own.MaxCost != 10 {
		t.Errorf("tightening does not count: %+v %v", c.Own, withheld(c))
	}
}

func TestPermissionLevels(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"permission":{"bash":{"*":"ask","git *":"allow","a":"deny"},"edit":"deny"},"tools":{"write":false,"bash":true}}`)
	w.project("opencode.json", `{"permission":"allow"}`)
	var got []string
	for _, l := range w.load().Permission {
		got = append(got, string(l.Raw))
		if l.Project != (l.File == "opencode.json") {
			t.Errorf("level %s: project %v", l.File, l.Project)
		}
	}
	want := []string{`{"bash":{"*":"ask","git *":"allow","a":"deny"},"edit":"deny"}`, `{"edit":"deny","bash":"allow"}`, `"allow"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAgentsAndCommands(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"agent":{"Reviewer":{"temperature":0,"prompt":"json","steps":4,"permission":{"edit":"deny"}}}}`)
	w.global("opencode/agent/global.md", "no frontmatter\n")
	w.project(".opencode/agents/reviewer.md", "---\r\ndescription: \"Reviews: all\"\r\nmode: subagent\r\ntools:\r\n  bash: false\r\npermission:\r\n  bash:\r\n    \"*\": ask\r\n    git diff: allow\r\n---\r\nYou review.\r\n--- not the end\r\n")
	w.project(".opencode/agent/team/Tester.md", "---\n---\nTest.")
	w.project(".opencode/agents/notes.txt", "---\nbroken")
	w.project(".opencode/commands/fix.md", "---\ndescription: |\n  two\n  lines\nagent: worker\nsubtask: true\n---\nFix $ARGUMENTS\n")
	untrusted := w.load()
	if len(untrusted.Agents) != 2 || untrusted.Agents["reviewer"].Prompt != "json" {
		t.Errorf("agents of an untrusted file are in force: %+v", untrusted.Agents)
	}
	file := filepath.FromSlash(".opencode/agents/reviewer.md")
	narrow := map[string][]PermissionLevel{"reviewer": {{File: file, Project: true, Raw: []byte(`{"bash":{"*":"ask","git diff":"allow"}}`)}, {File: file, Project: true, Raw: []byte(`{"bash":"deny"}`)}}}
	if diff := cmp.Diff(narrow, untrusted.AgentPermission, cmpopts.IgnoreUnexported(PermissionLevel{})); diff != "" {
		t.Error(diff)
	}
	w.trust()
	c := w.load()
	zero := 0.0
	want := map[string]Agent{
		"reviewer": {Name: "reviewer", Description: "Reviews: all", Mode: "subagent", Prompt: "You review.\r\n--- not the end",
			Temperature: &zero, Steps: 4, Tools: map[string]bool{"bash": false}, File: file,
			Permission: []byte(`{"edit":"deny"}`)},
		"global":      {Name: "global", Prompt: "no frontmatter", File: filepath.FromSlash("~/.config/opencode/agent/global.md")},
		"team/tester": {Name: "team/tester", Prompt: "Test.", File: filepath.FromSlash(".opencode/agent/team/Tester.md")},
	}
	if diff := cmp.Diff(want, c.Agents); diff != "" {
		t.Error(diff)
	}
	theirs := map[string][]PermissionLevel{"reviewer": {{File: file, Raw: []byte(`{"bash":{"*":"ask","git diff":"allow"}}`)}}}
	if diff := cmp.Diff(theirs, c.AgentPermission, cmpopts.IgnoreUnexported(PermissionLevel{})); diff != "" {
		t.Error(diff)
	}
	wantCmd := map[string]Command{"fix": {Name: "fix", Description: "two\nlines\n", Agent: "worker", Subtask: true, Project: true,
		Template: "Fix $ARGUMENTS", File: filepath.FromSlash(".opencode/commands/fix.md")}}
	if diff := cmp.Diff(wantCmd, c.Commands); diff != "" {
		t.Error(diff)
	}
}

func TestLinksOutOfTheProject(t *testing.T) {
	w := newWorld(t)
	w.write(filepath.Join(w.home, "notes", "diary.md"), "dear diary")
	w.project(".opencode/agents/ok.md", "fine")
	for link, target := range map[string]string{"agents/x.md": "notes/diary.md", "command": "notes"} {
		if err := os.Symlink(filepath.Join(w.home, target), filepath.Join(w.dir, ".opencode", link)); err != nil {
			if runtime.GOOS != "windows" {
				t.Fatal(err)
			}
			t.Skip("links need a right on Windows:", err)
		}
	}
	w.trust()
	c := w.load()
	if len(c.Agents) != 1 || len(c.Commands) != 0 || len(c.Notices) != 2 {
		t.Errorf("agents %v, commands %v, notices %q", c.Agents, c.Commands, c.Notices)
	}
}

// The name in the path of a project's state is cut between characters, and never empty.
func TestProjectDirName(t *testing.T) {
	for name, want := range map[string]string{"my project": "my-project", strings.Repeat("ä", 50): strings.Repeat("ä", 40), strings.Repeat("a", 41): strings.Repeat("a", 40),
		"...": "root", "a\xffb": "a-b"} {
		if got := fileName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestStateDir(t *testing.T) {
	home := t.TempDir()
	for name, tc := range map[string]struct {
		env  map[string]string
		want string
	}{
		"own":          {map[string]string{"CENTURION_HOME": filepath.Join(home, "c"), "XDG_DATA_HOME": home, "HOME": home}, filepath.Join(home, "c")},
		"xdg":          {map[string]string{"XDG_DATA_HOME": filepath.Join(home, "x"), "HOME": home}, filepath.Join(home, "x", "centurion")},
		"relative xdg": {map[string]string{"XDG_DATA_HOME": "x", "HOME": home}, filepath.Join(home, ".local", "share", "centurion")},
		"home":         {map[string]string{"HOME": home}, filepath.Join(home, ".local", "share", "centurion")},
	} {
		got, err := StateDir(func(n string) string { return tc.env[n] })
		if err != nil || got != tc.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tc.want)
		}
	}
	_, err := StateDir(func(string) string { return "" })
	fails(t, err, centurion.KindConfig, "CENTURION_HOME")
}

func TestProjectDir(t *testing.T) {
	base := t.TempDir()
	a, b := filepath.Join(base, "a", "my app ü"), filepath.Join(base, "b", "my app ü")
	for _, d := range []string{a, b} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	da, db := ProjectDir("/state", a), ProjectDir("/state", b)
	if da == db {
		t.Error("two projects of one name share their state")
	}
	if name := filepath.Base(da); !strings.HasPrefix(name, "my-app-ü-") || len(name) != len("my-app-ü-")+8 {
		t.Errorf("name %q", name)
	}
	if filepath.Dir(da) != filepath.FromSlash("/state/projects") {
		t.Errorf("dir %q", da)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(a, link); err != nil {
		if runtime.GOOS != "windows" {
			t.Fatal(err)
		}
		t.Skip("links need a right on Windows:", err)
	}
	if got := ProjectDir("/state", link); got != da {
		t.Errorf("by a link the project has another state: %q, %q", got, da)
	}
}

// Every start of the program loads the configuration.
func BenchmarkLoad(b *testing.B) {
	home := b.TempDir()
	dir := filepath.Join(home, "project")
	for name, text := range map[string]string{
		".config/opencode/opencode.json":        `{"provider":{"corp":{"options":{"baseURL":"https://corp.example"},"models":{"a":{"cost":{"input":1,"output":2}}}}}}`,
		"project/.git":                          "",
		"project/opencode.jsonc":                "{\n// c\n\"model\":\"corp/a\",\"permission\":{\"bash\":{\"*\":\"ask\"}}}",
		"project/.opencode/centurion.jsonc":     `{"max_cost":3,"verify":["go test ./..."]}`,
		"project/.opencode/agents/reviewer.md":  "---\nmode: subagent\n---\nReview.",
		"project/.opencode/commands/explain.md": "---\ndescription: x\n---\nExplain $ARGUMENTS.",
	} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	o := Options{Dir: dir, Home: home, Env: func(string) string { return "" }}
	for b.Loop() {
		if _, err := Load(o); err != nil {
			b.Fatal(err)
		}
	}
}
