package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"centurion"
	"centurion/guard"
	"centurion/sandbox/confine"
)

// Issue "Plugin host", point 7: a command may write in directories that are granted to it and hidden from all others; what is not granted
// stays hidden.
func TestGrantedDirectories(t *testing.T) {
	inWays(t, func(t *testing.T, s *scene, _ confine.Way) {
		login := filepath.Join(s.home, ".claude")
		if err := os.Mkdir(login, 0o700); err != nil {
			t.Fatal(err)
		}
		const script = `echo token > "$HOME/.claude/x" && cat "$HOME/.claude/x"; cat "$HOME/.ssh/id_ed25519" "$STATE/token"; echo made > made.txt`
		if res := s.run(t, centurion.Command{Script: script + " 2>/dev/null", Dirs: []string{login}, Errors: io.Discard}); res.Output != "token\n" {
			t.Errorf("granted: %q", res.Output)
		}
		if res := s.run(t, centurion.Command{Script: `cat "$HOME/.claude/x" made.txt; echo y > "$HOME/.claude/y"`, Errors: io.Discard}); res.Output != "made\n" {
			t.Errorf("another command: %q", res.Output)
		}
		if names, err := os.ReadDir(login); err != nil || len(names) != 1 {
			t.Errorf("%v, %v", names, err)
		}
	})
}

// loginScene has a workspace of layers, and a directory that is hidden from commands without it.
func loginScene(t *testing.T) (s *scene, l centurion.Layers, login string) {
	t.Helper()
	s = newScene(t, confine.Full)
	l, login = s.layers(t), filepath.Join(s.home, ".claude")
	if err := errors.Join(s.r.Mount(l), os.Mkdir(login, 0o700)); err != nil {
		t.Fatal(err)
	}
	return s, l, login
}

// In a workspace of layers there is one helper. It is replaced when other directories are granted, never while a command has them, and what
// commands have written is there in each.
func TestGrantedInLayers(t *testing.T) {
	s, l, login := loginScene(t)
	s.runIn(t, l, "echo one > one.txt")
	c := centurion.Command{Script: `echo token > "` + login + `/x"; echo two > two.txt; cat one.txt; read line; cat three.txt`, Dir: l.At, Workspace: l.Workspace, Dirs: []string{login}}
	var stdin *io.PipeWriter
	c.Input, stdin = io.Pipe()
	out, written := io.Pipe()
	begun := make(chan struct{})
	var group guard.Group
	group.Go("agent", func() error {
		_, err := s.r.RunBackground(context.Background(), c, written, func(int) { close(begun) })
		_ = written.Close()
		return err
	})
	<-begun
	first := make([]byte, 4)
	if _, err := io.ReadFull(out, first); err != nil || string(first) != "one\n" {
		t.Errorf("it reads %q, %v", first, err)
	}
	// Commands that come meanwhile share its helper, and the files are looked at there.
	if res := s.runIn(t, l, "cat two.txt; echo three > three.txt"); res.Output != "two\n" {
		t.Errorf("a command beside it: %q", res.Output)
	}
	files, err := s.r.Files(l.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(files, "two.txt")); err != nil || string(b) != "two\n" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := stdin.Write([]byte("go on\n")); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(out); err != nil || string(rest) != "three\n" {
		t.Errorf("it goes on with %q, %v", rest, err)
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	if again, err := s.r.Files(l.Workspace); err != nil || again != files {
		t.Errorf("a look at the files has replaced the helper: %s, then %s, %v", files, again, err)
	}
	if res := s.runIn(t, l, `cat two.txt three.txt; cat "`+login+`/x" 2>/dev/null`); res.Output != "two\nthree\n" {
		t.Errorf("a command after it: %q", res.Output)
	}
}

// A command with directories of its own ends no other one of its workspace, whether they start together or the other is running.
func TestGrantedBesideOthers(t *testing.T) {
	s, l, login := loginScene(t)
	plain := centurion.Command{Script: "echo ok", Dir: l.At, Workspace: l.Workspace}
	granted := plain
	granted.Dirs = []string{login}
	run := func(c centurion.Command) error {
		res, err := s.r.Run(t.Context(), c)
		if err == nil && (res.ExitCode != 0 || res.Output != "ok\n") {
			err = fmt.Errorf("exit %d, %q", res.ExitCode, res.Output)
		}
		return err
	}
	for range 10 {
		var both guard.Group
		both.Go("granted", func() error { return run(granted) })
		both.Go("plain", func() error { return run(plain) })
		if err := both.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	running := plain
	running.Script = "read line; echo ok"
	stdin, told := io.Pipe()
	running.Input = stdin
	begun := make(chan struct{})
	running.Begun = func() { close(begun) }
	var group guard.Group
	group.Go("running", func() error { return run(running) })
	<-begun
	if err := run(granted); err != nil {
		t.Error(err)
	}
	if _, err := io.WriteString(told, "go on\n"); err != nil {
		t.Error(err)
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}
