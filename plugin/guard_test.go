package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
)

// guarding answers as a plugin with hooks that may refuse.
func guarding(m sent) string {
	if m.Do == "init" {
		return fmt.Sprintf(`{"id":%d,"result":{"hooks":["tool.execute.before","permission.ask","shell.env","experimental.chat.messages.transform"]}}`, m.ID)
	}
	return fmt.Sprintf(`{"id":%d,"result":{}}`, m.ID)
}

// Step 11, point 2: what a plugin may refuse does not happen while it cannot be asked. It is waited for while it starts, and starts again.
func TestGuardDown(t *testing.T) {
	known := map[string][]string{"p": {"tool.execute.before"}}
	absent := func(context.Context, Start) (Process, error) { return nil, errors.New("no such program") }
	for name, test := range map[string]struct {
		start   func(context.Context, Start) (Process, error)
		known   map[string][]string
		after   time.Duration // until it is asked
		refused string
	}{
		"it runs":                       {script(func(_ int, m sent) string { return guarding(m) }), nil, time.Second, ""},
		"it is starting, and was one":   {script(func(_ int, m sent) string { return guarding(m) }), known, 0, ""},
		"it never starts, and was one":  {absent, known, time.Minute, "the plugin p is failed: the plugin p is off: no such program, after 3 restarts"},
		"it never starts, and was none": {absent, map[string][]string{"p": {"shell.env"}}, time.Minute, ""},
		"it ends once when it is asked": {script(func(n int, m sent) string {
			if n == 1 && m.Do == "hook" {
				return ""
			}
			return guarding(m)
		}), nil, time.Second, ""},
		"it ends whenever it is asked": {script(func(_ int, m sent) string {
			if m.Do == "hook" {
				return ""
			}
			return guarding(m)
		}), nil, time.Second, "the plugin p did not answer in tool.execute.before: its process ended"},
		"it has been off for long": {script(func(_ int, m sent) string {
			if m.Do == "ping" {
				return ""
			}
			return guarding(m)
		}), nil, time.Hour, "the plugin p is failed: the plugin p is off: exit status 3, after 3 restarts"},
		"its answer is no object": {script(func(_ int, m sent) string {
			if m.Do == "hook" {
				return fmt.Sprintf(`{"id":%d,"result":{"output":7}}`, m.ID)
			}
			return guarding(m)
		}), nil, time.Second, "left an output of tool.execute.before that has another shape"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := Open([]Source{native("p")}, Options{Start: test.start, Known: test.known})
				defer h.Close()
				time.Sleep(test.after)
				began := time.Now()
				_, err := h.Run(t.Context(), "tool.execute.before", nil, &struct{ Args any }{})
				if took := time.Since(began); took > 20*time.Second {
					t.Errorf("it was waited for %s", took)
				}
				if test.refused == "" {
					if err != nil {
						t.Error(err)
					}
					return
				}
				if centurion.KindOf(err) != centurion.KindPermission || !strings.Contains(err.Error(), test.refused) || !strings.Contains(err.Error(), "the plugin p has a say in this") ||
					!strings.Contains(centurion.HintOf(err), "centurion plugin list") {
					t.Errorf("%v: %s", err, centurion.HintOf(err))
				}
				if !h.Has("tool.execute.before") || h.Has("shell.env") && test.after > time.Minute {
					t.Error("what it could refuse goes on without it, or the rest does not")
				}
			})
		})
	}
}

// A message of another role is another one.
func TestPieces(t *testing.T) {
	as := func(role string) []piece {
		return pieces(json.RawMessage(`{"messages":[{"info":{"role":"` + role + `"},"parts":["x"]}]}`))
	}
	if n := shared(as("user"), as("user")); n != 5 {
		t.Errorf("%d bytes are the same", n)
	}
	if n := shared(as("user"), as("assistant")); n != 0 {
		t.Errorf("%d bytes are the same in another role", n)
	}
}

// How much of a conversation stayed as a provider has it is counted for each plugin by itself: a compaction, and what an earlier plugin
// changes, are no fault of the later one.
func TestKeptPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := Open([]Source{native("first"), native("second")}, Options{Figures: map[string]Figures{"second": {Hooked: 3, Sent: 1, Kept: 1}}, Start: script(func(_ int, m sent) string {
			if m.Do == "hook" && m.Plugin == "first" && m.ID > 3 { // its third answer changes the oldest message
				return fmt.Sprintf(`{"id":%d,"result":{"output":{"messages":[{"parts":["x"],"info":{"role":"user"}}]}}}`, m.ID)
			}
			return guarding(m)
		})})
		defer h.Close()
		_ = h.Settled(t.Context())
		for _, parts := range [][]string{{"<a>"}, {"<a>", "b"}, {"<a>", "b", "c"}, {"summary"}} {
			var all []map[string]any
			for _, p := range parts {
				all = append(all, map[string]any{"info": map[string]string{"role": "user"}, "parts": []string{p}})
			}
			out, _ := json.Marshal(map[string]any{"messages": all})
			raw := json.RawMessage(out)
			if _, err := h.Run(t.Context(), transform, map[string]string{"sessionID": "s"}, &raw); err != nil {
				t.Fatal(err)
			}
		}
		f := h.Figures()
		a, b := int64(len(`["<a>"]`)+10), int64(len(`["b"]`)) // as Go writes it
		if got := f["first"]; got.Sent != a+a+b || got.Kept != a || got.Hooked != 4 {
			t.Errorf("first: %+v", got)
		}
		if got := f["second"]; got.Sent != 1+a+5 || got.Kept != 1+a+5 || got.Hooked != 7 {
			t.Errorf("second: %+v", got)
		}
	})
}
