// Package catalog knows providers and models: their addresses, names, prices and limits. It is a built-in table, overlaid with a user's
// figures; it makes no requests and holds no keys.
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
	// defaultContext is assumed for an unknown model: the least of most models of the last two years.
	defaultContext = 128_000
	// defaultOutput is the longest answer assumed for an unknown model.
	defaultOutput = 16_384
)

// Model is the data of a model.
type Model struct {
	ID            string
	Name          string
	Price         *centurion.Price // nil: unknown
	Context       int              // tokens of prompt and answer together
	Output        int              // maximum tokens of an answer
	Reasoning     bool             // it thinks before it answers
	ToolCall      bool             // it can call tools
	Temperature   bool             // it accepts a temperature; others refuse requests with one
	EchoReasoning bool             // it requires its earlier reasoning back
	Media         centurion.Media  // the accepted file types
}

// Provider is the data of a provider.
type Provider struct {
	ID         string
	Name       string
	BaseURL    string   // of its OpenAI-compatible endpoint
	Env        []string // variables for its key, the usual one first
	BaseURLEnv string   // the variable that replaces BaseURL; empty if there is none
	Local      bool     // a server on this machine: no key, no price
	Default    string   // the model to use if only a key is known; empty for local ones
	Models     []Model  // sorted by id
}

// Catalog is a table of providers. The zero Catalog is empty; [New] returns the built-in one. Lookups may be concurrent, but not with
// changes.
type Catalog struct {
	order     []string
	providers map[string]*entry
}

type entry struct {
	Provider
	models map[string]Model
}

// Cost is a part of a price in the format of the configuration, in USD per million tokens. Nil means unset.
type Cost struct {
	Input      *float64 `json:"input"`
	Output     *float64 `json:"output"`
	CacheRead  *float64 `json:"cache_read"`
	CacheWrite *float64 `json:"cache_write"`
}

// Limit is a model's limits in tokens, in the format of the configuration. 0 means unset.
type Limit struct {
	Context int `json:"context"`
	Output  int `json:"output"`
}

// Figures are a model's settings in a configuration, in the format of models.dev and OpenCode. Missing ones mean no change.
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

// New returns the built-in catalog. The caller owns it: changes do not affect others.
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

// keysInOrder returns the keys of a JSON object in order.
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

// AddProvider adds a provider, or changes the one with its id: empty fields of p mean no change. Use [Catalog.Override] to change its
// models.
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

// Override overrides the data of a model, adding an unknown provider or model. A price is known if its input and output are; cached
// tokens cost as much as input unless set.
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
		m.EchoReasoning = v["field"] == "reasoning_content" // the only field that requests here support
	}
	m.Media = MediaOf(m.Media, f.Attachment, f.Modalities.Input)
	m.Price = f.Cost.over(m.Price)
	e.models[ref.ID] = m
}

// over returns p, which may be nil, overridden by c.
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
		// A new input price makes the old cache prices meaningless.
		out.CacheRead, out.CacheWrite = out.Input, out.Input
	}
	for _, f := range []struct{ to, from *float64 }{{&out.Output, c.Output}, {&out.CacheRead, c.CacheRead}, {&out.CacheWrite, c.CacheWrite}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	return &out
}

// MediaOf returns the file types that a model accepts: the known ones, unless its figures differ. The list of inputs takes precedence
// over the attachment flag, which only means images.
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

// unknown is the assumed data of an unknown model.
func unknown(id string) Model {
	return Model{ID: id, Name: id, Context: defaultContext, Output: defaultOutput, ToolCall: true, Temperature: true}
}

// dated matches the suffix of a model's name for one version of it.
var dated = regexp.MustCompile(`(-\d{8}|-\d{4}-\d{2}-\d{2}|-latest)$`)

// Lookup returns the data of a model, and whether it is known. An unknown one has default limits (128,000 and 16,384 tokens) and no
// price. Every model of a local server counts as known and is free. A dated version of a known model is that model.
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

// Provider returns the data of a provider, and whether it is known.
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

// Providers returns all providers in search order: those with keys, then local servers, then added ones.
func (c *Catalog) Providers() []Provider {
	out := make([]Provider, 0, len(c.order))
	for _, id := range c.order {
		p, _ := c.Provider(id)
		out = append(out, p)
	}
	return out
}
