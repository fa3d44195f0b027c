package orchestrator

import (
	"encoding/json"
	"testing"
	"time"

	"centurion"
	"centurion/orchestrator/state"
	"centurion/permission"
	"centurion/tools"
)

// The journal has one row for each call, with what the rules decided about it, which rule, and who answered.
func TestDecisionsAreRecorded(t *testing.T) {
	levels := append(rules(permission.Allow), permission.Level{Name: "a file", Rules: []permission.Rule{
		{Permission: "bash", Pattern: "build *", Action: permission.Ask}, {Permission: "bash", Pattern: "rm *", Action: permission.Deny}}})
	const asks, denies = `bash "build *": ask`, `bash "rm *": deny`
	for policy, want := range map[string]tools.Decision{
		"deny":  {Permission: "bash", Action: "ask", Rule: asks, Level: "a file", Answer: "reject", By: state.ByPolicy},
		"allow": {Permission: "bash", Action: "ask", Rule: asks, Level: "a file", Answer: "once", By: state.ByPolicy},
		"ask":   {Permission: "bash", Action: "ask", Rule: asks, Level: "a file", Answer: "reject", By: state.ByTimeout},
	} {
		t.Run(policy, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(work("", "x")), say("I wait")),
				"worker":    steps(bash("build 1s"), bash("rm x"), bash("echo hi"), say("done")),
			}, func(r *rig) {
				r.cfg.Rules = func(string) []permission.Level { return levels }
				r.cfg.AskTimeout = 10 * time.Minute
				r.restart()
				began := time.Now()
				m := r.mission(centurion.MissionOptions{Ask: policy})
				r.is(m, centurion.MissionCompleted, "")
				waited := time.Since(began) > 9*time.Minute
				equal(t, "waited for an answer", waited, policy == "ask")
				session := r.tasks(m.ID)[0].Session
				for n, want := range []tools.Decision{want, {Permission: "bash", Action: "deny", Rule: denies, Level: "a file"}} {
					data, err := json.Marshal(r.part(session, "bash", n).State.Metadata["permission"])
					var got []tools.Decision
					if err == nil {
						err = json.Unmarshal(data, &got)
					}
					if err != nil || len(got) != 1 || got[0] != want {
						t.Errorf("call %d: %s, %v, want %+v", n, data, err, want)
					}
				}
				if r.part(session, "bash", 2).State.Metadata["permission"] == nil {
					t.Error("what is allowed has no row")
				}
				if policy == "ask" {
					has(t, r.results(m.ID, "bash")[0], "not allowed: bash build 1s (no answer came in time (ask_timeout))")
				}
			})
		})
	}
}
