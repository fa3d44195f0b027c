package config

import (
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/trust"
)

// Untrusted is the error for a provider that rests on a file of the project that no person has trusted: the project must not choose what
// is sent where.
type Untrusted struct {
	Provider string
	Where    string // file and line
	Needs    string // what would be sent where
}

func (u *Untrusted) Error() string {
	return fmt.Sprintf("%s came with the project and is not trusted: %s", u.Where, u.Needs)
}

// untrusted returns the error for a provider that needs trust, or nil. own is the address that the person would use.
func (c *Config) untrusted(p Provider, own string) error {
	parts := c.needTrust(p, own)
	if len(parts) == 0 {
		return nil
	}
	var needs []string
	for _, part := range parts {
		needs = append(needs, p.describe(part, own))
	}
	first := parts[0].at
	return &centurion.Error{Op: "find model", Kind: centurion.KindConfig,
		Err: &Untrusted{Provider: p.ID, Where: fmt.Sprintf("%s:%d", first.src.name, first.line),
			Needs: strings.Join(needs, "; ")},
		Hint: "look at it, and trust it if you want to: " + trust.Command}
}

// needTrust lists the parts of a provider that need a person's trust. The line in most projects needs none: a known provider's own
// variable, sent to its usual address.
func (c *Config) needTrust(p Provider, own string) []part {
	elsewhere := p.shipped && !sameURL(p.BaseURL, own)
	return slices.DeleteFunc(slices.Clone(p.parts), func(part part) bool {
		switch part.kind {
		case partURL:
			return !elsewhere
		case partVariable:
			return !elsewhere && part.name == p.keyVar && (c.mine[p.ID].APIKey != "" || slices.Contains(c.known(p.ID).Env, part.name))
		}
		return false
	})
}

// describe says what a part of a provider does.
func (p Provider) describe(part part, own string) string {
	to := own
	if p.BaseURL != "" {
		to = p.BaseURL
	}
	if !reference.MatchString(to) {
		to = shown(to)
	}
	what := map[partKind]string{
		partURL:      "the conversation and its key go to " + to,
		partKey:      "its key is the project's",
		partHeader:   "the header " + part.name + " is sent to " + to,
		partEnv:      "its key is read from " + part.name,
		partVariable: part.name + " is sent to " + to,
	}
	return "provider." + p.ID + ": " + what[part.kind]
}

// withheld lists the variables that untrusted files of the project name below a node. They were not read.
func (n *node) withheld() (out []part) {
	for at := range n.all {
		if !at.src.foreign() {
			continue
		}
		for _, m := range reference.FindAllStringSubmatch(at.text, -1) {
			if m[1] == "env" {
				out = append(out, part{at, partVariable, strings.TrimSpace(m[2])})
			}
		}
	}
	return out
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
