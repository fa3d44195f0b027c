package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"centurion"
)

// Unvouched is the error for a provider whose settings in a project's file read the person's environment: the project must not choose
// what is sent where. A person can vouch for them with [Config.Vouch].
type Unvouched struct {
	Provider  string
	Variables []string
	URL       string // their destination
	Where     string // file and line
}

func (u *Unvouched) Error() string {
	at := u.URL
	if !reference.MatchString(at) {
		at = shown(at)
	}
	return fmt.Sprintf("%s came with the project and would send %s to %s for provider %q", u.Where, strings.Join(u.Variables, " and "), at, u.Provider)
}

// unvouched returns the error for a provider that reads the environment because of a project, or nil. The line in most projects is
// fine: a known provider's own variable, sent to its usual address.
func (c *Config) unvouched(all, mine Provider, url string) error {
	own := func(name string) bool {
		return name == all.keyVar && (mine.APIKey != "" || slices.Contains(c.known(all.ID).Env, name))
	}
	if all.project.url && !sameURL(all.BaseURL, url) {
		url, own = all.BaseURL, func(string) bool { return false }
	}
	ask := slices.DeleteFunc(slices.Clone(all.withheld), own)
	if len(ask) == 0 {
		return nil
	}
	return &centurion.Error{Op: "find key", Kind: centurion.KindConfig,
		Err:  &Unvouched{Provider: all.ID, Variables: unique(ask), URL: cmp.Or(url, all.BaseURL), Where: all.where},
		Hint: fmt.Sprintf("if you trust it, run this on a terminal and say yes, or move provider.%s to ~/.config/opencode/opencode.json", all.ID)}
}

// Vouch treats a provider's settings in the project's files as the person's own, for the lifetime of this configuration.
func (c *Config) Vouch(provider string) error {
	n := c.open.get("provider").get(provider)
	if err := (substituter{opts: c.opts, vouched: true}).node(n); err != nil {
		return err
	}
	nothing := func(string) func(member) error { return func(member) error { return nil } }
	p, err := decodeProvider(member{provider, n.line, n}, nothing, func(*node, string) {})
	if err != nil {
		return err
	}
	p.project, p.headers, p.withheld = shipped{}, nil, nil
	c.Providers[provider], c.mine[provider] = p, p
	return nil
}

// withheld lists the unread variables that a project's file names below a node.
func (n *node) withheld() (names []string) {
	for part := range n.all {
		if !part.src.project {
			continue
		}
		for _, m := range reference.FindAllStringSubmatch(part.text, -1) {
			if m[1] == "env" {
				names = append(names, strings.TrimSpace(m[2]))
			}
		}
	}
	return names
}

// disabled returns an error if a provider must not be used.
func (c *Config) disabled(id string, kind centurion.Kind) error {
	for _, by := range []struct {
		key  string
		hits func(list []string) bool
	}{
		{"disabled_providers", func(list []string) bool { return slices.Contains(list, id) }},
		{"enabled_providers", func(list []string) bool { return !slices.Contains(list, id) }},
	} {
		for _, n := range []*node{c.mineOpen.get(by.key), c.open.get(by.key)} { // a project's list does not replace the person's
			if n == nil || n.kind == kindNull {
				continue
			}
			if list, _ := n.strs(by.key, false); by.hits(list) { // its type was checked when it was read
				return &centurion.Error{Op: "find model", Kind: kind,
					Msg:  fmt.Sprintf("provider %q is disabled by %s (%s:%d)", id, by.key, n.src.name, n.line),
					Hint: "name a model of another provider, or change that list"}
			}
		}
	}
	return nil
}

// allows reports whether a provider's lists allow a model.
func (p Provider) allows(model string) bool {
	return (p.only == nil || slices.Contains(p.only, model)) && !slices.Contains(p.not, model)
}

// usableModel returns an error if a provider's lists exclude a model.
func (p Provider) usableModel(model, from string, kind centurion.Kind) error {
	if p.allows(model) {
		return nil
	}
	key := "whitelist"
	if slices.Contains(p.not, model) {
		key = "blacklist"
	}
	e := &centurion.Error{Op: "find model", Kind: kind, Msg: fmt.Sprintf("the model %s/%s (from %s) may not be used: provider.%s.%s (%s)", p.ID, model, from, p.ID, key, p.where),
		Hint: "name another model, or change that list"}
	if len(p.only) > 0 {
		e.Hint = "name one of " + strings.Join(p.only, ", ") + ", or change that list"
	}
	return e
}
