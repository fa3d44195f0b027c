package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
)

// opened returns scripted plugins that have begun.
func opened(t *testing.T, o Options, reply func(process int, m sent) string, sources ...Source) *Host {
	t.Helper()
	start := script(reply)
	named := o.Start
	o.Start = func(ctx context.Context, s Start) (Process, error) {
		if named != nil {
			_, _ = named(ctx, s)
		}
		return start(ctx, s)
	}
	h := Open(sources, o)
	if err := h.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

func result(m sent, json string) string { return fmt.Sprintf(`{"id":%d,"result":%s}`, m.ID, json) }

// What a plugin is told word for word, and what is known of it then.
func TestWhatIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		p := native("p")
		p.Spec, p.File, p.Kind, p.Local, p.Options, p.Version = "spec", "/f.js", Tool, true, json.RawMessage(`{"a":1}`), "2.0"
		h := opened(t, Options{Directory: "/p", Version: "1.2", Modules: "/m", Project: json.RawMessage(`{"id":"x"}`), Silence: time.Hour}, func(_ int, m sent) string {
			lines = append(lines, m.line)
			switch m.Do {
			case "init":
				time.Sleep(3 * time.Second)
				return result(m, `{"version":"9","hooks":["shell.env","auth","event"],"notes":["a\u001bnote","a note","a note"],"tools":[{"name":"t","description":"d\u001b","readOnly":true,"schema":{"type":"object"}}]}`)
			case "hook":
				time.Sleep(2 * time.Second)
				return result(m, `{"output":{"env":{"A":"b"}}}`)
			}
			return usual(m)
		}, p)
		out := json.RawMessage(`{"env":{}}`)
		ran, err := h.Run(t.Context(), "shell.env", map[string]string{"cwd": "/"}, &out)
		want := []Ran{{Plugin: "p", Took: 2 * time.Second, Changed: []string{"env"}, Output: json.RawMessage(`{"env":{"A":"b"}}`)}}
		if err != nil || !reflect.DeepEqual(ran, want) || string(out) != `{"env":{"A":"b"}}` {
			t.Errorf("%+v, %v, %s", ran, err, out)
		}
		if r, err := h.Call(t.Context(), Call{Tool: "t", Session: "s", Message: "m", CallID: "c", Agent: "a", Directory: "/d", Worktree: "/w"}, nil, nil); err != nil || !reflect.DeepEqual(r, Result{Text: "fine"}) {
			t.Errorf("%+v, %v", r, err)
		}
		h.Event(map[string]int{"n": 1})
		h.Event(map[string]int{"n": 2})
		time.Sleep(time.Second)
		h.Event(map[string]int{"n": 3})
		time.Sleep(time.Second)
		h.Note("p", "said")
		h.Note("q", "of another")
		if tools, err := h.Tools(); err != nil || len(tools) != 1 || tools[0].ReadOnly || strings.Contains(tools[0].Description, "\x1b") || string(tools[0].Schema) != `{"type":"object"}` {
			t.Errorf("%+v, %v", tools, err)
		}
		const status = "[{Name:p Spec:spec File:/f.js State:ready Version:2.0 Hooks:[event shell.env] Tools:[t] Init:3s Figures:{Hooked:1 Called:1 Failures:0 Took:[2s] Sent:0 Kept:0} Restarts:0 Dropped:0 Notes:[%s] Err:<nil>}]"
		notes := strings.Join(append(slices.Clone(h.Status()[0].Notes[:2]), "said"), " ")
		if got := fmt.Sprintf("%+v", h.Status()); got != fmt.Sprintf(status, notes) || strings.Contains(notes, "\x1b") {
			t.Errorf("%s", got)
		}
		h.Figures()["p"].Took[0] = 0
		if f := h.Figures()["p"]; f.Took[0] != 2*time.Second {
			t.Error("who reads the figures changes them")
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if st := h.Status()[0]; st.State != Failed || st.Err != centurion.ErrShutdown {
			t.Errorf("after the end: %+v", st)
		}
		told := []string{
			`{"id":1,"do":"init","plugin":"p","params":{"protocol":1,"file":"/f.js","kind":"tool","local":true,"options":{"a":1},"directory":"/p","worktree":"/p","modules":"/m","project":{"id":"x"},"version":"1.2","server":"http://centurion.invalid"}}`,
			`{"id":2,"do":"hook","plugin":"p","params":{"hook":"shell.env","input":{"cwd":"/"},"output":{"env":{}}}}`,
			`{"id":3,"do":"tool","plugin":"p","params":{"tool":"t","args":{},"context":{"sessionID":"s","messageID":"m","callID":"c","agent":"a","directory":"/d","worktree":"/w"}}}`,
			`{"id":4,"do":"events","plugin":"p","params":{"events":[{"n":1},{"n":2}]}}`,
			`{"id":5,"do":"events","plugin":"p","params":{"events":[{"n":3}]}}`,
			`{"id":6,"do":"dispose","plugin":"p"}`,
		}
		if !slices.Equal(lines, told) {
			t.Errorf("sent\n%s", strings.Join(lines, "\n"))
		}
	})
}

// How several plugins share a hook: each gets what the one before left, a refusal ends the round and changes nothing, and so does a denial.
func TestRound(t *testing.T) {
	for name, test := range map[string]struct {
		hook  string
		reply map[string]string // of each plugin that has the hook; "" throws
		want  string            // who was asked with which output, what each did, the error, and the output in the end
	}{
		"each gets what the one before left": {"chat.params", map[string]string{"a": `{"output":{"x":1,"y":2}}`, "b": `{"output":{"y":2}}`, "c": `{}`},
			`a{"x":0} b{"x":1,"y":2} c{"y":2} | a[x y] b[x] c[] | <nil> | {"y":2}`},
		"null changes nothing":      {"chat.params", map[string]string{"a": `{"output":null}`, "b": `{"output":{"x":0}}`}, `a{"x":0} b{"x":0} | a[] b[] | <nil> | {"x":0}`},
		"one that throws costs its": {"chat.params", map[string]string{"a": "", "b": `{"output":{"x":3}}`}, `a{"x":0} b{"x":0} | a[]the plugin a says in chat.params: no b[x] | <nil> | {"x":3}`},
		"a refusal ends it": {"tool.execute.before", map[string]string{"a": `{"output":{"x":1}}`, "b": "", "c": `{"output":{"x":3}}`},
			`a{"x":0} b{"x":1} | a[x] b[]the plugin b says in tool.execute.before: no | the plugin b says in tool.execute.before: no | {"x":0}`},
		"a denial ends it": {"permission.ask", map[string]string{"a": `{"output":{"status":"deny"}}`, "b": `{"output":{"status":"allow"}}`},
			`a{"x":0} | a[status x] | <nil> | {"status":"deny"}`},
		"an allow does not":           {"permission.ask", map[string]string{"a": `{"output":{"status":"allow"}}`, "b": `{"output":{"status":"deny"}}`}, `a{"x":0} b{"status":"allow"} | a[status x] b[status] | <nil> | {"status":"deny"}`},
		"a denial means nothing else": {"chat.params", map[string]string{"a": `{"output":{"status":"deny"}}`, "b": `{}`}, `a{"x":0} b{"status":"deny"} | a[status x] b[] | <nil> | {"status":"deny"}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked, did []string
				h := opened(t, Options{}, func(_ int, m sent) string {
					var params struct{ Params hookParams }
					_ = json.Unmarshal([]byte(m.line), &params)
					answer, has := test.reply[m.Plugin]
					switch {
					case m.Do == "init" && has:
						return result(m, `{"hooks":["`+test.hook+`"]}`)
					case m.Do == "hook":
						if asked = append(asked, m.Plugin+string(params.Params.Output)); answer == "" {
							return fmt.Sprintf(`{"id":%d,"error":"no"}`, m.ID)
						}
						return result(m, answer)
					}
					return result(m, `{}`)
				}, native("a"), native("b"), native("c"), native("none"))
				defer h.Close()
				out := json.RawMessage(`{"x":0}`)
				ran, err := h.Run(t.Context(), test.hook, nil, &out)
				for _, r := range ran {
					text := ""
					if r.Err != nil {
						text = r.Err.Error()
					}
					did = append(did, r.Plugin+fmt.Sprint(r.Changed)+text)
				}
				if got := fmt.Sprintf("%s | %s | %v | %s", strings.Join(asked, " "), strings.Join(did, " "), err, out); got != test.want {
					t.Errorf("got  %s\nwant %s", got, test.want)
				}
				if failures := h.Status()[0].Failures; failures != strings.Count(test.want, "says in chat") {
					t.Errorf("%d failures", failures) // a refusal is none
				}
			})
		})
	}
}

// Who asks may give up: then the output stays, also where one has changed it, and nobody else is asked.
func TestRunGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		h := opened(t, Options{}, func(_ int, m sent) string {
			if m.Do != "hook" {
				return usual(m)
			}
			if asked.Add(1) == 2 {
				return " "
			}
			return result(m, `{"output":{"x":1}}`)
		}, native("a"), native("b"), native("c"))
		defer h.Close()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, centurion.ErrShutdown)
		defer cancel()
		out := json.RawMessage(`{"x":0}`)
		if ran, err := h.Run(ctx, "shell.env", nil, &out); !errors.Is(err, centurion.ErrShutdown) || len(ran) != 2 || string(out) != `{"x":0}` || asked.Load() != 2 {
			t.Errorf("%+v, %v, %s", ran, err, out)
		}
	})
}

// How a call ends that is not answered: after which time, with which error, what is known of its outcome, and what is counted.
func TestCallEnds(t *testing.T) {
	for name, test := range map[string]struct {
		reply func(m sent) string // to the call
		abort string              // to its abort
		want  string
	}{
		"it is silent":         {func(sent) string { return " " }, " ", `7s timeout may="call t: the plugin p did not answer within 5s: the call may have run" aborts=1 failed=0`},
		"it ends when aborted": {func(sent) string { return " " }, `{"id":%d,"error":"aborted"}`, `5s timeout "call t: the plugin p did not answer within 5s" aborts=1 failed=0`},
		"it shows progress": {func(m sent) string {
			time.Sleep(4 * time.Second)
			return fmt.Sprintf(`{"id":%d,"progress":{"title":"x\u001b"}}`, m.ID)
		}, " ", `11s timeout may="call t: the plugin p did not answer within 5s: the call may have run" aborts=1 failed=0 "x"`},
		"it throws":               {func(m sent) string { return fmt.Sprintf(`{"id":%d,"error":"no \u0007luck"}`, m.ID) }, " ", `0s usage "call t: no luck" aborts=0 failed=1`},
		"the arguments are wrong": {func(m sent) string { return fmt.Sprintf(`{"id":%d,"error":"q","kind":"arguments"}`, m.ID) }, " ", `0s usage not="call t: q: the call has not begun" aborts=0 failed=0`},
		"its process ends":        {func(sent) string { return "" }, " ", `0s interrupted may="call t: the plugin p ended during the call: its process ended: the call may have run" aborts=0 failed=1`},
		"it answers with a list":  {func(m sent) string { return result(m, `[]`) }, " ", `0s invalid_request "plugin: the tool has run, but its answer cannot be read: json: cannot unmarshal array into Go value of type struct { Text string \"json:\\\"text\\\"\"; Title string \"json:\\\"title\\\"\"; Metadata json.RawMessage \"json:\\\"metadata\\\"\"; Attachments []json.RawMessage \"json:\\\"attachments\\\"\" }" aborts=0 failed=0`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				aborts := 0
				h := opened(t, Options{CallLimit: 5 * time.Second, Silence: time.Hour, Backoff: time.Hour}, func(_ int, m sent) string {
					switch m.Do {
					case "tool":
						return test.reply(m)
					case "abort":
						aborts++
						return strings.Replace(test.abort, "%d", fmt.Sprint(m.ID), 1)
					}
					return usual(m)
				}, native("p"))
				defer h.Close()
				began, shown := time.Now(), ""
				_, err := h.Call(t.Context(), Call{Tool: "t"}, nil, func(line string) { shown += fmt.Sprintf(" %q", line) })
				outcome := map[bool]string{true: "may="}[errors.Is(err, ErrMayHaveRun)] + map[bool]string{true: "not="}[errors.Is(err, ErrNotBegun)]
				took := time.Since(began)
				synctest.Wait()
				failed := h.Status()[0].Failures
				if name == "its process ends" {
					failed-- // its end is another
				}
				if got := fmt.Sprintf("%s %s %s%q aborts=%d failed=%d%s", took, centurion.KindOf(err), outcome, err.Error(), aborts, failed, shown); got != test.want {
					t.Errorf("got  %s\nwant %s", got, test.want)
				}
			})
		})
	}
}

// Only hooks without an answer one after the other cost a plugin its process, and of its restarts only those that soon follow each other.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		h := opened(t, Options{HookLimit: time.Second, Silence: time.Hour}, func(_ int, m sent) string {
			if m.Do == "hook" {
				if asked++; asked != 3 {
					return " "
				}
			}
			return usual(m)
		}, native("p"))
		defer h.Close()
		for range 5 {
			_, _ = h.Run(t.Context(), "shell.env", nil, &map[string]any{})
		}
		if st := h.Status()[0]; st.State != Ready || st.Restarts != 0 || st.Failures != 4 || st.Hooked != 5 || st.Err.Error() != "the plugin p did not answer in shell.env within 1s" {
			t.Errorf("%+v", st)
		}
		_, _ = h.Run(t.Context(), "shell.env", nil, &map[string]any{})
		synctest.Wait()
		if st := h.Status()[0]; st.State != Restarting || st.Restarts != 1 {
			t.Errorf("after the third in a row: %+v", st)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		born := map[int]time.Time{}
		h := opened(t, Options{}, func(process int, m sent) string {
			if born[process].IsZero() {
				born[process] = time.Now()
			}
			if time.Since(born[process]) >= steady {
				return ""
			}
			return usual(m)
		}, native("p"))
		defer h.Close()
		time.Sleep(2 * time.Hour)
		if st := h.Status()[0]; st.State != Ready || st.Restarts < 2*restarts {
			t.Errorf("one that ends now and then: %+v", st)
		}
	})
}

// together are plugins of OpenCode's in one process, without its runtime.
func together(t *testing.T, names ...string) (o Options, sources []Source) {
	t.Helper()
	for _, name := range names {
		sources = append(sources, Source{Name: name, File: "/" + name})
	}
	return Options{Bun: os.Args[0], State: filepath.Join(t.TempDir(), "state")}, sources
}

// Of several plugins in a process that ends, only those that may have caused it wait for a process of their own.
func TestSuspects(t *testing.T) {
	hangs := func(h *Host) { time.Sleep(time.Minute) }
	for name, test := range map[string]struct {
		do    func(h *Host)
		reply func(process int, m sent) string // "-" is usual
		want  string
	}{
		"whose call it was": {func(h *Host) { _, _ = h.Call(context.Background(), Call{Tool: "b"}, nil, nil) },
			func(n int, m sent) string {
				if n == 1 && m.Do == "tool" {
					return ""
				}
				return "-"
			}, "a=0 b=1 c=0 | plugins plugins b"},
		"whose event runs": {func(h *Host) { h.Event(1); hangs(h) }, func(n int, m sent) string {
			if n == 1 && m.Do == "events" && m.Plugin == "b" {
				return fmt.Sprintf(`{"id":%d,"progress":{}}`, m.ID)
			}
			if n == 1 && (m.Do == "events" || m.Do == "ping") {
				return " "
			}
			return "-"
		}, "a=0 b=1 c=0 | plugins plugins b"},
		"who was called before it fell silent": {func(h *Host) {
			go func() { _, _ = h.Call(context.Background(), Call{Tool: "a"}, nil, nil) }()
			time.Sleep(6 * time.Second)
			go func() { _, _ = h.Call(context.Background(), Call{Tool: "c"}, nil, nil) }()
			hangs(h)
		}, func(n int, m sent) string {
			if n == 1 && (m.Do == "tool" || m.Do == "ping") {
				return " "
			}
			return "-"
		}, "a=1 b=0 c=0 | plugins plugins a"},
		"all, if nothing says who": {hangs, func(n int, m sent) string {
			if n == 1 && m.Do == "ping" {
				return ""
			}
			return "-"
		}, "a=1 b=1 c=1 | plugins a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			o, sources := together(t, "a", "b", "c")
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var starts []string
				o.Start = func(_ context.Context, s Start) (Process, error) {
					mu.Lock()
					defer mu.Unlock()
					starts = append(starts, s.Name)
					return nil, nil
				}
				h := opened(t, o, func(process int, m sent) string {
					if r := test.reply(process, m); r != "-" {
						return r
					}
					return strings.Replace(usual(m), `"name":"t"`, `"name":"`+m.Plugin+`"`, 1)
				}, sources...)
				defer h.Close()
				test.do(h)
				time.Sleep(time.Minute)
				var again []string
				for _, st := range h.Status() {
					if again = append(again, fmt.Sprintf("%s=%d", st.Name, st.Restarts)); st.State != Ready {
						t.Errorf("%+v", st)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				slices.Sort(starts[min(2, len(starts)):])
				if strings.HasPrefix(test.want, "a=1 b=1") {
					slices.Sort(starts[1:])
				}
				if got := strings.Join(again, " ") + " | " + strings.Join(starts, " "); got != test.want {
					t.Errorf("got %s, want %s", got, test.want)
				}
			})
		})
	}
}
