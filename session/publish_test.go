package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/provider/scripted"
	"centurion/tools"
)

// OPAL-43: the agent tells of its words and each of its tool calls of what it is at, under the session's id and with the part
// that they belong to, also of calls that run side by side.
func TestAgentAndToolsTell(t *testing.T) {
	r := newRig(t, inOrder(scripted.Answer{Say: "I look.", Calls: []scripted.Call{{Name: "slow", Arguments: `{"id":"a"}`}, {Name: "slow", Arguments: `{"id":"b"}`}}}),
		tool{name: "slow", effect: readOnly, run: func(_ context.Context, c *tools.Call, in json.RawMessage) (tools.Result, error) {
			c.Progress("half of " + argument(in, "id"))
			return tools.Result{}, nil
		}})
	var mu sync.Mutex
	told := map[string]string{} // by part and field
	r.cfg.Publish = func(e centurion.Event) {
		mu.Lock()
		defer mu.Unlock()
		d, err := event.Decode[event.DeltaData](e)
		if err != nil || e.Type != centurion.EventDelta || e.Session != r.id || e.Mission != "msn_1" || e.Task != "tsk_1" || d.Message == "" {
			t.Errorf("told %+v, %v", e, err)
		}
		told[d.Part+" "+d.Field] += d.Delta
	}
	r.reopen()
	r.turn()
	var want []string
	for _, p := range r.messages()[1].Parts {
		switch p.Type {
		case centurion.PartText:
			want = append(want, p.ID+" text: I look.")
		case centurion.PartTool:
			want = append(want, fmt.Sprintf("%s progress: half of %s", p.ID, argument(p.State.Input, "id")))
		}
	}
	for _, w := range want {
		key, text, _ := strings.Cut(w, ": ")
		if told[key] != text {
			t.Errorf("of %s: %q, want %q", key, told[key], text)
		}
	}
	if len(want) != 3 {
		t.Errorf("parts %q", want)
	}
}
