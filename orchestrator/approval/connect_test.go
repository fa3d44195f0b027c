package approval

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"centurion"
	"centurion/permission"
	"centurion/tools"
)

// S3: a command connects to the hosts that are allowed by name; to one that is not public only if a rule of the configuration names it in
// full. Each host is asked about once.
func TestConnectionsAreDecidedByHost(t *testing.T) {
	t.Parallel()
	served := httptest.NewServer(nil)
	defer served.Close()
	address := served.Listener.Addr().String()
	byRule := func(pattern string, action permission.Action) permission.Decision {
		return permission.Decision{Action: action, Level: "opencode.json", Rule: permission.Rule{Permission: permission.Network, Pattern: pattern, Action: action}}
	}
	for name, test := range map[string]struct {
		by   permission.Decision
		want string
	}{
		"named in full":   {byRule(address, permission.Allow), ""},
		"by a wildcard":   {byRule("*", permission.Allow), "not in the public network"},
		"by an answer":    {permission.Decision{Action: permission.Allow, Level: always, Rule: byRule(address, permission.Allow).Rule}, "not in the public network"},
		"once":            {byRule("*", permission.Ask), "not in the public network"},
		"refused by rule": {byRule(address, permission.Deny), "a person refused it"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			c := connections{known: map[string]error{}, decide: func(tools.Access) permission.Decision { return test.by },
				ask: func(_ context.Context, a tools.Access) error {
					asked++
					if test.by.Action == permission.Deny {
						return refused(a, "a person refused it")
					}
					return nil
				}}
			for range 2 {
				conn, err := c.dial(t.Context(), address)
				if err == nil {
					err = conn.Close()
				}
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || centurion.KindOf(err) != centurion.KindPermission) {
					t.Error(err)
				}
			}
			if asked != 1 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

// The name is decided about before a proxy of the person's environment hears of it.
func TestRefusedNamesReachNoProxy(t *testing.T) {
	var heard []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard = append(heard, r.Host)
		w.WriteHeader(http.StatusForbidden)
	}))
	defer proxy.Close()
	for _, v := range []string{"NO_PROXY", "no_proxy", "https_proxy"} {
		t.Setenv(v, "")
	}
	t.Setenv("HTTPS_PROXY", proxy.URL)
	c := connections{known: map[string]error{}, decide: func(tools.Access) permission.Decision { return permission.Decision{} },
		ask: func(_ context.Context, a tools.Access) error {
			if a.Patterns[0] != "good.example" {
				return refused(a, "no")
			}
			return nil
		}}
	if _, err := c.dial(t.Context(), "bad.example:443"); centurion.KindOf(err) != centurion.KindPermission || len(heard) > 0 {
		t.Errorf("%v; the proxy heard of %q", err, heard)
	}
	if _, err := c.dial(t.Context(), "good.example:443"); err == nil || len(heard) != 1 || heard[0] != "good.example:443" {
		t.Errorf("%v; the proxy heard of %q", err, heard)
	}
}

// An ask that a stop interrupted is no answer: the next connection asks again, and what a person says then counts for all that follow.
func TestInterruptedAskAboutAHost(t *testing.T) {
	t.Parallel()
	asked := 0
	c := connections{known: map[string]error{}, ask: func(_ context.Context, a tools.Access) error {
		if asked++; asked == 1 {
			return context.Canceled
		}
		return refused(a, "a person refused it")
	}}
	for i, want := range []centurion.Kind{centurion.KindCancelled, centurion.KindPermission, centurion.KindPermission} {
		if _, err := c.dial(t.Context(), "a.example:443"); centurion.KindOf(err) != want {
			t.Errorf("connection %d: %v", i, err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

func TestOneCommandNamesFewHosts(t *testing.T) {
	t.Parallel()
	asked := 0
	c := connections{known: map[string]error{}, ask: func(_ context.Context, a tools.Access) error {
		asked++
		return refused(a, "no")
	}}
	for i := range 3 * maxHosts {
		if _, err := c.dial(t.Context(), fmt.Sprintf("h%d.example:443", i)); centurion.KindOf(err) != centurion.KindPermission {
			t.Error(err)
		}
	}
	if asked != maxHosts {
		t.Errorf("asked %d times", asked)
	}
}

func TestHostName(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"Example.ORG:443": "example.org", "example.org.:80": "example.org", "localhost:3000": "localhost:3000",
		"[::1]:443": "::1", net.JoinHostPort("::1", "8080"): "[::1]:8080", "no-port": "no-port"} {
		if got := hostName(address); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
