package config

import (
	"slices"
	"strings"

	"centurion"
	"centurion/provider/catalog"
)

// knownProviders returns the built-in table in the order in which providers are tried: those with keys, then local
// servers. Disabled ones are left out.
func (c *Config) knownProviders() []catalog.Provider {
	return slices.DeleteFunc(c.table().Providers(), func(p catalog.Provider) bool { return c.disabled(p.ID, "") != nil })
}

// table returns the built-in table of providers and models. Load makes it once; a Config made otherwise has it made anew.
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

// providerIDs lists every provider that can be named, configured and known.
func (c *Config) providerIDs() []string {
	ids := slices.Clone(c.providers)
	for _, k := range c.knownProviders() {
		ids = append(ids, k.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// nearestModel returns a known model of the same provider that a name may have been meant for, as "provider/model", or "".
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

// KeyVariables lists the environment variables that known providers' keys are read from, in the order they are tried.
func KeyVariables() []string {
	var out []string
	for _, k := range catalog.New().Providers() {
		out = append(out, k.Env...)
	}
	return unique(out)
}
