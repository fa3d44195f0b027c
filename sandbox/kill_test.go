//go:build linux

package sandbox

import (
	"crypto/rand"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/sandbox/confine"
)

// Killed commands are gone at once, whatever they do, also those that have left their group, and nothing begins any more.
func TestKill(t *testing.T) {
	mark := "kill-test-" + rand.Text() // two of these tests may run at once
	r := &Runner{Slots: len(hostile), Grace: time.Hour, Mark: mark}
	type result struct {
		name string
		res  centurion.CommandResult
		err  error
	}
	results := make(chan result, len(hostile))
	var g guard.Group
	var dirs []string
	for name, script := range hostile {
		dir := t.TempDir()
		dirs = append(dirs, dir)
		g.Go(name, func() error {
			res, err := r.Run(t.Context(), centurion.Command{Script: script, Dir: dir, Timeout: time.Minute})
			results <- result{name, res, err}
			return nil
		})
	}
	for _, dir := range dirs {
		for start := time.Now(); time.Since(start) < 20*time.Second; time.Sleep(10 * time.Millisecond) { // other processes write it
			if b, err := os.ReadFile(filepath.Join(dir, "pid")); err == nil && len(b) > 0 {
				break
			}
		}
	}
	r.Kill()
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for range hostile {
		if x := <-results; x.err != nil || x.res.TimedOut || x.res.ExitCode != -1 {
			t.Errorf("%s: %+v, %v", x.name, x.res, x.err)
		}
	}
	if left, err := scan(t.Context(), hostVariable+"="+mark); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
		_, _ = Sweep(t.Context(), mark)
	}
	if len(r.running) > 0 {
		t.Errorf("commands that have ended are kept: %d", len(r.running))
	}
	if res, err := r.Run(t.Context(), centurion.Command{Script: "true", Dir: dirs[0]}); centurion.KindOf(err) != centurion.KindInterrupted {
		t.Errorf("a command begins afterwards: %+v, %v", res, err)
	}
}

// A command that begins while Kill looks ends like those that Kill found, also what has left its group.
func TestKillOfBeginning(t *testing.T) {
	mark := "kill-test-" + rand.Text()
	for range 100 {
		dir := t.TempDir()
		r := &Runner{Grace: time.Hour, Mark: mark}
		var res centurion.CommandResult
		var err error
		var g guard.Group
		g.Go("run", func() error {
			res, err = r.Run(t.Context(), centurion.Command{Script: "echo >begun; setsid sleep 60 & sleep 60", Dir: dir, Timeout: time.Minute})
			return nil
		})
		for start := time.Now(); time.Since(start) < 20*time.Second; { // without a pause: it is the first moment that counts
			if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
				break
			}
		}
		r.Kill()
		_ = g.Wait()
		if err != nil || res.ExitCode != -1 || len(r.running) > 0 {
			t.Fatalf("%+v, %v, kept: %d", res, err, len(r.running))
		}
		if left, err := scan(t.Context(), hostVariable+"="+mark); err != nil || len(left) > 0 {
			_, _ = Sweep(t.Context(), mark)
			t.Fatalf("left behind: %v, %v", left, err)
		}
	}
}

// starts is a helper whose commands begin as a test says.
type starts struct {
	hostConn
	begin func(m toHelper)
}

func (s starts) WriteMsgUnix(b, _ []byte, _ *net.UnixAddr) (int, int, error) {
	var m toHelper
	err := json.Unmarshal(b, &m)
	s.begin(m)
	return len(b), 0, err
}

// Kill comes after the look whether it was called, and before the command is known: what has left its group by then ends, too.
func TestKillDuringAStart(t *testing.T) {
	dir, id := t.TempDir(), rand.Text()
	r := &Runner{Confine: &Confinement{Way: confine.Files}}
	k := &keeper{way: confine.Files, started: map[string]*kept{}}
	var shell, stray *exec.Cmd
	begin := func(env []string) *exec.Cmd {
		cmd := &exec.Cmd{Path: "/bin/sleep", Args: []string{"sleep", "60"}, Env: env, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		return cmd
	}
	k.conn = starts{begin: func(m toHelper) {
		shell, stray = begin(nil), begin(m.Env)
		for end := time.Now().Add(20 * time.Second); !marked(stray.Process.Pid, commandVariable+"="+id) && time.Now().Before(end); { // it has no environment while it begins
			runtime.Gosched()
		}
		r.Kill()
		c := k.command(m.ID)
		c.shell = shell.Process.Pid
		close(c.begun)
	}}
	p := &place{confined: confined{keeper: k}}
	p.once.Do(func() {}) // it is open
	r.places, r.placed = map[placeKey]*place{{workspace: dir}: p}, map[string]*place{}
	if _, err := r.start("/bin/sh", centurion.Command{Script: "x", Dir: dir}, id, streams{}); err != nil {
		t.Fatal(err)
	}
	_ = shell.Wait() // it was killed
	if running(stray.Process.Pid) {
		t.Error("what the command has left behind goes on")
	}
}
