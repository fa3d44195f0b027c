package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Who needs a plugin that is starting waits for it; a hook that refuses nothing does not wait for one that is started again, and that counts
// as no call.
func TestWaitsForTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := Open([]Source{native("p")}, Options{Known: map[string][]string{"p": {"shell.env"}}, Silence: time.Hour, Start: script(func(n int, m sent) string {
			switch {
			case m.Do == "init":
				time.Sleep(time.Second)
			case m.Do == "hook" && m.ID > 2:
				return "" // it ends
			case m.Do == "hook":
				return result(m, `{"output":{"x":1}}`)
			}
			return strings.Replace(usual(m), `"tools":[`, `"tools":[{"name":"u","schema":{"type":"object"}},`, 1)
		})})
		defer h.Close()
		if !h.Starting() {
			t.Error("it is not starting")
		}
		out := map[string]int{}
		if ran, err := h.Run(t.Context(), "shell.env", nil, &out); err != nil || len(ran) != 1 || ran[0].Err != nil || out["x"] != 1 || h.Starting() {
			t.Errorf("%+v, %v, %v", ran, err, out)
		}
		if tools, err := h.Tools(); err != nil || len(tools) != 2 || tools[0].Name != "t" || tools[1].Name != "u" {
			t.Errorf("tools %v, %v", tools, err)
		}
		_, _ = h.Run(t.Context(), "shell.env", nil, &out)
		synctest.Wait()
		began := time.Now()
		ran, err := h.Run(t.Context(), "shell.env", nil, &out)
		if err != nil || len(ran) != 1 || ran[0].Err == nil || time.Since(began) != 0 || !strings.HasPrefix(ran[0].Err.Error(), "the plugin p is restarting: ") {
			t.Errorf("%+v, %v after %s", ran, err, time.Since(began))
		}
		if st := h.Status()[0]; st.Hooked != 2 || st.Failures != 2 { // the hook, and the end of the process
			t.Errorf("%+v", st)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h := Open([]Source{native("p")}, Options{Start: script(func(_ int, m sent) string {
			if m.Do == "init" {
				time.Sleep(time.Second)
			}
			return usual(m)
		})})
		defer h.Close()
		if r, err := h.Call(t.Context(), Call{Tool: "t"}, nil, nil); err != nil || r.Text != "fine" {
			t.Errorf("a call at the start: %+v, %v", r, err)
		}
	})
}

// What goes wrong outside of any request is counted for the plugin that is named, and in a process of one for that.
func TestFaults(t *testing.T) {
	for name, test := range map[string]struct {
		plugins []string
		named   string
		want    string
	}{
		"its own":         {[]string{"a", "b"}, "b", "a=0 b=1"},
		"somebody's":      {[]string{"a", "b"}, "c", "a=0 b=0"},
		"the only one's":  {[]string{"a"}, "c", "a=1"},
		"without a name":  {[]string{"a"}, "", "a=1"},
		"of two, no name": {[]string{"a", "b"}, "", "a=0 b=0"},
	} {
		t.Run(name, func(t *testing.T) {
			o, sources := together(t, test.plugins...)
			o.Silence = time.Hour
			synctest.Test(t, func(t *testing.T) {
				h := opened(t, o, func(_ int, m sent) string {
					if m.Do == "events" && m.Plugin == "a" {
						return fmt.Sprintf(`{"fault":"oh\u0007 no","plugin":%q}`, test.named) + "\n" + usual(m)
					}
					return usual(m)
				}, sources...)
				defer h.Close()
				h.Event(1)
				time.Sleep(time.Second)
				var got []string
				for _, st := range h.Status() {
					got = append(got, fmt.Sprintf("%s=%d", st.Name, st.Failures))
					if st.Failures > 0 && st.Err.Error() != "the plugin "+st.Name+" failed on its own: oh no" || st.State != Ready {
						t.Errorf("%+v", st)
					}
				}
				if got := strings.Join(got, " "); got != test.want {
					t.Errorf("got %s, want %s", got, test.want)
				}
			})
		})
	}
}

// held is a process whose output somebody holds after its end.
type held struct {
	Process
	ended chan struct{}
}

func (h held) Wait() error {
	<-h.ended
	return nil
}

// The end of a process counts, whoever else holds its output.
func TestOutputIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		start := script(func(_ int, m sent) string { return usual(m) })
		h := Open([]Source{native("p")}, Options{Backoff: time.Hour, Silence: time.Hour, Start: func(ctx context.Context, s Start) (Process, error) {
			p, err := start(ctx, s)
			return held{p, ended}, err
		}})
		defer h.Close()
		if err := h.Settled(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(ended)
		time.Sleep(2 * time.Second)
		if st := h.Status()[0]; st.State != Restarting || st.Err == nil || st.Err.Error() != "its process ended" {
			t.Errorf("%+v", st)
		}
	})
}

// stubborn is a process that goes on without its input until it is killed.
type stubborn struct {
	Process
	end    func()
	killed chan struct{}
}

func (s stubborn) Kill()       { s.end() }
func (s stubborn) Wait() error { <-s.killed; return s.Process.Wait() }

// A process that does not end with its input is killed, also when the program ends.
func TestStubbornIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := script(func(_ int, m sent) string { return usual(m) })
		h := Open([]Source{native("p")}, Options{Start: func(ctx context.Context, s Start) (Process, error) {
			p, err := start(ctx, s)
			killed := make(chan struct{})
			return stubborn{p, sync.OnceFunc(func() { close(killed); p.Kill() }), killed}, err
		}})
		if err := errors.Join(h.Settled(t.Context()), h.Close()); err != nil {
			t.Error(err)
		}
	})
}
