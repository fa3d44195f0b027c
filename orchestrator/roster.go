package orchestrator

import (
	"fmt"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/brief"
	"centurion/tools"
)

// wakes returns the agent that a session belongs to. A session whose agent is gone does not become another one's: the
// error has centurion.KindConfig and names the file that is missing.
func (m *mission) wakes(rec centurion.Session) (agents.Agent, error) {
	agent, err := m.st.Cast.Get(rec.Agent)
	if err != nil {
		e := &centurion.Error{Op: "open session " + rec.ID, Kind: centurion.KindConfig, Err: err, Hint: "define the agent again, then `centurion resume`"}
		if f := rec.Metadata.AgentFile; f != "" {
			e.Err = nil
			e.Msg = fmt.Sprintf("it belongs to the agent %q of %s, which is there no more", rec.Agent, f)
			e.Hint = "put " + f + " back, then `centurion resume`"
		}
		return agents.Agent{}, e
	}
	if rec.Metadata.Tools != nil {
		return agent.SubAgent(rec.Metadata.Tools, ""), nil // its prompt stands in its record
	}
	if rec.Metadata.Task != "" {
		agent = agent.ForTask()
	}
	return agent, nil
}

// hasRoster reports whether a tool names agents.
func hasRoster(tool string) bool { return tool == brief.DelegateTool }

// rostered is a tool whose description tells of the agents that only this project or person has.
type rostered struct {
	tools.Tool
	roster string
}

func (r rostered) Description() string {
	return r.Tool.Description() + "\n\nAgents of this project that it takes as well:\n" + r.roster
}
