package config

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/permission"
)

// Contract "Configuration": {env:NAME} of a project's file counts for a known provider at its own host, for that provider's own
// variables. Nothing else is sent anywhere, and no such line keeps the configuration from being read.
func TestProjectKeyVariable(t *testing.T) {
	const at = `"options":{"apiKey":"{env:%s}"}`
	key := func(name string) string { return strings.ReplaceAll(at, "%s", name) }
	for name, tt := range map[string]struct {
		global, project, model string
		env                    map[string]string
		want                   string   // the key
		words                  []string // of the error, when there is one
	}{
		"OpenCode's commonest line":  {project: `{"model":"openai/gpt-5","provider":{"openai":{` + key("OPENAI_API_KEY") + `}}}`, want: "canary-OPENAI_API_KEY"},
		"another of its variables":   {project: `{"model":"google/gemini-2.5-pro","provider":{"google":{` + key("GOOGLE_GENERATIVE_AI_API_KEY") + `}}}`, model: "google/gemini-2.5-pro", want: "canary-GOOGLE_GENERATIVE_AI_API_KEY"},
		"its own URL is named":       {project: `{"provider":{"openai":{"options":{"baseURL":"https://api.openai.com/v1/","apiKey":"{env:OPENAI_API_KEY}"}}}}`, model: "openai/gpt-5", want: "canary-OPENAI_API_KEY"},
		"the person's key is nearer": {global: `{"provider":{"openai":{"options":{"apiKey":"mine"}}}}`, project: `{"provider":{"openai":{` + key("OPENAI_API_KEY") + `}}}`, model: "openai/gpt-5", want: "mine"},
		"the person's gateway":       {global: `{"provider":{"openai":{"options":{"baseURL":"https://gw.example/v1"}}}}`, project: `{"provider":{"openai":{` + key("OPENAI_API_KEY") + `}}}`, model: "openai/gpt-5", want: "canary-OPENAI_API_KEY"},
		"another provider is used":   {project: `{"provider":{"openai":{` + key("AWS_SECRET") + `}}}`, model: "groq/x", want: "canary-GROQ_API_KEY"},
		"in an MCP server":           {project: `{"mcp":{"x":{"type":"local","command":["x"],"environment":{"T":"{env:AWS_SECRET}"}}}}`, model: "groq/x", want: "canary-GROQ_API_KEY"},

		"not its own variable":    {project: `{"provider":{"openai":{` + key("AWS_SECRET") + `}}}`, model: "openai/gpt-5", words: []string{"opencode.json:1", "AWS_SECRET", "openai", "https://api.openai.com/v1"}},
		"another provider's":      {project: `{"provider":{"groq":{` + key("ANTHROPIC_API_KEY") + `}}}`, model: "groq/x", words: []string{"ANTHROPIC_API_KEY"}},
		"part of a longer key":    {project: `{"provider":{"openai":{"options":{"apiKey":"x{env:OPENAI_API_KEY}"}}}}`, model: "openai/gpt-5", words: []string{"OPENAI_API_KEY"}},
		"at another host":         {project: `{"provider":{"openai":{"options":{"baseURL":"https://evil.example/v1","apiKey":"{env:OPENAI_API_KEY}"}}}}`, model: "openai/gpt-5", words: []string{"evil.example"}},
		"at this machine":         {project: `{"provider":{"openai":{"options":{"baseURL":"http://127.0.0.1:9/v1","apiKey":"{env:OPENAI_API_KEY}"}}}}`, model: "openai/gpt-5", words: []string{"127.0.0.1:9"}},
		"a provider of no list":   {project: `{"provider":{"corp":{"options":{"baseURL":"https://corp.example/v1","apiKey":"{env:CORP}"}}}}`, model: "corp/x", words: []string{"CORP", "corp.example"}},
		"the person's own server": {global: `{"provider":{"corp":{"options":{"baseURL":"https://corp.example/v1"}}}}`, project: `{"provider":{"corp":{` + key("CORP") + `}}}`, model: "corp/x", words: []string{"CORP", "corp.example"}},
		"in the URL":              {project: `{"provider":{"corp":{"options":{"baseURL":"https://{env:CORP}.example/v1"}}}}`, model: "corp/x", words: []string{"CORP"}},
		"in a header":             {project: `{"provider":{"ollama":{"options":{"headers":{"X":"{env:CORP}"}}}}}`, model: "ollama/x", words: []string{"CORP", "127.0.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, v := range []string{"OPENAI_API_KEY", "GROQ_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "AWS_SECRET", "CORP"} {
				w.env[v] = "canary-" + v
			}
			if tt.global != "" {
				w.global("opencode/opencode.json", tt.global)
			}
			w.project("opencode.json", tt.project)
			r, err := w.resolve(tt.model)
			if len(tt.words) == 0 {
				if err != nil || r.APIKey.Reveal() != tt.want {
					t.Errorf("key %q, %v (%s)", r.APIKey.Reveal(), err, centurion.HintOf(err))
				}
				return
			}
			fails(t, err, centurion.KindConfig, tt.words...)
			if err != nil && strings.Contains(err.Error()+centurion.HintOf(err), "canary") {
				t.Errorf("the error tells a secret: %v", err)
			}
		})
	}
}

// Contract "Configuration": a disabled provider is not picked, and naming it is an error; a project's file can only disable more.
func TestDisabledProviders(t *testing.T) {
	for name, tt := range map[string]struct {
		global, project, flag string
		want                  string // provider
		kind                  centurion.Kind
		words                 []string
	}{
		"the next is taken":            {global: `{"disabled_providers":["openai"]}`, want: "groq"},
		"only the enabled one":         {global: `{"enabled_providers":["groq"]}`, want: "groq"},
		"a project disables":           {project: `{"disabled_providers":["openai"]}`, want: "groq"},
		"a project enables fewer":      {global: `{"enabled_providers":["groq","openai"]}`, project: `{"enabled_providers":["groq"]}`, want: "groq"},
		"a project cannot enable":      {global: `{"disabled_providers":["openai"]}`, project: `{"disabled_providers":[]}`, want: "groq"},
		"a project cannot enable more": {global: `{"enabled_providers":["groq"]}`, project: `{"enabled_providers":["groq","openai"]}`, want: "groq"},
		"a server of its own": {global: `{"disabled_providers":["corp"],"provider":{"corp":{"options":{"baseURL":"https://c.example/v1"},"models":{"m":{}}}}}`,
			want: "openai"},
		"named by a flag": {global: "{\n\"disabled_providers\":[\"openai\"]}", flag: "openai/gpt-5", kind: centurion.KindUsage,
			words: []string{`"openai"`, "disabled_providers", "opencode.json:2"}},
		"named by a file": {global: `{"disabled_providers":["openai"],"model":"openai/gpt-5"}`, kind: centurion.KindConfig, words: []string{"disabled_providers"}},
		"not enabled":     {global: `{"enabled_providers":["groq"]}`, flag: "openai/gpt-5", kind: centurion.KindUsage, words: []string{"enabled_providers"}},
		"a model outside the whitelist": {global: `{"provider":{"openai":{"whitelist":["gpt-5"]}}}`, flag: "openai/gpt-5-mini", kind: centurion.KindUsage,
			words: []string{"whitelist", "openai/gpt-5-mini"}},
		"a model in the blacklist":             {global: `{"provider":{"openai":{"blacklist":["gpt-5"]}}}`, flag: "openai/gpt-5", kind: centurion.KindUsage, words: []string{"blacklist"}},
		"the list that names what may be used": {global: `{"provider":{"openai":{"whitelist":["gpt-5"]}}}`, flag: "openai/o3", kind: centurion.KindUsage, words: []string{"name one of gpt-5"}},
		"a blacklist has no list to choose":    {global: `{"provider":{"openai":{"blacklist":["gpt-5"]}}}`, flag: "openai/gpt-5", kind: centurion.KindUsage, words: []string{"name another model"}},
		"nothing was said":                     {global: `{"disabled_providers":null,"enabled_providers":null}`, want: "openai"},
		"a policy":                             {global: `{"experimental":{"policies":[{"action":"provider.use","effect":"deny","resource":"openai"}]}}`, kind: centurion.KindConfig, words: []string{"experimental.policies", "disabled_providers"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.env["OPENAI_API_KEY"], w.env["GROQ_API_KEY"] = "sk", "gsk"
			if tt.global != "" {
				w.global("opencode/opencode.json", tt.global)
			}
			if tt.project != "" {
				w.project("opencode.json", tt.project)
			}
			r, err := w.resolve(tt.flag)
			if tt.want == "" {
				fails(t, err, tt.kind, tt.words...)
			} else if err != nil || r.Model.Provider != tt.want {
				t.Errorf("picked %q, %v", r.Model, err)
			}
		})
	}
}

// A disabled server on this machine is not even asked.
func TestDisabledLocalServer(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"disabled_providers":["ollama"]}`)
	net := w.web(map[string]string{"http://127.0.0.1:11434/v1/models": `{"data":[{"id":"qwen"}]}`})
	if r, err := w.resolve(""); err == nil {
		t.Errorf("picked %s", r.Model)
	}
	if strings.Contains(strings.Join(net.urls, " "), "11434") {
		t.Errorf("asked %v", net.urls)
	}
}

// S4: an untrusted file of the project chooses neither the model, which the person would pay, nor the agent and its policy, unless the person's
// own choice is the same. A model of the project's own provider is refused when it is used, as before.
func TestChoicesOfTheProject(t *testing.T) {
	for name, test := range map[string]struct {
		mine, open, own string // the person's opencode.json, the project's, its centurion.jsonc
		withheld        string
		model, agent    string // without trust
	}{
		"a model":                   {"", `{"model":"openai/gpt-5-pro"}`, "", `setting model: "openai/gpt-5-pro"`, "", ""},
		"another than the person's": {`{"model":"openai/gpt-5","default_agent":"mine"}`, `{"model":"openai/gpt-5-pro","default_agent":"theirs"}`, "", `setting model: "openai/gpt-5-pro", setting default_agent: "theirs"`, "openai/gpt-5", "mine"},
		"the same":                  {`{"model":"openai/gpt-5","default_agent":"mine"}`, `{"model":"openai/gpt-5","default_agent":"mine"}`, `{"model":"openai/gpt-5"}`, "", "openai/gpt-5", "mine"},
		"of its own file":           {`{"model":"openai/gpt-5"}`, "", `{"model":"openai/gpt-5-pro","profile":"assistant","agent":"mine","fallback":"groq/x"}`, `setting agent: "mine", setting fallback: "groq/x", setting model: "openai/gpt-5-pro", setting profile: "assistant"`, "openai/gpt-5", ""},
		"of its own provider":       {"", `{"model":"corp/m","provider":{"corp":{"options":{"baseURL":"https://corp.example/v1"}}}}`, "", "endpoint provider.corp: the conversation and its key go to https://corp.example/v1", "corp/m", ""},
		"under another name":        {`{"model":"openai/gpt-5"}`, `{"provider":{"openai":{"models":{"gpt-5":{"id":"gpt-5-pro"}}}}}`, "", "setting the id of openai/gpt-5", "openai/gpt-5", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.env["OPENAI_API_KEY"], w.env["CORP"] = "k", "k"
			for path, text := range map[string]string{filepath.Join(w.home, ".config/opencode/opencode.json"): test.mine,
				filepath.Join(w.dir, "opencode.json"): test.open, filepath.Join(w.dir, ".opencode/centurion.jsonc"): test.own} {
				if text != "" {
					w.write(path, text)
				}
			}
			c := w.load()
			got := withheld(c)
			if test.own != "" {
				slices.Sort(got)
			}
			if strings.Join(got, ", ") != test.withheld {
				t.Errorf("withheld: %s", strings.Join(got, ", "))
			}
			if c.Model != test.model || c.DefaultAgent != test.agent || c.Own.Agent+c.Own.Profile != "" || len(c.Own.Fallback.All) > 0 {
				t.Errorf("model %q, default agent %q, own %+v", c.Model, c.DefaultAgent, c.Own)
			}
			if r, err := c.ResolveModel(t.Context(), ""); test.model != "corp/m" && (err != nil || strings.Contains(r.Model.ID, "pro") || r.Model.Provider != "openai") {
				t.Errorf("%s, %v", r.Model, err)
			} else if test.model == "corp/m" {
				fails(t, err, centurion.KindConfig, "corp.example", "centurion trust")
			}
			w.trust()
			c = w.load()
			r, err := c.ResolveModel(t.Context(), "")
			if pro := strings.Contains(test.open+test.own, "gpt-5-pro"); err != nil || pro && !strings.Contains(r.Model.ID, "pro") {
				t.Errorf("trusted, it does not count: %s, %v", r.Model, err)
			}
		})
	}
}

// Without any other model, the person is told of the one that the project names, and how it comes to count.
func TestOnlyTheProjectNamesAModel(t *testing.T) {
	w := newWorld(t)
	w.project("opencode.json", `{"model":"openai/gpt-5"}`)
	_, err := w.resolve("")
	fails(t, err, centurion.KindConfig, "no model is configured", "look at opencode.json:1, which names openai/gpt-5, and trust it if you want to: centurion trust; or name one with --model")
}

// S1: a rule of a project's file that restricted agents at the person's last start stays in force after it was deleted, with its file or without,
// until the person trusts what is there now.
func TestRulesThatAreGone(t *testing.T) {
	decides := func(w *world) (string, []string) {
		w.t.Helper()
		c := w.load()
		rules, err := c.Rules()
		if err != nil {
			w.t.Fatal(err)
		}
		var out []string
		for agent, command := range map[string]string{"commander": "rm x", "worker": "git push"} {
			out = append(out, command+": "+string(permission.Decide(rules(agent), "bash", []string{command}).Action))
		}
		slices.Sort(out)
		return strings.Join(out, ", "), withheld(c)
	}
	const gone = `permission bash "rm *": deny is gone`
	for name, test := range map[string]struct {
		then     string // "" deletes the file
		trusted  bool   // what was there at the start
		withheld string
	}{
		"one of them":    {`{"agent":{"worker":{"permission":{"bash":{"git push":"deny"}}}}}`, false, gone},
		"the file":       {"", false, gone + `, permission bash "git push": deny is gone`},
		"what was yours": {"", true, gone + `, permission bash "git push": deny is gone`},
		"overridden":     {`{"permission":{"bash":{"rm *":"deny","*":"allow"}},"agent":{"worker":{"permission":{"bash":{"git push":"deny"}}}}}`, false, `permission bash "*": allow`},
		"in another way": {`{"permission":{"bash":{"rm *":"deny","x":"deny"}},"agent":{"worker":{"permission":{"bash":{"git push":"deny"}}}}}`, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.global("opencode/opencode.json", `{"permission":{"bash":"allow"}}`)
			w.project("opencode.json", `{"permission":{"bash":{"rm *":"deny"}},"agent":{"worker":{"permission":{"bash":{"git push":"deny"}}}}}`)
			w.write(w.opts.Dir+"/.git/HEAD", "")
			const denied = "git push: deny, rm x: deny"
			if test.trusted {
				w.project("opencode.json", `{"permission":{"bash":{"rm *":"deny"}},"agent":{"worker":{"permission":{"bash":{"git push":"deny"}}}},"model":"openai/gpt-5"}`)
				w.trust()
			}
			for range 2 { // a second start forgets nothing
				if err := w.load().Started(); err != nil {
					t.Fatal(err)
				}
				if test.then != "" {
					w.project("opencode.json", test.then)
				} else if err := os.RemoveAll(filepath.Join(w.dir, "opencode.json")); err != nil {
					t.Fatal(err)
				}
				if got, items := decides(w); got != denied || strings.Join(items, ", ") != test.withheld {
					t.Errorf("%s, withheld %s", got, strings.Join(items, ", "))
				}
			}
			if test.withheld == "" {
				return
			}
			w.trust()
			if got, items := decides(w); got == denied || len(items) > 0 {
				t.Errorf("trusted: %s, withheld %q", got, items)
			}
			if err := w.load().Started(); err != nil {
				t.Fatal(err)
			}
			if c := w.load(); len(slices.Concat(slices.Collect(maps.Values(c.Trust.Seen))...)) != strings.Count(test.then, "permission") {
				t.Errorf("still kept: %q", c.Trust.Seen)
			}
		})
	}
}

// What a person has trusted is used as if it were their own, until its content changes.
func TestTrustedProvider(t *testing.T) {
	const corp = `{"provider":{"corp":{"options":{"baseURL":"{env:AT}","apiKey":"{env:CORP}","headers":{"X-A":"{env:CORP}","X-B":"{file:x}"}},"env":["{env:LISTED}"]}}}`
	w := newWorld(t)
	w.env["CORP"], w.env["AT"] = "canary", "https://corp.example/v1"
	w.project("opencode.json", corp)
	w.project("x", "X")
	c := w.load()
	_, err := c.ResolveModel(t.Context(), "corp/x")
	u, ok := errors.AsType[*Untrusted](err)
	if !ok || u.Provider != "corp" {
		t.Fatalf("%v", err)
	}
	for _, word := range []string{"AT", "CORP", "LISTED", "X-A", "X-B"} {
		if !strings.Contains(u.Needs, word) {
			t.Errorf("%q does not name %s", u.Needs, word)
		}
	}
	w.trust()
	c = w.load()
	r, err := c.ResolveModel(t.Context(), "corp/x")
	if err != nil || r.BaseURL != "https://corp.example/v1" || r.APIKey.Reveal() != "canary" || r.Headers["X-A"] != "canary" || r.Headers["X-B"] != "X" {
		t.Errorf("%+v, %v", r, err)
	}
	for name, change := range map[string]func(){
		"the file":           func() { w.project("opencode.json", corp+" ") },
		"what it includes":   func() { w.project("x", "Y") },
		"nothing is trusted": func() { _, _ = c.Trust.Revoke() },
	} {
		w.project("opencode.json", corp)
		w.project("x", "X")
		w.trust()
		change()
		if _, err := w.load().ResolveModel(t.Context(), "corp/x"); centurion.KindOf(err) != centurion.KindConfig {
			t.Errorf("%s changed: %v", name, err)
		}
	}
}

// A tool that a project's agent switches on is told as part of the agent: it is no rule, and trust makes it none.
func TestToolsOfAnUntrustedAgent(t *testing.T) {
	w := newWorld(t)
	w.project("opencode.json", `{"agent":{"worker":{"tools":{"bash":true}}}}`)
	c := w.load()
	if _, err := c.Rules(); err != nil {
		t.Fatal(err)
	}
	if got := withheld(c); len(got) != 1 || !strings.HasPrefix(got[0], "agent worker: tools (") {
		t.Errorf("%q", got)
	}
}

// A key's own variable needs no trust at its usual address, and is told beside an address of the project.
func TestVariableSentElsewhere(t *testing.T) {
	w := newWorld(t)
	for url, want := range map[string]int{"https://api.openai.com/v1": 0, "https://evil.example/v1": 2} {
		w.project("opencode.json", `{"provider":{"openai":{"options":{"baseURL":"`+url+`","apiKey":"{env:OPENAI_API_KEY}"}}}}`)
		if got := withheld(w.load()); len(got) != want || want > 0 && !strings.Contains(strings.Join(got, "; "), "OPENAI_API_KEY is sent to "+url) {
			t.Errorf("%s: %q", url, got)
		}
	}
}

// A restriction that a project's file had at an earlier reading is missed when one that nobody trusts lacks it or has a wider one; what a
// person trusts, has in their own file, or what is stricter, is not.
func TestLostRestrictions(t *testing.T) {
	for name, tt := range map[string]struct {
		file, was, now, mine string
		trusted              bool
		want                 string
	}{
		"the same":                {".opencode/centurion.jsonc", `{"max_cost": 1}`, `{"max_cost": 1, "max_rounds": 5}`, "", false, ""},
		"stricter":                {".opencode/centurion.jsonc", `{"max_cost": 1}`, `{"max_cost": 0.5}`, "", false, ""},
		"gone":                    {".opencode/centurion.jsonc", `{"max_cost": 1}`, `{}`, "", false, "max_cost"},
		"the file is gone":        {".opencode/centurion.jsonc", `{"max_cost": 1}`, "", "", false, "max_cost"},
		"wider":                   {".opencode/centurion.jsonc", `{"max_rounds": 5}`, `{"max_rounds": 6}`, "", false, "max_rounds"},
		"wider, and trusted":      {".opencode/centurion.jsonc", `{"max_rounds": 5}`, `{"max_rounds": 6, "ask": "allow"}`, "", true, ""},
		"gone, and the person's":  {".opencode/centurion.jsonc", `{"max_rounds": 5}`, `{}`, `{"max_rounds": 9}`, false, ""},
		"a check":                 {".opencode/centurion.jsonc", `{"verify": ["go test"]}`, `{"verify": ["true"]}`, "", false, "verify"},
		"what restricts nothing":  {".opencode/centurion.jsonc", `{"format": "json"}`, `{}`, "", false, ""},
		"a provider is disabled":  {"opencode.json", `{"disabled_providers": ["a"]}`, `{"disabled_providers": ["b"]}`, "", false, "disabled_providers"},
		"models of a provider":    {"opencode.json", `{"provider": {"a.b": {"blacklist": ["m"]}}}`, `{"provider": {"a.b": {}}}`, "", false, "provider.a.b.blacklist"},
		"the same of a provider":  {"opencode.json", `{"provider": {"a.b": {"whitelist": ["m"]}}}`, `{"provider": {"a.b": {"whitelist": ["m"]}}, "model": "x/y"}`, "", false, ""},
		"nothing was there":       {"opencode.json", `{}`, `{"disabled_providers": ["b"]}`, "", false, ""},
		"another model is chosen": {"opencode.json", `{"model": "a/b"}`, `{"model": "a/c"}`, "", false, ""},
	} {
		w := newWorld(t)
		w.project(tt.file, tt.was)
		before := w.load()
		if tt.mine != "" {
			w.global("centurion/config.jsonc", tt.mine)
		}
		if w.project(tt.file, tt.now); tt.now == "" {
			if err := os.Remove(filepath.Join(w.dir, tt.file)); err != nil {
				t.Fatal(err)
			}
		}
		if tt.trusted {
			w.trust()
		}
		want := ""
		if tt.want != "" {
			want = filepath.FromSlash(tt.file) + ": " + tt.want
		}
		if got := w.load().Lost(before); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
