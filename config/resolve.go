package config

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"centurion"
	"centurion/provider/catalog"
)

// Limit is the sizes of a model's input and output, in tokens.
type Limit struct{ Context, Output int }

// Resolved is a model with all data for requests to it.
type Resolved struct {
	Model     centurion.ModelRef // its ID is the provider's name of the model
	API       API                // its protocol; never empty
	BaseURL   string             // without a trailing slash
	APIKey    Secret             // may be empty: local servers need none
	KeySource string             // a variable, "keyring" or a file; for messages
	Headers   map[string]string
	Echo      bool            // the model requires its reasoning back in the history
	Media     centurion.Media // the file types that it accepts
	Limit     Limit
	Price     *centurion.Price // nil if unknown; zero for a local server
	From      string           // who named the model: "--model", a file, a variable, a server
	Unknown   bool             // the model is in no list: Limit is a guess
	Default   bool             // no model was named: print it before the first request
	Warning   string           // one line for stderr; empty unless Unknown
}

// Address is BaseURL without its password, for messages.
func (r Resolved) Address() string { return shown(r.BaseURL) }

// ResolveModel finds the model for a mission: that of flag, otherwise the configured one, otherwise one available in the environment (a
// configured provider of the person's own, a key of a known provider, a local server).
//
// Errors are KindUsage (flag is wrong) and KindConfig (everything else); each has a hint. If a server is asked for its list,
// KindNetwork means that it does not answer and KindAuth that it refuses the key.
func (c *Config) ResolveModel(ctx context.Context, flag string) (Resolved, error) {
	if c.refused != nil {
		return Resolved{}, c.refused
	}
	if flag != "" {
		return c.named(ctx, flag, "--model", centurion.KindUsage)
	}
	if c.Model != "" {
		file, _ := c.Origin("model")
		return c.named(ctx, c.Model, cmp.Or(file, "the configuration"), centurion.KindConfig)
	}
	return c.discover(ctx)
}

// named resolves "provider/model".
func (c *Config) named(ctx context.Context, name, from string, kind centurion.Kind) (Resolved, error) {
	fail := func(msg, hint string) (Resolved, error) {
		return Resolved{}, &centurion.Error{Op: "find model", Kind: kind, Msg: msg, Hint: hint}
	}
	id, model, ok := strings.Cut(name, "/")
	if !ok || id == "" || model == "" {
		example := "openai/gpt-5"
		for _, k := range c.knownProviders() {
			if _, known := c.table().Lookup(centurion.ModelRef{Provider: k.ID, ID: name}); known && !k.Local {
				example = k.ID + "/" + name
				break
			}
		}
		return fail(fmt.Sprintf("the model %q (from %s) is not of the form provider/model", name, from),
			"write it like "+example)
	}
	if _, configured := c.Providers[id]; !configured && c.known(id).ID == "" {
		if id != customID {
			near := centurion.Nearest(id, append(c.providerIDs(), customID))
			if near == "" {
				return fail(fmt.Sprintf("unknown provider %q (from %s)", id, from), "known are "+
					strings.Join(c.providerIDs(), ", ")+"; others go under \"provider\" in opencode.json")
			}
			return fail(fmt.Sprintf("unknown provider %q (from %s); the nearest is %q", id, from, near),
				"write "+near+"/"+model+", or define it under \"provider\" in opencode.json")
		}
		if c.opts.env(customURL) == "" {
			kind = centurion.KindConfig // the name is right, its endpoint is missing
			return fail("the provider custom has no endpoint", "set "+customURL+
				", or define provider.custom.options.baseURL in opencode.json")
		}
	}
	if err := cmp.Or(c.disabled(id, kind), c.Providers[id].usableModel(model, from, kind)); err != nil {
		return Resolved{}, err
	}
	conn, err := c.connect(ctx, id)
	if err != nil {
		return Resolved{}, err
	}
	if err := conn.usable(); err != nil {
		return Resolved{}, err
	}
	return c.describe(conn, model, from), nil
}

const (
	customID  = "custom"          // a provider that consists only of OPENAI_BASE_URL
	customURL = "OPENAI_BASE_URL" // the variable of OpenAI's own clients
	customKey = "OPENAI_API_KEY"
)

// connection is the address of a provider and its credentials.
type connection struct {
	provider  string
	api       API // the default for its models; never empty
	url       string
	custom    bool // not the provider's own, known URL
	key       Secret
	keySource string
	headers   map[string]string
	missing   []string // variables that could provide the key
	needsKey  bool
	where     string
}

// usable returns an error, with the ways to provide one, if the provider needs a key and has none.
func (n connection) usable() error {
	if n.key != "" || !n.needsKey {
		return nil
	}
	hint := "run `centurion auth login " + n.provider + "`"
	if len(n.missing) > 0 {
		hint = "set " + strings.Join(n.missing, " or ") + ", or " + hint
	}
	msg := "no key for provider " + n.provider
	if n.where != "" && len(n.missing) > 0 {
		msg += fmt.Sprintf(" (%s): %s is not set", n.where, n.missing[0])
	} else if len(n.missing) > 0 {
		msg += ": " + n.missing[0] + " is not set"
	}
	return &centurion.Error{Op: "find key", Kind: centurion.KindConfig, Msg: msg, Hint: hint}
}

// connect determines the address and the API of a provider.
func (c *Config) connect(ctx context.Context, id string) (connection, error) {
	n, err := c.reach(ctx, id)
	n.api = apiOf(n, c.Providers[id])
	return n, err
}

// reach determines a provider's URL and key. A key of the person's is only sent to the provider's own URL or one that the person set;
// see the package comment.
func (c *Config) reach(ctx context.Context, id string) (connection, error) {
	all, mine, known := c.Providers[id], c.mine[id], c.known(id)
	if c.mine == nil { // a Config that was not loaded
		mine = all
	}
	own, fromEnv, err := c.ownURL(id, mine)
	n := connection{provider: id, where: all.where, url: own, headers: mine.Headers}
	if err != nil {
		return n, err
	}
	if err := c.untrusted(all, own); err != nil {
		return n, err
	}
	if n.url == "" {
		return n, modelError("add provider."+id+".options.baseURL", "provider %q (%s) has no base URL", id, all.where)
	}
	n.custom = !sameURL(n.url, known.BaseURL)
	if all.keyVar != "" {
		mine.Env = append([]string{all.keyVar}, mine.Env...)
	}
	err = c.findKey(ctx, &n, mine, known, fromEnv && mine.BaseURL == "")
	return n, err
}

// ownURL returns the address of a provider without the project's untrusted files, without a trailing slash, and whether a variable names
// one.
func (c *Config) ownURL(id string, mine Provider) (own string, fromEnv bool, err error) {
	known := c.known(id)
	name := known.BaseURLEnv
	if id == customID {
		name = customURL
	}
	value := ""
	if name != "" {
		value = c.opts.env(name)
	}
	if u, err := url.Parse(value); value != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return "", true, modelError("correct or unset the variable", "%s must be of the form https://host/path, not %q", name, shown(value))
	}
	return strings.TrimRight(cmp.Or(mine.BaseURL, value, known.BaseURL), "/"), value != "", nil
}

// findKey looks for the person's key: in their configuration, the environment, the stores.
func (c *Config) findKey(ctx context.Context, n *connection, mine Provider, known catalog.Provider, viaEnv bool) error {
	n.missing = slices.Clone(mine.Env)
	if viaEnv {
		n.missing = append(n.missing, customKey)
	}
	n.missing = append(n.missing, known.Env...)
	if mine.missing != "" {
		n.missing = append([]string{mine.missing}, n.missing...)
	}
	n.missing = unique(n.missing)
	n.needsKey = mine.missing != "" || known.ID != "" && !known.Local && !n.custom
	if mine.APIKey != "" {
		n.key, n.keySource = mine.APIKey, mine.keySource
		return nil
	}
	for _, name := range n.missing {
		if v := strings.TrimSpace(c.opts.env(name)); v != "" {
			n.key, n.keySource = Secret(v), name
			return nil
		}
	}
	if known.Local {
		return nil
	}
	key, source, err := NewKeys(c.opts).Get(ctx, n.provider)
	if err != nil && !n.needsKey && centurion.KindOf(err) == centurion.KindConfig {
		return nil // the endpoint may need no key, so an unreadable store is no error
	}
	n.key, n.keySource = key, source
	return err
}

// shown returns a URL without its password, for messages.
func shown(raw string) string {
	if u, err := url.Parse(raw); err == nil {
		return u.Redacted()
	}
	return "the base URL"
}

func unique(names []string) []string {
	var out []string
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// describe adds limits and price: from the file, otherwise the table, otherwise the table's defaults.
func (c *Config) describe(n connection, name, from string) Resolved {
	conf, configured := c.Providers[n.provider].model(name)
	ref := centurion.ModelRef{Provider: n.provider, ID: cmp.Or(conf.ID, name)}
	entry, inTable := c.table().Lookup(ref)
	r := Resolved{Model: ref, API: cmp.Or(conf.API, n.api), BaseURL: n.url, APIKey: n.key, KeySource: n.keySource, Headers: n.headers, From: from,
		Echo:  conf.Echo || entry.EchoReasoning,
		Limit: Limit{cmp.Or(conf.Context, entry.Context), cmp.Or(conf.Output, entry.Output)},
		Price: cmp.Or(conf.Price, entry.Price)}
	r.Media = mediaOver(r.API, entry, conf)
	if conf.Output == 0 {
		r.Limit.Output = min(r.Limit.Output, r.Limit.Context) // a table's answer can be longer than a file's window
	}
	if c.known(n.provider).Local && !loopback(n.url) {
		r.Price = conf.Price // a provider that is free on this machine need not be free elsewhere
	}
	r.Unknown = !configured && !inTable
	if r.Unknown {
		r.Warning = fmt.Sprintf("unknown model %s: assuming a context window of %d and at most %d output tokens", ref,
			r.Limit.Context, r.Limit.Output)
		if near := c.nearestModel(ref); near != "" {
			r.Warning += fmt.Sprintf(" (the nearest known is %s)", near)
		}
	}
	return r
}
