package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
)

// What runs OpenCode's plugins: Bun with code of this program only, which is written anew where it is not as it should be.
func TestSidecar(t *testing.T) {
	o, sources := together(t, "a", "b")
	if err := os.MkdirAll(o.State, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, o.State, map[string]string{"sidecar.js": "old", "bunfig.toml": "preload = ['x']"})
	synctest.Test(t, func(t *testing.T) {
		var starts []Start
		o.Start = func(_ context.Context, s Start) (Process, error) { starts = append(starts, s); return nil, nil }
		h := opened(t, o, func(_ int, m sent) string { return usual(m) }, sources...)
		defer h.Close()
		bun := []string{os.Args[0], "--config=" + filepath.Join(o.State, "bunfig.toml"), "--no-install", "--no-env-file", "run", filepath.Join(o.State, "sidecar.js")}
		env := []string{"DO_NOT_TRACK=1", "BUN_RUNTIME_TRANSPILER_CACHE_PATH=0"}
		if want := []Start{{"plugins", bun, env}}; !reflect.DeepEqual(starts, want) {
			t.Errorf("started %q", starts)
		}
		if got, want := h.command(h.plugs[:1]), (Start{"a", bun, env}); !reflect.DeepEqual(got, want) {
			t.Errorf("one alone is started as %q", got)
		}
	})
	for name, want := range map[string]string{"sidecar.js": string(sidecar), "client.js": string(client), "bunfig.toml": "", "package.json": "{\"type\":\"module\"}\n"} {
		if b, err := os.ReadFile(filepath.Join(o.State, name)); err != nil || string(b) != want {
			t.Errorf("%s: %.40q, %v", name, b, err)
		}
	}
	for bun, kind := range map[string]centurion.Kind{"": centurion.KindConfig, "/no/such/bun": centurion.KindConfig, os.Args[0]: centurion.KindDisk} {
		o.Bun, o.State = bun, filepath.Join(os.Args[0], "x")
		h := Open(append(sources, Source{Name: "wrong", Err: os.ErrInvalid}), o)
		for _, st := range h.Status() {
			if st.State != Failed || st.Name != "wrong" && centurion.KindOf(st.Err) != kind || kind == centurion.KindConfig && st.Name != "wrong" && centurion.HintOf(st.Err) != hintAdd {
				t.Errorf("with the runtime %q: %+v", bun, st)
			}
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What a plugin has is taken as far as a provider takes it; of the rest a person is told.
func TestTake(t *testing.T) {
	p := &plug{name: "p"}
	tool := func(name, schema string) string { return fmt.Sprintf(`{"name":%q,"schema":%s}`, name, schema) }
	large := `{"type":"object","x":"` + strings.Repeat("x", maxSchema) + `"}`
	tools := []string{tool("ok", `{"type":"object"}`), tool("ok", `{"type":"object","x":1}`), tool("a b", `{"type":"object"}`), tool(strings.Repeat("n", 65), `{"type":"object"}`),
		tool("list", `{"type":"array"}`), tool("none", `7`), tool("large", large), tool(strings.Repeat("n", 64), `{"title":"x\u001b[1m","type":"object"}`)}
	if err := p.take(json.RawMessage(`{"version":"1.0","hooks":["event","config","auth","event"],"notes":["said"],"tools":[` + strings.Join(tools, ",") + `]}`)); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(p.version, p.hooks) != "1.0[config event]" || len(p.tools) != 2 || string(p.tools[0].Schema) != `{"type":"object"}` || p.tools[1].Name != strings.Repeat("n", 64) || strings.Contains(string(p.tools[1].Schema), "u001b") {
		t.Errorf("%s %v %+v", p.version, p.hooks, p.tools)
	}
	const left = "its tool %s was left out: its schema is no object, or has more than 64 KB"
	want := []string{"it has two tools ok; the first is used", `its tool "a b" was left out: providers refuse the name`, fmt.Sprintf(`its tool %q was left out: providers refuse the name`, strings.Repeat("n", 65)),
		fmt.Sprintf(left, "list"), fmt.Sprintf(left, "none"), fmt.Sprintf(left, "large"), "said"}
	if !reflect.DeepEqual(p.notes, want) {
		t.Errorf("notes\n%s", strings.Join(p.notes, "\n"))
	}
	if err := p.take(json.RawMessage(`{"version":"2.0"}`)); err != nil || p.version != "1.0" || len(p.hooks)+len(p.tools) != 0 {
		t.Errorf("started again it has %s %v %v, %v", p.version, p.hooks, p.tools, err)
	}
	for i := range 30 {
		p.note(fmt.Sprint(i))
	}
	if len(p.notes) != 20 || p.notes[19] != "12" {
		t.Errorf("%d notes, the last %s", len(p.notes), p.notes[len(p.notes)-1])
	}
	if err := p.take(json.RawMessage(`[]`)); centurion.KindOf(err) != centurion.KindConfig || !strings.HasPrefix(err.Error(), "the plugin p says nothing usable of itself: ") {
		t.Error(err)
	}
}

// A tool's answer as a model gets it: never empty, no more than fits, and of files those that a model takes.
func TestResult(t *testing.T) {
	png := `{"type":"file","filename":"a.png","mime":"image/png","url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="}`
	many := strings.Repeat(png+",", centurion.MaxFiles) + png
	for name, test := range map[string]struct {
		raw   string
		text  string
		files int
	}{
		"nothing":       {`{}`, "[the answer is empty]", 0},
		"blanks":        {`{"text":" \n"}`, "[the answer is empty]", 0},
		"text":          {`{"text":"a\u001b[1mb\n","title":"t"}`, "ab\n", 0},
		"as much as is": {`{"text":"` + strings.Repeat("x", MaxText) + `"}`, strings.Repeat("x", MaxText), 0},
		"too much": {`{"text":"` + strings.Repeat("x", MaxText-1) + `éy"}`, strings.Repeat("x", MaxText-1) +
			fmt.Sprintf("\n[cut here: the answer has %s, and %s are left out]", centurion.Bytes(MaxText+2), centurion.Bytes(2)), 0},
		"no file": {`{"text":"x","attachments":[7,{"type":"file","filename":"y","mime":"image/png","url":"data:image/png;base64,eA=="}]}`, "x\n[attachment not shown: no model takes it]\n[attachment not shown: no model takes it]", 0},
	} {
		if r, err := resultOf(json.RawMessage(test.raw)); err != nil || r.Text != test.text || len(r.Files) != test.files {
			t.Errorf("%s: %.200q and %d bytes, %d files, %v", name, r.Text, len(r.Text), len(r.Files), err)
		}
	}
	r, err := resultOf(json.RawMessage(`{"title":"` + strings.Repeat("t", 300) + `","metadata":{"b":1},"attachments":[` + many + `]}`))
	if err != nil || len(r.Files) != centurion.MaxFiles || r.Files[0].Name != "a.png" || strings.Count(r.Text, r.Files[0].Label()) != centurion.MaxFiles || strings.Count(r.Text, "[attachment not shown") != 1 {
		t.Errorf("%d files, %q, %v", len(r.Files), r.Text, err)
	}
	if r.Title != centurion.Clip(strings.Repeat("t", 300), 200) || string(r.Metadata) != `{"b":1}` {
		t.Errorf("%q %s", r.Title, r.Metadata)
	}
}

// What a tool asks for is asked as it was said, and the answer goes to that question; a call that asks without end gets none any more.
func TestQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers []string
		const most = 100
		h := opened(t, Options{Silence: time.Hour}, func(_ int, m sent) string {
			switch m.Do {
			case "tool":
				var b strings.Builder
				for n := range most + 1 {
					fmt.Fprintf(&b, `{"id":%d,"ask":{"permission":"p%d"},"n":%d}`+"\n", m.ID, n+1, n+1)
				}
				return b.String()
			case "answer":
				if answers = append(answers, m.line); len(answers) == most+1 {
					return result(m, `{"text":"done"}`)
				}
				return " "
			}
			return usual(m)
		}, native("p"))
		defer h.Close()
		asked := make(chan string, most)
		r, err := h.Call(t.Context(), Call{Tool: "t", Ask: func(_ context.Context, request json.RawMessage) error {
			if asked <- string(request); string(request) == `{"permission":"p2"}` {
				return os.ErrPermission
			}
			return nil
		}}, nil, nil)
		if err != nil || r.Text != "done" || len(asked) != most {
			t.Errorf("%+v, %v, asked %d times", r, err, len(asked))
		}
		refused := map[string]bool{`{"id":2,"do":"answer","params":{"error":"permission denied","n":2}}`: true, `{"id":2,"do":"answer","params":{"error":"permissions cannot be asked for here","n":101}}`: true}
		for _, a := range answers {
			if strings.Contains(a, "error") && !refused[a] {
				t.Errorf("answered with %s", a)
			}
			delete(refused, a)
		}
		if len(refused) > 0 {
			t.Errorf("not answered: %v", refused)
		}
	})
}

// The end waits for plugins that put away what they have, but not for long, and says nothing to one that has not begun.
func TestDispose(t *testing.T) {
	for name, test := range map[string]struct {
		reply func(m sent) string
		told  string
		took  time.Duration
	}{
		"at once":       {func(m sent) string { return "-" }, "a b", 0},
		"after a while": {func(m sent) string { time.Sleep(disposing / 4); return "-" }, "a b", disposing / 2},
		"never":         {func(m sent) string { return " " }, "a b", disposing},
		"not begun": {func(m sent) string {
			if m.Do == "init" && m.Plugin == "b" {
				return " "
			}
			return "-"
		}, "a", 0},
	} {
		t.Run(name, func(t *testing.T) {
			o, sources := together(t, "a", "b")
			o.Silence = time.Hour
			synctest.Test(t, func(t *testing.T) {
				var told []string
				h := opened(t, o, func(_ int, m sent) string {
					if m.Do == "dispose" {
						told = append(told, m.Plugin)
					}
					if m.Do == "dispose" || name == "not begun" {
						if r := test.reply(m); r != "-" {
							return r
						}
					}
					return usual(m)
				}, sources...)
				began := time.Now()
				if err := h.Close(); err != nil || time.Since(began) != test.took || strings.Join(told, " ") != test.told {
					t.Errorf("%v after %s, told %v", err, time.Since(began), told)
				}
			})
		})
	}
}

// Of the calls of hooks the newest count.
func TestTook(t *testing.T) {
	var f Figures
	if p50, p99 := f.Slow(); p50 != 0 || p99 != 0 {
		t.Error("nothing took its time")
	}
	for i := range samples + 10 {
		f.Hooked++
		f.took(time.Duration(i+1) * time.Second)
	}
	p50, p99 := f.Slow()
	if len(f.Took) != samples || p50 != (10+samples/2+1)*time.Second || p99 != (10+samples*99/100+1)*time.Second {
		t.Errorf("%d kept, half within %s, nearly all within %s", len(f.Took), p50, p99)
	}
}

// A tool that there is not, and one of a plugin that is off.
func TestNobodyHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := opened(t, Options{Silence: time.Hour}, func(n int, m sent) string {
			if m.Do == "hook" {
				return ""
			}
			return usual(m)
		}, native("p"))
		defer h.Close()
		if _, err := h.Call(t.Context(), Call{Tool: "u"}, nil, nil); err == nil || err.Error() != "call u: no plugin of this project has that tool now: the call has not begun" || centurion.KindOf(err) != centurion.KindNotFound {
			t.Error(err)
		}
		for range restarts + 1 {
			_, _ = h.Run(t.Context(), "shell.env", nil, &map[string]any{})
			time.Sleep(time.Minute)
		}
		if _, err := h.Call(t.Context(), Call{Tool: "t"}, nil, nil); err == nil || err.Error() != "call t: the plugin p is off: exit status 3, after 3 restarts: the call has not begun" {
			t.Error(err)
		}
		if tools, err := h.Tools(); err != nil || len(tools) != 0 {
			t.Errorf("the tools of one that is off are offered: %+v, %v", tools, err)
		}
		if ran, err := h.Run(t.Context(), "shell.env", nil, &map[string]any{}); err != nil || ran != nil || h.Has("shell.env") {
			t.Errorf("%+v, %v", ran, err)
		}
	})
}

// A call that is cut by the last end of a plugin counts, but does not hide why the plugin is off.
func TestWhyAPluginIsOff(t *testing.T) {
	off, cut := errors.New("is off"), errors.New("did not answer")
	for state, want := range map[State]error{Failed: off, Ready: cut, Restarting: cut} {
		p := plug{state: state, err: off}
		if p.fail(cut); p.err != want || p.f.Failures != 1 {
			t.Errorf("%v: %v after %d failures", state, p.err, p.f.Failures)
		}
	}
}

// Bun is what was installed as long as its content is, whatever became of its file's date.
func TestInstalledAgain(t *testing.T) {
	bun, err := BunPackage()
	if err != nil {
		t.Fatal(err)
	}
	hash := bunPackages[strings.TrimPrefix(bun, "@oven/bun-")]
	dir := filepath.Join(t.TempDir(), "new")
	install := func(_ context.Context, in string, argv ...string) (string, error) {
		want := []string{"npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--save-exact", "--", bun + "@" + bunVersion, "@opencode-ai/plugin@" + sdkVersion, "x"}
		if in != dir || !reflect.DeepEqual(argv, want) {
			t.Errorf("in %s: %q", in, argv)
		}
		write(t, dir, map[string]string{"package-lock.json": fmt.Sprintf(`{"packages":{"node_modules/%s":{"version":%q,"integrity":%q}}}`, bun, bunVersion, hash)})
		write(t, filepath.Dir(programOf(dir, bun)), map[string]string{filepath.Base(programOf(dir, bun)): "program"})
		return "", nil
	}
	was, err := Install(t.Context(), dir, []string{"x"}, install)
	if b, _ := os.ReadFile(filepath.Join(dir, "package.json")); err != nil || string(b) != "{\n  \"name\": \"centurion-plugins\",\n  \"private\": true\n}\n" {
		t.Fatalf("%v, %s", err, b)
	}
	if runtime.GOOS != "windows" {
		for name, want := range map[string]os.FileMode{".": 0o700, "package.json": 0o600, recordFile: 0o600} {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
		}
	}
	write(t, dir, map[string]string{"package.json": `{"dependencies":{"a":"1"}}`})
	if _, err := Install(t.Context(), dir, []string{"x"}, install); err != nil || !Has(dir, "a") {
		t.Errorf("a second one forgets the first: %v", err)
	}
	later := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	if err := os.Chtimes(was.Path, later, later); err != nil {
		t.Fatal(err)
	}
	if now, err := Installed(dir); err != nil || now.SHA256 != was.SHA256 || !now.Changed.Equal(later) || now.Bytes != 7 {
		t.Errorf("%+v, %v", now, err)
	}
	if err := os.WriteFile(was.Path, []byte("PROGRAM"), 0o700); err != nil { // as large as before
		t.Fatal(err)
	}
	if _, err := Installed(dir); err == nil || centurion.HintOf(err) != hintAdd {
		t.Error(err)
	}
	if err := os.Remove(was.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := Installed(dir); err == nil || !strings.HasPrefix(err.Error(), "plugins: Bun is gone: ") {
		t.Error(err)
	}
	write(t, dir, map[string]string{recordFile: `{"package":"@oven/bun-../../x"}`})
	if _, err := Installed(dir); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(centurion.ErrShutdown)
	if err := Uninstall(ctx, dir, "x", func(context.Context, string, ...string) (string, error) { return "", os.ErrClosed }); err != centurion.ErrShutdown {
		t.Errorf("given up: %v", err)
	}
	failed := func(context.Context, string, ...string) (string, error) {
		return " E404 \n", fmt.Errorf("exit status 1")
	}
	if err := Uninstall(t.Context(), dir, "x", failed); err == nil || err.Error() != "plugin remove: npm could not uninstall it: exit status 1\nE404" || centurion.KindOf(err) != centurion.KindNetwork {
		t.Errorf("%v", err)
	}
}
