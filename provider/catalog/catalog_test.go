package catalog

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"centurion"
)

func ref(provider, id string) centurion.ModelRef {
	return centurion.ModelRef{Provider: provider, ID: id}
}

// Every row must be complete, because a missing figure would be a price of zero or a window of nothing.
func TestTable(t *testing.T) {
	c, n := New(), 0
	var ids []string
	for _, p := range c.Providers() {
		ids = append(ids, p.ID)
		if u, err := url.Parse(p.BaseURL); err != nil || u.Host == "" || p.Name == "" {
			t.Errorf("%s: base URL %q, name %q", p.ID, p.BaseURL, p.Name)
		}
		if p.Local {
			continue
		}
		if len(p.Env) == 0 {
			t.Errorf("%s has no variable for a key", p.ID)
		}
		d, ok := c.Lookup(ref(p.ID, p.Default))
		if !ok || !d.ToolCall {
			t.Errorf("%s: the default model %q is unknown or calls no tools", p.ID, p.Default)
		}
		for _, m := range p.Models {
			n++
			if m.Price == nil || m.Price.Input <= 0 || m.Price.Output < m.Price.Input || m.Price.CacheRead <= 0 || m.Price.CacheRead > m.Price.Input ||
				m.Price.CacheWrite < m.Price.Input || m.Context < 32_000 || m.Output < 4_000 || m.Output > m.Context || m.Name == "" || !m.ToolCall {
				t.Errorf("%s/%s: %+v, price %+v", p.ID, m.ID, m, m.Price)
			}
		}
	}
	want := []string{"openai", "anthropic", "openrouter", "google", "groq", "deepseek", "mistral", "xai", "ollama", "lmstudio", "llamacpp"}
	if d := cmp.Diff(want, ids); d != "" {
		t.Error(d)
	}
	if n < 40 {
		t.Errorf("only %d models", n)
	}
}

func TestLookup(t *testing.T) {
	c := New()
	tests := []struct {
		ref     centurion.ModelRef
		known   bool
		price   *centurion.Price
		context int
	}{
		{ref("openai", "gpt-4.1"), true, &centurion.Price{Input: 2, Output: 8, CacheRead: 0.5, CacheWrite: 2}, 1_047_576},
		{ref("openai", "gpt-4.1-2025-04-14"), true, &centurion.Price{Input: 2, Output: 8, CacheRead: 0.5, CacheWrite: 2}, 1_047_576},
		{ref("anthropic", "claude-haiku-4-5-20251001"), true, &centurion.Price{Input: 1, Output: 5, CacheRead: 0.1, CacheWrite: 1.25}, 200_000},
		{ref("openai", "gpt-99"), false, nil, 128_000},
		{ref("custom", "x"), false, nil, 128_000},
		{ref("ollama", "qwen3-coder"), true, &centurion.Price{}, 128_000},
	}
	for _, tt := range tests {
		m, known := c.Lookup(tt.ref)
		if known != tt.known || m.ID != tt.ref.ID || m.Context != tt.context || m.Output == 0 || cmp.Diff(tt.price, m.Price) != "" {
			t.Errorf("%s: %v %+v, price %+v", tt.ref, known, m, m.Price)
		}
	}
	if m, _ := c.Lookup(ref("deepseek", "deepseek-reasoner")); !m.EchoReasoning || !m.Reasoning {
		t.Errorf("got %+v", m)
	}
	if m, _ := c.Lookup(ref("openai", "gpt-5")); m.Temperature {
		t.Errorf("got %+v", m)
	}
	if m, _ := c.Lookup(ref("custom", "x")); m.Name != "x" || !m.ToolCall || !m.Temperature {
		t.Errorf("an unknown model is assumed to be %+v", m)
	}
	if m, _ := c.Lookup(ref("openai", "gpt-5.4")); m.Media != (centurion.Media{Image: true, PDF: true}) {
		t.Errorf("gpt-5.4 takes %+v", m.Media)
	}
	p, _ := c.Provider("openai")
	if p.BaseURLEnv != "OPENAI_BASE_URL" {
		t.Errorf("the address of openai is read from %q", p.BaseURLEnv)
	}
	p.Env[0] = "MINE"
	if p, _ := c.Provider("openai"); p.Env[0] != "OPENAI_API_KEY" {
		t.Error("who asks for a provider can change the catalog")
	}
	if p, ok := c.Provider("custom"); ok {
		t.Errorf("an unknown provider is known as %+v", p)
	}
}

// What is said of a model's input beats whether it takes attachments, and that beats what is known.
func TestMediaOf(t *testing.T) {
	yes, no := true, false
	image, pdf := centurion.Media{Image: true}, centurion.Media{PDF: true}
	both := centurion.Media{Image: true, PDF: true}
	for _, tt := range []struct {
		known      centurion.Media
		attachment *bool
		input      []string
		want       centurion.Media
	}{
		{both, nil, nil, both},
		{both, &yes, []string{"text"}, centurion.Media{}},
		{pdf, &no, []string{"image"}, image},
		{image, nil, []string{"pdf"}, pdf},
		{centurion.Media{}, &yes, nil, image},
		{pdf, &yes, nil, both},
		{both, &no, nil, centurion.Media{}},
	} {
		if got := MediaOf(tt.known, tt.attachment, tt.input); got != tt.want {
			t.Errorf("%+v with %v: %+v, want %+v", tt.known, tt.input, got, tt.want)
		}
	}
}

func TestOverride(t *testing.T) {
	tests := []struct {
		name   string
		ref    centurion.ModelRef
		json   string // as in a configuration
		price  *centurion.Price
		limits Limit
	}{
		{"nothing", ref("openai", "gpt-4.1"), `{}`, &centurion.Price{Input: 2, Output: 8, CacheRead: 0.5, CacheWrite: 2}, Limit{1_047_576, 32_768}},
		{"output only", ref("openai", "gpt-4.1"), `{"cost":{"output":9}}`, &centurion.Price{Input: 2, Output: 9, CacheRead: 0.5, CacheWrite: 2}, Limit{1_047_576, 32_768}},
		{"input resets the cache", ref("openai", "gpt-4.1"), `{"cost":{"input":1}}`, &centurion.Price{Input: 1, Output: 8, CacheRead: 1, CacheWrite: 1}, Limit{1_047_576, 32_768}},
		{"free", ref("openai", "gpt-4.1"), `{"cost":{"input":0,"output":0}}`, &centurion.Price{}, Limit{1_047_576, 32_768}},
		{"smaller window", ref("openai", "gpt-4.1"), `{"limit":{"context":8000}}`, &centurion.Price{Input: 2, Output: 8, CacheRead: 0.5, CacheWrite: 2}, Limit{8000, 8000}},
		{"new model", ref("custom", "x"), `{"cost":{"input":1,"output":2,"cache_read":0.1},"limit":{"context":9000,"output":900}}`,
			&centurion.Price{Input: 1, Output: 2, CacheRead: 0.1, CacheWrite: 1}, Limit{9000, 900}},
		{"output is cut to the window, not raised", ref("openai", "gpt-4.1"), `{"limit":{"context":8000,"output":9000}}`,
			&centurion.Price{Input: 2, Output: 8, CacheRead: 0.5, CacheWrite: 2}, Limit{8000, 9000}},
		{"only an output price is none", ref("custom", "x"), `{"cost":{"output":1}}`, nil, Limit{128_000, 16_384}},
		{"half a price is none", ref("custom", "x"), `{"cost":{"input":1}}`, nil, Limit{128_000, 16_384}},
		{"a local model is free", ref("ollama", "x"), `{"limit":{"context":40000}}`, &centurion.Price{}, Limit{40_000, 16_384}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var f Figures
			if err := json.Unmarshal([]byte(tt.json), &f); err != nil {
				t.Fatal(err)
			}
			c := New()
			c.Override(tt.ref, f)
			m, known := c.Lookup(tt.ref)
			if d := cmp.Diff(tt.price, m.Price); !known || d != "" || m.Context != tt.limits.Context || m.Output != tt.limits.Output {
				t.Errorf("%v %+v: %s", known, m, d)
			}
			if other, _ := New().Lookup(ref("openai", "gpt-4.1")); other.Price.Output != 8 || other.Context != 1_047_576 {
				t.Error("the change reached another catalog")
			}
		})
	}
	no := false
	c := New()
	c.Override(ref("openai", "gpt-4.1"), Figures{})
	if m, _ := c.Lookup(ref("openai", "gpt-4.1")); m.Name != "GPT-4.1" {
		t.Errorf("without a name it is called %q", m.Name)
	}
	c.AddProvider(Provider{ID: "own", BaseURL: "http://own/v1"})
	c.Override(ref("own", "x"), Figures{})
	if p, _ := c.Provider("own"); p.BaseURL != "http://own/v1" {
		t.Errorf("a model of it made the provider %+v", p)
	}
	c.Override(ref("openai", "gpt-4.1"), Figures{Name: "mine", ToolCall: &no, Interleaved: true})
	if m, _ := c.Lookup(ref("openai", "gpt-4.1")); m.ToolCall || !m.EchoReasoning || m.Name != "mine" || !m.Temperature {
		t.Errorf("got %+v", m)
	}
	for field, want := range map[string]bool{"reasoning_content": true, "reasoning_details": false} { // requests have room for one of them
		c.Override(ref("own", "y"), Figures{Interleaved: map[string]any{"field": field}})
		if m, _ := c.Lookup(ref("own", "y")); m.EchoReasoning != want {
			t.Errorf("%s: its reasoning is handed back: %v", field, m.EchoReasoning)
		}
	}
}

func TestAddProvider(t *testing.T) {
	c := New()
	c.AddProvider(Provider{ID: "openai", BaseURL: "http://proxy/v1"})
	if p, _ := c.Provider("openai"); p.BaseURL != "http://proxy/v1" || p.Name != "OpenAI" || len(p.Models) == 0 || !slices.Equal(p.Env, []string{"OPENAI_API_KEY"}) {
		t.Errorf("got %+v", p)
	}
	var empty Catalog
	empty.AddProvider(Provider{ID: "own", BaseURL: "http://own/v1"})
	if p, ok := empty.Provider("own"); !ok || p.Name != "own" || len(empty.Providers()) != 1 {
		t.Errorf("got %+v", p)
	}
}

// A provider has all of its models, by id, and all providers are listed in the order in which they are searched.
func TestEveryModelIsListed(t *testing.T) {
	c := New()
	var order []string
	for _, p := range c.Providers() {
		order = append(order, p.ID)
		ids := slices.Sorted(maps.Keys(c.providers[p.ID].models))
		for i, m := range p.Models {
			if i >= len(ids) || m.ID != ids[i] || cmp.Diff(c.providers[p.ID].models[m.ID], m) != "" {
				t.Errorf("%s has %+v at %d", p.ID, m, i)
			}
		}
		if one, ok := c.Provider(p.ID); len(p.Models) != len(ids) || !ok || cmp.Diff(one, p) != "" {
			t.Errorf("%s has %d models, want %d", p.ID, len(p.Models), len(ids))
		}
	}
	if !slices.Equal(order, c.order) || len(order) != len(c.providers) {
		t.Errorf("the order is %q, want %q", order, c.order)
	}
}
