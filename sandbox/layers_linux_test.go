package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"centurion"
	"centurion/sandbox/confine"
)

// layers makes a workspace of the scene's project: two layers below, and a git directory that is shown in it.
func (s *scene) layers(t *testing.T) centurion.Layers {
	t.Helper()
	base := filepath.Join(s.state, "layers, and: more")
	for name, text := range map[string]string{"lower/main.go": "package base\n", "lower/d/old.go": "old\n", "lower/.git/": "", "lower/.opencode/": "", "delta/d/new.go": "new\n", "git/HEAD": "ref: x\n", "upper/": "", "work/": ""} {
		path := base + "/" + name
		if err := os.MkdirAll(filepath.Dir(path+"x"), 0o755); err != nil {
			t.Fatal(err)
		}
		if name[len(name)-1] != '/' {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Cleanup(func() {
		if err := errors.Join(s.r.Close(), RemovePlaces(base)); err != nil {
			t.Error(err)
		}
	})
	if err := os.Mkdir(filepath.Join(s.project, ".opencode"), 0o755); err != nil {
		t.Fatal(err)
	}
	return centurion.Layers{Workspace: filepath.Join(s.state, "w1"), At: s.project, Lower: []string{filepath.Join(base, "delta"), filepath.Join(base, "lower")},
		Upper: filepath.Join(base, "upper"), Work: filepath.Join(base, "work"),
		Binds: []centurion.Bind{{From: filepath.Join(base, "git"), To: filepath.Join(s.project, ".git"), Write: true},
			{From: filepath.Join(s.project, ".opencode"), To: filepath.Join(s.project, ".opencode")}}}
}

func (s *scene) runIn(t *testing.T, l centurion.Layers, script string) centurion.CommandResult {
	t.Helper()
	res, err := s.r.Run(t.Context(), centurion.Command{Script: script, Dir: l.At, Workspace: l.Workspace})
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return res
}

// Commands see layers at the project's own path, and change nothing but the upper one.
func TestLayers(t *testing.T) {
	s := newScene(t, confine.Full)
	l := s.layers(t)
	if err := s.r.Mount(l); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ script, output string }{
		{"pwd; cat main.go d/old.go d/new.go; cat .git/HEAD", s.project + "\npackage base\nold\nnew\nref: x\n"},
		{"echo mine > main.go && rm d/old.go && echo z > .git/index && ls d", "new.go\n"},
		{"(echo x > .opencode/todo.md) 2>/dev/null || echo refused", "refused\n"},
		{"ls \"$STATE\" 2>/dev/null | wc -l", "0\n"},
	} {
		if res := s.runIn(t, l, test.script); res.Output != test.output {
			t.Errorf("%s: exit %d, %q, want %q", test.script, res.ExitCode, res.Output, test.output)
		}
	}
	for path, want := range map[string]string{filepath.Join(s.project, "main.go"): "package main\n", filepath.Join(l.Lower[1], "main.go"): "package base\n",
		filepath.Join(l.Lower[1], "d/old.go"): "old\n", filepath.Join(l.Upper, "main.go"): "mine\n", filepath.Join(l.Binds[0].From, "index"): "z\n"} {
		if b, err := os.ReadFile(path); err != nil || string(b) != want {
			t.Errorf("%s is %q, %v; want %q", path, b, err, want)
		}
	}
}

// A command that begins below the directory of its workspace is told so, and its workspace is the same.
func TestWorkdir(t *testing.T) {
	layered, plain := newScene(t, confine.Full), newScene(t, confine.Files)
	l := layered.layers(t)
	if err := layered.r.Mount(l); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		r       *Runner
		command centurion.Command
	}{
		"layers":     {layered.r, centurion.Command{Dir: l.At, Workspace: l.Workspace, Workdir: "d"}},
		"files":      {plain.r, centurion.Command{Dir: plain.project, Workdir: "d/e/.."}},
		"unconfined": {&Runner{}, centurion.Command{Dir: plain.project, Workdir: "d"}},
	} {
		if err := os.MkdirAll(filepath.Join(plain.project, "d/e"), 0o755); err != nil {
			t.Fatal(err)
		}
		c.command.Script = `pwd; echo "$PWD"; echo x > ../above; cat ../above`
		dir := filepath.Join(c.command.Dir, "d")
		if res, err := c.r.Run(t.Context(), c.command); err != nil || res.Output != dir+"\n"+dir+"\nx\n" {
			t.Errorf("%s: %q, %v", name, res.Output, err)
		}
		c.command.Workdir = "nowhere"
		if res, err := c.r.Run(t.Context(), c.command); err == nil {
			t.Errorf("%s: %+v", name, res)
		}
	}
}

// A check runs in the helper of the other commands: two over one upper layer would not see each other's files.
func TestChecksShareLayers(t *testing.T) {
	s := newScene(t, confine.Full)
	l := s.layers(t)
	if err := s.r.Mount(l); err != nil {
		t.Fatal(err)
	}
	s.runIn(t, l, "echo mine > main.go")
	res, err := s.r.Run(t.Context(), centurion.Command{Script: "cat main.go", Dir: l.At, Workspace: l.Workspace, Check: true})
	if err != nil || res.Output != "mine\n" || len(s.r.places) != 1 {
		t.Errorf("a check sees %q in %d places, %v", res.Output, len(s.r.places), err)
	}
}

// The host reaches the files by a path of its own, and gets a new one when the helper has ended; the upper layer stays.
func TestFilesOfLayers(t *testing.T) {
	s := newScene(t, confine.Full)
	l := s.layers(t)
	if err := s.r.Mount(l); err != nil {
		t.Fatal(err)
	}
	open := func() *os.Root {
		t.Helper()
		dir, err := s.r.Files(l.Workspace)
		if err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { root.Close() })
		return root
	}
	root := open()
	if err := root.WriteFile("main.go", []byte("host\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if res := s.runIn(t, l, "cat main.go"); res.Output != "host\n" {
		t.Errorf("a command sees %q", res.Output)
	}
	key := placeKey{workspace: l.Workspace}
	if err := s.r.places[key].close(); err != nil {
		t.Fatal(err)
	}
	if b, err := open().ReadFile("main.go"); err != nil || string(b) != "host\n" {
		t.Errorf("after the helper's end: %q, %v", b, err)
	}
	if err := s.r.Release(l.Workspace); err != nil {
		t.Fatal(err)
	}
	if _, err := s.r.Files(l.Workspace); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("after its release: %v", err)
	}
}

// Whether layers can be mounted is decided by doing it, and leaves nothing.
func TestMountable(t *testing.T) {
	s := newScene(t, confine.Full)
	dir := filepath.Join(s.state, "checkouts")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.r.Mountable(dir); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if len(s.r.places) > 0 || len(s.r.layers.mounts) > 0 {
		t.Errorf("it is still mounted: %v, %v", s.r.places, s.r.layers.mounts)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.r.Mountable(dir); err != nil {
		t.Errorf("it is tried again: %v", err)
	}
	if err := (&Runner{}).Mountable(t.TempDir()); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("without confinement: %v", err)
	}
	if err := s.r.Mountable(filepath.Join(dir, "missing")); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("a directory that does not exist: %v", err)
	}
	for _, way := range []confine.Way{confine.Files, confine.None} {
		r := &Runner{Confine: &Confinement{Way: way, Dir: t.TempDir()}}
		if err := r.Mountable(dir); centurion.KindOf(err) != centurion.KindNotFound {
			t.Errorf("%s: %v", way, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
