package web

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"centurion"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// canary is a server that nobody must reach: it counts connections, not requests.
type canary struct {
	addr string // host:port
	port string
	hits atomic.Int64
}

func newCanary(t testing.TB, at string) *canary {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Skipf("this machine has no %s: %v", at, err)
	}
	c := &canary{addr: l.Addr().String()}
	_, c.port, _ = net.SplitHostPort(c.addr)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("secret of the machine")) }))
	s.Listener.Close()
	s.Listener = l
	s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			c.hits.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return c
}

// site is a server that stands for one in the public network.
func site(t testing.TB, h http.HandlerFunc) (address, host string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL, strings.TrimPrefix(s.URL, "http://")
}

func parse(t testing.TB, raw string) *url.URL {
	t.Helper()
	u, err := ParseURL(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return u
}

func anything(*url.URL) error { return nil }

// leads makes every name lead to these addresses, one after the other.
func leads(addrs ...string) func(context.Context, string) ([]netip.Addr, error) {
	var n atomic.Int64
	return func(context.Context, string) ([]netip.Addr, error) {
		i := min(int(n.Add(1)), len(addrs)) - 1
		return []netip.Addr{netip.MustParseAddr(addrs[i])}, nil
	}
}

func is(t testing.TB, what string, err error, kind centurion.Kind, words ...string) {
	t.Helper()
	if centurion.KindOf(err) != kind {
		t.Errorf("%s: %v has kind %q, want %q", what, err, centurion.KindOf(err), kind)
		return
	}
	for _, w := range words {
		if err != nil && !strings.Contains(err.Error()+" "+centurion.HintOf(err), w) {
			t.Errorf("%s: %v (%s) does not say %q", what, err, centurion.HintOf(err), w)
		}
	}
}
