package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"centurion"
)

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
		"greet": `{"type":"object","properties":{"name":{"description":"whom","type":"string","minLength":1},"times":{"default":1,"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991},"loud":{"type":"boolean"}},"required":["name"]}`,
		"plain": `{"type":"object","properties":{"path":{"type":"string","description":"a file"},"depth":{"type":"integer"}},"required":["path"]}`,
		"whole": `{"type":"object","properties":{"mode":{"enum":["a","b"]}},"required":["mode"]}`,
		"old": `{"type":"object","properties":{"kind":{"enum":["a","b"],"description":"a kind"},"list":{"type":"array","items":{"type":"object","properties":{"n":{"type":"number"},"s":{"type":"string"}},"required":["n"]}},` +
			`"either":{"anyOf":[{"anyOf":[{"type":"string"},{"enum":[3]}]},{"type":"null"}]},"any":{"type":"object","additionalProperties":{}}},"required":["kind"]}`,
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
		{"old", `{"kind":"a"}`, `{"kind":"a","list":[]}`, ""},
		{"old", `{"kind":"a","list":[{"n":"x"}]}`, "", "list.0.n: Expected number"},
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
	st := until(t, h, "throwing", func(s Status) bool { return s.Failures == 2 }) // the second is a rejection that nobody handles; a refusal is none
	if st.State != Ready || st.Hooked != 2 || slowest(st) <= 0 {
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

// When nothing says which plugin ended their process, each gets one of its own.
func TestUnknownCause(t *testing.T) {
	h, s := open(t, Options{Backoff: time.Millisecond}, "dying.js", "second.js")
	s.mu.Lock()
	s.all[0].Kill()
	s.mu.Unlock()
	for _, name := range []string{"dying", "second"} {
		until(t, h, name, func(s Status) bool { return s.State == Ready && s.Restarts == 1 })
	}
	if s.mu.Lock(); len(s.starts) != 3 || s.starts[0].Name != "plugins" || s.starts[1].Name == s.starts[2].Name {
		t.Errorf("%+v", s.starts)
	}
	s.mu.Unlock()
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

func slowest(s Status) time.Duration { _, p99 := s.Slow(); return p99 }

// A hook that never answers costs its time limit, and after the third time the plugin's process. What it could forbid is refused.
func TestHangingHook(t *testing.T) {
	h, _ := open(t, Options{HookLimit: 50 * time.Millisecond, InitLimit: 5 * time.Second, Backoff: time.Hour}, "hook.js", "second.js")
	for range impatient {
		out := map[string]any{}
		if ran, err := h.Run(t.Context(), "tool.execute.before", nil, &out); len(ran) != 1 || centurion.KindOf(err) != centurion.KindPermission ||
			!strings.Contains(err.Error(), "the plugin hook did not answer in tool.execute.before within 50ms") {
			t.Fatalf("%+v, %v", ran, err)
		}
	}
	until(t, h, "hook", func(s Status) bool { return s.State == Restarting && s.Restarts == 1 })
	until(t, h, "second", func(s Status) bool { return s.State == Ready })
	out := map[string]any{}
	if ran, err := h.Run(t.Context(), "tool.execute.before", nil, &out); len(ran) != 1 || centurion.KindOf(err) != centurion.KindPermission ||
		!strings.Contains(err.Error(), "the plugin hook is restarting") || !strings.Contains(centurion.HintOf(err), "centurion plugin list") {
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

// The client reaches the program over the plugin's own streams, as OpenCode's SDK or, without that, as our own.
func TestClient(t *testing.T) {
	for _, modules := range []string{"sdk", "none"} {
		var mu sync.Mutex
		var got []string
		serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			got = append(got, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
			mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			if strings.Contains(r.URL.Path, "gone") {
				w.WriteHeader(http.StatusNotFound)
			}
			_, _ = io.WriteString(w, `{"id":"ses_1"}`)
		})
		s := file(t, "client.js")
		s.Options = json.RawMessage(`{"modules":"` + modules + `"}`)
		h, _ := openSources(t, Options{Modules: modules, Serve: serve}, s)
		r, err := call(t, h, "talk", `{}`)
		if want := `["ses_1","ses_1",true,true]`; err != nil || r.Text != want {
			t.Errorf("%s: %+v, %v", modules, r, err)
		}
		want := `[GET /session/ses_0 POST /session {"title":"ses_1"} POST /session/ses_1/message {"parts":[]} GET /session/gone POST /log {"service":"s","level":"info","message":"m"}]`
		if mu.Lock(); fmt.Sprint(got) != want {
			t.Errorf("%s: %s", modules, got)
		}
		mu.Unlock()
	}
}

// Streams, answers of many parts, an abort and a handler that panics reach a plugin, also by the address that it is given.
func TestStreams(t *testing.T) {
	var left atomic.Int32
	serve := http.NewServeMux()
	serve.HandleFunc("/event", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		flush := http.NewResponseController(w)
		for n := 1; n <= 3; n++ {
			fmt.Fprintf(w, "data: {\"n\":%d}\n\n", n)
			_ = flush.Flush()
		}
		<-r.Context().Done()
		left.Add(1)
	})
	serve.HandleFunc("/big", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, strings.Repeat("€", 1<<20)) })
	serve.HandleFunc("/broken", func(w http.ResponseWriter, r *http.Request) { panic("no more") })
	serve.HandleFunc("POST /empty", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Answered", r.Header.Get("X-Asked"))
		w.WriteHeader(http.StatusNoContent)
	})
	serve.HandleFunc("/session/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	})
	h, _ := openSources(t, Options{Serve: serve}, file(t, "client.js"))
	r, err := call(t, h, "stream", `{}`)
	if want := `[[1,2,3],1048576,1,204,"yes","AbortError",`; err != nil || !strings.HasPrefix(r.Text, want) || !strings.Contains(r.Text, "no more") {
		t.Errorf("%+v, %v", r, err)
	}
	for left.Load() < 2 && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	// Answers that nobody reads take no more than their places.
	if r, err = call(t, h, "unread", `{}`); err != nil || r.Text != strings.Repeat("200 ", maxFetches)+"429" {
		t.Errorf("%+v, %v", r, err)
	}
}

// Fifty workers with a plugin on every call, whose process is killed again and again: no call waits for it, and none is lost but those of
// the moment.
func TestKilledUnderLoad(t *testing.T) {
	h, s := open(t, Options{Backoff: time.Millisecond}, "second.js")
	var wg sync.WaitGroup
	var ok, without atomic.Int32
	for range 50 {
		wg.Go(func() {
			for range 60 {
				out := map[string]any{"list": []string{}}
				ran, err := h.Run(t.Context(), "chat.params", nil, &out)
				switch list := fmt.Sprint(out["list"]); {
				case err != nil || len(ran) > 1:
					t.Errorf("%+v, %v", ran, err)
				case len(ran) == 1 && ran[0].Err == nil && list == "[second saw 0]":
					ok.Add(1)
				case list == "[]":
					without.Add(1)
				default:
					t.Errorf("%+v: %s", ran, list)
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	for range restarts {
		time.Sleep(50 * time.Millisecond)
		s.mu.Lock()
		s.all[len(s.all)-1].Kill()
		s.mu.Unlock()
		until(t, h, "second", func(s Status) bool { return s.State == Restarting })
		until(t, h, "second", func(s Status) bool { return s.State == Ready })
	}
	wg.Wait()
	if ok.Load() == 0 || without.Load() == 0 || ok.Load()+without.Load() != 50*60 {
		t.Errorf("%d with the plugin, %d without", ok.Load(), without.Load())
	}
	t.Logf("%d with the plugin, %d without", ok.Load(), without.Load())
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
