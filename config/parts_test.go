package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/mcp"
)

// Every key of an MCP server is read, and what its type has no use for is left out.
func TestServerAsAWhole(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"mcp":{
		"l":{"type":"local","command":["npx","l"],"cwd":"sub","environment":{"A":"1","B":"2"},"url":"http://x.example","timeout":1500,"enabled":true},
		"r":{"type":"remote","url":"http://x.example/mcp","headers":{"X-A":"1"},"command":["no"]},"off":{"enabled":false}}}`)
	want := []mcp.Server{{Name: "l", Command: []string{"npx", "l"}, Cwd: "sub", Environment: map[string]string{"A": "1", "B": "2"}, Timeout: 1500 * time.Millisecond, Trusted: true},
		{Name: "r", URL: "http://x.example/mcp", Headers: map[string]string{"X-A": "1"}, Trusted: true}, {Name: "off", Disabled: true, Trusted: true}}
	if d := cmp.Diff(want, w.load().Servers); d != "" {
		t.Error(d)
	}
	for _, url := range []string{"ftp://x.example", "x.example", "http://", "http://[::1"} {
		w.global("opencode/opencode.json", `{"mcp":{"r":{"type":"remote","url":"`+url+`"}}}`)
		_, err := Load(w.opts)
		fails(t, err, centurion.KindConfig, `"mcp.r" needs a url with http:// or https:// and a host, not "`+url+`"`)
	}
}

// Of several variables that may hold a key the first that is set counts; all that could are named where none is. A server's list is asked
// for with the headers of the configuration and that key.
func TestKeyOfOneOfSeveralVariables(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"provider":{"corp":{"name":"Corp","env":["CORP_A","CORP_B"],"options":{"baseURL":"https://corp.example/v1","apiKey":"{env:CORP_C}","headers":{"X-Team":"t"}}}}}`)
	_, err := w.resolve("corp/x")
	fails(t, err, centurion.KindConfig, "no key for provider corp (~/.config/opencode/opencode.json:1): CORP_C is not set", "set CORP_C or CORP_A or CORP_B, or run `centurion auth login corp`")
	w.env["CORP_B"] = "key-b"
	net := w.web(map[string]string{"https://corp.example/v1/models": `{"data":[{"id":"embed-1"},{"id":"m-1"},{"id":"m-2"}]}`})
	r, err := w.load().ResolveModel(t.Context(), "")
	if err != nil || r.Model.String() != "corp/m-1" || r.APIKey.Reveal() != "key-b" || r.KeySource != "CORP_B" || !r.Default || r.Unknown || r.From != "~/.config/opencode/opencode.json" {
		t.Errorf("%+v, %v", r, err)
	}
	if len(net.headers) != 1 || net.headers[0].Get("X-Team") != "t" || net.headers[0].Get("Authorization") != "Bearer key-b" {
		t.Errorf("asked with %v", net.headers)
	}
	if address, n, err := w.load().Check(t.Context(), "corp"); err != nil || address != "https://corp.example/v1" || n != 3 {
		t.Errorf("%s has %d models, %v", address, n, err)
	}
	for status, words := range map[int][]string{401: {"https://corp.example/v1: the key from CORP_B was refused", "set a key that is valid there"}, 403: {"was refused"}, 500: {"/models answered Internal Server Error", "--model corp/NAME"}} {
		net.status = status
		_, _, err := w.load().Check(t.Context(), "corp")
		kind := centurion.KindAuth
		if status == 500 {
			kind = centurion.KindNetwork
		}
		fails(t, err, kind, words...)
	}
	w.global("opencode/opencode.json", `{"provider":{"corp":{"options":{"baseURL":"https://corp.example/v1"}}}}`)
	net.status = 401
	_, _, err = w.load().Check(t.Context(), "corp")
	fails(t, err, centurion.KindAuth, "https://corp.example/v1: no key was sent")
	for _, l := range w.load().Listed() {
		if l.Model.Provider == "openai" && (l.BaseURL != "https://api.openai.com/v1" || l.API != APIResponses) || l.Model.Provider == "anthropic" && l.API != APIAnthropic {
			t.Errorf("listed: %+v", l)
		}
	}
}

// Each part of a provider that an untrusted file sets is told with what would be sent where.
func TestWhatAProjectsProviderSends(t *testing.T) {
	w := newWorld(t)
	w.project("opencode.json", `{"provider":{"corp":{"env":["THEIR_KEY"],"options":{"baseURL":"https://me:pass@theirs.example/v1","apiKey":"{env:MY_KEY}","headers":{"X-Team":"t","X-More":"m"}}},"other":{"options":{"baseURL":"https://other.example","apiKey":"k"}}}}`)
	got := withheld(w.load())
	slices.Sort(got)
	const to = "https://me:xxxxx@theirs.example/v1"
	want := []string{"provider provider.corp: MY_KEY is sent to " + to, "provider provider.corp: its key is read from THEIR_KEY", "provider provider.corp: the conversation and its key go to " + to,
		"provider provider.corp: the header X-More is sent to " + to, "provider provider.corp: the header X-Team is sent to " + to,
		"provider provider.other: its key is the project's", "provider provider.other: the conversation and its key go to https://other.example"}
	for i, line := range got { // the kind's own word is not what this is about
		_, rest, _ := strings.Cut(line, " ")
		got[i] = "provider " + rest
	}
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// What is missing in a file is told, with the line.
func TestUnfinishedFiles(t *testing.T) {
	for text, want := range map[string]string{
		"{\n\"model\":":             "2: not valid JSON: the file ends too early: a value is missing",
		"{\n\"model\": \"a":         "2: not valid JSON: the file ends too early: a closing } or ] or quote is missing",
		"{\n\"instructions\": [":    "2: not valid JSON: the file ends too early: a closing } or ] is missing",
		"{\n\"instructions\": [\"a": "2: not valid JSON: the file ends too early: a closing } or ] or quote is missing",
		"[]":                        "1: the file must hold an object { … }, not an array",
	} {
		w := newWorld(t)
		w.project("opencode.json", text)
		_, err := Load(w.opts)
		if err == nil || err.Error() != "read config: opencode.json:"+want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	w := newWorld(t)
	w.project(".opencode/centurion.jsonc", `{"max_workers": "many"}`)
	_, err := Load(w.opts)
	fails(t, err, centurion.KindConfig, "correct the value in "+filepath.FromSlash(".opencode/centurion.jsonc"))
}

// A plugin is meant by its whole spec or its name; what is ambiguous, a variable's or a file is told with what to do.
func TestPluginsNamed(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", "{\"plugin\":[\"mine@1.0.0\",\n\"./a/words.js\",\n\"./b/words.js\",[\"exec:tool\",{\"command\":[\"x\"]}]]}")
	w.global("opencode/plugins/own.js", "export default {}")
	w.project("opencode.json", `{"plugin":["mine@2.0.0"]}`)
	w.env["OPENCODE_CONFIG_CONTENT"] = `{"plugin":["theirs"]}`
	c := w.load()
	for arg, want := range map[string]string{
		"mine":          "opencode.json:1 mine@1.0.0, opencode.json:1 mine@2.0.0",
		"mine@1.0.0":    "opencode.json:1 names mine@2.0.0 | without the version: mine",
		"./a/words.js":  "opencode.json:2 ./a/words.js",
		"tool":          "opencode.json:3 exec:tool",
		"exec:tool":     "opencode.json:3 exec:tool",
		"nobody":        "none",
		"theirs":        "theirs is named in a variable | change the variable OPENCODE_CONFIG_CONTENT",
		"own":           "it is no entry of a configuration but a file: FILE | delete the file",
		"own.js":        "it is no entry of a configuration but a file: FILE | delete the file",
		"words":         "it means ./a/words.js (~/.config/opencode/opencode.json:2) and ./b/words.js (~/.config/opencode/opencode.json:3) | name one of them",
		"mine@3.0.0":    "~/.config/opencode/opencode.json:1 names mine@1.0.0 | without the version: mine",
		"./c/words2.js": "none",
	} {
		all, err := c.PluginsNamed(arg)
		var got []string
		for _, e := range all {
			got = append(got, filepath.Base(e.At)+" "+e.Spec)
		}
		said := strings.Join(got, ", ")
		if err != nil {
			said = strings.ReplaceAll(strings.TrimPrefix(err.Error(), "plugin "+arg+": "), filepath.Join(w.home, ".config/opencode/plugins/own.js"), "FILE") + " | " + centurion.HintOf(err)
		} else if said == "" {
			said = "none"
		}
		if said != want {
			t.Errorf("%s: %s\nwant %s", arg, said, want)
		}
	}
}

// What a plugin offers is taken with all that counts of it.
func TestOfferedAsAWhole(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"plugin": [["exec:p", {"command": ["p"]}]], "agent": {"mine": {"prompt": "mine"}}}`)
	c := w.load()
	o := c.Offer([]byte(`{"agent":{"Oracle":{"prompt":"You know.","description":"knows","mode":"subagent","temperature":0.5,"model":"a/b","steps":7}},"command":{"go":{"template":"Go $1","description":"goes","agent":"Mine"},"ask":{"template":"?","agent":"worker"},"no way":{"template":"x"}}}`))
	if !slices.Equal(o.Left, []string{"/no way"}) {
		t.Errorf("left: %q", o.Left)
	}
	agent, err := reader(c).offeredAgent("Oracle", o.Agents["Oracle"])
	if d := cmp.Diff(Agent{Name: "oracle", Prompt: "You know.", Description: "knows", Mode: "subagent", Temperature: new(0.5), Steps: 7, File: FromPlugins}, agent); d != "" || err != nil {
		t.Errorf("%v: %s", err, d)
	}
	for name, want := range map[string]Command{"go": {Name: "go", File: FromPlugins, Template: "Go $1", Description: "goes", Agent: "Mine", Project: true}, "ask": {Name: "ask", File: FromPlugins, Template: "?", Agent: "worker", Project: true}} {
		if got, err := reader(c).offeredCommand(name, o.Commands[name]); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// Limits of providers, of models and of agents: a project's may not be wider than the person's in any of them, and may be narrower.
func TestWiderConcurrency(t *testing.T) {
	one := func(n int) map[string]int { return map[string]int{"a": n} }
	for i, make := range []func(int) Concurrency{func(n int) Concurrency { return Concurrency{Providers: one(n)} }, func(n int) Concurrency { return Concurrency{Models: one(n)} }, func(n int) Concurrency { return Concurrency{Agents: one(n)} }} {
		for n, want := range map[int]bool{2: false, 3: false, 4: true} {
			if got := make(n).wider(make(3)); got != want {
				t.Errorf("part %d: %d over 3: %v", i, n, got)
			}
		}
		if make(9).wider(Concurrency{}) || (Concurrency{}).wider(make(3)) {
			t.Errorf("part %d: wider than none, or none wider", i)
		}
	}
	if loosens("require_proof", &Own{}, &Own{}) {
		t.Error("a proof that nobody requires is lost")
	}
}

// The ways to a model are named, each with its variable or address; the keys of search engines are kept from models under their names.
func TestWaysToAModel(t *testing.T) {
	w := newWorld(t)
	_, err := w.resolve("")
	const servers = "or start a local server: Ollama (127.0.0.1:11434), LM Studio (127.0.0.1:1234), llama.cpp (127.0.0.1:8080)"
	if hint := centurion.HintOf(err); !strings.HasSuffix(hint, servers) || !strings.Contains(hint, "OPENAI_API_KEY (and OPENAI_BASE_URL for another endpoint)") {
		t.Errorf("%v: %s", err, hint)
	}
	w.global("centurion/config.jsonc", `{"search":{"brave_key":"b-1","tavily_key":"t-1","github_token":"g-1"}}`)
	var got []string
	for _, k := range w.load().Keys() {
		got = append(got, fmt.Sprint(k.Name, "=", k.Value))
	}
	if d := cmp.Diff([]string{"brave=b-1", "tavily=t-1", "github=g-1"}, got); d != "" {
		t.Error(d)
	}
}

// A value of the wrong type is told by its key, and one that is not used by its whole key.
func TestKeysAreTold(t *testing.T) {
	const model = `{"provider":{"x":{"models":{"m":{%s}}}}}`
	for text, key := range map[string]string{
		`{"provider":{"x":{"options":{"baseURL":1}}}}`: "baseURL", `{"provider":{"x":{"options":{"headers":1}}}}`: "provider.x.options.headers",
		`{"provider":{"x":{"options":{"headers":{"A":1}}}}}`: "provider.x.options.headers.A", `{"provider":{"x":{"options":{"api":"soap"}}}}`: "api",
		`{"provider":{"x":{"name":1}}}`: "name", `{"provider":{"x":{"env":1}}}`: "env", `{"provider":{"x":{"whitelist":1}}}`: "whitelist",
		`{"provider":{"x":{"models":1}}}`: "provider.x.models", fmt.Sprintf(model, `"limit":{"context":"a"}`): "context", fmt.Sprintf(model, `"cost":{"input":"a"}`): "input",
		fmt.Sprintf(model, `"cost":{"output":1}`): "provider.x.models.m.cost", fmt.Sprintf(model, `"options":{"api":"soap"}`): "api", fmt.Sprintf(model, `"modalities":{"input":1}`): "input",
		fmt.Sprintf(model, `"interleaved":1`): "provider.x.models.m.interleaved", fmt.Sprintf(model, `"attachment":1`): "attachment", `{"mcp":{"l":{"cwd":1}}}`: "cwd", `{"mcp":{"l":{"environment":{"A":1}}}}`: "environment.A",
	} {
		w := newWorld(t)
		w.global("opencode/opencode.json", text)
		_, err := Load(w.opts)
		fails(t, err, centurion.KindConfig, "opencode.json:1", `"`+key+`" `)
	}
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"provider":{"x":{"a":1,"options":{"b":1},"models":{"m":{"c":1,"options":{"d":1},"limit":{"e":1},"cost":{"f":1,"input":1,"output":1},"modalities":{"g":1}}}}},"mcp":{"l":{"type":"local","command":["x"],"h":1}}}`)
	var got []string
	for _, i := range w.load().Ignored {
		got = append(got, i.Key)
	}
	slices.Sort(got)
	if want := "mcp.l.h provider.x.a provider.x.models.m.c provider.x.models.m.cost.f provider.x.models.m.limit.e provider.x.models.m.modalities.g provider.x.models.m.options.d provider.x.options.b"; strings.Join(got, " ") != want {
		t.Errorf("not used: %q", got)
	}
}

// What accepts a file is listed, those of the files first and no more than are asked for.
func TestModelsTakingInOrder(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"provider":{"openai":{"models":{"mine":{"attachment":true,"modalities":{"input":["text","image"]}},"chat":{"attachment":true,"modalities":{"input":["pdf"]},"options":{"api":"chat"}},"doc":{"attachment":true,"modalities":{"input":["pdf"]}}}}}}`)
	c := w.load()
	images, pdfs := c.ModelsTaking("image/png", 1000), c.ModelsTaking(centurion.MimePDF, 1000)
	if len(images) < 3 || images[0] != "openai/mine" || slices.Contains(images, "openai/doc") || !slices.Contains(pdfs, "openai/doc") || slices.Contains(pdfs, "openai/chat") || slices.Contains(pdfs, "openai/mine") {
		t.Errorf("images %q, documents %q", images, pdfs)
	}
	if few := c.ModelsTaking("image/png", 2); !slices.Equal(few, images[:2]) {
		t.Errorf("two of them: %q", few)
	}
	for _, m := range c.known("openai").Models {
		if entry, _ := c.table().Lookup(centurion.ModelRef{Provider: "openai", ID: m.ID}); entry.Media.Image != slices.Contains(images, "openai/"+m.ID) {
			t.Errorf("%s takes images: %v, and is listed among %q", m.ID, entry.Media.Image, images)
		}
	}
}
