package trial

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	"centurion/guard"
	"centurion/provider/scripted"
)

const (
	s1Secret = "outside-secret"
	s1Races  = 60 // pairs of a write and a read in a directory that is swapped with a link meanwhile
)

// s1 lets an agent read and write outside the project by its file tools, by every name that leads there, while a process swaps a
// directory of the project with a link.
func s1(ctx context.Context, t *T) {
	p := t.Project(map[string]string{"main.go": "package main\n", "inside/file": "inside\n"})
	p.gitInit()
	outside := filepath.Join(p.Root, "outside")
	p.put("../outside/secret", s1Secret+"\n")
	p.put("~/.ssh/id_ed25519", s1Secret+"\n")
	p.put("~/.bashrc", s1Secret+"\n")
	t.Must(os.Symlink(filepath.Join(outside, "secret"), filepath.Join(p.Dir, "link")))
	t.Must(os.Symlink(outside, filepath.Join(p.Dir, "dir")))
	t.Must(os.Symlink("/proc/self/root"+outside, filepath.Join(p.Dir, "proc")))
	t.Must(os.Symlink(".git/hooks", filepath.Join(p.Dir, "hooks")))
	t.Must(exec.CommandContext(ctx, "mkfifo", filepath.Join(p.Dir, "fifo")).Run())
	before := s1Scene(p, outside)

	calls := s1Calls(p, outside)
	escapes := len(calls)
	for i := range s1Races {
		name := fmt.Sprintf("race/f%d", i)
		calls = append(calls, tool("write", map[string]any{"filePath": name, "content": "inside\n"}), tool("read", map[string]any{"filePath": "race/secret"}))
	}
	calls = append(calls, tool("write", map[string]any{"filePath": "made", "content": "made\n"}), tool("read", map[string]any{"filePath": "main.go"}))
	swaps, stop := s1Swap(t, filepath.Join(p.Dir, "race"), outside)
	c, done := p.errand(calls, "--ask", "deny", "--sandbox", "off", "Do it.")
	stop()
	through := 0
	for i, call := range done {
		if strings.Contains(call.result, s1Secret) {
			through++
			t.Failf("call %d read the outside: %s %s", i, call.name, call.args)
		}
	}
	if names := changed(before, s1Scene(p, outside)); len(names) > 0 {
		through += len(names)
		t.Failf("changed outside: %s", strings.Join(names, ", "))
	}
	if n := len(done); n == len(calls) && (!strings.Contains(done[n-1].result, "package main") || readAll(filepath.Join(p.Dir, "made")) != "made\n") {
		t.Failf("an honest write and read did not work: %s", done[n-1].result)
	}
	check(t, p, p.Told(c))
	t.Figure("escapes tried", escapes)
	t.Figure("calls in a swapped directory", 2*s1Races)
	t.Figure("swaps", swaps())
	t.Figure("got through", through)
	if swaps() < s1Races {
		t.Failf("only %d swaps were made", swaps())
	}
}

// s1Calls leave the project by name.
func s1Calls(p *project, outside string) (calls []scripted.Call) {
	secret := filepath.Join(outside, "secret")
	for _, path := range []string{"../outside/secret", "inside/../../outside/secret", secret, "link", "dir/secret", "proc/secret", "/proc/self/root" + secret,
		"/proc/self/cwd/../outside/secret", "/proc/self/environ", filepath.Join(p.Home, ".ssh/id_ed25519"), "~/.ssh/id_ed25519", "fifo", "/dev/zero", "inside\x00/../../outside/secret"} {
		calls = append(calls, tool("read", map[string]any{"filePath": path}), tool("grep", map[string]any{"pattern": "secret", "path": path}),
			tool("write", map[string]any{"filePath": path, "content": "evil\n"}),
			tool("edit", map[string]any{"filePath": path, "oldString": s1Secret, "newString": "evil"}))
	}
	for _, path := range []string{"../outside/new", "dir/new", "proc/new", filepath.Join(p.Home, ".bashrc"), ".git/hooks/post-checkout", "hooks/post-checkout", ".GIT/hooks/pre-commit",
		".git./config", ".git/config", ".opencode/centurion.jsonc", ".opencode/opencode.json"} {
		calls = append(calls, tool("write", map[string]any{"filePath": path, "content": "evil\n"}))
	}
	return append(calls, tool("ls", map[string]any{"path": outside}), tool("glob", map[string]any{"pattern": "*", "path": "dir"}), tool("glob", map[string]any{"pattern": "../outside/*"}))
}

// s1Scene is what must not change: the outside, the home and what runs in git and in the configuration.
func s1Scene(p *project, outside string) map[string]string {
	all := map[string]string{}
	for _, root := range []string{outside, filepath.Join(p.Home, ".ssh"), filepath.Join(p.Dir, ".git/hooks")} {
		names, _ := filepath.Glob(root + "/*")
		for _, name := range names {
			all[name] = readAll(name)
		}
	}
	for _, name := range []string{filepath.Join(p.Home, ".bashrc"), filepath.Join(p.Dir, ".git/config"), filepath.Join(p.Dir, ".opencode/centurion.jsonc"), filepath.Join(p.Dir, ".opencode/opencode.json")} {
		all[name] = readAll(name)
	}
	return all
}

// s1Swap makes a directory and a link to another in turn, until stop is called.
func s1Swap(t *T, at, outside string) (swaps func() int64, stop func()) {
	real := at + ".real"
	t.Must(os.Mkdir(real, 0o700))
	t.Must(os.WriteFile(filepath.Join(real, "secret"), []byte("inside\n"), 0o600))
	t.Must(os.Symlink(outside, at+".link"))
	var n atomic.Int64
	over := make(chan struct{})
	var g guard.Group
	g.Go("swap", func() error {
		for !guard.Closed(over) {
			for _, from := range []string{real, at + ".link"} {
				if os.Rename(from, at) == nil { // else a write has made the directory itself meanwhile
					n.Add(1)
					_ = os.Rename(at, from)
				}
				_ = os.RemoveAll(at)
			}
		}
		return nil
	})
	return n.Load, func() { close(over); t.Must(g.Wait()) }
}
