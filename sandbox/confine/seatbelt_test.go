package confine

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// macPolicy is a policy as of a Mac, with a workspace of this name in the state directory.
func macPolicy(name string) Policy {
	work := "/Users/me/.local/share/centurion/projects/p/checkouts/" + name
	return Policy{Write: []string{work, "/Users/me/.local/share/centurion/projects/p/cache/agents"}, Read: []string{"/Users/me/project"},
		Hide:    []string{"/Users/me/.ssh", "/Users/me/.netrc", "/Users/me/.local/share/centurion", "/Users/me/project/.keys"},
		Protect: []string{work + "/.git", work + "/.opencode"}, Temp: "/private/var/folders/aa/bb/T/centurion-1"}
}

// S3: the profile for macOS allows and refuses what it should, judged as Seatbelt does: the last rule that matches decides. A name in the
// table is an operation; what follows is a path, the name of a service, or "ip".
func TestSeatbelt(t *testing.T) {
	const yes, no, online = "yes", "no", "online"
	work := macPolicy("T1").Write[0]
	offlineProfile, onlineProfile := parseProfile(t, macPolicy("T1").Seatbelt(false)), parseProfile(t, macPolicy("T1").Seatbelt(true))
	for _, test := range []struct{ op, on, want string }{
		{"process-exec-interpreter", "/bin/sh", yes},
		{"file-write-create", work + "/main.go", yes},
		{"file-write-unlink", work + "/main.go", yes},
		{"file-read-data", work + "/.git/config", yes},
		{"file-write-data", work + "/.git/config", no},
		{"file-write-create", work + "/.git", no},
		{"file-write-create", work + "/.GIT", no},
		{"file-write-create", work + "/.oPencode/agents/a.md", no},
		{"file-write-data", work + "/.gitignore", yes},
		{"file-write-unlink", work, no},
		{"file-write-unlink", "/private/var/folders/aa/bb/T/centurion-1", no},
		{"file-write-create", "/private/var/folders/aa/bb/T/centurion-1/x", yes},
		{"file-write-create", "/private/var/folders/aa/bb/T/x", no},
		{"file-write-create", "/private/tmp/x", no},
		{"file-write-create", "/Users/me/.local/share/centurion/projects/p/cache/agents/x", yes},
		{"file-write-data", "/Users/me/.zshrc", no},
		{"file-read-data", "/Users/me/.zshrc", yes},
		{"file-read-data", "/Users/me/.ssh/id_ed25519", no},
		{"file-read-metadata", "/Users/me/.ssh", no},
		{"file-read-data", "/Users/me/.SSH/id_ed25519", no},
		{"file-read-data", "/Users/me/.netrc", no},
		{"file-read-data", "/Users/me/.netrc.txt", yes},
		{"file-read-data", "/Users/me/.local/share/centurion/projects/p/token", no},
		{"file-read-metadata", "/Users/me/.local/share/centurion/projects/p/token", no},
		{"file-read-metadata", "/Users/me/.local/share/centurion/projects", yes},
		{"file-read-data", "/Users/me/.local/share/centurion/projects", no},
		{"file-read-data", "/Users/me/.local/share/centurion/projects/p/checkouts/T2/x", no},
		{"file-read-data", "/Users/me/project/x", yes},
		{"file-write-data", "/Users/me/project/x", no},
		{"file-read-data", "/Users/me/project/.keys/x", no},
		{"file-write-data", "/etc/hosts", no},
		{"file-write-data", "/dev/null", yes},
		{"file-read-data", "/dev/tty", no},
		{"file-read-data", "/dev/ttys001", no},
		{"file-ioctl", "/dev/ttys001", no},
		{"file-link", work + "/x", no},
		{"file-clone", work + "/x", no},
		{"file-mount", work, no},
		{"lsopen", "", no},
		{"job-creation", "", no},
		{"appleevent-send", "", no},
		{"user-preference-write", "", no},
		{"mach-register", "", no},
		{"mach-lookup", "com.apple.coreservices.launchservicesd", no},
		{"mach-lookup", "com.apple.pasteboard.1", no},
		{"mach-lookup", "com.apple.system.opendirectoryd.libinfo", yes},
		{"mach-lookup", "com.apple.SecurityServer", online},
		{"network-outbound", "ip", online},
		{"network-bind", "ip", online},
		{"network-inbound", "ip", online},
		{"network-outbound", "/private/var/run/mDNSResponder", online},
		{"network-outbound", "/Users/me/.docker/run/docker.sock", no},
		{"network-outbound", work + "/test.sock", yes},
		{"network-bind", work + "/test.sock", yes},
		{"signal", "same-sandbox", yes},
		{"signal", "others", no},
		{"process-info-pidinfo", "same-sandbox", yes},
		{"process-info-pidinfo", "others", no},
	} {
		if got := offlineProfile.allows(test.op, test.on); got != (test.want == yes) {
			t.Errorf("%s %s without network: %v", test.op, test.on, got)
		}
		if got := onlineProfile.allows(test.op, test.on); got != (test.want != no) {
			t.Errorf("%s %s with network: %v", test.op, test.on, got)
		}
	}
}

// What the default is reported not to cover is denied by name.
func TestSeatbeltDeniesByName(t *testing.T) {
	for _, rule := range []string{"(deny file-link file-clone)", "(deny process-info* (target others))"} {
		if text := macPolicy("T1").Seatbelt(true)[1]; !strings.Contains(text, rule) {
			t.Errorf("%s is not in %s", rule, text)
		}
	}
}

// A path is never part of the profile's text, whatever it is.
func TestSeatbeltPathsAreParameters(t *testing.T) {
	plain, odd := macPolicy("T1"), macPolicy("a\") (allow default) (\"=#\n\\")
	if p, o := plain.Seatbelt(true), odd.Seatbelt(true); p[0] != "-p" || p[1] != o[1] || len(p) != len(o) {
		t.Errorf("the text depends on paths:\n%s\n%s", p[1], o[1])
	}
	profile := parseProfile(t, odd.Seatbelt(false))
	for path, want := range map[string]bool{"/x": true, "/.git/x": false, "/.GIT/x": false} {
		if got := profile.allows("file-write-data", odd.Write[0]+path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// A directory above what is hidden, protected or written stays where it is: its rules go by paths, and would not follow it.
func TestSeatbeltHoldsWhatIsAbove(t *testing.T) {
	const work = "/Users/me/project"
	p := Policy{Write: []string{work, work + "/out/cache"}, Hide: []string{work + "/conf/keys"}, Protect: []string{work + "/deep/down/.git"}, Temp: "/private/var/folders/T/c"}
	profile := parseProfile(t, p.Seatbelt(false))
	for path, want := range map[string]bool{"": false, "/conf": false, "/conf/keys": false, "/deep": false, "/deep/down": false, "/deep/down/.git": false, "/out": false,
		"/out/cache": false, "/out/cache/x": true, "/conf/keyserver": true, "/deeper": true} {
		if got := profile.allows("file-write-unlink", work+path); got != want {
			t.Errorf("%s can be moved: %v", work+path, got)
		}
	}
}

// Paths are judged where they lie: links are followed, and a link that is protected or hidden stays so itself.
func TestFollowed(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{os.MkdirAll(filepath.Join(dir, "real", "keys"), 0o700), os.Symlink("real", filepath.Join(dir, "link")),
		os.Symlink(filepath.Join(dir, "real", "keys"), filepath.Join(dir, "hidden"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	in := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
		return paths
	}
	got := Policy{Write: in("link"), Read: in("link/none/x"), Protect: in("link/.git"), Hide: in("hidden", "gone/x"), Temp: in("link/tmp")[0]}.Followed()
	for _, list := range []struct{ got, want []string }{{got.Write, in("real")}, {got.Read, in("real/none/x")}, {got.Protect, in("real/.git")},
		{got.Hide, in("hidden", "real/keys", "gone/x")}, {[]string{got.Temp}, in("real/tmp")}} {
		if !slices.Equal(list.got, list.want) {
			t.Errorf("got %v, want %v", list.got, list.want)
		}
	}
}

// What a way does not stop is said for the system that it runs on.
func TestGaps(t *testing.T) {
	for _, test := range []struct {
		way         Way
		system      string
		says, hides string
	}{
		{Full, "linux", "known to hold keys", ".git"},
		{Files, "linux", "writing .git", "launchd"},
		{Files, "darwin", "launchd", "writing .git"},
		{Job, "windows", "the network", "launchd"},
		{None, "windows", "anything", "launchd"},
	} {
		if all := strings.Join(test.way.gaps(test.system), ", "); !strings.Contains(all, test.says) || strings.Contains(all, test.hides) {
			t.Errorf("%s on %s: %s", test.way, test.system, all)
		}
	}
	for i, stronger := range []Way{Full, Files, Job, None} {
		for j, weaker := range []Way{Full, Files, Job, None} {
			if stronger.Holds(weaker) != (i <= j) {
				t.Errorf("%s holds %s: %v", stronger, weaker, i > j)
			}
		}
	}
}

// profile is a parsed profile: its rules in order.
type profile struct {
	t      *testing.T
	rules  [][]any
	params map[string]string
}

// parseProfile reads the arguments of sandbox-exec.
func parseProfile(t *testing.T, args []string) profile {
	t.Helper()
	p := profile{t: t, params: map[string]string{}}
	for i := 2; i < len(args); i += 2 {
		name, value, ok := strings.Cut(args[i+1], "=")
		if args[i] != "-D" || !ok || p.params[name] != "" {
			t.Fatalf("argument %q %q", args[i], args[i+1])
		}
		p.params[name] = value
	}
	tokens := regexp.MustCompile(`#?"[^"]*"|[()]|[^\s()"]+`).FindAllString(args[1], -1)
	for len(tokens) > 0 {
		var list []any
		list, tokens = p.list(tokens)
		p.rules = append(p.rules, list)
	}
	return p
}

// list parses a list and returns the tokens after it.
func (p profile) list(tokens []string) (list []any, rest []string) {
	if len(tokens) == 0 || tokens[0] != "(" {
		p.t.Fatalf("no list: %q", tokens)
	}
	for tokens = tokens[1:]; len(tokens) > 0; {
		switch tokens[0] {
		case ")":
			return list, tokens[1:]
		case "(":
			var inner []any
			inner, tokens = p.list(tokens)
			list = append(list, inner)
		default:
			list, tokens = append(list, tokens[0]), tokens[1:]
		}
	}
	p.t.Fatal("a list does not end")
	return nil, nil
}

// allows reports whether the profile allows an operation.
func (p profile) allows(op, on string) (allowed bool) {
	for _, rule := range p.rules {
		var ops []string
		filters, matches := 0, false
		for _, part := range rule[1:] {
			switch part := part.(type) {
			case string:
				ops = append(ops, part)
			case []any:
				filters++
				matches = matches || p.matches(part, on)
			}
		}
		named := slices.ContainsFunc(ops, func(name string) bool {
			group, wild := strings.CutSuffix(name, "*")
			return name == "default" || name == op || wild && strings.HasPrefix(op, group)
		})
		if rule[0] != "version" && named && (filters == 0 || matches) {
			allowed = rule[0] == "allow"
		}
	}
	return allowed
}

// matches reports whether a filter matches.
func (p profile) matches(filter []any, on string) bool {
	value := func() string {
		if inner, ok := filter[1].([]any); ok {
			return p.params[strings.Trim(inner[1].(string), `"`)]
		}
		return strings.Trim(filter[1].(string), `#"`)
	}
	switch filter[0] {
	case "subpath":
		return below(on, []string{value()})
	case "literal", "global-name", "target":
		return on == value()
	case "regex":
		return regexp.MustCompile(value()).MatchString(on)
	case "local", "remote":
		return on == value()
	case "require-all":
		return !slices.ContainsFunc(filter[1:], func(f any) bool { return !p.matches(f.([]any), on) })
	case "extension", "socket-domain", "sysctl-name", "iokit-registry-entry-class":
		return false
	}
	p.t.Fatalf("an unknown filter: %v", filter)
	return false
}
