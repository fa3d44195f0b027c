package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// installed is where Bun is put for tests, with the program's own Install; it stays there. Without npm the tests with Bun are skipped,
// but not where everything has to pass.
func installed(t testing.TB) (dir string, bun Runtime) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(cache, "centurion-test", "plugins")
	if bun, err = Installed(dir); err == nil {
		return dir, bun
	}
	for range 3 {
		if bun, err = Install(t.Context(), dir, nil, npm); err == nil {
			return dir, bun
		}
	}
	if os.Getenv("CI") == "" {
		t.Skipf("Bun cannot be installed: %v", err)
	}
	t.Fatalf("Bun cannot be installed: %v", err)
	return "", Runtime{}
}

func npm(ctx context.Context, dir string, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// child is a process over pipes.
type child struct {
	io.Reader
	io.WriteCloser
	cmd *exec.Cmd
	out io.Closer
}

type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (c *child) Close() error { return errors.Join(c.WriteCloser.Close(), c.out.Close()) }
func (c *child) Wait() error  { return c.cmd.Wait() }
func (c *child) Kill()        { _ = c.cmd.Process.Kill() }

// starter starts processes for tests; kill ends the last one.
type starter struct {
	mu     sync.Mutex
	starts []Start
	all    []*child
	stderr log
}

func (s *starter) start(_ context.Context, what Start) (Process, error) {
	cmd := exec.Command(what.Command[0], what.Command[1:]...)
	in, out := must2(os.Pipe())
	back, answers := must2(os.Pipe())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, answers, &s.stderr
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir()}, what.Env...)
	cmd.WaitDelay = 100 * time.Millisecond
	err := cmd.Start()
	in.Close()
	answers.Close()
	if err != nil {
		return nil, errors.Join(err, out.Close(), back.Close())
	}
	c := &child{Reader: back, WriteCloser: out, cmd: cmd, out: back}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts, s.all = append(s.starts, what), append(s.all, c)
	return c, nil
}

func must2(r, w *os.File, err error) (*os.File, *os.File) {
	if err != nil {
		panic(err)
	}
	return r, w
}

// open starts plugins of testdata under Bun.
func open(t testing.TB, o Options, files ...string) (*Host, *starter) {
	t.Helper()
	var sources []Source
	for _, name := range files {
		sources = append(sources, file(t, name))
	}
	return openSources(t, o, sources...)
}

func file(t testing.TB, name string) Source {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	entry, _ := json.Marshal("file://" + filepath.ToSlash(path))
	s := Find(entry, "", "")
	if strings.HasPrefix(name, "tools/") {
		s.Kind = Tool
	}
	return s
}

func openSources(t testing.TB, o Options, sources ...Source) (*Host, *starter) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the test's pipes are not those of Windows")
	}
	dir, bun := installed(t)
	s := &starter{}
	if o.Modules != "none" {
		o.Modules = dir
	}
	o.Start, o.Bun, o.State, o.Directory = s.start, bun.Path, t.TempDir(), t.TempDir()
	h := Open(sources, o)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("standard error:\n%s", s.stderr.String())
		}
	})
	if err := h.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h, s
}

// of returns the status of a plugin.
func of(t testing.TB, h *Host, name string) Status {
	t.Helper()
	for _, s := range h.Status() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no plugin %s in %+v", name, h.Status())
	return Status{}
}

// until waits for a state of a plugin.
func until(t testing.TB, h *Host, name string, holds func(Status) bool) Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var last Status
	for ctx.Err() == nil {
		if last = of(t, h, name); holds(last) {
			return last
		}
		h.mu.Lock()
		changed := h.changed
		h.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond): // figures change without a signal
		}
	}
	t.Fatalf("%s stays %+v", name, last)
	return last
}

func call(t testing.TB, h *Host, tool, args string) (Result, error) {
	t.Helper()
	return h.Call(t.Context(), Call{Tool: tool, Session: "ses_1", CallID: "c1", Agent: "worker", Directory: "/checkout", Worktree: "/checkout"}, json.RawMessage(args), nil)
}
