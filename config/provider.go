package config

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"centurion/provider"
	"centurion/provider/anthropic"
	"centurion/provider/catalog"
	"centurion/trust"

	"centurion"
)

// Provider is a configured provider. [Config.ResolveModel] decides which parts are used, because parts from the project may be refused.
type Provider struct {
	ID      string
	Title   string // its name for OpenCode's clients; "" is the id
	BaseURL string
	APIKey  Secret
	Headers map[string]string
	Env     []string // variables for the key
	NPM     string   // the package by which OpenCode would access it
	API     API      // empty: determined by the package
	Models  []Model  // in the file's order
	File    string   // its last definition, for display

	where     string   // file and line, for messages
	keySource string   // the key's variable, or the file that contains it
	only, not []string // allowed and forbidden models; without only, all
	missing   string   // the unset variable for the key
	keyVar    string   // set if the key consists only of this variable
	shipped   bool     // its address is from an untrusted file of the project
	parts     []part   // from untrusted files of the project
}

// part is a setting of a provider in an untrusted file of the project.
type part struct {
	at   *node
	kind partKind
	name string // of a header or variable
}

type partKind int

const (
	partURL partKind = iota
	partKey
	partHeader
	partEnv      // a variable that may hold the key
	partVariable // a variable that is not read
)

// Model is a configured model of a provider. Limits of 0 and a nil price mean "unset".
type Model struct {
	Name    string // the key in the file: the name after the slash
	Title   string // its name for OpenCode's clients; "" is Name
	ID      string // the provider's name of it; the same unless configured otherwise
	Context int    // tokens
	Output  int    // tokens
	Price   *centurion.Price
	Echo    bool // it requires its reasoning back in the history
	API     API  // empty: the provider's

	Attachment *bool    // it accepts files
	Input      []string // accepted inputs: text, image, pdf, …; empty means unknown
}

// model finds a model by its name in the file or by the provider's own name, since a resolved model may be resolved again.
func (p Provider) model(name string) (Model, bool) {
	i := slices.IndexFunc(p.Models, func(m Model) bool { return m.Name == name })
	if i < 0 {
		i = slices.IndexFunc(p.Models, func(m Model) bool { return m.ID == name })
	}
	if i < 0 {
		return Model{}, false
	}
	return p.Models[i], true
}

// decodeProviders reads the value of "provider". It calls skip for every ignored key and drop for ignored prices.
func decodeProviders(n *node, skip func(prefix string) func(member) error, drop func(*node, string)) ([]Provider, error) {
	if n == nil || n.kind == kindNull {
		return nil, nil
	}
	if n.kind != kindObject {
		return nil, n.mismatch("provider", kindObject.String())
	}
	out := make([]Provider, 0, len(n.members))
	for _, m := range n.members {
		p, err := decodeProvider(m, skip, drop)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func decodeProvider(m member, skip func(string) func(member) error, drop func(*node, string)) (Provider, error) {
	n, at := m.value, "provider."+m.key
	p := Provider{ID: m.key, File: n.src.name, where: n.src.at(m.line, "").Msg}
	p.where, p.parts = strings.TrimSuffix(p.where, ": "), n.withheld()
	fields := []field[Provider]{
		text("name", func(p *Provider) *string { return &p.Title }),
		text("npm", func(p *Provider) *string { return &p.NPM }),
		list("whitelist", false, func(p *Provider) *[]string { return &p.only }),
		list("blacklist", false, func(p *Provider) *[]string { return &p.not }),
		text("api", func(p *Provider) *string { return &p.BaseURL }),
		list("env", false, func(p *Provider) *[]string { return &p.Env }),
		{"options", func(p *Provider, key string, n *node) error {
			return decode(n, at+"."+key, p, optionFields(at), skip(at+".options."))
		}},
		{"models", func(p *Provider, key string, n *node) error { return setModels(p, at, n, skip, drop) }},
	}
	// Options come after api, which their baseURL overrides. Models last: whether their prices count depends on the source of the URL.
	rank := map[string]int{"options": 1, "models": 2}
	ordered := *n
	ordered.members = slices.Clone(n.members)
	slices.SortStableFunc(ordered.members, func(a, b member) int { return rank[a.key] - rank[b.key] })
	url := cmp.Or(n.get("options").get("baseURL"), n.get("api"))
	p.shipped = p.ship(url, partURL, "")
	if env := n.get("env"); env != nil {
		for _, e := range env.elems {
			p.ship(e, partEnv, e.text)
		}
	}
	if err := decode(&ordered, at, &p, fields, skip(at+".")); err != nil {
		return p, err
	}
	if p.BaseURL == "" || len(url.withheld()) > 0 {
		return p, nil
	}
	err := checkURL(url, &p)
	return p, err
}

// ship notes a setting that an untrusted file of the project makes, and reports whether it does.
func (p *Provider) ship(n *node, kind partKind, name string) bool {
	at := n.foreign()
	if at != nil {
		p.parts = append(p.parts, part{at, kind, name})
	}
	return at != nil
}

func optionFields(at string) []field[Provider] {
	return []field[Provider]{
		text("baseURL", func(p *Provider) *string { return &p.BaseURL }),
		apiField(func(p *Provider) *API { return &p.API }),
		{"apiKey", func(p *Provider, key string, n *node) error {
			key, err := n.str(key)
			if len(n.withheld()) > 0 {
				if m := reference.FindStringSubmatch(n.text); m[0] == strings.TrimSpace(n.text) {
					p.keyVar = strings.TrimSpace(m[2])
				}
				return err
			}
			p.APIKey, p.keySource, p.missing = Secret(strings.TrimSpace(key)), keySource(n), n.missing
			p.ship(n, partKey, "")
			return err
		}},
		{"headers", func(p *Provider, key string, n *node) error {
			if err := strMap(key, func(p *Provider) *map[string]string { return &p.Headers }).set(p, at+".options."+key, n); err != nil {
				return err
			}
			for _, h := range n.members {
				p.ship(h.value, partHeader, h.key)
			}
			return nil
		}},
	}
}

func checkURL(n *node, p *Provider) error {
	u, err := url.Parse(p.BaseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		hint := ""
		if n.missing != "" {
			hint = "set the variable " + n.missing + ", which it is made from"
		}
		return n.src.fault(n.line, hint, "the base URL of provider %q must be of the form https://host/path, not %q", p.ID, shown(p.BaseURL))
	}
	p.BaseURL = strings.TrimRight(p.BaseURL, "/")
	return nil
}

// keySource returns where a key comes from: the variable or file it names, or its own file.
func keySource(n *node) string {
	if m := reference.FindStringSubmatch(n.raw); m != nil {
		return strings.TrimSpace(m[2])
	}
	return n.src.name
}

func setModels(p *Provider, at string, n *node, skip func(string) func(member) error, drop func(*node, string)) error {
	if n.kind != kindObject {
		return n.mismatch(at+".models", kindObject.String())
	}
	for _, m := range n.members {
		key := at + ".models." + m.key
		model := Model{Name: m.key, ID: m.key}
		if err := decode(m.value, key, &model, modelFields(key, skip), skip(key+".")); err != nil {
			return err
		}
		if cost := m.value.get("cost").foreign(); cost != nil && !p.shipped {
			drop(cost, "the price of "+p.ID+"/"+m.key)
			model.Price = nil
		}
		if id := m.value.get("id").foreign(); id != nil && !p.shipped { // another model at the person's cost
			drop(id, "the id of "+p.ID+"/"+m.key)
			model.ID = m.key
		}
		p.Models = append(p.Models, model)
	}
	return nil
}

func modelFields(key string, skip func(string) func(member) error) []field[Model] {
	type limit struct{ context, output int }
	type cost struct{ in, out, read, write *float64 }
	return []field[Model]{
		{"options", func(m *Model, _ string, n *node) error {
			return decode(n, key+".options", m, []field[Model]{apiField(func(m *Model) *API { return &m.API })}, skip(key+".options."))
		}},
		text("name", func(m *Model) *string { return &m.Title }),
		text("id", func(m *Model) *string { return &m.ID }),
		optional("attachment", func(m *Model) **bool { return &m.Attachment }),
		{"modalities", func(m *Model, _ string, n *node) error {
			return decode(n, key+".modalities", m, []field[Model]{list("input", false, func(m *Model) *[]string { return &m.Input })}, skip(key+".modalities."))
		}},
		{"interleaved", func(m *Model, _ string, n *node) error {
			field := cmp.Or(n.get("field"), n)
			if field.kind != kindString && (field != n || n.kind != kindBool) {
				return field.mismatch(key+".interleaved", "true, false, a string or an object with a field")
			}
			m.Echo = n.yes || field.text == "reasoning_content" // the only field that requests support
			return nil
		}},
		{"limit", func(m *Model, _ string, n *node) error {
			var l limit
			err := decode(n, key+".limit", &l, []field[limit]{
				integer("context", 0, 0, func(l *limit) *int { return &l.context }),
				integer("output", 0, 0, func(l *limit) *int { return &l.output }),
			}, skip(key+".limit."))
			m.Context, m.Output = l.context, l.output
			return err
		}},
		{"cost", func(m *Model, _ string, n *node) error {
			var c cost
			err := decode(n, key+".cost", &c, []field[cost]{
				number("input", func(c *cost) **float64 { return &c.in }),
				number("output", func(c *cost) **float64 { return &c.out }),
				number("cache_read", func(c *cost) **float64 { return &c.read }),
				number("cache_write", func(c *cost) **float64 { return &c.write }),
			}, skip(key+".cost."))
			if err != nil {
				return err
			}
			if c.in == nil || c.out == nil {
				return n.src.at(n.line, "%q needs both input and output, in USD for a million tokens", key+".cost")
			}
			// Without its own price the cache costs as much as input.
			m.Price = &centurion.Price{Input: *c.in, Output: *c.out, CacheRead: *cmp.Or(c.read, c.in), CacheWrite: *cmp.Or(c.write, c.in)}
			return nil
		}},
	}
}

func (l *loader) setProviders(c *Config, _ string, n *node) error {
	all, err := decodeProviders(n, l.skip, func(n *node, what string) { n.src.withholds(n.line, trust.Setting, "%s", what) })
	if err != nil {
		return err
	}
	for _, p := range all {
		c.Providers[p.ID] = p
		c.providers = append(c.providers, p.ID)
	}
	// The same without the project's untrusted files, to distinguish the person's choices. Ignored keys were recorded above.
	quiet := func(string) func(member) error { return func(member) error { return nil } }
	mine, err := decodeProviders(c.mineOpen.get("provider"), quiet, func(*node, string) {})
	if err != nil {
		return err
	}
	c.mine = map[string]Provider{}
	for _, p := range mine {
		c.mine[p.ID] = p
	}
	for _, p := range all {
		own, _, _ := c.ownURL(p.ID, c.mine[p.ID]) // a malformed variable is reported when the provider is used
		for _, part := range c.needTrust(p, own) {
			part.at.src.withholds(part.at.line, trust.Endpoint, "%s", p.describe(part, own))
		}
	}
	return nil
}

// sameURL reports whether both are the same address: scheme, host, port and path.
func sameURL(a, b string) bool {
	norm := func(s string) string {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || u.User != nil {
			return ""
		}
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
		}
		return strings.ToLower(u.Scheme+"://"+u.Hostname()) + ":" + port + strings.TrimRight(u.EscapedPath(), "/") + "?" + u.RawQuery
	}
	na := norm(a)
	return na != "" && na == norm(b)
}

// loopback reports whether a URL literally names this machine. Other names are not resolved, since their addresses can change.
func loopback(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// ModelsTaking lists up to `most` models of the configured providers that accept a file type, as "provider/model": first those in the
// files, then known ones of the same providers.
func (c *Config) ModelsTaking(mime string, most int) []string {
	var out []string
	add := func(provider, model string, m centurion.Media) {
		if name := provider + "/" + model; m.Takes(mime) && len(out) < most && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, id := range c.providers {
		p := c.Providers[id]
		api := apiOf(connection{provider: id, custom: p.BaseURL != ""}, p)
		known := func(m Model) centurion.Media {
			entry, _ := c.table().Lookup(centurion.ModelRef{Provider: id, ID: cmp.Or(m.ID, m.Name)})
			return mediaOver(cmp.Or(m.API, api), entry, m)
		}
		for _, m := range p.Models {
			add(id, m.Name, known(m))
		}
		for _, m := range c.known(id).Models {
			if _, configured := p.model(m.ID); !configured {
				add(id, m.ID, known(Model{ID: m.ID}))
			}
		}
	}
	return out
}

// mediaOver returns the file types that a model accepts over an API. In chat completions only images have a common format.
func mediaOver(api API, known catalog.Model, m Model) centurion.Media {
	media := catalog.MediaOf(known.Media, m.Attachment, m.Input)
	media.PDF = media.PDF && api != APIChat
	return media
}

// API is the protocol of a model.
type API string

// The supported APIs.
const (
	APIChat      API = "chat"      // OpenAI's chat completions, which nearly every provider supports
	APIResponses API = "responses" // OpenAI's responses
	APIAnthropic API = "anthropic" // Anthropic's own Messages API
)

// apiField is the option api of a provider or a model.
func apiField[T any](at func(*T) *API) field[T] {
	return choice("api", func(v *T) *string { return (*string)(at(v)) }, string(APIChat), string(APIResponses), string(APIAnthropic))
}

// apiOf determines the API for the models of a provider: that of its option; otherwise that of the configured package; otherwise its
// own at OpenAI and Anthropic, and chat completions elsewhere, which a gateway under another URL most likely supports.
func apiOf(n connection, p Provider) API {
	own := func(provider, npm string) bool {
		return p.NPM == npm || p.NPM == "" && n.provider == provider && !n.custom
	}
	switch {
	case p.API != "":
		return p.API
	case own("anthropic", "@ai-sdk/anthropic"):
		return APIAnthropic
	case own("openai", "@ai-sdk/openai"):
		return APIResponses
	}
	return APIChat
}

// Wire returns the implementation of the model's API for an endpoint: nil for chat completions.
func (r Resolved) Wire() provider.Wire {
	switch {
	case r.API == APIResponses:
		return provider.Responses{}
	case r.API != APIAnthropic:
		return nil
	case r.Unknown:
		return anthropic.Wire{} // its limit is a guess, and one that is too high is refused
	}
	return anthropic.Wire{MaxTokens: r.Limit.Output}
}

// authorize adds the key of a connection to the header of a request for its list of models.
func authorize(h http.Header, n connection) {
	switch {
	case n.api == APIAnthropic:
		anthropic.Wire{}.Authorize(h, n.key.Reveal())
	case n.key != "":
		h.Set("Authorization", "Bearer "+n.key.Reveal())
	}
}

// listQuery requests a whole list of models where it is paginated; the API's largest page has 1000.
func listQuery(api API) string {
	if api == APIAnthropic {
		return "?limit=1000"
	}
	return ""
}
