// Package web connects tools to the network: it fetches pages and converts them to Markdown, queries search engines, and keeps fetched
// pages in the project's .opencode/docs until they expire. It decides which addresses are never dialled; it knows no session, no agent
// and no permission rule, which are up to the caller.
package web

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"centurion"
)

// Limits of one fetch.
const (
	DefaultTimeout = 30 * time.Second // for one request and its complete response
	MaxBody        = 5 << 20          // bytes of a response, after decompression
	MaxRedirects   = 5
	maxHeader      = 256 << 10 // bytes of a response's header
)

// Config configures a client. The zero value fetches public pages, stores nothing and has no search engine.
type Config struct {
	Docs    *Docs         // stores fetched pages; nil stores nothing
	Search  Search        // the search engines
	Timeout time.Duration // of one request; 0 means DefaultTimeout
	// AllowHosts are hosts with ports, "localhost:3000", that may be in a private network. They are compared with the URL, never with
	// the resolved address.
	AllowHosts []string
	// Resolve overrides the system's resolver. Its results are checked like any other.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
}

// Client fetches and searches. Its methods are safe for concurrent use; between calls it holds no connection and no goroutine.
type Client struct {
	cfg    Config
	pages  *http.Client // public addresses only, does not follow redirects
	search *http.Client // the person's search engines
}

// New returns a client.
func New(cfg Config) *Client {
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &Client{cfg: cfg}
	// No proxy: it would resolve and dial instead of this program, and nothing could be checked.
	c.pages = &http.Client{CheckRedirect: stay, Transport: &http.Transport{DialContext: c.dial, DisableKeepAlives: true,
		ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxHeader}}
	c.search = &http.Client{CheckRedirect: stay, Timeout: cfg.Timeout, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment,
		DisableKeepAlives: true, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxHeader}}
	return c
}

// Docs returns the store of fetched pages, possibly nil.
func (c *Client) Docs() *Docs { return c.cfg.Docs }

// dial connects to a page's host.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := dialer(address, slices.ContainsFunc(c.cfg.AllowHosts, func(h string) bool { return strings.EqualFold(h, address) }))
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if c.cfg.Resolve == nil {
		return d.DialContext(ctx, network, address)
	}
	addrs, err := c.cfg.Resolve(ctx, host)
	if err == nil && len(addrs) == 0 {
		err = &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	for _, a := range addrs {
		var conn net.Conn
		if conn, err = d.DialContext(ctx, network, net.JoinHostPort(a.String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// Dial connects to a host that a command names, by the proxy of the person's environment if there is one. Only public addresses are
// connected to, unless private is set; a proxy resolves names itself.
func Dial(ctx context.Context, address string, private bool) (net.Conn, error) {
	if proxy, err := proxyOf(address); proxy != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return through(ctx, proxy, address, private)
	}
	d := dialer(address, private)
	d.Timeout = DefaultTimeout
	return d.DialContext(ctx, "tcp", address)
}

// dialer returns what connects to an address. Addresses are checked when they are dialled, once numbers are parsed and names resolved.
func dialer(address string, private bool) *net.Dialer {
	d := &net.Dialer{}
	if !private {
		d.Control = func(_, resolved string, _ syscall.RawConn) error { return public(address, resolved) }
	}
	return d
}

// public refuses an address outside the public network.
func public(asked, resolved string) error {
	ap, err := netip.ParseAddrPort(resolved)
	if err == nil && IsPublic(ap.Addr()) {
		return nil
	}
	return &centurion.Error{Op: "fetch", Kind: centurion.KindPermission,
		Msg: asked + " leads to " + resolved + ", which is not in the public network; nothing was sent"}
}

var (
	internet4 = netip.MustParsePrefix("0.0.0.0/0")
	internet6 = netip.MustParsePrefix("2000::/3") // everything assigned for use in the public network
	nat64     = netip.MustParsePrefix("64:ff9b::/96")

	// special are the special-purpose blocks of IANA's registries that the methods of netip.Addr do not know, and the addresses of cloud
	// providers' own machines in the public range.
	special = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "168.63.129.16/32",
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)

func prefixes(all ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(all))
	for i, s := range all {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// IsPublic reports whether an address is in the public network: not this machine, no private, local, shared, reserved, documentation or
// multicast range, and no such IPv4 address inside an IPv6 one.
func IsPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if !a.IsValid() || !a.IsGlobalUnicast() || a.IsPrivate() || !internet4.Contains(a) && !internet6.Contains(a) {
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

// ParseURL parses a model's URL into the canonical spelling used by rules and the cache: lower-case scheme and host, no default port,
// no dot segments, no fragment. Errors are centurion.KindUsage.
func ParseURL(raw string) (*url.URL, error) {
	fail := func(msg, hint string) (*url.URL, error) {
		return nil, &centurion.Error{Op: "fetch", Kind: centurion.KindUsage, Msg: msg, Hint: hint}
	}
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return fail("the URL cannot be read: "+bare(err).Error(), "give a whole URL, as https://example.com/page")
	}
	u.Scheme = strings.ToLower(u.Scheme)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fail("only http and https are fetched, not "+centurion.Clip(raw, 100), "give a whole URL, as https://example.com/page; files are read with read")
	case u.User != nil:
		return fail("the URL holds a user or a password", "leave out what stands before the @")
	case u.Hostname() == "":
		return fail("the URL names no host", "give a whole URL, as https://example.com/page")
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if port := u.Port(); port != "" && port != map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		host = net.JoinHostPort(host, port)
	} else if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	u.Host, u.Fragment, u.RawFragment = host, "", ""
	if u = u.JoinPath(); u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

// bare strips the URL, which may hold secrets, from an error of package url or http.
func bare(err error) error {
	if ue, ok := err.(*url.Error); ok {
		return ue.Err
	}
	return err
}
