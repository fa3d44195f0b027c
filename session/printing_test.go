package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/event"
	"centurion/provider/scripted"
	"centurion/tools"
)

// Issue "Real OpenCode clients": what a command prints is told while it runs, at most ten times a second, in whole letters, and of much
// only the end; nothing after its end.
func TestPrintingIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, inOrder(scripted.Answer{Calls: []scripted.Call{{Name: "print", Arguments: `{}`}}}), tool{name: "print", effect: readOnly,
			run: func(_ context.Context, c *tools.Call, _ json.RawMessage) (tools.Result, error) {
				print := func(text string, wait time.Duration) {
					if n, err := c.Output.Write([]byte(text)); n != len(text) || err != nil {
						t.Errorf("wrote %d, %v", n, err)
					}
					time.Sleep(wait)
				}
				print("a", time.Millisecond)
				print("b\xc3", time.Millisecond)
				print("\xb6\xc3", time.Second)
				print("\xa4", time.Second)
				print(strings.Repeat("x", event.MaxPrinted)+"end", time.Second)
				print("last", time.Millisecond)
				print("told with the result", 0)
				return tools.Result{}, nil
			}})
		var told []string
		zero := time.Now()
		r.cfg.Publish = func(e centurion.Event) {
			if d, err := event.Decode[event.DeltaData](e); err != nil || d.Field == "output" {
				told = append(told, fmt.Sprintf("%v %.5s %d", time.Since(zero).Round(10*time.Millisecond), d.Delta, len(d.Delta)))
			}
		}
		r.reopen()
		r.turn()
		time.Sleep(time.Second)
		if got, want := strings.Join(told, ", "), "0s a 1, 100ms bö 3, 1s ä 2, 2s …\nxxx 30004, 3s last 4"; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}
