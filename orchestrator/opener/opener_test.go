package opener

import (
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/state"
)

// An agent that may own a mission lacks the tools for that while it carries out a task; a sub-agent has those that it was given. A session
// whose agent is gone gets no other one, and the error names the file to put back.
func TestAgentOf(t *testing.T) {
	t.Parallel()
	cast, _, err := agents.Default().With(agents.Definition{Name: "both", Mode: "all", Prompt: "You do both.", Source: "both.md"})
	if err != nil {
		t.Fatal(err)
	}
	o := &Opener{Mission: &state.Mission{Cast: cast}}
	for name, c := range map[string]struct {
		meta       centurion.SessionMeta
		owns, bash bool
	}{
		"of a mission":   {centurion.SessionMeta{}, true, true},
		"of a task":      {centurion.SessionMeta{Task: "tsk_1"}, false, true},
		"of a sub-agent": {centurion.SessionMeta{Task: "tsk_1", Tools: []string{"read"}}, false, false},
	} {
		a, err := o.agentOf(centurion.Session{Agent: "both", Metadata: c.meta})
		if err != nil || a.Name != "both" || a.Holds("delegate_task") != c.owns || a.Holds("bash") != c.bash || !slices.Contains(a.Tools, "read") {
			t.Errorf("%s: %q, %v", name, a.Tools, err)
		}
	}
	for file, want := range map[string]string{"": `"gone"`, "gone.md": `the agent "gone" of gone.md`} {
		_, err := o.agentOf(centurion.Session{ID: "ses_1", Agent: "gone", Metadata: centurion.SessionMeta{AgentFile: file}})
		if centurion.KindOf(err) != centurion.KindConfig || !strings.Contains(err.Error(), want) || !strings.Contains(centurion.HintOf(err), file) {
			t.Errorf("%q: %v (%s)", file, err, centurion.HintOf(err))
		}
	}
}
