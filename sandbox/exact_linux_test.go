package sandbox

import (
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"centurion"
	"centurion/sandbox/confine"
)

// Commands see what others have filled caches with before them, and change nothing of it.
func TestCachesOfOthers(t *testing.T) {
	s := newScene(t, confine.Full)
	l := s.layers(t)
	l.Binds = nil
	filled, own := filepath.Join(s.state, "filled"), filepath.Join(s.state, "own")
	for i, step := range []struct{ caches, below, script, output string }{
		{filled, "", `cd "$HOME/.cache"; echo first > new; echo more >> old; cat old`, "cached\nmore\n"},
		{own, filled, `cd "$HOME/.cache"; cat old new; echo second > new; rm old; ls`, "cached\nmore\nfirst\nnew\n"},
		{own, filled, `cd "$HOME/.cache"; cat new; ls`, "second\nnew\n"},
		{filled, "", `cd "$HOME/.cache"; cat old new`, "cached\nmore\nfirst\n"},
	} {
		l.Caches, l.CachesBelow = step.caches, step.below
		if err := s.r.Mount(l); err != nil {
			t.Fatal(err)
		}
		res, err := s.r.Run(t.Context(), centurion.Command{Script: step.script, Dir: l.At, Workspace: l.Workspace, Env: []string{"HOME=" + s.home}})
		if err != nil || res.Output != step.output {
			t.Errorf("step %d: %q, %v, want %q", i, res.Output, err, step.output)
		}
		if err := s.r.Release(l.Workspace); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(s.home, ".cache/old")); err != nil || string(b) != "cached\n" {
		t.Errorf("the person's cache: %q, %v", b, err)
	}
}

// What may only be read stays so within something that may be written, and the other way round, in whatever order they are given.
func TestDeeperPathsWin(t *testing.T) {
	s := newScene(t, confine.Full)
	at := func(name string) string { return filepath.Join(s.home, name) }
	for _, dir := range []string{"w/r/w", "r/w/r"} {
		if err := os.MkdirAll(at(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.r.Confine.Read, s.r.Confine.Write = []string{at("w/r"), at("r"), at("r/w/r")}, []string{at("w/r/w"), at("r/w"), at("w")}
	for dir, want := range map[string]string{"w": "yes\n", "w/r": "no\n", "w/r/w": "yes\n", "r": "no\n", "r/w": "yes\n", "r/w/r": "no\n"} {
		if res := s.run(t, centurion.Command{Script: `(echo x > "` + at(dir) + `/file") 2>/dev/null && echo yes || echo no`}); res.Output != want {
			t.Errorf("writing to %s: %q", dir, res.Output)
		}
	}
}

// A command that cannot be started says why, and ends no other.
func TestStartThatFails(t *testing.T) {
	s := newScene(t, confine.Full)
	l := s.layers(t)
	if err := s.r.Mount(l); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]centurion.Command{
		"run command: the shell did not start: no such file or directory": {Script: "pwd", Dir: filepath.Join(l.At, "missing")},
		"run command: the shell did not start: a command of 2":            {Script: strings.Repeat("x", maxMessage), Dir: l.At},
	} {
		c.Workspace = l.Workspace
		res, err := s.r.Run(t.Context(), c)
		if err == nil || !strings.HasPrefix(err.Error(), want) || centurion.KindOf(err) != centurion.KindInternal || res.ExitCode != -1 {
			t.Errorf("%+v, %v", res, err)
		}
	}
	if res := s.runIn(t, l, "cat /proc/self/oom_score_adj"); res.Output != "800\n" { // before the person's own programs, where memory is short
		t.Errorf("a command after them: %+v", res)
	}
	if n := len(s.r.running); n != 0 {
		t.Errorf("%d commands are taken for running", n)
	}
}

// Sockets at which somebody outside a workspace listens are known, whatever their names are; those of the workspace and mere ends of
// connections are not.
func TestServices(t *testing.T) {
	dir, own := t.TempDir(), t.TempDir()
	listen := func(kind, path string) {
		t.Helper()
		var c interface{ Close() error }
		var err error
		if kind == "unixgram" {
			c, err = net.ListenUnixgram(kind, &net.UnixAddr{Name: path, Net: kind})
		} else {
			c, err = net.ListenUnix(kind, &net.UnixAddr{Name: path, Net: kind})
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	stream, datagram, packets := filepath.Join(dir, "a b"), filepath.Join(dir, "d"), filepath.Join(dir, "p")
	listen("unix", stream)
	listen("unixgram", datagram)
	listen("unixpacket", packets)
	listen("unix", filepath.Join(own, "mine"))
	listen("unix", own+"-beside")
	bound := filepath.Join(dir, "client")
	c, err := net.DialUnix("unix", &net.UnixAddr{Name: bound, Net: "unix"}, &net.UnixAddr{Name: stream, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	found := slices.DeleteFunc(services([]string{own}), func(path string) bool {
		return !strings.HasPrefix(path, dir) && !strings.HasPrefix(path, own)
	})
	slices.Sort(found)
	want := []string{stream, datagram, packets, own + "-beside"}
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}

// What ends with a workspace is what runs in it or below, and nothing else.
func TestReleaseEndsItsOwn(t *testing.T) {
	r := &Runner{Confine: &Confinement{Way: confine.Full}}
	fill := func() {
		r.places = map[placeKey]*place{}
		for _, dir := range []string{"/w/a", "/w/a/b", "/w/ab", "/w"} {
			r.places[placeKey{workspace: dir}] = &place{}
			r.places[placeKey{workspace: dir, checks: true, dirs: "/x"}] = &place{}
			if err := r.Mount(centurion.Layers{Workspace: dir}); err != nil {
				t.Fatal(err)
			}
		}
	}
	left := func() (dirs, mounted []string) {
		for key := range r.places {
			dirs = append(dirs, key.workspace)
		}
		for dir := range r.layers.mounts {
			mounted = append(mounted, dir)
		}
		slices.Sort(dirs)
		slices.Sort(mounted)
		return dirs, mounted
	}
	fill()
	ended := r.places[placeKey{workspace: "/w/a"}]
	if err := r.Release("/w/a"); err != nil {
		t.Fatal(err)
	}
	if dirs, mounted := left(); !reflect.DeepEqual(dirs, []string{"/w", "/w", "/w/ab", "/w/ab"}) || !reflect.DeepEqual(mounted, []string{"/w", "/w/a/b", "/w/ab"}) {
		t.Errorf("left are %q and %q", dirs, mounted)
	}
	if ended.once.Do(func() { t.Error("what has ended may be opened again") }); ended.err != errHelperGone {
		t.Errorf("it ended for %v", ended.err)
	}
	fill()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if dirs, _ := left(); len(dirs) > 0 {
		t.Errorf("after the end: %q", dirs)
	}
}

// TRIAL R11: whatever a command left behind ends with its workspace.
func TestDaemonsEndWithTheWorkspace(t *testing.T) {
	nap := strconv.Itoa(100_000 + os.Getpid()) // another run of these tests has its own
	for _, script := range []string{
		`setsid sh -c 'sleep ` + nap + `' >/dev/null 2>&1 &`,
		`(setsid sh -c 'sleep ` + nap + ` & disown' >/dev/null 2>&1 &)`,
		`env -i setsid -f sleep ` + nap + ` >/dev/null 2>&1`,
		`nohup sleep ` + nap + ` >/dev/null 2>&1 &`,
	} {
		for _, way := range ways {
			s := newScene(t, way)
			if res := s.run(t, centurion.Command{Script: script}); res.ExitCode != 0 {
				t.Errorf("%s, %s: exit %d, %s", way, script, res.ExitCode, res.Output)
			}
			if err := s.r.Release(s.project); err != nil {
				t.Error(err)
			}
			if left := sleepers(t, nap); len(left) > 0 {
				t.Errorf("%s: %s left %v", way, script, left)
			}
		}
	}
}

// sleepers lists the processes that the daemons above are.
func sleepers(t *testing.T, nap string) (pids []string) {
	names, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if b, _ := os.ReadFile("/proc/" + name + "/cmdline"); strings.Contains(string(b), "sleep\x00"+nap) {
			pids = append(pids, name)
		}
	}
	return pids
}

// Where nothing can be lent, nothing is, and that is no error.
func TestNothingIsLentWithoutNamespaces(t *testing.T) {
	for _, how := range []*Confinement{nil, {Way: confine.None}, {Way: confine.Files, Dir: t.TempDir()}} {
		r := &Runner{Confine: how}
		back, err := r.Lend(centurion.Command{Dir: "/no/such"}, "/no/such/dir")
		if err != nil || len(r.places) > 0 {
			t.Fatalf("%+v: %v", how, err)
		}
		back()
		if err := r.Mount(centurion.Layers{Workspace: "/w"}); centurion.KindOf(err) != centurion.KindNotFound || len(r.layers.mounts) > 0 {
			t.Errorf("%+v: mounted, %v", how, err)
		}
	}
}
