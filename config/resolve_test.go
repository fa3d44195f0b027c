package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"centurion"
)

// web answers for URLs by prefix with a list of models or a status, and remembers what it was sent.
type web struct {
	mu      sync.Mutex
	lists   map[string]string // URL → body
	status  int               // instead of 200
	hang    bool              // answers never, until the request is cancelled
	headers []http.Header
	urls    []string
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.headers, w.urls = append(w.headers, r.Header.Clone()), append(w.urls, r.URL.String())
	body, ok := w.lists[r.URL.String()]
	if w.hang {
		w.mu.Unlock()
		<-r.Context().Done()
		w.mu.Lock()
		return nil, r.Context().Err()
	}
	if !ok {
		return nil, errors.New("connection refused")
	}
	status := w.status
	if status == 0 {
		status = http.StatusOK
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Body: io.NopCloser(bytes.NewBufferString(body)), Request: r}, nil
}

func (w *world) web(lists map[string]string) *web {
	net := &web{lists: lists}
	w.opts.HTTP = &http.Client{Transport: net}
	return net
}

func (w *world) resolve(flag string) (Resolved, error) {
	w.t.Helper()
	if w.opts.HTTP == nil {
		w.web(nil)
	}
	return w.load().ResolveModel(w.t.Context(), flag)
}

func TestResolveNamed(t *testing.T) {
	w := newWorld(t)
	w.env["OPENAI_API_KEY"] = " sk-env\n"
	r, err := w.resolve("openai/gpt-5")
	if err != nil || r.Model.String() != "openai/gpt-5" || r.BaseURL != "https://api.openai.com/v1" || r.APIKey != "sk-env" ||
		r.KeySource != "OPENAI_API_KEY" || r.Unknown || r.Default || r.Warning != "" || r.Price == nil || r.Limit.Context < 100_000 ||
		r.From != "--model" {
		t.Errorf("%+v, %v", r, err)
	}

	r, err = w.resolve("openai/gpt-55")
	if err != nil || !r.Unknown || r.Limit.Context != 128_000 || r.Price != nil || !strings.Contains(r.Warning, "openai/gpt-5)") {
		t.Errorf("unknown model: %+v, %v", r, err)
	}

	w.env["OPENROUTER_API_KEY"] = "or"
	r, err = w.resolve("openrouter/some/deep/name")
	if err != nil || r.Model != (centurion.ModelRef{Provider: "openrouter", ID: "some/deep/name"}) {
		t.Errorf("slashes in a model's name: %+v, %v", r, err)
	}

	r, err = w.resolve("ollama/qwen3-coder:30b")
	if err != nil || r.BaseURL != "http://127.0.0.1:11434/v1" || r.APIKey != "" || r.Unknown || r.Price == nil || *r.Price != (centurion.Price{}) {
		t.Errorf("a local server needs no key and is free: %+v, %v", r, err)
	}
	w.global("opencode/opencode.json", `{"provider":{"ollama":{"options":{"baseURL":"https://gpu.example/v1"}}}}`)
	if r, err = w.resolve("ollama/qwen3-coder:30b"); err != nil || r.Price != nil {
		t.Errorf("what is free on this machine need not be free elsewhere: %+v, %v", r, err)
	}
}

func TestResolveErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		flag, global string
		env          map[string]string
		kind         centurion.Kind
		words        []string
	}{
		"no slash":             {flag: "gpt-5", kind: centurion.KindUsage, words: []string{`"gpt-5"`, "provider/model", "openai/gpt-5", "--model"}},
		"no model":             {flag: "openai/", kind: centurion.KindUsage, words: []string{"provider/model"}},
		"in a file":            {global: `{"model":"gpt"}`, kind: centurion.KindConfig, words: []string{"opencode.json", "provider/model"}},
		"nearest provider":     {flag: "opnai/x", kind: centurion.KindUsage, words: []string{`"opnai"`, `"openai"`, "openai/x"}},
		"nearest of a file":    {flag: "corpp/x", global: `{"provider":{"corp":{}}}`, kind: centurion.KindUsage, words: []string{`"corp"`}},
		"nothing near":         {flag: "zzzzzzz/x", kind: centurion.KindUsage, words: []string{"anthropic", "opencode.json"}},
		"a local model's name": {flag: "qwen3-coder", kind: centurion.KindUsage, words: []string{"write it like openai/gpt-5"}},
		"no key":               {flag: "groq/x", kind: centurion.KindConfig, words: []string{"no key for provider groq: GROQ_API_KEY is not set", "centurion auth login groq"}},
		"no key by config":     {flag: "corp/x", global: "{\"provider\":{\n\"corp\":{\"options\":{\"baseURL\":\"https://c.example\",\"apiKey\":\"{env:CORP_KEY}\"}}}}", kind: centurion.KindConfig, words: []string{"no key for provider corp (~/.config/opencode/opencode.json:2): CORP_KEY is not set"}},
		"half a URL":           {flag: "custom/x", env: map[string]string{"OPENAI_BASE_URL": "http://"}, kind: centurion.KindConfig, words: []string{"OPENAI_BASE_URL", "correct or unset"}},
		"no URL at all":        {flag: "custom/x", env: map[string]string{"OPENAI_BASE_URL": "http://[::1"}, kind: centurion.KindConfig, words: []string{"OPENAI_BASE_URL", "correct or unset"}},
		"no URL":               {flag: "corp/x", global: `{"provider":{"corp":{}}}`, kind: centurion.KindConfig, words: []string{"provider.corp.options.baseURL"}},
		"custom, no URL":       {flag: "custom/x", kind: centurion.KindConfig, words: []string{"OPENAI_BASE_URL"}},
		"bad OPENAI_BASE_URL": {flag: "custom/x", env: map[string]string{"OPENAI_BASE_URL": "localhost:1"}, kind: centurion.KindConfig,
			words: []string{"OPENAI_BASE_URL", "https://host/path", "localhost:1"}},
		"none at all": {kind: centurion.KindConfig, words: []string{"--model", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY",
			"OPENROUTER_API_KEY", "GEMINI_API_KEY", "GROQ_API_KEY", "DEEPSEEK_API_KEY", "MISTRAL_API_KEY", "XAI_API_KEY", "11434", "1234",
			"8080", "centurion auth login", "opencode.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			maps.Copy(w.env, tc.env)
			if tc.global != "" {
				w.global("opencode/opencode.json", tc.global)
			}
			_, err := w.resolve(tc.flag)
			fails(t, err, tc.kind, tc.words...)
		})
	}
}

// A model that only a variable with an endpoint has brought is told as its.
func TestResolveEndpointVariable(t *testing.T) {
	w := newWorld(t)
	w.env["OPENAI_BASE_URL"] = "http://127.0.0.1:9/v1"
	w.web(map[string]string{"http://127.0.0.1:9/v1/models": `{"data":[{"object":"model"},{"id":"qwen"}]}`}) // one without a name is none
	if r, err := w.resolve(""); err != nil || r.Model.String() != "openai/qwen" || r.From != "OPENAI_BASE_URL" || !r.Default {
		t.Errorf("%s from %q (default %v), %v", r.Model, r.From, r.Default, err)
	}
}

func TestResolveOrder(t *testing.T) {
	w := newWorld(t)
	steps := []struct {
		add   func()
		model string // prefix
		from  string
	}{
		{func() {
			w.web(map[string]string{"http://127.0.0.1:1234/v1/models": `{"data":[{"id":"text-embedding-x"},{"id":"qwen"}]}`})
		},
			"lmstudio/qwen", "the server at http://127.0.0.1:1234/v1"},
		{func() {
			w.write(filepath.Join(w.home, ".local/share/opencode/auth.json"), `{"mistral":{"type":"api","key":"k"}}`)
		}, "mistral/", "auth.json"},
		{func() { w.env["XAI_API_KEY"] = "x" }, "xai/", "XAI_API_KEY"},
		{func() { w.env["ANTHROPIC_API_KEY"] = "x" }, "anthropic/", "ANTHROPIC_API_KEY"},
		{func() { w.env["OPENAI_API_KEY"] = "x" }, "openai/", "OPENAI_API_KEY"},
		{func() {
			w.global("opencode/opencode.json", `{"provider":{"corp":{"options":{"baseURL":"https://corp.example"},"models":{"b":{},"a":{}}}}}`)
		}, "corp/b", "opencode.json"},
		{func() { w.project("opencode.json", `{"model":"openai/from-file"}`) }, "corp/b", "opencode.json"}, // not without trust
		{w.trust, "openai/from-file", "opencode.json"},
		{func() {
			w.project(".opencode/centurion.jsonc", `{"model":"openai/from-own"}`)
			w.trust()
		}, "openai/from-own", "centurion.jsonc"},
	}
	for i, s := range steps {
		s.add()
		r, err := w.resolve("")
		if err != nil || !strings.HasPrefix(r.Model.String(), s.model) || !strings.HasSuffix(r.From, s.from) || r.Default != (i < 7) {
			t.Errorf("step %d: %s from %q (default %v), %v; want %s from %s", i, r.Model, r.From, r.Default, err, s.model, s.from)
		}
	}
	if r, err := w.resolve("openai/from-flag"); err != nil || r.Model.ID != "from-flag" {
		t.Errorf("flag: %s, %v", r.Model, err)
	}
}

func TestResolveKeyOrder(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(w.home, ".local", "share", "opencode", "auth.json")
	w.write(path, `{"openai":{"type":"api","key":"from-opencode"}}`)
	check := func(key, source string) {
		t.Helper()
		if r, err := w.resolve("openai/gpt-5"); err != nil || r.APIKey.Reveal() != key || !strings.HasSuffix(r.KeySource, source) {
			t.Errorf("key %q from %q, %v; want %q", r.APIKey.Reveal(), r.KeySource, err, key)
		}
	}
	check("from-opencode", path)
	if _, err := NewKeys(w.opts).Login(t.Context(), "openai", "from-login"); err != nil {
		t.Fatal(err)
	}
	check("from-login", "auth.json")
	w.env["OPENAI_API_KEY"] = "from-env"
	check("from-env", "OPENAI_API_KEY")
	w.env["MY_KEY"] = "from-config"
	w.global("opencode/opencode.json", `{"provider":{"openai":{"options":{"apiKey":"{env:MY_KEY}"}}}}`)
	check("from-config", "MY_KEY")
	w.global("opencode/opencode.json", `{"provider":{"openai":{"options":{"apiKey":"literal"}}}}`)
	check("literal", "opencode.json")
}

func TestResolveConfiguredModel(t *testing.T) {
	w := newWorld(t)
	w.env["TOKEN"] = "t"
	w.global("opencode/opencode.json", `{"provider":{
		"corp":{"npm":"@ai-sdk/openai-compatible","name":"Corp","options":{"baseURL":"https://corp.example/v1/","apiKey":"k","headers":{"X-Team":"{env:TOKEN}"}},
			"models":{"fast":{"id":"corp-fast-2","limit":{"context":1000,"output":100},"cost":{"input":1,"output":2,"cache_read":0.1},"interleaved":{"field":"reasoning_content"}},"other":{"interleaved":{"field":"reasoning_details"}}}},
		"openai":{"models":{"gpt-5":{"cost":{"input":9,"output":9}}}}}}`)
	r, err := w.resolve("corp/fast")
	if err != nil {
		t.Fatal(err)
	}
	want := Resolved{Model: centurion.ModelRef{Provider: "corp", ID: "corp-fast-2"}, API: APIChat, BaseURL: "https://corp.example/v1", APIKey: "k",
		KeySource: r.KeySource, Headers: map[string]string{"X-Team": "t"}, Echo: true, Limit: Limit{1000, 100},
		Price: &centurion.Price{Input: 1, Output: 2, CacheRead: 0.1, CacheWrite: 1}, From: "--model"}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	if r, err = w.resolve("corp/other"); err != nil || r.Echo {
		t.Errorf("reasoning is sent back in a field that requests do not have: %+v, %v", r, err)
	}
	w.env["OPENAI_API_KEY"] = "x"
	if r, err = w.resolve("openai/gpt-5"); err != nil || r.Price == nil || r.Price.Input != 9 || r.Limit.Context < 100_000 {
		t.Errorf("the list is not overridden key by key: %+v, %v", r, err)
	}
}

func TestResolveCustomURL(t *testing.T) {
	w := newWorld(t)
	net := w.web(map[string]string{"http://127.0.0.1:9/v1/models": `{"data":[{"id":"tiny"},{"id":"big"}]}`})
	w.env["OPENAI_BASE_URL"] = "http://127.0.0.1:9/v1/"
	r, err := w.resolve("")
	if err != nil || r.Model.String() != "openai/tiny" || !r.Default || r.Unknown || r.BaseURL != "http://127.0.0.1:9/v1" {
		t.Errorf("first of the list: %+v, %v", r, err)
	}
	if got := net.headers[0].Get("Authorization"); got != "" {
		t.Errorf("sent %q without a key", got)
	}
	w.env["OPENAI_API_KEY"] = "sk"
	if _, err = w.resolve(""); err != nil || net.headers[1].Get("Authorization") != "Bearer sk" {
		t.Errorf("sent %q, %v", net.headers[1], err)
	}
	w.global("opencode/opencode.json", `{"provider": {"openai": {"options": {"baseURL": "https://corp.example/v1"}}}}`)
	if r, err = w.resolve("openai/gpt-5"); err != nil || r.BaseURL != "https://corp.example/v1" {
		t.Errorf("the person's own file does not come before the variable: %+v, %v", r, err)
	}
	w.global("opencode/opencode.json", `{}`)
	r, err = w.resolve("custom/x")
	if err != nil || r.Model.String() != "custom/x" || r.APIKey != "sk" || r.BaseURL != "http://127.0.0.1:9/v1" || !r.Unknown {
		t.Errorf("custom: %+v, %v", r, err)
	}
	r, err = w.resolve("openai/gpt-5")
	if err != nil || r.BaseURL != "http://127.0.0.1:9/v1" || r.Unknown {
		t.Errorf("openai elsewhere: %+v, %v", r, err)
	}
	r, err = w.resolve("openai/gpt-5")
	if err != nil || r.APIKey != "sk" {
		t.Errorf("%+v, %v", r, err)
	}

	net.lists["http://127.0.0.1:9/v1/models"] = `{"data":[]}`
	_, err = w.resolve("")
	fails(t, err, centurion.KindConfig, "lists no model", "--model openai/")
	net.lists["http://127.0.0.1:9/v1/models"] = `<html>`
	_, err = w.resolve("")
	fails(t, err, centurion.KindNetwork, "did not answer with a list")
	net.status = http.StatusUnauthorized
	_, err = w.resolve("")
	fails(t, err, centurion.KindAuth, "OPENAI_API_KEY")
	if strings.Contains(err.Error(), "sk") {
		t.Error("the error tells the key")
	}
	delete(net.lists, "http://127.0.0.1:9/v1/models")
	_, err = w.resolve("")
	fails(t, err, centurion.KindNetwork, "http://127.0.0.1:9/v1", "cannot be reached")
}

func TestLocalServersAreNotWaitedFor(t *testing.T) {
	w := newWorld(t)
	c := w.load()
	synctest.Test(t, func(t *testing.T) {
		net := &web{hang: true}
		c.opts.HTTP = &http.Client{Transport: net}
		start := time.Now()
		_, err := c.ResolveModel(t.Context(), "")
		fails(t, err, centurion.KindConfig, "no model")
		if d := time.Since(start); d != 300*time.Millisecond || len(net.urls) != 3 {
			t.Errorf("%d servers in %v: they are asked at once, for 300 ms", len(net.urls), d)
		}
	})
}

// What comes with a project must not bring the person's key anywhere.
func TestProjectCannotTakeKeys(t *testing.T) {
	const evil, loop = "https://evil.example/v1", "http://127.0.0.1:7/v1"
	for name, tc := range map[string]struct {
		global, project string
		model           string
		refused         []string // words; nil: accepted
		key, url        string
	}{
		"a known provider elsewhere": {project: `{"provider":{"openai":{"options":{"baseURL":"` + evil + `"}}}}`, model: "openai/gpt-5",
			refused: []string{"opencode.json:1", "evil.example", "centurion trust"}},
		"by api":                    {project: `{"provider":{"openai":{"api":"` + evil + `"}}}`, model: "openai/gpt-5", refused: []string{"evil.example"}},
		"a provider of its own":     {project: `{"provider":{"x":{"env":["OPENAI_API_KEY"],"options":{"baseURL":"` + evil + `"}}}}`, model: "x/y", refused: []string{"evil.example"}},
		"with a literal key":        {project: `{"provider":{"x":{"options":{"baseURL":"` + evil + `","apiKey":"k"}}}}`, model: "x/y", refused: []string{"evil.example"}},
		"looks like loopback":       {project: `{"provider":{"x":{"options":{"baseURL":"http://localhost.evil.example/v1"}}}}`, model: "x/y", refused: []string{"localhost.evil.example"}},
		"loopback as user":          {project: `{"provider":{"x":{"options":{"baseURL":"http://127.0.0.1@evil.example/v1"}}}}`, model: "x/y", refused: []string{"evil.example"}},
		"the person's own, moved":   {global: `{"provider":{"corp":{"options":{"baseURL":"https://corp.example","apiKey":"mine"}}}}`, project: `{"provider":{"corp":{"options":{"baseURL":"` + evil + `"}}}}`, model: "corp/y", refused: []string{"evil.example"}},
		"another port":              {global: `{"provider":{"corp":{"options":{"baseURL":"https://corp.example","apiKey":"mine"}}}}`, project: `{"provider":{"corp":{"options":{"baseURL":"https://corp.example:444"}}}}`, model: "corp/y", refused: []string{"corp.example:444"}},
		"plain instead of TLS":      {project: `{"provider":{"openai":{"options":{"baseURL":"http://api.openai.com/v1"}}}}`, model: "openai/gpt-5", refused: []string{"api.openai.com"}},
		"its key, a known place":    {project: `{"provider":{"openai":{"options":{"apiKey":"theirs"}}}}`, model: "openai/gpt-5", refused: []string{"its key is the project's"}},
		"its headers":               {project: `{"provider":{"openai":{"options":{"headers":{"X-Forward-To":"evil"}}}}}`, model: "openai/gpt-5", refused: []string{"the header X-Forward-To"}},
		"its variables":             {project: `{"provider":{"openai":{"env":["AWS_SECRET"]}}}`, model: "openai/gpt-5", refused: []string{"AWS_SECRET"}},
		"the known place, named":    {project: `{"provider":{"openai":{"options":{"baseURL":"https://API.openai.com:443/v1/"}}}}`, model: "openai/gpt-5", key: "person", url: "https://api.openai.com/v1"},
		"the person's, named":       {global: `{"provider":{"corp":{"options":{"baseURL":"https://corp.example","apiKey":"mine"}}}}`, project: `{"provider":{"corp":{"options":{"baseURL":"https://corp.example/"},"models":{"y":{}}}}}`, model: "corp/y", key: "mine", url: "https://corp.example"},
		"loopback, literal key":     {project: `{"provider":{"x":{"options":{"baseURL":"` + loop + `","apiKey":"k","headers":{"A":"b"}}}}}`, model: "x/y", refused: []string{"127.0.0.1:7", "the header A"}},
		"loopback, no key":          {project: `{"provider":{"openai":{"options":{"baseURL":"` + loop + `"}}}}`, model: "openai/gpt-5", refused: []string{"127.0.0.1:7"}},
		"loopback, person's key":    {global: `{"provider":{"corp":{"options":{"baseURL":"https://corp.example","apiKey":"mine","headers":{"Cookie":"c"}}}}}`, project: `{"provider":{"corp":{"options":{"baseURL":"` + loop + `"}}}}`, model: "corp/y", refused: []string{"127.0.0.1:7"}},
		"loopback, IPv6":            {project: `{"provider":{"x":{"options":{"baseURL":"http://[::1]:7"}}}}`, model: "x/y", refused: []string{"[::1]:7"}},
		"the person's own loopback": {global: `{"provider":{"x":{"options":{"baseURL":"` + loop + `"}}}}`, project: `{"provider":{"x":{"options":{"apiKey":"k"}}}}`, model: "x/y", refused: []string{"its key is the project's"}},
		"global, as it wants":       {global: `{"provider":{"openai":{"options":{"baseURL":"https://gateway.example"}}}}`, model: "openai/gpt-5", key: "person", url: "https://gateway.example"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.env["OPENAI_API_KEY"], w.env["AWS_SECRET"] = "person", "aws"
			if tc.global != "" {
				w.global("opencode/opencode.json", tc.global)
			}
			w.project("opencode.json", tc.project)
			if tc.project == "" {
				w.project("opencode.json", "{}")
			}
			r, err := w.resolve(tc.model)
			if tc.refused != nil {
				fails(t, err, centurion.KindConfig, tc.refused...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.APIKey.Reveal() != tc.key || r.BaseURL != tc.url {
				t.Errorf("key %q to %s; want %q to %s", r.APIKey.Reveal(), r.BaseURL, tc.key, tc.url)
			}
			if len(r.Headers) > 0 {
				t.Errorf("headers %v", r.Headers)
			}
		})
	}
}

// A URL that a variable was to make is told with that variable.
func TestURLOfAVariable(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"provider":{"corp":{"options":{"baseURL":"https://{env:CORP_URL}/v1"}}}}`)
	_, err := Load(w.opts)
	fails(t, err, centurion.KindConfig, "https://host/path", "set the variable CORP_URL")
}

// What is asked for by name and what a list holds is known, or told with the nearest.
func TestKnownAndListed(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"disabled_providers":["groq"],"provider":{"corp":{"options":{"baseURL":"https://corp.example/v1"},"models":{"a":{},"b":{"limit":{"context":5000}},"c":{}},"blacklist":["c"]},
		"openai":{"whitelist":["gpt-5"],"models":{"gpt-5":{"limit":{"context":7}}}}}}`)
	w.project("opencode.json", `{"provider":{"theirs":{"options":{"baseURL":"http://127.0.0.1:9/v1"}}}}`)
	c := w.load()
	for _, id := range []string{"corp", "openai", "theirs", "custom"} {
		if err := c.Known(id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	fails(t, c.Known("copr"), centurion.KindUsage, `unknown provider "copr"; the nearest is "corp"`, "known are anthropic, corp")
	err := c.Known("zzzzzzzzz")
	fails(t, err, centurion.KindUsage, `unknown provider "zzzzzzzzz"`)
	if strings.Contains(err.Error(), "nearest") {
		t.Errorf("nothing is near, yet: %v", err)
	}
	var got []string
	for _, l := range c.Listed() {
		if id := l.Model.Provider; id == "corp" || id == "openai" || id == "groq" {
			got = append(got, fmt.Sprintf("%s %s %d", l.Name, l.File, l.Limit.Context))
		}
	}
	if diff := cmp.Diff([]string{"corp/a ~/.config/opencode/opencode.json 128000", "corp/b ~/.config/opencode/opencode.json 5000", "openai/gpt-5 ~/.config/opencode/opencode.json 7"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"corp", "openai"}, c.Personal()); diff != "" {
		t.Error(diff)
	}
	if !c.Shipped("theirs") || c.Shipped("corp") || c.Shipped("openai") {
		t.Error("who names an address is mixed up")
	}
	_, _, err = c.Check(t.Context(), "xai")
	fails(t, err, centurion.KindConfig, "XAI_API_KEY")
}

// A window that a file makes smaller bounds what is known of the answer, not what the file says of it.
func TestDescribedLimits(t *testing.T) {
	w := newWorld(t)
	w.env["OPENAI_API_KEY"] = "x"
	for model, want := range map[string]Limit{`{"limit":{"context":5000}}`: {5000, 5000}, `{"limit":{"context":5000,"output":6000}}`: {5000, 6000}, `{"limit":{"output":99}}`: {400_000, 99}} {
		w.global("opencode/opencode.json", `{"provider":{"openai":{"models":{"gpt-5":`+model+`}}}}`)
		if r, err := w.resolve("openai/gpt-5"); err != nil || r.Limit != want {
			t.Errorf("%s: %+v, %v", model, r.Limit, err)
		}
	}
}

// An endpoint of a person's that wants no key is used although the stores cannot be read; one that needs a key says why it has none.
func TestStoresThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.write(filepath.Join(w.home, ".local", "share", "centurion", "auth.json"), `{`)
	w.global("opencode/opencode.json", `{"provider":{"corp":{"options":{"baseURL":"https://corp.example/v1"}}}}`)
	if r, err := w.resolve("corp/x"); err != nil || r.APIKey != "" {
		t.Errorf("%+v, %v", r, err)
	}
	_, err := w.resolve("openai/gpt-5")
	fails(t, err, centurion.KindConfig, "auth.json is not valid JSON")
	w.global("opencode/opencode.json", `{}`)
	_, err = w.resolve("")
	fails(t, err, centurion.KindConfig, "auth.json is not valid JSON")
}

func TestProjectPrices(t *testing.T) {
	w := newWorld(t)
	w.env["OPENAI_API_KEY"] = "x"
	w.project("opencode.json", `{"provider":{"openai":{"models":{"gpt-5":{"cost":{"input":0,"output":0}}}},
		"loc":{"models":{"m":{"cost":{"input":3,"output":4}}},"options":{"baseURL":"http://localhost:7"}}}}`)
	r, err := w.resolve("openai/gpt-5")
	if err != nil || r.Price == nil || r.Price.Input == 0 {
		t.Errorf("a project made a model free: %+v, %v", r.Price, err)
	}
	if got := withheld(w.load()); len(got) != 2 || got[0] != "setting the price of openai/gpt-5" {
		t.Errorf("withheld %q", got)
	}
	w.trust()
	if r, err = w.resolve("loc/m"); err != nil || r.Price == nil || r.Price.Input != 3 {
		t.Errorf("the price of its own provider: %+v, %v", r.Price, err)
	}
}

// A discovered model never comes from a place that the project chose beyond this machine.
func TestDiscoverySkipsForeign(t *testing.T) {
	w := newWorld(t)
	net := w.web(nil)
	w.env["OPENAI_API_KEY"] = "person"
	w.project("opencode.json", `{"provider":{"evil":{"options":{"baseURL":"https://evil.example"},"models":{"m":{}}}}}`)
	r, err := w.resolve("")
	if err != nil || r.Model.Provider != "openai" || len(net.urls) != 0 {
		t.Errorf("%s, %v, asked %v", r.Model, err, net.urls)
	}
}
