//go:build unix

package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/guard"
)

// firstCall is closed by the first call of a function that takes a process number.
func firstCall() (<-chan struct{}, func(int)) {
	c := make(chan struct{})
	return c, func(int) { close(c) }
}

// ORCH-52: it goes on beside others, however few slots there are, and both get what a command gets.
func TestRunBackground(t *testing.T) {
	r := &Runner{Slots: 1, Mark: "mark1", Grace: 100 * time.Millisecond}
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	dir := t.TempDir()
	var group guard.Group
	started := [2]<-chan struct{}{}
	spools := [2]*Spool{}
	for i := range 2 {
		s, begun := newSpool(t, 0), func(int) {}
		started[i], begun = firstCall()
		spools[i] = s
		group.Go("background", func() error {
			_, err := r.RunBackground(ctx, centurion.Command{Dir: dir, Timeout: time.Minute,
				Script: fmt.Sprintf(`echo out; echo err >&2; env; touch ready%d; exec sleep 50`, i)}, s, begun)
			if centurion.KindOf(err) != centurion.KindCancelled {
				t.Errorf("stopped: %v", err)
			}
			return nil
		})
	}
	for i := range 2 {
		<-started[i]
	}
	res := run(t, r, "cd "+dir+`; until test -e ready0 -a -e ready1; do sleep 0.01; done; echo both`)
	if res.Output != "both\n" || res.TimedOut {
		t.Errorf("got %+v", res)
	}
	stop(centurion.ErrCancelled)
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	for _, s := range spools {
		text, _ := s.Since(0, 100_000)
		for _, want := range []string{"out\nerr\n", "CENTURION_HOST=mark1\n", "TERM=dumb\n", "PWD=" + dir + "\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in %s", want, text)
			}
		}
	}
}

func TestRunBackgroundEnds(t *testing.T) {
	tests := []struct {
		script string
		code   int
		output string
	}{
		{"echo hi", 0, "hi\n"},
		{"exit 3", 3, ""},
		{"kill -9 $$", -1, ""},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		pid := 0
		res, err := (&Runner{}).RunBackground(t.Context(), centurion.Command{Script: tt.script, Dir: t.TempDir()}, &out, func(n int) { pid = n })
		if err != nil || res.ExitCode != tt.code || out.String() != tt.output || res.Output != "" || res.Bytes != int64(out.Len()) || pid < 2 || res.Duration == 0 {
			t.Errorf("%s: %+v %q, process %d, %v", tt.script, res, out.String(), pid, err)
		}
	}
	never := func(int) { t.Error("it has begun") }
	if _, err := (&Runner{}).RunBackground(t.Context(), centurion.Command{Script: "true", Dir: "/no/such/place"}, &bytes.Buffer{}, never); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("no directory: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(centurion.ErrCancelled)
	if _, err := (&Runner{}).RunBackground(ctx, centurion.Command{Script: "true", Dir: t.TempDir()}, &bytes.Buffer{}, never); centurion.KindOf(err) != centurion.KindCancelled {
		t.Errorf("cancelled before: %v", err)
	}
}

// ORCH-52, TRIAL R10: at its time limit, and when it is stopped, the whole group ends, also what ignores SIGTERM.
func TestBackgroundGroupEnds(t *testing.T) {
	for _, how := range []string{"timeout", "stopped"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			pid := filepath.Join(dir, "pid")
			script := `sh -c 'trap "" TERM; echo $$ > pid.new; mv pid.new pid; while :; do sleep 1; done' & trap "" TERM; wait; wait`
			limit := 500 * time.Millisecond
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			var group guard.Group
			if how == "stopped" {
				limit = time.Minute
				group.Go("stop", func() error {
					for {
						if _, err := os.Stat(pid); err == nil {
							stop(centurion.ErrCancelled)
							return nil
						}
						runtime.Gosched()
					}
				})
			}
			r := &Runner{Grace: 50 * time.Millisecond}
			res, err := r.RunBackground(ctx, centurion.Command{Script: script, Dir: dir, Timeout: limit}, &bytes.Buffer{}, nil)
			if werr := group.Wait(); werr != nil {
				t.Error(werr)
			}
			if how == "stopped" != (centurion.KindOf(err) == centurion.KindCancelled) || res.TimedOut != (how == "timeout") || res.ExitCode != -1 {
				t.Errorf("got %+v, %v", res, err)
			}
			if !gone(t, pid, time.Second) {
				t.Error("a process was left behind")
			}
		})
	}
}

// broken counts what it refuses.
type broken struct{ writes int }

func (b *broken) Write([]byte) (int, error) { b.writes++; return 0, errors.New("no space") }

// A command whose output nobody can take does not wait for a reader.
func TestBackgroundOutputIsRead(t *testing.T) {
	var out broken
	res, err := (&Runner{}).RunBackground(t.Context(), centurion.Command{Script: "head -c 1000000 /dev/zero; exit 7", Dir: t.TempDir(), Timeout: 20 * time.Second}, &out, nil)
	if err != nil || res.ExitCode != 7 || res.Bytes != 1_000_000 || out.writes != 1 {
		t.Errorf("got %+v, %v after %d writes", res, err, out.writes)
	}
}

// meter hands on what a command prints and cuts it off after some of it. It measures what taking that in allocates, and only
// that: ending a command reads the list of processes, which is as long as the machine has many.
type meter struct {
	out           io.Writer
	left          int // bytes until cut is called
	cut           func()
	before, after runtime.MemStats
}

func (m *meter) Write(b []byte) (int, error) {
	if m.before.TotalAlloc == 0 {
		runtime.ReadMemStats(&m.before)
	}
	n, err := m.out.Write(b)
	if m.left > 0 && m.left <= n {
		runtime.ReadMemStats(&m.after)
		m.cut()
	}
	m.left -= n
	return n, err
}

// ORCH-52: the output of a command that prints without end fills neither the disk nor the memory.
func TestBackgroundOutputIsCapped(t *testing.T) {
	const much = 16 << 20
	s := newSpool(t, 64<<10)
	ctx, cancel := context.WithCancel(t.Context())
	m := &meter{out: s, left: much, cut: cancel}
	res, err := (&Runner{Grace: 50 * time.Millisecond}).RunBackground(ctx, centurion.Command{Script: "echo first; yes", Dir: t.TempDir(), Timeout: time.Hour}, m, nil)
	if centurion.KindOf(err) != centurion.KindCancelled || res.Bytes < much || res.Bytes != s.Total() {
		t.Errorf("got %d bytes, %d in the spool, %v", res.Bytes, s.Total(), err)
	}
	if info, err := s.file.Stat(); err != nil || info.Size() != 64<<10 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	if grown := m.after.TotalAlloc - m.before.TotalAlloc; grown > 64<<10 {
		t.Errorf("allocated %d bytes for %d bytes of output", grown, res.Bytes)
	}
	s.End()
	text, next := s.Since(0, 1000)
	if next != res.Bytes || !strings.HasPrefix(text, "first\ny\n") || !strings.Contains(text, "left out …\n") || !strings.Contains(text[len(text)-4:], "y\n") || len(text) > 1100 {
		t.Errorf("%q", text)
	}
}

// askCommand sends lines to a command that answers each, and ends it: by the end of its input or, if its script says never, of its context.
func askCommand(t *testing.T, r *Runner, c centurion.Command) {
	t.Helper()
	input, in := io.Pipe()
	out, output := io.Pipe()
	var errs bytes.Buffer
	c.Input, c.Errors, c.Timeout = input, &errs, centurion.NoTimeout
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	var group guard.Group
	group.Go("serve", func() error {
		_, err := r.RunBackground(ctx, c, output, nil)
		return errors.Join(err, output.Close())
	})
	lines := bufio.NewReader(out)
	for _, said := range []string{"one", "two"} {
		if _, err := io.WriteString(in, said+"\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := lines.ReadString('\n'); err != nil || line != "heard "+said+"\n" {
			t.Fatalf("%q %v", line, err)
		}
	}
	if strings.Contains(c.Script, "never") {
		stop(centurion.ErrCancelled)
	} else {
		_ = in.Close() // the command ends at the end of its input
	}
	if err := group.Wait(); (err != nil) != strings.Contains(c.Script, "never") {
		t.Error(err)
	}
	if errs.String() != "begun\n" {
		t.Errorf("its errors are %q", errs.String())
	}
	if _, err := io.WriteString(in, strings.Repeat("more\n", 100_000)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("its input is still open: %v", err)
	}
}

// A program that serves others through its standard streams has no time limit, and ends with its input or its context.
func TestInput(t *testing.T) {
	const answer = `echo begun >&2; while read -r line; do echo "heard $line"; done`
	askCommand(t, &Runner{MaxTimeout: 20 * time.Millisecond}, centurion.Command{Dir: t.TempDir(), Script: "sleep 0.1; " + answer})
	askCommand(t, &Runner{Grace: 20 * time.Millisecond}, centurion.Command{Dir: t.TempDir(), Script: answer + "; never() { sleep 100; }; never"})
}
