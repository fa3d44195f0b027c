package host

import (
	"cmp"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"centurion/config"
	"centurion/permission"
	"centurion/tools/web"
	"centurion/workspace"
)

// newWeb returns network access for a project's sessions: the search engines of the person's variables or files, and the private hosts
// allowed by their permission rules.
func newWeb(cfg *config.Config, ws *workspace.Workspace) (*web.Client, error) {
	var open []string
	for _, l := range cfg.Permission {
		rules, err := permission.ParseRules(l.Raw)
		if err != nil {
			return nil, err
		}
		if !l.Project { // a repository must not open this machine to its own words
			open = append(open, openedHosts(rules)...)
		}
	}
	s := cfg.Own.Search
	return web.New(web.Config{Docs: web.NewDocs(ws, 0), AllowHosts: open, Search: web.Search{
		SearXNG: cmp.Or(os.Getenv("SEARXNG_URL"), s.SearXNG),
		Brave:   cmp.Or(os.Getenv("BRAVE_API_KEY"), s.Brave.Reveal()),
		Tavily:  cmp.Or(os.Getenv("TAVILY_API_KEY"), s.Tavily.Reveal()),
		GitHub:  cmp.Or(os.Getenv("GITHUB_TOKEN"), s.GitHub.Reveal()),
	}}), nil
}

// openedHosts returns the hosts, with ports, that an allow rule for webfetch names in full, such as {"http://localhost:3000/*":
// "allow"}. A wildcard in the host allows no private one: "*" means the public web.
func openedHosts(rules []permission.Rule) []string {
	var out []string
	for _, r := range rules {
		scheme, rest, ok := strings.Cut(r.Pattern, "://")
		host, _, whole := strings.Cut(rest, "/")
		if r.Permission != "webfetch" || r.Action != permission.Allow || !ok || !whole || strings.ContainsAny(host, "*?@ ") {
			continue
		}
		u, err := url.Parse(scheme + "://" + host)
		if err != nil || u.Hostname() == "" {
			continue
		}
		port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
		out = append(out, net.JoinHostPort(u.Hostname(), port))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
