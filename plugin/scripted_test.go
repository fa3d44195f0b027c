package plugin

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
)

// scripted is a process that answers as a test says: reply gets each message and returns lines.
type scripted struct {
	net.Conn
	far   net.Conn
	once  sync.Once
	ended chan struct{}
}

func (s *scripted) Kill() { s.once.Do(func() { s.far.Close(); s.Conn.Close(); close(s.ended) }) }
func (s *scripted) Wait() error {
	<-s.ended
	return errors.New("exit status 3")
}

type sent struct {
	ID     int    `json:"id"`
	Do     string `json:"do"`
	Plugin string `json:"plugin"`
	Params struct {
		Hook string `json:"hook"`
		fetched
		Args map[string]any
	} `json:"params"`
	line string
}

// start returns a Start for processes that answer with reply, which gets the number of the process, too. "" ends it.
func script(reply func(process int, m sent) string) func(context.Context, Start) (Process, error) {
	var n atomic.Int64 // native plugins start side by side
	return func(context.Context, Start) (Process, error) {
		near, far := net.Pipe()
		s := &scripted{Conn: near, far: far, ended: make(chan struct{})}
		process := int(n.Add(1))
		go func() {
			defer s.Kill()
			in := bufio.NewScanner(far)
			in.Buffer(nil, 1<<20)
			for in.Scan() {
				var m sent
				if json.Unmarshal(in.Bytes(), &m) != nil {
					panic(in.Text())
				}
				m.line = in.Text()
				lines := reply(process, m)
				if lines == "" {
					return
				}
				if _, err := io.WriteString(far, lines+"\n"); err != nil {
					return
				}
			}
		}()
		return s, nil
	}
}

func native(name string) Source { return Source{Name: name, Command: []string{name}} }

// usual answers everything as a plugin with one hook and one tool would.
func usual(m sent) string {
	switch m.Do {
	case "init":
		return fmt.Sprintf(`{"id":%d,"result":{"hooks":["shell.env","event","nonsense"],"tools":[{"name":"t","schema":{"type":"object"}}]}}`, m.ID)
	case "abort", "answer", "fetched":
		return " "
	}
	return fmt.Sprintf(`{"id":%d,"result":{"text":"fine"}}`, m.ID)
}

// Whatever a process answers to whichever message: nothing hangs, the outcome is an error or a result, and the next call works.
func TestNonsense(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, lie := range map[string]func(m sent) string{
		"nothing":      func(sent) string { return " " },
		"no JSON":      func(sent) string { return "hello {" },
		"another type": func(sent) string { return `[1,2]` },
		"empty":        func(m sent) string { return fmt.Sprintf(`{"id":%d}`, m.ID) },
		"null":         func(m sent) string { return fmt.Sprintf(`{"id":%d,"result":null}`, m.ID) },
		"a number":     func(m sent) string { return fmt.Sprintf(`{"id":%d,"result":7}`, m.ID) },
		"a list":       func(m sent) string { return fmt.Sprintf(`{"id":%d,"result":{"tools":7,"output":7,"text":7}}`, m.ID) },
		"both":         func(m sent) string { return fmt.Sprintf(`{"id":%d,"result":{},"error":"x"}`, m.ID) },
		"another id":   func(m sent) string { return fmt.Sprintf(`{"id":%d,"result":{}}`, m.ID+1000) },
		"twice":        func(m sent) string { return usual(m) + "\n" + usual(m) },
		"an error":     func(m sent) string { return fmt.Sprintf(`{"id":%d,"error":"%s"}`, m.ID, long) },
		"a question":   func(m sent) string { return fmt.Sprintf(`{"id":%d,"ask":{},"n":1}`, m.ID) },
		"progress": func(m sent) string {
			return fmt.Sprintf(`{"id":%d,"progress":{"title":"%s"}}`, m.ID, long) + "\n" + usual(m)
		},
		"a fault":       func(m sent) string { return `{"fault":"x","plugin":"nobody"}` + "\n" + usual(m) },
		"half and ends": func(sent) string { return "" },
		"greets":        func(m sent) string { return "Welcome!\n\n" + usual(m) },
	} {
		for _, do := range []string{"init", "hook", "tool", "ping", "events", "dispose"} {
			t.Run(name+" to "+do, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					lied := false
					h := Open([]Source{native("p")}, Options{CallLimit: 5 * time.Second, Start: script(func(process int, m sent) string {
						if m.Do == do && !lied {
							lied = true
							return lie(m)
						}
						return usual(m)
					})})
					defer func() {
						if err := h.Close(); err != nil {
							t.Error(err)
						}
					}()
					for range 2 {
						_, _ = h.Run(t.Context(), "shell.env", nil, &map[string]any{})
						_, _ = h.Call(t.Context(), Call{Tool: "t"}, nil, nil)
						h.Event(1)
						time.Sleep(time.Minute)
					}
					st := h.Status()[0]
					r, err := h.Call(t.Context(), Call{Tool: "t"}, nil, nil)
					if do == "init" && (name == "an error" || name == "nothing" || st.State == Failed) {
						if st.State != Failed || st.Err == nil || err == nil {
							t.Errorf("%+v, %v", st, err)
						}
						return
					}
					if !lied && do != "dispose" {
						t.Errorf("nothing of this was said")
					}
					if do != "init" && (err != nil || r.Text != "fine") {
						t.Errorf("%v, %+v", err, st)
					}
				})
			})
		}
	}
}

// A process that ends is started again after 1, 2 and 4 seconds, and then no more; one that cannot be started is no different.
func TestRestarts(t *testing.T) {
	for name, start := range map[string]func(context.Context, Start) (Process, error){
		"ends":  script(func(int, sent) string { return "" }),
		"never": func(context.Context, Start) (Process, error) { return nil, errors.New("no such program") },
	} {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Duration
			began := time.Now()
			h := Open([]Source{native("p")}, Options{Start: func(ctx context.Context, s Start) (Process, error) {
				at = append(at, time.Since(began).Round(100*time.Millisecond))
				return start(ctx, s)
			}})
			time.Sleep(time.Hour)
			if st := h.Status()[0]; fmt.Sprint(at) != "[0s 1s 3s 7s]" || st.State != Failed || st.Restarts != 3 {
				t.Errorf("%s: %v, %+v", name, at, st)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// S4: a plugin whose file is no longer what a person has trusted is not started, also not when its process has ended.
func TestChangedFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := native("p")
		p.File = filepath.Join(t.TempDir(), "p.js")
		sum := sha256.Sum256([]byte("trusted"))
		p.Sum = hex.EncodeToString(sum[:])
		if err := os.WriteFile(p.File, []byte("trusted"), 0o600); err != nil {
			t.Fatal(err)
		}
		processes, ends := 0, false
		h := Open([]Source{p}, Options{Start: script(func(process int, m sent) string {
			if processes = process; m.Do == "hook" && ends {
				return ""
			}
			return usual(m)
		})})
		for _, want := range []State{Ready, Failed} {
			_, _ = h.Run(t.Context(), "shell.env", nil, &map[string]any{})
			if time.Sleep(time.Minute); h.Status()[0].State != want {
				t.Errorf("%+v, not %s", h.Status()[0], want)
			}
			if err := os.WriteFile(p.File, []byte("changed"), 0o600); err != nil {
				t.Fatal(err)
			}
			ends = true
		}
		if err := h.Status()[0].Err; processes != 1 || !strings.Contains(err.Error(), "has changed since it was trusted") {
			t.Errorf("%d processes, %v", processes, err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Several native plugins are processes of their own, and hooks run in the order of the configuration.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := Open([]Source{native("a"), native("b"), native("a")}, Options{Reserved: []string{"read"}, Start: script(func(_ int, m sent) string {
			if m.Do == "hook" {
				return fmt.Sprintf(`{"id":%d,"result":{"output":{"last":%q}}}`, m.ID, m.Plugin)
			}
			return strings.Replace(usual(m), `"tools":[`, `"tools":[{"name":"read","schema":{"type":"object"}},{"name":"a b"},{"name":"s","schema":[]},`, 1)
		})})
		defer h.Close()
		if err := h.Settled(t.Context()); err != nil {
			t.Fatal(err)
		}
		var out struct{ Last string }
		ran, err := h.Run(t.Context(), "shell.env", nil, &out)
		if err != nil || len(ran) != 3 || ran[0].Plugin != "a" || ran[1].Plugin != "b" || ran[2].Plugin != "a#2" || out.Last != "a#2" {
			t.Errorf("%+v, %v, %+v", ran, err, out)
		}
		raw := json.RawMessage(`{"kept":1}`)
		if ran, err := h.Run(t.Context(), "shell.env", nil, &raw); err != nil || string(raw) != `{"last":"a#2"}` || fmt.Sprint(ran[0].Changed) != "[kept last]" {
			t.Errorf("%s, %v, %+v", raw, err, ran)
		}
		if _, err := h.Run(t.Context(), "shell.env", nil, nil); err != nil {
			t.Error(err)
		}
		tools, err := h.Tools()
		if len(tools) != 1 || err == nil || !strings.Contains(err.Error(), "both Centurion and the plugin a have a tool read") ||
			!strings.Contains(err.Error(), "both the plugin a and the plugin a#2 have a tool t") || centurion.KindOf(err) != centurion.KindConflict {
			t.Errorf("%+v, %v", tools, err)
		}
		if st := h.Status()[0]; len(st.Notes) != 2 || len(st.Hooks) != 2 {
			t.Errorf("%+v", st)
		}
	})
}

// A plugin that does not take its events loses the newest, and nobody waits for it.
func TestSlowEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := Open([]Source{native("p")}, Options{Silence: time.Hour, Start: script(func(_ int, m sent) string {
			if m.Do == "events" {
				return " "
			}
			return usual(m)
		})})
		defer h.Close()
		_ = h.Settled(t.Context())
		h.Event("first")
		time.Sleep(time.Second)
		began := time.Now()
		for range maxEvents + 5 {
			h.Event("more")
		}
		if st := h.Status()[0]; st.Dropped != 5 || time.Since(began) > 0 {
			t.Errorf("%+v", st)
		}
	})
}

// The example of docs/plugins.md.
func TestNativeExample(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("no python3")
	}
	if err != nil {
		t.Fatal(err)
	}
	file, _ := filepath.Abs("testdata/native.py")
	s := &starter{}
	h := Open([]Source{{Name: "words", Command: []string{python, file}}}, Options{Start: s.start})
	defer h.Close()
	if err := h.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := of(t, h, "words"); st.State != Ready || st.Version != "1.0" {
		t.Fatalf("%+v: %s", st, s.stderr.String())
	}
	if r, err := call(t, h, "count_words", `{"text":"one two three"}`); err != nil || r.Text != "3 words" || r.Title != "counted" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := call(t, h, "count_words", `{}`); !errors.Is(err, ErrNotBegun) || !strings.Contains(err.Error(), "text is missing") {
		t.Error(err)
	}
	out := map[string]any{"env": map[string]string{"A": "b"}}
	if ran, err := h.Run(t.Context(), "shell.env", map[string]string{"cwd": "/"}, &out); err != nil || len(ran[0].Changed) != 1 || fmt.Sprint(out) != "map[env:map[A:b COUNTED:1]]" {
		t.Errorf("%+v, %v, %v", ran, err, out)
	}
	args := map[string]any{"args": map[string]string{"command": "curl x"}}
	if _, err := h.Run(t.Context(), "tool.execute.before", map[string]string{"tool": "bash"}, &args); err == nil || !strings.Contains(err.Error(), "no curl here") {
		t.Error(err)
	}
	doc, err := os.ReadFile("../docs/plugins.md")
	code, _ := os.ReadFile(file)
	if err != nil || !strings.Contains(string(doc), string(code)) {
		t.Errorf("docs/plugins.md does not show testdata/native.py as it is (%v)", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"id":1,"result":{}}`, `{"id":1,"error":"x","kind":"arguments"}`, `{"id":1,"progress":{"title":"x"}}`, `{"id":1,"ask":{},"n":1}`, `{"fault":"x","plugin":"p"}`, `{}`, `[]`, "{"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := parse(line)
		if err != nil {
			return
		}
		if (a.ID > 0) == (a.Fault != "") || a.ID < 0 {
			t.Errorf("%q: %+v", line, a)
		}
		p := &plug{name: "p"}
		if a.Result != nil {
			if p.take(a.Result) == nil {
				for _, tool := range p.tools {
					if !json.Valid(tool.Schema) {
						t.Errorf("%q: the schema %q", line, tool.Schema)
					}
				}
			}
			if r, err := resultOf(a.Result); err == nil && (r.Text == "" || len(r.Text) > MaxText+len(line)) {
				t.Errorf("%q: %+v", line, r)
			}
		}
	})
}
