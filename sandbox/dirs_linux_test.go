package sandbox

import (
	"context"
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

// In a workspace of layers there is one helper. It is replaced when other directories are granted, never while a command has them, and what
// commands have written is there in each.
func TestGrantedInLayers(t *testing.T) {
	s := newScene(t, confine.Full)
	l := s.layers(t)
	if err := s.r.Mount(l); err != nil {
		t.Fatal(err)
	}
	login := filepath.Join(s.home, ".claude")
	if err := os.Mkdir(login, 0o700); err != nil {
		t.Fatal(err)
	}
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
	if res := s.runIn(t, l, `cat two.txt three.txt; cat "`+login+`/x" 2>/dev/null`); res.Output != "two\nthree\n" {
		t.Errorf("a command after it: %q", res.Output)
	}
}
