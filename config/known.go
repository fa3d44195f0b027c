package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/provider/catalog"
)

// knownProviders returns the built-in table in the order of trying: providers with keys, then local servers, without disabled ones.
func (c *Config) knownProviders() []catalog.Provider {
	return slices.DeleteFunc(c.table().Providers(), func(p catalog.Provider) bool { return c.disabled(p.ID, "") != nil })
}

// table returns the built-in table of providers and models. Load makes it once; for other Configs it is made at each call.
func (c *Config) table() *catalog.Catalog {
	if c.catalog == nil {
		return catalog.New()
	}
	return c.catalog
}

// known returns a known provider, or one without an id.
func (c *Config) known(id string) catalog.Provider {
	p, _ := c.table().Provider(id)
	p.BaseURL = strings.TrimRight(p.BaseURL, "/")
	return p
}

// providerIDs lists every configured or known provider.
func (c *Config) providerIDs() []string {
	ids := slices.Clone(c.providers)
	for _, k := range c.knownProviders() {
		ids = append(ids, k.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Known returns an error of centurion.KindUsage, with the nearest name, for a provider that is neither configured nor in the table.
func (c *Config) Known(id string) error {
	if _, configured := c.Providers[id]; configured || c.known(id).ID != "" || id == customID {
		return nil
	}
	e, _ := c.unknownProvider(centurion.KindUsage, id, "", c.providerIDs())
	return e
}

// unknownProvider is the error for a provider that is neither configured nor in the table, and the nearest of the known ids, or "". place
// says where it is named.
func (c *Config) unknownProvider(kind centurion.Kind, id, place string, known []string) (e *centurion.Error, near string) {
	e = &centurion.Error{Kind: kind, Msg: fmt.Sprintf("unknown provider %q%s", id, place),
		Hint: "known are " + strings.Join(known, ", ") + "; others go under \"provider\" in opencode.json"}
	if near = centurion.Nearest(id, known); near != "" {
		e.Msg += fmt.Sprintf("; the nearest is %q", near)
	}
	return e, near
}

// modelError is an error of centurion.KindConfig for a model that cannot be used.
func modelError(hint, format string, args ...any) error {
	return &centurion.Error{Op: "find model", Kind: centurion.KindConfig, Msg: fmt.Sprintf(format, args...), Hint: hint}
}

// Listed is an available model, with its effective limits and price.
type Listed struct {
	Name string // its name for --model
	File string // the file that defines it; empty for the built-in table
	// Title and ProviderTitle are the names of the model and its provider for OpenCode's clients; "" if none are configured.
	Title, ProviderTitle string
	Resolved
}

// Listed lists the models of the configuration in its order, then those of the built-in table, without disabled ones.
func (c *Config) Listed() (out []Listed) {
	add := func(id, model, file string) {
		p := c.Providers[id]
		if c.disabled(id, "") != nil || !p.allows(model) {
			return
		}
		n := connection{provider: id, url: cmp.Or(p.BaseURL, c.known(id).BaseURL), custom: p.BaseURL != ""}
		n.api = apiOf(n, p)
		configured, _ := p.model(model)
		out = append(out, Listed{id + "/" + model, file, configured.Title, p.Title, c.describe(n, model, "")})
	}
	for _, id := range c.providers {
		for _, m := range c.Providers[id].Models {
			add(id, m.Name, c.Providers[id].File)
		}
	}
	for _, k := range c.knownProviders() {
		for _, m := range k.Models {
			if _, configured := c.Providers[k.ID].model(m.ID); !configured {
				add(k.ID, m.ID, "")
			}
		}
	}
	return out
}

// nearestModel returns a known model of the same provider with a similar name, as "provider/model", or "".
func (c *Config) nearestModel(ref centurion.ModelRef) string {
	var names []string
	for _, m := range c.known(ref.Provider).Models {
		names = append(names, m.ID)
	}
	if near := centurion.Nearest(ref.ID, names); near != "" {
		return ref.Provider + "/" + near
	}
	return ""
}

// KeyVariables lists the environment variables for known providers' keys, in the order they are tried.
func KeyVariables() []string {
	var out []string
	for _, k := range catalog.New().Providers() {
		out = append(out, k.Env...)
	}
	return unique(out)
}
