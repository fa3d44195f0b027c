// Package catalog knows providers and models: where they are reached, what they are called, what they cost and how much
// they take. It is a table that is built in, with a user's figures on top; it asks nobody and holds no keys.
package catalog

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"maps"
	"regexp"
	"slices"

	"centurion"
)

//go:embed models.json
var table []byte

const (
	// defaultContext is assumed of a model that nobody knows: what most models of the last two years take at least.
	defaultContext = 128_000
	// defaultOutput is the longest answer that is assumed of a model that nobody knows.
	defaultOutput = 16_384
)

// Model is what is known of a model.
type Model struct {
	ID            string
	Name          string
	Price         *centurion.Price // nil: unknown
	Context       int              // tokens of prompt and answer together
	Output        int              // tokens of an answer at most
	Reasoning     bool             // it thinks before it answers
	ToolCall      bool             // it can call tools
	Temperature   bool             // it takes a temperature; the others refuse requests that have one
	EchoReasoning bool             // it wants its earlier reasoning back
	Media         centurion.Media  // which files it takes
}

// Provider is what is known of a provider.
type Provider struct {
	ID         string
	Name       string
	BaseURL    string   // of its OpenAI-compatible endpoint
	Env        []string // variables that may hold its key, the usual one first
	BaseURLEnv string   // the variable that replaces BaseURL; empty if there is none
	Local      bool     // a server on this machine: no key, no price
	Default    string   // the model to take when only a key is known; empty for local ones
	Models     []Model  // sorted by id
}

// Catalog is a table of providers. The zero Catalog knows nobody; [New] returns the one that is built in. Lookups may
// be made at the same time, but not while it is changed.
type Catalog struct {
	order     []string
	providers map[string]*entry
}

type entry struct {
	Provider
	models map[string]Model
}

// Cost is a part of a price in the shape of the configuration, in USD for a million tokens. What is nil is not said.
type Cost struct {
	Input      *float64 `json:"input"`
	Output     *float64 `json:"output"`
	CacheRead  *float64 `json:"cache_read"`
	CacheWrite *float64 `json:"cache_write"`
}

// Limit is how many tokens a model takes, in the shape of the configuration. 0 is not said.
type Limit struct {
	Context int `json:"context"`
	Output  int `json:"output"`
}

// Figures are what a configuration says of a model, in the shape of models.dev and of OpenCode's configuration. What is
// left out stays as it is.
type Figures struct {
	Name        string `json:"name"`
	Cost        *Cost  `json:"cost"`
	Limit       Limit  `json:"limit"`
	Reasoning   *bool  `json:"reasoning"`
	ToolCall    *bool  `json:"tool_call"`
	Temperature *bool  `json:"temperature"`
	Interleaved any    `json:"interleaved"` // true, or an object that names a field
	Attachment  *bool  `json:"attachment"`
	Modalities  struct {
		Input []string `json:"input"`
	} `json:"modalities"`
}

// New returns the catalog that is built in. It is the caller's own: changing it changes no other.
func New() *Catalog {
	var rows map[string]struct {
		Name       string             `json:"name"`
		API        string             `json:"api"`
		Env        []string           `json:"env"`
		BaseURLEnv string             `json:"base_url_env"`
		Local      bool               `json:"local"`
		Default    string             `json:"default"`
		Models     map[string]Figures `json:"models"`
	}
	if err := json.Unmarshal(table, &rows); err != nil {
		panic("catalog: " + err.Error()) // the table is part of the program, and a test reads it
	}
	c := &Catalog{}
	for _, id := range keysInOrder(table) {
		r := rows[id]
		c.AddProvider(Provider{ID: id, Name: r.Name, BaseURL: r.API, Env: r.Env, BaseURLEnv: r.BaseURLEnv, Local: r.Local, Default: r.Default})
		for m, f := range r.Models {
			c.Override(centurion.ModelRef{Provider: id, ID: m}, f)
		}
	}
	return c
}

// keysInOrder returns the keys of a JSON object as they stand.
func keysInOrder(b []byte) []string {
	var keys []string
	d := json.NewDecoder(bytes.NewReader(b))
	_, _ = d.Token()
	for d.More() {
		k, _ := d.Token()
		var skip json.RawMessage
		if d.Decode(&skip) != nil {
			break
		}
		keys = append(keys, k.(string))
	}
	return keys
}

// AddProvider adds a provider, or changes the one with its id: what p leaves empty stays as it is. Its models are
// changed with [Catalog.Override].
func (c *Catalog) AddProvider(p Provider) {
	e := c.providers[p.ID]
	if e == nil {
		if c.providers == nil {
			c.providers = map[string]*entry{}
		}
		e = &entry{Provider: Provider{ID: p.ID, Name: p.ID, Local: p.Local}, models: map[string]Model{}}
		c.providers[p.ID] = e
		c.order = append(c.order, p.ID)
	}
	for _, f := range []struct{ to, from *string }{{&e.Name, &p.Name}, {&e.BaseURL, &p.BaseURL}, {&e.BaseURLEnv, &p.BaseURLEnv}, {&e.Default, &p.Default}} {
		if *f.from != "" {
			*f.to = *f.from
		}
	}
	if len(p.Env) > 0 {
		e.Env = slices.Clone(p.Env)
	}
}

// Override puts figures on top of what is known of a model. A provider or model that is not known is added. A price is
// known when its input and output are; tokens of the cache cost what the input does unless that is said too.
func (c *Catalog) Override(ref centurion.ModelRef, f Figures) {
	if c.providers[ref.Provider] == nil {
		c.AddProvider(Provider{ID: ref.Provider})
	}
	e := c.providers[ref.Provider]
	m, known := e.models[ref.ID]
	if !known {
		m = unknown(ref.ID)
		if e.Local {
			m.Price = &centurion.Price{}
		}
	}
	if f.Name != "" {
		m.Name = f.Name
	}
	if f.Limit.Context > 0 {
		m.Context = f.Limit.Context
		if f.Limit.Output <= 0 && m.Output > m.Context {
			m.Output = m.Context
		}
	}
	if f.Limit.Output > 0 {
		m.Output = f.Limit.Output
	}
	for _, b := range []struct {
		to   *bool
		from *bool
	}{{&m.Reasoning, f.Reasoning}, {&m.ToolCall, f.ToolCall}, {&m.Temperature, f.Temperature}} {
		if b.from != nil {
			*b.to = *b.from
		}
	}
	switch v := f.Interleaved.(type) {
	case bool:
		m.EchoReasoning = v
	case map[string]any:
		m.EchoReasoning = v["field"] == "reasoning_content" // the one field that requests here can hold
	}
	m.Media = MediaOf(m.Media, f.Attachment, f.Modalities.Input)
	m.Price = f.Cost.over(m.Price)
	e.models[ref.ID] = m
}

// over returns the price that results from putting c on top of p, which may be nil.
func (c *Cost) over(p *centurion.Price) *centurion.Price {
	if c == nil || p == nil && (c.Input == nil || c.Output == nil) {
		return p
	}
	var out centurion.Price
	if p != nil {
		out = *p
	}
	if c.Input != nil {
		out.Input = *c.Input
		// A new price for the input makes the old ones of the cache meaningless.
		out.CacheRead, out.CacheWrite = out.Input, out.Input
	}
	for _, f := range []struct{ to, from *float64 }{{&out.Output, c.Output}, {&out.CacheRead, c.CacheRead}, {&out.CacheWrite, c.CacheWrite}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	return &out
}

// MediaOf returns which files a model takes: what is known of it, unless its figures say otherwise. The list of what it takes
// as input counts more than whether it takes attachments, which of themselves are images.
func MediaOf(known centurion.Media, attachment *bool, input []string) centurion.Media {
	switch {
	case len(input) > 0:
		return centurion.Media{Image: slices.Contains(input, "image"), PDF: slices.Contains(input, "pdf")}
	case attachment == nil:
		return known
	case *attachment:
		return centurion.Media{Image: true, PDF: known.PDF}
	}
	return centurion.Media{}
}

// unknown is what is assumed of a model that nobody knows.
func unknown(id string) Model {
	return Model{ID: id, Name: id, Context: defaultContext, Output: defaultOutput, ToolCall: true, Temperature: true}
}

// dated matches what providers append to a model's name for one version of it.
var dated = regexp.MustCompile(`(-\d{8}|-\d{4}-\d{2}-\d{2}|-latest)$`)

// Lookup returns what is known of a model, and whether it is known. A model that is not has default limits (128,000 and
// 16,384 tokens) and no price. Every model of a local server counts as known, and costs nothing. A dated version of a
// known model is that model.
func (c *Catalog) Lookup(ref centurion.ModelRef) (Model, bool) {
	e := c.providers[ref.Provider]
	if e == nil {
		return unknown(ref.ID), false
	}
	if m, ok := e.models[ref.ID]; ok {
		return m, true
	}
	if m, ok := e.models[dated.ReplaceAllString(ref.ID, "")]; ok {
		m.ID = ref.ID
		return m, true
	}
	m := unknown(ref.ID)
	if e.Local {
		m.Price = &centurion.Price{}
	}
	return m, e.Local
}

// Provider returns what is known of a provider, and whether it is known.
func (c *Catalog) Provider(id string) (Provider, bool) {
	e := c.providers[id]
	if e == nil {
		return Provider{}, false
	}
	p := e.Provider
	p.Env = slices.Clone(p.Env)
	p.Models = make([]Model, 0, len(e.models))
	for _, id := range slices.Sorted(maps.Keys(e.models)) {
		p.Models = append(p.Models, e.models[id])
	}
	return p, true
}

// Providers returns all providers in the order in which they are looked for: those with keys, then local servers, then
// those that were added.
func (c *Catalog) Providers() []Provider {
	out := make([]Provider, 0, len(c.order))
	for _, id := range c.order {
		p, _ := c.Provider(id)
		out = append(out, p)
	}
	return out
}
