//go:build unix

package sandbox

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/sandbox/confine"
)

// A policy has all that its confinement says, for the workspace that it is for.
func TestPolicyOfAWorkspace(t *testing.T) {
	c := &Confinement{Write: []string{"/w"}, Read: []string{"/r"}, Hide: []string{"/h"}, Protect: []string{".git", ".opencode"}, Home: "/home/ada", Caches: []string{"/c"}}
	want := confine.Policy{Write: []string{"/ws", "/w", "/cache"}, Read: []string{"/r"}, Hide: []string{"/h"}, Protect: []string{"/ws/.git", "/ws/.opencode"}, Home: "/home/ada",
		Caches: []string{"/c"}, Empty: TempDirs, Aside: "/aside/caches", Temp: "/aside/tmp"}
	if got := c.policy("/ws", "/aside", "/cache"); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	c.Empty = []string{}
	if got := c.policy("/ws", "/aside", ""); len(got.Empty) > 0 || got.Empty == nil || !slices.Equal(got.Write, []string{"/ws", "/w"}) {
		t.Errorf("without shared directories and cache: %+v", got)
	}
}

// What is hidden and what is a cache lies below the home directory or at an absolute place, and at none if there is no home.
func TestHiddenAndCaches(t *testing.T) {
	hidden := Hidden("/home/ada")
	for _, name := range []string{"/home/ada/.ssh", "/home/ada/.aws", "/home/ada/.netrc", "/home/ada/.config/gh", "/home/ada/.local/share/centurion", "/home/ada/.local/state/centurion",
		"/home/ada/.config/opencode", "/home/ada/.bash_history", "/home/ada/Library/Keychains", "/run/docker.sock", "/run/dbus"} {
		if !slices.Contains(hidden, name) {
			t.Errorf("%s is not hidden", name)
		}
	}
	env := func(name string) string {
		return map[string]string{"GOCACHE": "/fast/go", "CARGO_HOME": "relative", "XDG_CACHE_HOME": "/fast/all"}[name]
	}
	caches := Caches("/home/ada", env)
	for _, name := range []string{"/fast/all", "/fast/go", "/home/ada/.cache", "/home/ada/go/pkg", "/home/ada/.npm"} {
		if !slices.Contains(caches, name) {
			t.Errorf("%s is no cache", name)
		}
	}
	if got := Caches("", env); !slices.Equal(got, []string{"/fast/all", "/fast/go"}) {
		t.Errorf("without a home: %q", got)
	}
	for _, dir := range slices.Concat(hidden, caches, Hidden("")) {
		if !filepath.IsAbs(dir) {
			t.Errorf("%q is not absolute", dir)
		}
	}
}

// Checks fill no cache from which agents read, and the other way round.
func TestCachesOfChecks(t *testing.T) {
	c := &Confinement{Cache: "/cache"}
	if agents, checks := c.cache(false), c.cache(true); agents != "/cache/agents" || checks != "/cache/checks" || (&Confinement{}).cache(true) != "" || (&Confinement{}).cache(false) != "" {
		t.Errorf("agents have %q, checks %q", agents, checks)
	}
	if got := separate("/t", ""); !slices.Equal(got, []string{"TMPDIR=/t"}) {
		t.Errorf("%q", got)
	}
	if got := separate("/t", "/c"); !slices.Equal(got, []string{"TMPDIR=/t", "XDG_CACHE_HOME=/c", "GOCACHE=/c/go-build", "npm_config_cache=/c/npm"}) {
		t.Errorf("%q", got)
	}
}

// Which connections a command did not get is told, each once and not more than a few; those that ended with it are not.
func TestRefusals(t *testing.T) {
	var r refusals
	if r.watch(nil) != nil {
		t.Error("a command without connections has some")
	}
	connect := r.watch(func(_ context.Context, address string) (net.Conn, error) {
		if address == "open" {
			return nil, nil
		}
		return nil, errors.New("no " + address)
	})
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := connect(ended, "late"); err == nil {
		t.Error("an error is lost")
	}
	if _, err := connect(t.Context(), "open"); err != nil || r.told() != "" {
		t.Errorf("%v, told %q", err, r.told())
	}
	for _, address := range []string{"a", "b", "a", "c", "d"} {
		_, _ = connect(t.Context(), address)
	}
	if got, want := r.told(), "commands are confined and connect by name: no a; no b; no c"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Advice is for a command that failed where files are confined, and for no other.
func TestHeldOnlyWhereConfined(t *testing.T) {
	const output = "touch: Read-only file system"
	for name, tt := range map[string]struct {
		confine *Confinement
		code    int
		held    bool
	}{
		"unconfined":      {nil, 1, false},
		"no files":        {&Confinement{Way: confine.Job}, 1, false},
		"files":           {&Confinement{Way: confine.Files}, 1, true},
		"fully":           {&Confinement{Way: confine.Full}, 1, true},
		"it did not fail": {&Confinement{Way: confine.Full}, 0, false},
	} {
		r := &Runner{Confine: tt.confine}
		if got := r.held(centurion.Command{}, tt.code, output); (got != "") != tt.held {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A name is a secret's by any of the usual words in it, in any case, and a value by a password in an address.
func TestSecretVariables(t *testing.T) {
	for _, name := range []string{"API_KEY", "github_token", "A_SECRET_B", "DB_PASSWORD", "DB_PASSWD", "GOOGLE_CREDENTIALS", "npm_config__auth"} {
		if !secret(name) {
			t.Errorf("%s is passed on", name)
		}
	}
	for value, want := range map[string]bool{"http://u:p@host": true, "https://u:p@host/x": true, "http://u@host": false, "http://host/a:b@c": false, "u:p@host": false, "http://host:80": false} {
		if credentials(value) != want {
			t.Errorf("%s: %v", value, !want)
		}
	}
	env := environment([]string{"LC_ALL=C", "LC=x", "CGO_ENABLED=1", "PATH=/bin", "PATHS=x", "OWN=1", "=x", "novalue", "GIT_PAGER=less"}, []string{"OWN"})
	if got, want := strings.Join(env, " "), "LC_ALL=C CGO_ENABLED=1 PATH=/bin OWN=1 TERM=dumb GIT_TERMINAL_PROMPT=0 GIT_PAGER=cat PAGER=cat"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// A person who asks what holds is told their own limits, and that leftovers are ended only where they can be found.
func TestDescribeTellsTheLimits(t *testing.T) {
	has := func(r *Runner, parts ...string) {
		t.Helper()
		text := strings.Join(r.Describe(), "\n")
		for _, p := range parts {
			if !strings.Contains(text, p) {
				t.Errorf("%q does not say %q", text, p)
			}
		}
	}
	has(&Runner{DefaultTimeout: 90 * time.Second, MaxTimeout: 5 * time.Minute, Keep: 77, Slots: 3, Checks: 5, Mark: "m"}, "1m30s unless", "at most 5m", "77 bytes",
		"commands at once: 3, checks at once: 5", sweepInForce)
	if text := strings.Join((&Runner{}).Describe(), "\n"); strings.Contains(text, sweepInForce) || !strings.Contains(text, "2m unless") || !strings.Contains(text, "at most 1h") {
		t.Errorf("by default: %s", text)
	}
	for _, way := range []confine.Way{confine.None, confine.Files, confine.Full} {
		if how := (&Runner{Confine: &Confinement{Way: way}}).Confinement(); how.Way != string(way) || !slices.Equal(how.Gaps, way.Gaps()) {
			t.Errorf("%s: %+v", way, how)
		}
	}
}
