package host

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/config"
	"centurion/plugin"
	"centurion/text"
)

// played is a process of a plugin that is ready after a while, forbids every call and changes every other output.
type played struct {
	net.Conn
	far   net.Conn
	ended chan struct{}
}

func (p *played) Kill()       { _ = p.far.Close() }
func (p *played) Wait() error { <-p.ended; return nil }

func play(ready time.Duration) func(context.Context, plugin.Start) (plugin.Process, error) {
	return func(context.Context, plugin.Start) (plugin.Process, error) {
		near, far := net.Pipe()
		p := &played{near, far, make(chan struct{})}
		go func() { // ends with the connection
			defer close(p.ended)
			for in := bufio.NewScanner(far); in.Scan(); {
				var m struct {
					ID     int                   `json:"id"`
					Do     string                `json:"do"`
					Params struct{ Hook string } `json:"params"`
				}
				if json.Unmarshal(in.Bytes(), &m) != nil {
					return
				}
				answer := `{}`
				switch {
				case m.Do == "init":
					time.Sleep(ready)
					answer = `{"result":{"hooks":["tool.execute.before","permission.ask","shell.env"],"tools":[{"name":"t","schema":{"type":"object"}}]}}`
				case m.Params.Hook == centurion.HookToolBefore:
					answer = `{"error":"not today"}`
				case m.Do == "hook":
					answer = `{"result":{"output":{"changed":true}}}`
				}
				if _, err := io.WriteString(far, fmt.Sprintf(`{"id":%d,`, m.ID)+strings.Replace(answer, "{", "", 1)+"\n"); err != nil {
					return
				}
			}
		}()
		return p, nil
	}
}

// pluginsOf are the plugins of a project with one native plugin.
func pluginsOf(t *testing.T, state string, ready time.Duration) *Plugins {
	source := plugin.Source{Name: "p", Command: []string{"p"}}
	p := newPlugins(&config.Config{Plugins: []plugin.Source{source}}, Place{State: filepath.Join(state, "projects", "p")}, state, nil, "1")
	p.host = plugin.Open(p.all, plugin.Options{Start: play(ready)})
	p.kept = recall[centurion.ExternalTool](p.memory("tools"))
	return p
}

// A hook that forbids waits for a plugin that is starting, but not for ever; any other one is left out until then.
func TestHooksOfStartingPlugins(t *testing.T) {
	for _, c := range []struct {
		name, hook string
		ready      time.Duration
		took       time.Duration
		out        string
		refused    bool
		held       bool // said to be there before the plugin is
	}{
		{"a call", centurion.HookToolBefore, 3 * time.Second, 3 * time.Second, `{}`, true, true},
		{"a permission", centurion.HookAsk, 3 * time.Second, 3 * time.Second, `{"changed":true}`, false, true},
		{"the environment", "shell.env", 3 * time.Second, 0, `{}`, false, false},
		{"a call that would wait for long", centurion.HookToolBefore, 20 * time.Second, startLimit, `{}`, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := pluginsOf(t, t.TempDir(), c.ready)
				if got := p.Has(c.hook); got != c.held {
					t.Errorf("while it starts, there is such a hook: %v", got)
				}
				began := time.Now()
				out, _, err := p.Hook(t.Context(), c.hook, map[string]any{}, json.RawMessage(`{}`))
				if took := time.Since(began); took != c.took || string(out) != c.out || (err != nil) != c.refused {
					t.Errorf("after %s: %s, %v", took, out, err)
				}
				time.Sleep(c.ready + time.Second)
				if c.ready < startLimit && !p.Has(c.hook) {
					t.Error("there is no such hook")
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// While a plugin starts, its tools are those that it had last; then only those that it has. Another set of plugins had none.
func TestToolsOfStartingPlugins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := t.TempDir()
		names := func(p *Plugins) []string {
			return text.Each(p.Tools(), func(t centurion.ExternalTool) string { return t.Name })
		}
		was := pluginsOf(t, state, 0)
		remember(was.memory("tools"), nil, []centurion.ExternalTool{{Name: "z"}, {Name: "p_t"}, {Name: "a"}})
		if err := was.Close(); err != nil {
			t.Fatal(err)
		}
		p := pluginsOf(t, state, time.Second)
		if got := names(p); !slices.Equal(got, []string{"a", "p_t", "z"}) {
			t.Errorf("while it starts: %s", got)
		}
		time.Sleep(2 * time.Second)
		now := names(p)
		if len(now) != 1 {
			t.Errorf("started: %s", now)
		}
		if had := recall[centurion.ExternalTool](p.memory("tools")); len(had) != 1 || had[0].Name != now[0] {
			t.Errorf("kept: %+v", had)
		}
		p.all[0].Version = "2"
		if had := recall[centurion.ExternalTool](p.memory("tools")); had != nil {
			t.Errorf("of another version: %+v", had)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	none := newPlugins(&config.Config{}, Place{State: t.TempDir()}, "", nil, "1")
	if got := none.Tools(); got != nil || none.host != nil {
		t.Errorf("without a plugin: %v, and a host was started", got)
	}
	if err := none.Close(); err != nil {
		t.Error(err)
	}
}
