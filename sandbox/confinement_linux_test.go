package sandbox

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/sandbox/confine"
)

// scene is a person's home with a project, as commands of an agent find it.
type scene struct {
	home, project, state string
	r                    *Runner
}

func newScene(t *testing.T, way confine.Way) *scene {
	t.Helper()
	if way == confine.Full && os.Getenv("CENTURION_TEST_NO_NAMESPACES") != "" {
		t.Skip("no namespaces are to be had")
	}
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{home: home, project: filepath.Join(home, "my project ü"), state: filepath.Join(home, ".local/state/centurion")}
	for name, text := range map[string]string{
		".ssh/id_ed25519": "PRIVATE", ".bashrc": "# mine\n", ".cache/old": "cached\n", ".local/state/centurion/token": "TOKEN",
		"my project ü/main.go": "package main\n", "my project ü/.git/config": "[core]\n", "my project ü/.git/hooks/README": "", "other/file": "other\n",
	} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	empty := slices.DeleteFunc(slices.Clone(TempDirs), func(dir string) bool { return strings.HasPrefix(home, dir+"/") }) // like most homes: see inTemp
	s.r = &Runner{Mark: "mark-" + string(way), Grace: 100 * time.Millisecond, Confine: &Confinement{Way: way, Read: []string{s.project, filepath.Join(home, "other")},
		Hide: append(Hidden(home), s.state), Protect: []string{".git", ".opencode"}, Caches: Caches(home, func(string) string { return "" }), Empty: empty, Home: home, Dir: filepath.Join(s.state, "sandbox")}}
	t.Cleanup(func() {
		if err := s.r.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(filepath.Join(s.state, "sandbox")); len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	return s
}

// inTemp makes the home one that lies in an emptied directory.
func (s *scene) inTemp(t *testing.T) {
	t.Helper()
	if s.r.Confine.Empty = nil; !slices.ContainsFunc(TempDirs, func(dir string) bool { return strings.HasPrefix(s.home, dir+"/") }) {
		s.r.Confine.Empty = append(slices.Clone(TempDirs), filepath.Dir(s.home))
	}
}

// inWays runs a test in each way, and in one whose home lies in an emptied directory.
func inWays(t *testing.T, test func(t *testing.T, s *scene, way confine.Way)) {
	for _, way := range ways {
		t.Run(string(way), func(t *testing.T) { test(t, newScene(t, way), way) })
	}
	t.Run("home in an emptied directory", func(t *testing.T) {
		s := newScene(t, confine.Full)
		s.inTemp(t)
		test(t, s, confine.Full)
	})
}

func (s *scene) run(t *testing.T, c centurion.Command) centurion.CommandResult {
	t.Helper()
	if c.Dir == "" {
		c.Dir = s.project
	}
	c.Workspace, c.Timeout = s.project, 20*time.Second
	c.Env = append(c.Env, "HOME="+s.home, "STATE="+s.state)
	res, err := s.r.Run(t.Context(), c)
	if err != nil {
		t.Fatalf("%s: %v", c.Script, err)
	}
	return res
}

var ways = []confine.Way{confine.Full, confine.Files}

// What a build needs works in every way.
func TestConfinedCommandWorks(t *testing.T) {
	inWays(t, func(t *testing.T, s *scene, _ confine.Way) {
		for _, test := range []struct{ script, output string }{
			{"echo hi; echo err >&2; exit 3", "hi\nerr\n"},
			{"pwd", s.project + "\n"},
			{"echo new > new.txt && cat new.txt main.go", "new\npackage main\n"},
			{"mkdir -p a/b && mv a c && rm -r c && ls", "main.go\nnew.txt\n"},
			{`f=$(mktemp) && echo temp > "$f" && cat "$f" && rm "$f"`, "temp\n"},
			{"echo x > /dev/null; head -c 2 /dev/zero | wc -c; cat", "2\n"},
			{"(echo in; exit 4) | cat; sleep 0.01 & wait; echo done", "in\ndone\n"},
			{"git --version | cut -c1-3", "git\n"},
			{`cat "$HOME/.cache/old"`, "cached\n"},
			{`cat "$HOME/.bashrc"; ls "$HOME/other"`, "# mine\nfile\n"},
		} {
			if res := s.run(t, centurion.Command{Script: test.script}); res.Output != test.output {
				t.Errorf("%s: exit %d, %q", test.script, res.ExitCode, res.Output)
			}
		}
		if res := s.run(t, centurion.Command{Script: "exit 7"}); res.ExitCode != 7 {
			t.Errorf("exit code %d", res.ExitCode)
		}
		if res := s.run(t, centurion.Command{Script: "kill -9 $$"}); res.ExitCode != -1 {
			t.Errorf("killed by a signal: exit code %d", res.ExitCode)
		}
		askCommand(t, s.r, centurion.Command{Dir: s.project, Workspace: s.project, Script: `echo begun >&2; while read -r line; do echo "heard $line"; done`})
	})
}

// TRIAL S3: nothing outside the workspace is written, nothing hidden is read, and no right is won. A word after "only" names the one
// way that stops it.
func TestConfinementHolds(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	inWays(t, func(t *testing.T, s *scene, way confine.Way) {
		service, err := net.Listen("unix", filepath.Join(s.home, "a service"))
		if err != nil {
			t.Fatal(err)
		}
		defer service.Close()
		if err := os.Symlink(".ssh", filepath.Join(s.home, "keys")); err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			script string
			only   confine.Way
		}{
			{script: `echo x >> "$HOME/.bashrc"`},
			{script: `echo x > "$HOME/other/file"`},
			{script: `echo x > "$HOME/planted"`},
			{script: `ln -s "$HOME" out && echo x > out/.bashrc`},
			{script: `ln "$HOME/.bashrc" hard && echo x >> hard`},
			{script: `mv main.go "$HOME/other/"`},
			{script: `rm "$HOME/other/file"`},
			{script: `chmod 777 "$HOME/.bashrc"`, only: confine.Full},
			{script: `cat "$HOME/.ssh/id_ed25519"`},
			{script: `cat "$HOME/keys/id_ed25519"`}, // a link to what is hidden
			{script: `grep -q . "$STATE/token"`},
			{script: `ls "$STATE" | grep token`},
			{script: `echo x > "$STATE/token"`},
			{script: `echo x >> .git/config`, only: confine.Full},
			{script: `echo x > .git/hooks/pre-commit`, only: confine.Full},
			{script: `mv .git .git2`, only: confine.Full},
			{script: `rm -rf .git/hooks`, only: confine.Full},
			{script: fmt.Sprintf("(echo > /dev/tcp/127.0.0.1/%d) 2>&1", port)},
			{script: `test "$(grep -c : /proc/net/dev)" -gt 1`, only: confine.Full},
			{script: fmt.Sprintf("cat /proc/%d/environ | tr '\\0' '\\n' | grep -q PATH", os.Getpid())},
			{script: fmt.Sprintf("kill -0 %d", os.Getpid())},
			{script: fmt.Sprintf("ls /proc/%d/root/", os.Getpid())},
			{script: `mount -t tmpfs none /mnt`},
			{script: `unshare -Ur true`},
			{script: `unshare -n true`},
			{script: `mkdir jail; chroot jail true`},
			{script: `mknod dev c 1 3`},
			{script: `grep -q 'CapEff:[[:space:]]*0000000000000000' /proc/self/status && exit 1 || exit 0`},
			{script: `grep -q 'NoNewPrivs:[[:space:]]*1' /proc/self/status && exit 1 || exit 0`},
			{script: `test "$(ls /proc/self/fd | wc -l)" -gt 4`}, // the fourth is that of ls
			{script: `test -e /run/docker.sock -a ! -c /run/docker.sock`},
			{script: `test -S "$HOME/a service"`, only: confine.Full},
			{script: `echo x > /etc/planted`},
			{script: `echo x > /usr/planted`},
			{script: `grep -E '^([^ ]+ ){4}/(sys|dev)(/[^ ]*)? rw' /proc/self/mountinfo | grep -v ' /dev/shm '`, only: confine.Full}, // mounts below /, too
			{script: `ls /proc | grep -c '^[0-9]' | grep -q '[0-9][0-9]'`, only: confine.Full},
		} {
			res := s.run(t, centurion.Command{Script: test.script})
			if stopped := res.ExitCode != 0; stopped != (test.only == "" || test.only == way) {
				t.Errorf("%s: exit %d, %q", test.script, res.ExitCode, res.Output)
			}
		}
		for name, want := range map[string]string{".bashrc": "# mine\n", "other/file": "other\n", ".local/state/centurion/token": "TOKEN"} {
			if b, err := os.ReadFile(filepath.Join(s.home, name)); string(b) != want {
				t.Errorf("%s is %q, %v", name, b, err)
			}
		}
	})
}

// A command that a person has allowed by name gets the network.
func TestConfinedNetwork(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	script := fmt.Sprintf("echo > /dev/tcp/127.0.0.1/%d", listener.Addr().(*net.TCPAddr).Port)
	for _, way := range ways {
		s := newScene(t, way)
		for _, network := range []bool{false, true} {
			if res := s.run(t, centurion.Command{Script: script, Network: network}); network != (res.ExitCode == 0) {
				t.Errorf("%s, network %v: exit %d, %s", way, network, res.ExitCode, res.Output)
			}
		}
		// Its own loopback is there all the same.
		if res := s.run(t, centurion.Command{Script: `test -e /sys/class/net/lo`}); res.ExitCode != 0 {
			t.Errorf("%s: no loopback: %s", way, res.Output)
		}
	}
}

// A check shares neither temporary files nor caches with the agents' commands: they could have forged a test result there. It finds its
// own of earlier checks.
func TestChecksAreApart(t *testing.T) {
	for _, way := range ways {
		s := newScene(t, way)
		s.r.Confine.Cache = t.TempDir()
		forge := `for d in "$TMPDIR" "${XDG_CACHE_HOME:-$HOME/.cache}"; do echo forged > "$d/entry" || exit 1; done; (setsid sleep 60 >/dev/null 2>&1 &)`
		look := `for d in "$TMPDIR" "${XDG_CACHE_HOME:-$HOME/.cache}"; do cat "$d/entry" 2>/dev/null && exit 1; done; ! grep -qs ^sleep /proc/[0-9]*/comm`
		if res := s.run(t, centurion.Command{Script: forge}); res.ExitCode != 0 {
			t.Fatalf("%s: %+v", way, res)
		}
		if way == confine.Files { // where other processes are seen, as its gaps say
			look, _, _ = strings.Cut(look, "; ! grep")
			look += "; true"
		}
		if res := s.run(t, centurion.Command{Script: look, Check: true}); res.ExitCode != 0 {
			t.Errorf("%s: a check sees %q", way, res.Output)
		}
		if res := s.run(t, centurion.Command{Script: forge, Check: true}); res.ExitCode != 0 {
			t.Fatalf("%s: %+v", way, res)
		}
		if res := s.run(t, centurion.Command{Script: `cat "${XDG_CACHE_HOME:-$HOME/.cache}/entry"`, Check: true}); res.Output != "forged\n" {
			t.Errorf("%s: an earlier check's cache is gone: %+v", way, res)
		}
		if err := s.r.Release(s.project); err != nil || len(s.r.places) > 0 {
			t.Errorf("%s: %d places are left, %v", way, len(s.r.places), err)
		}
	}
}

// What commands write to the person's caches is theirs alone, and dropped with the workspace.
func TestCachesAreLaidOver(t *testing.T) {
	inWays(t, func(t *testing.T, s *scene, way confine.Way) {
		if way == confine.Files {
			t.Skip("caches are separate ones there: see TestChecksAreApart")
		}
		if res := s.run(t, centurion.Command{Script: `echo changed > "$HOME/.cache/old" && echo new > "$HOME/.cache/new"`}); res.ExitCode != 0 {
			t.Fatalf("exit %d, %s", res.ExitCode, res.Output)
		}
		if res := s.run(t, centurion.Command{Script: `cat "$HOME/.cache/old" "$HOME/.cache/new"`}); res.Output != "changed\nnew\n" {
			t.Errorf("%q", res.Output)
		}
		if b, _ := os.ReadFile(filepath.Join(s.home, ".cache/old")); string(b) != "cached\n" {
			t.Errorf("the person's cache has %q", b)
		}
		if err := s.r.Release(s.project); err != nil {
			t.Error(err)
		}
		if res := s.run(t, centurion.Command{Script: `cat "$HOME/.cache/old"; ls "$HOME/.cache"`}); res.Output != "cached\nold\n" {
			t.Errorf("afterwards: %q", res.Output)
		}
	})
}

// A home in a shared directory for temporary files is there, and its neighbours are not. A home that is such a directory is empty.
func TestHomeInTemp(t *testing.T) {
	s := newScene(t, confine.Full)
	s.inTemp(t)
	neighbour := s.home + " of a neighbour"
	if err := os.WriteFile(neighbour, []byte("theirs"), 0o644); err != nil {
		t.Fatal(err)
	}
	const look = `cat "$HOME/other/file" && ! ls "$HOME of a neighbour" 2>/dev/null && cd "$HOME/.." && echo mine > new && cat new && ls; ls "$HOME/.ssh"`
	if res := s.run(t, centurion.Command{Script: look}); !strings.HasSuffix(res.Output, "other\nmine\n"+filepath.Base(s.home)+"\nnew\n") {
		t.Errorf("%+v", res)
	}
	if left, err := filepath.Glob(filepath.Dir(s.home) + "/new"); err != nil || len(left) > 0 {
		t.Errorf("written beside the home: %v, %v", left, err)
	}
	s = newScene(t, confine.Full)
	s.r.Confine.Empty, s.r.Confine.Read = []string{s.home}, nil
	if res := s.run(t, centurion.Command{Script: `ls "$HOME"; echo mine > "$HOME/new"`}); res.Output != "my project ü\n" || res.ExitCode != 0 {
		t.Errorf("a home that is emptied: %+v", res)
	}
	if _, err := os.Stat(filepath.Join(s.home, "new")); err == nil {
		t.Error("the emptied home was written")
	}
}

// A model is told what confinement kept its command from, and only then.
func TestHeldCommandIsAdvised(t *testing.T) {
	s := newScene(t, confine.Full)
	for _, test := range []struct {
		c    centurion.Command
		want string
	}{
		{centurion.Command{Script: "echo x > .git/config"}, "not .git"},
		{centurion.Command{Script: "echo x > /etc/planted"}, "they write in the workspace"},
		{centurion.Command{Script: "echo > /dev/tcp/192.0.2.1/80"}, "had no network"},
		{centurion.Command{Script: "echo Network is unreachable; exit 1", Network: true}, ""},
		{centurion.Command{Script: "echo Read-only file system"}, ""},
		{centurion.Command{Script: "exit 1"}, ""},
	} {
		if res := s.run(t, test.c); !strings.Contains(res.Held, test.want) || (res.Held == "") != (test.want == "") {
			t.Errorf("%s: %q, %s", test.c.Script, res.Held, res.Output)
		}
	}
}

// A helper that was killed takes its commands with it, and the next command gets a new one.
func TestHelperIsReplaced(t *testing.T) {
	s := newScene(t, confine.Full)
	if res := s.run(t, centurion.Command{Script: "kill -9 1; kill -TERM 1; echo still here"}); res.Output != "still here\n" {
		t.Errorf("a command ended its helper: %+v", res)
	}
	k := s.r.places[placeKey{workspace: s.project}].helper()
	if err := k.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := k.group.Wait(); err != nil {
		t.Error(err)
	}
	if res := s.run(t, centurion.Command{Script: "echo again"}); res.Output != "again\n" {
		t.Errorf("got %+v", res)
	}
}

func BenchmarkConfined(b *testing.B) {
	for _, way := range []confine.Way{confine.None, confine.Files, confine.Full} {
		b.Run(string(way), func(b *testing.B) {
			dir := b.TempDir()
			r := &Runner{Confine: &Confinement{Way: way, Dir: filepath.Join(dir, "aside")}}
			defer r.Close()
			for b.Loop() {
				if _, err := r.Run(b.Context(), centurion.Command{Script: "true", Dir: dir}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TRIAL R12: what starts too many processes or takes too much memory ends at the limits, is told why, and leaves the helper and its later
// commands alone. The kernel holds a bomb until the next look.
func TestLimits(t *testing.T) {
	for _, test := range []struct {
		limits         confine.Limits
		script, reason string
	}{
		{confine.Limits{Processes: 40}, "for i in $(seq 60); do sleep 60 & done; wait", "40 processes"},
		{confine.Limits{Memory: 100 << 20}, "head -c 300m /dev/zero | tail", "100 MB of memory"},
	} {
		for _, way := range ways {
			s := newScene(t, way)
			s.r.Confine.Limits = test.limits
			res := s.run(t, centurion.Command{Script: test.script})
			if res.Exceeded != test.reason || res.ExitCode != -1 || res.TimedOut {
				t.Errorf("%s: %s: %+v", way, test.script, res)
			}
			if res := s.run(t, centurion.Command{Script: "sleep 0.2; echo on"}); res.Output != "on\n" || res.Exceeded != "" {
				t.Errorf("%s: afterwards: %+v", way, res)
			}
		}
	}
	s := newScene(t, confine.Full)
	s.r.Confine.Limits = confine.Limits{Processes: 8}
	res := s.run(t, centurion.Command{Script: "grep 'Max processes' /proc/self/limits | tr -s ' '; cat /proc/sys/kernel/pid_max"})
	if person, numbers, _ := strings.Cut(res.Output, "\n"); person != "Max processes 32 32 processes " || newKernel(t) && numbers != "332\n" {
		t.Errorf("the kernel's limits: %q", res.Output)
	}
}

// A person's missing caches are made for the programs that are there, so that what commands write to them is dropped with the workspace and
// not refused. What is there already stays.
func TestMakeCaches(t *testing.T) {
	s := newScene(t, confine.Full)
	bin := t.TempDir()
	for _, name := range []string{"go", "npm", "yarn"} {
		if err := os.WriteFile(filepath.Join(bin, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.home, ".yarn"), []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", bin)
	MakeCaches(s.home)
	MakeCaches("")
	t.Setenv("PATH", path)
	for name, want := range map[string]bool{"go/pkg": true, ".npm": true, ".cargo": false, ".m2": false, ".local/share/pnpm": false} {
		info, err := os.Stat(filepath.Join(s.home, name))
		if (err == nil) != want || want && !info.IsDir() {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(s.home, ".yarn")); string(b) != "a file" {
		t.Errorf("what was in the way: %q, %v", b, err)
	}
	for script, want := range map[string]bool{`echo x > "$HOME/go/pkg/new" && cat "$HOME/go/pkg/new"`: true, `mkdir -p "$HOME/.cargo"`: false} {
		if res := s.run(t, centurion.Command{Script: script}); (res.ExitCode == 0) != want {
			t.Errorf("%s: %+v", script, res)
		}
	}
	if _, err := os.Stat(filepath.Join(s.home, "go/pkg/new")); err == nil {
		t.Error("a command has written to the person's cache")
	}
}

// A background command tells the same about confinement as one in the foreground, however much else it prints.
func TestBackgroundTellsTheSame(t *testing.T) {
	s := newScene(t, confine.Full)
	s.r.Confine.Limits = confine.Limits{Memory: 100 << 20}
	connect := func(context.Context, string) (net.Conn, error) {
		return nil, &centurion.Error{Kind: centurion.KindPermission, Msg: "not allowed: network bad.example"}
	}
	for _, script := range []string{"touch .git/x", "touch .git/x; seq 40000; exit 1", "touch .git/x; true", "exit 3", "head -c 300m /dev/zero | tail", asks + `ask "CONNECT bad.example:443"`} {
		c := centurion.Command{Script: script, Dir: s.project, Connect: connect, Timeout: 20 * time.Second}
		front, err := s.r.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		back, err := s.r.RunBackground(t.Context(), c, io.Discard, nil)
		if err != nil || back.Held != front.Held || back.Exceeded != front.Exceeded || back.ExitCode != front.ExitCode {
			t.Errorf("%s: in the background %+v, %v; else %+v", script, back, err, front)
		}
	}
}

// TRIAL R12: bombs end, each told why, and other commands of the workspace end well beside them: the helper survives that no more processes
// can be made. These bombs end by themselves, in case that nothing stops them.
func TestBombsLeaveOthersAlone(t *testing.T) {
	scripts := map[string]string{
		"200 MB of memory": "head -c 1000m /dev/zero | tail",
		"64 processes":     `f() { if [ $1 -gt 0 ]; then for i in 1 2 3 4; do f $(($1 - 1)) & done; fi; sleep 5; wait; }; f 5 2>/dev/null`,
		"":                 "sleep 1; echo on",
	}
	for range 3 {
		s := newScene(t, confine.Full)
		s.r.Slots, s.r.Confine.Limits = len(scripts), confine.Limits{Processes: 64, Memory: 200 << 20}
		var g guard.Group
		for over, script := range scripts {
			g.Go(over, func() error {
				if res := s.run(t, centurion.Command{Script: script}); res.Exceeded != over || over == "" && !strings.HasSuffix(res.Output, "on\n") { // the shell may have said that it tries again
					t.Errorf("%s: %+v", script, res)
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// newKernel reports whether the kernel counts process numbers by namespace.
func newKernel(t *testing.T) bool {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	var major, minor int
	if _, serr := fmt.Sscanf(string(b), "%d.%d", &major, &minor); err != nil || serr != nil {
		t.Fatal(err, serr)
	}
	return major > 6 || major == 6 && minor >= 14
}
