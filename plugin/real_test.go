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

	"centurion"
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
	cmd    *exec.Cmd
	out    io.Closer
	stderr *log
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
	o.Start, o.Bun, o.State, o.Modules, o.Directory = s.start, bun.Path, t.TempDir(), dir, t.TempDir()
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

// Tools with every sort of schema, and each hook.
func TestGoodPlugin(t *testing.T) {
	h, s := open(t, Options{}, "good.ts", "tools/weather.ts")
	if st := of(t, h, "good"); st.State != Ready || st.Init <= 0 || len(st.Hooks) != len(hooks) {
		t.Fatalf("%+v", st)
	}
	tools, err := h.Tools()
	if err != nil {
		t.Fatal(err)
	}
	schemas := map[string]string{}
	for _, tool := range tools {
		schemas[tool.Name] = string(tool.Schema)
	}
	for name, want := range map[string]string{
		"greet":         `{"type":"object","properties":{"name":{"description":"whom","type":"string","minLength":1},"times":{"default":1,"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991},"loud":{"type":"boolean"}},"required":["name"]}`,
		"plain":         `{"type":"object","properties":{"path":{"type":"string","description":"a file"},"depth":{"type":"integer"}},"required":["path"]}`,
		"whole":         `{"type":"object","properties":{"mode":{"enum":["a","b"]}},"required":["mode"]}`,
		"weather":       `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`,
		"weather_later": `{"type":"object","properties":{},"required":[]}`,
	} {
		if schemas[name] != want {
			t.Errorf("%s: %s", name, schemas[name])
		}
	}
	for _, c := range []struct{ tool, args, want, wrong string }{
		{"greet", `{"name":"Ada"}`, "Hello Ada in /checkout as worker", ""},
		{"greet", `{"name":"Ada","times":2,"loud":true,"more":1}`, "HELLO ADA IN /CHECKOUT AS WORKERHELLO ADA IN /CHECKOUT AS WORKER", ""},
		{"greet", `{"name":""}`, "", "name: "},
		{"greet", `{"times":"x"}`, "", "times: "},
		{"plain", `{"path":"x","depth":3}`, `{"path":"x","depth":3}`, ""},
		{"plain", `{"path":3}`, "", "path: expected string"},
		{"plain", `{"depth":1}`, "", "path: missing"},
		{"whole", `{"mode":"c"}`, "", "expected one of"},
		{"whole", `{"mode":"a"}`, "[the answer is empty]", ""},
		{"weather", `{"city":"Rome"}`, "sunny in Rome", ""},
		{"huge", `{}`, "[cut here: the answer has ", ""},
		{"throws", `{}`, "", "no luck"},
	} {
		r, err := call(t, h, c.tool, c.args)
		switch {
		case c.wrong == "" && (err != nil || !strings.Contains(r.Text, c.want)):
			t.Errorf("%s %s: %.300q, %v", c.tool, c.args, r.Text, err)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong) || centurion.KindOf(err) != centurion.KindUsage || errors.Is(err, ErrNotBegun) != (c.tool != "throws")):
			t.Errorf("%s %s: %v", c.tool, c.args, err)
		}
		if len(r.Text) > MaxText+200 {
			t.Errorf("%s: %d bytes", c.tool, len(r.Text))
		}
	}
	if r, err := call(t, h, "picture", `{}`); err != nil || len(r.Files) != 1 || r.Files[0].Mime != centurion.MimePNG || r.Title != "a dot" || string(r.Metadata) != `{"a":1,"b":2}` {
		t.Errorf("%+v, %v", r, err)
	}
	if out := s.stderr.String(); !strings.Contains(out, "[good] printed 1") || !strings.Contains(out, "[good] written") {
		t.Errorf("standard error: %q", out)
	}
}

func TestEachHook(t *testing.T) {
	h, _ := open(t, Options{}, "good.ts", "second.js")
	for _, hook := range hooks {
		if hook == "event" || hook == "dispose" {
			continue
		}
		out := map[string]any{"list": []string{}}
		ran, err := h.Run(t.Context(), hook, map[string]string{"sessionID": "s"}, &out)
		if err != nil || len(ran) == 0 || ran[0].Plugin != "good" || len(ran[0].Changed) != 1 || ran[0].Changed[0] != "list" || ran[0].Took <= 0 {
			t.Errorf("%s: %+v, %v", hook, ran, err)
		}
		want := `["good ` + hook + `"]`
		if hook == "chat.params" {
			want = `["good chat.params","second saw 1"]`
		}
		if b, _ := json.Marshal(out["list"]); string(b) != want {
			t.Errorf("%s: %s", hook, b)
		}
	}
	if !h.Has("event") || h.Has("auth") || h.Has("nonsense") {
		t.Error("Has")
	}
	if ran, err := h.Run(t.Context(), "no.such", 1, &struct{}{}); err != nil || ran != nil {
		t.Errorf("%v, %v", ran, err)
	}
	// What a plugin makes of another shape is dropped.
	var typed struct {
		List int `json:"list"`
	}
	typed.List = 7
	if ran, err := h.Run(t.Context(), "shell.env", nil, &typed); err != nil || ran[0].Err == nil || typed.List != 7 {
		t.Errorf("%+v, %v, %+v", ran, err, typed)
	}
}

// A throw before a tool refuses its call; one elsewhere costs that plugin this call, and what it changed until then.
func TestThrowing(t *testing.T) {
	h, _ := open(t, Options{}, "throwing.js", "second.js")
	out := map[string]any{"args": map[string]any{"x": 1.0}, "list": []string{}}
	ran, err := h.Run(t.Context(), "tool.execute.before", map[string]string{"tool": "bash"}, &out)
	if centurion.KindOf(err) != centurion.KindPermission || !strings.Contains(err.Error(), "throwing") || !strings.Contains(err.Error(), "bash is not for you") || len(ran) != 1 {
		t.Errorf("%v, %+v", err, ran)
	}
	ran, err = h.Run(t.Context(), "chat.params", nil, &out)
	if err != nil || len(ran) != 2 || ran[0].Err == nil || ran[1].Err != nil {
		t.Errorf("%v, %+v", err, ran)
	}
	if b, _ := json.Marshal(out["list"]); string(b) != `["second saw 0"]` {
		t.Errorf("list: %s", b)
	}
	st := until(t, h, "throwing", func(s Status) bool { return s.Failures >= 3 }) // the third is a rejection that nobody handles
	if st.State != Ready || st.Hooked != 2 || st.P99 <= 0 {
		t.Errorf("%+v", st)
	}
}

func TestDoesNotLoad(t *testing.T) {
	missing := Find(json.RawMessage(`"no-such-plugin@1.2.3"`), "", t.TempDir())
	var changes int
	var mu sync.Mutex
	h, s := openSources(t, Options{InitLimit: 2 * time.Second, Changed: func() { mu.Lock(); changes++; mu.Unlock() }}, missing, file(t, "hanging.js"), file(t, "string.js"),
		file(t, "tui.js"), file(t, "runtime.js"), file(t, "syntax.ts"), file(t, "helper.js"), file(t, "exits.js"), file(t, "gone.js"), file(t, "second.js"))
	for name, want := range map[string]string{
		"no-such-plugin": "not installed", "hanging": "did not begin within", "string": "Plugin export is not a function", "tui": "must not export both",
		"runtime": "Cannot find", "syntax": "does not load", "exits": "cannot end the process", "gone": "is not there",
	} {
		if st := of(t, h, name); st.State != Failed || st.Err == nil || !strings.Contains(st.Err.Error(), want) {
			t.Errorf("%s: %+v", name, st)
		}
	}
	if st := of(t, h, "no-such-plugin"); centurion.HintOf(st.Err) != hintAdd {
		t.Errorf("%+v", st)
	}
	if st := until(t, h, "helper", func(s Status) bool { return s.State == Ready }); len(st.Hooks) != 1 || len(st.Notes) != 1 {
		t.Errorf("%+v", st)
	}
	if until(t, h, "second", func(s Status) bool { return s.State == Ready }); len(s.starts) != 1 {
		t.Errorf("%d processes", len(s.starts))
	}
	if mu.Lock(); changes == 0 {
		t.Error("no change was told")
	}
	mu.Unlock()
}

// A plugin that is late is there from then on.
func TestLate(t *testing.T) {
	h, _ := open(t, Options{InitLimit: 100 * time.Millisecond}, "late.js")
	if st := of(t, h, "late"); st.State != Failed {
		t.Fatalf("%+v", st)
	}
	if st := until(t, h, "late", func(s Status) bool { return s.State == Ready }); st.Err != nil || len(st.Tools) != 1 {
		t.Errorf("%+v", st)
	}
}

// One that blocks the process is found, and gets a process of its own; the others are back at once.
func TestBusyLoop(t *testing.T) {
	for _, when := range []string{"hook", "init", "event"} {
		t.Run(when, func(t *testing.T) {
			o := Options{Silence: 2 * time.Second, HookLimit: 9 * time.Second, Backoff: time.Hour}
			sources := []Source{file(t, "second.js"), file(t, "busy.js"), file(t, "good.ts")}
			sources[1].Options = json.RawMessage(`{"when":"` + when + `"}`)
			if when == "init" {
				o.InitLimit = 9 * time.Second
			}
			h, s := openSources(t, o, sources...)
			switch out := (map[string]any{}); when {
			case "hook":
				if ran, err := h.Run(t.Context(), "shell.env", nil, &out); err != nil || ran[0].Plugin != "busy" || ran[0].Err == nil {
					t.Errorf("%+v, %v", ran, err)
				}
			case "event":
				h.Event(map[string]string{"type": "x"})
			}
			st := until(t, h, "busy", func(s Status) bool { return s.Restarts == 1 })
			if st.State != Restarting || !strings.Contains(st.Err.Error(), "did not answer for") {
				t.Errorf("%+v", st)
			}
			for _, name := range []string{"second", "good"} {
				if st := until(t, h, name, func(s Status) bool { return s.State == Ready }); st.Restarts != 0 {
					t.Errorf("%+v", st)
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.starts) != 2 {
				t.Errorf("%d processes", len(s.starts))
			}
		})
	}
}

// One that ends the process is restarted three times, and a call under way may have run.
func TestDying(t *testing.T) {
	h, s := open(t, Options{Backoff: time.Millisecond}, "dying.js", "second.js")
	for i := range restarts + 1 {
		until(t, h, "dying", func(s Status) bool { return s.State == Ready })
		if _, err := call(t, h, "die", `{}`); !errors.Is(err, ErrMayHaveRun) {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	st := until(t, h, "dying", func(s Status) bool { return s.State == Failed })
	if st.Restarts != restarts || !strings.Contains(st.Err.Error(), "after 3 restarts") {
		t.Errorf("%+v", st)
	}
	if _, err := call(t, h, "die", `{}`); !errors.Is(err, ErrNotBegun) {
		t.Error(err)
	}
	if st := until(t, h, "second", func(s Status) bool { return s.State == Ready }); st.Restarts != 0 {
		t.Errorf("%+v", st)
	}
	if tools, _ := h.Tools(); len(tools) != 0 {
		t.Errorf("%+v", tools)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.starts) != 1+1+restarts {
		t.Errorf("%d processes", len(s.starts))
	}
}

func TestFlooding(t *testing.T) {
	for _, what := range []string{"messages", "nonsense", "line"} {
		t.Run(what, func(t *testing.T) {
			h, _ := open(t, Options{Backoff: time.Hour}, "flooding.js", "second.js")
			if _, err := call(t, h, "flood", `{"what":"`+what+`"}`); !errors.Is(err, ErrMayHaveRun) {
				t.Error(err)
			}
			if st := until(t, h, "flooding", func(s Status) bool { return s.Restarts == 1 }); !strings.Contains(st.Err.Error(), "sent") {
				t.Errorf("%+v", st)
			}
			until(t, h, "second", func(s Status) bool { return s.State == Ready && s.Restarts == 0 })
		})
	}
}

// A hook that never answers costs its time limit, and after the third time the plugin's process.
func TestHangingHook(t *testing.T) {
	h, _ := open(t, Options{HookLimit: 50 * time.Millisecond, Backoff: time.Hour}, "hook.js", "second.js")
	for range impatient {
		out := map[string]any{}
		if ran, err := h.Run(t.Context(), "tool.execute.before", nil, &out); err != nil || centurion.KindOf(ran[0].Err) != centurion.KindTimeout {
			t.Fatalf("%+v, %v", ran, err)
		}
	}
	until(t, h, "hook", func(s Status) bool { return s.State == Restarting && s.Restarts == 1 })
	until(t, h, "second", func(s Status) bool { return s.State == Ready })
	out := map[string]any{}
	if ran, err := h.Run(t.Context(), "tool.execute.before", nil, &out); err != nil || len(ran) != 1 || centurion.KindOf(ran[0].Err) != centurion.KindNotFound {
		t.Errorf("%+v, %v", ran, err)
	}
}

func TestAbortAskProgress(t *testing.T) {
	h, _ := open(t, Options{}, "good.ts")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancelled := &centurion.Error{Kind: centurion.KindCancelled, Msg: "enough"}
	var shown []string
	_, err := h.Call(ctx, Call{Tool: "waits"}, nil, func(line string) { shown = append(shown, line); cancel(cancelled) })
	if centurion.KindOf(err) != centurion.KindCancelled || errors.Is(err, ErrMayHaveRun) || len(shown) != 1 || shown[0] != "waiting" {
		t.Errorf("%v, %q", err, shown)
	}
	if _, err = h.Call(t.Context(), Call{Tool: "asks"}, nil, nil); err == nil || !strings.Contains(err.Error(), "cannot be asked for") {
		t.Error(err)
	}
	var asked string
	ask := func(_ context.Context, r json.RawMessage) error { asked = string(r); return nil }
	if r, err := h.Call(t.Context(), Call{Tool: "asks", Ask: ask}, nil, nil); err != nil || r.Text != "allowed" || !strings.Contains(asked, `"permission":"external"`) {
		t.Errorf("%+v, %v, %s", r, err, asked)
	}
}

func TestEvents(t *testing.T) {
	h, _ := open(t, Options{}, "good.ts", "second.js")
	for i := range 300 {
		h.Event(map[string]any{"type": "n", "n": i})
	}
	for {
		r, err := call(t, h, "events", `{}`)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(r.Text, "300 ") {
			if !strings.HasSuffix(r.Text, " in order") {
				t.Error(r.Text)
			}
			return
		}
	}
}
