package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"centurion"
)

// Fallback lists the models that replace a failing one, as "provider/model", in order of preference.
type Fallback struct {
	All []string            // for every model
	Of  map[string][]string // for one model
}

// Concurrency limits the parallel sessions by provider, by "provider/model" and by agent.
type Concurrency struct{ Providers, Models, Agents map[string]int }

// setFallback reads "fallback": a list for the whole project, or an object with a list for each model.
func setFallback(o *Own, key string, n *node) (err error) {
	if n.kind != kindObject {
		if o.Fallback.All, err = n.strs(key, true); err != nil {
			return n.mismatch(key, "a list of models or an object with a list for each model")
		}
		return nil
	}
	o.Fallback.Of = make(map[string][]string, len(n.members))
	for _, m := range n.members {
		if o.Fallback.Of[m.key], err = m.value.strs(key+"."+m.key, true); err != nil {
			return err
		}
	}
	return nil
}

func setConcurrency(o *Own, key string, n *node) error {
	caps := func(key string, at func(*Concurrency) *map[string]int) field[Concurrency] {
		return mapOf(key, at, func(key string, n *node) (int, error) {
			v, err := n.integer()
			if err != nil || v < 1 || v > maxCap {
				return 0, n.mismatch("concurrency."+key, fmt.Sprintf("a whole number from 1 to %d", maxCap))
			}
			return int(v), nil
		})
	}
	fields := []field[Concurrency]{
		caps("providers", func(c *Concurrency) *map[string]int { return &c.Providers }),
		caps("models", func(c *Concurrency) *map[string]int { return &c.Models }),
		caps("agents", func(c *Concurrency) *map[string]int { return &c.Agents }),
	}
	return decodeKnown(n, key, &o.Concurrency, fields)
}

// maxCap is far more than any machine runs at once.
const maxCap = 100_000

// wider reports whether c permits more than by does.
func (c Concurrency) wider(by Concurrency) bool {
	over := func(mine, theirs map[string]int) (is bool) {
		for name, n := range mine {
			is = is || theirs[name] > 0 && n > theirs[name]
		}
		return is
	}
	return over(c.Providers, by.Providers) || over(c.Models, by.Models) || over(c.Agents, by.Agents)
}

// Chains are the resolved fallback models.
type Chains struct {
	all     []string
	of      map[string][]string
	byAgent map[string][]string
	Notes   []string // about unusable models, one line each
}

// For lists the fallbacks of an agent's model: the agent's own list, otherwise that of the model, otherwise the project's. It never
// includes the model itself.
func (c Chains) For(agent, model string) []string {
	chain, ok := c.byAgent[strings.ToLower(agent)]
	if !ok {
		chain, ok = c.of[model]
	}
	if !ok {
		chain = c.all
	}
	return slices.DeleteFunc(slices.Clone(chain), func(name string) bool { return name == model })
}

// Chains resolves the models of every "fallback". An unknown one is an error of KindConfig with its key and the nearest name; one
// without a key is omitted with a note. It also checks the names under "concurrency".
func (c *Config) Chains(ctx context.Context) (Chains, error) {
	out := Chains{of: map[string][]string{}, byAgent: map[string][]string{}}
	var err error
	find := func(key string, names []string) (found []string) {
		for _, name := range names {
			var r Resolved
			if err != nil {
				return nil
			}
			if r, err = c.standIn(ctx, key, name); err != nil {
				if e, ok := errors.AsType[*centurion.Error](err); ok && e.Op == "find key" {
					out.Notes = append(out.Notes, fmt.Sprintf("%s: %s is passed over: %s (%s)", key, name, e.Msg, e.Hint))
					err = nil
				}
				continue
			}
			found = append(found, r.Model.String())
		}
		return found
	}
	out.all = find("fallback", c.Own.Fallback.All)
	for _, model := range slices.Sorted(maps.Keys(c.Own.Fallback.Of)) {
		if err == nil {
			err = c.checkName("fallback", model)
		}
		out.of[model] = find("fallback."+model, c.Own.Fallback.Of[model])
	}
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		if names := c.Agents[name].Fallback; names != nil {
			out.byAgent[strings.ToLower(name)] = find("agent."+name+".fallback", names)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Own.Agents)) {
		if names := c.Own.Agents[name].Fallback; names != nil {
			out.byAgent[strings.ToLower(name)] = find("agent."+name+".fallback", names)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.Own.Concurrency.Providers)) {
		if err == nil {
			err = c.checkName("concurrency.providers", id+"/")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Own.Concurrency.Models)) {
		if err == nil {
			err = c.checkName("concurrency.models", name)
		}
	}
	return out, err
}

// standIn resolves one model of a chain.
func (c *Config) standIn(ctx context.Context, key, name string) (Resolved, error) {
	if err := c.checkName(key, name); err != nil {
		return Resolved{}, err
	}
	id, model, _ := strings.Cut(name, "/")
	ref := centurion.ModelRef{Provider: id, ID: model}
	_, configured := c.Providers[id].model(model)
	_, inTable := c.table().Lookup(ref)
	if near := c.nearestModel(ref); !configured && !inTable && near != "" {
		return Resolved{}, &centurion.Error{Op: "read config", Kind: centurion.KindConfig,
			Msg:  fmt.Sprintf("unknown model %q in %s; the nearest is %q", name, c.place(key), near),
			Hint: fmt.Sprintf("write %s, or define it under provider.%s.models in opencode.json", near, id)}
	}
	return c.named(ctx, name, c.place(key), centurion.KindConfig)
}

// checkName checks the form and the provider of "provider/model".
func (c *Config) checkName(key, name string) error {
	id, model, ok := strings.Cut(name, "/")
	if !ok || id == "" {
		return &centurion.Error{Op: "read config", Kind: centurion.KindConfig,
			Msg: fmt.Sprintf("the model %q in %s is not of the form provider/model", name, c.place(key)), Hint: "write it like openai/gpt-5"}
	}
	if _, configured := c.Providers[id]; configured || c.known(id).ID != "" || id == customID {
		return nil
	}
	e, near := c.unknownProvider(centurion.KindConfig, id, " in "+c.place(key), append(c.providerIDs(), customID))
	if e.Op = "read config"; near != "" {
		e.Hint = "write " + strings.TrimRight(near+"/"+model, "/") + ", or define it under \"provider\" in opencode.json"
	}
	return e
}

// place names a key with its file.
func (c *Config) place(key string) string {
	top, _, _ := strings.Cut(key, ".")
	if file, _ := c.Origin(top); file != "" {
		return key + " (" + file + ")"
	}
	return key
}
