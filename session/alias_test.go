package session_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"centurion"
	"centurion/provider/scripted"
	"centurion/tools"
)

// ORCH-54, ORCH-55, ORCH-100: a call under another name is the tool's own in all that is kept and told, also after a restart; of
// a tool that the session does not hold there is none under any name.
func TestCallsUnderOtherNames(t *testing.T) {
	var mu sync.Mutex
	var given []string
	look := func(name string) tool {
		return tool{name: name, effect: readOnly, run: func(_ context.Context, _ *tools.Call, in json.RawMessage) (tools.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			given = append(given, name+string(in))
			return tools.Result{Output: name + " ran"}, nil
		}}
	}
	r := newRig(t, inOrder(call(`grep_search {"dir":"src"}`, `glob_search {}`, `call_agent {"agent":"worker"}`), scripted.Answer{Say: "ok"}), look("grep"), look("glob"))
	r.turn()
	for i, want := range []string{"grep ran", "glob ran", "Tool not found: call_agent"} {
		if got := r.model.Requests()[1].Results()[i]; got != want {
			t.Errorf("result %d is %q, want %q", i, got, want)
		}
	}
	if len(given) != 2 || given[0] != `grep{"path":"src"}` && given[1] != `grep{"path":"src"}` {
		t.Errorf("the tools were given %q", given)
	}
	names := map[string]int{}
	for _, m := range r.messages() {
		for _, p := range m.Parts {
			if p.Type == centurion.PartTool {
				names[p.Tool]++
			}
		}
	}
	if names["grep"] != 1 || names["glob"] != 1 || names["call_agent"] != 1 || len(names) != 3 {
		t.Errorf("stored as %v", names)
	}
	// A tool of that very name is not taken for another.
	own := newRig(t, inOrder(call("mgrep"), scripted.Answer{Say: "ok"}), look("grep"), look("mgrep"))
	own.turn()
	if got := own.model.Requests()[1].Results()[0]; got != "mgrep ran" {
		t.Errorf("the own tool answered %q", got)
	}
}
