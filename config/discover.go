package config

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/provider/catalog"
	"centurion/trust"
)

const (
	probeCap = 300 * time.Millisecond // local servers answer within a few; do not wait for missing ones
	listCap  = 15 * time.Second       // the list of a named endpoint: a gateway may have to wake up
	maxList  = 8 << 20                // bytes; the longest known list is below 1 MB
)

// discover finds a model if none is named.
func (c *Config) discover(ctx context.Context) (Resolved, error) {
	for _, try := range []func(context.Context) (Resolved, bool, error){c.fromProviders, c.fromKeys, c.fromStores, c.fromLocal} {
		r, ok, err := try(ctx)
		if ok || err != nil {
			r.Default = true
			return r, err
		}
	}
	return Resolved{}, c.noModel()
}

// noModel lists every way to get a model.
func (c *Config) noModel() error {
	var vars, servers []string
	for _, k := range c.knownProviders() {
		switch {
		case k.Local:
			servers = append(servers, fmt.Sprintf("%s (%s)", k.Name, strings.TrimSuffix(strings.TrimPrefix(k.BaseURL, "http://"), "/v1")))
		case k.ID == "openai":
			vars = append(vars, customKey+" (and "+customURL+" for another endpoint)")
		default:
			vars = append(vars, k.Env[0])
		}
	}
	shipped := ""
	if n := c.withheldModel; n != nil {
		shipped = fmt.Sprintf("look at %s:%d, which names %s, and trust it if you want to: %s; or ", n.src.name, n.line, n.text, trust.Command)
	}
	return modelError(shipped+"name one with --model provider/model or \"model\" in opencode.json; set "+strings.Join(vars, ", ")+
		"; store a key with `centurion auth login`; or start a local server: "+strings.Join(servers, ", "), "no model is configured and none was found")
}

// fromProviders takes the first configured provider with its own endpoint.
func (c *Config) fromProviders(ctx context.Context) (Resolved, bool, error) {
	for _, id := range c.providers {
		p := c.Providers[id]
		if c.known(id).ID != "" || p.BaseURL == "" || c.disabled(id, "") != nil {
			continue
		}
		n, err := c.connect(ctx, id)
		if err != nil || n.usable() != nil {
			continue // not usable as configured; naming one of its models shows the reason
		}
		if i := slices.IndexFunc(p.Models, func(m Model) bool { return p.allows(m.Name) }); i >= 0 {
			return c.describe(n, p.Models[i].Name, p.File), true, nil
		}
		r, err := c.first(ctx, n, p.File)
		return r, true, err
	}
	return Resolved{}, false, nil
}

// fromKeys takes the first known provider with a key in the configuration or the environment.
func (c *Config) fromKeys(ctx context.Context) (Resolved, bool, error) {
	for _, k := range c.knownProviders() {
		if k.Local {
			continue
		}
		has := c.mine[k.ID].APIKey != "" || k.BaseURLEnv != "" && c.opts.env(k.BaseURLEnv) != ""
		for _, name := range slices.Concat(k.Env, c.mine[k.ID].Env) {
			has = has || c.opts.env(name) != ""
		}
		if !has {
			continue
		}
		r, err := c.byDefault(ctx, k)
		return r, true, err
	}
	return Resolved{}, false, nil
}

// fromStores takes the first known provider with a stored key.
func (c *Config) fromStores(ctx context.Context) (Resolved, bool, error) {
	if _, err := c.opts.stateDir(); err != nil {
		return Resolved{}, false, nil // no home, no stores
	}
	stored, err := NewKeys(c.opts).List()
	if err != nil {
		return Resolved{}, false, err
	}
	for _, k := range c.knownProviders() {
		for _, s := range stored {
			if s.Provider == k.ID && !k.Local {
				r, err := c.byDefault(ctx, k)
				return r, true, err
			}
		}
	}
	return Resolved{}, false, nil
}

// byDefault takes a known provider's default model, or the first listed one at another endpoint.
func (c *Config) byDefault(ctx context.Context, k catalog.Provider) (Resolved, error) {
	n, err := c.connect(ctx, k.ID)
	if err != nil {
		return Resolved{}, err
	}
	if err := n.usable(); err != nil {
		return Resolved{}, err
	}
	from := n.keySource
	if from == "" && k.BaseURLEnv != "" && c.opts.env(k.BaseURLEnv) != "" { // an endpoint without a key
		from = k.BaseURLEnv
	}
	if n.custom || k.Default == "" || !c.Providers[k.ID].allows(k.Default) {
		return c.first(ctx, n, from)
	}
	return c.describe(n, k.Default, from), nil
}

// first takes the first model of an endpoint's own list.
func (c *Config) first(ctx context.Context, n connection, from string) (Resolved, error) {
	names, err := c.models(ctx, n, listCap)
	if err != nil {
		return Resolved{}, err
	}
	name := pick(slices.DeleteFunc(names, func(m string) bool { return !c.Providers[n.provider].allows(m) }))
	if name == "" {
		return Resolved{}, modelError("name one with --model "+n.provider+"/NAME", "%s/models lists no model", shown(n.url))
	}
	r := c.describe(n, name, from)
	r.Unknown, r.Warning = false, "" // the endpoint itself lists it
	return r, nil
}

// pick returns the first conversational model, judging by names.
func pick(names []string) string {
	for _, n := range names {
		if !strings.Contains(strings.ToLower(n), "embed") {
			return n
		}
	}
	return ""
}

// fromLocal asks local servers on their usual ports in parallel, and takes the first in order that has a model.
func (c *Config) fromLocal(ctx context.Context) (Resolved, bool, error) {
	var servers []connection
	for _, k := range c.knownProviders() {
		if !k.Local {
			continue
		}
		if n, err := c.connect(ctx, k.ID); err == nil {
			servers = append(servers, n)
		}
	}
	found := make([]string, len(servers))
	var g guard.Group
	for i, n := range servers {
		g.Go("probe "+n.provider, func() error {
			if names, err := c.models(ctx, n, probeCap); err == nil {
				found[i] = pick(names)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return Resolved{}, false, err
	}
	for i, name := range found {
		if name != "" {
			return c.describe(servers[i], name, "the server at "+shown(servers[i].url)), true, nil
		}
	}
	return Resolved{}, false, ctx.Err()
}

// checkCap is how long a mere check waits for a server.
const checkCap = 3 * time.Second

// Check asks a provider's server for its list of models, and returns its address and their number. Errors are those of
// [Config.ResolveModel]: centurion.KindAuth for a refused key, KindNetwork for a server that returns no list.
func (c *Config) Check(ctx context.Context, provider string) (address string, models int, err error) {
	n, err := c.connect(ctx, provider)
	if err == nil {
		err = n.usable()
	}
	if err != nil {
		return "", 0, err
	}
	names, err := c.models(ctx, n, checkCap)
	return shown(n.url), len(names), err
}

// Personal lists the enabled providers of the person's own files, ordered by id.
func (c *Config) Personal() []string {
	ids := slices.Sorted(maps.Keys(c.mine))
	return slices.DeleteFunc(ids, func(id string) bool { return c.disabled(id, "") != nil })
}

// Shipped reports whether an untrusted file of the project names a provider's address.
func (c *Config) Shipped(provider string) bool { return c.Providers[provider].shipped }

// models asks an endpoint for its list.
func (c *Config) models(ctx context.Context, n connection, wait time.Duration) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	fail := func(kind centurion.Kind, msg, hint string, err error) ([]string, error) {
		return nil, &centurion.Error{Op: "list models", Kind: kind, Msg: msg, Hint: hint, Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url+"/models"+listQuery(n.api), nil)
	if err != nil {
		return fail(centurion.KindConfig, "", "correct the base URL of provider "+n.provider, err)
	}
	for k, v := range n.headers {
		req.Header.Set(k, v)
	}
	authorize(req.Header, n)
	client := cmp.Or(c.opts.HTTP, &http.Client{})
	name := "start it, correct its URL, or name a model with --model " + n.provider + "/NAME"
	resp, err := client.Do(req)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fail(centurion.KindNetwork, fmt.Sprintf("%s gave no answer within %s", shown(n.url), wait), name, nil)
	}
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err // the address is named already
	}
	if err != nil {
		return fail(centurion.KindNetwork, shown(n.url)+" cannot be reached", name, err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		source := "no key was sent"
		if n.keySource != "" {
			source = "the key from " + n.keySource + " was refused"
		}
		return fail(centurion.KindAuth, shown(n.url)+": "+source, "set a key that is valid there", nil)
	case resp.StatusCode != http.StatusOK:
		return fail(centurion.KindNetwork, fmt.Sprintf("%s/models answered %s", shown(n.url), resp.Status), name, nil)
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxList)).Decode(&list); err != nil {
		return fail(centurion.KindNetwork, shown(n.url)+"/models did not answer with a list", name, err)
	}
	var names []string
	for _, m := range list.Data {
		if m.ID != "" {
			names = append(names, m.ID)
		}
	}
	return names, nil
}
